/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what uroced says of itself: its version, and what it was built with. */
#include "version.h"

#include <rte_version.h>

#include "notify.h"

void version_print(FILE *out)
{
	fprintf(out, "uroced " UROCE_VERSION ", %s, %s\n", rte_version(), notify_is_there() ? "tells systemd" : "without libsystemd");
}

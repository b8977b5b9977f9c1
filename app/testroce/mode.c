/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the list of traffic modes. */
#include "mode.h"

#include <string.h>

static const struct mode *const modes[] = {
	&mode_send, &mode_send_imm, &mode_write, &mode_write_imm, &mode_read, &mode_atomic, &mode_uc, &mode_ud, &mode_multicast, &mode_srq, &mode_window, &mode_echo, &mode_incast, &mode_mixed,
};

const struct mode *mode_at(unsigned i)
{
	return i < sizeof(modes) / sizeof(modes[0]) ? modes[i] : NULL;
}

const struct mode *mode_find(const char *name)
{
	const struct mode *m;
	for (unsigned i = 0; (m = mode_at(i)); i++)
		if (!strcmp(m->name, name))
			return m;
	return NULL;
}

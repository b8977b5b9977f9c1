/* SPDX-License-Identifier: BSD-3-Clause */
/* Which uroced this is. */
#ifndef UROCED_VERSION_H
#define UROCED_VERSION_H

#include <stdio.h>

/* One line: of uroced, and what it was built with. */
void version_print(FILE *out);

#endif

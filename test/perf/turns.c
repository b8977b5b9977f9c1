/* SPDX-License-Identifier: BSD-3-Clause */
#include "turns.h"

#include <stdio.h>
#include <string.h>

const char *turns_next(struct turns *t)
{
	if (t->name)
		return *t->name ? *t->name++ : NULL;
	if (!fgets(t->line, sizeof(t->line), stdin))
		return NULL;
	t->line[strcspn(t->line, "\n")] = 0;
	return t->line;
}

void turns_say(const char *name, double value)
{
	printf("%s %.3f\n", name, value);
	fflush(stdout);
}

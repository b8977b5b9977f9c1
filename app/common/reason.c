/* SPDX-License-Identifier: BSD-3-Clause */
#include "reason.h"

#include <errno.h>
#include <stdio.h>

int reason_keep(char *reason, size_t room, const char *format, va_list args)
{
	if (!reason[0])
		vsnprintf(reason, room, format, args);
	return -EIO;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The first reason why something failed, in a text of its owner; what fails after that is only what follows from it. */
#ifndef APP_REASON_H
#define APP_REASON_H

#include <stdarg.h>
#include <stddef.h>

/* Puts it into `reason`, which has that much room, unless one is there. -EIO. */
__attribute__((format(printf, 3, 0))) int reason_keep(char *reason, size_t room, const char *format, va_list args);

#endif

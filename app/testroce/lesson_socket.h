/* SPDX-License-Identifier: BSD-3-Clause */
/* The same bytes over a TCP socket, for comparison. */
#ifndef TESTROCE_LESSON_SOCKET_H
#define TESTROCE_LESSON_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "tracer.h"

/* A connection over loopback, one message through it, and what the kernel was asked for: *calls for the message. t may be NULL: nothing is counted. 0, or negative after a line on standard error. */
int lesson_socket(const struct tracer *t, const void *message, size_t bytes, uint64_t *calls);

#endif

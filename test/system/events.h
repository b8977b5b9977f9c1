/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events as a program reads them. Any failure ends the process with a line (CHECK of side.h). */
#ifndef UROCE_TEST_EVENTS_H
#define UROCE_TEST_EVENTS_H

#include <stdbool.h>

#include "uroce.h"

/* The next one must come, be of this type and of this object (NULL: of the device), and is acknowledged. */
void events_expect(struct uroce_context *ctx, enum uroce_event_type type, const void *object);
/* One is there, or comes within a moment. */
bool events_is_there(struct uroce_context *ctx);
/* None is there, nor comes for a while. */
void events_expect_none(struct uroce_context *ctx);

#endif

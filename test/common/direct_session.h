/* SPDX-License-Identifier: BSD-3-Clause */
/* A context of the client library on a core in the same thread, with nothing between them: a request is carried out by core_control when it is made. For tests that drive a core themselves. */
#ifndef UROCE_TEST_DIRECT_SESSION_H
#define UROCE_TEST_DIRECT_SESSION_H

#include "core.h"
#include "direct_hooks.h"
#include "uroce.h"

/* clock: the time of each request, read when it is made; borrowed until uroce_close. 0 or a negative errno. */
int direct_session_open(struct core *core, const uint64_t *clock, const struct uroce_open_attr *attr, struct uroce_context **out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* What the client library needs of the other side, whichever it is: an engine in this process, a core in a test, a
 * daemon behind a socket (served.c). */
#ifndef UROCE_SESSION_H
#define UROCE_SESSION_H

#include <stdint.h>

#include "msg.h"

struct uroce_context;
struct uroce_open_attr;

struct session_ops {
	/* Carries out a request and fills rep (status included). Returns 0, or -ENODEV when the engine is gone: at once, also
	 * when it went while this waited, and who reads events finds their end from then on. Any thread, one at a time. The fd of a completion channel stays the session's:
	 * DESTROY_CHANNEL, even of an engine that is gone, or close closes it. */
	int (*call)(void *session, const struct abi_req *req, struct abi_rep *rep);
	/* The client's mapping of an arena; it stays until close. Arena 0: struct abi_engine_page at 0, struct abi_doorbells at
	 * 4096. -ENOENT: there is no such arena. Any thread, one at a time. */
	int (*region)(void *session, uint32_t arena, void **base, uint64_t *bytes);
	/* The engine sleeps and a doorbell was rung. Any thread, also while another is in a call. */
	void (*wake)(void *session);
	/* Runs the engine once, as uroce_engine_poll; NULL unless the mode is inline. */
	int (*poll)(void *session);
	/* The word that CTL_LIFE_DEAD appears in when the engine dies without a word (ctl.h), readable until close. The function
	 * may be NULL: then only abi_engine_page says so. */
	const _Atomic uint32_t *(*life)(void *session);
	/* Reading end of the asynchronous events; the session's. */
	int (*async_fd)(void *session);
	/* Every object that the session still has goes with it. No other call is going on or comes after. */
	void (*close)(void *session);
};

/* Exported by liburoce-engine under this name: device is the whole string given to uroce_open. The session is the client's
 * to close. 0, or a negative errno with a line in attr's log that says why. */
typedef int uroce_engine_session_open_fn(const char *device, const struct uroce_open_attr *attr, const struct session_ops **ops,
	void **session);
#define UROCE_ENGINE_SESSION_OPEN "uroce_engine_session_open"

/* A context over any session; takes the session over (closes it with the context, or at once when this fails). For tests,
 * and for uroce_open. */
int context_open(const struct session_ops *ops, void *session, const struct uroce_open_attr *attr, struct uroce_context **out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic of one mode between two ends: both here, or one here and the other at a peer's. Made and freed by the prompt's thread; while it runs it is the driver's. */
#ifndef TESTROCE_FLOW_H
#define TESTROCE_FLOW_H

#include <stdatomic.h>
#include <stdbool.h>

#include "end.h"

enum flow_state { FLOW_NEW, FLOW_RUNNING, FLOW_DONE, FLOW_FAILED };

struct flow {
	struct end end[2];  /* the client first, where both are here */
	unsigned ends;
	const char *who[2]; /* "client", "server" */
	uint64_t started_ns, ended_ns;
	_Atomic bool is_stopping, is_abandoned; /* the latter: and what is on its way is not waited for */
	_Atomic enum flow_state state; /* left RUNNING by the driver; the flow is the prompt's when driver.flow is NULL */
	/* the driver's */
	uint64_t quiet_since_ns, stopping_since_ns;
	/* the printer's: what was shown last */
	uint64_t shown_ns, shown_messages, shown_bytes;
	bool is_said; /* that it failed */
};

/* Both ends here. NULL after a line on standard error. */
struct flow *flow_new(const struct station *client, const struct station *server, const struct flow_config *config);
/* One end. flow_join connects it to the peer's. Each 0, or negative with flow->end[0].error; */
struct flow *flow_new_half(const struct station *s, const struct flow_config *config, bool is_client);
int flow_join(struct flow *f, json_t *peer);
void flow_free(struct flow *f);

/* The driver: how much was done; after it has left RUNNING, nothing. */
int flow_step(struct flow *f);

/* Why it failed: of the first end that did; "" */
const char *flow_error(const struct flow *f);
/* The whole state of it, as a table. */
void flow_print(const struct flow *f);
/* One line: what has happened since the last one. */
void flow_print_pace(struct flow *f);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that a testroce has: its ports, the objects made by hand, the traffic, and what was set for the next one. One, made by main; the prompt's thread works on it, and the driver's only on what is handed over to it (driver.h). */
#ifndef TESTROCE_LAB_H
#define TESTROCE_LAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver.h"
#include "events.h"
#include "exchange.h"
#include "flow.h"
#include "grammar.h"
#include "objects.h"
#include "station.h"

struct lab {
	struct station station[STATIONS_MAX];
	unsigned stations;
	struct flow_config config; /* of the next start */
	struct driver driver;
	struct flow *flow;         /* the one that runs, or the last one; NULL: none yet */
	bool is_paired;            /* the other end is another testroce's, */
	struct exchange peer;      /* which says so here; fd -1: none, or gone */
	bool is_server;            /* it begins, we answer */
	struct objects objects;
	struct events events;
	const struct grammar *grammar;
	bool is_interactive;       /* somebody reads along: a lesson waits for Enter */
	bool is_at_prompt;         /* the cursor stands in a line that somebody is typing */
	unsigned files;            /* of commands, that are being carried out: one may load another */
	bool is_quitting;
	unsigned failures;         /* traffic that went wrong: the exit code */
	double stats_seconds;      /* between two lines about the traffic; 0: none */
};

/* The station of a number; NULL after a line on standard error. */
struct station *lab_station(struct lab *lab, uint64_t number);
/* Says what is wrong; -EINVAL. */
__attribute__((format(printf, 1, 2))) int lab_fail(const char *format, ...);
/* Before lines that nobody has asked for: they begin where the prompt's line did. */
void lab_interject(const struct lab *lab);
/* A line about the traffic, events, and the end of one that failed or that the peer has stopped. Now and then, by the prompt's thread; whether something was printed. */
bool lab_look(struct lab *lab);

#endif

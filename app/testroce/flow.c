/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the ends. Invariant: nothing of a flow that is over moves, so that it can be looked at until the next one begins. */
#include "flow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIET_NS UINT64_C(20000000)         /* a flow is over when nothing has come for so long */
#define PATIENCE_NS UINT64_C(20000000000) /* and stuck when it is not over after so long */

static int begin(struct end *e)
{
	return e->role->begin ? e->role->begin(e) : 0;
}

static int connect_both(struct flow *f)
{
	json_t *card[2] = { end_pack(&f->end[0]), end_pack(&f->end[1]) };
	int err = end_connect(&f->end[0], card[1]);
	if (!err)
		err = end_connect(&f->end[1], card[0]);
	json_decref(card[0]);
	json_decref(card[1]);
	if (!err)
		err = begin(&f->end[1]);
	return err ? err : begin(&f->end[0]);
}

struct flow *flow_new(const struct station *client, const struct station *server, const struct flow_config *config)
{
	struct flow *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->ends = 2;
	f->who[0] = "client";
	f->who[1] = "server";
	int err = end_open(&f->end[0], client, config, true);
	if (!err)
		err = end_open(&f->end[1], server, config, false);
	if (!err)
		err = connect_both(f);
	if (!err)
		return f;
	fprintf(stderr, "cannot start: %s\n", flow_error(f));
	flow_free(f);
	return NULL;
}

struct flow *flow_new_half(const struct station *s, const struct flow_config *config, bool is_client)
{
	struct flow *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->ends = 1;
	f->who[0] = is_client ? "client" : "server";
	if (!end_open(&f->end[0], s, config, is_client))
		return f;
	fprintf(stderr, "cannot start: %s\n", flow_error(f));
	flow_free(f);
	return NULL;
}

int flow_join(struct flow *f, json_t *peer)
{
	int err = end_connect(&f->end[0], peer);
	return err ? err : begin(&f->end[0]);
}

void flow_free(struct flow *f)
{
	if (!f)
		return;
	for (unsigned i = 0; i < f->ends; i++)
		end_close(&f->end[i]);
	free(f);
}

const char *flow_error(const struct flow *f)
{
	return f->end[0].error[0] ? f->end[0].error : f->end[1].error;
}

/* ---- the driver's ---- */

static void leave(struct flow *f, enum flow_state state)
{
	f->ended_ns = end_now();
	atomic_store_explicit(&f->state, state, memory_order_release); /* everything that was written is seen by who sees this */
}

/* All has completed and nothing more comes: whether that is the end. */
static int finish(struct flow *f)
{
	int over = 1;
	for (unsigned i = 0; i < f->ends; i++) {
		int done = end_finish(&f->end[i]);
		if (done < 0)
			return done;
		over &= done;
	}
	if (over && f->ends == 2 && (end_compare(&f->end[0], &f->end[1]) || end_compare(&f->end[1], &f->end[0])))
		return -EIO;
	return over;
}

static void look_for_end(struct flow *f, int did)
{
	uint64_t now_ns = end_now();
	bool is_drained = true;
	if (!f->stopping_since_ns)
		f->stopping_since_ns = now_ns;
	for (unsigned i = 0; i < f->ends; i++)
		is_drained = is_drained && end_is_drained(&f->end[i]);
	if (atomic_load_explicit(&f->is_abandoned, memory_order_relaxed)) {
		end_fail(&f->end[0], "interrupted before all that was posted had completed");
		leave(f, FLOW_FAILED);
		return;
	}
	if (did || !is_drained || !f->quiet_since_ns)
		f->quiet_since_ns = now_ns;
	if (now_ns - f->quiet_since_ns > QUIET_NS) {
		int over = finish(f);
		f->quiet_since_ns = 0;
		if (over)
			leave(f, over < 0 ? FLOW_FAILED : FLOW_DONE);
	} else if (now_ns - f->stopping_since_ns > PATIENCE_NS) {
		end_fail(&f->end[0], "what was posted has not completed for %" PRIu64 " s", PATIENCE_NS / 1000000000);
		leave(f, FLOW_FAILED);
	}
}

int flow_step(struct flow *f)
{
	bool is_stopping = atomic_load_explicit(&f->is_stopping, memory_order_relaxed);
	int all = 0;
	for (unsigned i = 0; i < f->ends; i++) {
		int n = end_step(&f->end[i], !is_stopping);
		if (n < 0) {
			leave(f, FLOW_FAILED);
			return 0;
		}
		all += n;
	}
	if (is_stopping)
		look_for_end(f, all);
	return all;
}

/* ---- shown ---- */

static uint64_t tally(const struct end *e, enum tally t)
{
	return atomic_load_explicit(&e->tally[t], memory_order_relaxed);
}

static double seconds_of(const struct flow *f)
{
	bool is_over = atomic_load_explicit(&f->state, memory_order_acquire) != FLOW_RUNNING;
	return (double)((is_over ? f->ended_ns : end_now()) - f->started_ns) * 1e-9;
}

static void print_rtt(const struct end *e)
{
	uint64_t n = tally(e, TALLY_MESSAGES);
	if (n && tally(e, TALLY_RTT_NS))
		printf("  round trip: least %.2f us, mean %.2f us, most %.2f us\n", (double)tally(e, TALLY_RTT_MIN_NS) / 1000, (double)tally(e, TALLY_RTT_NS) / (double)n / 1000, (double)tally(e, TALLY_RTT_MAX_NS) / 1000);
}

/* What each QP has done: how an engine shares out. */
static void print_shares(const struct end *e)
{
	uint64_t least = UINT64_MAX, most = 0, all = 0;
	for (uint32_t i = 0; i < e->config.qps; i++) {
		uint64_t n = e->lane[i].done;
		all += n;
		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	if (e->config.qps > 1 && all && !e->mode->is_multicast)
		printf("  by QP: least %.1f %%, most %.1f %% of %" PRIu64 " messages\n", 100.0 * (double)least / (double)all, 100.0 * (double)most / (double)all, all);
}

static const char *const state_names[] = { [FLOW_NEW] = "new", [FLOW_RUNNING] = "running", [FLOW_DONE] = "stopped", [FLOW_FAILED] = "failed" };

void flow_print(const struct flow *f)
{
	const struct flow_config *c = &f->end[0].config;
	double seconds = seconds_of(f);
	enum flow_state state = atomic_load_explicit(&f->state, memory_order_acquire);
	printf("mode %s, %s, %.2f s: messages of %" PRIu64 " bytes, QPs %u, depth %u, verify %s\n", c->mode->name, state_names[state], seconds, c->size, c->qps, c->depth, c->is_verified ? "on" : "off");
	printf("  %-8s %12s %14s %12s %10s %10s %12s %9s\n", "end", "messages", "bytes", "verified", "lost", "late", "messages/s", "Gbit/s");
	for (unsigned i = 0; i < f->ends; i++) {
		const struct end *e = &f->end[i];
		printf("  %-8s %12" PRIu64 " %14" PRIu64 " %12" PRIu64 " %10" PRIu64 " %10" PRIu64 " %12.0f %9.3f\n", f->who[i], tally(e, TALLY_MESSAGES), tally(e, TALLY_BYTES), tally(e, TALLY_VERIFIED), tally(e, TALLY_LOST),
			tally(e, TALLY_LATE), (double)tally(e, TALLY_MESSAGES) / seconds, (double)tally(e, TALLY_BYTES) * 8e-9 / seconds);
	}
	print_rtt(&f->end[0]);
	print_shares(&f->end[0]);
	if (state == FLOW_FAILED)
		printf("  failed: %s\n", flow_error(f));
}

void flow_print_pace(struct flow *f)
{
	const struct end *e = &f->end[0];
	uint64_t now_ns = end_now(), messages = tally(e, TALLY_MESSAGES), bytes = tally(e, TALLY_BYTES);
	double seconds = (double)(now_ns - (f->shown_ns ? f->shown_ns : f->started_ns)) * 1e-9;
	printf("%s %s: %" PRIu64 " messages, %.0f/s, %.3f Gbit/s, verified %" PRIu64 "\n", e->mode->name, f->who[0], messages, (double)(messages - f->shown_messages) / seconds,
		(double)(bytes - f->shown_bytes) * 8e-9 / seconds, tally(e, TALLY_VERIFIED));
	f->shown_ns = now_ns;
	f->shown_messages = messages;
	f->shown_bytes = bytes;
}

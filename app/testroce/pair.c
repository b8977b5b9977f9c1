/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the conversation:
 *
 *     client   {"testroce": 1, "mode": ..., "size": ...}    server   {"card": its QPs} or {"error": why not}
 *              {"card": its QPs}                                     {"ready": true}
 *              {"stop": true}                                        {"done": true, "messages": ..., "verified": ..., "lost": ..., "error": ""}
 *
 * and, from the server at any time in between, {"error": what went wrong}. */
#include "pair.h"

#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "interrupt.h"
#include "lab.h"
#include "values.h"

static json_t *pack_config(const struct flow_config *c)
{
	return json_pack("{s:i, s:s, s:I, s:i, s:i, s:i, s:b, s:I}", "testroce", 1, "mode", c->mode->name, "size", (json_int_t)c->size, "depth", (int)c->depth, "qps", (int)c->qps, "mtu", (int)c->mtu,
		"verify", c->is_verified, "seed", (json_int_t)c->seed);
}

static bool unpack_config(json_t *m, struct flow_config *c)
{
	const char *mode;
	json_int_t size, seed;
	int version, depth, qps, mtu, verify;
	if (json_unpack(m, "{s:i, s:s, s:I, s:i, s:i, s:i, s:b, s:I}", "testroce", &version, "mode", &mode, "size", &size, "depth", &depth, "qps", &qps, "mtu", &mtu, "verify", &verify, "seed", &seed))
		return false;
	*c = (struct flow_config){ .mode = mode_find(mode), .size = (uint64_t)size, .depth = (uint32_t)depth, .qps = (uint32_t)qps, .mtu = (uint32_t)mtu, .is_verified = verify, .seed = (uint64_t)seed };
	/* within what a command could have set */
	return version == 1 && c->mode && c->size <= VALUE_BYTES_MAX && depth >= 1 && depth <= (int)VALUE_COUNT_MAX && qps >= 1 && qps <= (int)VALUE_COUNT_MAX;
}

/* After a message that did not come: what is half said cannot be gone on with. */
static void lose_peer(struct lab *lab)
{
	lab_interject(lab);
	lab_fail(lab->peer.is_closed ? "the peer is gone" : interrupt_is_there() ? "interrupted: the peer was not waited for" : "the peer did not answer, or not in a way that makes sense");
	exchange_close(&lab->peer);
}

static const char *error_of(json_t *m)
{
	return json_string_value(json_object_get(m, "error"));
}

/* ---- client ---- */

/* What went wrong at the peer's is said, and counts. */
static void report_error(struct lab *lab, const char *error)
{
	if (!error || !error[0])
		return;
	lab_interject(lab);
	lab_fail("at the peer: %s", error);
	lab->failures++;
}

/* The next message, which must have this key; NULL after a line on standard error. */
static json_t *hear(struct lab *lab, const char *key)
{
	json_t *m = exchange_read(&lab->peer);
	if (!m) {
		lose_peer(lab);
		return NULL;
	}
	if (json_object_get(m, key))
		return m;
	lab_fail("at the peer: %s", error_of(m) ? error_of(m) : "it answers what makes no sense");
	json_decref(m);
	return NULL;
}

/* What the peer says to a stop, NULL after a line on standard error. It may have said before that its end has failed. */
static json_t *hear_end(struct lab *lab)
{
	json_t *m = exchange_send(&lab->peer, json_pack("{s:b}", "stop", 1)) ? NULL : exchange_read(&lab->peer);
	while (m && !json_object_get(m, "done")) {
		report_error(lab, error_of(m));
		json_decref(m);
		m = interrupt_is_there() ? NULL : exchange_read(&lab->peer);
	}
	if (!m)
		lose_peer(lab);
	return m;
}

/* Says how the peer's end was. false: it does not know, or not in a way that makes sense. */
static bool report_end(struct lab *lab, json_t *m)
{
	json_int_t messages, verified, lost;
	const char *error;
	if (json_unpack(m, "{s:I, s:I, s:I, s:s}", "messages", &messages, "verified", &verified, "lost", &lost, "error", &error)) {
		lab_fail("at the peer: it does not say how the traffic was");
		return false;
	}
	printf("  %-8s %12" JSON_INTEGER_FORMAT " messages, %" JSON_INTEGER_FORMAT " verified, %" JSON_INTEGER_FORMAT " lost\n", "peer", messages, verified, lost);
	report_error(lab, error);
	return true;
}

static int join(struct lab *lab, struct flow *f)
{
	json_t *m = exchange_send(&lab->peer, pack_config(&lab->config)) ? NULL : hear(lab, "card");
	int err = m ? flow_join(f, json_object_get(m, "card")) : -1;
	json_decref(m);
	if (m && err)
		fprintf(stderr, "cannot start: %s\n", flow_error(f));
	if (err)
		return err;
	m = exchange_send(&lab->peer, json_pack("{s:o}", "card", end_pack(&f->end[0]))) ? NULL : hear(lab, "ready");
	json_decref(m);
	return m ? 0 : -1;
}

int pair_start(struct lab *lab)
{
	if (lab->is_server)
		return lab_fail("the other side begins: expected start there");
	struct flow *f = flow_new_half(&lab->station[0], &lab->config, true);
	if (!f)
		return -1;
	if (join(lab, f)) {
		flow_free(f);
		return -1;
	}
	lab->flow = f;
	driver_give(&lab->driver, f);
	return 0;
}

void pair_stop(struct lab *lab)
{
	if (lab->peer.fd < 0 || lab->is_server)
		return;
	json_t *m = hear_end(lab);
	lab->failures += !m || !report_end(lab, m); /* half of what was to be looked at is not known */
	json_decref(m);
}

/* ---- server ---- */

static void answer_error(struct lab *lab, const char *why)
{
	lab_interject(lab);
	lab_fail("cannot serve: %s", why);
	exchange_send(&lab->peer, json_pack("{s:s}", "error", why));
}

static void serve(struct lab *lab, json_t *m)
{
	struct flow_config config;
	if (!unpack_config(m, &config)) {
		answer_error(lab, "the peer wants what this version does not have");
		return;
	}
	if (lab->flow) /* a client whose own end failed does not say stop */
		driver_take_back(&lab->driver, lab->flow);
	flow_free(lab->flow);
	lab->flow = flow_new_half(&lab->station[0], &config, false);
	if (!lab->flow) {
		answer_error(lab, "the server cannot make what is needed");
		return;
	}
	exchange_send(&lab->peer, json_pack("{s:o}", "card", end_pack(&lab->flow->end[0])));
	json_t *card = exchange_read(&lab->peer);
	if (!card || flow_join(lab->flow, json_object_get(card, "card"))) {
		answer_error(lab, card ? flow_error(lab->flow) : "the peer is gone");
	} else {
		driver_give(&lab->driver, lab->flow);
		exchange_send(&lab->peer, json_pack("{s:b}", "ready", 1));
		lab_interject(lab);
		printf("serving mode %s\n", config.mode->name);
	}
	json_decref(card);
}

static void end_service(struct lab *lab)
{
	struct flow *f = lab->flow;
	if (!f) {
		answer_error(lab, "nothing runs");
		return;
	}
	driver_take_back(&lab->driver, f);
	const struct end *e = &f->end[0];
	exchange_send(&lab->peer, json_pack("{s:b, s:I, s:I, s:I, s:s}", "done", 1, "messages", (json_int_t)e->tally[TALLY_MESSAGES], "verified", (json_int_t)e->tally[TALLY_VERIFIED], "lost",
		(json_int_t)e->tally[TALLY_LOST], "error", flow_error(f)));
	lab_interject(lab);
	flow_print(f);
	lab->failures += f->state == FLOW_FAILED;
}

void pair_tell_failure(struct lab *lab)
{
	if (lab->peer.fd >= 0 && lab->is_server)
		exchange_send(&lab->peer, json_pack("{s:s}", "error", flow_error(lab->flow)));
}

/* Traffic whose peer is gone is over, and counts as failed: nobody says how it was at the other end. */
static void end_alone(struct lab *lab)
{
	if (!traffic_is_running(lab))
		return;
	driver_take_back(&lab->driver, lab->flow);
	lab->flow->is_said = true;
	lab->failures++;
}

bool pair_look(struct lab *lab)
{
	if (lab->peer.fd < 0 || !exchange_is_ready(&lab->peer))
		return false;
	json_t *m = exchange_read(&lab->peer);
	if (!m) {
		lose_peer(lab);
		end_alone(lab);
		lab->is_quitting = lab->is_quitting || (lab->is_server && !lab->is_interactive); /* nobody else comes */
	} else if (lab->is_server && json_object_get(m, "testroce")) {
		serve(lab, m);
	} else if (lab->is_server && json_object_get(m, "stop")) {
		end_service(lab);
	} else if (!lab->is_server && error_of(m) && error_of(m)[0]) {
		report_error(lab, error_of(m));
		if (lab->flow)
			atomic_store_explicit(&lab->flow->is_stopping, true, memory_order_relaxed);
	}
	json_decref(m);
	return true;
}

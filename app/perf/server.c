/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: one trial after the other, as the client announces them. Owns its end. Invariant: every trial that was announced is answered by "done" after the client said "end", with the first error if there was one. */
#include <stdio.h>
#include <string.h>

#include "machine.h"
#include "measure.h"
#include "meet.h"
#include "role.h"

#define SECONDS_MAX 86400u
#define VERSION 2 /* of what the ends say to each other */

const struct test_row tests[TESTS] = {
	[TEST_STREAM] = { "stream", stream_run, stream_serve },
	[TEST_LATENCY] = { "latency", latency_run, latency_serve },
	[TEST_VERIFY] = { "verify", verify_run, verify_serve },
};

int end_ready(struct end *e)
{
	return exchange_send(e->exchange, json_pack("{s:b}", "ready", 1)) ? end_fail(e, "the peer is gone") : 0;
}

int role_open(struct role *role, struct end *end)
{
	const struct options *o = role->options;
	end->exchange = &role->exchange;
	if (role->device && end_open(end, role->device, o->gid_index))
		return -1;
	if (role->exchange.fd < 0 && meet_peer(&role->exchange, o->listen, o->connect, o->is_pingpong ? PINGPONG_PORT : EXCHANGE_PORT))
		return -1;
	role->exchange.pump = role->device ? end_pump : NULL;
	role->exchange.arg = end;
	return 0;
}

json_t *role_meet(struct role *role, struct end *end)
{
	bool is_tcp = !role->device;
	int version = 0, peer_is_tcp = 0, spinning = 0;
	const char *machine;
	char here[64], gone[96];
	machine_read(here);
	json_t *ours = json_pack("{s:i, s:b, s:s, s:i, s:s, s:i}", "uroce_perf", VERSION, "tcp", is_tcp, "cores", role->cores, "spinning", (int)role->spinning, "machine", here,
		"mtu", (int)end->device.active_mtu);
	json_t *peer = exchange_send(&role->exchange, ours) ? NULL : exchange_read(&role->exchange);
	const char *wrong = peer ? NULL : gone;
	if (!peer)
		snprintf(gone, sizeof(gone), "the peer %s", role->exchange.why);
	else if (json_unpack(peer, "{s:i, s:b, s:i, s:s}", "uroce_perf", &version, "tcp", &peer_is_tcp, "spinning", &spinning, "machine", &machine) || version != VERSION)
		wrong = "the peer is another version, or something else";
	else if (peer_is_tcp != is_tcp)
		wrong = is_tcp ? "the peer was started without --tcp: expected both with or both without" : "the peer was started with --tcp: expected both with or both without";
	if (!wrong) {
		end->is_crowded = role->spinning + (strcmp(machine, here) ? 0u : (unsigned)spinning) > role->cpus;
		return peer;
	}
	fprintf(stderr, "uroce-perf: %s\n", wrong);
	json_decref(peer);
	return NULL;
}

/* Connects, and answers until the client ends it. */
static int serve_trial(struct end *e)
{
	int err = end_prepare(e);
	if (err)
		return err;
	if (exchange_send(e->exchange, end_pack(e)))
		return end_fail(e, "the peer is gone");
	json_t *peer = exchange_read(e->exchange);
	if (json_object_get(peer, "end") || !peer) {
		exchange_unread(e->exchange, peer);
		return 0;
	}
	err = end_connect(e, peer);
	json_decref(peer);
	return err ? err : tests[e->trial.test].serve(e);
}

static int finish_trial(struct end *e, int err)
{
	json_t *message;
	bool is_end = false;
	if (err) /* now, since the client may be waiting for what will not come */
		exchange_send(e->exchange, json_pack("{s:s}", "error", e->error));
	while (!is_end && (message = exchange_read(e->exchange))) {
		is_end = json_object_get(message, "end") != NULL;
		json_decref(message);
	}
	return is_end ? exchange_send(e->exchange, json_pack("{s:b, s:I, s:s}", "done", 1, "received", (json_int_t)e->received, "error", err ? e->error : "")) : -1;
}

/* A client that measures says nothing meanwhile: for its time, or for as long as a number of messages takes. */
static unsigned patience_of(const struct trial *t)
{
	return t->iters ? 0 : MEET_PATIENCE_S + (t->seconds >= 0 && t->seconds <= SECONDS_MAX ? (unsigned)t->seconds : SECONDS_MAX);
}

static int answer(struct role *role, struct end *e, json_t *message)
{
	if (!trial_unpack(message, &e->trial) || (!e->trial.op) != (!role->device)) {
		snprintf(e->error, sizeof(e->error), "the server cannot do such a trial");
		return finish_trial(e, -1);
	}
	if (role->exchange.patience_s)
		role->exchange.patience_s = patience_of(&e->trial);
	if (!role->device)
		return tcp_serve(&role->exchange, &e->trial);
	int err = serve_trial(e), failed = finish_trial(e, err);
	if (err)
		fprintf(stderr, "uroce-perf: server: %s\n", e->error);
	end_release(e);
	return failed ? failed : err;
}

int server_run(struct role *role)
{
	static _Thread_local struct end e;
	json_t *message, *peer = NULL;
	bool is_bye = false;
	int failed = 0;
	e = (struct end){ .is_client = false };
	if (!role_open(role, &e))
		peer = role_meet(role, &e);
	unsigned patience_s = role->exchange.patience_s;
	while (peer && !is_bye && (message = exchange_read(&role->exchange))) {
		is_bye = json_object_get(message, "bye") != NULL;
		if (!is_bye && answer(role, &e, message))
			failed = 1;
		role->exchange.patience_s = patience_s;
		json_decref(message);
	}
	if (peer && !is_bye)
		fprintf(stderr, "uroce-perf: the client %s\n", role->exchange.why);
	end_close(&e);
	exchange_close(&role->exchange);
	json_decref(peer);
	return failed || !is_bye;
}

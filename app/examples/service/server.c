/* SPDX-License-Identifier: BSD-3-Clause */
/* kv-server: a small service complete with all that a service needs: a store of values by key, for up to 64 connections over RC, with one SRQ for all of them; polling while there is work, asleep when there is none; statistics; an orderly end. UROCE_DEVICE
 * says where its engine is, in this process or in uroced. When a daemon goes away the service stays, with what it stores, and serves again when the daemon is back.
 *
 *     kv-server [[HOST:]PORT]      SIGUSR1 prints statistics; SIGTERM and SIGINT end it
 *
 * This file owns engine, signals and loop. doc/guide/embedding.md walks through it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "server.h"

#define LOOK_EVERY 256u        /* rounds between two looks at sockets and events while there is work */
#define SPIN_NS UINT64_C(50000) /* how long nothing may come before it sleeps */
#define FINISH_NS UINT64_C(500000000) /* at the end: for answers to arrive */
#define RETRY_MS 200           /* between two tries to open the device, when it was lost */

enum ending { STOPPED, ENGINE_GONE, BROKEN };

uint64_t server_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void print_statistics(const struct server *s)
{
	const struct statistics *n = &s->stats;
	printf("kv-server: put %llu, get %llu, delete %llu; ok %llu, not found %llu, bad %llu, no memory %llu; items %zu; connections %llu, refused %llu, failed %llu; packets sent again %llu; sleeps %llu\n",
		(unsigned long long)n->requests[KV_PUT], (unsigned long long)n->requests[KV_GET], (unsigned long long)n->requests[KV_DELETE], (unsigned long long)n->answers[KV_OK],
		(unsigned long long)n->answers[KV_NOT_FOUND], (unsigned long long)n->answers[KV_BAD_REQUEST], (unsigned long long)n->answers[KV_NO_MEMORY], s->store.items,
		(unsigned long long)n->connections, (unsigned long long)n->refused, (unsigned long long)n->failed, (unsigned long long)n->retransmitted, (unsigned long long)n->sleeps);
	fflush(stdout);
}

/* ---- the engine ---- */

static int set_nonblocking(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* One piece of the engine's memory, registered once, for everything: a daemon can reach no other, and registering is no call for the data path. */
static int make_memory(struct server *s)
{
	size_t bytes = sizeof(struct kv_message) * COMPLETIONS;
	void *memory;
	int err = uroce_alloc(s->ctx, bytes, &memory);
	if (err)
		return err;
	s->receives = memory;
	s->replies = s->receives + RECEIVES;
	return uroce_mr_register(s->pd, memory, bytes, UROCE_ACCESS_LOCAL_WRITE, &s->mr);
}

/* Everything but the connections. On failure what there is goes with the context. */
static int make_objects(struct server *s)
{
	struct uroce_srq_init srq = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };
	struct uroce_device_attr device;
	int err = uroce_query_device(s->ctx, &device);
	if (!err)
		err = uroce_pd_create(s->ctx, &s->pd);
	if (!err)
		err = make_memory(s);
	if (!err)
		err = uroce_channel_create(s->ctx, &s->channel);
	if (!err)
		err = uroce_cq_create(s->ctx, COMPLETIONS, s->channel, NULL, &s->cq);
	if (!err)
		err = uroce_srq_create(s->pd, &srq, &s->srq);
	if (!err)
		err = set_nonblocking(uroce_channel_fd(s->channel)) | set_nonblocking(uroce_async_fd(s->ctx)) ? -errno : 0;
	s->is_inline = !err && device.mode == 1;
	return err;
}

static int open_engine(struct server *s)
{
	int err = uroce_open(NULL, NULL, &s->ctx);
	if (err)
		return err;
	err = make_objects(s);
	if (err) {
		uroce_close(s->ctx);
		return err;
	}
	s->is_engine_gone = s->is_broken = false;
	s->gives_back = 0;
	connections_init(s);
	for (uint32_t i = 0; i < RECEIVES; i++)
		receive_give_back(s, i);
	request_repost(s);
	return 0;
}

/* With the context everything in it goes; the clients' sockets are ours. */
static void close_engine(struct server *s)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (s->connections[i].fd >= 0)
			close(s->connections[i].fd);
	uroce_close(s->ctx);
	connections_init(s);
}

/* ---- the slow side: signals, sockets, events ---- */

static void take_event(struct server *s, const struct uroce_async_event *e)
{
	struct connection *c = e->qp ? connection_find(s, uroce_qp_num(e->qp)) : NULL;
	char why[256];
	switch (e->type) {
	case UROCE_EVENT_QP_LAST_WQE_REACHED:
		if (c) {
			connection_end(s, c, NULL);
			connection_drained(s, c);
		}
		break;
	case UROCE_EVENT_QP_FATAL:
	case UROCE_EVENT_QP_REQ_ERR:
	case UROCE_EVENT_QP_ACCESS_ERR:
		if (c && uroce_qp_error_text(c->qp, why, sizeof(why)) > 0)
			connection_end(s, c, why);
		break;
	case UROCE_EVENT_CQ_ERR:
	case UROCE_EVENT_SRQ_ERR:
		s->is_broken = true; /* the sizes above do not let it happen */
		break;
	case UROCE_EVENT_DEVICE_FATAL:
		s->is_engine_gone = true;
		break;
	case UROCE_EVENT_PORT_ERR:
	case UROCE_EVENT_PORT_ACTIVE: /* QPs retry by themselves */
		fprintf(stderr, "kv-server: the port has %s link\n", e->type == UROCE_EVENT_PORT_ERR ? "no" : "a");
		break;
	default:
		break;
	}
}

static void take_events(struct server *s)
{
	struct uroce_async_event e;
	struct uroce_cq *cq;
	while (!uroce_channel_get_event(s->channel, &cq))
		uroce_cq_ack_events(cq, 1);
	while (!uroce_async_get_event(s->ctx, &e)) {
		take_event(s, &e);
		uroce_async_ack_event(&e);
	}
}

/* false: it is to end. */
static bool take_signals(struct server *s, int signals)
{
	struct signalfd_siginfo info;
	while (read(signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGUSR1)
			return false;
		print_statistics(s);
	}
	return true;
}

/* Looks at all descriptors, waiting if timeout_ms says so. false: it is to end. */
static bool look(struct server *s, int signals, int listener, int timeout_ms)
{
	struct pollfd p[4 + CONNECTIONS] = { { signals, POLLIN, 0 }, { listener, POLLIN, 0 }, { uroce_channel_fd(s->channel), POLLIN, 0 }, { uroce_async_fd(s->ctx), POLLIN, 0 } };
	for (unsigned i = 0; i < CONNECTIONS; i++)
		p[4 + i] = (struct pollfd){ s->connections[i].fd, POLLIN, 0 };
	if (poll(p, 4 + CONNECTIONS, timeout_ms) <= 0)
		return true;
	if (p[2].revents || p[3].revents)
		take_events(s);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (p[4 + i].revents && s->connections[i].fd >= 0)
			connection_read(s, &s->connections[i]);
	if (p[1].revents)
		connection_accept(s, listener);
	return !p[0].revents || take_signals(s, signals);
}

/* ---- the loop ---- */

/* Carries out what has come. How much that was. */
static int work(struct server *s)
{
	struct uroce_wc wc[BATCH];
	int n;
	if (s->is_inline)
		uroce_engine_poll(s->ctx);
	n = uroce_cq_poll(s->cq, wc, BATCH);
	s->is_engine_gone = s->is_engine_gone || n < 0;
	for (int i = 0; i < n; i++)
		request_take(s, &wc[i]);
	request_repost(s);
	if (n == 0)
		connection_sweep(s);
	return n;
}

/* Nothing has come for a while: sleeps until something does. Armed first and polled once more, or what came in between would wake nobody. */
static bool wait_for_work(struct server *s, int signals, int listener)
{
	if (uroce_cq_arm(s->cq, false) || work(s) != 0)
		return true;
	s->stats.sleeps++;
	return look(s, signals, listener, -1);
}

static enum ending serve(struct server *s, int signals, int listener)
{
	uint64_t last_work_ns = server_now();
	unsigned round = 0;
	bool goes_on = true;
	while (goes_on && !s->is_engine_gone && !s->is_broken) {
		bool is_time_to_look = ++round % LOOK_EVERY == 0;
		if (work(s) > 0)
			last_work_ns = 0;
		else if (!last_work_ns)
			last_work_ns = server_now();
		else if (!s->is_inline && is_time_to_look && server_now() - last_work_ns > SPIN_NS)
			goes_on = wait_for_work(s, signals, listener);
		else if (is_time_to_look)
			sched_yield(); /* the engine may be waiting for this CPU */
		if (goes_on && is_time_to_look)
			goes_on = look(s, signals, listener, 0);
	}
	return s->is_broken ? BROKEN : s->is_engine_gone ? ENGINE_GONE : STOPPED;
}

/* Answers that are under way arrive, or some time has passed. */
static void finish(struct server *s)
{
	uint64_t end_ns = server_now() + FINISH_NS;
	for (unsigned i = 0; i < CONNECTIONS; i++)
		while (s->connections[i].qp && s->connections[i].free_replies != ALL_REPLIES && !s->connections[i].is_ending && !s->is_engine_gone && server_now() < end_ns)
			work(s);
}

/* The device was lost: tries to have it again until it is there, or a signal says to end. */
static bool reopen_engine(struct server *s, int signals)
{
	struct pollfd p = { signals, POLLIN, 0 };
	fprintf(stderr, "kv-server: the engine is gone; waiting for it to come back\n");
	do {
		if (poll(&p, 1, RETRY_MS) > 0 && !take_signals(s, signals))
			return false;
	} while (open_engine(s));
	fprintf(stderr, "kv-server: serving again\n");
	return true;
}

/* Threads that the engine starts inherit the mask, so the signals come here and nowhere else. */
static int catch_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
	static struct server s;
	if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
		fprintf(stderr, "usage: kv-server [[HOST:]PORT], with UROCE_DEVICE in the environment\n");
		return 2;
	}
	int signals = catch_signals(), listener = greeting_listen(argc == 2 ? argv[1] : KV_PORT), err;
	if (signals < 0 || listener < 0)
		return 1;
	err = open_engine(&s);
	if (err) { /* the log has said more */
		fprintf(stderr, "kv-server: cannot have the device: %s\n", strerror(-err));
		return 1;
	}
	printf("kv-server: ready at %s\n", argc == 2 ? argv[1] : KV_PORT);
	fflush(stdout);
	enum ending ending = STOPPED;
	bool is_open = true;
	while (is_open && (ending = serve(&s, signals, listener)) == ENGINE_GONE) {
		close_engine(&s);
		is_open = reopen_engine(&s, signals);
	}
	if (is_open) {
		finish(&s);
		close_engine(&s);
	}
	print_statistics(&s);
	store_clear(&s.store);
	close(listener);
	close(signals);
	return is_open && ending == BROKEN;
}

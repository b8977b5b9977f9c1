/* SPDX-License-Identifier: BSD-3-Clause */
/* Every asynchronous event of a QP, CQ or SRQ, raised by what programs do and read by the client API, of an engine in this process and of a daemon: once each, counted, acknowledged. Then a program that never reads
 * its events, and the end of a daemon. The port's are in test_port_events.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "events.h"
#include "server_fixture.h"

#define DEPTH 16u
#define BYTES 65536u

/* Two programs: on both ends of a link of this process, or both clients of one daemon. */
struct end {
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_mr *mr;
	struct uroce_cq *cq;
	struct uroce_srq *srq;
	struct uroce_qp *qp;
	struct uroce_endpoint endpoint;
	uint8_t *memory;
};

struct world {
	struct daemon d;
	struct engine *engine; /* whose second end raises the events */
	struct end a, b;       /* a sends, b receives */
	bool is_served;
};

/* What a scenario wants to be otherwise. */
struct wish {
	uint32_t entries;  /* of a's CQ, 0: enough */
	uint32_t access;   /* of b's QP */
	bool has_srq;      /* b's */
	bool is_rtr;       /* b stays there */
};

static void open_end(struct end *e, uint32_t entries, bool has_srq)
{
	struct uroce_srq_init srq = { .attr = { .max_wr = DEPTH, .limit = has_srq ? 2 : 0 } };
	void *memory;
	CHECK(!uroce_pd_create(e->ctx, &e->pd));
	CHECK(!uroce_alloc(e->ctx, BYTES, &memory));
	e->memory = memory;
	CHECK(!uroce_mr_register(e->pd, e->memory, BYTES, UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ, &e->mr));
	CHECK(!uroce_cq_create(e->ctx, entries, NULL, NULL, &e->cq));
	if (has_srq)
		CHECK(!uroce_srq_create(e->pd, &srq, &e->srq));
	struct uroce_qp_init init = { .send_cq = e->cq, .recv_cq = e->cq, .cap = { DEPTH, DEPTH, 1, 1, 0 }, .srq = e->srq };
	CHECK(!uroce_qp_create(e->pd, &init, &e->qp));
	CHECK(!uroce_qp_endpoint(e->qp, 0, &e->endpoint));
}

static void close_end(struct end *e)
{
	CHECK(!uroce_qp_destroy(e->qp)); /* waits for events that were not acknowledged */
	CHECK(!uroce_srq_destroy(e->srq));
	CHECK(!uroce_cq_destroy(e->cq));
	CHECK(!uroce_mr_deregister(e->mr));
	uroce_close(e->ctx);
}

static void enter(struct end *e, enum uroce_qp_state state, const struct end *peer, uint32_t access)
{
	static const uint32_t masks[] = {
		[UROCE_QP_INIT] = UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_ACCESS_FLAGS,
		[UROCE_QP_RTR] = UROCE_QP_AV | UROCE_QP_PATH_MTU | UROCE_QP_DEST_QPN | UROCE_QP_RQ_PSN | UROCE_QP_MAX_DEST_RD_ATOMIC | UROCE_QP_MIN_RNR_TIMER,
		[UROCE_QP_RTS] = UROCE_QP_TIMEOUT | UROCE_QP_RETRY_CNT | UROCE_QP_RNR_RETRY | UROCE_QP_SQ_PSN | UROCE_QP_MAX_RD_ATOMIC,
	};
	struct uroce_qp_attr attr = { .state = state, .port_num = 1, .access = access, .av = { .dgid = peer->endpoint.gid }, .path_mtu = 1024, .dest_qpn = peer->endpoint.qpn, .rq_psn = peer->endpoint.psn,
		.max_dest_rd_atomic = 4, .min_rnr_timer = 1, .timeout = 15, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = e->endpoint.psn, .max_rd_atomic = 4 };
	CHECK(!uroce_qp_modify(e->qp, &attr, UROCE_QP_STATE | masks[state]));
}

static void open_contexts(struct world *w)
{
	struct engine *other;
	if (!w->is_served) {
		CHECK(!side_open_context("embedded:net_ring,link=async,side=0,ip=10.0.0.1/24", &w->a.ctx, &other));
		CHECK(!side_open_context("embedded:net_ring,link=async,side=1,ip=10.0.0.2/24", &w->b.ctx, &w->engine));
		return;
	}
	char device[128];
	daemon_prepare(&w->d);
	daemon_run(&w->d);
	w->engine = w->d.engine;
	snprintf(device, sizeof(device), "unix:%s", w->d.path);
	CHECK(!uroce_open(device, NULL, &w->a.ctx));
	CHECK(!uroce_open(device, NULL, &w->b.ctx));
}

static void open_world(struct world *w, bool is_served, const struct wish *wish)
{
	memset(w, 0, sizeof(*w));
	w->is_served = is_served;
	open_contexts(w);
	if (!is_served) /* the link has come up when its other end was made */
		events_expect(w->a.ctx, UROCE_EVENT_PORT_ACTIVE, NULL);
	open_end(&w->a, wish->entries ? wish->entries : 4 * DEPTH, false);
	open_end(&w->b, 4 * DEPTH, wish->has_srq);
	for (enum uroce_qp_state s = UROCE_QP_INIT; s <= UROCE_QP_RTS; s++) {
		enter(&w->a, s, &w->b, UROCE_ACCESS_REMOTE_WRITE);
		if (s < UROCE_QP_RTS || !wish->is_rtr)
			enter(&w->b, s, &w->a, wish->access);
	}
}

static uint64_t count_raised(struct world *w, enum abi_event type)
{
	struct core_stats stats;
	core_stats(engine_core_stack(engine_core_at(w->engine, 0)), &stats);
	return stats.raised[type];
}

static void close_world(struct world *w)
{
	events_expect_none(w->a.ctx);
	events_expect_none(w->b.ctx);
	close_end(&w->a);
	close_end(&w->b);
	if (w->is_served)
		daemon_close(&w->d);
}

static void post_send(struct end *e, uint64_t wr_id, enum uroce_opcode opcode, const struct end *to, uint32_t rkey)
{
	struct uroce_sge sge = { (uintptr_t)e->memory, 8, uroce_mr_lkey(e->mr) };
	struct uroce_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .flags = UROCE_SEND_SIGNALED, .remote_addr = (uintptr_t)to->memory, .rkey = rkey };
	CHECK(uroce_post_send(e->qp, &wr, 1) == 1);
}

static void post_recv(struct end *e, uint32_t lkey)
{
	struct uroce_sge sge = { (uintptr_t)e->memory, 64, lkey };
	struct uroce_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	CHECK((e->srq ? uroce_post_srq_recv(e->srq, &wr, 1) : uroce_post_recv(e->qp, &wr, 1)) == 1);
}

static enum uroce_wc_status await_status(struct end *e)
{
	struct uroce_wc wc;
	double end = now_ms() + 20000;
	int n;
	while (!(n = uroce_cq_poll(e->cq, &wc, 1)))
		CHECK(now_ms() < end);
	CHECK(n == 1);
	return wc.status;
}

static void modify(struct end *e, enum uroce_qp_state state, bool notify)
{
	struct uroce_qp_attr attr = { .state = state, .sqd_async_notify = notify };
	CHECK(!uroce_qp_modify(e->qp, &attr, UROCE_QP_STATE | (notify ? UROCE_QP_EN_SQD_ASYNC_NOTIFY : 0)));
}

/* ---- one scenario an event ---- */

static void establish(struct world *w)
{
	post_recv(&w->b, uroce_mr_lkey(w->b.mr));
	post_recv(&w->b, uroce_mr_lkey(w->b.mr));
	post_send(&w->a, 1, UROCE_OP_SEND, &w->b, 0);
	events_expect(w->b.ctx, UROCE_EVENT_COMM_EST, w->b.qp);
	CHECK(await_status(&w->a) == UROCE_WC_SUCCESS);
	post_send(&w->a, 2, UROCE_OP_SEND, &w->b, 0); /* not the first one any more */
	CHECK(await_status(&w->a) == UROCE_WC_SUCCESS);
	enter(&w->b, UROCE_QP_RTS, &w->a, 0);
	CHECK(count_raised(w, ABI_EVENT_COMM_EST) == 1);
}

/* The rules of SQD with it: what is posted waits, the table's attributes may be changed, and RTS goes on. */
static void drain(struct world *w)
{
	struct uroce_qp_attr now, more = { .timeout = 16, .retry_cnt = 3, .rnr_retry = 2, .min_rnr_timer = 3, .max_rd_atomic = 2, .max_dest_rd_atomic = 2 };
	struct uroce_wc wc;
	for (unsigned i = 0; i < DEPTH / 2; i++)
		post_send(&w->b, i, UROCE_OP_WRITE, &w->a, uroce_mr_rkey(w->a.mr));
	modify(&w->b, UROCE_QP_SQD, true);
	events_expect(w->b.ctx, UROCE_EVENT_SQ_DRAINED, w->b.qp);
	CHECK(count_raised(w, ABI_EVENT_SQ_DRAINED) == 1);
	for (unsigned i = 0; i < DEPTH / 2; i++)
		post_send(&w->b, DEPTH / 2 + i, UROCE_OP_WRITE, &w->a, uroce_mr_rkey(w->a.mr));
	int done = 0;
	while (uroce_cq_poll(w->b.cq, &wc, 1) == 1) /* they had completed when the event came */
		CHECK(wc.wr_id == (uint64_t)done++ && wc.status == UROCE_WC_SUCCESS);
	usleep(5000);
	CHECK(!uroce_cq_poll(w->b.cq, &wc, 1));
	CHECK(!uroce_qp_modify(w->b.qp, &more, UROCE_QP_TIMEOUT | UROCE_QP_RETRY_CNT | UROCE_QP_RNR_RETRY | UROCE_QP_MIN_RNR_TIMER | UROCE_QP_MAX_RD_ATOMIC | UROCE_QP_MAX_DEST_RD_ATOMIC));
	more.av = (struct uroce_av){ .dgid = w->a.endpoint.gid, .traffic_class = 8 };
	CHECK(!uroce_qp_modify(w->b.qp, &more, UROCE_QP_AV));
	CHECK(uroce_qp_modify(w->b.qp, &more, UROCE_QP_PATH_MTU) == -EINVAL);
	CHECK(!uroce_qp_query(w->b.qp, &now) && now.state == UROCE_QP_SQD && now.timeout == 16 && now.max_rd_atomic == 2 && now.av.traffic_class == 8);
	post_send(&w->a, 100, UROCE_OP_WRITE, &w->b, uroce_mr_rkey(w->b.mr)); /* its receiving side goes on */
	CHECK(await_status(&w->a) == UROCE_WC_SUCCESS);
	modify(&w->b, UROCE_QP_RTS, false);
	for (; done < (int)DEPTH; done++)
		CHECK(await_status(&w->b) == UROCE_WC_SUCCESS);
	modify(&w->b, UROCE_QP_SQD, false); /* not asked for */
}

static void overrun(struct world *w)
{
	for (unsigned i = 0; i < 5; i++)
		post_send(&w->a, i, UROCE_OP_WRITE, &w->b, uroce_mr_rkey(w->b.mr));
	events_expect(w->a.ctx, UROCE_EVENT_CQ_ERR, w->a.cq);
	events_expect(w->a.ctx, UROCE_EVENT_QP_FATAL, w->a.qp);
	for (unsigned i = 0; i < 4; i++)
		CHECK(await_status(&w->a) == UROCE_WC_SUCCESS);
}

static void receive_with_bad_key(struct world *w)
{
	post_recv(&w->b, 0x123456);
	post_send(&w->a, 1, UROCE_OP_SEND, &w->b, 0);
	events_expect(w->b.ctx, UROCE_EVENT_QP_FATAL, w->b.qp);
	CHECK(await_status(&w->b) == UROCE_WC_LOC_PROT_ERR);
	CHECK(await_status(&w->a) == UROCE_WC_REM_OP_ERR);
	CHECK(count_raised(w, ABI_EVENT_QP_FATAL) == 1);
}

static void ask_for_what_is_not_enabled(struct world *w)
{
	post_send(&w->a, 1, UROCE_OP_WRITE, &w->b, uroce_mr_rkey(w->b.mr));
	events_expect(w->b.ctx, UROCE_EVENT_QP_REQ_ERR, w->b.qp);
	CHECK(await_status(&w->a) == UROCE_WC_REM_INV_REQ_ERR);
	CHECK(count_raised(w, ABI_EVENT_QP_REQ_ERR) == 1);
}

static void ask_with_wrong_key(struct world *w)
{
	post_send(&w->a, 1, UROCE_OP_WRITE, &w->b, uroce_mr_rkey(w->b.mr) ^ 1);
	events_expect(w->b.ctx, UROCE_EVENT_QP_ACCESS_ERR, w->b.qp);
	CHECK(await_status(&w->a) == UROCE_WC_REM_ACCESS_ERR);
	CHECK(count_raised(w, ABI_EVENT_QP_ACCESS_ERR) == 1);
}

static void use_up_srq(struct world *w)
{
	struct uroce_srq_attr attr;
	for (unsigned i = 0; i < 4; i++)
		post_recv(&w->b, uroce_mr_lkey(w->b.mr));
	for (unsigned i = 0; i < 4; i++) {
		post_send(&w->a, i, UROCE_OP_SEND, &w->b, 0);
		CHECK(await_status(&w->a) == UROCE_WC_SUCCESS);
		CHECK(count_raised(w, ABI_EVENT_SRQ_LIMIT_REACHED) == (i >= 2)); /* when one is left, and once */
		if (i == 2)
			events_expect(w->b.ctx, UROCE_EVENT_SRQ_LIMIT_REACHED, w->b.srq);
	}
	CHECK(!uroce_srq_query(w->b.srq, &attr) && !attr.limit);
	modify(&w->b, UROCE_QP_ERR, false);
	events_expect(w->b.ctx, UROCE_EVENT_QP_LAST_WQE_REACHED, w->b.qp);
	CHECK(count_raised(w, ABI_EVENT_QP_LAST_WQE_REACHED) == 1);
}

static void overwrite_srq(struct world *w)
{
	atomic_store(&w->b.srq->rq.ring->client_index, 0x40000000); /* no call does that: a program's stray pointer */
	post_send(&w->a, 1, UROCE_OP_SEND, &w->b, 0);
	events_expect(w->b.ctx, UROCE_EVENT_SRQ_ERR, w->b.srq);
	events_expect(w->b.ctx, UROCE_EVENT_QP_FATAL, w->b.qp);
	events_expect(w->b.ctx, UROCE_EVENT_QP_LAST_WQE_REACHED, w->b.qp);
	CHECK(await_status(&w->a) == UROCE_WC_REM_OP_ERR);
	CHECK(count_raised(w, ABI_EVENT_SRQ_ERR) == 1);
}

/* More events than there is room for: those are lost, counted, and nobody waits for it; what came first is there, and later ones come again. */
static void never_read(struct world *w)
{
	const unsigned events = 5000;
	struct uroce_async_event e;
	struct core_stats stats;
	unsigned got = 0;
	for (unsigned i = 0; i < events; i++) {
		modify(&w->b, UROCE_QP_SQD, true);
		for (double end = now_ms() + 20000; count_raised(w, ABI_EVENT_SQ_DRAINED) <= i;)
			CHECK(now_ms() < end);
		modify(&w->b, UROCE_QP_RTS, false);
	}
	core_stats(engine_core_stack(engine_core_at(w->engine, 0)), &stats);
	CHECK(stats.lost_events > 0 && stats.raised[ABI_EVENT_SQ_DRAINED] == events);
	post_recv(&w->b, uroce_mr_lkey(w->b.mr));
	post_send(&w->a, 1, UROCE_OP_SEND, &w->b, 0);
	CHECK(await_status(&w->b) == UROCE_WC_SUCCESS && await_status(&w->a) == UROCE_WC_SUCCESS);
	for (; got + stats.lost_events < events; got++) { /* what waits in the core comes as room is made */
		CHECK(!uroce_async_get_event(w->b.ctx, &e));
		CHECK(e.type == UROCE_EVENT_SQ_DRAINED && e.qp == w->b.qp);
		uroce_async_ack_event(&e);
	}
	printf("# %u events, %u read, %llu lost\n", events, got, (unsigned long long)stats.lost_events);
	events_expect_none(w->b.ctx);
	modify(&w->b, UROCE_QP_SQD, true);
	events_expect(w->b.ctx, UROCE_EVENT_SQ_DRAINED, w->b.qp);
}

static const struct scenario {
	void (*play)(struct world *w);
	struct wish wish;
} scenarios[] = {
	{ establish, { .is_rtr = true } },
	{ drain, { .access = UROCE_ACCESS_REMOTE_WRITE } },
	{ overrun, { .entries = 4, .access = UROCE_ACCESS_REMOTE_WRITE } },
	{ receive_with_bad_key, { 0 } },
	{ ask_for_what_is_not_enabled, { 0 } },
	{ ask_with_wrong_key, { .access = UROCE_ACCESS_REMOTE_WRITE } },
	{ use_up_srq, { .has_srq = true } },
	{ overwrite_srq, { .has_srq = true } },
	{ never_read, { 0 } },
};
#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

static void play(const struct scenario *s, bool is_served)
{
	struct world w;
	alarm(200); /* thousands of calls on a busy machine; each wait has its own end */
	open_world(&w, is_served, &s->wish);
	s->play(&w);
	close_world(&w);
}

static void play_embedded(void *arg)
{
	play(arg, false);
}

static void play_served(void *arg)
{
	play(arg, true);
}

static void test_of_an_engine_in_the_process(void **state)
{
	for (unsigned i = 0; i < SCENARIOS; i++)
		assert_int_equal(side_child(play_embedded, (void *)(uintptr_t)&scenarios[i]), 0);
}

static void test_of_a_daemon(void **state)
{
	for (unsigned i = 0; i < SCENARIOS; i++)
		assert_int_equal(side_child(play_served, (void *)(uintptr_t)&scenarios[i]), 0);
}

/* ---- the end of a daemon ---- */

static void expect_death(struct uroce_context *ctx)
{
	struct uroce_async_event e;
	events_expect(ctx, UROCE_EVENT_DEVICE_FATAL, NULL);
	CHECK(uroce_async_get_event(ctx, &e) == -ENODEV);
	uroce_close(ctx);
}

static void stop_in_order(void *arg)
{
	struct daemon d;
	struct uroce_context *ctx;
	char device[128];
	daemon_prepare(&d);
	daemon_run(&d);
	snprintf(device, sizeof(device), "unix:%s", d.path);
	CHECK(!uroce_open(device, NULL, &ctx));
	daemon_close(&d);
	expect_death(ctx);
}

static void serve_until_killed(int fd)
{
	struct daemon d;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	daemon_prepare(&d);
	daemon_run(&d);
	CHECK(write(fd, d.path, sizeof(d.path)) == sizeof(d.path));
	for (;;)
		pause();
}

/* A daemon in a process of its own. */
static pid_t start_daemon(char path[64])
{
	int fd[2];
	CHECK(!pipe(fd));
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		serve_until_killed(fd[1]);
	CHECK(read(fd[0], path, 64) == 64);
	return pid;
}

static void kill_daemon(pid_t pid)
{
	CHECK(!kill(pid, SIGKILL));
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void remove_folder(char path[64])
{
	char command[128];
	*strrchr(path, '/') = 0;
	snprintf(command, sizeof(command), "rm -r %s", path);
	CHECK(!system(command));
}

static void be_killed(void *arg)
{
	char path[64], device[128];
	struct uroce_context *ctx;
	pid_t pid = start_daemon(path);
	snprintf(device, sizeof(device), "unix:%s", path);
	CHECK(!uroce_open(device, NULL, &ctx));
	kill_daemon(pid);
	expect_death(ctx);
	remove_folder(path);
}

static void *wait_for_completion(void *channel)
{
	struct uroce_cq *cq;
	return (void *)(intptr_t)uroce_channel_get_event(channel, &cq);
}

/* A daemon that hangs closes nothing: who waits for an event is woken when a call of another thread finds out. */
static void hang(void *arg)
{
	static const struct served_patience patience = { .step_ms = 20000, .reply_ms = 500 };
	const struct session_ops *ops;
	struct uroce_device_attr attr;
	struct uroce_context *ctx;
	struct uroce_channel *channel;
	struct client_log log;
	pthread_t thread;
	char path[64];
	void *session, *result;
	pid_t pid = start_daemon(path);
	context_log_init(&log, NULL);
	CHECK(!served_open(&log, path, &patience, &ops, &session));
	CHECK(!context_open(ops, session, NULL, &ctx));
	CHECK(!uroce_channel_create(ctx, &channel));
	CHECK(!pthread_create(&thread, NULL, wait_for_completion, channel));
	usleep(20000);
	CHECK(!kill(pid, SIGSTOP));
	CHECK(uroce_query_device(ctx, &attr) == -ENODEV);
	CHECK(!pthread_join(thread, &result) && (intptr_t)result == -ENODEV);
	expect_death(ctx);
	kill_daemon(pid);
	remove_folder(path);
}

static void test_device_fatal(void **state)
{
	assert_int_equal(side_child(stop_in_order, NULL), 0);
	assert_int_equal(side_child(be_killed, NULL), 0);
	assert_int_equal(side_child(hang, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_an_engine_in_the_process),
		cmocka_unit_test(test_of_a_daemon),
		cmocka_unit_test(test_device_fatal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

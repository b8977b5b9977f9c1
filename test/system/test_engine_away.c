/* SPDX-License-Identifier: BSD-3-Clause */
/* Who drives an engine goes away for longer than every timer of it lasts, as a poll core without a CPU does or a program with something else to do. What came in meanwhile came in time: nothing is sent again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "counters.h"
#include "side.h"

enum { QPS = 96, DEPTH = 32, AWAY_US = 200000, ROUNDS_MAX = 10000 }; /* more acknowledgements than a burst takes, more packets than an engine keeps to itself; longer than a timeout of 14 */

struct end {
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_mr *mr;
	struct uroce_qp *qp[QPS];
	struct uroce_endpoint endpoint[QPS];
	uint64_t *word;
};

static void open_end(struct end *e, const char *device)
{
	struct uroce_qp_init init = { .cap = { .max_send_wr = DEPTH, .max_recv_wr = 1 } };
	struct engine *engine;
	void *memory;
	CHECK(!side_open_context(device, &e->ctx, &engine));
	CHECK(!uroce_pd_create(e->ctx, &e->pd));
	CHECK(!uroce_alloc(e->ctx, QPS * sizeof(*e->word), &memory));
	e->word = memory;
	CHECK(!uroce_mr_register(e->pd, memory, QPS * sizeof(*e->word), UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE, &e->mr));
	CHECK(!uroce_cq_create(e->ctx, 2 * DEPTH * QPS, NULL, NULL, &e->cq));
	init.send_cq = init.recv_cq = e->cq;
	for (unsigned i = 0; i < QPS; i++) {
		CHECK(!uroce_qp_create(e->pd, &init, &e->qp[i]));
		CHECK(!uroce_qp_endpoint(e->qp[i], 0, &e->endpoint[i]));
	}
}

static void connect_ends(struct end *a, struct end *b)
{
	for (unsigned i = 0; i < QPS; i++) {
		CHECK(!uroce_qp_connect(a->qp[i], &a->endpoint[i], &b->endpoint[i], NULL, 0));
		CHECK(!uroce_qp_connect(b->qp[i], &b->endpoint[i], &a->endpoint[i], NULL, 0));
	}
}

static void post_one(struct end *a, const struct end *b, unsigned i)
{
	struct uroce_sge sge = { (uintptr_t)&a->word[i], sizeof(a->word[i]), uroce_mr_lkey(a->mr) };
	struct uroce_send_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_WRITE, .flags = UROCE_SEND_SIGNALED, .remote_addr = (uintptr_t)&b->word[i], .rkey = uroce_mr_rkey(b->mr) };
	CHECK(uroce_post_send(a->qp[i], &wr, 1) == 1);
}

/* Some WRITEs on each QP. */
static void post_all(struct end *a, const struct end *b, unsigned each)
{
	for (unsigned n = 0; n < QPS * each; n++)
		post_one(a, b, n % QPS);
}

static void drive(struct end *e, unsigned rounds)
{
	while (rounds--)
		uroce_engine_poll(e->ctx);
}

static void wait_for_all(struct end *a, struct end *b, unsigned each)
{
	struct uroce_wc wc;
	unsigned done = 0;
	for (unsigned round = 0; done < QPS * each; round++) {
		CHECK(round < ROUNDS_MAX);
		drive(a, 1);
		drive(b, 1);
		while (uroce_cq_poll(a->cq, &wc, 1) == 1) {
			CHECK(wc.status == UROCE_WC_SUCCESS);
			done++;
		}
	}
}

static uint64_t count(const struct end *e, enum qp_counter i)
{
	uint64_t sum = 0, value[QP_COUNTER_COUNT];
	for (unsigned q = 0; q < QPS; q++) {
		CHECK(uroce_qp_counters(e->qp[q], value, QP_COUNTER_COUNT) >= 0);
		sum += value[i];
	}
	return sum;
}

static void expect_nothing_again(const struct end *a, const struct end *b)
{
	CHECK(count(a, QP_LOCAL_ACK_TIMEOUT_ERR) == 0);
	CHECK(count(a, QP_RETRANSMITTED_PACKETS) == 0);
	CHECK(count(a, QP_TAIL_PROBES) == 0);
	CHECK(count(b, QP_DUPLICATE_REQUEST) == 0);
}

/* The requester is away; every acknowledgement waits in its port. */
static void leave_requester(void *arg)
{
	static struct end a, b;
	open_end(&a, "inline:net_ring,link=away,side=0,ip=10.1.0.1/24");
	open_end(&b, "inline:net_ring,link=away,side=1,ip=10.1.0.2/24");
	connect_ends(&a, &b);
	post_all(&a, &b, 1);
	wait_for_all(&a, &b, 1); /* the neighbours are known from here on */
	post_all(&a, &b, 1);
	drive(&a, 64);
	usleep(AWAY_US);
	drive(&b, 64);
	wait_for_all(&a, &b, 1);
	expect_nothing_again(&a, &b);
}

/* The program has something else to do and then posts: what it posts has its timers from now on. However many rounds there were before. */
static void post_after_absence(void *arg)
{
	static struct end a, b;
	open_end(&a, "inline:net_ring,link=away,side=0,ip=10.1.0.1/24");
	open_end(&b, "inline:net_ring,link=away,side=1,ip=10.1.0.2/24");
	connect_ends(&a, &b);
	for (unsigned rounds = 0; rounds < 8; rounds++) {
		post_all(&a, &b, 1);
		wait_for_all(&a, &b, 1);
		drive(&a, rounds);
		usleep(AWAY_US);
		post_all(&a, &b, 1);
		drive(&a, 8); /* nothing can have come yet */
		wait_for_all(&a, &b, 1);
	}
	CHECK(count(&a, QP_LOCAL_ACK_TIMEOUT_ERR) == 0); /* an end that is not driven for some microseconds may be probed */
}

/* Both ends are QPs of one port, and packets between them never leave the engine. */
static void leave_loopback(void *arg)
{
	static struct end a, b;
	const char *device = "inline:net_ring,link=away,side=0,ip=10.1.0.1/24";
	open_end(&a, device);
	open_end(&b, device);
	connect_ends(&a, &b);
	post_all(&a, &b, 1);
	wait_for_all(&a, &b, 1);
	post_all(&a, &b, DEPTH);
	drive(&a, 1);
	usleep(AWAY_US);
	wait_for_all(&a, &b, DEPTH);
	expect_nothing_again(&a, &b);
}

static atomic_bool has_ended;

static void *spin(void *arg)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	CHECK(!pthread_setaffinity_np(pthread_self(), sizeof(set), &set));
	setpriority(PRIO_PROCESS, 0, -20); /* this thread; refused to all but root, and the absences are shorter then */
	while (!has_ended)
		;
	return NULL;
}

/* A poll core that gives up its CPU in every round gets it back when its neighbour has had its share, so it is away before each round. Its timers run all the same. */
static void share_the_cpu(void *arg)
{
	static struct end a, b;
	struct uroce_wc wc;
	pthread_t neighbour;
	unsigned done = 0;
	open_end(&a, "embedded:net_ring,link=away,side=0,ip=10.1.0.1/24,core=0,idle=pause");
	open_end(&b, "inline:net_ring,link=away,side=1,ip=10.1.0.2/24");
	connect_ends(&a, &b);
	post_all(&a, &b, 1);
	for (unsigned round = 0; done < QPS; round++) { /* the neighbours are known from here on */
		CHECK(round < AWAY_US);
		drive(&b, 1);
		done += uroce_cq_poll(a.cq, &wc, 1) == 1;
		usleep(10);
	}
	CHECK(!pthread_create(&neighbour, NULL, spin, NULL));
	post_all(&a, &b, 1); /* nobody answers */
	for (unsigned ms = 0; !uroce_cq_poll(a.cq, &wc, 1); ms += 10) { /* and nobody wakes the engine */
		CHECK(ms < 10000);
		usleep(10000);
	}
	CHECK(wc.status == UROCE_WC_RETRY_EXC_ERR);
	has_ended = true;
	pthread_join(neighbour, NULL);
}

/* A program that drives its engine now and then is away before each round, and each has something to do. A QP whose peer is gone still ends. */
static void drive_now_and_then(void *arg)
{
	static struct end a, b;
	struct uroce_wc wc = { 0 };
	open_end(&a, "inline:net_ring,link=away,side=0,ip=10.1.0.1/24");
	open_end(&b, "inline:net_ring,link=away,side=1,ip=10.1.0.2/24");
	connect_ends(&a, &b);
	post_all(&a, &b, 1);
	wait_for_all(&a, &b, 1);
	CHECK(!uroce_qp_destroy(b.qp[0]));
	post_one(&a, &b, 0);
	for (unsigned round = 0; wc.status == UROCE_WC_SUCCESS; round++) {
		CHECK(round < 5000);
		post_one(&a, &b, 1);
		drive(&a, 1);
		drive(&b, 4);
		usleep(1500);
		while (wc.status == UROCE_WC_SUCCESS && uroce_cq_poll(a.cq, &wc, 1) == 1)
			;
	}
	CHECK(wc.wr_id == 0 && wc.status == UROCE_WC_RETRY_EXC_ERR);
}

static void test_timers_while_every_round_has_work(void **state)
{
	assert_int_equal(side_child(drive_now_and_then, NULL), 0);
}

static void test_acknowledgements_wait_in_the_port(void **state)
{
	assert_int_equal(side_child(leave_requester, NULL), 0);
}

static void test_timers_of_a_core_that_shares_its_cpu(void **state)
{
	assert_int_equal(side_child(share_the_cpu, NULL), 0);
}

static void test_posted_after_an_absence(void **state)
{
	assert_int_equal(side_child(post_after_absence, NULL), 0);
}

static void test_packets_wait_in_the_engine(void **state)
{
	assert_int_equal(side_child(leave_loopback, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_acknowledgements_wait_in_the_port),
		cmocka_unit_test(test_posted_after_an_absence),
		cmocka_unit_test(test_packets_wait_in_the_engine),
		cmocka_unit_test(test_timers_of_a_core_that_shares_its_cpu),
		cmocka_unit_test(test_timers_while_every_round_has_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client may write into the memory that it shares with a core, word by word: each lie has its consequence for that client alone, and its counter. The table is in doc/design/memory.md. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "direct_hooks.h"
#include "machine.h"
#include "raw_client.h"

static const struct abi_qp_cap cap = { 16, 16, 2, 2, 32 };

static unsigned channel_writes, channel_room;

/* A channel with room for so many records. */
static int count_write(void *arg, int write_fd, const void *record, uint32_t len)
{
	channel_writes++;
	if (!channel_room)
		return -EAGAIN;
	channel_room--;
	return 0;
}

struct fixture {
	uint64_t now;
	struct core *core;
	struct core_hooks hooks;
	struct raw_client c;
	struct raw_memory m;
	struct raw_cq send_cq, recv_cq;
	struct raw_qp qp[2]; /* connected to each other */
};

static void open_fixture(struct fixture *x)
{
	struct gid gid;
	uint32_t index;
	struct core_config config = { .name = "hostile", .addr = { .mode = ADDR_OWN, .mac = { 2, 0, 0, 0, 0, 1 } }, .max_frame = 4300, .seed = 3, .hooks = &x->hooks };
	x->hooks = direct_hooks;
	x->hooks.channel_write = count_write;
	channel_room = UINT32_MAX;
	x->now = 1000;
	assert_int_equal(core_new(&x->core, &config, x->now), 0);
	gid_parse("10.0.0.1", &gid);
	assert_int_equal(addr_gid_add(core_addr(x->core), &gid, VLAN_NONE, 24, &index), 0);
	raw_open(&x->c, x->core, &x->now);
	raw_memory_new(&x->c, 1 << 16, &x->m);
	raw_cq_new(&x->c, 64, 0, &x->send_cq);
	raw_cq_new(&x->c, 64, 0, &x->recv_cq);
	for (unsigned i = 0; i < 2; i++)
		raw_qp_new(&x->c, &x->send_cq, &x->recv_cq, &cap, &x->qp[i]);
	for (unsigned i = 0; i < 2; i++)
		raw_connect(&x->c, &x->qp[i], "10.0.0.1", x->qp[!i].qpn);
}

static void run(struct fixture *x, unsigned rounds)
{
	struct core_frame none;
	for (; rounds; rounds--, x->now += 1000) {
		core_run(x->core, x->now);
		core_scan(x->core);
		core_tx(x->core, x->now, &none, 0);
	}
}

static struct core_stats stats_of(const struct fixture *x)
{
	struct core_stats s;
	core_stats(x->core, &s);
	return s;
}

static uint32_t state_of(struct fixture *x, unsigned i)
{
	assert_int_equal(raw_ask_handle(&x->c, ABI_QUERY_QP, x->qp[i].handle), 0);
	return x->c.rep.query_qp.attr.state;
}

static void ring_bell(struct fixture *x, uint32_t n)
{
	atomic_fetch_or(&x->c.doorbells->word[n / 64], 1ull << n % 64);
	atomic_fetch_or(&x->c.doorbells->top[n / 4096], 1ull << n / 64 % 64);
}

/* A ring of 16 slots: more than there are; more than are free while WQEs are in flight; back. */
static void test_index_of_a_send_queue(void **state)
{
	static const struct {
		unsigned in_flight;
		uint32_t lie;
	} rows[] = { { 0, 17 }, { 0, 1u << 31 }, { 0, UINT32_MAX }, { 3, 17 }, { 3, 2 }, { 3, 0 } };
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture x;
		open_fixture(&x);
		for (unsigned k = 0; k < rows[i].in_flight; k++)
			raw_write(&x.c, &x.qp[0], k, &x.m);
		run(&x, 1);
		uint64_t wqes = stats_of(&x).wqes;
		atomic_store(&x.qp[0].sq.ring->client_index, rows[i].lie);
		ring_bell(&x, x.qp[0].doorbell);
		run(&x, 1);
		assert_int_equal(state_of(&x, 0), ABI_QP_ERR);
		assert_int_equal(x.c.rep.query_qp.error.cause, CAUSE_RING_INDEX);
		assert_in_range(stats_of(&x).bad_indices, 1, 2); /* flushing finds it as well */
		assert_int_equal(stats_of(&x).wqes, wqes);
		assert_int_equal(channel_room, UINT32_MAX - 1); /* FATAL */
		assert_int_equal(raw_set_state(&x.c, &x.qp[0], ABI_QP_RESET), 0);
		core_free(x.core);
	}
}

static void test_index_of_a_receive_queue(void **state)
{
	static const uint32_t lies[] = { 17, 1u << 31, UINT32_MAX };
	struct abi_send_wqe send = { .opcode = ABI_OP_SEND, .flags = ABI_SEND_SIGNALED };
	for (unsigned i = 0; i < 3; i++) {
		struct fixture x;
		struct abi_cqe e;
		open_fixture(&x);
		atomic_store(&x.qp[1].rq.ring->client_index, lies[i]);
		raw_post(&x.qp[0].sq, &send, sizeof(send));
		raw_ring_doorbell(&x.c, &x.qp[0], &x.qp[0].sq);
		run(&x, 10);
		assert_int_equal(state_of(&x, 1), ABI_QP_ERR);
		assert_in_range(stats_of(&x).bad_indices, 1, 2);
		assert_true(raw_poll(&x.send_cq, &e)); /* the peer is told */
		assert_int_equal(e.status, ABI_WC_REM_OP_ERR);
		assert_false(raw_poll(&x.recv_cq, &e));
		core_free(x.core);
	}
}

static void test_wqes_that_cannot_be(void **state)
{
	static const struct {
		struct abi_send_wqe w;
		uint8_t status;
		uint32_t cause;
	} rows[] = {
		{ { .opcode = ABI_OP_COUNT }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_OPCODE },
		{ { .opcode = 255 }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_OPCODE },
		{ { .opcode = ABI_OP_SEND, .num_sge = 3 }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_SGE_COUNT },
		{ { .opcode = ABI_OP_SEND, .num_sge = 65535 }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_SGE_COUNT },
		{ { .opcode = ABI_OP_SEND, .flags = ABI_SEND_INLINE, .inline_len = 33 }, ABI_WC_LOC_LEN_ERR, CAUSE_WQE_INLINE },
		{ { .opcode = ABI_OP_SEND, .flags = ABI_SEND_INLINE, .inline_len = UINT32_MAX }, ABI_WC_LOC_LEN_ERR, CAUSE_WQE_INLINE },
		{ { .opcode = ABI_OP_READ, .flags = ABI_SEND_INLINE, .inline_len = 8 }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_INLINE },
		{ { .opcode = ABI_OP_WRITE, .num_sge = 2, .sge = { { 0, UINT32_MAX, 1 }, { 0, UINT32_MAX, 1 } } }, ABI_WC_LOC_LEN_ERR, CAUSE_WQE_LENGTH },
		{ { .opcode = ABI_OP_FETCH_ADD, .num_sge = 2 }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_SGE_COUNT }, /* one slot has room for one */
		{ { .opcode = ABI_OP_FETCH_ADD, .num_sge = 0 }, ABI_WC_LOC_LEN_ERR, CAUSE_WQE_LENGTH },
		{ { .opcode = ABI_OP_ATOMIC_WRITE, .num_sge = 0 }, ABI_WC_LOC_LEN_ERR, CAUSE_WQE_LENGTH },
		{ { .opcode = ABI_OP_ATOMIC_WRITE, .num_sge = 2, .sge = { { 0, 4, 1 }, { 8, 4, 1 } } }, ABI_WC_LOC_LEN_ERR, CAUSE_WQE_LENGTH },
		{ { .opcode = ABI_OP_ATOMIC_WRITE, .num_sge = 1, .sge = { { 0, UINT32_MAX, 1 } } }, ABI_WC_LOC_LEN_ERR, CAUSE_WQE_LENGTH },
		{ { .opcode = ABI_OP_ATOMIC_WRITE, .flags = ABI_SEND_INLINE, .inline_len = 16 }, ABI_WC_LOC_LEN_ERR, CAUSE_WQE_LENGTH },
		{ { .opcode = ABI_OP_ATOMIC_WRITE, .flags = ABI_SEND_INLINE, .inline_len = UINT32_MAX }, ABI_WC_LOC_LEN_ERR, CAUSE_WQE_INLINE },
		{ { .opcode = ABI_OP_ATOMIC_WRITE, .flags = ABI_SEND_INLINE, .inline_len = 8, .remote_addr = 4 }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_ALIGNMENT },
		{ { .opcode = ABI_OP_FLUSH, .num_sge = 1, .flush = { 8, ABI_FLUSH_GLOBAL, ABI_FLUSH_RANGE, 0 } }, ABI_WC_LOC_LEN_ERR, CAUSE_WQE_LENGTH },
		{ { .opcode = ABI_OP_FLUSH, .num_sge = 65535, .flush = { 8, ABI_FLUSH_GLOBAL, ABI_FLUSH_RANGE, 0 } }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_SGE_COUNT },
		{ { .opcode = ABI_OP_FLUSH, .flags = ABI_SEND_INLINE, .inline_len = 8, .flush = { 8, ABI_FLUSH_GLOBAL, ABI_FLUSH_RANGE, 0 } }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_INLINE },
		{ { .opcode = ABI_OP_FLUSH, .flush = { 0x80000001, ABI_FLUSH_GLOBAL, ABI_FLUSH_RANGE, 0 } }, ABI_WC_LOC_LEN_ERR, CAUSE_WQE_LENGTH },
		{ { .opcode = ABI_OP_FLUSH, .flush = { 8, 0, ABI_FLUSH_RANGE, 0 } }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_FLUSH },
		{ { .opcode = ABI_OP_FLUSH, .flush = { 8, 0x81, ABI_FLUSH_RANGE, 0 } }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_FLUSH },
		{ { .opcode = ABI_OP_FLUSH, .flush = { 8, ABI_FLUSH_GLOBAL, ABI_FLUSH_SELECTIVITIES, 0 } }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_FLUSH },
		{ { .opcode = ABI_OP_FLUSH, .flush = { 8, ABI_FLUSH_GLOBAL, 255, 0 } }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_FLUSH },
		{ { .opcode = ABI_OP_BIND_MW, .num_sge = 1 }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_SGE_COUNT },
		{ { .opcode = ABI_OP_REG_MR, .num_sge = 65535 }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_SGE_COUNT },
		{ { .opcode = ABI_OP_LOCAL_INV, .flags = ABI_SEND_INLINE, .inline_len = UINT32_MAX }, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_INLINE },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture x;
		struct abi_cqe e;
		open_fixture(&x);
		raw_post(&x.qp[0].sq, &rows[i].w, sizeof(rows[i].w));
		raw_ring_doorbell(&x.c, &x.qp[0], &x.qp[0].sq);
		run(&x, 5);
		assert_true(raw_poll(&x.send_cq, &e));
		assert_int_equal(e.status, rows[i].status);
		assert_int_equal(e.vendor_error, rows[i].cause);
		assert_int_equal(stats_of(&x).bad_wqes, 1);
		core_free(x.core);
	}
}

static void test_receive_wqes_that_cannot_be(void **state)
{
	static const uint32_t counts[] = { 3, 1u << 28, UINT32_MAX };
	struct abi_send_wqe send = { .opcode = ABI_OP_SEND, .flags = ABI_SEND_SIGNALED };
	for (unsigned i = 0; i < 3; i++) {
		struct fixture x;
		struct abi_cqe e;
		open_fixture(&x);
		raw_post(&x.qp[1].rq, &(struct abi_recv_wqe){ .num_sge = counts[i] }, sizeof(struct abi_recv_wqe));
		raw_post(&x.qp[0].sq, &send, sizeof(send));
		raw_ring_doorbell(&x.c, &x.qp[0], &x.qp[0].sq);
		run(&x, 10);
		assert_true(raw_poll(&x.send_cq, &e));
		assert_int_equal(e.status, ABI_WC_REM_OP_ERR);
		assert_in_range(stats_of(&x).bad_wqes, 1, 2);
		core_free(x.core);
	}
}

static void test_doorbells_of_nobody(void **state)
{
	struct fixture x;
	open_fixture(&x);
	run(&x, 200);
	uint64_t rung = stats_of(&x).doorbells;
	ring_bell(&x, 2);
	ring_bell(&x, 63);
	ring_bell(&x, ABI_DOORBELLS - 1);
	run(&x, 2);
	assert_int_equal(stats_of(&x).bad_doorbells, 3);
	assert_int_equal(stats_of(&x).doorbells, rung);
	core_free(x.core);
}

/* Of a CQ: from the future, from the far past; each as good as never having polled. */
static void test_index_of_a_completion_queue(void **state)
{
	static const uint32_t lies[] = { 1000, 1u << 31, UINT32_MAX - 63 };
	for (unsigned i = 0; i < 3; i++) {
		struct fixture x;
		open_fixture(&x);
		atomic_store(&x.send_cq.ring->client_index, lies[i]);
		for (unsigned k = 0; k < 80; k++) {
			raw_write(&x.c, &x.qp[0], k, &x.m);
			run(&x, 5);
		}
		assert_int_equal(stats_of(&x).cq_overruns, 1);
		assert_int_equal(stats_of(&x).cqes, 64); /* the slots that were free at first */
		assert_int_equal(state_of(&x, 0), ABI_QP_ERR);
		assert_int_equal(state_of(&x, 1), ABI_QP_ERR);
		core_free(x.core);
	}
}

/* The page is the engine's to write; what a client writes there has no effect on the core. */
static void test_the_page(void **state)
{
	struct fixture x;
	open_fixture(&x);
	memset(x.c.page, 0xff, sizeof(*x.c.page));
	assert_int_equal(raw_ask_handle(&x.c, ABI_QUERY_QP, x.qp[0].handle), 0);
	core_client_mark_dead(x.c.k);
	assert_int_equal(atomic_load(&x.c.page->dead), 1);
	memset(x.c.page, 0, sizeof(*x.c.page));
	assert_int_equal(raw_ask_handle(&x.c, ABI_QUERY_QP, x.qp[0].handle), -ENODEV);
	assert_int_equal(stats_of(&x).refused_requests, 1);
	core_free(x.core);
}

/* Many CQs on one channel that nobody reads, always armed: few writes a millisecond, and another channel's events are not late. When there is room, each event comes once. */
static void test_a_channel_that_nobody_reads(void **state)
{
	enum { CQS = 200 };
	static struct raw_cq cq[CQS];
	static struct raw_qp qp[CQS];
	struct fixture x;
	open_fixture(&x);
	assert_int_equal(raw_ask_handle(&x.c, ABI_CREATE_CHANNEL, 0), 0);
	uint32_t channel = x.c.rep.handle;
	for (unsigned i = 0; i < CQS; i++) {
		raw_cq_new(&x.c, 64, channel, &cq[i]);
		raw_qp_new(&x.c, &cq[i], &x.recv_cq, &cap, &qp[i]);
		raw_connect(&x.c, &qp[i], "10.0.0.1", qp[i].qpn);
	}
	run(&x, 100);
	channel_room = 0;
	channel_writes = 0;
	for (unsigned k = 0; k < 3; k++) {
		for (unsigned i = 0; i < CQS; i++) {
			atomic_store(&cq[i].ring->arm, 0xffffffff); /* no value is worse than another */
			raw_write(&x.c, &qp[i], k, &x.m);
		}
		run(&x, 300);
	}
	assert_in_range(channel_writes, 1, 5); /* one, and a retry each millisecond */
	assert_int_equal(stats_of(&x).events, CQS);
	channel_room = 100;
	channel_writes = 0;
	run(&x, 1000);
	assert_in_range(channel_writes, 1, 70);
	run(&x, 20000);
	assert_int_equal(channel_room, 0);
	channel_room = 1000;
	raw_ask_handle(&x.c, ABI_DESTROY_QP, qp[CQS - 1].handle);
	assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_CQ, cq[CQS - 1].handle), 0); /* with its event */
	run(&x, 20000);
	assert_int_equal(1000 - channel_room, CQS - 100 - 1);
	assert_true(core_next(x.core) > x.now);
	core_free(x.core);
}

/* An overrun CQ of many QPs takes all of them to ERR, a part of them in each round. */
static void test_an_overrun_with_many_qps(void **state)
{
	enum { QPS = 600 };
	static struct raw_qp qp[QPS];
	struct fixture x;
	struct raw_cq small;
	open_fixture(&x);
	raw_cq_new(&x.c, 1, 0, &small);
	for (unsigned i = 0; i < QPS; i++) {
		raw_qp_new(&x.c, &small, &x.recv_cq, &cap, &qp[i]);
		raw_connect(&x.c, &qp[i], "10.0.0.1", qp[i].qpn);
	}
	run(&x, 200);
	raw_write(&x.c, &qp[0], 1, &x.m);
	raw_write(&x.c, &qp[0], 2, &x.m);
	unsigned before = 0, rounds = 0;
	for (unsigned r = 0; r < 30; r++) {
		unsigned ended = 0;
		run(&x, 1);
		for (unsigned i = 0; i < QPS; i++)
			ended += qpn_find(&x.core->qpns, qp[i].qpn)->state == ABI_QP_ERR;
		assert_in_range(ended - before, 0, 257);
		rounds += ended > before;
		before = ended;
	}
	assert_int_equal(before, QPS);
	assert_in_range(rounds, 3, 4);
	assert_int_equal(stats_of(&x).cq_overruns, 1);
	core_free(x.core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_index_of_a_send_queue),
		cmocka_unit_test(test_index_of_a_receive_queue),
		cmocka_unit_test(test_wqes_that_cannot_be),
		cmocka_unit_test(test_receive_wqes_that_cannot_be),
		cmocka_unit_test(test_doorbells_of_nobody),
		cmocka_unit_test(test_index_of_a_completion_queue),
		cmocka_unit_test(test_the_page),
		cmocka_unit_test(test_a_channel_that_nobody_reads),
		cmocka_unit_test(test_an_overrun_with_many_qps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

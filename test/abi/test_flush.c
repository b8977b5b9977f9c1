/* SPDX-License-Identifier: BSD-3-Clause */
/* ATOMIC WRITE and FLUSH from the program's call to its completion: a client, its rings, and a core that talks to itself (IBA annex A19). */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "direct_session.h"
#include "gid.h"

enum { BYTES = 65536, AT = 4096, FRAMES = 8, MESSAGES = 20000 };
#define RIGHTS (UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_FLUSH_GLOBAL)

struct fixture {
	struct core *core;
	uint64_t now_ns;
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_mr *mr;
	struct uroce_qp *qp[2];
	uint8_t *memory; /* the first half is qp[0]'s to send from, the second what it writes to */
	char line[512];
};

static void keep_line(void *arg, int level, const char *line)
{
	struct fixture *x = arg;
	snprintf(x->line, sizeof(x->line), "%s", line);
}

static void run_core(struct fixture *x)
{
	static uint8_t buffer[FRAMES][CORE_FRAME_MAX + 128];
	struct core_frame frames[FRAMES];
	for (unsigned i = 0; i < FRAMES; i++)
		frames[i] = (struct core_frame){ .data = buffer[i], .room = sizeof(buffer[i]) };
	x->now_ns += 1000;
	core_run(x->core, x->now_ns);
	core_scan(x->core);
	core_tx(x->core, x->now_ns, frames, FRAMES);
}

static void connect_qps(struct fixture *x, const struct uroce_qp_attr *attr, uint32_t mask)
{
	struct uroce_endpoint e[2];
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(uroce_qp_endpoint(x->qp[i], 0, &e[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(uroce_qp_connect(x->qp[i], &e[i], &e[!i], attr, mask), 0);
}

static void open_fixture(struct fixture *x)
{
	static const struct log quiet = { .level = LOG_ERROR };
	struct core_config config = { .name = "flush", .max_frame = 4300, .addr = { .mac = { 2, 0, 0, 0, 0, 1 } }, .hooks = &direct_hooks, .log = &quiet };
	struct uroce_open_attr attr = { .log = keep_line, .log_arg = x, .log_level = 2 };
	struct uroce_qp_init init = { .cap = { 64, 1, 1, 1, 64 } };
	struct gid gid;
	uint32_t index;
	void *memory;
	*x = (struct fixture){ .now_ns = 1000000 };
	assert_int_equal(core_new(&x->core, &config, x->now_ns), 0);
	assert_int_equal(gid_parse("10.0.0.1", &gid), 0);
	assert_int_equal(addr_gid_add(core_addr(x->core), &gid, 0xffff, 24, &index), 0);
	assert_int_equal(direct_session_open(x->core, &x->now_ns, &attr, &x->ctx), 0);
	assert_int_equal(uroce_pd_create(x->ctx, &x->pd), 0);
	assert_int_equal(uroce_cq_create(x->ctx, 256, NULL, NULL, &x->cq), 0);
	assert_int_equal(uroce_alloc(x->ctx, BYTES, &memory), 0);
	x->memory = memory;
	assert_int_equal(uroce_mr_register(x->pd, memory, BYTES, RIGHTS, &x->mr), 0);
	init.send_cq = init.recv_cq = x->cq;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(uroce_qp_create(x->pd, &init, &x->qp[i]), 0);
}

static void close_fixture(struct fixture *x)
{
	uroce_close(x->ctx);
	core_free(x->core);
}

static struct uroce_wc await(struct fixture *x)
{
	struct uroce_wc wc;
	for (unsigned turn = 0; turn < 100000; turn++) {
		run_core(x);
		if (uroce_cq_poll(x->cq, &wc, 1) == 1)
			return wc;
	}
	fail_msg("no completion came");
	return wc;
}

static void post_flush(struct fixture *x, uint32_t len, uint32_t placement, enum uroce_flush_level level)
{
	struct uroce_send_wr wr = { .wr_id = 7, .opcode = UROCE_OP_FLUSH, .flags = UROCE_SEND_SIGNALED, .remote_addr = (uintptr_t)x->memory + AT, .rkey = uroce_mr_rkey(x->mr), .flush = { len, placement, level } };
	assert_int_equal(uroce_post_send(x->qp[0], &wr, 1), 1);
}

static void post_word(struct fixture *x, uint64_t *word, uint32_t flags)
{
	struct uroce_sge sge = { (uintptr_t)word, 8, uroce_mr_lkey(x->mr) };
	struct uroce_send_wr wr = { .wr_id = 8, .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_ATOMIC_WRITE, .flags = flags, .remote_addr = (uintptr_t)x->memory + AT, .rkey = uroce_mr_rkey(x->mr) };
	assert_int_equal(uroce_post_send(x->qp[0], &wr, 1), 1);
}

static void post_write(struct fixture *x, uint32_t len)
{
	struct uroce_sge sge = { (uintptr_t)x->memory, len, uroce_mr_lkey(x->mr) };
	struct uroce_send_wr wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_WRITE, .remote_addr = (uintptr_t)x->memory + AT, .rkey = uroce_mr_rkey(x->mr) };
	assert_int_equal(uroce_post_send(x->qp[0], &wr, 1), 1);
}

static void expect(struct fixture *x, uint64_t wr_id, enum uroce_wc_opcode opcode, uint32_t byte_len)
{
	struct uroce_wc wc = await(x);
	assert_int_equal(wc.status, UROCE_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.byte_len, byte_len);
}

static uint64_t word_there(const struct fixture *x)
{
	uint64_t v;
	memcpy(&v, x->memory + AT, 8);
	return v;
}

static void test_both_operations(void **state)
{
	struct fixture x;
	struct uroce_device_attr device;
	open_fixture(&x);
	connect_qps(&x, NULL, 0);
	assert_int_equal(uroce_query_device(x.ctx, &device), 0);
	assert_int_equal(device.caps & (UROCE_CAP_ATOMIC_WRITE | UROCE_CAP_FLUSH_GLOBAL | UROCE_CAP_FLUSH_PERSISTENT), UROCE_CAP_ATOMIC_WRITE | UROCE_CAP_FLUSH_GLOBAL);
	uint64_t *from = (uint64_t *)(void *)x.memory, on_the_stack = 0x1111222233334444;
	*from = 0x5555666677778888;
	post_word(&x, from, UROCE_SEND_SIGNALED);
	expect(&x, 8, UROCE_WC_ATOMIC_WRITE, 8);
	assert_true(word_there(&x) == 0x5555666677778888);
	post_word(&x, &on_the_stack, UROCE_SEND_SIGNALED | UROCE_SEND_INLINE);
	on_the_stack = 0;
	expect(&x, 8, UROCE_WC_ATOMIC_WRITE, 8);
	assert_true(word_there(&x) == 0x1111222233334444);
	assert_int_equal(x.memory[AT - 1] | x.memory[AT + 8], 0);
	/* when the FLUSH is done, what was written before it, unsignaled and in many packets, is there */
	for (unsigned i = 0; i < 40; i++) {
		memset(x.memory, (int)i + 1, AT);
		for (unsigned n = 0; n < 7; n++)
			post_write(&x, AT);
		post_flush(&x, AT, UROCE_FLUSH_GLOBAL, i & 1 ? UROCE_FLUSH_MR : UROCE_FLUSH_RANGE);
		expect(&x, 7, UROCE_WC_FLUSH, 0);
		assert_memory_equal(x.memory, x.memory + AT, AT);
	}
	close_fixture(&x);
}

/* Both take part in max_rd_atomic: with 1, each waits for the one before it, and all come, in order. */
static void test_one_at_a_time(void **state)
{
	struct fixture x;
	open_fixture(&x);
	connect_qps(&x, &(struct uroce_qp_attr){ .max_rd_atomic = 1, .max_dest_rd_atomic = 1 }, UROCE_QP_MAX_RD_ATOMIC | UROCE_QP_MAX_DEST_RD_ATOMIC);
	for (uint64_t i = 1; i <= 16; i++) {
		post_word(&x, &i, UROCE_SEND_SIGNALED | UROCE_SEND_INLINE);
		post_flush(&x, 8, UROCE_FLUSH_GLOBAL, UROCE_FLUSH_RANGE);
	}
	for (uint64_t i = 1; i <= 16; i++) {
		expect(&x, 8, UROCE_WC_ATOMIC_WRITE, 8);
		assert_true(word_there(&x) >= i);
		expect(&x, 7, UROCE_WC_FLUSH, 0);
	}
	assert_int_equal(word_there(&x), 16);
	close_fixture(&x);
}

/* Nobody is told that bytes outlast a power cut which do not: the memory is not registered so, and a FLUSH that asks for it fails. */
static void test_persistence_is_refused(void **state)
{
	struct fixture x;
	struct uroce_mr *mr;
	open_fixture(&x);
	assert_int_equal(uroce_mr_register(x.pd, x.memory, BYTES, RIGHTS | UROCE_ACCESS_FLUSH_PERSISTENT, &mr), -EOPNOTSUPP);
	assert_non_null(strstr(x.line, "FLUSH_PERSISTENT"));
	static const struct {
		uint32_t access;
		enum uroce_wc_status status;
	} rows[] = {
		{ UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_FLUSH_GLOBAL, UROCE_WC_REM_INV_REQ_ERR },
		{ UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_FLUSH_GLOBAL | UROCE_ACCESS_FLUSH_PERSISTENT, UROCE_WC_REM_ACCESS_ERR },
	};
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 2; k++)
			assert_int_equal(uroce_qp_modify(x.qp[k], &(struct uroce_qp_attr){ .state = UROCE_QP_RESET }, UROCE_QP_STATE), 0);
		connect_qps(&x, &(struct uroce_qp_attr){ .access = rows[i].access }, UROCE_QP_ACCESS_FLAGS);
		post_flush(&x, 8, UROCE_FLUSH_GLOBAL, UROCE_FLUSH_RANGE);
		expect(&x, 7, UROCE_WC_FLUSH, 0);
		post_flush(&x, 8, UROCE_FLUSH_GLOBAL | UROCE_FLUSH_PERSISTENT, UROCE_FLUSH_RANGE);
		assert_int_equal(await(&x).status, rows[i].status);
	}
	close_fixture(&x);
}

static void test_region_that_has_gone(void **state)
{
	for (enum uroce_flush_level level = UROCE_FLUSH_RANGE; level <= UROCE_FLUSH_MR; level++) {
		struct fixture x;
		open_fixture(&x);
		connect_qps(&x, NULL, 0);
		post_flush(&x, 8, UROCE_FLUSH_GLOBAL, level);
		assert_int_equal(uroce_mr_deregister(x.mr), 0);
		assert_int_equal(await(&x).status, UROCE_WC_REM_ACCESS_ERR);
		close_fixture(&x);
	}
}

/* ---- all eight bytes at once ---- */

struct reader {
	_Atomic uint64_t *word;
	_Atomic bool is_done;
	_Atomic unsigned long looks;
	bool is_torn;
};

static void *watch(void *arg)
{
	struct reader *r = arg;
	for (; !atomic_load_explicit(&r->is_done, memory_order_relaxed); atomic_fetch_add_explicit(&r->looks, 1, memory_order_relaxed)) {
		uint64_t v = atomic_load_explicit(r->word, memory_order_relaxed);
		r->is_torn |= v != (v & 0xff) * UINT64_C(0x0101010101010101);
	}
	return NULL;
}

static void test_no_word_is_torn(void **state)
{
	struct fixture x;
	pthread_t thread;
	open_fixture(&x);
	connect_qps(&x, NULL, 0);
	struct reader r = { .word = (_Atomic uint64_t *)(void *)(x.memory + AT) };
	assert_int_equal(pthread_create(&thread, NULL, watch, &r), 0);
	for (unsigned i = 0; i < MESSAGES || atomic_load(&r.looks) < MESSAGES; i++) { /* on a busy machine the reader comes late */
		uint64_t v = (i & 0xff) * UINT64_C(0x0101010101010101);
		post_word(&x, &v, UROCE_SEND_SIGNALED | UROCE_SEND_INLINE);
		expect(&x, 8, UROCE_WC_ATOMIC_WRITE, 8);
	}
	atomic_store(&r.is_done, true);
	pthread_join(thread, NULL);
	assert_false(r.is_torn);
	close_fixture(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_operations),
		cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_persistence_is_refused),
		cmocka_unit_test(test_region_that_has_gone),
		cmocka_unit_test(test_no_word_is_torn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to a core: handles, limits, and what a dead client leaves behind (nothing). */
#include "control_fixture.h"

static void test_small_mtu_port_refuses_large_path_mtu(void **state)
{
	struct core *c;
	struct core_config config = { .name = "test", .max_frame = 1514, .seed = 1 };
	assert_int_equal(core_new(&c, &config, 0), 0);
	assert_int_equal(c->limits.max_mtu, ABI_MTU_1024);
	core_free(c);
	config.max_frame = 200;
	assert_int_equal(core_new(&c, &config, 0), -EINVAL);
}

static void test_objects_in_use_stay(void **state)
{
	struct fixture x = open_core(0);
	struct abi_req mem = { .type = ABI_ALLOC_MEMORY, .alloc_memory = { 5000 } };
	assert_int_equal(ask(&x, &mem), 0);
	uint32_t memory = x.rep.handle;
	assert_int_equal(x.rep.memory.bytes, 8192);
	struct abi_req reg = { .type = ABI_REG_MR, .reg_mr = { .pd = x.pd, .memory = memory, .addr = 4096, .len = 4096, .iova = 0x5000 } };
	assert_int_equal(ask(&x, &reg), 0);
	uint32_t mr = x.rep.handle;
	assert_int_equal(ask_handle(&x, ABI_FREE_MEMORY, memory), -EBUSY);
	assert_int_equal(ask_handle(&x, ABI_DESTROY_PD, x.pd), -EBUSY);
	assert_int_equal(ask_handle(&x, ABI_DESTROY_CQ, x.cq), -EBUSY);
	assert_int_equal(ask_handle(&x, ABI_DESTROY_QP, x.qp), 0);
	assert_int_equal(ask_handle(&x, ABI_DESTROY_QP, x.qp), -ENOENT);
	assert_int_equal(ask_handle(&x, ABI_DESTROY_CQ, x.cq), 0);
	assert_int_equal(ask_handle(&x, ABI_DESTROY_PD, x.pd), -EBUSY);
	assert_int_equal(ask_handle(&x, ABI_DEREG_MR, mr), 0);
	assert_int_equal(ask_handle(&x, ABI_FREE_MEMORY, memory), 0);
	assert_int_equal(ask_handle(&x, ABI_DESTROY_PD, x.pd), 0);
	core_free(x.core);
}

/* known-bugs: V9 */
static void test_handles_of_another_client_name_nothing(void **state)
{
	struct fixture x = open_core(0);
	struct fixture other = { .core = x.core };
	assert_int_equal(core_client_new(x.core, &other.client), 0);
	core_client_attach(other.client);
	static const enum abi_msg types[] = { ABI_DESTROY_PD, ABI_FREE_MEMORY, ABI_DEREG_MR, ABI_DESTROY_CHANNEL, ABI_DESTROY_CQ, ABI_DESTROY_QP, ABI_QUERY_QP, ABI_QUERY_COUNTERS };
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		assert_int_equal(ask_handle(&other, types[i], x.qp), -ENOENT);
		assert_int_equal(ask_handle(&other, types[i], 0), -ENOENT);
		assert_int_equal(ask_handle(&other, types[i], 0xffffffff), -ENOENT);
	}
	core_free(x.core);
}

static void test_requests_out_of_bounds(void **state)
{
	struct fixture x = open_core(2);
	struct abi_req memory = { .type = ABI_ALLOC_MEMORY, .alloc_memory = { 4096 } };
	assert_int_equal(ask(&x, &memory), 0);
	const uint32_t m = x.rep.handle;
	const struct {
		int error;
		struct abi_req req;
	} rows[] = {
		{ -EINVAL, { .type = ABI_MSG_COUNT } },
		{ -EINVAL, { .type = 0xffffffff } },
		{ -EINVAL, { .type = ABI_QUERY_GID, .handle = 1000000 } },
		{ -EINVAL, { .type = ABI_ALLOC_MEMORY, .alloc_memory = { 0 } } },
		{ -EINVAL, { .type = ABI_ALLOC_MEMORY, .alloc_memory = { UINT64_MAX } } },
		{ -EINVAL, { .type = ABI_CREATE_CQ, .create_cq = { .entries = 0 } } },
		{ -EINVAL, { .type = ABI_CREATE_CQ, .create_cq = { .entries = 0xffffffff } } },
		{ -ENOENT, { .type = ABI_CREATE_CQ, .create_cq = { .entries = 1, .channel = 5 } } },
		{ -ENOENT, { .type = ABI_REG_MR, .reg_mr = { .pd = 99 } } },
		{ -EINVAL, { .type = ABI_REG_MR, .reg_mr = { .pd = x.pd, .len = 8, .access = MEM_REMOTE_WRITE } } },
		{ -EINVAL, { .type = ABI_REG_MR, .reg_mr = { .pd = x.pd, .len = 8, .access = 0x400 } } },
		{ -EOPNOTSUPP, { .type = ABI_REG_MR, .reg_mr = { .pd = x.pd, .len = 8, .access = MEM_FLUSH_PERSISTENT } } },
		{ -EINVAL, { .type = ABI_REG_MR, .reg_mr = { .pd = x.pd, .len = 2, .iova = UINT64_MAX } } },
		{ -EINVAL, { .type = ABI_REG_MR, .reg_mr = { .pd = x.pd, .memory = m, .addr = 4096, .len = 1 } } },
		{ -EINVAL, { .type = ABI_REG_MR, .reg_mr = { .pd = x.pd, .memory = m, .addr = UINT64_MAX, .len = 2 } } },
		{ -ENOENT, { .type = ABI_CREATE_QP, .create_qp = { .pd = x.pd, .send_cq = x.cq, .recv_cq = 1 } } },
		{ -EOPNOTSUPP, { .type = ABI_CREATE_QP, .create_qp = { .pd = x.pd, .send_cq = x.cq, .recv_cq = x.cq, .service = 9 } } },
		{ -EINVAL, { .type = ABI_CREATE_QP, .create_qp = { .pd = x.pd, .send_cq = x.cq, .recv_cq = x.cq, .cap = { .max_send_wr = 1u << 31 } } } },
		{ -EINVAL, { .type = ABI_CREATE_QP, .create_qp = { .pd = x.pd, .send_cq = x.cq, .recv_cq = x.cq, .cap = { .max_send_wr = 0xffffffff } } } },
		{ -EINVAL, { .type = ABI_CREATE_QP, .create_qp = { .pd = x.pd, .send_cq = x.cq, .recv_cq = x.cq, .cap = { .max_recv_sge = 33 } } } },
		{ -EINVAL, { .type = ABI_CREATE_QP, .create_qp = { .pd = x.pd, .send_cq = x.cq, .recv_cq = x.cq, .cap = { .max_inline = 0xffffffff } } } },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc = ask(&x, &rows[i].req);
		if (rc != rows[i].error)
			print_message("row %u\n", i);
		assert_int_equal(rc, rows[i].error);
		assert_true(strlen(x.rep.text) > 5);
	}
	create_qp(&x);
	struct abi_req third = { .type = ABI_CREATE_QP, .create_qp = { .pd = x.pd, .send_cq = x.cq, .recv_cq = x.cq } };
	assert_int_equal(ask(&x, &third), -ENOMEM);
	core_free(x.core);
}

/* known-bugs: 47 */
static void test_ten_thousand_qps_come_and_go(void **state)
{
	struct fixture x = open_core(0);
	struct core_stats before, after;
	core_stats(x.core, &before);
	uint32_t regions = x.client->arenas.n;
	for (unsigned i = 0; i < 10000; i++) {
		assert_int_equal(ask_handle(&x, ABI_DESTROY_QP, x.qp), 0);
		create_qp(&x);
		if (i % 100 == 0)
			go(&x, i % 200 ? ABI_QP_SQD : ABI_QP_ERR);
	}
	core_stats(x.core, &after);
	assert_int_equal(after.qps, before.qps);
	assert_int_equal(after.qp_bytes, before.qp_bytes);
	assert_int_equal(x.client->arenas.n, regions);
	assert_int_equal(x.core->env.wr_small.in_use, 0);
	core_free(x.core);
}

/* The figure of the issue: an idle QP takes at most 2 KiB of the engine, its rings apart. */
static void test_memory_of_an_idle_qp(void **state)
{
	struct fixture x = open_core(0);
	struct core_stats s;
	go(&x, ABI_QP_RTS);
	core_stats(x.core, &s);
	print_message("bytes of a QP in RTS with 4 replay records: %llu\n", (unsigned long long)s.qp_bytes);
	assert_true(s.qp_bytes <= 2048);
	core_free(x.core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_mtu_port_refuses_large_path_mtu),
		cmocka_unit_test(test_objects_in_use_stay),
		cmocka_unit_test(test_handles_of_another_client_name_nothing),
		cmocka_unit_test(test_requests_out_of_bounds),
		cmocka_unit_test(test_ten_thousand_qps_come_and_go),
		cmocka_unit_test(test_memory_of_an_idle_qp),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

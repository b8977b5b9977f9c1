/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues, the engine's side: phases over passes, overrun, the client's lies, the arm word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cq.h"

enum { N = 4 };
struct fixture {
	struct abi_ring ring;
	struct abi_cqe slots[N];
	struct cq cq;
};

static struct fixture make(void)
{
	return (struct fixture){ 0 };
}

static bool put(struct cq *q, uint64_t wr_id)
{
	struct abi_cqe *c = cq_reserve(q);
	if (!c)
		return false;
	c->wr_id = wr_id;
	cq_count(q);
	assert_int_equal(atomic_load(&q->ring->engine_index), q->produced);
	cq_commit(q, c);
	return true;
}

static void test_phase_flips_each_pass(void **state)
{
	struct fixture x = make();
	cq_init(&x.cq, &x.ring, x.slots, N);
	for (uint32_t i = 0; i < 5 * N; i++) {
		assert_int_equal(atomic_load(&x.slots[i % N].phase), !(i & N) ? 0 : 1);
		assert_true(put(&x.cq, i));
		assert_int_equal(atomic_load(&x.slots[i % N].phase), i & N ? 0 : 1);
		assert_int_equal(x.slots[i % N].wr_id, i);
		atomic_store(&x.ring.client_index, i + 1);
	}
}

/* known-bugs: 43 */
static void test_overrun_is_never_silent(void **state)
{
	struct fixture x = make();
	cq_init(&x.cq, &x.ring, x.slots, N);
	for (uint32_t i = 0; i < N; i++)
		assert_true(put(&x.cq, i));
	assert_false(x.cq.is_overrun);
	assert_false(put(&x.cq, 99));
	assert_true(x.cq.is_overrun);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(x.slots[i].wr_id, i);
	/* and stays so: what was lost cannot come back */
	atomic_store(&x.ring.client_index, N);
	assert_false(put(&x.cq, 100));
}

/* known-bugs: 50 */
static void test_impossible_client_index(void **state)
{
	static const uint32_t lies[] = { 1, N + 1, 0x80000000u, 0xffffffffu };
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct fixture x = make();
		cq_init(&x.cq, &x.ring, x.slots, N);
		for (uint32_t n = 0; n < N; n++)
			put(&x.cq, n);
		atomic_store(&x.ring.client_index, lies[i]);
		bool is_plausible = lies[i] >= 1 && lies[i] <= N;
		assert_int_equal(put(&x.cq, 9), is_plausible);
		assert_int_equal(x.cq.is_overrun, !is_plausible);
	}
}

/* known-bugs: 44 */
static void test_arm_is_one_shot_and_any_outranks_solicited(void **state)
{
	struct fixture x = make();
	cq_init(&x.cq, &x.ring, x.slots, N);
	assert_false(cq_take_arm(&x.cq));
	atomic_store(&x.ring.arm, ABI_ARM_SOLICITED);
	assert_false(cq_take_arm(&x.cq));
	x.cq.has_solicited = true;
	assert_true(cq_take_arm(&x.cq));
	x.cq.has_solicited = true;
	assert_false(cq_take_arm(&x.cq));
	atomic_store(&x.ring.arm, ABI_ARM_ANY);
	assert_true(cq_take_arm(&x.cq));
	assert_int_equal(atomic_load(&x.ring.arm), ABI_ARM_NONE);
	/* a solicited completion from before the arming does not fire it */
	x.cq.has_solicited = true;
	assert_false(cq_take_arm(&x.cq));
	atomic_store(&x.ring.arm, ABI_ARM_SOLICITED);
	assert_false(cq_take_arm(&x.cq));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phase_flips_each_pass),
		cmocka_unit_test(test_overrun_is_never_silent),
		cmocka_unit_test(test_impossible_client_index),
		cmocka_unit_test(test_arm_is_one_shot_and_any_outranks_solicited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

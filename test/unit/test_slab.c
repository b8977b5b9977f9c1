/* SPDX-License-Identifier: BSD-3-Clause */
/* The slab: objects of their own, aligned, reused, bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "slab.h"

static void check_sizes(size_t size, uint32_t per_chunk)
{
	enum { N = 100 };
	uint8_t *p[N];
	struct slab s;

	slab_init(&s, size, per_chunk, 0);
	for (int i = 0; i < N; i++) {
		p[i] = slab_get(&s);
		assert_non_null(p[i]);
		assert_int_equal((uintptr_t)p[i] % 64, 0);
		memset(p[i], i, size);
	}
	assert_int_equal(s.in_use, N);
	assert_true(s.total >= N);
	/* Nobody wrote into anybody else's object. */
	for (int i = 0; i < N; i++)
		for (size_t k = 0; k < size; k++)
			assert_int_equal(p[i][k], i);
	for (int i = 0; i < N; i++)
		slab_put(&s, p[i]);
	assert_int_equal(s.in_use, 0);
	slab_destroy(&s);
	assert_int_equal(s.total, 0);
}

static void test_sizes(void **state)
{
	static const size_t sizes[] = { 1, 7, 8, 63, 64, 65, 128, 1000, 4096 };
	static const uint32_t per_chunk[] = { 0, 1, 3, 64, 1000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t k = 0; k < sizeof(per_chunk) / sizeof(per_chunk[0]); k++)
			check_sizes(sizes[i], per_chunk[k]);
	check_sizes(0, 4);
}

static void test_limit(void **state)
{
	void *p[10];
	struct slab s;

	slab_init(&s, 100, 4, 10); /* the last chunk is cut to 2 */
	for (int i = 0; i < 10; i++)
		assert_non_null(p[i] = slab_get(&s));
	assert_int_equal(s.total, 10);
	assert_null(slab_get(&s));
	assert_null(slab_get(&s));
	assert_int_equal(s.in_use, 10);
	slab_put(&s, p[3]);
	assert_ptr_equal(slab_get(&s), p[3]);
	assert_null(slab_get(&s));
	/* Objects still in use go with the slab. */
	slab_destroy(&s);
	assert_non_null(slab_get(&s));
	slab_destroy(&s);
	slab_destroy(NULL);
}

/* It gives nothing back, and needs nothing new while something is free. */
static void test_reuse(void **state)
{
	void *p[32];
	struct slab s;

	slab_init(&s, 64, 32, 0);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 32; i++)
			p[i] = slab_get(&s);
		for (int i = 0; i < 32; i++)
			slab_put(&s, p[i]);
	}
	assert_int_equal(s.total, 32);
	/* slab_grow with free objects takes one of them. */
	assert_non_null(slab_grow(&s));
	assert_int_equal(s.total, 32);
	assert_int_equal(s.in_use, 1);
	slab_destroy(&s);
}

static void test_absurd_sizes(void **state)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2 };
	struct slab s;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		slab_init(&s, sizes[i], UINT32_MAX, 0);
		assert_null(slab_get(&s));
		assert_int_equal(s.in_use, 0);
		assert_int_equal(s.total, 0);
		slab_destroy(&s);
	}
}

static void test_random_order(void **state)
{
	enum { N = 500 };
	static uint64_t *held[N];
	struct slab s;
	struct rng r;
	uint32_t in_use = 0;

	rng_seed(&r, 11);
	slab_init(&s, sizeof(uint64_t), 16, 300);
	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t k = rng_below(&r, N);
		if (held[k]) {
			assert_int_equal(*held[k], k);
			slab_put(&s, held[k]);
			held[k] = NULL;
			in_use--;
		} else if ((held[k] = slab_get(&s))) {
			*held[k] = k;
			in_use++;
		} else
			assert_int_equal(in_use, 300);
		assert_int_equal(s.in_use, in_use);
	}
	slab_destroy(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_absurd_sizes),
		cmocka_unit_test(test_random_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

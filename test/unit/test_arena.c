/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas and handles of a client: places do not overlap and come back; few regions for many objects; stale handles name nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"
#include "handles.h"

static unsigned regions;
static int region_new(void *arg, uint64_t bytes, void **base, int *fd)
{
	*fd = -1;
	if (bytes > 1ull << 32)
		return -ENOMEM;
	*base = aligned_alloc(4096, bytes);
	memset(*base, 0, bytes);
	regions++;
	return 0;
}
static void region_free(void *arg, void *base, uint64_t bytes, int fd)
{
	free(base);
	regions--;
}
static const struct core_hooks hooks = { .region_new = region_new, .region_free = region_free };

static int take(struct arenas *a, uint64_t bytes, uint64_t align, uint32_t *arena, uint64_t *offset)
{
	int rc = arenas_take(a, bytes, align, arena, offset);
	if (rc != -ENOBUFS)
		return rc;
	rc = arenas_grow(a, arena);
	return rc ? rc : arenas_take(a, bytes, align, arena, offset);
}

static void test_places_are_apart_and_reused(void **state)
{
	enum { N = 3000 };
	static uint8_t *at[N];
	static uint32_t arena[N];
	static uint64_t offset[N];
	struct arenas a;
	arenas_init(&a, &hooks);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < N; i++) {
			uint64_t bytes = 64 + i % 7 * 200, align = i % 3 ? 64 : 4096;
			assert_int_equal(take(&a, bytes, align, &arena[i], &offset[i]), 0);
			assert_int_equal(offset[i] % align, 0);
			at[i] = arenas_at(&a, arena[i], offset[i]);
			for (uint64_t b = 0; b < bytes && !round; b++)
				assert_int_equal(at[i][b], 0); /* new memory */
			memset(at[i], (int)i, bytes);
		}
		for (unsigned i = 0; i < N; i++)
			for (uint64_t b = 0; b < 64 + i % 7 * 200; b++)
				assert_int_equal(at[i][b], (uint8_t)i);
		assert_true(a.n <= 4);
		for (unsigned i = 0; i < N; i++)
			arenas_give(&a, arena[i], offset[i], 64 + i % 7 * 200);
	}
	for (uint32_t i = 0; i < a.n; i++)
		assert_int_equal(intervals_total(&a.v[i].free), a.v[i].bytes);
	arenas_destroy(&a);
	assert_int_equal(regions, 0);
}

static void test_impossible_sizes(void **state)
{
	struct arenas a;
	uint32_t arena;
	uint64_t offset;
	arenas_init(&a, &hooks);
	assert_int_equal(arenas_take(&a, 0, 64, &arena, &offset), -EINVAL);
	assert_int_equal(arenas_take(&a, UINT64_MAX, 64, &arena, &offset), -EINVAL);
	assert_int_equal(take(&a, 1ull << 39, 64, &arena, &offset), -ENOMEM);
	assert_int_equal(a.n, 0);
	assert_int_equal(arenas_take(&a, 3ull << 20, 64, &arena, &offset), -ENOBUFS);
	assert_int_equal(a.wanted, 3ull << 20);
	assert_int_equal(take(&a, 3ull << 20, 64, &arena, &offset), 0);
	arenas_destroy(&a);
	assert_int_equal(regions, 0);
}

static void test_stale_handles(void **state)
{
	struct handles h = { 0 };
	int x, y;
	uint32_t a = handles_add(&h, &x);
	assert_true(a != 0);
	assert_ptr_equal(handles_get(&h, a), &x);
	assert_null(handles_get(&h, 0));
	assert_null(handles_get(&h, a + 1));
	assert_null(handles_get(&h, UINT32_MAX));
	handles_remove(&h, a);
	assert_null(handles_get(&h, a));
	uint32_t b = handles_add(&h, &y);
	assert_int_not_equal(a, b);
	handles_remove(&h, a); /* not this one any more */
	assert_ptr_equal(handles_get(&h, b), &y);
	for (unsigned i = 0; i < 10000; i++) {
		handles_remove(&h, b);
		b = handles_add(&h, &y);
		assert_true(b != 0);
	}
	assert_int_equal(h.count, 1);
	handles_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places_are_apart_and_reused),
		cmocka_unit_test(test_impossible_sizes),
		cmocka_unit_test(test_stale_handles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "mr.h"
#include "random.h"

#define RIGHTS_ALL (uint32_t)MEM_ACCESS_ALL

static const uint8_t seed[24] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24 };
static uint8_t memory[8192];
static struct pd pd, other_pd;

static struct mr_table *make_table(uint32_t max)
{
	struct mr_table *t;
	assert_int_equal(mr_table_new(&t, seed, max), 0);
	pd = (struct pd){ .id = 1 };
	other_pd = (struct pd){ .id = 2 };
	return t;
}

static struct mr *add(struct mr_table *t, void *host, uint64_t iova, uint64_t len, uint32_t access)
{
	struct mr *mr = NULL;
	assert_int_equal(mr_register(t, &pd, host, iova, len, access, MR_DIRECT, &mr), 0);
	return mr;
}

static enum mem_verdict check(const struct mr_table *t, uint32_t key, uint64_t addr, uint32_t len, uint32_t access)
{
	uint8_t *host;
	return mr_check(t, &pd, key, addr, len, access, &host);
}

static void test_names(void **state)
{
	for (int v = 0; v < MEM_VERDICT_COUNT; v++)
		for (int w = 0; w < v; w++)
			assert_string_not_equal(mem_verdict_name(v), mem_verdict_name(w));
	assert_non_null(mem_verdict_name(MEM_VERDICT_COUNT));
}

static void test_table_limits(void **state)
{
	struct mr_table *t;
	assert_int_equal(mr_table_new(&t, seed, 0), -EINVAL);
	assert_int_equal(mr_table_new(&t, seed, (1 << 20) + 1), -EINVAL);
	assert_int_equal(mr_table_new(&t, seed, 1 << 20), 0);
	mr_table_free(t);
	mr_table_free(NULL);
	mr_deregister(NULL, NULL);
}

static void test_a_registered_range_is_found_at_its_place(void **state)
{
	struct mr_table *t = make_table(16);
	struct mr *mr = add(t, memory + 64, 0x10000, 256, MEM_REMOTE_READ), *again;
	uint8_t *host = NULL;
	assert_int_equal(mr->len, 256);
	assert_int_equal(mr->kind, MR_DIRECT);
	assert_int_equal(pd.refs, 1);
	assert_int_equal(mr_table_count(t), 1);
	for (int twice = 0; twice < 2; twice++) { /* the second time out of the table's memory of recent keys */
		assert_int_equal(mr_check(t, &pd, mr->key, 0x10000 + 17, 200, MEM_REMOTE_READ, &host), MEM_OK);
		assert_ptr_equal(host, memory + 64 + 17);
		assert_ptr_equal(mr_find(t, mr->key), mr);
	}
	assert_int_equal(mr_register(t, &pd, memory, 0x10000, 256, MEM_LOCAL_READ, MR_POOL, &again), 0);
	assert_int_not_equal(again->key, mr->key);
	assert_int_equal(again->kind, MR_POOL);
	mr_deregister(t, mr);
	assert_int_equal(pd.refs, 1);
	assert_int_equal(check(t, again->key, 0x10000, 1, 0), MEM_OK);
	mr_table_free(t);
}

static void test_registration_refuses_unsound_access(void **state)
{
	struct mr_table *t = make_table(64);
	struct mr *mr;
	for (uint32_t access = 0; access < MEM_FLUSH_PERSISTENT; access++) {
		bool is_remote = access & (MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC);
		bool is_sound = !(access & ~(RIGHTS_ALL | MEM_MW_BIND)) && (!is_remote || (access & MEM_LOCAL_WRITE));
		uint32_t refs = pd.refs;
		assert_int_equal(mr_register(t, &pd, memory, 0, 64, access, MR_DIRECT, &mr), is_sound ? 0 : -EINVAL);
		assert_int_equal(pd.refs, refs + is_sound);
	}
	assert_int_equal(mr_register(t, &pd, memory, 0, 64, 1u << 31, MR_DIRECT, &mr), -EINVAL);
	assert_int_equal(mr_register(t, &pd, memory, 0, 64, RIGHTS_ALL | MEM_FLUSH_PERSISTENT, MR_DIRECT, &mr), -EOPNOTSUPP);
	mr_table_free(t);
}

/* known-bugs: 12 */
static void test_every_right_is_asked_for(void **state)
{
	struct mr_table *t = make_table(64);
	for (uint32_t granted = 0; granted <= MEM_ACCESS_ALL; granted++) {
		struct mr *mr;
		if (mr_register(t, &pd, memory, 0x1000, 64, granted, MR_DIRECT, &mr))
			continue;
		for (uint32_t wanted = 0; wanted <= MEM_ACCESS_ALL; wanted++)
			assert_int_equal(check(t, mr->key, 0x1000, 64, wanted), (wanted & ~granted) ? MEM_BAD_RIGHTS : MEM_OK);
	}
	mr_table_free(t);
}

/* known-bugs: 35 */
static void test_a_key_is_worth_nothing_in_another_domain(void **state)
{
	struct mr_table *t = make_table(16);
	struct mr *mr = add(t, memory, 0x1000, 64, RIGHTS_ALL);
	uint8_t *host;
	for (uint32_t wanted = 0; wanted <= MEM_ACCESS_ALL; wanted++)
		assert_int_equal(mr_check(t, &other_pd, mr->key, 0x1000, 8, wanted, &host), MEM_BAD_PD);
	assert_int_equal(mr_check(t, &pd, mr->key, 0x1000, 8, RIGHTS_ALL, &host), MEM_OK);
	mr_table_free(t);
}

/* Key, then PD, then rights, then range: each refusal with everything behind it wrong too. */
static void test_order_of_checks(void **state)
{
	struct mr_table *t = make_table(16);
	struct mr *mr = add(t, memory, 0x1000, 64, MEM_LOCAL_READ);
	uint8_t *host;
	assert_int_equal(mr_check(t, &other_pd, mr->key ^ 1, 0, 8, MEM_LOCAL_WRITE, &host), MEM_BAD_KEY);
	assert_int_equal(mr_check(t, &other_pd, mr->key, 0, 8, MEM_LOCAL_WRITE, &host), MEM_BAD_PD);
	assert_int_equal(mr_check(t, &pd, mr->key, 0, 8, MEM_LOCAL_WRITE, &host), MEM_BAD_RIGHTS);
	assert_int_equal(mr_check(t, &pd, mr->key, 0, 8, MEM_LOCAL_READ, &host), MEM_BAD_RANGE);
	mr_table_free(t);
}

/* known-bugs: V4 */
static void test_one_byte_before_and_after(void **state)
{
	static const uint64_t iovas[] = { 0, 1, 0x1000, 0x7fffffffffffffc0, 0x8000000000000000, 0xffffffffffffff00, 0xffffffffffffffc0 };
	struct mr_table *t = make_table(16);
	for (unsigned i = 0; i < sizeof(iovas) / sizeof(iovas[0]); i++) {
		uint64_t a = iovas[i];
		struct mr *mr = add(t, memory, a, 64, RIGHTS_ALL);
		for (uint32_t len = 1; len <= 64; len++) {
			assert_int_equal(check(t, mr->key, a, len, MEM_REMOTE_WRITE), MEM_OK);
			assert_int_equal(check(t, mr->key, a + 64 - len, len, MEM_REMOTE_WRITE), MEM_OK);
			assert_int_equal(check(t, mr->key, a - 1, len, MEM_REMOTE_WRITE), MEM_BAD_RANGE);
			assert_int_equal(check(t, mr->key, a + 64 - len + 1, len, MEM_REMOTE_WRITE), MEM_BAD_RANGE);
		}
		assert_int_equal(check(t, mr->key, a, 65, MEM_REMOTE_WRITE), MEM_BAD_RANGE);
		assert_int_equal(check(t, mr->key, a + 64, 1, MEM_REMOTE_WRITE), MEM_BAD_RANGE);
		mr_deregister(t, mr);
	}
	mr_table_free(t);
}

/* known-bugs: 27 */
static void test_nothing_wraps(void **state)
{
	static const uint64_t iovas[] = { 0, 0x1000, 0x7fffffff00000000, 0xfffffffffffff800, 0xfffffffffffffc00 };
	static const uint64_t addrs[] = { 0xfffffffffffffc00, 0xfffffffffffffc01, 0xffffffffffffffff, 0, 0x1000, 0x7fffffff00000000, 0x8000000000000000 };
	static const uint32_t lens[] = { 0x400, 0x401, 0x80000000, 0x80000001, 0xc0000000, 0xfffffffe, 0xffffffff };
	struct mr_table *t = make_table(16);
	for (unsigned i = 0; i < sizeof(iovas) / sizeof(iovas[0]); i++) {
		struct mr *mr = add(t, memory, iovas[i], 0x400, RIGHTS_ALL);
		for (unsigned a = 0; a < sizeof(addrs) / sizeof(addrs[0]); a++)
			for (unsigned l = 0; l < sizeof(lens) / sizeof(lens[0]); l++) {
				__uint128_t from = addrs[a], end = from + lens[l];
				bool is_inside = from >= iovas[i] && end <= (__uint128_t)iovas[i] + 0x400;
				assert_int_equal(check(t, mr->key, addrs[a], lens[l], MEM_REMOTE_WRITE), is_inside ? MEM_OK : MEM_BAD_RANGE);
			}
		mr_deregister(t, mr);
	}
	mr_table_free(t);
}

/* known-bugs: 27 */
static void test_registration_refuses_a_range_that_wraps(void **state)
{
	struct mr_table *t = make_table(16);
	struct mr *mr;
	assert_int_equal(mr_register(t, &pd, memory, 0xfffffffffffffc00, 0x401, 0, MR_DIRECT, &mr), -EINVAL);
	assert_int_equal(mr_register(t, &pd, memory, 0x1000, UINT64_MAX, 0, MR_DIRECT, &mr), -EINVAL);
	assert_int_equal(mr_register(t, &pd, (void *)(UINTPTR_MAX - 10), 0x1000, 12, 0, MR_DIRECT, &mr), -EINVAL);
	assert_int_equal(mr_register(t, &pd, memory, UINT64_MAX, 2, 0, MR_DIRECT, &mr), -EINVAL);
	assert_int_equal(mr_table_count(t), 0);
	assert_int_equal(pd.refs, 0);
	assert_int_equal(mr_register(t, &pd, memory, 0xfffffffffffffc00, 0x400, 0, MR_DIRECT, &mr), 0);
	mr_table_free(t);
}

/* More than 4 GiB: the offset in the MR needs 64 bits. Nothing is touched. */
static void test_a_region_beyond_4_gib(void **state)
{
	struct mr_table *t = make_table(16);
	struct mr *mr = add(t, (void *)0x1000, 0x1000, 1ull << 40, RIGHTS_ALL);
	uint8_t *host;
	assert_int_equal(mr_check(t, &pd, mr->key, 0x1000 + (1ull << 39), UINT32_MAX, MEM_REMOTE_READ, &host), MEM_OK);
	assert_int_equal((uintptr_t)host, 0x1000 + (1ull << 39));
	assert_int_equal(check(t, mr->key, 0x1000 + (1ull << 40) - UINT32_MAX, UINT32_MAX, 0), MEM_OK);
	assert_int_equal(check(t, mr->key, 0x1001 + (1ull << 40) - UINT32_MAX, UINT32_MAX, 0), MEM_BAD_RANGE);
	mr_table_free(t);
}

static void test_an_empty_region_grants_no_byte(void **state)
{
	struct mr_table *t = make_table(16);
	struct mr *mr = add(t, memory, 0x1000, 0, RIGHTS_ALL);
	for (int d = -1; d <= 1; d++)
		assert_int_equal(check(t, mr->key, 0x1000 + d, 1, 0), MEM_BAD_RANGE);
	mr_table_free(t);
}

/* known-bugs: 38 */
static void test_a_deregistered_key_is_dead_at_once_and_stays_so(void **state)
{
	struct mr_table *t = make_table(8);
	uint32_t stale[4096];
	for (unsigned i = 0; i < 4096; i++) {
		struct mr *mr = add(t, memory, 0x1000, 64, RIGHTS_ALL);
		stale[i] = mr->key;
		assert_int_equal(check(t, mr->key, 0x1000, 1, 0), MEM_OK);
		mr_deregister(t, mr);
		assert_int_equal(check(t, stale[i], 0x1000, 1, 0), MEM_BAD_KEY);
		assert_null(mr_find(t, stale[i]));
	}
	/* A table of 8 has 10 indices, so of 2,560 possible keys some come back; but none of the last 8 does. */
	struct mr *mr = add(t, memory, 0x1000, 64, RIGHTS_ALL);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(check(t, stale[4095 - i], 0x1000, 1, 0), MEM_BAD_KEY);
	assert_int_equal(check(t, mr->key, 0x1000, 1, 0), MEM_OK);
	mr_table_free(t);
}

static void test_other_low_bits_are_another_key(void **state)
{
	struct mr_table *t = make_table(16);
	struct mr *mr = add(t, memory, 0x1000, 64, RIGHTS_ALL);
	for (int warm = 0; warm < 2; warm++)
		for (uint32_t x = 1; x < 256; x++) {
			assert_int_equal(check(t, mr->key ^ x, 0x1000, 1, 0), MEM_BAD_KEY);
			assert_null(mr_find(t, mr->key ^ x));
			if (warm)
				assert_int_equal(check(t, mr->key, 0x1000, 1, 0), MEM_OK);
		}
	mr_table_free(t);
}

static void test_no_unregistered_key_is_found(void **state)
{
	struct mr_table *t = make_table(1024);
	struct rng r;
	rng_seed(&r, 7);
	for (unsigned i = 0; i < 600; i++)
		add(t, memory, 0x1000, 64, RIGHTS_ALL);
	assert_int_equal(check(t, 0, 0x1000, 1, 0), MEM_BAD_KEY);
	unsigned found = 0;
	for (unsigned i = 0; i < 1000000; i++) {
		uint32_t key = (uint32_t)rng_next(&r);
		struct mr *mr = mr_find(t, key);
		assert_true(!mr || mr->key == key);
		found += mr != NULL;
	}
	/* 600 of 2^32 keys live: 0.14 are expected in 10^6 guesses. */
	assert_true(found <= 4);
	mr_table_free(t);
}

/* Key 0 is nobody's even where the permutation maps a (dead or live) index to 0: every index of a table is tried. */
static void test_key_zero_is_never_valid(void **state)
{
	for (unsigned s = 0; s < 64; s++) {
		uint8_t some[24] = { 0 };
		struct mr_table *t;
		some[s % 24] = (uint8_t)(s / 24 * 100);
		assert_int_equal(mr_table_new(&t, some, 4096), 0);
		for (unsigned i = 0; i < 4096; i++) {
			struct mr *mr = add(t, memory, 0x1000, 64, RIGHTS_ALL);
			assert_int_not_equal(mr->key, 0);
			assert_ptr_equal(mr_find(t, mr->key), mr); /* now remembered as a recent one, which must end with it */
			if (i % 2)
				mr_deregister(t, mr);
			assert_null(mr_find(t, 0));
		}
		assert_int_equal(check(t, 0, 0x1000, 1, 0), MEM_BAD_KEY);
		mr_table_free(t);
	}
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* known-bugs: V1 */
static void test_the_next_key_cannot_be_guessed(void **state)
{
	enum { N = 10000 };
	static uint32_t key[N], stride[N], second[N];
	struct mr_table *t = make_table(N);
	unsigned seen_bits = 0;
	for (unsigned i = 0; i < N; i++)
		key[i] = add(t, memory, 0x1000, 64, RIGHTS_ALL)->key;
	for (unsigned i = 1; i < N; i++) {
		stride[i - 1] = key[i] - key[i - 1];
		seen_bits |= key[i] ^ key[i - 1];
	}
	for (unsigned i = 1; i + 1 < N; i++)
		second[i - 1] = stride[i] - stride[i - 1];
	assert_int_equal(seen_bits, 0xffffffff);
	/* A rule "last key plus or minus a constant", or "the last stride once more", would show as a value that comes often. By chance, a stride (of 2^25) comes 3 times in 10^4 at the most. */
	for (unsigned kind = 0; kind < 2; kind++) {
		uint32_t *v = kind ? second : stride;
		unsigned run = 1;
		qsort(v, N - 2, sizeof(*v), compare_u32);
		for (unsigned i = 1; i < N - 2; i++) {
			run = v[i] == v[i - 1] ? run + 1 : 1;
			assert_true(run <= 3);
		}
	}
	qsort(key, N, sizeof(*key), compare_u32);
	for (unsigned i = 1; i < N; i++)
		assert_int_not_equal(key[i] >> 8, key[i - 1] >> 8);
	/* Spread over all 24 bits: no 64th of the key space holds more than twice its share. */
	unsigned in_part[64] = { 0 };
	for (unsigned i = 0; i < N; i++)
		assert_true(++in_part[key[i] >> 26] < 2 * N / 64);
	mr_table_free(t);
}

/* known-bugs: V2, V3 */
static void test_two_seeds_give_unrelated_keys(void **state)
{
	uint8_t other[24];
	struct mr_table *a = make_table(4096), *b;
	memcpy(other, seed, sizeof(other));
	other[3] ^= 0x10;
	assert_int_equal(mr_table_new(&b, other, 4096), 0);
	unsigned same = 0;
	for (unsigned i = 0; i < 4096; i++)
		same += add(a, memory, 0, 64, 0)->key == add(b, memory, 0, 64, 0)->key;
	assert_true(same <= 2);
	mr_table_free(a);
	mr_table_free(b);
}

/* An index comes again only after min(1024, max / 4) others have been freed, and then with other low bits. */
static void check_rest(uint32_t max, uint32_t rest, uint32_t live)
{
	enum { CYCLES = 20000 };
	struct mr_table *t = make_table(max);
	uint32_t *freed_at = calloc(1u << 24, sizeof(*freed_at));
	uint8_t *low = calloc(1u << 24, 1);
	unsigned reused = 0;
	for (uint32_t i = 0; i + 1 < live; i++)
		add(t, memory, 0x1000, 64, 0);
	for (uint32_t now = 1; now <= CYCLES; now++) {
		struct mr *mr = add(t, memory, 0x1000, 64, 0);
		uint32_t upper = mr->key >> 8;
		if (freed_at[upper]) {
			reused++;
			/* frees after its own: now - 1 - freed_at */
			assert_true(now - 1 - freed_at[upper] >= rest);
			assert_int_not_equal(low[upper], (uint8_t)mr->key);
		}
		freed_at[upper] = now;
		low[upper] = (uint8_t)mr->key;
		mr_deregister(t, mr);
	}
	assert_true(reused >= CYCLES - rest - 1 - max); /* indices are used again at all */
	free(freed_at);
	free(low);
	mr_table_free(t);
}

static void test_a_freed_index_rests(void **state)
{
	static const struct { uint32_t max, rest, live; } cases[] = {
		{ 1, 0, 1 }, { 4, 1, 1 }, { 4, 1, 4 }, { 100, 25, 100 }, { 4096, 1024, 1 }, { 4096, 1024, 4096 }, { 10000, 1024, 5000 },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_rest(cases[i].max, cases[i].rest, cases[i].live);
}

/* Keys come from no more than the indices that had to exist: for one MR at a time 1,024 that rest, 1,024 to draw from, and its own. */
static void test_churn_does_not_grow_the_table(void **state)
{
	enum { CYCLES = 100000 };
	struct mr_table *t = make_table(1 << 20);
	uint8_t *seen = calloc(1u << 24, 1);
	unsigned indices = 0;
	for (unsigned i = 0; i < CYCLES; i++) {
		struct mr *mr = add(t, memory, 0x1000, 64, RIGHTS_ALL);
		indices += !seen[mr->key >> 8];
		seen[mr->key >> 8] = 1;
		assert_int_equal(check(t, mr->key, 0x1000, 64, RIGHTS_ALL), MEM_OK);
		mr_deregister(t, mr);
	}
	assert_int_equal(indices, 2049);
	assert_int_equal(mr_table_count(t), 0);
	assert_int_equal(pd.refs, 0);
	free(seen);
	mr_table_free(t);
}

static void test_full_is_full_and_one_goes_when_one_comes(void **state)
{
	enum { MAX = 3000 };
	static struct mr *mr[MAX];
	struct mr_table *t = make_table(MAX);
	struct mr *more, copy[MAX];
	for (unsigned i = 0; i < MAX; i++) {
		mr[i] = add(t, memory, i, 64, 0);
		copy[i] = *mr[i];
	}
	assert_int_equal(mr_register(t, &pd, memory, 0, 64, 0, MR_DIRECT, &more), -ENOSPC);
	assert_int_equal(mr_table_count(t), MAX);
	assert_int_equal(pd.refs, MAX);
	for (unsigned i = 0; i < 2 * MAX; i++) {
		mr_deregister(t, mr[i % MAX]);
		mr[i % MAX] = add(t, memory, i % MAX, 64, 0);
		assert_int_equal(mr_register(t, &pd, memory, 0, 64, 0, MR_DIRECT, &more), -ENOSPC);
	}
	/* None has moved, none has been mixed up. */
	for (unsigned i = 0; i < MAX; i++) {
		assert_int_equal(mr[i]->iova, copy[i].iova);
		assert_ptr_equal(mr_find(t, mr[i]->key), mr[i]);
	}
	mr_table_free(t);
}

/* A random history against a plain list. */
static void test_random_history(void **state)
{
	enum { SLOTS = 700 };
	struct { struct mr *mr; uint32_t key; uint64_t iova; unsigned freed_at; } live[SLOTS] = { { 0 } };
	unsigned frees = 0;
	struct mr_table *t = make_table(SLOTS);
	struct rng r;
	rng_seed(&r, 42);
	for (unsigned step = 0; step < 200000; step++) {
		unsigned i = (unsigned)rng_below(&r, SLOTS);
		if (!live[i].mr) {
			live[i].iova = rng_next(&r) >> 1;
			live[i].mr = add(t, memory, live[i].iova, 64, MEM_LOCAL_WRITE);
			live[i].key = live[i].mr->key;
		} else if (rng_below(&r, 3) == 0) {
			mr_deregister(t, live[i].mr);
			live[i].mr = NULL;
			live[i].freed_at = ++frees;
		}
		unsigned j = (unsigned)rng_below(&r, SLOTS);
		/* Until its index has rested a key is certain not to be another's. */
		if (live[j].mr || (live[j].key && frees - live[j].freed_at < SLOTS / 4)) {
			struct mr *found = mr_find(t, live[j].key);
			assert_ptr_equal(found, live[j].mr);
			if (found)
				assert_int_equal(check(t, live[j].key, live[j].iova + 63, 1, 0), MEM_OK);
		}
	}
	mr_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_table_limits),
		cmocka_unit_test(test_a_registered_range_is_found_at_its_place),
		cmocka_unit_test(test_registration_refuses_unsound_access),
		cmocka_unit_test(test_every_right_is_asked_for),
		cmocka_unit_test(test_a_key_is_worth_nothing_in_another_domain),
		cmocka_unit_test(test_order_of_checks),
		cmocka_unit_test(test_one_byte_before_and_after),
		cmocka_unit_test(test_nothing_wraps),
		cmocka_unit_test(test_registration_refuses_a_range_that_wraps),
		cmocka_unit_test(test_a_region_beyond_4_gib),
		cmocka_unit_test(test_an_empty_region_grants_no_byte),
		cmocka_unit_test(test_a_deregistered_key_is_dead_at_once_and_stays_so),
		cmocka_unit_test(test_other_low_bits_are_another_key),
		cmocka_unit_test(test_no_unregistered_key_is_found),
		cmocka_unit_test(test_key_zero_is_never_valid),
		cmocka_unit_test(test_the_next_key_cannot_be_guessed),
		cmocka_unit_test(test_two_seeds_give_unrelated_keys),
		cmocka_unit_test(test_a_freed_index_rests),
		cmocka_unit_test(test_churn_does_not_grow_the_table),
		cmocka_unit_test(test_full_is_full_and_one_goes_when_one_comes),
		cmocka_unit_test(test_random_history),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

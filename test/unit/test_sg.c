/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>

#include "random.h"
#include "sg.h"

enum { TOTAL = 32 * 33 / 2 + 100 };
static const uint8_t seed[24] = { 9 };
static uint8_t memory[8192], line[8192];
static struct pd pd = { 1, 0 }, other_pd = { 2, 0 };
static struct mr_table *table;
static struct mr *mr;
#define IOVA 0x700000000000

static int set_up(void **state)
{
	mr_table_new(&table, seed, 64);
	return mr_register(table, &pd, memory, IOVA, sizeof(memory), MEM_LOCAL_WRITE, MR_DIRECT, &mr);
}

static int tear_down(void **state)
{
	mr_table_free(table);
	return 0;
}

static void fill(uint8_t *at, uint32_t len, unsigned start)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = (uint8_t)((i + start) * 37 + (i >> 8));
}

/* 32 SGEs of different lengths, 0 among them (with a key that does not exist), in an order that is not that of the memory. where[i]: place in memory of byte i. */
static uint32_t make_sges(struct abi_sge sge[32], uint32_t *where)
{
	uint32_t total = 0;
	for (uint32_t i = 0; i < 32; i++) {
		uint32_t len = i % 5 == 3 ? 0 : 1 + i * 7 % 32;
		uint32_t at = (31 - i) * 200 + i;
		sge[i] = (struct abi_sge){ IOVA + at, len, len ? mr->key : 0xdead };
		for (uint32_t k = 0; k < len; k++)
			where[total++] = at + k;
	}
	return total;
}

static void test_total(void **state)
{
	struct abi_sge sge[32];
	assert_int_equal(sg_total(NULL, 0), 0);
	for (unsigned i = 0; i < 32; i++)
		sge[i] = (struct abi_sge){ 0, UINT32_MAX, 0 };
	assert_int_equal(sg_total(sge, 32), 32ull * UINT32_MAX);
}

/* Every place of the cut in two, gathered and scattered. */
static void test_every_split(void **state)
{
	struct abi_sge sge[32];
	uint32_t where[2048], total = make_sges(sge, where);
	assert_int_equal(total, sg_total(sge, 32));
	for (uint32_t cut = 0; cut <= total; cut++) {
		uint8_t got[2048];
		struct sg s;
		fill(memory, sizeof(memory), cut);
		sg_init(&s, sge, 32);
		assert_int_equal(sg_gather(&s, table, &pd, got, cut), MEM_OK);
		assert_int_equal(sg_gather(&s, table, &pd, got + cut, total - cut), MEM_OK);
		for (uint32_t i = 0; i < total; i++)
			assert_int_equal(got[i], memory[where[i]]);
		assert_int_equal(sg_gather(&s, table, &pd, got, 1), MEM_BAD_RANGE);

		uint8_t expected[sizeof(memory)];
		memcpy(expected, memory, sizeof(memory));
		fill(line, total, cut + 99);
		for (uint32_t i = 0; i < total; i++)
			expected[where[i]] = line[i];
		sg_init(&s, sge, 32);
		assert_int_equal(sg_scatter(&s, table, &pd, line, cut), MEM_OK);
		assert_int_equal(sg_scatter(&s, table, &pd, line + cut, total - cut), MEM_OK);
		assert_memory_equal(memory, expected, sizeof(memory));
	}
}

static void test_random_pieces_and_numbers_of_sges(void **state)
{
	struct abi_sge sge[32];
	uint32_t where[2048];
	struct rng r;
	rng_seed(&r, 3);
	make_sges(sge, where);
	for (unsigned round = 0; round < 2000; round++) {
		uint32_t n = (uint32_t)rng_below(&r, 33), total = (uint32_t)sg_total(sge, n);
		struct sg s;
		sg_init(&s, sge, n);
		for (uint32_t at = 0; at < total;) {
			uint32_t len = 1 + (uint32_t)rng_below(&r, total - at);
			uint8_t got[2048];
			assert_int_equal(sg_gather(&s, table, &pd, got, len), MEM_OK);
			for (uint32_t i = 0; i < len; i++)
				assert_int_equal(got[i], memory[where[at + i]]);
			at += len;
		}
		assert_int_equal(s.at, n);
	}
}

static void test_seek_everywhere(void **state)
{
	struct abi_sge sge[32];
	uint32_t where[2048], total = make_sges(sge, where);
	struct sg s, walked;
	sg_init(&s, sge, 32);
	sg_init(&walked, sge, 32);
	for (uint32_t at = 0; at <= total; at++) {
		uint32_t to = at * 31 % (total + 1); /* forwards and backwards */
		uint8_t got[2048];
		sg_seek(&s, to);
		assert_int_equal(sg_gather(&s, table, &pd, got, total - to), MEM_OK);
		for (uint32_t i = 0; i < total - to; i++)
			assert_int_equal(got[i], memory[where[to + i]]);
		/* The same cursor as by walking. */
		sg_seek(&s, at);
		assert_int_equal(s.at, walked.at);
		assert_int_equal(s.in_sge, walked.in_sge);
		if (at < total)
			assert_int_equal(sg_gather(&walked, table, &pd, got, 1), MEM_OK);
	}
	sg_seek(&s, (uint64_t)total + 1);
	uint8_t byte;
	assert_int_equal(sg_gather(&s, table, &pd, &byte, 1), MEM_BAD_RANGE);
}

static void test_seek_beyond_4_gib(void **state)
{
	struct abi_sge sge[3] = { { IOVA, UINT32_MAX, mr->key }, { IOVA, UINT32_MAX, mr->key }, { IOVA + 5, 8, mr->key } };
	uint8_t got;
	struct sg s;
	sg_init(&s, sge, 3);
	sg_seek(&s, 2ull * UINT32_MAX + 3);
	assert_int_equal(s.at, 2);
	assert_int_equal(sg_gather(&s, table, &pd, &got, 1), MEM_OK);
	assert_int_equal(got, memory[8]);
	sg_seek(&s, (uint64_t)UINT32_MAX + 4096);
	assert_int_equal(s.at, 1);
	assert_int_equal(s.in_sge, 4096);
}

/* known-bugs: 33 */
static void test_no_byte_needs_no_key(void **state)
{
	struct abi_sge sge[4] = { { 0xfffffffffffffff0, 0, 0xdead }, { 0, 0, 0 }, { IOVA, 4, mr->key }, { 1, 0, 7 } };
	uint8_t got[4] = { 0 };
	struct sg s;
	sg_init(&s, sge, 2);
	assert_int_equal(sg_gather(&s, table, &pd, got, 0), MEM_OK);
	assert_int_equal(sg_scatter(&s, table, &pd, got, 0), MEM_OK);
	assert_int_equal(sg_check(&s, table, &pd, 0, MEM_ACCESS_ALL), MEM_OK);
	assert_int_equal(sg_gather(&s, table, &pd, got, 1), MEM_BAD_RANGE);
	sg_init(&s, sge, 4);
	assert_int_equal(sg_gather(&s, table, &pd, got, 4), MEM_OK);
	assert_memory_equal(got, memory, 4);
	assert_int_equal(sg_check(&s, table, &pd, 0, MEM_ACCESS_ALL), MEM_OK);
	sg_init(&s, NULL, 0);
	assert_int_equal(sg_gather(&s, table, &pd, got, 0), MEM_OK);
	sg_seek(&s, 0);
	assert_int_equal(sg_scatter(&s, table, &pd, got, 1), MEM_BAD_RANGE);
}

/* known-bugs: 12, 35 */
static void test_each_refusal_stops_at_its_piece(void **state)
{
	struct mr *read_only, *foreign;
	uint8_t got[64];
	assert_int_equal(mr_register(table, &pd, memory, IOVA, 4096, MEM_LOCAL_READ, MR_DIRECT, &read_only), 0);
	assert_int_equal(mr_register(table, &other_pd, memory, IOVA, 4096, MEM_LOCAL_WRITE, MR_DIRECT, &foreign), 0);
	const struct { struct abi_sge sge; enum mem_verdict gather, scatter; } cases[] = {
		{ { IOVA, 16, read_only->key }, MEM_OK, MEM_BAD_RIGHTS },
		{ { IOVA, 16, foreign->key }, MEM_BAD_PD, MEM_BAD_PD },
		{ { IOVA, 16, mr->key ^ 1 }, MEM_BAD_KEY, MEM_BAD_KEY },
		{ { IOVA, 16, 0 }, MEM_BAD_KEY, MEM_BAD_KEY },
		{ { IOVA - 1, 16, mr->key }, MEM_BAD_RANGE, MEM_BAD_RANGE },
		{ { IOVA + sizeof(memory) - 15, 16, mr->key }, MEM_BAD_RANGE, MEM_BAD_RANGE },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct abi_sge sge[3] = { { IOVA + 100, 8, mr->key }, cases[i].sge, { IOVA + 300, 8, mr->key } };
		struct sg s, before;
		sg_init(&s, sge, 3);
		assert_int_equal(sg_gather(&s, table, &pd, got, 32), cases[i].gather);
		if (cases[i].gather != MEM_OK)
			assert_true(s.at == 1 && s.in_sge == 0);

		memset(memory, 0x11, sizeof(memory));
		memset(line, 0x22, sizeof(line));
		sg_init(&s, sge, 3);
		before = s;
		assert_int_equal(sg_check(&s, table, &pd, 32, MEM_LOCAL_WRITE), cases[i].scatter);
		assert_memory_equal(&s, &before, sizeof(s));
		assert_int_equal(memory[100], 0x11);
		assert_int_equal(sg_check(&s, table, &pd, 8, MEM_LOCAL_WRITE), MEM_OK);
		assert_int_equal(sg_scatter(&s, table, &pd, line, 32), cases[i].scatter);
		assert_true(s.at == 1 && s.in_sge == 0);
		assert_int_equal(memory[107], 0x22);
		for (unsigned k = 0; k < 100; k++)
			assert_int_equal(memory[k], 0x11);
		assert_int_equal(memory[300], 0x11);
	}
	mr_deregister(table, read_only);
	mr_deregister(table, foreign);
}

/* known-bugs: 27 */
static void test_an_sge_does_not_run_over_the_end_of_addresses(void **state)
{
	struct mr *last, *first;
	uint8_t got[64];
	struct sg s;
	assert_int_equal(mr_register(table, &pd, memory, 0xfffffffffffffc00, 0x400, MEM_LOCAL_WRITE, MR_DIRECT, &last), 0);
	assert_int_equal(mr_register(table, &pd, memory, 0, 0x400, MEM_LOCAL_WRITE, MR_DIRECT, &first), 0);
	struct abi_sge at_end = { 0xfffffffffffffff0, 0x10, last->key }, over = { 0xfffffffffffffff0, 0x20, last->key }, wrapped = { 0xfffffffffffffff0, 0x20, first->key };
	sg_init(&s, &at_end, 1);
	assert_int_equal(sg_gather(&s, table, &pd, got, 0x10), MEM_OK);
	sg_init(&s, &over, 1);
	assert_int_equal(sg_gather(&s, table, &pd, got, 0x20), MEM_BAD_RANGE);
	sg_init(&s, &wrapped, 1);
	sg_seek(&s, 0x10); /* address 0 of an MR that has address 0 */
	assert_int_equal(sg_gather(&s, table, &pd, got, 0x10), MEM_BAD_RANGE);
	assert_int_equal(sg_scatter(&s, table, &pd, got, 0x10), MEM_BAD_RANGE);
	assert_int_equal(sg_check(&s, table, &pd, 0x10, MEM_LOCAL_WRITE), MEM_BAD_RANGE);
	mr_deregister(table, last);
	mr_deregister(table, first);
}

/* known-bugs: 11, 38 */
static void test_the_mr_goes_between_two_pieces(void **state)
{
	struct mr *own;
	uint8_t block[128], got[128];
	struct sg s;
	fill(block, sizeof(block), 1);
	assert_int_equal(mr_register(table, &pd, block, IOVA, sizeof(block), MEM_LOCAL_WRITE, MR_DIRECT, &own), 0);
	struct abi_sge sge[2] = { { IOVA, 64, own->key }, { IOVA + 64, 64, own->key } };
	sg_init(&s, sge, 2);
	assert_int_equal(sg_gather(&s, table, &pd, got, 40), MEM_OK);
	mr_deregister(table, own);
	assert_int_equal(sg_gather(&s, table, &pd, got, 40), MEM_BAD_KEY);
	assert_true(s.at == 0 && s.in_sge == 40);
	assert_int_equal(sg_check(&s, table, &pd, 1, MEM_LOCAL_WRITE), MEM_BAD_KEY);
	memset(got, 0xee, sizeof(got));
	assert_int_equal(sg_scatter(&s, table, &pd, got, 88), MEM_BAD_KEY);
	for (unsigned i = 0; i < sizeof(block); i++)
		assert_int_not_equal(block[i], i ? 0xee : 0x100);
	/* Nor does another MR at the same place answer for the old key. */
	assert_int_equal(mr_register(table, &pd, block, IOVA, sizeof(block), MEM_LOCAL_WRITE, MR_DIRECT, &own), 0);
	assert_int_equal(sg_gather(&s, table, &pd, got, 40), MEM_BAD_KEY);
	mr_deregister(table, own);
}

static void test_place_every_length_and_alignment(void **state)
{
	static _Alignas(64) uint8_t to[512], expected[512];
	uint8_t from[512];
	fill(from, sizeof(from), 5);
	for (uint32_t align = 0; align < 64; align++)
		for (uint32_t len = 0; len <= 300; len++) {
			memset(to, 0xaa, sizeof(to));
			memset(expected, 0xaa, sizeof(expected));
			memcpy(expected + align, from + len % 7, len);
			mem_place(to + align, from + len % 7, len);
			assert_memory_equal(to, expected, sizeof(to));
		}
}

/* One thread places messages, another polls the last byte and then looks at all before it. Cannot prove the order, but fails when it is plainly wrong. */
enum { MESSAGES = 3000 };
static _Alignas(64) uint8_t shared[4096];
static uint32_t shared_taken;

static uint32_t length_of(uint32_t message)
{
	static const uint32_t lens[] = { 2, 8, 9, 63, 64, 65, 200, 1024, 3000, 4096 };
	return lens[message % 10];
}

static void *place_messages(void *arg)
{
	uint8_t from[4096];
	for (uint32_t m = 0; m < MESSAGES; m++) {
		memset(from, (uint8_t)(m % 255 + 1), sizeof(from));
		mem_place(shared, from, length_of(m));
		while (__atomic_load_n(&shared_taken, __ATOMIC_ACQUIRE) != m + 1)
			sched_yield();
	}
	return NULL;
}

static void test_last_byte_last(void **state)
{
	pthread_t thread;
	unsigned torn = 0;
	assert_int_equal(pthread_create(&thread, NULL, place_messages, NULL), 0);
	for (uint32_t m = 0; m < MESSAGES; m++) {
		uint32_t len = length_of(m);
		uint8_t value = (uint8_t)(m % 255 + 1);
		for (unsigned spins = 0; __atomic_load_n(&shared[len - 1], __ATOMIC_ACQUIRE) != value; spins++)
			if (spins % 1000 == 999)
				sched_yield();
		for (uint32_t i = 0; i < len; i++)
			torn += __atomic_load_n(&shared[i], __ATOMIC_RELAXED) != value;
		memset(shared, 0, sizeof(shared));
		__atomic_store_n(&shared_taken, m + 1, __ATOMIC_RELEASE);
	}
	pthread_join(thread, NULL);
	assert_int_equal(torn, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_total),
		cmocka_unit_test(test_every_split),
		cmocka_unit_test(test_random_pieces_and_numbers_of_sges),
		cmocka_unit_test(test_seek_everywhere),
		cmocka_unit_test(test_seek_beyond_4_gib),
		cmocka_unit_test(test_no_byte_needs_no_key),
		cmocka_unit_test(test_each_refusal_stops_at_its_piece),
		cmocka_unit_test(test_an_sge_does_not_run_over_the_end_of_addresses),
		cmocka_unit_test(test_the_mr_goes_between_two_pieces),
		cmocka_unit_test(test_place_every_length_and_alignment),
		cmocka_unit_test(test_last_byte_last),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows and MRs for fast registration in the table of keys: what a bind checks, what a bound key opens, and what ends it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mw.h"
#include "random.h"

#define IOVA 0x100000u
#define BYTES 4096u
#define ALL ((uint32_t)MEM_ACCESS_ALL | MEM_MW_BIND)
#define REMOTE ((uint32_t)MEM_REMOTE_WRITE | MEM_REMOTE_READ | MEM_REMOTE_ATOMIC)

static const uint8_t seed[24] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24 };
static uint8_t memory[BYTES];

struct fixture {
	struct mr_table *t;
	struct pd pd, other_pd;
	struct mw_list qp, other_qp;
	struct mr *mr;               /* all of `memory`, with all rights */
	struct mr *key[MR_KINDS];    /* MR_FAST, MW_TYPE_1, MW_TYPE_2: bound to nothing */
	uint32_t first[MR_KINDS];    /* the keys they began with */
};

static const enum mr_kind kinds[] = { MR_FAST, MW_TYPE_1, MW_TYPE_2 };

static void open_table(struct fixture *x)
{
	*x = (struct fixture){ 0 };
	assert_int_equal(mr_table_new(&x->t, seed, 5000), 0);
	assert_int_equal(mr_register(x->t, &x->pd, memory, IOVA, BYTES, ALL, MR_DIRECT, &x->mr), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(mw_allocate(x->t, &x->pd, kinds[i], &x->first[kinds[i]], &x->key[kinds[i]]), 0);
}

static void close_table(struct fixture *x)
{
	for (unsigned i = 0; i < 3; i++)
		mr_deregister(x->t, x->key[kinds[i]]);
	assert_int_equal(x->mr->bound, 0);
	assert_int_equal(x->qp.n, 0);
	mr_deregister(x->t, x->mr);
	assert_int_equal(x->pd.refs, 0);
	assert_int_equal(mr_table_count(x->t), 0);
	mr_table_free(x->t);
}

/* 256 bytes at 1024 of the MR, remote rights, the first key of this kind with other low bits. */
static struct mw_bind usual(struct fixture *x, enum mr_kind kind)
{
	struct mw_bind b = { .pd = &x->pd, .through = &x->qp, .key = x->first[kind] ^ 1, .lkey = x->mr->key, .addr = IOVA + 1024, .len = 256, .iova = 0x7000, .access = REMOTE };
	if (kind == MR_FAST)
		b.access |= MEM_LOCAL_WRITE;
	return b;
}

static enum bind_verdict bind(struct fixture *x, enum mr_kind kind, const struct mw_bind *b)
{
	return mw_bind(x->t, b, kind != MR_FAST);
}

static enum mem_verdict peer_asks(struct fixture *x, uint32_t key, uint64_t addr, uint32_t len, uint32_t access)
{
	uint8_t *host;
	return mr_check_remote(x->t, &x->pd, &x->qp, key, addr, len, access, &host);
}

/* Before it is bound a key opens nothing, whatever its low bits. */
static void test_an_unbound_key_is_none(void **state)
{
	struct fixture x;
	open_table(&x);
	for (unsigned i = 0; i < 3; i++)
		for (uint32_t low = 0; low < 256; low++) {
			assert_int_equal(peer_asks(&x, x.first[kinds[i]] ^ low, IOVA, 1, 0), MEM_BAD_KEY);
			assert_null(mr_find(x.t, x.first[kinds[i]] ^ low));
		}
	assert_int_equal(peer_asks(&x, 0, IOVA, 1, 0), MEM_BAD_KEY);
	assert_int_equal(x.pd.refs, 4);
	close_table(&x);
}

static void test_a_bound_key_opens_its_part(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		struct fixture x;
		uint8_t *host;
		open_table(&x);
		struct mw_bind b = usual(&x, kinds[i]);
		uint64_t from = kinds[i] == MR_FAST ? 0x7000 : IOVA + 1024;
		assert_int_equal(bind(&x, kinds[i], &b), BIND_OK);
		assert_int_equal(x.mr->bound, 1);
		assert_int_equal(mr_check_remote(x.t, &x.pd, &x.qp, b.key, from + 7, 249, MEM_REMOTE_WRITE, &host), MEM_OK);
		assert_ptr_equal(host, memory + 1024 + 7);
		assert_int_equal(peer_asks(&x, b.key, from - 1, 1, MEM_REMOTE_WRITE), MEM_BAD_RANGE);
		assert_int_equal(peer_asks(&x, b.key, from + 1, 256, MEM_REMOTE_WRITE), MEM_BAD_RANGE);
		assert_int_equal(peer_asks(&x, b.key ^ 1, from, 1, 0), MEM_BAD_KEY);
		assert_int_equal(mr_check_remote(x.t, &x.other_pd, &x.qp, b.key, from, 1, 0, &host), MEM_BAD_PD);
		/* through another QP */
		assert_int_equal(mr_check_remote(x.t, &x.pd, &x.other_qp, b.key, from, 1, MEM_REMOTE_READ, &host), kinds[i] == MW_TYPE_2 ? MEM_BAD_QP : MEM_OK);
		/* in an SGE: only what is an MR */
		assert_int_equal(mr_check(x.t, &x.pd, b.key, from, 1, MEM_LKEY, &host) == MEM_OK, kinds[i] == MR_FAST);
		assert_int_equal(mr_check(x.t, &x.pd, b.key, from, 1, MEM_LOCAL_WRITE, &host) == MEM_OK, kinds[i] == MR_FAST);
		close_table(&x);
	}
}

/* Only what was asked for, even if the MR has more. */
static void test_rights_of_a_window_are_its_own(void **state)
{
	for (uint32_t granted = 0; granted <= REMOTE; granted += 2) {
		struct fixture x;
		open_table(&x);
		struct mw_bind b = usual(&x, MW_TYPE_2);
		b.access = granted;
		assert_int_equal(bind(&x, MW_TYPE_2, &b), BIND_OK);
		for (uint32_t wanted = 0; wanted <= REMOTE; wanted += 2)
			assert_int_equal(peer_asks(&x, b.key, IOVA + 1024, 8, wanted), wanted & ~granted ? MEM_BAD_RIGHTS : MEM_OK);
		close_table(&x);
	}
}

/* Rights of the MR, rights asked for, what comes of it: for both types the same (IBA vol. 1, C10-73, C10-74). */
/* known-bugs: 36 */
static void test_rights_that_a_bind_needs(void **state)
{
	static const struct {
		uint32_t mr, mw;
		enum bind_verdict verdict;
	} rows[] = {
		{ ALL, REMOTE, BIND_OK },
		{ MEM_MW_BIND, 0, BIND_OK },
		{ MEM_ACCESS_ALL, 0, BIND_BAD_RIGHTS }, /* no MW_BIND */
		{ MEM_MW_BIND, MEM_REMOTE_READ, BIND_OK }, /* the MR's own remote rights do not matter */
		{ MEM_MW_BIND | MEM_LOCAL_WRITE, MEM_REMOTE_WRITE, BIND_OK },
		{ MEM_MW_BIND, MEM_REMOTE_WRITE, BIND_BAD_RIGHTS },
		{ MEM_MW_BIND | MEM_LOCAL_WRITE, MEM_REMOTE_ATOMIC, BIND_OK },
		{ MEM_MW_BIND | MEM_REMOTE_READ, MEM_REMOTE_ATOMIC, BIND_BAD_RIGHTS },
		{ ALL, MEM_LOCAL_WRITE, BIND_BAD_RIGHTS }, /* a window has no local rights */
		{ ALL, MEM_MW_BIND, BIND_BAD_RIGHTS },
		{ ALL, MEM_LKEY, BIND_BAD_RIGHTS },
		{ ALL, 1u << 31, BIND_BAD_RIGHTS },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned type = MW_TYPE_1; type <= MW_TYPE_2; type++) {
			struct fixture x;
			struct mr *mr;
			open_table(&x);
			assert_int_equal(mr_register(x.t, &x.pd, memory, IOVA, BYTES, rows[i].mr, MR_DIRECT, &mr), 0);
			struct mw_bind b = usual(&x, (enum mr_kind)type);
			b.lkey = mr->key;
			b.access = rows[i].mw;
			assert_int_equal(bind(&x, (enum mr_kind)type, &b), rows[i].verdict);
			assert_int_equal(mr->bound, rows[i].verdict == BIND_OK);
			mw_unbind(x.t, x.key[type]);
			mr_deregister(x.t, mr);
			close_table(&x);
		}
}

/* Registration needs local write for what is to be written, of both; no MW_BIND. */
static void test_rights_of_a_registration(void **state)
{
	struct fixture x;
	struct mr *mr;
	open_table(&x);
	assert_int_equal(mr_register(x.t, &x.pd, memory, IOVA, BYTES, MEM_REMOTE_READ, MR_DIRECT, &mr), 0);
	for (uint32_t access = 0; access < 64; access++) {
		struct mw_bind b = usual(&x, MR_FAST);
		b.access = access;
		bool is_sound = !(access & MEM_ZERO_BASED) && (!(access & (MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC)) || access & MEM_LOCAL_WRITE);
		assert_int_equal(bind(&x, MR_FAST, &b), is_sound ? BIND_OK : BIND_BAD_RIGHTS);
		mw_unbind(x.t, x.key[MR_FAST]);
		b.lkey = mr->key; /* without local write */
		assert_int_equal(bind(&x, MR_FAST, &b), is_sound && !(access & MEM_LOCAL_WRITE) ? BIND_OK : BIND_BAD_RIGHTS);
		mw_unbind(x.t, x.key[MR_FAST]);
	}
	mr_deregister(x.t, mr);
	close_table(&x);
}

/* known-bugs: 35 */
static void test_domains_of_a_bind(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		struct fixture x;
		struct mr *foreign_mr, *foreign_key;
		uint32_t key;
		open_table(&x);
		assert_int_equal(mr_register(x.t, &x.other_pd, memory, IOVA, BYTES, ALL, MR_DIRECT, &foreign_mr), 0);
		assert_int_equal(mw_allocate(x.t, &x.other_pd, kinds[i], &key, &foreign_key), 0);
		struct mw_bind b = usual(&x, kinds[i]);
		b.pd = &x.other_pd; /* the QP's */
		assert_int_equal(bind(&x, kinds[i], &b), BIND_NO_TARGET);
		b.lkey = foreign_mr->key; /* QP and MR */
		assert_int_equal(bind(&x, kinds[i], &b), BIND_NO_TARGET);
		b.pd = &x.pd; /* the MR's */
		assert_int_equal(bind(&x, kinds[i], &b), BIND_BAD_MR);
		b.key = key; /* MR and window */
		assert_int_equal(bind(&x, kinds[i], &b), BIND_NO_TARGET);
		b.lkey = x.mr->key; /* the window's */
		assert_int_equal(bind(&x, kinds[i], &b), BIND_NO_TARGET);
		mr_deregister(x.t, foreign_key);
		mr_deregister(x.t, foreign_mr);
		close_table(&x);
	}
}

/* known-bugs: 27 */
static void test_range_of_a_bind(void **state)
{
	static const struct {
		uint64_t addr, len;
		bool is_inside;
	} rows[] = {
		{ IOVA, BYTES, true }, { IOVA + BYTES - 1, 1, true }, { IOVA, BYTES + 1, false }, { IOVA - 1, 1, false }, { IOVA - 1, BYTES, false }, { IOVA + 1, BYTES, false },
		{ IOVA + BYTES, 1, false }, { IOVA, UINT64_MAX, false }, { UINT64_MAX, 2, false }, { 0, UINT64_MAX, false }, { IOVA + 8, UINT64_MAX - 7, false }, { 0xfffffffffffffc00, 0x400, false },
	};
	for (unsigned k = 0; k < 3; k++)
		for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct fixture x;
			open_table(&x);
			struct mw_bind b = usual(&x, kinds[k]);
			b.addr = rows[i].addr;
			b.len = rows[i].len;
			assert_int_equal(bind(&x, kinds[k], &b), rows[i].is_inside ? BIND_OK : BIND_BAD_RANGE);
			close_table(&x);
		}
	struct fixture x;
	open_table(&x);
	struct mw_bind b = usual(&x, MR_FAST);
	b.iova = UINT64_MAX - 254;
	assert_int_equal(bind(&x, MR_FAST, &b), BIND_BAD_RANGE);
	b.iova--;
	assert_int_equal(bind(&x, MR_FAST, &b), BIND_OK);
	assert_int_equal(peer_asks(&x, b.key, UINT64_MAX, 1, MEM_REMOTE_READ), MEM_OK);
	close_table(&x);
}

/* Type 1 again and again, and by no bytes to nothing; the others only when they are free (IBA vol. 1, o10-37.2.30, .40). */
/* known-bugs: 36 */
static void test_binding_again(void **state)
{
	struct fixture x;
	open_table(&x);
	for (unsigned i = 0; i < 3; i++) {
		bool is_type_1 = kinds[i] == MW_TYPE_1;
		struct mw_bind b = usual(&x, kinds[i]), again = b;
		uint32_t bound = x.mr->bound;
		again.key ^= 2;
		again.addr += 512;
		assert_int_equal(bind(&x, kinds[i], &b), BIND_OK);
		assert_int_equal(bind(&x, kinds[i], &again), is_type_1 ? BIND_OK : BIND_NOT_FREE);
		assert_int_equal(x.mr->bound, bound + 1);
		assert_int_equal(mr_find(x.t, b.key) != NULL, !is_type_1);
		assert_int_equal(mr_find(x.t, again.key) != NULL, is_type_1);
		b.len = 0;
		b.lkey = 0xdeadbeef; /* is not looked at */
		assert_int_equal(bind(&x, kinds[i], &b), is_type_1 ? BIND_OK : BIND_NOT_FREE);
		mw_unbind(x.t, x.key[kinds[i]]);
		assert_int_equal(x.mr->bound, bound);
		b.lkey = x.mr->key;
		assert_int_equal(bind(&x, kinds[i], &b), is_type_1 ? BIND_OK : BIND_BAD_RANGE);
		b.len = 8; /* the same byte once more */
		assert_int_equal(bind(&x, kinds[i], &b), BIND_OK);
		assert_int_equal(bind(&x, kinds[i], &b), is_type_1 ? BIND_OK : BIND_NOT_FREE);
	}
	close_table(&x);
}

static void test_zero_based(void **state)
{
	struct fixture x;
	open_table(&x);
	struct mw_bind b = usual(&x, MW_TYPE_1);
	b.access |= MEM_ZERO_BASED;
	assert_int_equal(bind(&x, MW_TYPE_1, &b), BIND_BAD_RIGHTS); /* IBA vol. 1, o10-36.2.2 */
	b.key = x.first[MW_TYPE_2];
	assert_int_equal(bind(&x, MW_TYPE_2, &b), BIND_OK);
	assert_int_equal(peer_asks(&x, b.key, 0, 256, MEM_REMOTE_READ), MEM_OK);
	assert_int_equal(peer_asks(&x, b.key, 0, 257, MEM_REMOTE_READ), MEM_BAD_RANGE);
	assert_int_equal(peer_asks(&x, b.key, IOVA + 1024, 1, MEM_REMOTE_READ), MEM_BAD_RANGE);
	close_table(&x);
}

/* A bind of the wrong kind, of an MR, of a window as if it were memory, of nobody. */
static void test_targets_that_are_none(void **state)
{
	struct fixture x;
	open_table(&x);
	for (unsigned i = 0; i < 3; i++) {
		struct mw_bind b = usual(&x, kinds[i]);
		assert_int_equal(mw_bind(x.t, &b, kinds[i] == MR_FAST), BIND_NO_TARGET);
		b.key = x.mr->key;
		assert_int_equal(mw_bind(x.t, &b, kinds[i] == MR_FAST), BIND_NO_TARGET);
		assert_int_equal(bind(&x, kinds[i], &b), BIND_NO_TARGET);
	}
	struct rng r;
	rng_seed(&r, 3);
	for (unsigned i = 0; i < 10000; i++) {
		struct mw_bind b = usual(&x, MW_TYPE_2);
		b.key = (uint32_t)rng_next(&r);
		assert_int_equal(bind(&x, MW_TYPE_2, &b), BIND_NO_TARGET);
	}
	struct mw_bind window = usual(&x, MW_TYPE_1), b = usual(&x, MR_FAST);
	assert_int_equal(bind(&x, MW_TYPE_1, &window), BIND_OK);
	b.lkey = window.key;
	assert_int_equal(bind(&x, MR_FAST, &b), BIND_BAD_MR);
	window.lkey = window.key; /* a window on itself */
	assert_int_equal(bind(&x, MW_TYPE_1, &window), BIND_BAD_MR);
	close_table(&x);
}

/* known-bugs: 37 */
static void test_what_can_be_invalidated(void **state)
{
	struct fixture x;
	open_table(&x);
	assert_null(mw_find_invalidable(x.t, &x.pd, &x.qp, x.mr->key));
	assert_null(mw_find_invalidable(x.t, &x.pd, &x.qp, 0));
	for (unsigned i = 0; i < 3; i++) {
		struct mw_bind b = usual(&x, kinds[i]);
		assert_null(mw_find_invalidable(x.t, &x.pd, &x.qp, b.key)); /* not bound */
		assert_int_equal(bind(&x, kinds[i], &b), BIND_OK);
		assert_null(mw_find_invalidable(x.t, &x.other_pd, &x.qp, b.key));
		assert_null(mw_find_invalidable(x.t, &x.pd, &x.qp, b.key ^ 4));
		assert_int_equal(mw_find_invalidable(x.t, &x.pd, &x.other_qp, b.key) != NULL, kinds[i] == MR_FAST);
		struct mr *found = mw_find_invalidable(x.t, &x.pd, &x.qp, b.key);
		assert_ptr_equal(found, kinds[i] == MW_TYPE_1 ? NULL : x.key[kinds[i]]);
		if (!found)
			continue;
		mw_unbind(x.t, found);
		assert_null(mr_find(x.t, b.key));
		assert_int_equal(peer_asks(&x, b.key, IOVA + 1024, 1, 0), MEM_BAD_KEY);
		assert_int_equal(bind(&x, kinds[i], &b), BIND_OK); /* with the same key again */
	}
	close_table(&x);
}

/* A window on an MR_FAST holds it as one on an MR does. */
/* known-bugs: 37 */
static void test_windows_on_a_registration(void **state)
{
	struct fixture x;
	open_table(&x);
	struct mw_bind r = usual(&x, MR_FAST), b = usual(&x, MW_TYPE_2);
	r.access = ALL;
	assert_int_equal(bind(&x, MR_FAST, &r), BIND_OK);
	b.lkey = r.key;
	b.addr = 0x7000 + 16;
	b.len = 240;
	assert_int_equal(bind(&x, MW_TYPE_2, &b), BIND_OK);
	assert_int_equal(x.key[MR_FAST]->bound, 1);
	assert_int_equal(x.mr->bound, 1);
	uint8_t *host;
	assert_int_equal(mr_check_remote(x.t, &x.pd, &x.qp, b.key, 0x7010, 1, MEM_REMOTE_WRITE, &host), MEM_OK);
	assert_ptr_equal(host, memory + 1024 + 16);
	assert_null(mw_find_invalidable(x.t, &x.pd, &x.qp, r.key));
	mw_unbind(x.t, x.key[MW_TYPE_2]);
	assert_non_null(mw_find_invalidable(x.t, &x.pd, &x.qp, r.key));
	close_table(&x);
}

/* A QP's windows end with it, and no others; one beyond the most is refused. */
static void test_windows_of_a_qp(void **state)
{
	static struct mr *mw[MW_PER_QP_MAX + 1];
	static uint32_t key[MW_PER_QP_MAX + 1];
	struct fixture x;
	open_table(&x);
	for (unsigned i = 0; i <= MW_PER_QP_MAX; i++) {
		struct mw_bind b = usual(&x, MW_TYPE_2);
		assert_int_equal(mw_allocate(x.t, &x.pd, MW_TYPE_2, &key[i], &mw[i]), 0);
		b.key = key[i];
		assert_int_equal(bind(&x, MW_TYPE_2, &b), i == MW_PER_QP_MAX ? BIND_TOO_MANY : BIND_OK);
		b.through = &x.other_qp;
		if (i == MW_PER_QP_MAX)
			assert_int_equal(bind(&x, MW_TYPE_2, &b), BIND_OK);
	}
	assert_int_equal(x.qp.n, MW_PER_QP_MAX);
	mr_deregister(x.t, mw[77]); /* out of the middle of the list */
	assert_int_equal(x.qp.n, MW_PER_QP_MAX - 1);
	mw_unbind_all(x.t, &x.qp);
	assert_int_equal(x.qp.n, 0);
	assert_int_equal(x.mr->bound, 1);
	assert_int_equal(peer_asks(&x, key[5], IOVA + 1024, 1, 0), MEM_BAD_KEY);
	assert_non_null(mr_find(x.t, key[MW_PER_QP_MAX]));
	mw_unbind_all(x.t, &x.qp); /* of nothing */
	for (unsigned i = 0; i <= MW_PER_QP_MAX; i++)
		if (i != 77)
			mr_deregister(x.t, mw[i]);
	close_table(&x);
}

/* No window gets the index whose key with low bits 0 would be key 0, wherever the permutation puts it. */
static void test_key_zero(void **state)
{
	for (unsigned s = 0; s < 64; s++) {
		static const uint8_t none[24];
		uint8_t some[24];
		struct mr_table *t;
		struct pd pd = { 0 };
		struct mr *mw;
		uint32_t key;
		memcpy(some, none, sizeof(some));
		some[s % 24] = (uint8_t)(s / 24 * 100);
		assert_int_equal(mr_table_new(&t, some, 4096), 0);
		for (unsigned i = 0; i < 4096; i++) {
			assert_int_equal(mw_allocate(t, &pd, MW_TYPE_2, &key, &mw), 0);
			assert_true(key >> 8 != 0);
		}
		assert_int_equal(mw_allocate(t, &pd, MW_TYPE_2, &key, &mw), -ENOSPC);
		assert_int_equal(pd.refs, 4096);
		mr_table_free(t);
	}
}

/* The index rests as an MR's does, and what comes after it is no window any more. */
static void test_an_index_after_a_window(void **state)
{
	struct mr_table *t;
	struct pd pd = { 0 };
	struct mw_list qp = { 0 };
	struct rng r;
	struct mr *mr, *mw, *of;
	uint32_t key;
	rng_seed(&r, 5);
	assert_int_equal(mr_table_new(&t, seed, 8), 0);
	assert_int_equal(mr_register(t, &pd, memory, IOVA, BYTES, ALL, MR_DIRECT, &of), 0);
	for (unsigned i = 0; i < 10000; i++) {
		assert_int_equal(mw_allocate(t, &pd, i % 2 ? MW_TYPE_2 : MR_FAST, &key, &mw), 0);
		struct mw_bind b = { .pd = &pd, .through = &qp, .key = key, .lkey = of->key, .addr = IOVA, .len = 8 };
		if (rng_below(&r, 2))
			assert_int_equal(mw_bind(t, &b, i % 2), BIND_OK);
		mr_deregister(t, mw);
		assert_null(mr_find(t, key));
		assert_int_equal(mw_bind(t, &b, i % 2), BIND_NO_TARGET);
		assert_int_equal(mr_register(t, &pd, memory, IOVA, BYTES, ALL, MR_DIRECT, &mr), 0);
		b.key = mr->key;
		assert_int_equal(mw_bind(t, &b, i % 2), BIND_NO_TARGET);
		assert_null(mr->through);
		assert_int_equal(mr->bound, 0);
		mr_deregister(t, mr);
	}
	assert_int_equal(of->bound, 0);
	assert_int_equal(qp.n, 0);
	assert_int_equal(pd.refs, 1);
	mr_table_free(t);
}

/* ---- what changes of an MR ---- */

static void test_changing_an_mr(void **state)
{
	static uint8_t other[64];
	struct fixture x;
	uint8_t *host;
	open_table(&x);
	uint32_t key = x.mr->key;
	assert_int_equal(mr_change(x.t, x.mr, &(struct mr_change){ .has_access = true, .access = MEM_REMOTE_READ }), 0);
	assert_int_equal(x.mr->key, key);
	assert_int_equal(peer_asks(&x, key, IOVA, 1, MEM_REMOTE_READ), MEM_OK);
	assert_int_equal(peer_asks(&x, key, IOVA, 1, MEM_REMOTE_WRITE), MEM_BAD_RIGHTS);
	assert_int_equal(mr_check(x.t, &x.pd, key, IOVA, 1, MEM_LKEY, &host), MEM_OK);
	assert_int_equal(mr_change(x.t, x.mr, &(struct mr_change){ .pd = &x.other_pd }), 0);
	assert_int_equal(x.other_pd.refs, 1);
	assert_int_equal(x.pd.refs, 3);
	assert_int_equal(peer_asks(&x, key, IOVA, 1, MEM_REMOTE_READ), MEM_BAD_PD);
	assert_int_equal(mr_change(x.t, x.mr, &(struct mr_change){ .pd = &x.pd, .has_memory = true, .host = other, .iova = 0, .len = 64, .kind = MR_POOL }), 0);
	assert_int_equal(x.mr->key >> 8, key >> 8);
	assert_int_not_equal(x.mr->key, key);
	assert_int_equal(peer_asks(&x, key, 0, 1, MEM_REMOTE_READ), MEM_BAD_KEY);
	assert_int_equal(mr_check_remote(x.t, &x.pd, NULL, x.mr->key, 3, 61, MEM_REMOTE_READ, &host), MEM_OK);
	assert_ptr_equal(host, other + 3);
	/* refused: everything is as it was */
	struct mr before = *x.mr;
	assert_int_equal(mr_change(x.t, x.mr, &(struct mr_change){ .has_access = true, .access = MEM_REMOTE_WRITE, .pd = &x.other_pd }), -EINVAL);
	assert_int_equal(mr_change(x.t, x.mr, &(struct mr_change){ .has_access = true, .access = MEM_LKEY }), -EINVAL);
	assert_int_equal(mr_change(x.t, x.mr, &(struct mr_change){ .has_memory = true, .host = other, .iova = UINT64_MAX, .len = 2 }), -EINVAL);
	assert_memory_equal(x.mr, &before, sizeof(before));
	close_table(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_unbound_key_is_none),
		cmocka_unit_test(test_a_bound_key_opens_its_part),
		cmocka_unit_test(test_rights_of_a_window_are_its_own),
		cmocka_unit_test(test_rights_that_a_bind_needs),
		cmocka_unit_test(test_rights_of_a_registration),
		cmocka_unit_test(test_domains_of_a_bind),
		cmocka_unit_test(test_range_of_a_bind),
		cmocka_unit_test(test_binding_again),
		cmocka_unit_test(test_zero_based),
		cmocka_unit_test(test_targets_that_are_none),
		cmocka_unit_test(test_what_can_be_invalidated),
		cmocka_unit_test(test_windows_on_a_registration),
		cmocka_unit_test(test_windows_of_a_qp),
		cmocka_unit_test(test_key_zero),
		cmocka_unit_test(test_an_index_after_a_window),
		cmocka_unit_test(test_changing_an_mr),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions of one poll core, their keys, and the one access check. mr_check is the only way from (key, address, length) to a byte.
 *
 * A key is a 24-bit index through a keyed permutation, then 8 random bits (DESIGN section 6); lkey and rkey of an MR are the same number. Key 0 is never
 * valid. An index rests before it is used again, and then has other low bits. One thread: the core's. */
#ifndef UROCE_MR_H
#define UROCE_MR_H

#include <stdbool.h>
#include <stdint.h>

#include "keys.h"
#include "pd.h"

/* Values are those of enum ibv_access_flags. */
enum mem_access {
	MEM_LOCAL_READ = 0, /* always granted: what sending asks for is MEM_LKEY */
	MEM_LOCAL_WRITE = 1 << 0,
	MEM_REMOTE_WRITE = 1 << 1, /* needs MEM_LOCAL_WRITE (IBA vol. 1, 10.6.3.1) */
	MEM_REMOTE_READ = 1 << 2,
	MEM_REMOTE_ATOMIC = 1 << 3, /* needs MEM_LOCAL_WRITE */
	MEM_FLUSH_GLOBAL = 1 << 8,
	MEM_ACCESS_ALL = 0x10f,
	MEM_FLUSH_PERSISTENT = 1 << 9, /* a QP may allow it, but nothing here is known to keep its bytes without power, so no memory grants it */
	MEM_MW_BIND = 1 << 4,       /* windows may be bound to it */
	MEM_ZERO_BASED = 1 << 5,    /* asked for by a bind: the window's first byte is addressed as 0 */
	MEM_LKEY = 1 << 15,         /* the table's: it may be named in SGEs, which a window may not */
};

/* Why an access is refused; MEM_OK grants it. */
enum mem_verdict { MEM_OK, MEM_BAD_KEY, MEM_BAD_PD, MEM_BAD_QP, MEM_BAD_RIGHTS, MEM_BAD_RANGE, MEM_VERDICT_COUNT };
const char *mem_verdict_name(enum mem_verdict v);

enum mr_kind {
	MR_POOL,   /* in a memfd of the engine's, mapped on both sides */
	MR_DIRECT, /* any address of the process in which the core runs */
	/* Keys that have memory only while they are bound to a part of an MR (mw.h): */
	MR_FAST,
	MW_TYPE_1,
	MW_TYPE_2, /* 2B */
	MR_KINDS
};

struct mw_list;

/* What a key names. One cache line is all that an access looks at. */
struct mr {
	_Alignas(64) uint64_t iova; /* the address that WRs and peers use for the first byte */
	uint64_t len;    /* bytes; may be 0: then only zero-length accesses are granted */
	uint8_t *host;   /* the core's own address of the first byte */
	struct pd *pd;
	struct mw_list *through; /* MW_TYPE_2: of the QP that it is bound on, and only through it can it be used; NULL: any QP of the PD */
	uint32_t key;    /* 0: dead, or not bound */
	uint32_t access; /* enum mem_access */
	uint32_t bound;  /* windows and MR_FASTs that are bound to it: it can neither go nor change before them */
	uint8_t kind;    /* enum mr_kind */
};
_Static_assert(sizeof(struct mr) == 64, "one cache line");

struct mr_table;

/* seed: 24 unpredictable bytes. max: most MRs at one time, at most 2^20. Memory follows the MRs that exist. 0, -EINVAL, -ENOMEM. */
int mr_table_new(struct mr_table **out, const uint8_t seed[24], uint32_t max);
void mr_table_free(struct mr_table *t);
uint32_t mr_table_count(const struct mr_table *t);

/* Registers [host, host + len) under iova. 0; -EOPNOTSUPP: MEM_FLUSH_PERSISTENT; -EINVAL: unknown access bits, remote write or atomic without local write, or a range that wraps 2^64;
 * -ENOSPC: the table is full; -ENOMEM. Takes a reference to pd. The mr stays at its address until mr_deregister. */
int mr_register(struct mr_table *t, struct pd *pd, void *host, uint64_t iova, uint64_t len, uint32_t access, enum mr_kind kind, struct mr **out);
/* The key is dead at once. Nothing is bound to it. */
void mr_deregister(struct mr_table *t, struct mr *mr);
/* What changes of an MR that is neither bound nor bound to (IBA vol. 1, "Reregister Memory Region"): its PD, its rights, or the memory it names; then the key changes as well, so that who knows only the old one does not
 * reach the new memory. 0; -EOPNOTSUPP, -EINVAL as mr_register, and nothing has changed. */
struct mr_change {
	struct pd *pd;          /* NULL: as it is */
	bool has_access;
	uint32_t access;
	bool has_memory;
	void *host;
	uint64_t iova, len;
	enum mr_kind kind;
};
int mr_change(struct mr_table *t, struct mr *mr, const struct mr_change *to);
/* By its key, all 32 bits of it; NULL when it does not exist. */
struct mr *mr_find(const struct mr_table *t, uint32_t key);

/* The access check (IBA vol. 1, 10.6.3; known-bugs 12, 27, 33, 35): [addr, addr + len) of the MR of `key`, in protection domain `pd`, with every right in `access`.
 * On MEM_OK *host is the core's address of addr. len is at least 1, or 0 for a FLUSH: any other access of length zero is granted without a check, by the caller (IBA vol. 1,
 * 9.7.4.1.4 and o9-63), since it names no byte. Nothing wraps: len up to 2^32-1, addr any. Checks in the order key, PD, rights, range. */
enum mem_verdict mr_check(const struct mr_table *t, const struct pd *pd, uint32_t key, uint64_t addr, uint32_t len, uint32_t access, uint8_t **host);
/* The same for a key that a peer names, through a QP whose windows are `through`. */
enum mem_verdict mr_check_remote(const struct mr_table *t, const struct pd *pd, const struct mw_list *through, uint32_t key, uint64_t addr, uint32_t len, uint32_t access, uint8_t **host);

#endif

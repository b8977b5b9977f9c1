/* SPDX-License-Identifier: BSD-3-Clause */
/* The scatter/gather cursor. Owns the walk over the SGEs of one WQE; owns no memory and keeps no pointer into any, so each piece is
 * checked when it is touched (known-bugs 11, 38). Does not decide what a refusal means.
 *
 * Invariant between calls: at == num_sge, or in_sge < sge[at].len. SGEs without bytes are therefore never stood upon, and their
 * keys never looked at.
 *
 * IBA vol. 1, 10.8.3.1 (gather and scatter lists in order), 9.7.4.1.4 (nothing is checked for no byte). */
#include "sg.h"

#include <stdatomic.h>
#include <string.h>

#define CACHE_LINE 64u

static void skip_finished(struct sg *s)
{
	while (s->at < s->num_sge && s->in_sge == s->sge[s->at].len) {
		s->at++;
		s->in_sge = 0;
	}
}

void sg_init(struct sg *s, const struct abi_sge *sge, uint32_t num_sge)
{
	*s = (struct sg){ .sge = sge, .num_sge = num_sge };
	skip_finished(s);
}

uint64_t sg_total(const struct abi_sge *sge, uint32_t num_sge)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < num_sge; i++)
		total += sge[i].len;
	return total;
}

void sg_seek(struct sg *s, uint64_t offset)
{
	s->at = 0;
	while (s->at < s->num_sge && offset >= s->sge[s->at].len)
		offset -= s->sge[s->at++].len;
	/* Beyond the total there is nothing to stand upon. */
	s->in_sge = s->at < s->num_sge ? (uint32_t)offset : 0;
}

/* The next piece, at most max bytes of one SGE: *host and *len. The cursor stays. */
static enum mem_verdict find_piece(const struct sg *s, const struct mr_table *t, const struct pd *pd, uint32_t max, uint32_t access, uint8_t **host,
				   uint32_t *len)
{
	if (s->at == s->num_sge)
		return MEM_BAD_RANGE;
	const struct abi_sge *sge = &s->sge[s->at];
	uint64_t addr = sge->addr + s->in_sge;
	/* An SGE that runs over the end of the address space does not go on at its start. */
	if (addr < sge->addr)
		return MEM_BAD_RANGE;
	*len = sge->len - s->in_sge < max ? sge->len - s->in_sge : max;
	return mr_check(t, pd, sge->lkey, addr, *len, access, host);
}

static void pass_piece(struct sg *s, uint32_t len)
{
	s->in_sge += len;
	skip_finished(s);
}

enum mem_verdict sg_gather(struct sg *s, const struct mr_table *t, const struct pd *pd, uint8_t *to, uint32_t len)
{
	while (len) {
		uint8_t *host;
		uint32_t n;
		enum mem_verdict v = find_piece(s, t, pd, len, MEM_LKEY, &host, &n);
		if (v != MEM_OK)
			return v;
		memcpy(to, host, n);
		pass_piece(s, n);
		to += n;
		len -= n;
	}
	return MEM_OK;
}

enum mem_verdict sg_scatter(struct sg *s, const struct mr_table *t, const struct pd *pd, const uint8_t *from, uint32_t len)
{
	while (len) {
		uint8_t *host;
		uint32_t n;
		enum mem_verdict v = find_piece(s, t, pd, len, MEM_LOCAL_WRITE, &host, &n);
		if (v != MEM_OK)
			return v;
		mem_place(host, from, n);
		pass_piece(s, n);
		from += n;
		len -= n;
	}
	return MEM_OK;
}

enum mem_verdict sg_check(const struct sg *s, const struct mr_table *t, const struct pd *pd, uint32_t len, uint32_t access)
{
	struct sg walk = *s;
	while (len) {
		uint8_t *host;
		uint32_t n;
		enum mem_verdict v = find_piece(&walk, t, pd, len, access, &host, &n);
		if (v != MEM_OK)
			return v;
		pass_piece(&walk, n);
		len -= n;
	}
	return MEM_OK;
}

/* The last bytes in one store, which lies within a cache line: n is 1, 2, 4 or 8. */
static void store_last(uint8_t *to, const uint8_t *from, uint32_t n)
{
	/* Release fence: all bytes stored before become visible before these. A string instruction's stores too (Intel SDM vol. 3,
	 * 9.2.4 orders them before later stores). */
	atomic_thread_fence(memory_order_release);
	if (n == 8) {
		uint64_t v;
		memcpy(&v, from, 8);
		memcpy(to, &v, 8);
	} else if (n == 4) {
		uint32_t v;
		memcpy(&v, from, 4);
		memcpy(to, &v, 4);
	} else if (n == 2) {
		uint16_t v;
		memcpy(&v, from, 2);
		memcpy(to, &v, 2);
	} else {
		*to = *from;
	}
}

void mem_place(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (!len)
		return;
	/* Bytes of the last cache line that is touched; of these, the last power of two up to 8. */
	uint32_t in_line = ((uint32_t)((uintptr_t)to + len - 1) & (CACHE_LINE - 1)) + 1;
	uint32_t tail = in_line < len ? in_line : len;
	uint32_t last = tail >= 8 ? 8 : tail >= 4 ? 4 : tail >= 2 ? 2 : 1;
	uint32_t body = len - tail, middle = tail - last;
	if (body) {
		memcpy(to, from, body);
		/* Release fence: the earlier lines become visible before any byte of the last. */
		atomic_thread_fence(memory_order_release);
	}
	if (middle)
		memcpy(to + body, from + body, middle);
	store_last(to + body + middle, from + body + middle, last);
}

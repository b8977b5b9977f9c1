/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer's commands that write into its memory and look at it (peer.c has the list). Invariant: nothing in a line makes an access outside of the memory of `qp`. */
#include "peer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"

#define BYTES_MAX 256u /* of an answer */

static int do_fill(struct peer *p, const struct line *l)
{
	struct range r;
	if (!take_range(p, l, &r))
		return answer_error(-EINVAL);
	for (uint64_t i = 0; i < r.n; i++)
		pattern_fill(p->memory + r.at + i * r.stride, r.len, pattern_seed(0, r.seed + i, 0));
	return answer_ok();
}

static int do_zero(struct peer *p, const struct line *l)
{
	struct range r;
	if (!take_range(p, l, &r))
		return answer_error(-EINVAL);
	for (uint64_t i = 0; i < r.n; i++)
		memset(p->memory + r.at + i * r.stride, PATTERN_GUARD, r.len);
	return answer_ok();
}

/* The first slot with wrong bytes, or r->n; and the first of those bytes. */
static uint64_t find_wrong(const struct peer *p, const struct range *r, uint64_t *wrong)
{
	for (uint64_t i = 0; i < r->n; i++) {
		*wrong = pattern_check(p->memory + r->at + i * r->stride, r->len, pattern_seed(0, r->seed + i, 0));
		if (*wrong != PATTERN_FINE)
			return i;
	}
	return r->n;
}

static int do_check(struct peer *p, const struct line *l)
{
	struct range r;
	uint64_t wrong, slot, start_ms = now_ms(), limit_ms = number_of(l, "ms", 0);
	if (!take_range(p, l, &r))
		return answer_error(-EINVAL);
	while ((slot = find_wrong(p, &r, &wrong)) < r.n && now_ms() - start_ms < limit_ms)
		usleep(PAUSE_US);
	if (slot == r.n)
		return answer_ok();
	printf("error data wrong in slot %llu at byte %llu of %llu\n", (unsigned long long)slot, (unsigned long long)wrong, (unsigned long long)r.len);
	return -EIO;
}

static int do_untouched(struct peer *p, const struct line *l)
{
	struct range r;
	if (!take_range(p, l, &r))
		return answer_error(-EINVAL);
	for (uint64_t i = 0; i < r.n; i++) {
		uint64_t wrong = pattern_check_guard(p->memory + r.at + i * r.stride, r.len);
		if (wrong == PATTERN_FINE)
			continue;
		printf("error slot %llu: byte %llu was written to\n", (unsigned long long)i, (unsigned long long)wrong);
		return -EIO;
	}
	return answer_ok();
}

/* Which message slot i holds: its seed less the first one's; r->n slots, `of` messages. UINT64_MAX: none of them. */
static uint64_t find_message(const struct peer *p, const struct range *r, uint64_t i, uint64_t of)
{
	for (uint64_t k = 0; k < of; k++)
		if (pattern_check(p->memory + r->at + i * r->stride, r->len, pattern_seed(0, r->seed + k, 0)) == PATTERN_FINE)
			return k;
	return UINT64_MAX;
}

static int do_arrived(struct peer *p, const struct line *l)
{
	struct range r;
	uint64_t of = number_of(l, "of", 0);
	if (!take_range(p, l, &r) || of > 1 << 20)
		return answer_error(-EINVAL);
	printf("ok got=");
	for (uint64_t i = 0; i < r.n; i++) {
		uint64_t k = find_message(p, &r, i, of);
		printf(k == UINT64_MAX ? "-," : "%llu,", (unsigned long long)k);
	}
	printf("\n");
	return 0;
}

static int do_bytes(struct peer *p, const struct line *l)
{
	struct range r;
	if (!take_range(p, l, &r) || r.len > BYTES_MAX)
		return answer_error(-EINVAL);
	printf("ok hex=x"); /* never to be taken for a number */
	for (uint64_t i = 0; i < r.len; i++)
		printf("%02x", p->memory[r.at + i]);
	printf("\n");
	return 0;
}

static int do_word(struct peer *p, const struct line *l)
{
	uint64_t at = number_of(l, "at", 0), word = number_of(l, "set", 0);
	if (p->bytes < 8 || at > p->bytes - 8)
		return answer_error(-EINVAL);
	if (text_of(l, "set"))
		memcpy(p->memory + at, &word, 8);
	memcpy(&word, p->memory + at, 8);
	printf("ok word=%llu\n", (unsigned long long)word);
	return 0;
}

const struct command memory_commands[] = {
	{ "fill", do_fill }, { "zero", do_zero }, { "check", do_check }, { "untouched", do_untouched }, { "arrived", do_arrived }, { "bytes", do_bytes }, { "word", do_word }, { NULL, NULL },
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* In the place of a responder: the requests of a capture come in one by one, each followed by all that is sent because of it, and the answers are compared with those of the capture. Owns the departures of rxe that
 * test_golden.c lists. Invariant: what is in memory when a READ or atomic comes is what the capture's responder answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "host.h"
#include "replace.h"

#define SENT_MAX 4096u
#define RECV_BYTES 65536u
#define RNR_CODE_DEFAULT 12u

static bool is_rnr(const struct packet *p)
{
	return p->op->message == MESSAGE_ACKNOWLEDGE && p->aeth.syndrome >> 5 == 1;
}

/* What we sent, kept for comparing. */
struct sent {
	uint8_t *bytes;
	struct packet p;
};

struct log_of_sent {
	struct sent s[SENT_MAX];
	unsigned n;
};

static void keep(struct log_of_sent *l, const uint8_t *frame, uint32_t len)
{
	struct sent *s = &l->s[l->n++];
	assert_true(l->n <= SENT_MAX);
	s->bytes = malloc(len);
	memcpy(s->bytes, frame, len);
	assert_int_equal(packet_parse(&s->p, s->bytes, len, VLAN_NONE, NULL), DROP_NONE);
	assert_true(packet_is_icrc_ok(&s->p));
}

static void drop_log(struct log_of_sent *l)
{
	for (unsigned i = 0; i < l->n; i++)
		free(l->s[i].bytes);
	l->n = 0;
}

/* Whether the capture's responder refused a key or a range: at that PSN it answered NAK remote access error. */
static bool is_refused(const struct golden *g, unsigned responder, struct psn psn)
{
	for (unsigned i = 0; i < g->frames; i++)
		if (golden_is_response(&g->frame[i], responder) && golden_is_nak(&g->frame[i].p, 0x62) && psn_is_equal(g->frame[i].p.psn, psn))
			return true;
	return false;
}

bool golden_get_range(const struct packet *p, struct golden_range *r)
{
	if (p->op->flags & OPCODE_INVALIDATE)
		*r = (struct golden_range){ p->invalidate_rkey, 0, 0 };
	else
		*r = p->op->flags & OPCODE_RETH ? (struct golden_range){ p->reth.rkey, p->reth.va, p->reth.len } : (struct golden_range){ p->atomic.rkey, p->atomic.va, 8 };
	return p->op->flags & (OPCODE_RETH | OPCODE_ATOMIC | OPCODE_INVALIDATE);
}

/* Makes room for a range in the plan of its key; n: how many plans there are. */
static unsigned add_range(struct golden_region *plan, unsigned n, const struct golden_range *r, bool is_invalidated)
{
	unsigned k = 0;
	while (k < n && plan[k].captured_rkey != r->rkey)
		k++;
	if (k == n)
		plan[n++] = (struct golden_region){ .captured_rkey = r->rkey, .va = r->va, .len = r->len };
	assert_true(n <= GOLDEN_REGIONS);
	plan[k].is_window |= is_invalidated;
	if (is_invalidated)
		return n; /* it names no range */
	if (!plan[k].len)
		plan[k].va = r->va;
	uint64_t end = plan[k].va + plan[k].len > r->va + r->len ? plan[k].va + plan[k].len : r->va + r->len;
	plan[k].va = plan[k].va < r->va ? plan[k].va : r->va;
	plan[k].len = end - plan[k].va;
	return n;
}

void golden_register_regions(struct golden_host *h, const struct golden *g, unsigned requester)
{
	struct golden_region plan[GOLDEN_REGIONS + 1];
	struct golden_range r;
	unsigned n = 0;
	for (unsigned i = 0; i < g->frames; i++) {
		const struct packet *p = &g->frame[i].p;
		if (golden_is_request(&g->frame[i], requester) && golden_get_range(p, &r) && !is_refused(g, !requester, p->psn))
			n = add_range(plan, n, &r, p->op->flags & OPCODE_INVALIDATE);
	}
	for (unsigned k = 0; k < n; k++)
		if (plan[k].is_window)
			golden_host_window(h, plan[k].captured_rkey, plan[k].va, plan[k].len ? plan[k].len : 1);
		else
			golden_host_region(h, plan[k].captured_rkey, plan[k].va, plan[k].len);
}

struct golden_region *golden_find_region(struct golden_host *h, uint32_t captured_rkey)
{
	for (unsigned i = 0; i < h->regions; i++)
		if (h->region[i].captured_rkey == captured_rkey)
			return &h->region[i];
	return NULL;
}

/* What the capture's responder had in memory: what it answered. */
static void prepare_memory(struct golden_host *h, const struct golden *g, unsigned frame)
{
	const struct packet *q = &g->frame[frame].p;
	struct golden_range range;
	struct golden_region *r = golden_get_range(q, &range) ? golden_find_region(h, range.rkey) : NULL;
	if (!r || !(q->op->message == MESSAGE_READ_REQUEST || q->op->flags & OPCODE_ATOMIC))
		return;
	for (unsigned i = frame + 1; i < g->frames; i++) {
		const struct golden_frame *f = &g->frame[i];
		uint32_t offset = (f->p.psn.v - q->psn.v) & PSN_MASK;
		if (!golden_is_response(f, !g->frame[frame].side) || offset >= golden_psns(g, q))
			continue;
		if (f->p.op->message == MESSAGE_READ_RESPONSE)
			memcpy(r->memory + (range.va - r->va) + (uint64_t)offset * g->mtu, f->p.payload, f->p.payload_len);
		else if (f->p.op->message == MESSAGE_ATOMIC_ACKNOWLEDGE && !golden_is_repeated(g, frame))
			memcpy(r->memory + (range.va - r->va), &f->p.atomic_original, 8);
	}
}

/* Bytes of its message before a packet. */
static uint32_t bytes_before(const struct golden *g, unsigned requester, struct psn psn)
{
	uint32_t bytes = 0;
	for (unsigned i = 0; i < g->frames; i++) {
		const struct packet *p = &g->frame[i].p;
		if (!golden_is_request(&g->frame[i], requester) || !psn_is_before(p->psn, psn))
			continue;
		bytes = p->op->flags & OPCODE_LAST ? 0 : (p->op->flags & OPCODE_FIRST ? 0 : bytes) + p->payload_len;
	}
	return bytes;
}

/* Receives: as long as any message, but too short for one that the capture's responder refused. */
static void post_receives(struct golden_host *h, const struct golden *g, unsigned requester)
{
	static uint8_t into[RECV_BYTES];
	struct uroce_mr *mr;
	uint32_t len = RECV_BYTES;
	for (unsigned i = 0; i < g->frames; i++)
		if (golden_is_response(&g->frame[i], !requester) && (golden_is_nak(&g->frame[i].p, 0x63) || golden_is_nak(&g->frame[i].p, 0x61)))
			len = bytes_before(g, requester, g->frame[i].p.psn) + 1;
	assert_int_equal(uroce_mr_register(h->pd, into, sizeof(into), UROCE_ACCESS_LOCAL_WRITE, &mr), 0);
	struct uroce_sge sge = { (uintptr_t)into, len, uroce_mr_lkey(mr) };
	struct uroce_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	for (unsigned i = 0; i < GOLDEN_WRS / 2; i++)
		assert_int_equal(uroce_post_recv(h->qp, &wr, 1), 1);
}

static int first_answer(const struct golden *g, unsigned responder)
{
	for (unsigned i = 0; i < g->frames; i++)
		if (golden_is_response(&g->frame[i], responder))
			return (int)i;
	return -1;
}

/* The last RNR NAK of a responder: receives were posted after it. -1: none. */
static int last_rnr(const struct golden *g, unsigned responder)
{
	int last = -1;
	for (unsigned i = 0; i < g->frames; i++)
		if (golden_is_response(&g->frame[i], responder) && is_rnr(&g->frame[i].p))
			last = (int)i;
	return last;
}

static void answer_request(struct golden_host *h, struct log_of_sent *l, const struct golden *g, unsigned i)
{
	const struct golden_frame *f = &g->frame[i];
	struct golden_region *r;
	uint8_t frame[GOLDEN_FRAME_BYTES];
	struct golden_range range;
	uint32_t len;
	h->now = h->start + f->time_ns;
	prepare_memory(h, g, i);
	memcpy(frame, f->bytes, f->len);
	golden_set_qpn(frame, &f->p, uroce_qp_num(h->qp));
	if (golden_get_range(&f->p, &range)) {
		r = golden_find_region(h, range.rkey);
		golden_set_rkey(frame, &f->p, r && !is_refused(g, !f->side, f->p.psn) ? r->rkey : 0x5a5a5a5a);
	}
	if (g->is_wild)
		golden_ask_ack(frame, &f->p);
	golden_seal(frame, &f->p);
	golden_host_feed(h, frame, f->len);
	while ((len = golden_host_pull(h)))
		keep(l, h->frame, len);
}

/* A READ asked for again from its middle: another beginning than the first time. */
static bool is_partly_repeated(const struct golden *g, unsigned requester, struct psn psn)
{
	for (unsigned i = 0; i < g->frames; i++) {
		const struct packet *p = &g->frame[i].p;
		uint32_t offset = (psn.v - p->psn.v) & PSN_MASK;
		if (golden_is_request(&g->frame[i], requester) && p->op->message == MESSAGE_READ_REQUEST && offset < golden_psns(g, p) && golden_is_repeated(g, i))
			return true;
	}
	return false;
}

/* What of their answer is not ours, NULL when nothing. first: of their MSNs to ours. */
static const char *compare_answer(const struct golden *g, unsigned requester, const struct packet *ours, const struct packet *theirs, uint32_t msn_shift)
{
	uint8_t shifted[GOLDEN_FRAME_BYTES];
	struct packet p;
	uint32_t len = (uint32_t)(theirs->l3 - theirs->frame) + theirs->l3_len;
	memcpy(shifted, theirs->frame, len);
	if (theirs->op->flags & OPCODE_AETH)
		golden_set_msn(shifted, theirs, g->is_msn_odd ? ours->aeth.msn : (theirs->aeth.msn + msn_shift) & 0xffffff);
	if (golden_is_nak(theirs, 0x63))
		shifted[theirs->bth + 12 - theirs->frame] = 0x61;
	packet_parse(&p, shifted, len, VLAN_NONE, NULL);
	if (ours->op != p.op && ours->op->message == MESSAGE_READ_RESPONSE && p.op->message == MESSAGE_READ_RESPONSE && is_partly_repeated(g, requester, p.psn))
		return psn_is_equal(ours->psn, p.psn) && ours->payload_len == p.payload_len && !memcmp(ours->payload, p.payload, p.payload_len) ? NULL : "repeated READ response";
	return golden_compare(ours, &p);
}

/* The next of ours, from *k on, that is an ACK or is none. */
static const struct packet *next_sent(const struct log_of_sent *l, unsigned *k, bool wants_ack)
{
	while (*k < l->n && golden_is_ack(&l->s[*k].p) != wants_ack)
		++*k;
	return *k < l->n ? &l->s[(*k)++].p : NULL;
}

/* Whether the capture has the packet that an ACK is for. */
static bool is_requested(const struct golden *g, unsigned requester, struct psn psn)
{
	for (unsigned i = 0; i < g->frames; i++)
		if (golden_is_request(&g->frame[i], requester) && psn_is_equal(g->frame[i].p.psn, psn))
			return true;
	return false;
}

static void compare_answers(const struct golden *g, unsigned requester, const struct log_of_sent *l, struct golden_tally *t)
{
	unsigned other = 0, ack = 0;
	uint32_t msn_shift = g->is_wild ? UINT32_MAX : 0;
	const struct packet *ours, *before = NULL;
	for (unsigned i = 0; i < g->frames; i++) {
		const struct packet *theirs = &g->frame[i].p;
		if (!golden_is_response(&g->frame[i], !requester))
			continue;
		bool is_extra = before && is_rnr(before) && golden_is_nak(theirs, 0x60) && psn_is_equal(before->psn, theirs->psn);
		before = theirs;
		if (is_extra || (g->is_wild && golden_is_ack(theirs) && !is_requested(g, requester, theirs->psn)))
			continue;
		if (golden_is_ack(theirs)) {
			do
				ours = next_sent(l, &ack, true);
			while (ours && g->is_wild && !psn_is_equal(ours->psn, theirs->psn));
		} else {
			ours = next_sent(l, &other, false);
		}
		if (!ours)
			golden_fail(theirs, "we did not send this");
		if (msn_shift == UINT32_MAX && theirs->op->flags & OPCODE_AETH)
			msn_shift = (ours->aeth.msn - theirs->aeth.msn) & 0xffffff;
		const char *what = compare_answer(g, requester, ours, theirs, msn_shift);
		if (what)
			golden_fail(theirs, "%s", what);
		(*(golden_is_ack(theirs) ? &t->acks : &t->answers))++;
	}
	ours = next_sent(l, &other, false);
	if (!ours && !g->is_wild)
		ours = next_sent(l, &ack, true);
	if (ours)
		golden_fail(ours, "we sent one more");
}

void golden_replace_responder(const struct golden *g, unsigned responder, struct golden_tally *t)
{
	static struct log_of_sent l;
	struct golden_host h;
	int first = golden_first_request(g, !responder), answer = first_answer(g, responder), rnr = last_rnr(g, responder);
	bool is_ready = false;
	if (first < 0 || answer < 0)
		return;
	golden_place.side = responder;
	drop_log(&l); /* of a test that failed */
	struct golden_way way = golden_way_of(&g->frame[answer].p);
	golden_host_open(&h, g, &way, &(struct golden_qp){ UROCE_RC, .rq_psn = g->frame[first].p.psn.v, .rnr_timer = rnr < 0 ? RNR_CODE_DEFAULT : g->frame[rnr].p.aeth.syndrome & 0x1f });
	golden_register_regions(&h, g, !responder);
	for (unsigned i = 0; i < g->frames; i++) {
		if (!golden_is_request(&g->frame[i], !responder) || g->frame[i].is_lost)
			continue;
		if (!is_ready && (int)i > rnr)
			post_receives(&h, g, !responder);
		is_ready = (int)i > rnr;
		answer_request(&h, &l, g, i);
	}
	compare_answers(g, !responder, &l, t);
	t->responders++;
	drop_log(&l);
	golden_host_close(&h);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* In the place of a requester: each message of a capture becomes a WR when its first packet was sent, the answers of the capture come in at their times, and whatever is sent must be what the capture has at that PSN.
 * Owns the WRs. Invariant: all that the capture's requester sent and that belongs to a whole message is sent by us too, at least once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "host.h"
#include "replace.h"

#define BUFFER_BYTES (8u << 20)

/* One message. */
struct posted {
	struct psn first, last; /* PSNs, those of a READ's responses included */
	bool is_acked;          /* the capture's requester could know that it was done */
	bool is_done;           /* ours completed with success */
};

struct play {
	const struct golden *g;
	unsigned side;
	struct golden_host host;
	struct golden_region *buffer;
	uint64_t used;
	struct posted message[GOLDEN_WRS];
	unsigned messages;
	struct psn next;        /* beyond what was posted */
	bool is_over;           /* a message of which the capture has only the beginning */
	bool has_shift;
	uint32_t msn_shift;     /* of their MSNs to those of a connection that begins with the capture */
	bool *was_sent;         /* by frame of the capture */
};

/* The capture's first request with this PSN and opcode. */
static int find_request(const struct play *y, struct psn psn, const struct opcode *op)
{
	for (unsigned i = 0; i < y->g->frames; i++) {
		const struct golden_frame *f = &y->g->frame[i];
		if (golden_is_request(f, y->side) && psn_is_equal(f->p.psn, psn) && (!op || f->p.op == op))
			return (int)i;
	}
	return -1;
}

/* A READ that asks for the rest of one that the capture has. */
static bool is_rest_of_read(const struct play *y, const struct packet *p)
{
	for (unsigned i = 0; i < y->g->frames; i++) {
		const struct packet *q = &y->g->frame[i].p;
		uint32_t offset = (p->psn.v - q->psn.v) & PSN_MASK;
		if (golden_is_request(&y->g->frame[i], y->side) && q->op == p->op && offset < golden_psns(y->g, q) && p->reth.rkey == q->reth.rkey &&
		    p->reth.va == q->reth.va + (uint64_t)offset * y->g->mtu && p->reth.va + p->reth.len == q->reth.va + q->reth.len)
			return true;
	}
	return false;
}

static void check_sent(struct play *y, uint32_t len, struct golden_tally *t)
{
	struct packet p;
	assert_int_equal(packet_parse(&p, y->host.frame, len, VLAN_NONE, NULL), DROP_NONE);
	assert_true(packet_is_icrc_ok(&p));
	if (!(p.op->flags & OPCODE_REQUEST))
		return; /* an answer: the responder's business */
	int i = find_request(y, p.psn, p.op);
	if (i < 0 && p.op->message == MESSAGE_READ_REQUEST && is_rest_of_read(y, &p))
		return;
	if (i < 0)
		golden_fail(&p, "we sent this, and they did not");
	const char *what = golden_compare(&p, &y->g->frame[i].p);
	if (what)
		golden_fail(&y->g->frame[i].p, "%s", what);
	t->requests += !y->was_sent[i];
	y->was_sent[i] = true;
}

static void send_all(struct play *y, uint64_t until_ns, struct golden_tally *t)
{
	uint32_t len;
	while ((len = golden_host_wait(&y->host, until_ns)))
		check_sent(y, len, t);
}

/* ---- messages into WRs ---- */

static bool gather(struct play *y, const struct packet *first, struct uroce_send_wr *wr, uint32_t *bytes, uint32_t *psns)
{
	for (*bytes = *psns = 0;; ++*psns) {
		int i = find_request(y, psn_add(first->psn, *psns), NULL);
		if (i < 0)
			return false;
		const struct packet *p = &y->g->frame[i].p;
		assert_true(y->used + *bytes + p->payload_len <= BUFFER_BYTES);
		memcpy(y->buffer->memory + y->used + *bytes, p->payload, p->payload_len);
		*bytes += p->payload_len;
		if (!(p->op->flags & OPCODE_LAST))
			continue;
		wr->imm = p->immediate;
		wr->flags |= p->solicited ? UROCE_SEND_SOLICITED : 0;
		bool has_imm = p->op->flags & OPCODE_IMMEDIATE, is_write = p->op->message == MESSAGE_WRITE;
		wr->opcode = is_write ? (has_imm ? UROCE_OP_WRITE_WITH_IMM : UROCE_OP_WRITE) : has_imm ? UROCE_OP_SEND_WITH_IMM : UROCE_OP_SEND;
		if (p->op->flags & OPCODE_INVALIDATE) {
			wr->opcode = UROCE_OP_SEND_WITH_INV;
			wr->invalidate_rkey = p->invalidate_rkey;
		}
		++*psns;
		return true;
	}
}

static bool make_wr(struct play *y, const struct packet *p, struct uroce_send_wr *wr, uint32_t *bytes, uint32_t *psns)
{
	wr->remote_addr = p->reth.va;
	wr->rkey = p->reth.rkey;
	*psns = golden_psns(y->g, p);
	if (p->op->message == MESSAGE_READ_REQUEST) {
		wr->opcode = UROCE_OP_READ;
		*bytes = p->reth.len;
	} else if (p->op->flags & OPCODE_ATOMIC) {
		wr->opcode = p->op->message == MESSAGE_COMPARE_SWAP ? UROCE_OP_COMPARE_SWAP : UROCE_OP_FETCH_ADD;
		wr->remote_addr = p->atomic.va;
		wr->rkey = p->atomic.rkey;
		wr->swap = p->atomic.swap_or_add;
		wr->compare_add = wr->opcode == UROCE_OP_COMPARE_SWAP ? p->atomic.compare : p->atomic.swap_or_add;
		*bytes = 8;
	} else {
		return gather(y, p, wr, bytes, psns);
	}
	return true;
}

static void post_message(struct play *y, const struct packet *p)
{
	uint32_t bytes, psns;
	struct uroce_send_wr wr = { .wr_id = y->messages, .flags = UROCE_SEND_SIGNALED };
	if (!make_wr(y, p, &wr, &bytes, &psns)) {
		y->is_over = true;
		return;
	}
	struct uroce_sge sge = { y->buffer->va + y->used, bytes, uroce_mr_lkey(y->buffer->mr) };
	wr.sg_list = &sge;
	wr.num_sge = 1;
	y->used += bytes;
	assert_true(y->messages < GOLDEN_WRS && y->used <= BUFFER_BYTES);
	y->message[y->messages++] = (struct posted){ .first = p->psn, .last = psn_add(p->psn, psns - 1) };
	y->next = psn_add(p->psn, psns);
	assert_int_equal(uroce_post_send(y->host.qp, &wr, 1), 1);
}

/* ---- answers ---- */

static bool is_in(const struct posted *m, struct psn psn)
{
	return ((psn.v - m->first.v) & PSN_MASK) <= ((m->last.v - m->first.v) & PSN_MASK);
}

/* A positive answer covers everything before it; a READ or atomic only its own one, at its last packet. */
static void note_acked(struct play *y, const struct packet *p)
{
	for (unsigned i = 0; i < y->messages; i++) {
		struct posted *m = &y->message[i];
		int k = find_request(y, m->first, NULL);
		bool has_response = y->g->frame[k].p.op->message == MESSAGE_READ_REQUEST || y->g->frame[k].p.op->flags & OPCODE_ATOMIC;
		if (has_response ? psn_is_equal(m->last, p->psn) && !golden_is_ack(p) : !psn_is_before(p->psn, m->last))
			m->is_acked = true;
	}
}

/* Messages that were done when the answer was sent, in a connection that begins with the capture. */
static uint32_t count_done(const struct play *y, const struct packet *p)
{
	uint32_t n = 0;
	for (unsigned i = 0; i < y->messages; i++)
		n += psn_is_before(y->message[i].last, p->psn) || is_in(&y->message[i], p->psn);
	return n;
}

static void take_answer(struct play *y, const struct golden_frame *f)
{
	uint8_t frame[GOLDEN_FRAME_BYTES];
	const struct packet *p = &f->p;
	memcpy(frame, f->bytes, f->len);
	golden_set_qpn(frame, p, uroce_qp_num(y->host.qp));
	if (p->op->flags & OPCODE_AETH) {
		if (!y->has_shift && !(p->aeth.syndrome & 0xe0))
			y->msn_shift = count_done(y, p) - p->aeth.msn;
		y->has_shift = true;
		golden_set_msn(frame, p, (p->aeth.msn + y->msn_shift) & 0xffffff);
	}
	golden_seal(frame, p);
	golden_host_feed(&y->host, frame, f->len);
	if (!(p->op->flags & OPCODE_AETH) || !(p->aeth.syndrome & 0xe0))
		note_acked(y, p);
}

static void take_completions(struct play *y)
{
	struct uroce_wc wc;
	while (uroce_cq_poll(y->host.cq, &wc, 1) == 1)
		if (wc.status == UROCE_WC_SUCCESS)
			y->message[wc.wr_id].is_done = true;
}

static void check_end(struct play *y, struct golden_tally *t)
{
	for (unsigned i = 0; i < y->messages; i++) {
		const struct golden_frame *f = &y->g->frame[find_request(y, y->message[i].first, NULL)];
		if (y->message[i].is_acked != y->message[i].is_done)
			golden_fail(&f->p, "message %u was %sacknowledged, ours %s", i, y->message[i].is_acked ? "" : "not ", y->message[i].is_done ? "is done" : "is not done");
		t->completions += y->message[i].is_done;
	}
	for (unsigned i = 0; i < y->g->frames; i++) {
		const struct golden_frame *f = &y->g->frame[i];
		if (golden_is_request(f, y->side) && psn_is_before(f->p.psn, y->next) && find_request(y, f->p.psn, f->p.op) == (int)i && !golden_is_repeated(y->g, i) && !y->was_sent[i])
			golden_fail(&f->p, "they sent this, and we did not");
	}
}

void golden_replace_requester(const struct golden *g, unsigned side, struct golden_tally *t)
{
	int first = golden_first_request(g, side);
	if (first < 0)
		return;
	struct play *y = calloc(1, sizeof(*y));
	*y = (struct play){ .g = g, .side = side, .next = g->frame[first].p.psn, .has_shift = !g->is_wild, .was_sent = calloc(g->frames, sizeof(bool)) };
	golden_place.side = side;
	struct golden_way way = golden_way_of(&g->frame[first].p);
	golden_host_open(&y->host, g, &way, &(struct golden_qp){ UROCE_RC, .sq_psn = y->next.v, .rnr_timer = 12 });
	y->buffer = golden_host_region(&y->host, 0, 0x10000000, BUFFER_BYTES);
	for (unsigned i = 0; i < g->frames; i++) {
		const struct golden_frame *f = &g->frame[i];
		send_all(y, f->time_ns, t);
		if (golden_is_request(f, side) && psn_is_equal(f->p.psn, y->next) && f->p.op->flags & OPCODE_FIRST && !y->is_over)
			post_message(y, &f->p);
		send_all(y, f->time_ns, t);
		if (golden_is_response(f, !side) && !f->is_lost && (!g->is_wild || psn_is_before(f->p.psn, y->next))) /* a NIC's own capture may show an ACK before what it acknowledges */
			take_answer(y, f);
		send_all(y, f->time_ns, t);
		take_completions(y);
	}
	check_end(y, t);
	t->requesters++;
	golden_host_close(&y->host);
	free(y->was_sent);
	free(y);
}

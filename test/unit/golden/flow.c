/* SPDX-License-Identifier: BSD-3-Clause */
/* In the place of the sender and of the receiver of a flow of UC or UD, in which nothing is answered. As sender, each message of the capture becomes a WR and what is sent must be the capture's packets, one for one. As
 * receiver, the packets come in and the completions, the bytes and the 40 bytes before a datagram must be theirs. Invariant: one receive is posted all the time, and one message is in progress at most. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "host.h"
#include "replace.h"

#define MESSAGE_BYTES 65536u
#define GRH_BYTES 40u

static const enum uroce_service services[SERVICE_COUNT] = { [SERVICE_UC] = UROCE_UC, [SERVICE_UD] = UROCE_UD };

/* Receivers whose Q_Key is not that of what they are sent: a capture does not show it. */
static const struct {
	const char *file;
	uint32_t qkey;
} odd_qkeys[] = {
	{ "ud_wrongqkey_v4.pcap", 0x11111111 },
};

static uint32_t find_qkey(const struct packet *p)
{
	for (unsigned i = 0; i < sizeof(odd_qkeys) / sizeof(odd_qkeys[0]); i++)
		if (!strcmp(golden_place.file, odd_qkeys[i].file))
			return odd_qkeys[i].qkey;
	return p->deth.qkey;
}

/* ---- sending ---- */

/* Packets of the message that begins with frame `at`, 0: the capture has not all of them. bytes: its data. */
static unsigned gather(const struct golden *g, unsigned at, uint8_t *bytes, uint32_t *len)
{
	*len = 0;
	for (unsigned n = 0; at + n < g->frames; n++) {
		const struct packet *p = &g->frame[at + n].p;
		if (!psn_is_equal(p->psn, psn_add(g->frame[at].p.psn, n)) || !(p->op->flags & OPCODE_FIRST) != (n > 0))
			return 0;
		assert_true(*len + p->payload_len <= MESSAGE_BYTES);
		memcpy(bytes + *len, p->payload, p->payload_len);
		*len += p->payload_len;
		if (p->op->flags & OPCODE_LAST)
			return n + 1;
	}
	return 0;
}

static enum uroce_opcode find_opcode(const struct packet *last)
{
	bool has_imm = last->op->flags & OPCODE_IMMEDIATE;
	if (last->op->message == MESSAGE_WRITE)
		return has_imm ? UROCE_OP_WRITE_WITH_IMM : UROCE_OP_WRITE;
	return has_imm ? UROCE_OP_SEND_WITH_IMM : UROCE_OP_SEND;
}

static void post_message(struct golden_host *h, const struct packet *first, const struct packet *last, uint32_t len)
{
	struct golden_region *r = &h->region[0];
	struct uroce_sge sge = { r->va, len, uroce_mr_lkey(r->mr) };
	struct uroce_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = find_opcode(last), .flags = UROCE_SEND_SIGNALED | (last->solicited ? UROCE_SEND_SOLICITED : 0), .imm = last->immediate,
		.remote_addr = first->reth.va, .rkey = first->reth.rkey, .ah = h->ah, .remote_qpn = first->dqpn, .remote_qkey = first->deth.qkey };
	assert_int_equal(uroce_post_send(h->qp, &wr, 1), 1);
}

static void compare_sent(struct golden_host *h, const struct packet *theirs)
{
	struct packet p;
	uint32_t len = golden_host_pull(h);
	if (!len)
		golden_fail(theirs, "we did not send this");
	assert_int_equal(packet_parse(&p, h->frame, len, VLAN_NONE, NULL), DROP_NONE);
	assert_true(packet_is_icrc_ok(&p));
	const char *what = golden_compare(&p, theirs);
	if (what)
		golden_fail(theirs, "%s", what);
}

static void expect_sent(struct golden_host *h, const struct packet *p)
{
	struct uroce_wc wc;
	if (golden_host_pull(h))
		golden_fail(p, "we sent more than this");
	if (uroce_cq_poll(h->cq, &wc, 1) != 1 || wc.status != UROCE_WC_SUCCESS)
		golden_fail(p, "this did not complete");
}

void golden_replace_sender(const struct golden *g, struct golden_tally *t)
{
	struct golden_host h;
	const struct packet *first = &g->frame[0].p;
	struct golden_way way = golden_way_of(first);
	uint32_t len, n;
	golden_place.side = 0;
	golden_host_open(&h, g, &way, &(struct golden_qp){ services[first->op->service], .sq_psn = first->psn.v });
	uint8_t *bytes = golden_host_region(&h, 0, 0x10000000, MESSAGE_BYTES)->memory;
	struct psn next = first->psn;
	for (unsigned at = 0; at < g->frames && psn_is_equal(g->frame[at].p.psn, next) && (n = gather(g, at, bytes, &len)); at += n) {
		const struct packet *last = &g->frame[at + n - 1].p;
		post_message(&h, &g->frame[at].p, last, len);
		for (unsigned i = 0; i < n; i++)
			compare_sent(&h, &g->frame[at + i].p);
		expect_sent(&h, last);
		next = psn_add(next, n);
		t->sent += n;
	}
	golden_host_close(&h);
}

/* ---- receiving ---- */

struct taker {
	struct golden_host host;
	struct golden_region *into; /* where receives go */
	uint8_t bytes[MESSAGE_BYTES]; /* of the message in progress */
	uint32_t len;
	struct packet first;
};

static void post_receive(struct taker *k)
{
	struct uroce_sge sge = { k->into->va, MESSAGE_BYTES, uroce_mr_lkey(k->into->mr) };
	struct uroce_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	assert_int_equal(uroce_post_recv(k->host.qp, &wr, 1), 1);
}

static void feed(struct taker *k, const struct golden_frame *f)
{
	uint8_t frame[GOLDEN_FRAME_BYTES];
	struct golden_range range;
	memcpy(frame, f->bytes, f->len);
	if (!f->p.is_multicast)
		golden_set_qpn(frame, &f->p, uroce_qp_num(k->host.qp));
	if (golden_get_range(&f->p, &range))
		golden_set_rkey(frame, &f->p, golden_find_region(&k->host, range.rkey)->rkey);
	golden_seal(frame, &f->p);
	golden_host_feed(&k->host, frame, f->len);
	if (golden_host_pull(&k->host))
		golden_fail(&f->p, "we answered");
}

/* What lies before a datagram: its IP header, behind 20 bytes of nothing for IPv4. */
static bool is_header_right(const uint8_t *grh, const struct packet *p)
{
	static const uint8_t nothing[20];
	return p->ip_version == 6 ? !memcmp(grh, p->l3, GRH_BYTES) : !memcmp(grh, nothing, 20) && !memcmp(grh + 20, p->l3, 20);
}

/* The receive of the message that ends with p. */
static void check_receive(struct taker *k, const struct packet *p)
{
	struct uroce_wc wc;
	bool is_datagram = p->op->flags & OPCODE_DETH, is_write = p->op->message == MESSAGE_WRITE, has_imm = p->op->flags & OPCODE_IMMEDIATE;
	uint32_t header = is_datagram ? GRH_BYTES : 0, flags = (has_imm ? UROCE_WC_HAS_IMM : 0) | (is_datagram ? UROCE_WC_HAS_GRH : 0);
	if (uroce_cq_poll(k->host.cq, &wc, 1) != 1 || wc.status != UROCE_WC_SUCCESS)
		golden_fail(p, "the message did not arrive");
	if (wc.opcode != (is_write ? UROCE_WC_RECV_WRITE_WITH_IMM : UROCE_WC_RECV) || wc.byte_len != header + k->len || wc.flags != flags || (has_imm && wc.imm != p->immediate))
		golden_fail(p, "the completion says opcode %u, %u bytes, flags %u, immediate 0x%x", wc.opcode, wc.byte_len, wc.flags, wc.imm);
	if (is_datagram && (wc.src_qpn != p->deth.src_qpn || !is_header_right(k->into->memory, p)))
		golden_fail(p, "it came from QP 0x%x, by the completion", wc.src_qpn);
	if (!is_write && memcmp(k->into->memory + header, k->bytes, k->len))
		golden_fail(p, "the bytes are not the message's");
	post_receive(k);
}

static void take_packet(struct taker *k, const struct golden_frame *f, uint32_t qkey, struct golden_tally *t)
{
	const struct packet *p = &f->p;
	struct uroce_wc wc;
	feed(k, f);
	if (p->op->flags & OPCODE_FIRST) {
		k->len = 0;
		k->first = *p;
	}
	assert_true(k->len + p->payload_len <= MESSAGE_BYTES);
	memcpy(k->bytes + k->len, p->payload, p->payload_len);
	k->len += p->payload_len;
	if (!(p->op->flags & OPCODE_LAST) || (p->op->flags & OPCODE_DETH && p->deth.qkey != qkey)) {
		if (uroce_cq_poll(k->host.cq, &wc, 1))
			golden_fail(p, "something completed");
		return;
	}
	if (p->op->message == MESSAGE_SEND || p->op->flags & OPCODE_IMMEDIATE)
		check_receive(k, p);
	struct golden_region *r = p->op->message == MESSAGE_WRITE ? golden_find_region(&k->host, k->first.reth.rkey) : NULL;
	if (r && memcmp(r->memory + (k->first.reth.va - r->va), k->bytes, k->len))
		golden_fail(p, "memory is not what was written");
	t->received++;
}

void golden_replace_receiver(const struct golden *g, struct golden_tally *t)
{
	const struct packet *first = &g->frame[0].p;
	struct taker *k = calloc(1, sizeof(*k));
	struct golden_way way = golden_way_back(first);
	uint32_t qkey = find_qkey(first);
	golden_place.side = 1;
	golden_host_open(&k->host, g, &way, &(struct golden_qp){ services[first->op->service], .rq_psn = first->psn.v, .qkey = qkey });
	golden_register_regions(&k->host, g, 0);
	k->into = golden_host_region(&k->host, 0, 0x10000000, MESSAGE_BYTES);
	post_receive(k);
	for (unsigned i = 0; i < g->frames; i++)
		take_packet(k, &g->frame[i], qkey, t);
	t->flows++;
	golden_host_close(&k->host);
	free(k);
}

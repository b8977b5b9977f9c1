/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams: each WR is one packet to the AH that it names. Does not own the taking of WQEs (sq.c) or of receive WQEs (recv.c), nor the AHs (ud_ah.c).
 * IBA vol. 1, 9.8.3 (requests and responses of UD), 9.6.1.3.6, 10.2.4 (Q_Key), 11.4.2.1 (the 40 bytes of GRH); annex A17.4.5 (for IPv4 they are 20 bytes of nothing and the IPv4 header).
 *
 * An AH that is being resolved is waited for, a second at most, and holds back what is posted after it: completions are in post order. One whose next hop does not answer is no error of this QP's, which may talk to many
 * others: its datagrams are lost, counted, and complete. One that is not there is an error, and takes the QP to SQE. */
#include "ud.h"

#include "deliver.h"
#include "recv.h"
#include "req.h"

/* ---- sending ---- */

/* NULL: there is no such AH, or it is not this QP's to use (known-bugs 35), or not for that QP number: QPN_MULTICAST is for groups, and groups have no other (IBA vol. 1, 9.6.1.2.4; known-bugs 30). */
static struct ud_ah *find_ah(const struct qp *q, const struct wr *w)
{
	struct ud_ah *a = handles_get(q->ud.ahs, w->ah);
	if (!a || a->pd != q->pd || !w->remote_qpn || w->remote_qpn > QPN_MULTICAST)
		return NULL;
	return a->ah.is_group == (w->remote_qpn == QPN_MULTICAST) ? a : NULL;
}

/* The AH of the WR at the cursor, ready to be sent to. WRs that cannot be sent have failed or are lost. NULL: there is nothing to send now. */
static struct ud_ah *aim(struct qp *q)
{
	ud_ah_forget(q);
	for (unsigned lost = 0; lost < LOST_AT_ONCE; lost++) {
		struct wr *w = req_next(q);
		if (!w)
			return NULL;
		struct ud_ah *a = find_ah(q, w);
		if (!w->error_status && !a) {
			w->error_status = ABI_WC_LOC_QP_OP_ERR;
			w->error_cause = CAUSE_WQE_AH;
		}
		if (w->error_status) {
			qp_fail_send(q, (struct failure){ w->error_status, w->error_cause });
			return NULL;
		}
		if (a->ah.state == AH_READY)
			return a;
		if (a->ah.state == AH_RESOLVING) {
			ud_ah_wait(a, q);
			return NULL;
		}
		ah_ask_again(&a->ah, q->env->now_ns);
		req_lose(q);
	}
	req_pause(q);
	return NULL;
}

const struct ah *qp_next_ah(struct qp *q, uint32_t *dest_qpn)
{
	struct ud_ah *a = aim(q);
	if (!a)
		return NULL;
	*dest_qpn = q->flight.cursor->remote_qpn;
	return &a->ah;
}

uint32_t qp_tx_to(struct qp *q, const struct ah *ah, uint8_t *frame)
{
	struct wr *w = q->flight.cursor;
	bool has_imm = wr_kind_of(w)->has_imm;
	unsigned pad = -w->length & 3;
	struct bth b = {
		.op = opcode_find(SERVICE_UD, MESSAGE_SEND, OPCODE_FIRST | OPCODE_LAST | (has_imm ? OPCODE_IMMEDIATE : 0)), .dqpn = w->remote_qpn, .psn = w->first, .pkey = q->pkey,
		.solicited = w->flags & ABI_SEND_SOLICITED,
	};
	uint8_t *to = bth_write(template_lay(frame, &ah->template), &b, pad);
	to = deth_write(to, w->remote_qkey & QKEY_CONTROLLED ? q->attr.qkey : w->remote_qkey, q->qpn);
	if (has_imm)
		to = immediate_write(to, w->imm);
	if (!req_copy_payload(q, w, 0, to, w->length)) {
		qp_fail_send(q, (struct failure){ w->error_status, w->error_cause });
		return 0;
	}
	memset(to + w->length, 0, pad);
	uint32_t len = packet_finish(frame, &ah->template, to + w->length + pad);
	q->counter[QP_TX_BYTES] += w->length;
	req_sent_datagram(q);
	return len;
}

/* ---- receiving ---- */

/* The first 40 bytes of a receive: the IPv6 header, or nothing and the IPv4 header, as they came. */
static void write_grh(const struct packet *p, uint8_t *to)
{
	if (p->ip_version == 6) {
		memcpy(to, p->l3, GRH_BYTES);
		return;
	}
	memset(to, 0, 20);
	memcpy(to + 20, p->l3, 20);
}

/* Into one SGE, as most receives have. */
static enum mem_verdict place_whole(const struct qp *q, const struct packet *p, const struct abi_sge *sge)
{
	uint8_t *host;
	enum mem_verdict v = mr_check(q->env->mrs, q->source->pd, sge->lkey, sge->addr, GRH_BYTES + p->payload_len, MEM_LOCAL_WRITE, &host);
	if (v != MEM_OK)
		return v;
	write_grh(p, host);
	mem_place(host + GRH_BYTES, p->payload, p->payload_len);
	return MEM_OK;
}

static enum mem_verdict place_in_pieces(const struct qp *q, const struct packet *p, const struct recv_wr *r)
{
	uint8_t grh[GRH_BYTES];
	struct sg s;
	write_grh(p, grh);
	sg_init(&s, r->sge, r->num_sge);
	enum mem_verdict v = sg_scatter(&s, q->env->mrs, q->source->pd, grh, GRH_BYTES);
	return v == MEM_OK ? sg_scatter(&s, q->env->mrs, q->source->pd, p->payload, p->payload_len) : v;
}

static enum verdict place(const struct qp *q, const struct packet *p)
{
	const struct recv_wr *r = q->resp.recv;
	if (GRH_BYTES + (uint64_t)p->payload_len > r->room)
		return RECEIVE_TOO_SHORT;
	enum mem_verdict v = r->num_sge == 1 ? place_whole(q, p, r->sge) : place_in_pieces(q, p, r);
	return v == MEM_OK ? EXECUTE : RECEIVE_BAD_KEY;
}

enum verdict ud_rx(struct qp *q, const struct packet *p)
{
	if (p->deth.qkey != q->attr.qkey)
		return WRONG_QKEY;
	if (p->payload_len > 1u << q->mtu_log2)
		return WRONG_LENGTH;
	enum verdict v = deliver_take_receive(q);
	if (v == EXECUTE)
		v = place(q, p);
	if (v != EXECUTE)
		return v;
	q->counter[QP_RX_BYTES] += p->payload_len;
	q->resp.received = GRH_BYTES + p->payload_len;
	deliver_end_message(q, p);
	return EXECUTE;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. Which bytes a WQE and a CQE have is in lib/abi, which is what is read here. */
#include "lesson_show.h"

#include <inttypes.h>
#include <stdio.h>

#include "client.h"
#include "names.h"

static void print_bytes(const void *at, unsigned n)
{
	const uint8_t *b = at;
	for (unsigned i = 0; i < n; i++)
		printf("%s%02x", i % 16 ? i % 8 ? "" : " " : i ? "\n           " : "           ", b[i]);
	printf("\n");
}

void show_send_wqe(const struct player *p)
{
	uint32_t slot = (p->sent - 1) & (p->qp->sq.count - 1);
	const struct abi_send_wqe *w = (const void *)(p->qp->sq.slots + (size_t)slot * p->qp->sq.slot_bytes);
	printf("  WQE      SQ slot %u: wr_id %" PRIu64 ", opcode %u (%s), flags 0x%x%s\n", slot, w->wr_id, w->opcode, name_opcode(w->opcode), w->flags,
		w->flags & ABI_SEND_SIGNALED ? " (signaled)" : "");
	if (w->opcode >= ABI_OP_WRITE)
		printf("           remote address 0x%" PRIx64 ", rkey 0x%x\n", w->remote_addr, w->rkey);
	for (unsigned i = 0; i < w->num_sge && i < 2; i++)
		printf("           SGE %u: address 0x%" PRIx64 ", %u bytes, lkey 0x%x\n", i, w->sge[i].addr, w->sge[i].len, w->sge[i].lkey);
	print_bytes(w, sizeof(*w));
}

void show_recv_wqe(const struct player *p)
{
	uint32_t slot = (p->received - 1) & (p->qp->rq.count - 1);
	const struct abi_recv_wqe *w = (const void *)(p->qp->rq.slots + (size_t)slot * p->qp->rq.slot_bytes);
	printf("  WQE      RQ slot %u: wr_id %" PRIu64 "\n", slot, w->wr_id);
	for (unsigned i = 0; i < w->num_sge && i < 3; i++)
		printf("           SGE %u: address 0x%" PRIx64 ", %u bytes, lkey 0x%x\n", i, w->sge[i].addr, w->sge[i].len, w->sge[i].lkey);
	print_bytes(w, sizeof(*w));
}

void show_cqe(const struct player *p)
{
	uint32_t slot = p->cq->head & (p->cq->slots - 1);
	const struct abi_cqe *c = &p->cq->cqes[slot];
	printf("  CQE      CQ slot %u: wr_id %" PRIu64 ", status %u (%s), opcode %u (%s), %u bytes, QP 0x%x, phase %u\n", slot, c->wr_id, c->status, uroce_wc_status_str((enum uroce_wc_status)c->status), c->opcode,
		name_wc_opcode(c->opcode), c->byte_len, c->qpn, c->phase);
	print_bytes(c, sizeof(*c));
}

void show_wc(const struct uroce_wc *wc)
{
	printf("  WC       wr_id %" PRIu64 ", %s, %s, %u bytes, QP 0x%x\n", wc->wr_id, uroce_wc_status_str(wc->status), name_wc_opcode(wc->opcode), wc->byte_len, wc->qpn);
}

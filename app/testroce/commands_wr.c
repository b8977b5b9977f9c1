/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that post WRs and poll CQs: a program's data path, call by call. A WR takes the first bytes of an MR, and its wr_id is the number of WRs that its queue was given before. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "interrupt.h"
#include "lab.h"
#include "names.h"
#include "objects.h"

#define REMOTE_ACCESS (UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC)
#define QKEY 0x11111111u /* what qp open gives */
#define WORD 8u
#define WAIT_NS UINT64_C(10000000000) /* for WCs, */
#define LOOK_NS 1000000               /* which are looked for so often */

/* Of SGEs: an MR for REG_MR is named by the key that it was given, and addressed as what it was given. */
static bool take_memory(struct lab *lab, const struct value *v, uint64_t len, struct uroce_sge *sge)
{
	const struct object *mr = objects_get(&lab->objects, OBJECT_MR, v->number);
	if (mr)
		*sge = (struct uroce_sge){ mr->memory ? (uintptr_t)mr->memory : mr->base, (uint32_t)len, mr->memory ? uroce_mr_lkey(mr->mr) : mr->key };
	return mr != NULL;
}

static int say_posted(int posted, const char *what, struct object *o)
{
	if (posted != 1)
		return lab_fail("%s not posted: %s", what, posted == -EINVAL ? "the state or service of the QP, or an argument, does not allow it" : strerror(-posted));
	printf("wr_id %" PRIu64 "\n", o->next_wr++);
	return 0;
}

/* ---- receives ---- */

static int post_receive(struct lab *lab, const struct value *v, enum object_kind kind)
{
	struct object *o = objects_get(&lab->objects, kind, v[0].number), *mr = o ? objects_get(&lab->objects, OBJECT_MR, v[1].number) : NULL;
	struct uroce_sge sge;
	if (!mr || !take_memory(lab, &v[1], mr->bytes, &sge))
		return -ENOENT;
	struct uroce_recv_wr wr = { .wr_id = o->next_wr, .sg_list = &sge, .num_sge = 1 };
	return say_posted(kind == OBJECT_SRQ ? uroce_post_srq_recv(o->srq, &wr, 1) : uroce_post_recv(o->qp, &wr, 1), "receive", o);
}

static int receive_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return post_receive(lab, v, OBJECT_QP);
}

static int receive_srq(struct lab *lab, const struct value *v, unsigned given)
{
	return post_receive(lab, v, OBJECT_SRQ);
}

/* ---- sends ---- */

/* Posts a WR of QP v[0], with the first len bytes of MR v[1] if there is to be one. */
static int post(struct lab *lab, const struct value *v, uint64_t len, bool has_memory, struct uroce_send_wr *wr)
{
	struct object *qp = objects_get(&lab->objects, OBJECT_QP, v[0].number);
	struct uroce_sge sge;
	if (!qp || (has_memory && !take_memory(lab, &v[1], len, &sge)))
		return -ENOENT;
	wr->wr_id = qp->next_wr;
	wr->sg_list = &sge;
	wr->num_sge = has_memory;
	return say_posted(uroce_post_send(qp->qp, wr, 1), name_opcode(wr->opcode), qp);
}

static int send_qp(struct lab *lab, const struct value *v, unsigned given)
{
	struct uroce_send_wr wr = { .opcode = UROCE_OP_SEND };
	return post(lab, v, v[2].number, true, &wr);
}

static int send_imm(struct lab *lab, const struct value *v, unsigned given)
{
	struct uroce_send_wr wr = { .opcode = UROCE_OP_SEND_WITH_IMM, .imm = (uint32_t)v[3].number };
	return post(lab, v, v[2].number, true, &wr);
}

static int send_inv(struct lab *lab, const struct value *v, unsigned given)
{
	struct uroce_send_wr wr = { .opcode = UROCE_OP_SEND_WITH_INV, .invalidate_rkey = (uint32_t)v[3].number };
	return post(lab, v, v[2].number, true, &wr);
}

/* Without a QPN: to all that are in the group. */
static int send_to(struct lab *lab, const struct value *v, unsigned given)
{
	const struct object *ah = objects_get(&lab->objects, OBJECT_AH, v[3].number);
	struct uroce_send_wr wr = { .opcode = UROCE_OP_SEND, .ah = ah ? ah->ah : NULL, .remote_qpn = given > 4 ? (uint32_t)v[4].number : UROCE_QPN_MULTICAST, .remote_qkey = QKEY };
	return ah ? post(lab, v, v[2].number, true, &wr) : -ENOENT;
}

static int write_qp(struct lab *lab, const struct value *v, unsigned given)
{
	struct uroce_send_wr wr = { .opcode = UROCE_OP_WRITE, .remote_addr = v[3].number, .rkey = (uint32_t)v[4].number };
	return post(lab, v, v[2].number, true, &wr);
}

static int write_imm(struct lab *lab, const struct value *v, unsigned given)
{
	struct uroce_send_wr wr = { .opcode = UROCE_OP_WRITE_WITH_IMM, .remote_addr = v[3].number, .rkey = (uint32_t)v[4].number, .imm = (uint32_t)v[5].number };
	return post(lab, v, v[2].number, true, &wr);
}

static int read_qp(struct lab *lab, const struct value *v, unsigned given)
{
	struct uroce_send_wr wr = { .opcode = UROCE_OP_READ, .remote_addr = v[3].number, .rkey = (uint32_t)v[4].number };
	return post(lab, v, v[2].number, true, &wr);
}

static int fetch_add(struct lab *lab, const struct value *v, unsigned given)
{
	struct uroce_send_wr wr = { .opcode = UROCE_OP_FETCH_ADD, .remote_addr = v[2].number, .rkey = (uint32_t)v[3].number, .compare_add = v[4].number };
	return post(lab, v, WORD, true, &wr);
}

static int compare_swap(struct lab *lab, const struct value *v, unsigned given)
{
	struct uroce_send_wr wr = { .opcode = UROCE_OP_COMPARE_SWAP, .remote_addr = v[2].number, .rkey = (uint32_t)v[3].number, .compare_add = v[4].number, .swap = v[5].number };
	return post(lab, v, WORD, true, &wr);
}

static int atomic_write(struct lab *lab, const struct value *v, unsigned given)
{
	struct uroce_send_wr wr = { .opcode = UROCE_OP_ATOMIC_WRITE, .remote_addr = v[2].number, .rkey = (uint32_t)v[3].number };
	return post(lab, v, WORD, true, &wr);
}

static int flush_qp(struct lab *lab, const struct value *v, unsigned given)
{
	struct uroce_send_wr wr = { .opcode = UROCE_OP_FLUSH, .remote_addr = v[2].number, .rkey = (uint32_t)v[3].number, .flush = { (uint32_t)v[1].number, UROCE_FLUSH_GLOBAL, UROCE_FLUSH_RANGE } };
	return post(lab, v, 0, false, &wr);
}

/* ---- what is not sent ---- */

static int invalidate(struct lab *lab, const struct value *v, unsigned given)
{
	struct uroce_send_wr wr = { .opcode = UROCE_OP_LOCAL_INV, .invalidate_rkey = (uint32_t)v[1].number };
	return post(lab, v, 0, false, &wr);
}

/* Posts a BIND_MW or REG_MR that gives an object its next key, and says which. */
static int post_key(struct lab *lab, const struct value *v, enum uroce_opcode opcode, struct object *o, const struct object *mr, uint32_t access)
{
	struct uroce_bind to = { .addr = (uintptr_t)mr->memory, .len = v[3].number, .lkey = uroce_mr_lkey(mr->mr), .access = access, .iova = (uintptr_t)mr->memory };
	struct uroce_send_wr wr = { .opcode = opcode, .rkey = uroce_inc_rkey(o->key), .bind = &to };
	int err = post(lab, v, 0, false, &wr);
	if (err)
		return err;
	o->key = wr.rkey;
	o->base = to.addr;
	o->bytes = to.len;
	printf("key 0x%x\n", o->key);
	return 0;
}

static int bind_type_1(struct lab *lab, const struct value *v, struct object *mw, const struct object *mr)
{
	struct object *qp = objects_get(&lab->objects, OBJECT_QP, v[0].number);
	struct uroce_bind to = { .addr = (uintptr_t)mr->memory, .len = v[3].number, .lkey = uroce_mr_lkey(mr->mr), .access = REMOTE_ACCESS };
	int err = qp ? uroce_mw_bind(qp->qp, mw->mw, &to, qp->next_wr, UROCE_SEND_SIGNALED) : -ENOENT;
	if (!qp || say_posted(err ? err : 1, "BIND_MW", qp))
		return -ENOENT;
	mw->key = uroce_mw_rkey(mw->mw);
	printf("key 0x%x\n", mw->key);
	return 0;
}

static int bind_mw(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *mw = objects_get(&lab->objects, OBJECT_MW, v[1].number), *mr = mw ? objects_get(&lab->objects, OBJECT_MR, v[2].number) : NULL;
	if (!mr)
		return -ENOENT;
	return mw->type == UROCE_MW_TYPE_1 ? bind_type_1(lab, v, mw, mr) : post_key(lab, v, UROCE_OP_BIND_MW, mw, mr, REMOTE_ACCESS);
}

static int register_mr(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *to = objects_get(&lab->objects, OBJECT_MR, v[1].number), *mr = to ? objects_get(&lab->objects, OBJECT_MR, v[2].number) : NULL;
	if (!mr)
		return -ENOENT;
	if (to->memory)
		return lab_fail("mr %" PRIu64 " has memory of its own: expected one of mr alloc", v[1].number);
	return post_key(lab, v, UROCE_OP_REG_MR, to, mr, UROCE_ACCESS_LOCAL_WRITE | REMOTE_ACCESS);
}

/* ---- completions ---- */

static void print_wc(const struct uroce_wc *wc)
{
	printf("WC: wr_id %" PRIu64 ", QP 0x%x, %s", wc->wr_id, wc->qpn, uroce_wc_status_str(wc->status));
	if (wc->status != UROCE_WC_SUCCESS) {
		printf(" (%s)\n", uroce_wc_cause_str(wc->vendor_error));
		return;
	}
	printf(", %s, %u bytes", name_wc_opcode(wc->opcode), wc->byte_len);
	if (wc->flags & UROCE_WC_HAS_IMM)
		printf(", immediate %u", wc->imm);
	if (wc->flags & UROCE_WC_HAS_INVALIDATED)
		printf(", key 0x%x invalidated", wc->invalidated_rkey);
	if (wc->flags & UROCE_WC_HAS_GRH)
		printf(", 40 of them headers, from QP 0x%x", wc->src_qpn);
	printf("\n");
}

/* Without a count those that are there; else that many are waited for, a while. */
static int poll_cq(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *cq = objects_get(&lab->objects, OBJECT_CQ, v[0].number);
	uint64_t wanted = given > 1 ? v[1].number : 0, all = 0, end_ns = end_now() + WAIT_NS;
	struct uroce_wc wc;
	int n;
	if (!cq)
		return -ENOENT;
	while ((n = uroce_cq_poll(cq->cq, &wc, 1)) > 0 || (!n && all < wanted && end_now() < end_ns && !interrupt_is_there())) {
		if (n)
			print_wc(&wc);
		else
			nanosleep(&(struct timespec){ 0, LOOK_NS }, NULL);
		all += (uint64_t)n;
	}
	if (n < 0)
		return lab_fail("cq %" PRIu64 ": %s", v[0].number, strerror(-n));
	if (all < wanted)
		return lab_fail("%" PRIu64 " of %" PRIu64 " WCs came: the others were not waited for any longer", all, wanted);
	if (!all)
		printf("no WC\n");
	return 0;
}

const struct command commands_wr[] = {
	{ "qp recv <qp> <mr>", receive_qp, "a receive into an MR" },
	{ "srq recv <srq> <mr>", receive_srq, "the same to an SRQ" },
	{ "qp send <qp> <mr> <bytes>", send_qp, "a SEND" },
	{ "qp send-imm <qp> <mr> <bytes> <imm>", send_imm, "a SEND with immediate" },
	{ "qp send-inv <qp> <mr> <bytes> <rkey>", send_inv, "a SEND that invalidates a key of the peer's" },
	{ "qp send-to <qp> <mr> <bytes> <ah> [<qpn>]", send_to, "UD: a SEND to a QP there, or to a group" },
	{ "qp write <qp> <mr> <bytes> <remote> <rkey>", write_qp, "a WRITE" },
	{ "qp write-imm <qp> <mr> <bytes> <remote> <rkey> <imm>", write_imm, "a WRITE with immediate" },
	{ "qp read <qp> <mr> <bytes> <remote> <rkey>", read_qp, "a READ" },
	{ "qp fetch-add <qp> <mr> <remote> <rkey> <number>", fetch_add, "a FETCH_ADD, what was there comes into the MR" },
	{ "qp compare-swap <qp> <mr> <remote> <rkey> <number> <number>", compare_swap, "a COMPARE_SWAP, compared and new value" },
	{ "qp atomic-write <qp> <mr> <remote> <rkey>", atomic_write, "an ATOMIC WRITE of 8 bytes" },
	{ "qp flush <qp> <bytes> <remote> <rkey>", flush_qp, "a FLUSH: what was written there before is seen by everybody" },
	{ "qp bind <qp> <mw> <mr> <bytes>", bind_mw, "a bind: the window is the first bytes of an MR, with every remote right" },
	{ "qp reg <qp> <mr> <mr> <bytes>", register_mr, "a REG_MR: the first one becomes the first bytes of the second" },
	{ "qp local-inv <qp> <rkey>", invalidate, "a LOCAL_INV of a window of type 2, or of what REG_MR made" },
	{ "cq poll <cq> [<count>]", poll_cq, "take all WCs that are there, or wait for so many" },
	{ .pattern = NULL },
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that post WRs, poll CQs and look at memory: a program's data path, call by call. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "lab.h"
#include "names.h"
#include "objects.h"

#define DUMP_BYTES 64u
#define REMOTE_ACCESS (UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC)

static int say_posted(int posted, const char *what, struct object *o)
{
	if (posted != 1)
		return lab_fail("%s not posted: %s", what, posted ? strerror(-posted) : "nothing was taken");
	printf("wr_id %" PRIu64 "\n", o->next_wr++);
	return 0;
}

static int post_receive(struct lab *lab, const struct value *v, enum object_kind kind)
{
	struct object *o = objects_get(&lab->objects, kind, v[0].number), *mr = o ? objects_get(&lab->objects, OBJECT_MR, v[1].number) : NULL;
	if (!mr)
		return -ENOENT;
	struct uroce_sge sge = { (uintptr_t)mr->memory, (uint32_t)mr->bytes, uroce_mr_lkey(mr->mr) };
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

/* v: QP, MR, bytes, and where to if it is one-sided. */
static int post_send(struct lab *lab, const struct value *v, enum uroce_opcode opcode, uint64_t remote_addr, uint32_t rkey)
{
	struct object *qp = objects_get(&lab->objects, OBJECT_QP, v[0].number), *mr = qp ? objects_get(&lab->objects, OBJECT_MR, v[1].number) : NULL;
	if (!mr)
		return -ENOENT;
	struct uroce_sge sge = { (uintptr_t)mr->memory, (uint32_t)v[2].number, uroce_mr_lkey(mr->mr) };
	struct uroce_send_wr wr = { .wr_id = qp->next_wr, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .remote_addr = remote_addr, .rkey = rkey };
	return say_posted(uroce_post_send(qp->qp, &wr, 1), "WR", qp);
}

static int send_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return post_send(lab, v, UROCE_OP_SEND, 0, 0);
}

static int write_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return post_send(lab, v, UROCE_OP_WRITE, v[3].number, (uint32_t)v[4].number);
}

static int read_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return post_send(lab, v, UROCE_OP_READ, v[3].number, (uint32_t)v[4].number);
}

/* Its first bytes, with every remote right. */
static int bind_mw(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *qp = objects_get(&lab->objects, OBJECT_QP, v[0].number), *mw = qp ? objects_get(&lab->objects, OBJECT_MW, v[1].number) : NULL;
	struct object *mr = mw ? objects_get(&lab->objects, OBJECT_MR, v[2].number) : NULL;
	if (!mr)
		return -ENOENT;
	struct uroce_bind to = { .addr = (uintptr_t)mr->memory, .len = v[3].number, .lkey = uroce_mr_lkey(mr->mr), .access = REMOTE_ACCESS };
	int err = uroce_mw_bind(qp->qp, mw->mw, &to, qp->next_wr, UROCE_SEND_SIGNALED);
	if (err)
		return say_posted(err, "bind", qp);
	printf("rkey 0x%x, ", uroce_mw_rkey(mw->mw));
	return say_posted(1, "bind", qp);
}

static int poll_cq(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *cq = objects_get(&lab->objects, OBJECT_CQ, v[0].number);
	struct uroce_wc wc;
	int n, all = 0;
	if (!cq)
		return -ENOENT;
	for (; (n = uroce_cq_poll(cq->cq, &wc, 1)) == 1; all++) {
		printf("WC: wr_id %" PRIu64 ", QP 0x%x, %s", wc.wr_id, wc.qpn, uroce_wc_status_str(wc.status));
		if (wc.status == UROCE_WC_SUCCESS)
			printf(", %s, %u bytes\n", name_wc_opcode(wc.opcode), wc.byte_len);
		else
			printf(" (%s)\n", uroce_wc_cause_str(wc.vendor_error));
	}
	if (!all)
		printf("no WC\n");
	return n < 0 ? lab_fail("cq %" PRIu64 ": %s", v[0].number, strerror(-n)) : 0;
}

static int fill_mr(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *mr = objects_get(&lab->objects, OBJECT_MR, v[0].number);
	if (!mr)
		return -ENOENT;
	memset(mr->memory, 0, mr->bytes);
	size_t len = strlen(v[1].text);
	memcpy(mr->memory, v[1].text, len < mr->bytes ? len : mr->bytes);
	return 0;
}

static int dump_mr(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *mr = objects_get(&lab->objects, OBJECT_MR, v[0].number);
	if (!mr)
		return -ENOENT;
	for (size_t at = 0; at < mr->bytes && at < DUMP_BYTES; at += 16) {
		size_t n = mr->bytes - at < 16 ? mr->bytes - at : 16;
		printf("%04zx ", at);
		for (size_t i = 0; i < n; i++)
			printf(" %02x", mr->memory[at + i]);
		printf("%*s", (int)(3 * (16 - n) + 2), "");
		for (size_t i = 0; i < n; i++)
			putchar(mr->memory[at + i] >= 32 && mr->memory[at + i] < 127 ? mr->memory[at + i] : '.');
		putchar('\n');
	}
	return 0;
}

const struct command commands_wr[] = {
	{ "mr fill <mr> <text>", fill_mr, "put a word at its beginning, zeroes behind" },
	{ "mr dump <mr>", dump_mr, "its first bytes" },
	{ "cq poll <cq>", poll_cq, "take all WCs that are there" },
	{ "srq recv <srq> <mr>", receive_srq, "post a receive into an MR" },
	{ "qp recv <qp> <mr>", receive_qp, "post a receive into an MR" },
	{ "qp send <qp> <mr> <bytes>", send_qp, "post a SEND of its first bytes" },
	{ "qp write <qp> <mr> <bytes> <number> <number>", write_qp, "post a WRITE to an address and rkey" },
	{ "qp read <qp> <mr> <bytes> <number> <number>", read_qp, "post a READ from an address and rkey" },
	{ "mw bind <qp> <mw> <mr> <bytes>", bind_mw, "post a bind to the first bytes of an MR, with every remote right" },
	{ .pattern = NULL },
};

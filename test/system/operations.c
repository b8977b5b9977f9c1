/* SPDX-License-Identifier: BSD-3-Clause */
#include "operations.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "pcap_file.h"

#define PATIENCE_S 40
#define RESULT (SIDE_BYTES / 4)  /* where READs and atomics put what they bring */
#define TARGET (SIDE_BYTES / 2)  /* where the peer writes */
#define WORD (SIDE_BYTES - 8)    /* what the peer's atomics change */
#define RIGHTS (UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC)

enum { SENT = 1, RECEIVED = 2 };

static const struct operation {
	enum uroce_opcode opcode;
	bool takes_receive, is_atomic;
	uint32_t len; /* 0: any */
} operations[] = {
	{ UROCE_OP_SEND, true, false },
	{ UROCE_OP_SEND_WITH_IMM, true, false },
	{ UROCE_OP_WRITE, false, false },
	{ UROCE_OP_WRITE_WITH_IMM, true, false },
	{ UROCE_OP_READ, false, false },
	{ UROCE_OP_FETCH_ADD, false, true },
	{ UROCE_OP_COMPARE_SWAP, false, true },
	{ UROCE_OP_ATOMIC_WRITE, false, false, 8 },
};

/* What one side has while it runs. */
struct run {
	struct side *s;
	int fd;
	unsigned me;
	struct uroce_mr *mr;
	struct side_card theirs;
	uint64_t word;
};

static void meet(struct run *r)
{
	char byte = 0;
	side_exchange(r->fd, &byte, &byte, 1);
}

static void await(struct run *r, unsigned what)
{
	struct uroce_wc wc;
	char text[256] = "";
	time_t end = time(NULL) + PATIENCE_S;
	while (what) {
		int n = uroce_cq_poll(r->s->cq, &wc, 1);
		CHECK(n >= 0);
		if (!n) {
			sched_yield();
			CHECK(time(NULL) <= end);
			continue;
		}
		if (wc.status != UROCE_WC_SUCCESS)
			uroce_qp_error_text(r->s->qp, text, sizeof(text));
		if (wc.status != UROCE_WC_SUCCESS || !(what & wc.wr_id)) {
			printf("WR %llu: %s; %s\n", (unsigned long long)wc.wr_id, uroce_wc_status_str(wc.status), text);
			fflush(stdout);
			_exit(1);
		}
		what &= ~(unsigned)wc.wr_id;
	}
}

static void post_receive(struct run *r, const struct operation *op, uint32_t len)
{
	struct uroce_sge sge = { (uintptr_t)r->s->buffer + TARGET, len, uroce_mr_lkey(r->mr) };
	struct uroce_recv_wr wr = { .wr_id = RECEIVED, .sg_list = &sge, .num_sge = op->opcode == UROCE_OP_WRITE_WITH_IMM ? 0 : 1 };
	CHECK(uroce_post_recv(r->s->qp, &wr, 1) == 1);
}

static void post_operation(struct run *r, const struct operation *op, uint32_t len)
{
	bool is_from_them = op->is_atomic || op->opcode == UROCE_OP_READ;
	struct uroce_sge sge = { (uintptr_t)r->s->buffer + (is_from_them ? RESULT : 0), op->is_atomic ? 8 : len, uroce_mr_lkey(r->mr) };
	struct uroce_send_wr wr = { .wr_id = SENT, .sg_list = &sge, .num_sge = 1, .opcode = op->opcode, .flags = UROCE_SEND_SIGNALED, .imm = 0x1234 + r->me, .rkey = r->theirs.rkey,
		.remote_addr = r->theirs.addr + (op->is_atomic ? WORD : op->opcode == UROCE_OP_READ ? 0 : TARGET),
		.compare_add = op->opcode == UROCE_OP_COMPARE_SWAP ? r->word : 5, .swap = r->word + 1000 };
	CHECK(uroce_post_send(r->s->qp, &wr, 1) == 1);
}

static void check_atomic(struct run *r, const struct operation *op)
{
	uint64_t before, now;
	memcpy(&before, r->s->buffer + RESULT, 8);
	memcpy(&now, r->s->buffer + WORD, 8);
	CHECK(before == r->word);
	r->word += op->opcode == UROCE_OP_COMPARE_SWAP ? 1000 : 5;
	CHECK(now == r->word); /* both words go through the same */
}

static void do_operation(struct run *r, const struct operation *op, uint32_t len)
{
	uint32_t seed = 4 * (uint32_t)op->opcode + 100 * len;
	side_fill(r->s, 0, len, seed + r->me);
	if (op->takes_receive)
		post_receive(r, op, len);
	meet(r); /* both have filled and posted */
	post_operation(r, op, len);
	await(r, SENT | (op->takes_receive ? RECEIVED : 0));
	meet(r); /* both are placed */
	if (op->is_atomic)
		check_atomic(r, op);
	else
		side_check(r->s, op->opcode == UROCE_OP_READ ? RESULT : TARGET, len, seed + !r->me);
	meet(r); /* both are checked */
}

struct side_card operations_run(struct side *s, int fd, unsigned me, uint32_t path_mtu, uint32_t most)
{
	struct run r = { .s = s, .fd = fd, .me = me };
	const uint32_t sizes[] = { 1, path_mtu - 1, path_mtu, 3 * path_mtu + 17, most };
	CHECK(!uroce_mr_register(s->pd, s->buffer, SIDE_BYTES, RIGHTS, &r.mr));
	struct side_card ours = { s->endpoint, (uintptr_t)s->buffer, uroce_mr_rkey(r.mr) };
	memset(s->buffer + WORD, 0, 8);
	side_exchange(fd, &ours, &r.theirs, sizeof(ours));
	/* Retries over 8 s: what is lost while a link comes up, ARP among it, is sent again, and the other process may have to wait for a CPU. */
	const struct uroce_qp_attr attr = { .path_mtu = path_mtu, .timeout = 18 };
	CHECK(!uroce_qp_connect(s->qp, &s->endpoint, &r.theirs.endpoint, &attr, UROCE_QP_PATH_MTU | UROCE_QP_TIMEOUT));
	for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		for (unsigned j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++)
			do_operation(&r, &operations[i], operations[i].len ? operations[i].len : sizes[j]);
	CHECK(!uroce_mr_deregister(r.mr));
	return r.theirs;
}

void operations_renew(struct side *s)
{
	struct uroce_qp_init init = { .send_cq = s->cq, .recv_cq = s->cq, .cap = { SIDE_DEPTH, SIDE_DEPTH, 1, 1, 0 } };
	CHECK(!uroce_qp_destroy(s->qp));
	CHECK(!uroce_qp_create(s->pd, &init, &s->qp));
	CHECK(!uroce_qp_endpoint(s->qp, 0, &s->endpoint));
}

static bool has_word(const struct pcap_frame *f, const char *word)
{
	return memmem(f->comment, f->comment_len, word, strlen(word)) != NULL;
}

uint32_t operations_largest_frame(const char *capture, bool is_tx)
{
	struct pcap_file f;
	struct pcap_frame frame;
	uint32_t largest = 0;
	const char *wanted = is_tx ? "tx" : "rx";
	CHECK(!pcap_file_open(&f, capture));
	while (pcap_file_next(&f, &frame))
		if (frame.comment_len >= 2 && !memcmp(frame.comment, wanted, 2) && !has_word(&frame, "dropped") && frame.wire_len > largest)
			largest = frame.wire_len;
	pcap_file_close(&f);
	return largest;
}

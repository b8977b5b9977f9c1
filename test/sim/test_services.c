/* SPDX-License-Identifier: BSD-3-Clause */
/* What differs from service to service, or must not, played by whole cores in virtual time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "counters.h"
#include "machine.h"
#include "rig.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

static void fill(uint8_t *p, uint64_t n, uint8_t salt)
{
	for (uint64_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8) + salt);
}

static void post_receive(struct rig_end *e, uint32_t len)
{
	struct uroce_sge into = { (uintptr_t)e->memory, len, uroce_mr_lkey(e->mr) };
	struct uroce_recv_wr recv = { .wr_id = 5, .sg_list = &into, .num_sge = 1 };
	assert_int_equal(uroce_post_recv(e->qp, &recv, 1), 1);
}

static void transfer(struct rig *r, enum uroce_opcode opcode, uint32_t len, uint8_t salt)
{
	struct rig_end *a = &r->near[0], *b = &r->far[0];
	struct uroce_sge sge;
	struct uroce_send_wr wr = rig_wr(a, b, &sge, opcode, len);
	struct uroce_wc wc;
	fill(a->memory, len, salt);
	memset(b->memory, 0xa5, len + 64);
	if (opcode != UROCE_OP_WRITE)
		post_receive(b, len);
	assert_int_equal(uroce_post_send(a->qp, &wr, 1), 1);
	assert_int_equal(rig_wait(r, 0, &wc, 1, SECOND), 1);
	assert_int_equal(wc.status, UROCE_WC_SUCCESS);
	if (opcode == UROCE_OP_WRITE) {
		rig_run(r, 10 * MS);
	} else {
		assert_int_equal(rig_wait(r, 1, &wc, 1, SECOND), 1);
		assert_int_equal(wc.status, UROCE_WC_SUCCESS);
		assert_int_equal(wc.byte_len, len);
		assert_int_equal(wc.flags & UROCE_WC_HAS_IMM, opcode == UROCE_OP_SEND ? 0 : UROCE_WC_HAS_IMM);
	}
	assert_memory_equal(a->memory, b->memory, len);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(b->memory[len + i], 0xa5);
}

/* known-bugs: 17 18 51 */
static void test_uc_sizes_around_the_mtu(void **state)
{
	static const enum uroce_opcode ops[] = { UROCE_OP_SEND, UROCE_OP_SEND_WITH_IMM, UROCE_OP_WRITE, UROCE_OP_WRITE_WITH_IMM };
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		const uint32_t sizes[] = { 0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 8192, 8193, 1 << 19 };
		struct rig r;
		rig_open(&r, &(struct rig_config){ .service = UROCE_UC, .mtu = mtu, .first_psn = 0xfffff0 });
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (unsigned k = 0; k < sizeof(ops) / sizeof(ops[0]); k++)
				transfer(&r, ops[k], sizes[i], (uint8_t)(i * 4 + k));
		assert_int_equal(rig_counter(r.near[0].qp, QP_ACKS_RECEIVED), 0);
		assert_int_equal(rig_counter(r.far[0].qp, QP_OUT_OF_SEQUENCE), 0);
		rig_close(&r);
	}
}

/* Sends that nobody is there for are done all the same: unreliable means that. Others go on at their own pace. */
static void test_uc_peer_without_an_address(void **state)
{
	struct rig r;
	struct uroce_sge sge;
	struct uroce_wc wc[64];
	rig_open(&r, &(struct rig_config){ .service = UROCE_UC, .hosts = 3, .first_psn = 100 });
	struct uroce_send_wr wr = rig_wr(&r.near[1], &r.far[1], &sge, UROCE_OP_SEND, 5000), to_other = rig_wr(&r.near[0], &r.far[0], &sge, UROCE_OP_SEND, 8);
	sim_world_cut(r.world, 2, true);
	/* until its neighbour entry has gone, packets are lost on the wire; then they are lost here */
	for (unsigned s = 0; s < 80 && !rig_counter(r.near[1].qp, QP_TX_UNREACHABLE); s++) {
		assert_int_equal(uroce_post_send(r.near[1].qp, &wr, 1), 1);
		assert_int_equal(rig_wait(&r, 0, wc, 1, 2 * SECOND), 1);
		assert_int_equal(wc[0].status, UROCE_WC_SUCCESS);
		rig_run(&r, SECOND);
	}
	uint64_t sent = rig_counter(r.near[1].qp, QP_TX_PACKETS), lost = rig_counter(r.near[1].qp, QP_TX_UNREACHABLE);
	assert_int_not_equal(lost, 0);
	post_receive(&r.far[0], 64);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(uroce_post_send(r.near[1].qp, &wr, 1), 1);
	assert_int_equal(uroce_post_send(r.near[0].qp, &to_other, 1), 1);
	assert_int_equal(rig_wait(&r, 0, wc, 41, SECOND), 41);
	for (unsigned i = 0; i < 41; i++)
		assert_int_equal(wc[i].status, UROCE_WC_SUCCESS);
	assert_int_equal(rig_wait(&r, 1, wc, 1, SECOND), 1);
	assert_int_equal(rig_counter(r.near[1].qp, QP_TX_PACKETS), sent);
	assert_int_equal(rig_counter(r.near[1].qp, QP_TX_UNREACHABLE), lost + 40);
	rig_close(&r);
}

/* ---- ten thousand messages over the end of the PSNs ---- */

#define MESSAGES 10000u
#define DEPTH 32u
#define RECEIVES 128u
#define MESSAGE_LEN 600u

static const struct wrap_row {
	enum uroce_service service;
	unsigned operations;
	const char *fault;
} wrap_rows[] = {
	{ UROCE_RC, UROCE_OP_ATOMIC_WRITE + 1, NULL },
	{ UROCE_RC, UROCE_OP_ATOMIC_WRITE + 1, "drop:0.01/dup:0.01/reorder:0.01:4:20us/seed:10" },
	{ UROCE_UC, UROCE_OP_READ, NULL },
	{ UROCE_UC, UROCE_OP_READ, "drop:0.01/dup:0.01/reorder:0.01:4:20us/seed:11" },
};

static void post_message(struct rig *r, uint32_t i, unsigned operations)
{
	enum uroce_opcode opcode = (enum uroce_opcode)(i % operations);
	struct uroce_sge sge;
	struct uroce_send_wr wr = rig_wr(&r->near[0], &r->far[0], &sge, opcode, opcode >= UROCE_OP_COMPARE_SWAP ? 8 : MESSAGE_LEN);
	wr.wr_id = i;
	wr.imm = i;
	wr.compare_add = 1;
	assert_int_equal(uroce_post_send(r->near[0].qp, &wr, 1), 1);
}

/* Messages that came, by their immediates in order; those without one between them. */
static void take_messages(struct rig *r, uint32_t *came, uint32_t *last)
{
	struct uroce_wc wc;
	while (uroce_cq_poll(r->cq[1], &wc, 1) == 1) {
		assert_int_equal(wc.status, UROCE_WC_SUCCESS);
		if (wc.flags & UROCE_WC_HAS_IMM) {
			assert_true(wc.imm >= *last && wc.imm < MESSAGES);
			*last = wc.imm + 1;
		}
		(*came)++;
		post_receive(&r->far[0], MESSAGE_LEN);
	}
}

/* known-bugs: 10 */
static void test_ten_thousand_messages_over_the_wrap(void **state)
{
	for (unsigned k = 0; k < sizeof(wrap_rows) / sizeof(wrap_rows[0]); k++) {
		const struct wrap_row *row = &wrap_rows[k];
		bool is_whole = row->service == UROCE_RC || !row->fault;
		uint32_t posted = 0, done = 0, came = 0, last = 0, due = 0;
		struct uroce_wc wc;
		struct rig r;
		rig_open(&r, &(struct rig_config){ .service = row->service, .mtu = 256, .first_psn = 0xfffff0, .memory = 8192, .fault = { row->service == UROCE_RC ? row->fault : NULL, row->fault } });
		for (unsigned i = 0; i < RECEIVES; i++)
			post_receive(&r.far[0], MESSAGE_LEN);
		while (done < MESSAGES) {
			for (; posted < MESSAGES && posted - done < DEPTH; posted++) {
				uint32_t operation = posted % row->operations;
				due += operation < UROCE_OP_READ && operation != UROCE_OP_WRITE;
				post_message(&r, posted, row->operations);
			}
			assert_int_equal(rig_wait(&r, 0, &wc, 1, SECOND), 1);
			assert_int_equal(wc.status, UROCE_WC_SUCCESS);
			assert_int_equal(wc.wr_id, done++);
			take_messages(&r, &came, &last);
		}
		uint64_t until = sim_world_now(r.world) + 10 * MS;
		while (sim_world_step(r.world, until))
			take_messages(&r, &came, &last);
		if (is_whole)
			assert_int_equal(came, due);
		assert_true(came <= due && came > due / 2);
		assert_true(!row->fault || rig_counter(r.far[0].qp, QP_DROPPED_PACKETS));
		rig_close(&r);
	}
}

/* ---- posting, by state ---- */

/* Attributes of the way up. */
static const uint32_t way[3][4] = {
	[UROCE_RC] = { 0, UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_ACCESS_FLAGS, UROCE_QP_AV | UROCE_QP_PATH_MTU | UROCE_QP_DEST_QPN | UROCE_QP_RQ_PSN | UROCE_QP_MAX_DEST_RD_ATOMIC | UROCE_QP_MIN_RNR_TIMER,
		UROCE_QP_TIMEOUT | UROCE_QP_RETRY_CNT | UROCE_QP_RNR_RETRY | UROCE_QP_SQ_PSN | UROCE_QP_MAX_RD_ATOMIC },
	[UROCE_UC] = { 0, UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_ACCESS_FLAGS, UROCE_QP_AV | UROCE_QP_PATH_MTU | UROCE_QP_DEST_QPN | UROCE_QP_RQ_PSN, UROCE_QP_SQ_PSN },
	[UROCE_UD] = { 0, UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_QKEY, 0, UROCE_QP_SQ_PSN },
};

/* A QP of host 0, an AH for it if it is of UD, and where its receives go. */
struct subject {
	struct rig *rig;
	enum uroce_service service;
	struct uroce_qp *qp;
	struct uroce_srq *srq;
	struct uroce_ah *ah;
	unsigned sends, receives; /* posted */
};

static void go_with(const struct subject *s, enum uroce_qp_state state, uint32_t with)
{
	struct uroce_qp_attr attr = { .state = state, .port_num = 1, .path_mtu = 1024, .dest_qpn = 0x7777, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	assert_int_equal(uroce_query_gid(s->rig->ctx[1], 0, &attr.av.dgid, NULL), 0);
	assert_int_equal(uroce_qp_modify(s->qp, &attr, UROCE_QP_STATE | with), 0);
}

static void go(const struct subject *s, enum uroce_qp_state state)
{
	go_with(s, state, state <= UROCE_QP_RTS ? way[s->service][state] : 0);
}

static void subject_open(struct subject *s, struct rig *r, enum uroce_service service, struct uroce_srq *srq)
{
	struct uroce_qp_init init = { .service = service, .srq = srq, .send_cq = r->cq[0], .recv_cq = r->cq[0], .cap = { .max_send_wr = 16, .max_recv_wr = 16 } };
	struct uroce_av av = { .sgid_index = 0 };
	*s = (struct subject){ .rig = r, .service = service, .srq = srq };
	assert_int_equal(uroce_qp_create(r->pd[0], &init, &s->qp), 0);
	assert_int_equal(uroce_query_gid(r->ctx[1], 0, &av.dgid, NULL), 0);
	if (service == UROCE_UD)
		assert_int_equal(uroce_ah_create(r->pd[0], &av, &s->ah), 0);
}

static int send_one(struct subject *s, uint32_t lkey)
{
	struct uroce_sge sge = { (uintptr_t)s->rig->near[0].memory, 64, lkey };
	struct uroce_send_wr wr = { .sg_list = &sge, .num_sge = 1, .flags = UROCE_SEND_SIGNALED, .ah = s->ah, .remote_qpn = 0x7777 };
	int rc = uroce_post_send(s->qp, &wr, 1);
	s->sends += rc == 1;
	return rc;
}

/* Both kinds; what is refused leaves nothing behind. */
static void post_both(struct subject *s, bool takes_sends, bool takes_receives)
{
	struct uroce_sge into = { (uintptr_t)s->rig->near[0].memory, 512, uroce_mr_lkey(s->rig->near[0].mr) };
	struct uroce_recv_wr recv = { .wr_id = 1000, .sg_list = &into, .num_sge = 1 };
	assert_int_equal(send_one(s, uroce_mr_lkey(s->rig->near[0].mr)), takes_sends ? 1 : -EINVAL);
	if (s->srq)
		takes_receives = false; /* its own queue is none */
	assert_int_equal(uroce_post_recv(s->qp, &recv, 1), takes_receives ? 1 : -EINVAL);
	s->receives += takes_receives;
	if (s->srq)
		assert_int_equal(uroce_post_srq_recv(s->srq, &recv, 1), 1);
}

static void assert_state(const struct subject *s, enum uroce_qp_state state)
{
	struct uroce_qp_attr attr;
	assert_int_equal(uroce_qp_query(s->qp, &attr), 0);
	assert_int_equal(attr.state, state);
}

/* All that was posted has completed, each once, the last ones as flushed. */
static void assert_all_back(struct subject *s)
{
	struct uroce_wc wc[64];
	unsigned sends = 0, receives = 0;
	rig_run(s->rig, MS);
	int n = uroce_cq_poll(s->rig->cq[0], wc, 64);
	for (int i = 0; i < n; i++) {
		bool is_receive = wc[i].wr_id == 1000;
		receives += is_receive;
		sends += !is_receive;
		assert_true(!is_receive || wc[i].status == UROCE_WC_WR_FLUSH_ERR);
		assert_true(is_receive || sends < s->sends || wc[i].status == UROCE_WC_WR_FLUSH_ERR);
	}
	assert_int_equal(sends, s->sends);
	assert_int_equal(receives, s->receives);
	s->sends = s->receives = 0;
}

/* What a local error does: RC goes to ERR, the others to SQE, where sends are flushed and receives go on, and from where RTS is the way back. */
static void walk_through_sqe(struct subject *s)
{
	struct uroce_wc wc;
	for (enum uroce_qp_state state = UROCE_QP_INIT; state <= UROCE_QP_RTS; state++)
		go(s, state);
	assert_int_equal(send_one(s, 0xbad00), 1);
	assert_int_equal(rig_wait(s->rig, 0, &wc, 1, SECOND), 1);
	assert_int_equal(wc.status, UROCE_WC_LOC_PROT_ERR);
	s->sends--;
	if (s->service == UROCE_RC) {
		assert_state(s, UROCE_QP_ERR);
		return;
	}
	assert_state(s, UROCE_QP_SQE);
	post_both(s, true, true);
	assert_int_equal(rig_wait(s->rig, 0, &wc, 1, SECOND), 1);
	assert_int_equal(wc.status, UROCE_WC_WR_FLUSH_ERR);
	s->sends--;
	go_with(s, UROCE_QP_RTS, 0);
	assert_int_equal(send_one(s, uroce_mr_lkey(s->rig->near[0].mr)), 1);
	assert_int_equal(rig_wait(s->rig, 0, &wc, 1, SECOND), 1);
	assert_int_equal(wc.status, UROCE_WC_SUCCESS);
	s->sends--;
	go(s, UROCE_QP_ERR);
}

/* known-bugs: 46 48 */
static void test_posting_by_state(void **state)
{
	static const struct {
		enum uroce_qp_state state;
		bool sends, receives;
	} rows[] = { { UROCE_QP_RESET, false, false }, { UROCE_QP_INIT, false, true }, { UROCE_QP_RTR, false, true }, { UROCE_QP_RTS, true, true }, { UROCE_QP_SQD, true, true }, { UROCE_QP_ERR, true, true } };
	struct uroce_srq *srq;
	struct rig r;
	rig_open(&r, &(struct rig_config){ .memory = 8192 });
	assert_int_equal(uroce_srq_create(r.pd[0], &(struct uroce_srq_init){ .attr = { .max_wr = 256 } }, &srq), 0);
	for (unsigned k = 0; k < 6; k++) {
		struct subject s;
		subject_open(&s, &r, (enum uroce_service)(k / 2), k % 2 ? srq : NULL);
		for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			if (i)
				go(&s, rows[i].state);
			post_both(&s, rows[i].sends, rows[i].receives);
		}
		assert_all_back(&s);
		go(&s, UROCE_QP_RESET);
		walk_through_sqe(&s);
		assert_all_back(&s);
		assert_int_equal(uroce_qp_destroy(s.qp), 0);
		assert_int_equal(uroce_ah_destroy(s.ah), 0);
	}
	assert_int_equal(uroce_srq_destroy(srq), 0);
	rig_close(&r);
}

/* ---- coming and going ---- */

static void post_much(const struct subject *s)
{
	struct uroce_sge sge = { (uintptr_t)s->rig->near[0].memory, s->service == UROCE_UD ? 4096 : 1 << 20, uroce_mr_lkey(s->rig->near[0].mr) };
	struct uroce_send_wr wr = { .sg_list = &sge, .num_sge = 1, .flags = UROCE_SEND_SIGNALED, .ah = s->ah, .remote_qpn = 0x7777 };
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(uroce_post_send(s->qp, &wr, 1), 1);
}

/* QPs of every service, with receives of their own and with shared ones, end while they send, to a peer that says nothing; AHs before or after those who use them. Nothing of them is left. */
/* known-bugs: 47 */
static void test_ten_thousand_end_while_they_send(void **state)
{
	struct uroce_srq *srq;
	struct core_stats before, after;
	struct rig r;
	rig_open(&r, &(struct rig_config){ .memory = 1 << 20 });
	struct core *core = sim_host_core(r.host[0]);
	assert_int_equal(uroce_srq_create(r.pd[0], &(struct uroce_srq_init){ .attr = { .max_wr = 16 } }, &srq), 0);
	core_stats(core, &before);
	for (unsigned k = 0; k < 10000; k++) {
		struct subject s;
		subject_open(&s, &r, (enum uroce_service)(k % 3), k & 8 ? srq : NULL);
		for (enum uroce_qp_state to = UROCE_QP_INIT; to <= UROCE_QP_RTS; to++)
			go(&s, to);
		post_much(&s);
		rig_run(&r, 100 * (k % 64));
		if (k & 16)
			assert_int_equal(uroce_ah_destroy(s.ah), 0);
		if (k & 32)
			go(&s, UROCE_QP_ERR);
		assert_int_equal(uroce_qp_destroy(s.qp), 0);
		if (!(k & 16))
			assert_int_equal(uroce_ah_destroy(s.ah), 0);
	}
	rig_run(&r, 100 * MS);
	core_stats(core, &after);
	assert_int_equal(after.qps, before.qps);
	assert_int_equal(core->env.wr_small.in_use + core->env.wr_large.in_use, 0);
	assert_int_equal(core->lingering, 0);
	assert_true(circle_is_empty(&core->env.groups));
	assert_int_equal(uroce_srq_destroy(srq), 0);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uc_sizes_around_the_mtu),
		cmocka_unit_test(test_uc_peer_without_an_address),
		cmocka_unit_test(test_ten_thousand_messages_over_the_wrap),
		cmocka_unit_test(test_posting_by_state),
		cmocka_unit_test(test_ten_thousand_end_while_they_send),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Resizing a CQ and moderating its events, the client's side: what moves, what stays as it was when the engine refuses, answers nonsense or dies in the middle. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fake_engine.h"

struct fixture {
	struct fake_engine *f;
	struct uroce_context *ctx;
	struct uroce_channel *ch;
	struct uroce_cq *cq;
	uint64_t written, read; /* wr_ids */
};

static struct fixture open_cq(uint32_t entries, uint32_t first_index)
{
	struct fixture x = { 0 };
	x.f = fake_open(&x.ctx);
	x.f->first_index = first_index;
	assert_int_equal(uroce_channel_create(x.ctx, &x.ch), 0);
	assert_int_equal(uroce_cq_create(x.ctx, entries, x.ch, NULL, &x.cq), 0);
	return x;
}

static void close_cq(struct fixture *x)
{
	assert_int_equal(uroce_cq_destroy(x->cq), 0);
	assert_int_equal(uroce_channel_destroy(x->ch), 0);
	uroce_close(x->ctx);
	fake_free(x->f);
}

static void complete(struct fixture *x, unsigned n)
{
	while (n--)
		fake_complete_id(x->f, &x->f->cq[0], 1, x->written++);
}

static void take(struct fixture *x, unsigned n)
{
	struct uroce_wc wc;
	while (n--) {
		assert_int_equal(uroce_cq_poll(x->cq, &wc, 1), 1);
		assert_int_equal(wc.wr_id, x->read++);
	}
}

static void expect_empty(struct fixture *x)
{
	struct uroce_wc wc;
	assert_int_equal(x->read, x->written);
	assert_int_equal(uroce_cq_poll(x->cq, &wc, 1), 0);
}

/* ---- what moves ---- */

/* The engine goes on writing: `between` before it goes on in the new slots, `after` before the client hears of it. */
static struct {
	struct fixture *x;
	unsigned between, after;
} traffic;

static void go_on(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_MODIFY_CQ)
		complete(traffic.x, req->modify_cq.mask == ABI_CQ_ENTRIES ? traffic.between : traffic.after);
}

static void resize_at(uint32_t from, uint32_t to, uint32_t first_index, unsigned passed, unsigned held, unsigned between, unsigned after)
{
	struct fixture x = open_cq(from, first_index);
	for (unsigned i = 0; i < passed; i++) {
		complete(&x, 1);
		take(&x, 1);
	}
	complete(&x, held);
	x.f->on_answered = go_on;
	traffic.x = &x;
	traffic.between = between;
	traffic.after = after;
	assert_int_equal(uroce_cq_resize(x.cq, to), 0);
	x.f->on_answered = NULL;
	assert_int_equal(uroce_cq_entries(x.cq), to);
	take(&x, held + between + after);
	expect_empty(&x);
	for (unsigned i = 0; i < 3 * to; i++) { /* and goes on through its passes, full each time */
		complete(&x, to);
		take(&x, to);
	}
	expect_empty(&x);
	close_cq(&x);
}

/* known-bugs: 43 */
static void test_what_was_not_polled_moves(void **state)
{
	static const uint32_t first[] = { 0, 3, 0xfffffffb, 0x7ffffffe };
	for (unsigned i = 0; i < 4; i++) {
		for (uint32_t from = 2; from <= 16; from *= 2) {
			for (uint32_t to = 2; to <= 16; to *= 2) {
				uint32_t most = from < to ? from : to;
				for (unsigned held = 0; held <= most; held++) {
					resize_at(from, to, first[i], held % 7, held, 0, 0);
					resize_at(from, to, first[i], held % 5, held, most - held, to - most); /* to the brim */
				}
			}
		}
	}
}

/* Of a QP that is gone: not to be polled in the new slots either. */
static void test_purged_ones_stay_purged(void **state)
{
	struct fixture x = open_cq(4, 0);
	struct uroce_qp_init init = { .send_cq = x.cq, .recv_cq = x.cq };
	struct uroce_pd *pd;
	struct uroce_qp *qp;
	struct uroce_wc wc[4];
	assert_int_equal(uroce_pd_create(x.ctx, &pd), 0);
	assert_int_equal(uroce_qp_create(pd, &init, &qp), 0);
	fake_complete_id(x.f, &x.f->cq[0], FAKE_QPN, 1);
	fake_complete_id(x.f, &x.f->cq[0], 7, 2);
	fake_complete_id(x.f, &x.f->cq[0], FAKE_QPN, 3);
	assert_int_equal(uroce_qp_destroy(qp), 0);
	assert_int_equal(uroce_cq_resize(x.cq, 32), 0);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 4), 1);
	assert_int_equal(wc[0].wr_id, 2);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 4), 0);
	assert_int_equal(fake_tail(&x.f->cq[0].r), 3);
	assert_int_equal(uroce_pd_destroy(pd), 0);
	close_cq(&x);
}

/* known-bugs: 44 */
static void test_what_was_armed_stays_armed(void **state)
{
	struct fixture x = open_cq(4, 0);
	struct uroce_cq *cq;
	assert_int_equal(uroce_cq_arm(x.cq, false), 0);
	assert_int_equal(uroce_cq_resize(x.cq, 8), 0);
	complete(&x, 1);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), 0);
	assert_ptr_equal(cq, x.cq);
	uroce_cq_ack_events(cq, 1);
	take(&x, 1);
	close_cq(&x);
}

/* ---- what does not happen ---- */

static uint32_t refused_mask;

static void refuse(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	struct fake_cq *cq = &f->cq[0];
	if (req->type != ABI_MODIFY_CQ || req->modify_cq.mask != refused_mask)
		return;
	rep->status = -EINVAL;
	strcpy(rep->text, "not now");
	if (refused_mask == ABI_CQ_SWITCH) { /* undone */
		cq->r.slots = (uint8_t *)cq->r.ring + sizeof(struct abi_ring);
		cq->r.count = 4;
		atomic_fetch_sub(&cq->r.ring->resizes, 1);
	}
}

static void test_refused_in_either_step(void **state)
{
	for (refused_mask = ABI_CQ_ENTRIES; refused_mask <= ABI_CQ_SWITCH; refused_mask *= 2) {
		struct fixture x = open_cq(4, 0);
		complete(&x, 3);
		x.f->on_answered = refuse;
		assert_int_equal(uroce_cq_resize(x.cq, 2), -EINVAL);
		assert_string_equal(x.f->line, "not now");
		assert_int_equal(uroce_cq_entries(x.cq), 4);
		complete(&x, 1);
		take(&x, 4);
		expect_empty(&x);
		x.f->on_answered = NULL;
		assert_int_equal(uroce_cq_resize(x.cq, 2), 0);
		complete(&x, 2);
		take(&x, 2);
		close_cq(&x);
	}
}

static unsigned twist;

static void answer_nonsense(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	struct abi_ring_place *p = &rep->cq.ring;
	if (req->type != ABI_MODIFY_CQ)
		return;
	assert_int_equal(req->modify_cq.mask, ABI_CQ_ENTRIES); /* and no further */
	switch (twist) {
	case 0: p->slots = 4; break;
	case 1: p->slots = 12; break;
	case 2: p->slots = 0; break;
	case 3: p->slot_bytes = 128; break;
	case 4: p->slots_offset = FAKE_ARENA - 64; break;
	case 5: p->slots_offset += 4; break;
	}
}

static void test_nonsense(void **state)
{
	for (twist = 0; twist < 6; twist++) {
		struct fixture x = open_cq(4, 0);
		complete(&x, 2);
		x.f->on_answered = answer_nonsense;
		assert_int_equal(uroce_cq_resize(x.cq, 8), -EPROTO);
		x.f->on_answered = NULL;
		complete(&x, 2);
		take(&x, 4);
		expect_empty(&x);
		close_cq(&x);
	}
}

static void test_without_asking(void **state)
{
	struct fixture x = open_cq(4, 0);
	assert_int_equal(uroce_cq_resize(x.cq, 0), -EINVAL);
	assert_int_equal(fake_count(x.f, ABI_MODIFY_CQ), 0);
	assert_int_equal(x.f->lines, 1);
	close_cq(&x);
}

/* ---- death in the middle ---- */

static void post(struct uroce_qp *qp, uint64_t wr_id)
{
	struct uroce_send_wr wr = { .wr_id = wr_id, .opcode = UROCE_OP_SEND, .flags = UROCE_SEND_SIGNALED };
	assert_int_equal(uroce_post_send(qp, &wr, 1), 1);
}

static void die_in_the_switch(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type != ABI_MODIFY_CQ || req->modify_cq.mask != ABI_CQ_SWITCH)
		return;
	f->is_dying = true;
	fake_finish(f, &f->cq[0], 0, false); /* WR 2 and 3, in the new slots */
	fake_finish(f, &f->cq[0], 0, false);
}

static void die_before_the_switch(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type != ABI_MODIFY_CQ)
		return;
	fake_finish(f, &f->cq[0], 0, false);
	fake_finish(f, &f->cq[0], 0, false);
	atomic_store(&f->page->dead, 1);
}

/* Each WR comes once, and in order: what had completed with its status, the rest flushed, wherever the engine died. */
static void test_death_in_the_middle(void **state)
{
	void (*const ways[])(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep) = { die_before_the_switch, die_in_the_switch };
	for (unsigned way = 0; way < 2; way++) {
		struct fixture x = open_cq(8, 5);
		struct uroce_qp_init init = { .send_cq = x.cq, .recv_cq = x.cq, .cap = { 8, 8, 1, 1, 0 } };
		struct uroce_qp_attr attr = { .state = UROCE_QP_RTS };
		struct uroce_pd *pd;
		struct uroce_qp *qp;
		struct uroce_wc wc;
		assert_int_equal(uroce_pd_create(x.ctx, &pd), 0);
		assert_int_equal(uroce_qp_create(pd, &init, &qp), 0);
		assert_int_equal(uroce_qp_modify(qp, &attr, UROCE_QP_STATE), 0);
		for (unsigned i = 0; i < 6; i++)
			post(qp, i);
		fake_finish(x.f, &x.f->cq[0], 0, false);
		fake_finish(x.f, &x.f->cq[0], 0, false);
		x.f->on_answered = ways[way];
		assert_int_equal(uroce_cq_resize(x.cq, 16), -ENODEV);
		for (unsigned i = 0; i < 6; i++) {
			assert_int_equal(uroce_cq_poll(x.cq, &wc, 1), 1);
			assert_int_equal(wc.wr_id, i);
			assert_int_equal(wc.status, i < 4 ? UROCE_WC_SUCCESS : UROCE_WC_WR_FLUSH_ERR);
		}
		assert_int_equal(uroce_cq_poll(x.cq, &wc, 1), -ENODEV);
		assert_int_equal(uroce_cq_resize(x.cq, 4), -ENODEV);
		assert_int_equal(uroce_qp_destroy(qp), 0);
		assert_int_equal(uroce_pd_destroy(pd), 0);
		close_cq(&x);
	}
}

/* ---- moderation ---- */

static void test_moderation_is_passed_on(void **state)
{
	struct fixture x = open_cq(4, 0);
	const struct abi_req *req;
	assert_int_equal(uroce_cq_moderate(x.cq, 16, 250), 0);
	req = fake_last(x.f, ABI_MODIFY_CQ);
	assert_int_equal(req->modify_cq.mask, ABI_CQ_MODERATION);
	assert_int_equal(req->modify_cq.count, 16);
	assert_int_equal(req->modify_cq.period_us, 250);
	refused_mask = ABI_CQ_MODERATION;
	x.f->on_answered = refuse;
	assert_int_equal(uroce_cq_moderate(x.cq, 16, 0), -EINVAL);
	close_cq(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_not_polled_moves),
		cmocka_unit_test(test_purged_ones_stay_purged),
		cmocka_unit_test(test_what_was_armed_stays_armed),
		cmocka_unit_test(test_refused_in_either_step),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_without_asking),
		cmocka_unit_test(test_death_in_the_middle),
		cmocka_unit_test(test_moderation_is_passed_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

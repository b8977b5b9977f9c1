/* SPDX-License-Identifier: BSD-3-Clause */
/* The data path: requests out of the SRQ, answers on the client's QP. Invariant: each receive is at any time in the SRQ, in one connection's `waiting`, in `give_back`, or being looked at. */
#include <errno.h>
#include <string.h>

#include "server.h"

#define IS_REPLY (UINT64_C(1) << 63) /* wr_id of an answer: this, and its place; of a receive: its place */

void receive_give_back(struct server *s, uint32_t receive)
{
	s->give_back[s->gives_back++] = receive;
}

void request_repost(struct server *s)
{
	struct uroce_sge sge[BATCH];
	struct uroce_recv_wr wr[BATCH];
	while (s->gives_back && !s->is_engine_gone) {
		unsigned n = s->gives_back < BATCH ? s->gives_back : BATCH;
		for (unsigned i = 0; i < n; i++) {
			uint32_t receive = s->give_back[s->gives_back - 1 - i];
			sge[i] = (struct uroce_sge){ (uintptr_t)&s->receives[receive], sizeof(struct kv_message), uroce_mr_lkey(s->mr) };
			wr[i] = (struct uroce_recv_wr){ .wr_id = receive, .sg_list = &sge[i], .num_sge = 1 };
		}
		int posted = uroce_post_srq_recv(s->srq, wr, n);
		s->is_engine_gone = posted < 0;
		s->gives_back -= posted > 0 ? (unsigned)posted : 0;
	}
}

/* Carries a request out. Every length is the peer's word, and was written once, before the completion: nobody else has a right to this memory. */
static enum kv_status carry_out(struct server *s, const struct kv_message *m, uint32_t bytes, struct kv_message *answer)
{
	const char *value = m->data + m->key_len;
	if (bytes < KV_HEAD_BYTES || m->what >= KV_OPS || !m->key_len || m->key_len > KV_KEY_MAX || m->value_len > KV_VALUE_MAX || bytes != KV_HEAD_BYTES + m->key_len + m->value_len)
		return KV_BAD_REQUEST;
	s->stats.requests[m->what]++;
	if (m->what == KV_PUT)
		return store_put(&s->store, m->data, m->key_len, value, m->value_len) ? KV_OK : KV_NO_MEMORY;
	if (m->what == KV_DELETE)
		return store_delete(&s->store, m->data, m->key_len) ? KV_OK : KV_NOT_FOUND;
	size_t len;
	value = store_get(&s->store, m->data, m->key_len, &len);
	if (!value)
		return KV_NOT_FOUND;
	memcpy(answer->data, value, len);
	answer->value_len = (uint16_t)len;
	return KV_OK;
}

/* There is a place for the answer. */
static void answer(struct server *s, struct connection *c, uint32_t receive, uint32_t bytes)
{
	unsigned place = (unsigned)(c - s->connections) * REPLIES + (unsigned)__builtin_ctz(c->free_replies);
	const struct kv_message *request = &s->receives[receive];
	struct kv_message *m = &s->replies[place];
	memset(m, 0, KV_HEAD_BYTES);
	m->id = bytes >= KV_HEAD_BYTES ? request->id : 0;
	m->what = (uint8_t)carry_out(s, request, bytes, m);
	s->stats.answers[m->what]++;
	receive_give_back(s, receive);
	struct uroce_sge sge = { (uintptr_t)m, KV_HEAD_BYTES + m->value_len, uroce_mr_lkey(s->mr) };
	struct uroce_send_wr wr = { .wr_id = IS_REPLY | place, .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_SEND, .flags = UROCE_SEND_SIGNALED };
	int posted = uroce_post_send(c->qp, &wr, 1);
	if (posted == 1)
		c->free_replies &= c->free_replies - 1;
	else if (posted == -ENODEV)
		s->is_engine_gone = true;
	else
		connection_end(s, c, "its answer cannot be posted");
}

static void take_request(struct server *s, const struct uroce_wc *wc, uint32_t receive)
{
	struct connection *c = connection_find(s, wc->qpn);
	if (!c || c->is_ending || wc->status != UROCE_WC_SUCCESS) {
		receive_give_back(s, receive);
	} else if (c->free_replies && !c->waits) {
		answer(s, c, receive, wc->byte_len);
	} else if (c->waits < KV_DEPTH) {
		s->lengths[receive] = wc->byte_len;
		c->waiting[c->waits++] = receive;
	} else {
		receive_give_back(s, receive);
		connection_end(s, c, "has more requests outstanding than it may");
	}
}

static void take_reply(struct server *s, const struct uroce_wc *wc, unsigned place)
{
	struct connection *c = &s->connections[place / REPLIES];
	char why[256];
	c->free_replies |= 1u << place % REPLIES;
	if (c->is_ending)
		return;
	if (wc->status != UROCE_WC_SUCCESS) {
		uroce_qp_error_text(c->qp, why, sizeof(why));
		connection_end(s, c, why);
	} else if (c->waits) {
		uint32_t receive = c->waiting[0];
		memmove(c->waiting, c->waiting + 1, --c->waits * sizeof(c->waiting[0]));
		answer(s, c, receive, s->lengths[receive]);
	}
}

void request_take(struct server *s, const struct uroce_wc *wc)
{
	if (wc->wr_id & IS_REPLY)
		take_reply(s, wc, (unsigned)(wc->wr_id & ~IS_REPLY));
	else
		take_request(s, wc, (uint32_t)wc->wr_id);
}

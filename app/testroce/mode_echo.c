/* SPDX-License-Identifier: BSD-3-Clause */
/* Ping-pong: the server sends back what it got, one message at a time, and the client takes the time from its post to the answer's completion. */
#include <string.h>

#include "end.h"

/* Of the client's. */
struct turn {
	uint64_t sent_ns;
	uint64_t acked; /* messages whose send WR has completed: an answer may come before that */
};

static int send_message(struct end *e, struct lane *l, uint64_t n)
{
	uint32_t slot = (uint32_t)(n % e->slots_out);
	struct uroce_sge sge = { (uintptr_t)end_out(e, l, slot), (uint32_t)e->config.size, uroce_mr_lkey(l->home->mr) };
	struct uroce_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_SEND };
	return end_send(e, l, slot, &wr);
}

static int step(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++) {
		struct lane *l = &e->lane[i];
		struct turn *s = l->state;
		if (l->posted > l->received || l->posted > s->acked)
			continue;
		end_fill(e, l, l->posted, end_out(e, l, (uint32_t)(l->posted % e->slots_out)), e->config.size);
		s->sent_ns = end_now();
		if (send_message(e, l, l->posted++))
			return -1;
	}
	return 0;
}

static int on_acked(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	((struct turn *)l->state)->acked++;
	return 0;
}

static void take_time(struct end *e, uint64_t ns)
{
	uint64_t least = atomic_load_explicit(&e->tally[TALLY_RTT_MIN_NS], memory_order_relaxed);
	end_count(e, TALLY_RTT_NS, ns);
	if (!least || ns < least)
		atomic_store_explicit(&e->tally[TALLY_RTT_MIN_NS], ns, memory_order_relaxed);
	if (ns > atomic_load_explicit(&e->tally[TALLY_RTT_MAX_NS], memory_order_relaxed))
		atomic_store_explicit(&e->tally[TALLY_RTT_MAX_NS], ns, memory_order_relaxed);
}

static int take_answer(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	struct turn *s = l->state;
	take_time(e, end_now() - s->sent_ns);
	if (end_check(e, l, l->received, end_in(e, l, slot), e->config.size) || end_check_guard(e, l, end_in(e, l, slot), e->config.size))
		return -1;
	l->received++;
	end_done(e, l, e->config.size);
	return end_receive(e, l, slot);
}

/* As many as there is room for: an answer is outstanding until it is acknowledged, and the client asks on before that. Receives are posted again, and so used up, in order: message n lies in slot n modulo their number. */
static int answer(struct end *e, struct lane *l)
{
	for (; l->posted < l->received && l->posted - l->done < e->slots_out; l->posted++) {
		uint32_t slot = (uint32_t)(l->posted % e->recv_depth);
		memcpy(end_out(e, l, (uint32_t)(l->posted % e->slots_out)), end_in(e, l, slot), e->config.size);
		if (end_receive(e, l, slot) || send_message(e, l, l->posted))
			return -1;
	}
	return 0;
}

static int on_question(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	l->received++;
	end_count(e, TALLY_MESSAGES, 1);
	end_count(e, TALLY_BYTES, wc->byte_len);
	return answer(e, l);
}

static int on_answered(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	l->done++;
	return answer(e, l);
}

const struct mode mode_echo = {
	.name = "echo", .help = "ping-pong of SENDs, with round-trip times", .service = UROCE_RC, .opcode = UROCE_OP_SEND, .is_receiving = true, .is_answering = true, .most_depth = 1,
	.state_bytes = sizeof(struct turn),
	.client = { .begin = end_receive_all, .step = step, .on_sent = on_acked, .on_received = take_answer },
	.server = { .begin = end_receive_all, .on_sent = on_answered, .on_received = on_question },
};

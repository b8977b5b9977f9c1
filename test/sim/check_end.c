/* SPDX-License-Identifier: BSD-3-Clause */
/* The judgement when all is over: memory against its images, counters and states. Owns what may be this or that, since it depends on what the network lost or on when a mistake struck. */
#include "actor.h"

#include <stdlib.h>
#include <string.h>

#include "counters.h"

/* Bytes that may be anything are made equal before the whole is compared. */
static void forgive(const struct end *e, const struct piece *piece, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		memcpy(e->local + piece[i].offset, e->plan->image_local + piece[i].offset, piece[i].len);
}

/* An unreliable WRITE may have come in part: each of its packets is there, or is not. */
static void forgive_lost_writes(struct end *e)
{
	const struct plan_end *from = e->peer->plan;
	uint32_t mtu = e->plan->attr.path_mtu;
	uint8_t *fill = malloc(e->plan->target_bytes);
	if (!fill)
		abort();
	plan_fill(e->plan->fill_seed + 1, fill, e->plan->target_bytes);
	for (uint32_t i = 0; i < from->steps; i++)
		for (uint32_t at = 0; step_is_write(&from->step[i]) && at < from->step[i].len; at += mtu) {
			uint32_t offset = from->step[i].remote_offset + at, left = from->step[i].len - at, n = left < mtu ? left : mtu;
			if (!memcmp(e->target_memory + offset, fill + offset, n))
				memcpy(e->target_memory + offset, e->plan->image_target + offset, n);
		}
	free(fill);
}

/* What was flushed before it began has left nothing, where nothing is left to chance. */
static void forgive_flushed_writes(struct end *e)
{
	const struct plan_end *from = e->peer->plan;
	uint8_t *fill = malloc(e->plan->target_bytes);
	if (!fill)
		abort();
	plan_fill(e->plan->fill_seed + 1, fill, e->plan->target_bytes);
	for (uint32_t i = 0; i < from->steps; i++) {
		const struct step *s = &from->step[i];
		if (step_is_write(s) && e->peer->is_lost[i] && !memcmp(e->target_memory + s->remote_offset, fill + s->remote_offset, s->len))
			memcpy(e->target_memory + s->remote_offset, e->plan->image_target + s->remote_offset, s->len);
	}
	free(fill);
}

static void forgive_chance(struct end *e)
{
	bool is_vague = mistake_rows[e->plan->mistake].is_vague, is_peer_vague = mistake_rows[e->plan->peer_mistake].is_vague;
	for (uint32_t i = e->is_gone ? e->steps_done : e->failed_step; i < e->plan->steps && (is_vague || i < e->plan->mistake_step); i++)
		if (step_brings_bytes(&e->plan->step[i]))
			forgive(e, e->plan->step[i].piece, e->plan->step[i].pieces);
	for (uint32_t i = 0; i < e->plan->receives; i++)
		if (e->plan->receive[i].is_partial || (is_peer_vague && i >= e->receives_good))
			forgive(e, e->plan->receive[i].piece, e->plan->receive[i].pieces);
	if (e->service != UROCE_RC && !e->plan->is_exact)
		forgive_lost_writes(e);
	if (e->peer->plan->recovers)
		forgive_flushed_writes(e);
	if (is_peer_vague && (e->peer->failed_step != NO_INDEX || e->peer->is_gone))
		memcpy(e->target_memory, e->plan->image_target, e->plan->target_bytes);
}

static uint32_t find_difference(const uint8_t *a, const uint8_t *b, uint32_t len)
{
	uint32_t i = 0;
	if (!memcmp(a, b, len))
		return NO_INDEX;
	while (a[i] == b[i])
		i++;
	return i;
}

/* Where nothing is lost, nothing is sent again but by tail probes and after an RNR NAK (known-bugs 7). */
static void check_calm(const struct end *e, const uint64_t *counter, struct verdict *v)
{
	static const enum qp_counter zero[] = { QP_LOCAL_ACK_TIMEOUT_ERR, QP_PACKET_SEQ_ERR, QP_IMPLIED_NAK_SEQ_ERR, QP_OUT_OF_SEQUENCE };
	if (e->plan->mistake == MISTAKE_RNR && counter[QP_RNR_NAK_RETRY_ERR] != e->plan->attr.rnr_retry + 1u)
		verdict_fail(v, "%s: gave up after %llu RNR NAKs, rnr_retry is %u", e->name, (unsigned long long)counter[QP_RNR_NAK_RETRY_ERR], e->plan->attr.rnr_retry);
	if (e->plan->mistake != MISTAKE_NONE || e->plan->peer_mistake != MISTAKE_NONE)
		return;
	for (unsigned i = 0; i < sizeof(zero) / sizeof(zero[0]); i++)
		if (counter[zero[i]] && !counter[QP_RNR_NAK_RETRY_ERR] && !counter[QP_RNR_NAK_SENT])
			verdict_fail(v, "%s: nothing was lost, but %s is %llu", e->name, uroce_qp_counter_name(zero[i]), (unsigned long long)counter[zero[i]]);
	/* answers that are late twice in a row make probes look like the only survivors of a lost flight: then, and only then, a flight is sent again for nothing */
	uint64_t most = counter[QP_TAIL_PROBES] < 2 ? counter[QP_TAIL_PROBES] : counter[QP_TAIL_PROBES] * e->actor->plan->window_packets;
	if (!counter[QP_RNR_NAK_RETRY_ERR] && counter[QP_RETRANSMITTED_PACKETS] > most)
		verdict_fail(v, "%s: nothing was lost, but %llu packets were sent again, %llu of them as probes", e->name, (unsigned long long)counter[QP_RETRANSMITTED_PACKETS], (unsigned long long)counter[QP_TAIL_PROBES]);
}

static void check_counters(struct end *e, struct verdict *v)
{
	uint64_t counter[QP_COUNTER_COUNT] = { 0 };
	if (uroce_qp_counters(e->qp, counter, QP_COUNTER_COUNT) < QP_COUNTER_COUNT)
		verdict_fail(v, "%s: counters are missing", e->name);
	if (counter[QP_COMPLETED_REQUESTS] != e->plan->steps || counter[QP_COMPLETED_RECEIVES] != e->receives_done)
		verdict_fail(v, "%s: counters say %llu requests and %llu receives completed, must be %u and %u", e->name, (unsigned long long)counter[QP_COMPLETED_REQUESTS],
			(unsigned long long)counter[QP_COMPLETED_RECEIVES], e->plan->steps, e->receives_done);
	if (e->plan->is_exact)
		check_calm(e, counter, v);
}

static void check_state(struct end *e, struct verdict *v)
{
	struct uroce_qp_attr attr;
	const struct mistake_row *row = &mistake_rows[e->peer->plan->mistake];
	bool is_struck = row->is_fatal_to_peer && e->service == UROCE_RC;
	bool is_failed = e->failed_step != NO_INDEX || e->has_failed_receive || e->is_stopped || (is_struck && !row->is_vague);
	if (uroce_qp_query(e->qp, &attr))
		verdict_fail(v, "%s: cannot be queried", e->name);
	else if (e->error_events > (is_struck && attr.state == UROCE_QP_ERR) || (is_struck && !row->is_vague && e->plan->is_exact && !e->has_failed_receive && !e->error_events))
		verdict_fail(v, "%s: was told %u times of an error, in state %d", e->name, e->error_events, attr.state);
	else if (e->last_wqe_events != (e->plan->uses_srq && attr.state == UROCE_QP_ERR))
		verdict_fail(v, "%s: was told %u times that it has taken its last receive from the SRQ, in state %d", e->name, e->last_wqe_events, attr.state);
	else if (is_struck && row->is_vague)
		return; /* it may have been struck, with no receive to show it */
	else if (attr.state != (!is_failed ? UROCE_QP_RTS : e->service != UROCE_RC && !e->is_stopped ? UROCE_QP_SQE : UROCE_QP_ERR))
		verdict_fail(v, "%s: is in state %d at the end", e->name, attr.state);
}

void check_end(struct end *e, struct verdict *v)
{
	uint32_t at;
	if (e->qp) {
		check_counters(e, v);
		check_state(e, v);
	}
	forgive_chance(e);
	at = find_difference(e->local, e->plan->image_local, e->plan->local_bytes);
	if (at != NO_INDEX)
		verdict_fail(v, "%s: byte %u of local memory is 0x%02x at the end, must be 0x%02x", e->name, at, e->local[at], e->plan->image_local[at]);
	at = find_difference(e->target_memory, e->plan->image_target, e->plan->target_bytes);
	if (at != NO_INDEX)
		verdict_fail(v, "%s: byte %u of target memory is 0x%02x at the end, must be 0x%02x", e->name, at, e->target_memory[at], e->plan->image_target[at]);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers and retry budgets. Owns q->retry and its one timer, which is re-armed lazily: progress only moves rto_at and probe_at, and a timer that fires too early looks again.
 * IBA vol. 1, 9.7.6.1.3 (timeout, 4.096 us * 2^t, never earlier), 9.7.5.2.8 and table 46 (RNR); RTT as in RFC 6298; the tail-loss probe follows the idea of RFC 8985, 7.
 *
 * Invariant: at most one of the RNR wait and the transport timeout runs. */
#include "retry.h"

#include "req.h"

#define PROBE_MIN_NS 50000u /* a busy peer is not a loss */
#define PROBES_ALONE 2u /* the first may have crossed with an ACK that was late */
#define US 1000u

const uint32_t rnr_timer_ns[32] = {
	655360 * US, 10 * US, 20 * US, 30 * US, 40 * US, 60 * US, 80 * US, 120 * US,
	160 * US, 240 * US, 320 * US, 480 * US, 640 * US, 960 * US, 1280 * US, 1920 * US,
	2560 * US, 3840 * US, 5120 * US, 7680 * US, 10240 * US, 15360 * US, 20480 * US, 30720 * US,
	40960 * US, 61440 * US, 81920 * US, 122880 * US, 163840 * US, 245760 * US, 327680 * US, 491520 * US,
};

static struct qp *owner_of(struct timer *t)
{
	return (struct qp *)((uint8_t *)t - offsetof(struct qp, retry.timer));
}

static void arm(struct qp *q)
{
	struct retry *r = &q->retry;
	uint64_t at = r->rnr_until ? r->rnr_until : r->rto_at;
	if (!r->rnr_until && r->probe_at && (!at || r->probe_at < at))
		at = r->probe_at;
	if (!at || (timer_is_armed(&r->timer) && r->armed_for <= at))
		return;
	r->armed_for = at;
	wheel_arm(q->env->wheel, &r->timer, at);
}

static void on_timeout(struct qp *q)
{
	q->retry.rto_at = q->retry.probe_at = 0;
	qp_count(q, QP_LOCAL_ACK_TIMEOUT_ERR);
	if (retry_take(q, CAUSE_ACK_TIMEOUT))
		req_on_lost(q);
}

static void on_fired(struct timer *t, uint64_t now)
{
	struct qp *q = owner_of(t);
	struct retry *r = &q->retry;
	r->armed_for = 0;
	if (r->rnr_until) {
		if (r->rnr_until <= now) {
			r->rnr_until = 0;
			qp_wake(q);
		}
	} else if (r->rto_at && r->rto_at <= now) {
		on_timeout(q);
	} else if (r->probe_at && r->probe_at <= now) {
		r->probe_at = 0;
		if (!r->is_probed) {
			r->is_probed = true;
			req_on_probe(q);
		}
	}
	arm(q);
}

void retry_init(struct qp *q)
{
	timer_init(&q->retry.timer, on_fired);
}

void retry_reset(struct qp *q)
{
	wheel_cancel(q->env->wheel, &q->retry.timer);
	q->retry = (struct retry){ .timer = q->retry.timer };
	retry_configure(q);
}

void retry_configure(struct qp *q)
{
	struct retry *r = &q->retry;
	r->rto_ns = q->attr.timeout ? 4096ull << q->attr.timeout : 0;
	r->max_timeouts = q->attr.retry_cnt;
	r->max_rnrs = q->attr.rnr_retry;
}

/* Two smoothed RTTs and room for their variation. 0 without a sample, or where the transport timeout would come first anyway. */
static uint64_t probe_delay(const struct retry *r)
{
	if (!r->srtt_ns || !r->rto_ns || r->is_probed)
		return 0;
	uint64_t ns = 2ull * r->srtt_ns + 4ull * r->rttvar_ns + PROBE_MIN_NS;
	return ns < r->rto_ns ? ns : 0;
}

static void start(struct qp *q)
{
	struct retry *r = &q->retry;
	uint64_t now = q->env->now_ns, delay = probe_delay(r);
	r->rto_at = r->rto_ns ? now + r->rto_ns : 0;
	r->probe_at = delay ? now + delay : 0;
	arm(q);
}

void retry_on_sent(struct qp *q, struct psn psn, bool asks, bool is_again)
{
	struct retry *r = &q->retry;
	if (!r->rto_at)
		start(q);
	else if (r->probe_at)
		r->probe_at = q->env->now_ns + probe_delay(r); /* the tail is what was sent last */
	if (is_again) {
		r->sampled_at = 0; /* Karn: an answer would not tell which transmission it is for */
	} else if (asks && !r->sampled_at) {
		r->sampled_at = q->env->now_ns;
		r->sample_psn = psn;
	}
}

static void take_sample(struct qp *q)
{
	struct retry *r = &q->retry;
	if (!r->sampled_at || !psn_is_before(r->sample_psn, q->flight.una))
		return;
	uint64_t rtt = q->env->now_ns - r->sampled_at;
	uint32_t ns = rtt > 1000000000u ? 1000000000u : (uint32_t)rtt + 1;
	r->sampled_at = 0;
	if (!r->srtt_ns) {
		r->srtt_ns = ns;
		r->rttvar_ns = ns / 2;
		return;
	}
	uint32_t off = ns > r->srtt_ns ? ns - r->srtt_ns : r->srtt_ns - ns;
	r->rttvar_ns += off / 4 - r->rttvar_ns / 4;
	r->srtt_ns += ns / 8 - r->srtt_ns / 8;
}

void retry_on_probe_sent(struct qp *q)
{
	struct retry *r = &q->retry;
	r->sampled_at = 0; /* Karn, again */
	r->probe_psn = q->flight.una;
	r->is_probe_out = true;
}

bool retry_on_progress(struct qp *q)
{
	struct retry *r = &q->retry;
	bool is_probe_alone = r->is_probe_out && psn_is_equal(q->flight.una, psn_add(r->probe_psn, 1)) && inflight_psns(&q->flight);
	r->is_probe_out = false;
	r->probes_alone = is_probe_alone ? r->probes_alone + 1 : 0;
	r->timeouts = r->rnrs = 0;
	r->rnr_until = 0;
	r->is_probed = false;
	r->progress++;
	take_sample(q);
	if (inflight_psns(&q->flight))
		start(q);
	else
		r->rto_at = r->probe_at = 0;
	return r->probes_alone >= PROBES_ALONE;
}

bool retry_take(struct qp *q, enum wc_cause cause)
{
	struct retry *r = &q->retry;
	if (r->timeouts >= r->max_timeouts) {
		qp_fail_send(q, (struct failure){ ABI_WC_RETRY_EXC_ERR, cause });
		return false;
	}
	r->timeouts++;
	r->rto_at = r->probe_at = 0;
	return true;
}

bool retry_take_rnr(struct qp *q, uint8_t code)
{
	struct retry *r = &q->retry;
	if (r->max_rnrs != 7 && r->rnrs >= r->max_rnrs) {
		qp_fail_send(q, (struct failure){ ABI_WC_RNR_RETRY_EXC_ERR, CAUSE_RNR });
		return false;
	}
	if (r->rnrs < UINT8_MAX)
		r->rnrs++;
	r->rto_at = r->probe_at = 0;
	retry_pause(q, rnr_timer_ns[code & 31]);
	return true;
}

void retry_pause(struct qp *q, uint64_t ns)
{
	q->retry.rnr_until = q->env->now_ns + ns;
	arm(q);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting: work requests become WQEs in the slots of a ring, and the engine is told (IBA vol. 1, 11.4.1). The hot path of
 * the program's side: no lock, no system call, no division. It checks what can be seen in the WR alone; keys, ranges and
 * rights are the engine's.
 * Invariant: slots from `tail` on, up to `head` + count, belong to this side; the engine reads none of them before the tail
 * that covers it is published.
 * Errors follow known-bugs 41: everything before a bad WR is posted, nothing from it on. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client.h"

#define unlikely(x) __builtin_expect(!!(x), 0)

_Static_assert(UROCE_OP_SEND == (int)ABI_OP_SEND && UROCE_OP_FLUSH == (int)ABI_OP_FLUSH && UROCE_OP_REG_MR == (int)ABI_OP_REG_MR,
	"opcodes go into the ring as they are");
_Static_assert(UROCE_SEND_SIGNALED == (int)ABI_SEND_SIGNALED && UROCE_SEND_FENCE == (int)ABI_SEND_FENCE,
	"flags go into the ring as they are");
_Static_assert(UROCE_FLUSH_PERSISTENT == (int)ABI_FLUSH_PERSISTENT && UROCE_FLUSH_MR == (int)ABI_FLUSH_MR, "so do these");
_Static_assert(sizeof(struct uroce_sge) == sizeof(struct abi_sge)
		&& offsetof(struct uroce_sge, lkey) == offsetof(struct abi_sge, lkey),
	"SGEs go into the ring as they are");
_Static_assert(sizeof(struct uroce_bind) == sizeof(struct abi_bind) && offsetof(struct uroce_bind, access) == offsetof(struct abi_bind, access)
		&& offsetof(struct uroce_bind, iova) == offsetof(struct abi_bind, iova),
	"binds go into the ring as they are");

#define SEND_FLAGS (UROCE_SEND_SIGNALED | UROCE_SEND_SOLICITED | UROCE_SEND_INLINE | UROCE_SEND_FENCE)

/* States that take a WR, one bit each (IBA vol. 1, 10.3.1; known-bugs 46). In ERR and SQE it is completed as flushed. */
#define STATE(s) (1u << UROCE_QP_##s)
#define SEND_STATES (STATE(RTS) | STATE(SQD) | STATE(SQE) | STATE(ERR))
#define RECV_STATES (STATE(INIT) | STATE(RTR) | STATE(RTS) | STATE(SQD) | STATE(SQE) | STATE(ERR))

enum op_trait {
	OP_IS_KNOWN = 1 << 0,
	OP_HAS_INLINE = 1 << 1,
	OP_IS_WORD = 1 << 2,   /* of 8 bytes, at a multiple of 8 */
	OP_IS_ATOMIC = 1 << 3, /* with operands */
	OP_IS_FLUSH = 1 << 4,
	OP_IS_LOCAL = 1 << 5, /* sends nothing */
	OP_HAS_BIND = 1 << 6,
};
static const uint8_t op_traits[16] = {
	[ABI_OP_SEND] = OP_IS_KNOWN | OP_HAS_INLINE,
	[ABI_OP_SEND_WITH_IMM] = OP_IS_KNOWN | OP_HAS_INLINE,
	[ABI_OP_WRITE] = OP_IS_KNOWN | OP_HAS_INLINE,
	[ABI_OP_WRITE_WITH_IMM] = OP_IS_KNOWN | OP_HAS_INLINE,
	[ABI_OP_READ] = OP_IS_KNOWN,
	[ABI_OP_COMPARE_SWAP] = OP_IS_KNOWN | OP_IS_WORD | OP_IS_ATOMIC,
	[ABI_OP_FETCH_ADD] = OP_IS_KNOWN | OP_IS_WORD | OP_IS_ATOMIC,
	[ABI_OP_ATOMIC_WRITE] = OP_IS_KNOWN | OP_HAS_INLINE | OP_IS_WORD,
	[ABI_OP_FLUSH] = OP_IS_KNOWN | OP_IS_FLUSH,
	[ABI_OP_SEND_WITH_INV] = OP_IS_KNOWN | OP_HAS_INLINE,
	[ABI_OP_BIND_MW] = OP_IS_KNOWN | OP_IS_LOCAL | OP_HAS_BIND,
	[ABI_OP_LOCAL_INV] = OP_IS_KNOWN | OP_IS_LOCAL,
	[ABI_OP_REG_MR] = OP_IS_KNOWN | OP_IS_LOCAL | OP_HAS_BIND,
};
_Static_assert(ABI_OP_COUNT <= sizeof(op_traits), "op_traits is indexed by the low bits of an opcode");

#define BIT(op) (1u << ABI_OP_##op)
/* What each service has (IBA vol. 1, table 38). */
static const uint32_t service_ops[] = {
	[UROCE_RC] = (1u << ABI_OP_COUNT) - 1,
	[UROCE_UC] = BIT(SEND) | BIT(SEND_WITH_IMM) | BIT(WRITE) | BIT(WRITE_WITH_IMM) | BIT(BIND_MW) | BIT(LOCAL_INV) | BIT(REG_MR),
	[UROCE_UD] = BIT(SEND) | BIT(SEND_WITH_IMM),
};
static const char *const service_names[] = { "RC", "UC", "UD" };

uint32_t post_ops(enum uroce_service service)
{
	return service_ops[service];
}

/* ---- refusals: one line each, that says what would be right ---- */

static uint64_t get_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((cold, noinline, format(printf, 3, 4))) static int refuse(struct uroce_qp *qp, struct post_queue *q,
	const char *format, ...)
{
	char text[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_limited(context_log(qp->o.ctx), &q->refusals, get_now_ns(), LOG_WARN, "QP 0x%x, %s refused: %s", qp->qpn,
		q == &qp->sq ? "send" : "receive", text);
	return -EINVAL;
}

__attribute__((cold, noinline)) static int refuse_state(struct uroce_qp *qp, struct post_queue *q, uint32_t state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	return refuse(qp, q, "the QP is in %s; %s", names[state],
		q == &qp->sq ? "sends are taken from RTS on" : "receives are taken from INIT on");
}

/* Of a UD WR: to whom it goes. */
static inline bool names_peer(const struct uroce_qp *qp, const struct uroce_send_wr *wr)
{
	return wr->ah && wr->ah->o.ctx == qp->o.ctx && wr->remote_qpn && wr->remote_qpn <= UROCE_QPN_MULTICAST && wr->ah->is_group == (wr->remote_qpn == UROCE_QPN_MULTICAST);
}

static int refuse_flush(struct uroce_qp *qp, const struct uroce_send_wr *wr)
{
	if (wr->num_sge)
		return refuse(qp, &qp->sq, "wr_id 0x%" PRIx64 ": FLUSH with %u SGEs; it takes none", wr->wr_id, wr->num_sge);
	if (wr->flush.level == UROCE_FLUSH_RANGE && wr->flush.len > qp->max_msg_bytes)
		return refuse(qp, &qp->sq, "wr_id 0x%" PRIx64 ": FLUSH of %u bytes, the most is %" PRIu64, wr->wr_id, wr->flush.len,
			qp->max_msg_bytes);
	return refuse(qp, &qp->sq, "wr_id 0x%" PRIx64 ": FLUSH with placement 0x%x at level %u; it takes 1 to %u at level 0 or 1",
		wr->wr_id, wr->flush.placement, (unsigned)wr->flush.level, ABI_FLUSH_PLACEMENTS);
}

__attribute__((cold, noinline)) static int refuse_send(struct uroce_qp *qp, const struct uroce_send_wr *wr)
{
	struct post_queue *q = &qp->sq;
	uint64_t total = 0;
	uint8_t traits = (unsigned)wr->opcode < ABI_OP_COUNT ? op_traits[wr->opcode] : 0;
	if (!traits)
		return refuse(qp, q, "wr_id 0x%" PRIx64 ": there is no opcode %u; the last is %u", wr->wr_id,
			(unsigned)wr->opcode, ABI_OP_COUNT - 1);
	if (!(qp->ops >> wr->opcode & 1))
		return refuse(qp, q, "wr_id 0x%" PRIx64 ": %s has no opcode %u", wr->wr_id, service_names[qp->service],
			(unsigned)wr->opcode);
	if (qp->service == UROCE_UD && !names_peer(qp, wr))
		return refuse(qp, q, "wr_id 0x%" PRIx64 ": a datagram needs an AH of this context and a remote_qpn (0xffffff to a group, and only there), not %s and 0x%x",
			wr->wr_id, wr->ah ? wr->ah->is_group ? "a group's" : "that" : "none", wr->remote_qpn);
	if (wr->flags & ~(uint32_t)SEND_FLAGS)
		return refuse(qp, q, "wr_id 0x%" PRIx64 ": flags 0x%x, known are 0x%x", wr->wr_id, wr->flags,
			(unsigned)SEND_FLAGS);
	if (wr->num_sge > q->max_sge)
		return refuse(qp, q, "wr_id 0x%" PRIx64 ": %u SGEs, the QP was created for %u (cap.max_send_sge)", wr->wr_id,
			wr->num_sge, q->max_sge);
	if (wr->flags & UROCE_SEND_INLINE && !(traits & OP_HAS_INLINE))
		return refuse(qp, q, "wr_id 0x%" PRIx64 ": opcode %u cannot be inline; only SEND, WRITE and ATOMIC WRITE can",
			wr->wr_id, (unsigned)wr->opcode);
	if (traits & OP_IS_LOCAL)
		return refuse(qp, q, "wr_id 0x%" PRIx64 ": a bind, registration or invalidation takes no SGEs, and the first two need `bind`", wr->wr_id);
	for (uint32_t i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].len;
	if (traits & OP_IS_FLUSH)
		return refuse_flush(qp, wr);
	if (traits & OP_IS_WORD && (wr->num_sge != 1 || total != 8))
		return refuse(qp, q, "wr_id 0x%" PRIx64 ": atomic with %u SGEs of %" PRIu64 " bytes; it takes one of 8",
			wr->wr_id, wr->num_sge, total);
	if (traits & OP_IS_WORD && wr->remote_addr & 7)
		return refuse(qp, q, "wr_id 0x%" PRIx64 ": atomic at 0x%" PRIx64 ", which is not a multiple of 8", wr->wr_id,
			wr->remote_addr);
	if (wr->flags & UROCE_SEND_INLINE && total > q->max_inline)
		return refuse(qp, q, "wr_id 0x%" PRIx64 ": %" PRIu64 " bytes inline, the QP was created for %u (cap.max_inline)",
			wr->wr_id, total, q->max_inline);
	return refuse(qp, q, "wr_id 0x%" PRIx64 ": message of %" PRIu64 " bytes, the most is %" PRIu64, wr->wr_id, total,
		qp->max_msg_bytes);
}

/* ---- WQEs ---- */

/* false: more bytes than the slot takes. */
static inline bool gather_inline(const struct uroce_send_wr *wr, struct abi_send_wqe *wqe, uint32_t room)
{
	uint8_t *to = wqe->inline_data;
	uint32_t used = 0;
	if (__builtin_expect(wr->num_sge == 1 && wr->sg_list[0].len == 8 && room >= 8, 1)) {
		memcpy(to, (const void *)(uintptr_t)wr->sg_list[0].addr, 8);
		wqe->inline_len = 8;
		return true;
	}
	for (uint32_t i = 0; i < wr->num_sge; i++) {
		const struct uroce_sge *sge = &wr->sg_list[i];
		/* Against what is left, so that no sum of lengths can wrap (known-bugs 45). */
		if (sge->len > room - used)
			return false;
		if (sge->len)
			memcpy(to + used, (const void *)(uintptr_t)sge->addr, sge->len);
		used += sge->len;
	}
	wqe->inline_len = used;
	return true;
}

/* The sum of the lengths. */
static inline uint64_t copy_sges(struct abi_sge *to, const struct uroce_sge *from, uint32_t n)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < n; i++) {
		memcpy(&to[i], &from[i], sizeof(to[i]));
		total += from[i].len;
	}
	return total;
}

/* What an atomic or ATOMIC WRITE works on. */
static inline bool is_word(const struct uroce_send_wr *wr)
{
	return wr->num_sge == 1 && wr->sg_list[0].len == 8 && !(wr->remote_addr & 7);
}

/* The body of an operation that sends nothing; false: it is not one that can be posted. */
static bool build_local(const struct uroce_send_wr *wr, struct abi_send_wqe *wqe, uint8_t traits)
{
	bool has_bind = traits & OP_HAS_BIND;
	if (wr->num_sge || (has_bind && !wr->bind))
		return false;
	if (has_bind)
		memcpy(&wqe->bind, wr->bind, sizeof(wqe->bind));
	return true;
}

static bool build_atomic(const struct uroce_send_wr *wr, struct abi_send_wqe *wqe)
{
	bool is_swap = wr->opcode == UROCE_OP_COMPARE_SWAP;
	wqe->atomic.compare = is_swap ? wr->compare_add : 0;
	wqe->atomic.swap_or_add = is_swap ? wr->swap : wr->compare_add;
	copy_sges(&wqe->atomic.sge, wr->sg_list, 1);
	return true;
}

static bool build_flush(const struct uroce_qp *qp, const struct uroce_send_wr *wr, struct abi_send_wqe *wqe)
{
	const struct uroce_flush *f = &wr->flush;
	bool is_range = f->level == UROCE_FLUSH_RANGE; /* else the length says nothing */
	if (wr->num_sge || (is_range && f->len > qp->max_msg_bytes) || !f->placement || f->placement & ~(uint32_t)ABI_FLUSH_PLACEMENTS
		|| (!is_range && f->level != UROCE_FLUSH_MR))
		return false;
	wqe->flush = (struct abi_flush){ .len = f->len, .placement = (uint8_t)f->placement, .selectivity = (uint8_t)f->level };
	return true;
}

/* Writes the WQE; false when the WR is not one that can be posted (the slot then holds anything). */
static inline bool build_send(const struct uroce_qp *qp, const struct uroce_send_wr *wr, struct abi_send_wqe *wqe)
{
	const uint32_t flags = wr->flags | qp->always_flags;
	uint8_t traits;
	if (unlikely((unsigned)wr->opcode >= ABI_OP_COUNT || !(qp->ops >> wr->opcode & 1) || wr->flags & ~(uint32_t)SEND_FLAGS || wr->num_sge > qp->sq.max_sge))
		return false;
	traits = op_traits[wr->opcode];
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)flags;
	wqe->imm = wr->imm;
	if (qp->service == UROCE_UD) {
		if (unlikely(!names_peer(qp, wr)))
			return false;
		wqe->ah = wr->ah->o.handle;
		wqe->remote_qpn = wr->remote_qpn;
		wqe->remote_qkey = wr->remote_qkey;
	} else {
		wqe->remote_addr = wr->remote_addr;
		wqe->rkey = wr->rkey;
	}
	if (unlikely(traits & OP_IS_WORD && !is_word(wr)))
		return false;
	if (flags & UROCE_SEND_INLINE) {
		wqe->num_sge = 0;
		return traits & OP_HAS_INLINE && gather_inline(wr, wqe, qp->sq.max_inline);
	}
	wqe->num_sge = (uint16_t)wr->num_sge;
	wqe->inline_len = 0;
	if (unlikely(traits & (OP_IS_ATOMIC | OP_IS_FLUSH | OP_IS_LOCAL)))
		return traits & OP_IS_ATOMIC ? build_atomic(wr, wqe) : traits & OP_IS_FLUSH ? build_flush(qp, wr, wqe) : build_local(wr, wqe, traits);
	return copy_sges(wqe->sge, wr->sg_list, wr->num_sge) <= qp->max_msg_bytes;
}

/* ---- rings ---- */

int post_queue_init(struct uroce_context *ctx, struct post_queue *q, const struct abi_ring_place *place, uint32_t slot_bytes,
	uint32_t wrs, uint32_t max_sge, uint32_t max_inline)
{
	void *slots;
	int err = context_ring(ctx, place, slot_bytes, &q->ring, &slots);
	if (err)
		return err;
	if (place->slots < wrs) {
		log_write(context_log(ctx), LOG_ERROR, "the engine made a queue of %u slots for %u WRs", place->slots, wrs);
		return -EPROTO;
	}
	q->slots = slots;
	q->count = place->slots;
	q->slot_bytes = place->slot_bytes;
	q->max_sge = max_sge;
	q->max_inline = max_inline;
	/* A new ring is empty, wherever its indices begin. */
	atomic_init(&q->tail, atomic_load_explicit(&q->ring->client_index, memory_order_relaxed));
	atomic_init(&q->head, atomic_load_explicit(&q->tail, memory_order_relaxed));
	return 0;
}

static inline uint32_t get_tail(const struct post_queue *q)
{
	return atomic_load_explicit(&q->tail, memory_order_relaxed);
}

/* How many of n slots are free. The engine's line is read only when the copy of it does not do: each read may cost a cache
 * miss to both sides. */
static inline uint32_t reserve(struct post_queue *q, uint32_t tail, unsigned n)
{
	uint32_t used = tail - atomic_load_explicit(&q->head, memory_order_relaxed);
	if (unlikely(n > q->count - used)) {
		/* Acquire: the engine's reads of the slots that it gave back came before this. */
		used = tail - atomic_load_explicit(&q->ring->engine_index, memory_order_acquire);
		if (used > q->count)
			used = q->count; /* an impossible index: nothing is free, and nothing is forgotten */
		atomic_store_explicit(&q->head, tail - used, memory_order_relaxed);
	}
	return n < q->count - used ? n : q->count - used;
}

static inline void *get_slot(const struct post_queue *q, uint32_t index)
{
	return q->slots + (size_t)(index & (q->count - 1)) * q->slot_bytes;
}

/* Both bits are set each time, even if the lower one was there: the engine may at this moment be between taking the word
 * above and taking this one, and whether it will still come by cannot be seen from here. */
__attribute__((noinline)) static void ring_doorbell(const struct uroce_qp *qp)
{
	const uint32_t word = qp->doorbell / 64;
	/* Release: who sees the bit sees the tail. The upper bit comes last, so that an engine that takes it finds the lower
	 * one. */
	atomic_fetch_or_explicit(&qp->doorbells->word[word], UINT64_C(1) << (qp->doorbell % 64), memory_order_release);
	atomic_fetch_or_explicit(&qp->doorbells->top[word / 64], UINT64_C(1) << (word % 64), memory_order_release);
	/* The bits are visible before `sleeping` is read; the engine sets it, fences, and looks at the bits once more: one
	 * of the two sees the other. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&qp->page->sleeping, memory_order_relaxed))
		qp->o.ctx->ops->wake(qp->o.ctx->session);
}

/* One rule for both queues. The engine looks at an RQ whenever a message needs a receive WQE, so there it asks for doorbells
 * only in ERR, where receives are flushed. */
static inline void publish(struct uroce_qp *qp, struct post_queue *q, uint32_t tail)
{
	/* Release: the WQEs are visible before the tail that covers them, to the engine and to who flushes them when it is
	 * gone. */
	atomic_store_explicit(&q->tail, tail, memory_order_release);
	atomic_store_explicit(&q->ring->client_index, tail, memory_order_release);
	/* The tail is visible before `looking` is read; the engine clears it, fences, and reads the tail once more: one of
	 * the two sees the other. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&q->ring->looking, memory_order_relaxed))
		ring_doorbell(qp);
}

int uroce_post_send(struct uroce_qp *qp, const struct uroce_send_wr *wr, unsigned n)
{
	const uint32_t state = atomic_load_explicit(&qp->state, memory_order_relaxed);
	struct post_queue *q = &qp->sq;
	const uint32_t tail = get_tail(q);
	uint32_t room, posted = 0;
	int err = 0;
	if (unlikely(engine_is_dead(qp->page, qp->life)))
		return -ENODEV;
	if (unlikely(!(SEND_STATES >> state & 1)))
		return refuse_state(qp, q, state);
	room = reserve(q, tail, n);
	for (; posted < room; posted++) {
		if (unlikely(!build_send(qp, &wr[posted], get_slot(q, tail + posted)))) {
			err = refuse_send(qp, &wr[posted]);
			break;
		}
	}
	if (posted) {
		publish(qp, q, tail + posted);
		return (int)posted;
	}
	return err ? err : n ? -ENOMEM : 0;
}

/* Fills slots from the tail on. How many; less than n: the next WR has too many SGEs. */
static inline uint32_t put_receives(const struct post_queue *q, uint32_t tail, const struct uroce_recv_wr *wr, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct abi_recv_wqe *wqe = get_slot(q, tail + i);
		if (unlikely(wr[i].num_sge > q->max_sge))
			return i;
		wqe->wr_id = wr[i].wr_id;
		wqe->num_sge = wr[i].num_sge;
		wqe->reserved = 0;
		copy_sges(wqe->sge, wr[i].sg_list, wr[i].num_sge);
	}
	return n;
}

int uroce_post_recv(struct uroce_qp *qp, const struct uroce_recv_wr *wr, unsigned n)
{
	const uint32_t state = atomic_load_explicit(&qp->state, memory_order_relaxed);
	struct post_queue *q = &qp->rq;
	const uint32_t tail = get_tail(q);
	uint32_t room, posted;
	int err = n ? -ENOMEM : 0;
	if (unlikely(engine_is_dead(qp->page, qp->life)))
		return -ENODEV;
	if (unlikely(!(RECV_STATES >> state & 1)))
		return refuse_state(qp, q, state);
	if (unlikely(qp->srq))
		return refuse(qp, q, "its receives come from an SRQ; post there, by uroce_post_srq_recv");
	room = reserve(q, tail, n);
	posted = put_receives(q, tail, wr, room);
	if (unlikely(posted < room))
		err = refuse(qp, q, "wr_id 0x%" PRIx64 ": %u SGEs, the QP was created for %u (cap.max_recv_sge)",
			wr[posted].wr_id, wr[posted].num_sge, q->max_sge);
	if (!posted)
		return err;
	publish(qp, q, tail + posted);
	return (int)posted;
}

int uroce_post_srq_recv(struct uroce_srq *srq, const struct uroce_recv_wr *wr, unsigned n)
{
	struct post_queue *q = &srq->rq;
	const uint32_t tail = get_tail(q);
	uint32_t room, posted;
	int err = n ? -ENOMEM : 0;
	if (unlikely(engine_is_dead(srq->page, srq->life)))
		return -ENODEV;
	room = reserve(q, tail, n);
	posted = put_receives(q, tail, wr, room);
	if (unlikely(posted < room)) {
		log_limited(context_log(srq->o.ctx), &q->refusals, get_now_ns(), LOG_WARN,
			"SRQ, receive refused: wr_id 0x%" PRIx64 ": %u SGEs, the SRQ was created for %u (max_sge)",
			wr[posted].wr_id, wr[posted].num_sge, q->max_sge);
		err = -EINVAL;
	}
	if (!posted)
		return err;
	atomic_store_explicit(&q->tail, tail + posted, memory_order_relaxed);
	/* Release: the WQEs are visible before the tail that covers them. Nobody has to be told: a message that needs a
	 * receive looks. */
	atomic_store_explicit(&q->ring->client_index, tail + posted, memory_order_release);
	return (int)posted;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets with a right ICRC, posts, and time, in any order, into two live QPs of a core. The input is a list of steps, a byte each and the bytes that the step wants; qp_check.c says what must hold after
 * each. Memory is malloc'd piece by piece, so that the sanitizer sees what touches more than it may; each WR completes once, in post order; every frame that leaves is a good one.
 * known-bugs: 11 22 24 27 33 47 50 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "direct_session.h"
#include "fuzz_core.h"
#include "qp_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define QPS 2u
#define STEPS_MAX 400u
#define MTU 256u
#define MEMORY_BYTES 16384u
#define MEMORY_VA 0x100000u
#define FRAME_BYTES 4352u
#define BURST_MAX 8u

#define AHS 4u
#define NAMES 3u
#define REMOTE_ALL (15 | UROCE_ACCESS_FLUSH_GLOBAL)
#define ACCESS_ALL (REMOTE_ALL | UROCE_ACCESS_MW_BIND)

enum { MR_MAIN, MR_READONLY, MR_LOCAL, MR_FOREIGN, MR_COUNT };

struct input {
	const uint8_t *at, *end;
};

struct side {
	struct uroce_qp *qp;
	enum uroce_service service;
	bool uses_srq;
	uint32_t qpn;
	uint64_t posted_sends, posted_receives;     /* wr_id of the next */
	uint64_t completed_sends, completed_receives; /* least wr_id that may complete next */
};

struct world {
	struct input in;
	uint64_t now;
	struct core *core;
	struct uroce_context *ctx;
	struct uroce_pd *pd[2];
	struct uroce_cq *send_cq, *recv_cq;
	struct uroce_srq *srq;
	struct uroce_ah *ah[AHS]; /* to the peer, to ourselves, to nobody, of another PD */
	uint64_t posted_shared;
	bool is_completed[STEPS_MAX + 1]; /* receives of the SRQ, by wr_id */
	struct uroce_mr *mr[MR_COUNT];
	uint32_t lkey[MR_COUNT], rkey[MR_COUNT];
	struct uroce_mw *window;
	struct uroce_mr *fast;
	uint32_t name[NAMES]; /* keys of a window of type 2, of a fast MR, and of what can be neither; the lower 8 bits are free */
	uint8_t *memory;
	struct side side[QPS];
	uint8_t frame[FRAME_BYTES];
	uint8_t burst[BURST_MAX][FRAME_BYTES];
	uint32_t burst_len[BURST_MAX];
	unsigned burst_n;
};

static uint8_t take(struct world *w)
{
	return w->in.at < w->in.end ? *w->in.at++ : 0;
}

static bool has_more(const struct world *w)
{
	return w->in.at < w->in.end;
}

static void must(int rc)
{
	check_true(rc == 0, "the world can be made");
}

/* ---- making it ---- */

static void ignore_line(void *arg, int level, const char *line)
{
}

static void open_core(struct world *w)
{
	static const uint8_t peer_mac[6] = { 2, 0, 0, 0, 0, 2 };
	struct uroce_open_attr attr = { .log = ignore_line, .log_level = 1 };
	struct gid peer;
	gid_parse("10.0.0.2", &peer);
	w->core = fuzz_core_new(8u << (take(w) & 3), w->now);
	must(addr_learn(core_addr(w->core), &peer, VLAN_NONE, peer_mac, true, w->now));
	must(direct_session_open(w->core, &w->now, &attr, &w->ctx));
	fcntl(uroce_async_fd(w->ctx), F_SETFL, O_NONBLOCK);
}

static void open_memory(struct world *w)
{
	static const uint32_t access[MR_COUNT] = { ACCESS_ALL, UROCE_ACCESS_REMOTE_READ, UROCE_ACCESS_LOCAL_WRITE, ACCESS_ALL };
	w->memory = aligned_alloc(64, MEMORY_BYTES);
	check_true(w->memory, "there is memory");
	memset(w->memory, 0x3c, MEMORY_BYTES);
	must(uroce_pd_create(w->ctx, &w->pd[0]));
	must(uroce_pd_create(w->ctx, &w->pd[1]));
	for (int i = 0; i < MR_COUNT; i++) {
		must(uroce_mr_register_iova(w->pd[i == MR_FOREIGN], w->memory, MEMORY_BYTES, MEMORY_VA, access[i], &w->mr[i]));
		w->lkey[i] = uroce_mr_lkey(w->mr[i]);
		w->rkey[i] = uroce_mr_rkey(w->mr[i]);
	}
}

static void open_names(struct world *w)
{
	must(uroce_mw_create(w->pd[0], UROCE_MW_TYPE_2, &w->window));
	must(uroce_mr_alloc(w->pd[0], &w->fast));
	w->name[0] = uroce_mw_rkey(w->window);
	w->name[1] = uroce_mr_rkey(w->fast);
	w->name[2] = w->rkey[MR_MAIN];
}

static const struct {
	uint32_t init, rtr, rts;                 /* attributes of each step */
	uint8_t first_opcode, opcodes, last_operation;
} services[] = {
	[UROCE_RC] = { UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_ACCESS_FLAGS, UROCE_QP_AV | UROCE_QP_PATH_MTU | UROCE_QP_DEST_QPN | UROCE_QP_RQ_PSN | UROCE_QP_MAX_DEST_RD_ATOMIC | UROCE_QP_MIN_RNR_TIMER,
		UROCE_QP_TIMEOUT | UROCE_QP_RETRY_CNT | UROCE_QP_RNR_RETRY | UROCE_QP_SQ_PSN | UROCE_QP_MAX_RD_ATOMIC, 0, 30, UROCE_OP_REG_MR },
	[UROCE_UC] = { UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_ACCESS_FLAGS, UROCE_QP_AV | UROCE_QP_PATH_MTU | UROCE_QP_DEST_QPN | UROCE_QP_RQ_PSN, UROCE_QP_SQ_PSN, 0x20, 12, UROCE_OP_WRITE_WITH_IMM },
	[UROCE_UD] = { UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_QKEY, 0, UROCE_QP_SQ_PSN, 0x64, 2, UROCE_OP_SEND_WITH_IMM },
};
#define SERVICES (sizeof(services) / sizeof(services[0]))

/* Through INIT and RTR to RTS, with attributes from the input. */
static void connect_qp(struct world *w, struct side *s)
{
	uint8_t a = take(w), b = take(w);
	struct gid peer;
	gid_parse("10.0.0.2", &peer);
	struct uroce_qp_attr attr = {
		.state = UROCE_QP_INIT, .port_num = 1, .access = REMOTE_ALL, .path_mtu = MTU, .dest_qpn = 0x777, .rq_psn = 0xfffff0, .sq_psn = 0xfffff8, .max_dest_rd_atomic = a & 3, .max_rd_atomic = a >> 2 & 3,
		.min_rnr_timer = 1, .timeout = a >> 4 & 7, .retry_cnt = b & 3, .rnr_retry = b >> 2 & 7,
	};
	memcpy(attr.av.dgid.raw, peer.b, 16);
	must(uroce_qp_modify(s->qp, &attr, UROCE_QP_STATE | services[s->service].init));
	attr.state = UROCE_QP_RTR;
	must(uroce_qp_modify(s->qp, &attr, UROCE_QP_STATE | services[s->service].rtr));
	attr.state = UROCE_QP_RTS;
	if (b & 0x80) /* stays in RTR */
		return;
	must(uroce_qp_modify(s->qp, &attr, UROCE_QP_STATE | services[s->service].rts));
}

/* false: refused, since a CQ has overrun. */
static bool create_qp(struct world *w, struct side *s)
{
	uint8_t b = take(w);
	*s = (struct side){ .service = b % SERVICES, .uses_srq = b & 0x40 };
	struct uroce_qp_init init = { .srq = s->uses_srq ? w->srq : NULL, .service = s->service, .send_cq = w->send_cq, .recv_cq = w->recv_cq, .cap = { 16, 16, 4, 4, 64 } };
	if (uroce_qp_create(w->pd[0], &init, &s->qp))
		return false;
	s->qpn = uroce_qp_num(s->qp);
	connect_qp(w, s);
	return true;
}

static void make_ah(struct world *w, unsigned i)
{
	static const char *const to[AHS] = { "10.0.0.2", "10.0.0.1", "10.0.0.77", "10.0.0.2" };
	struct uroce_av av = { 0 };
	struct gid gid;
	gid_parse(to[i], &gid);
	memcpy(av.dgid.raw, gid.b, 16);
	if (!w->ah[i])
		must(uroce_ah_create(w->pd[i == 3], &av, &w->ah[i]));
}

static void open_queues(struct world *w)
{
	must(uroce_cq_create(w->ctx, 64, NULL, NULL, &w->send_cq));
	must(uroce_cq_create(w->ctx, 64, NULL, NULL, &w->recv_cq));
	if (!w->srq)
		must(uroce_srq_create(w->pd[0], &(struct uroce_srq_init){ .attr = { 8, 4, 2 } }, &w->srq));
	for (unsigned i = 0; i < AHS; i++)
		make_ah(w, i);
	for (unsigned i = 0; i < QPS; i++)
		check_true(create_qp(w, &w->side[i]), "a QP can be made");
}

static void open_world(struct world *w)
{
	w->now = 1000000000;
	open_core(w);
	open_memory(w);
	open_names(w);
	open_queues(w);
}

/* ---- values ---- */

static uint32_t pick_len(struct world *w)
{
	static const uint32_t lens[] = { 0, 1, 8, MTU - 1, MTU, MTU + 1, 2 * MTU, 4 * MTU + 3 };
	uint8_t b = take(w);
	return b < 8 ? lens[b] : b;
}

static uint64_t pick_va(struct world *w)
{
	static const uint64_t odd[] = { MEMORY_VA - 1, MEMORY_VA + MEMORY_BYTES - 8, MEMORY_VA + MEMORY_BYTES - 7, UINT64_MAX - 7, 0, 1ull << 63 };
	uint8_t b = take(w);
	return b < 6 ? odd[b] : MEMORY_VA + (uint64_t)b * 8;
}

static uint32_t pick_dlen(struct world *w, uint32_t payload)
{
	static const uint32_t odd[] = { 0, 1, MTU, MEMORY_BYTES, MEMORY_BYTES + 1, 0x80000000u, 0x80000001u, 0xffffffffu };
	uint8_t b = take(w);
	if (b >= 0x80) /* what is right for it as the first of some packets */
		return payload + (b & 7) * MTU;
	return b < 8 ? odd[b] : b * 16u;
}

/* Of two keys each of a window and of a fast MR. */
static uint32_t pick_name(struct world *w)
{
	uint8_t b = take(w);
	return w->name[b % NAMES] ^ (b & 0x80 ? 1 : 0);
}

static uint32_t pick_key(struct world *w, const uint32_t keys[MR_COUNT])
{
	uint8_t b = take(w);
	if ((b & 0xf0) == 0x10)
		return pick_name(w);
	return b & 0xc0 ? keys[MR_MAIN] : b & 0x20 ? b : keys[b % MR_COUNT];
}

/* ---- packets from the peer ---- */

static void hand_over(struct world *w)
{
	struct core_frame frames[BURST_MAX];
	for (unsigned i = 0; i < w->burst_n; i++)
		frames[i] = (struct core_frame){ .data = w->burst[i], .len = w->burst_len[i], .vlan_tci = VLAN_NONE };
	core_rx(w->core, w->now, frames, w->burst_n);
	w->burst_n = 0;
}

static uint8_t *write_extensions(struct world *w, const struct opcode *op, uint32_t payload, uint8_t *at)
{
	if (op->flags & OPCODE_FETH) {
		uint8_t b = take(w);
		at = feth_write(at, &(struct feth){ b & 0xf, b >> 4 });
	}
	if (op->flags & OPCODE_RETH) {
		uint64_t va = pick_va(w);
		uint32_t key = pick_key(w, w->rkey);
		at = reth_write(at, va, key, pick_dlen(w, payload));
	}
	if (op->flags & OPCODE_DETH)
		at = deth_write(at, take(w), take(w));
	if (op->flags & OPCODE_AETH) {
		uint8_t syndrome = take(w);
		at = aeth_write(at, syndrome, take(w));
	}
	if (op->flags & OPCODE_ATOMIC) {
		struct atomic_eth a = { .va = pick_va(w), .rkey = pick_key(w, w->rkey), .swap_or_add = take(w), .compare = 0x3c3c3c3c3c3c3c3c };
		at = atomic_eth_write(at, &a);
	}
	if (op->flags & OPCODE_ATOMIC_ACK)
		at = atomic_ack_write(at, take(w));
	if (op->flags & OPCODE_IMMEDIATE)
		at = immediate_write(at, take(w));
	if (op->flags & OPCODE_INVALIDATE)
		at = ieth_write(at, pick_name(w));
	return at;
}

static void step_packet(struct world *w, struct side *s)
{
	static const struct template_fields fields = { .dmac = { 2, 0, 0, 0, 0, 1 }, .smac = { 2, 0, 0, 0, 0, 2 }, .vlan = VLAN_NONE, .ttl = 64, .udp_src_port = 0xc000 };
	uint8_t byte = take(w); /* mostly of the service */
	const struct opcode *op = opcode_of(byte & 0x80 ? byte & 0x7f : services[s->service].first_opcode + byte % services[s->service].opcodes);
	if (!op)
		return;
	uint8_t flags = take(w);
	const struct qp *q = qpn_find(&w->core->qpns, s->qpn);
	struct template_fields f = fields;
	struct template t;
	gid_parse(flags == 0xff ? "10.0.0.3" : "10.0.0.2", &f.src);
	gid_parse("10.0.0.1", &f.dst);
	template_build(&t, &f);
	/* requests near what is expected, the rest near what is unacknowledged */
	struct psn base = !q ? psn_make(0) : op->flags & OPCODE_REQUEST ? q->resp.epsn : q->flight.una;
	struct bth b = { .op = op, .dqpn = s->qpn, .psn = psn_add(base, (uint32_t)(int8_t)take(w)), .pkey = 0xffff, .ack_request = flags & 1, .solicited = flags & 2 };
	if (flags & 4) /* as it should be */
		b.psn = base;
	uint32_t len = op->flags & OPCODE_PAYLOAD ? pick_len(w) : 0;
	if (flags & 8 && op->flags & OPCODE_PAYLOAD && !(op->flags & OPCODE_LAST))
		len = MTU;
	unsigned pad = -len & 3;
	uint8_t *frame = w->burst[w->burst_n], *at = write_extensions(w, op, len, bth_write(template_lay(frame, &t), &b, pad));
	memset(at, 0x3c, len);
	memset(at + len, 0, pad);
	w->burst_len[w->burst_n++] = packet_finish(frame, &t, at + len + pad);
	if (!(flags & 0x10) || w->burst_n == BURST_MAX)
		hand_over(w);
}

/* ---- the program ---- */

static unsigned pick_sges(struct world *w, struct uroce_sge *sge)
{
	unsigned n = take(w) % 5;
	for (unsigned i = 0; i < n; i++)
		sge[i] = (struct uroce_sge){ pick_va(w), pick_len(w), pick_key(w, w->lkey) };
	return n;
}

static void step_send(struct world *w, struct side *s)
{
	struct uroce_sge sge[4];
	struct uroce_bind bind;
	uint8_t op = take(w), flags = take(w);
	struct uroce_send_wr wr = { .wr_id = s->posted_sends, .sg_list = sge, .opcode = op % (services[s->service].last_operation + 1u), .flags = flags & 0xb, .remote_addr = 0x7000, .rkey = 0x1234, .compare_add = 1, .swap = 2 };
	wr.num_sge = pick_sges(w, sge);
	if (wr.opcode >= UROCE_OP_COMPARE_SWAP && wr.opcode <= UROCE_OP_ATOMIC_WRITE) {
		sge[0].addr = MEMORY_VA;
		sge[0].len = 8;
		sge[0].lkey = w->lkey[op & 0x80 ? MR_READONLY : MR_MAIN];
		wr.num_sge = 1;
	}
	if (wr.opcode == UROCE_OP_FLUSH) {
		wr.num_sge = 0;
		wr.flush = (struct uroce_flush){ op, flags >> 4 & 3, flags >> 6 & 1 };
	}
	if (wr.opcode >= UROCE_OP_SEND_WITH_INV)
		wr.rkey = wr.invalidate_rkey = pick_name(w);
	if (wr.opcode > UROCE_OP_SEND_WITH_INV) {
		wr.num_sge = 0;
		bind = (struct uroce_bind){ .addr = pick_va(w), .len = pick_len(w), .lkey = pick_key(w, w->lkey), .access = take(w) & 0x2f, .iova = MEMORY_VA };
		wr.bind = &bind;
	}
	if (s->service == UROCE_UD) {
		uint8_t to = take(w);
		wr.ah = w->ah[to % AHS];
		wr.remote_qpn = to & 0x80 ? w->side[to >> 6 & 1].qpn : 0x777;
		wr.remote_qkey = to & 0x20 ? 0x80000000 : 0;
	}
	s->posted_sends += uroce_post_send(s->qp, &wr, 1) == 1;
}

static void step_receive(struct world *w, struct side *s)
{
	struct uroce_sge sge[4];
	struct uroce_recv_wr wr = { .wr_id = s->uses_srq ? w->posted_shared : s->posted_receives, .sg_list = sge };
	wr.num_sge = pick_sges(w, sge);
	if (s->uses_srq)
		w->posted_shared += uroce_post_srq_recv(w->srq, &wr, 1) == 1;
	else
		s->posted_receives += uroce_post_recv(s->qp, &wr, 1) == 1;
}

static struct side *side_of(struct world *w, uint32_t qpn)
{
	for (unsigned i = 0; i < QPS; i++)
		if (w->side[i].qp && w->side[i].qpn == qpn)
			return &w->side[i];
	return NULL;
}

/* In post order, each once, none that was not posted. */
static void take_completions(struct world *w, struct uroce_cq *cq, bool is_send)
{
	struct uroce_wc wc;
	while (uroce_cq_poll(cq, &wc, 1) == 1) {
		struct side *s = side_of(w, wc.qpn);
		check_true(s != NULL, "a completion is of a QP");
		check_true(wc.status || wc.byte_len <= 0x80000000u, "no message is longer than it may be");
		if (!is_send && s->uses_srq) {
			check_true(wc.wr_id < w->posted_shared && !w->is_completed[wc.wr_id], "a receive of an SRQ completes once");
			w->is_completed[wc.wr_id] = true;
			continue;
		}
		uint64_t *next = is_send ? &s->completed_sends : &s->completed_receives, posted = is_send ? s->posted_sends : s->posted_receives;
		check_true(wc.wr_id >= *next && wc.wr_id < posted, "completions come once and in post order");
		check_true(is_send || wc.wr_id == *next, "no receive is passed over");
		*next = wc.wr_id + 1;
	}
}

static void step_poll(struct world *w, struct side *s)
{
	struct uroce_async_event e;
	take_completions(w, w->send_cq, true);
	take_completions(w, w->recv_cq, false);
	while (!uroce_async_get_event(w->ctx, &e))
		uroce_async_ack_event(&e);
}

static void check_frame(const struct world *w, uint32_t len)
{
	struct packet p;
	check_true(packet_parse(&p, w->frame, len, VLAN_NONE, NULL) == DROP_NONE, "what leaves can be parsed");
	if (p.kind != PACKET_ROCE)
		return;
	check_true(packet_is_icrc_ok(&p), "with a right ICRC");
	check_true(p.op->service != SERVICE_UC || !p.ack_request, "UC asks for no answer");
	check_true(p.op->service != SERVICE_UD || (!p.ack_request && gid_is_ip4(&p.dst) && p.dst.b[15] == 2), "datagrams ask for no answer, and only the peer's go to the wire");
	bool is_ud = p.op->service == SERVICE_UD;
	check_true((p.dqpn == 0x777 || is_ud) && p.payload_len <= (is_ud ? 4096u : MTU), "to the peer's QP, within the MTU");
}

static void pull(struct world *w, unsigned n)
{
	struct core_frame f = { .data = w->frame, .room = FRAME_BYTES };
	core_run(w->core, w->now);
	core_scan(w->core);
	while (n-- && core_tx(w->core, w->now, &f, 1))
		check_frame(w, f.len);
}

static void step_pull(struct world *w, struct side *s)
{
	pull(w, take(w) % 40);
}

static void step_time(struct world *w, struct side *s)
{
	uint8_t b = take(w);
	w->now += b & 0x80 ? 1000ull << (b & 15) : b * 100u;
	pull(w, 0);
}

static void step_deregister(struct world *w, struct side *s)
{
	unsigned i = take(w) % MR_COUNT;
	int rc = w->mr[i] ? uroce_mr_deregister(w->mr[i]) : 0;
	check_true(!rc || rc == -EBUSY, "an MR goes, unless something is bound to it");
	if (!rc)
		w->mr[i] = NULL;
}

static void forget(struct side *s)
{
	s->completed_sends = s->posted_sends;
	s->completed_receives = s->posted_receives;
}

static void step_modify(struct world *w, struct side *s)
{
	uint8_t b = take(w);
	struct uroce_qp_attr a = { .state = b % 7, .sqd_async_notify = true, .max_rd_atomic = b >> 3 & 3, .max_dest_rd_atomic = b >> 5 & 3 };
	uint32_t mask = UROCE_QP_STATE;
	if (a.state == UROCE_QP_SQD)
		mask |= b & 0x80 && s->service == UROCE_RC ? UROCE_QP_MAX_RD_ATOMIC | UROCE_QP_MAX_DEST_RD_ATOMIC : UROCE_QP_EN_SQD_ASYNC_NOTIFY;
	if (uroce_qp_modify(s->qp, &a, mask) || a.state != UROCE_QP_RESET)
		return;
	forget(s);
	connect_qp(w, s);
}

static void step_replace(struct world *w, struct side *s)
{
	step_poll(w, s);
	must(uroce_qp_destroy(s->qp));
	if (create_qp(w, s))
		return;
	for (unsigned i = 0; i < QPS; i++)
		must(uroce_qp_destroy(w->side[i].qp));
	must(uroce_cq_destroy(w->send_cq));
	must(uroce_cq_destroy(w->recv_cq));
	open_queues(w);
}

static void step_ah(struct world *w, struct side *s)
{
	uint8_t b = take(w);
	unsigned i = b % AHS;
	if (!(b & 0x80)) {
		make_ah(w, i);
		return;
	}
	must(uroce_ah_destroy(w->ah[i]));
	w->ah[i] = NULL;
}

static void step_srq(struct world *w, struct side *s)
{
	uint8_t b = take(w);
	if (b & 0x40) {
		step_ah(w, s);
		return;
	}
	struct uroce_srq_attr a = { .max_wr = 1u << (b & 7), .limit = b >> 3 & 7 };
	uroce_srq_modify(w->srq, &a, b & 0x80 ? UROCE_SRQ_MAX_WR : UROCE_SRQ_LIMIT);
}

static void (*const steps[])(struct world *w, struct side *s) = {
	step_packet, step_packet, step_packet, step_packet, step_packet, step_send, step_send, step_receive, step_pull, step_pull, step_time, step_poll, step_deregister, step_modify, step_replace, step_srq,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world *w = calloc(1, sizeof(*w));
	check_true(w, "there is memory");
	w->in = (struct input){ data, data + size };
	open_world(w);
	for (unsigned n = 0; n < STEPS_MAX && has_more(w); n++) {
		uint8_t b = take(w);
		steps[b & 15](w, &w->side[b >> 7]);
		check_core(w->core);
		for (unsigned i = 0; i < QPS; i++)
			check_qp(qpn_find(&w->core->qpns, w->side[i].qpn));
	}
	hand_over(w);
	pull(w, 1000);
	step_poll(w, &w->side[0]);
	uroce_close(w->ctx);
	core_free(w->core);
	free(w->memory);
	free(w);
	return 0;
}

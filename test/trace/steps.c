/* SPDX-License-Identifier: BSD-3-Clause */
/* What each line of a trace does. The table at the end is the language; test/trace/README.md explains it. */
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

struct name {
	const char *name;
	unsigned value;
};

static const struct name statuses[] = {
	{ "SUCCESS", UROCE_WC_SUCCESS }, { "LOC_LEN_ERR", UROCE_WC_LOC_LEN_ERR }, { "LOC_QP_OP_ERR", UROCE_WC_LOC_QP_OP_ERR }, { "LOC_PROT_ERR", UROCE_WC_LOC_PROT_ERR },
	{ "WR_FLUSH_ERR", UROCE_WC_WR_FLUSH_ERR }, { "MW_BIND_ERR", UROCE_WC_MW_BIND_ERR }, { "BAD_RESP_ERR", UROCE_WC_BAD_RESP_ERR }, { "REM_INV_REQ_ERR", UROCE_WC_REM_INV_REQ_ERR }, { "REM_ACCESS_ERR", UROCE_WC_REM_ACCESS_ERR },
	{ "REM_OP_ERR", UROCE_WC_REM_OP_ERR }, { "RETRY_EXC_ERR", UROCE_WC_RETRY_EXC_ERR }, { "RNR_RETRY_EXC_ERR", UROCE_WC_RNR_RETRY_EXC_ERR }, { "FATAL_ERR", UROCE_WC_FATAL_ERR }, { NULL, 0 },
};
static const struct name wc_opcodes[] = {
	{ "SEND", UROCE_WC_SEND }, { "WRITE", UROCE_WC_WRITE }, { "READ", UROCE_WC_READ }, { "COMPARE_SWAP", UROCE_WC_COMPARE_SWAP }, { "FETCH_ADD", UROCE_WC_FETCH_ADD },
	{ "ATOMIC_WRITE", UROCE_WC_ATOMIC_WRITE }, { "FLUSH", UROCE_WC_FLUSH }, { "BIND_MW", UROCE_WC_BIND_MW }, { "LOCAL_INV", UROCE_WC_LOCAL_INV }, { "REG_MR", UROCE_WC_REG_MR },
	{ "RECV", UROCE_WC_RECV }, { "RECV_WRITE_WITH_IMM", UROCE_WC_RECV_WRITE_WITH_IMM }, { NULL, 0 },
};
static const struct name opcodes[] = {
	{ "SEND", UROCE_OP_SEND }, { "SEND_IMM", UROCE_OP_SEND_WITH_IMM }, { "WRITE", UROCE_OP_WRITE }, { "WRITE_IMM", UROCE_OP_WRITE_WITH_IMM }, { "READ", UROCE_OP_READ },
	{ "COMPARE_SWAP", UROCE_OP_COMPARE_SWAP }, { "FETCH_ADD", UROCE_OP_FETCH_ADD }, { "ATOMIC_WRITE", UROCE_OP_ATOMIC_WRITE }, { "FLUSH", UROCE_OP_FLUSH },
	{ "SEND_INV", UROCE_OP_SEND_WITH_INV }, { "BIND_MW", UROCE_OP_BIND_MW }, { "LOCAL_INV", UROCE_OP_LOCAL_INV }, { "REG_MR", UROCE_OP_REG_MR }, { NULL, 0 },
};
static const struct name events[] = {
	{ "CQ_ERR", UROCE_EVENT_CQ_ERR }, { "QP_FATAL", UROCE_EVENT_QP_FATAL }, { "QP_REQ_ERR", UROCE_EVENT_QP_REQ_ERR }, { "QP_ACCESS_ERR", UROCE_EVENT_QP_ACCESS_ERR },
	{ "COMM_EST", UROCE_EVENT_COMM_EST }, { "SQ_DRAINED", UROCE_EVENT_SQ_DRAINED }, { "SRQ_ERR", UROCE_EVENT_SRQ_ERR },
	{ "SRQ_LIMIT_REACHED", UROCE_EVENT_SRQ_LIMIT_REACHED }, { "QP_LAST_WQE_REACHED", UROCE_EVENT_QP_LAST_WQE_REACHED }, { NULL, 0 },
};

static unsigned value_of(const struct name *names, const char *name)
{
	for (; names->name; names++)
		if (!strcmp(names->name, name))
			return names->value;
	fail("no such name: %s", name);
}

static const char *name_of(const struct name *names, unsigned value)
{
	for (; names->name; names++)
		if (names->value == value)
			return names->name;
	return "?";
}

/* ---- packets and time ---- */

static void do_expect(struct world *w, struct line *l)
{
	uint32_t len = l->has_time ? world_wait(w, w->event_at + l->to_ns) : world_pull(w);
	if (!len)
		fail("no packet came");
	if (w->now < w->event_at + l->from_ns)
		fail("a packet came after %.3f us", (double)(w->now - w->event_at) / 1000);
	packet_match(w, l, len);
}

static void do_inject(struct world *w, struct line *l)
{
	packet_inject(w, l);
}

static void do_skip(struct world *w, struct line *l)
{
	for (uint64_t i = parse_number(line_first(l)); i; i--)
		if (!world_pull(w))
			fail("%llu more should have come", (unsigned long long)i);
}

static void do_nothing(struct world *w, struct line *l)
{
	if (l->n)
		world_run(w, w->now + parse_time(line_first(l)));
	else if (world_pull(w))
		fail("a packet came");
}

static void do_drop(struct world *w, struct line *l)
{
	const char *name = line_first(l);
	if (strcmp(name, drop_name(w->last_drop)))
		fail("the packet before counts as %s", drop_name(w->last_drop));
}

/* ---- work requests ---- */

/* sge=OFFSET:LENGTH[,...], or one of at= and len=. */
static unsigned read_sges(const struct world *w, struct line *l, struct uroce_sge *sge)
{
	const char *key = line_text(l, "lkey"), *list = line_text(l, "sge");
	uint32_t lkey = world_key(w, key ? key : "main", false);
	unsigned n = 0;
	if (!list) {
		const char *at = line_text(l, "at");
		uint32_t len = (uint32_t)line_number(l, "len", 0);
		sge[0] = (struct uroce_sge){ MEMORY_VA + (at ? parse_number(at) : 0), len, lkey };
		return len ? 1 : 0;
	}
	for (char *end = (char *)list; n < 4 && *end; n++) {
		uint64_t at = strtoull(end, &end, 0);
		if (*end++ != ':')
			fail("sge=OFFSET:LENGTH[,OFFSET:LENGTH...]");
		sge[n] = (struct uroce_sge){ MEMORY_VA + at, (uint32_t)strtoull(end, &end, 0), lkey };
		end += *end == ',';
	}
	return n;
}

/* BIND_MW and REG_MR: what of at= and len= of which MR, with which rights. */
static void read_bind(const struct world *w, struct line *l, struct uroce_bind *b)
{
	const char *key = line_text(l, "lkey"), *at = line_text(l, "at"), *iova = line_text(l, "iova");
	*b = (struct uroce_bind){ .addr = MEMORY_VA + (at ? parse_number(at) : 0), .len = line_number(l, "len", 0), .lkey = world_key(w, key ? key : "main", false), .access = (uint32_t)line_number(l, "access", 14) };
	b->iova = iova ? world_va(iova) : b->addr;
}

static void do_post(struct world *w, struct line *l)
{
	struct uroce_sge sge[4];
	struct uroce_bind bind;
	struct uroce_send_wr wr = { .opcode = (enum uroce_opcode)value_of(opcodes, line_first(l)), .sg_list = sge };
	const char *va = line_text(l, "va");
	bool is_cas = wr.opcode == UROCE_OP_COMPARE_SWAP;
	uint64_t n = line_number(l, "n", 1);
	int want = (int)line_number(l, "refused", 0);
	bool is_local = wr.opcode >= UROCE_OP_BIND_MW && wr.opcode <= UROCE_OP_REG_MR;
	const char *rkey = line_text(l, "rkey"), *inv = line_text(l, "inv");
	if (is_local)
		read_bind(w, l, &bind);
	wr.num_sge = is_local ? 0 : read_sges(w, l, sge);
	if (line_has(l, "inline")) /* inline data has real addresses */
		for (unsigned i = 0; i < wr.num_sge; i++)
			sge[i].addr += (uintptr_t)w->memory - MEMORY_VA;
	wr.wr_id = line_number(l, "wr", 0);
	wr.flags = (line_has(l, "unsignaled") ? 0 : UROCE_SEND_SIGNALED) | (line_has(l, "fence") ? UROCE_SEND_FENCE : 0) | (line_has(l, "inline") ? UROCE_SEND_INLINE : 0) |
		   (line_has(l, "solicited") ? UROCE_SEND_SOLICITED : 0);
	wr.imm = (uint32_t)line_number(l, "imm", 0);
	wr.remote_addr = va ? world_va(va) : 0x7000;
	wr.rkey = rkey ? world_key(w, rkey, true) : 0x1234;
	if (inv)
		wr.invalidate_rkey = world_key(w, inv, true);
	if (is_local)
		wr.bind = &bind;
	wr.compare_add = line_number(l, is_cas ? "compare" : "add", 0);
	wr.swap = line_number(l, "swap", 0);
	if (wr.opcode == UROCE_OP_FLUSH)
		wr.flush = (struct uroce_flush){ (uint32_t)line_number(l, "dlen", 0), (uint32_t)line_number(l, "place", UROCE_FLUSH_GLOBAL), (enum uroce_flush_level)line_number(l, "sel", UROCE_FLUSH_RANGE) };
	if (w->service == UROCE_UD) {
		const char *ah = line_text(l, "ah");
		wr.ah = *world_ah(w, ah ? ah : "peer");
		wr.remote_qpn = line_has(l, "to_self") ? w->qpn : (uint32_t)line_number(l, "qpn", PEER_QPN);
		wr.remote_qkey = (uint32_t)line_number(l, "qkey", QKEY);
	}
	for (; n; n--, wr.wr_id++) {
		int rc = uroce_post_send(w->qp, &wr, 1);
		if (rc != (want ? want : 1))
			fail("uroce_post_send: %d", rc);
	}
}

static void do_recv(struct world *w, struct line *l)
{
	struct uroce_sge sge[4];
	uint64_t n = line_number(l, "n", 1);
	int want = (int)line_number(l, "refused", 0);
	bool at_qp = line_has(l, "at_qp");
	struct uroce_recv_wr wr = { .wr_id = line_number(l, "wr", 0), .sg_list = sge };
	wr.num_sge = read_sges(w, l, sge);
	for (; n; n--, wr.wr_id++) {
		int rc = w->srq && !at_qp ? uroce_post_srq_recv(w->srq, &wr, 1) : uroce_post_recv(w->qp, &wr, 1);
		if (rc != (want ? want : 1))
			fail("posting a receive: %d", rc);
	}
}

/* ---- completions ---- */

static void take_completion(struct world *w, struct line *l, struct uroce_cq *cq, struct uroce_wc *wc)
{
	uint64_t limit = w->event_at + l->to_ns;
	int n = uroce_cq_poll(cq, wc, 1);
	for (unsigned i = 0; !n && (i == 0 || w->now < limit); i++) {
		if (world_step(w, limit > w->now ? limit : w->now))
			fail("a packet came before the completion");
		n = uroce_cq_poll(cq, wc, 1);
	}
	if (n != 1)
		fail("no completion");
	if (w->now < w->event_at + l->from_ns)
		fail("the completion came after %.3f us", (double)(w->now - w->event_at) / 1000);
}

static void compare(struct line *l, const char *key, uint64_t got)
{
	uint64_t want = line_number(l, key, got);
	if (want != got)
		fail("%s should be %llu (0x%llx), is %llu (0x%llx)", key, (unsigned long long)want, (unsigned long long)want, (unsigned long long)got, (unsigned long long)got);
}

/* The first 40 bytes of a datagram's receive, at this offset of memory: the IP header of the packet, as it came. */
static void check_grh(const struct world *w, uint32_t at)
{
	uint8_t want[40] = { 0 };
	memcpy(want + (w->is_ip6 ? 0 : 20), w->last_ip, w->is_ip6 ? 40 : 20);
	for (unsigned i = 0; i < 40; i++)
		if (w->memory[at + i] != want[i])
			fail("byte %u of the GRH area is 0x%02x, not 0x%02x", i, w->memory[at + i], want[i]);
}

static void check_completion(struct world *w, struct line *l, struct uroce_cq *cq)
{
	struct uroce_wc wc;
	take_completion(w, l, cq, &wc);
	const char *status = line_text(l, "status"), *op = line_text(l, "op");
	if (value_of(statuses, status ? status : "SUCCESS") != wc.status)
		fail("the status is %s (%s), of wr %llu", name_of(statuses, wc.status), uroce_wc_cause_str(wc.vendor_error), (unsigned long long)wc.wr_id);
	compare(l, "wr", wc.wr_id);
	if (op && value_of(wc_opcodes, op) != wc.opcode)
		fail("the operation is %s", name_of(wc_opcodes, wc.opcode));
	compare(l, "len", wc.byte_len);
	if (line_has(l, "imm")) {
		if (!(wc.flags & UROCE_WC_HAS_IMM))
			fail("it has no immediate data");
		compare(l, "imm", wc.imm);
	}
	const char *inv = line_text(l, "inv");
	if (!!(wc.flags & UROCE_WC_HAS_INVALIDATED) != (inv != NULL) || (inv && wc.invalidated_rkey != world_key(w, inv, true)))
		fail("its flags are 0x%x, of invalidated key 0x%x", wc.flags, wc.invalidated_rkey);
	compare(l, "src", wc.src_qpn);
	compare(l, "sl", wc.sl);
	compare(l, "vlan", wc.vlan);
	const char *grh = line_text(l, "grh");
	if (!!(wc.flags & UROCE_WC_HAS_GRH) != (grh != NULL))
		fail("its flags are 0x%x", wc.flags);
	if (grh)
		check_grh(w, (uint32_t)parse_number(grh));
	if (wc.qpn != uroce_qp_num(w->qp))
		fail("it is of QP 0x%x", wc.qpn);
}

static void do_wc(struct world *w, struct line *l)
{
	uint64_t n = line_number(l, "n", 1);
	if (n == 1) {
		check_completion(w, l, w->send_cq);
		return;
	}
	for (uint64_t first = line_number(l, "wr", 0), i = 0; i < n; i++) {
		struct uroce_wc wc;
		const char *status = line_text(l, "status");
		take_completion(w, l, w->send_cq, &wc);
		if (wc.wr_id != first + i || wc.status != value_of(statuses, status ? status : "SUCCESS"))
			fail("completion %llu is wr %llu, %s", (unsigned long long)i, (unsigned long long)wc.wr_id, name_of(statuses, wc.status));
	}
}

static void do_rwc(struct world *w, struct line *l)
{
	check_completion(w, l, w->recv_cq);
}

static void do_nowc(struct world *w, struct line *l)
{
	struct uroce_wc wc;
	core_run(w->core, w->now);
	if (uroce_cq_poll(w->send_cq, &wc, 1) || uroce_cq_poll(w->recv_cq, &wc, 1))
		fail("wr %llu completed, %s", (unsigned long long)wc.wr_id, name_of(statuses, wc.status));
}

/* ---- the QP and what it stands on ---- */

static void do_qp(struct world *w, struct line *l)
{
	world_open(w, l);
}

static void do_modify(struct world *w, struct line *l)
{
	struct uroce_qp_attr a = { 0 };
	uint32_t mask = 0;
	const char *state = line_text(l, "state");
	int want = (int)line_number(l, "refused", 0);
	if (state) {
		a.state = world_state(state);
		mask |= UROCE_QP_STATE;
	}
	a.sqd_async_notify = line_has(l, "notify");
	mask |= a.sqd_async_notify ? UROCE_QP_EN_SQD_ASYNC_NOTIFY : 0;
	const struct {
		const char *name;
		uint8_t *to;
		uint32_t mask;
	} bytes[] = {
		{ "rd", &a.max_rd_atomic, UROCE_QP_MAX_RD_ATOMIC }, { "dest_rd", &a.max_dest_rd_atomic, UROCE_QP_MAX_DEST_RD_ATOMIC }, { "rnr_timer", &a.min_rnr_timer, UROCE_QP_MIN_RNR_TIMER },
		{ "timeout", &a.timeout, UROCE_QP_TIMEOUT }, { "retry_cnt", &a.retry_cnt, UROCE_QP_RETRY_CNT }, { "rnr_retry", &a.rnr_retry, UROCE_QP_RNR_RETRY },
	};
	for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
		if (line_has(l, bytes[i].name)) {
			*bytes[i].to = (uint8_t)line_number(l, bytes[i].name, 0);
			mask |= bytes[i].mask;
		}
	if (line_has(l, "qkey")) {
		a.qkey = (uint32_t)line_number(l, "qkey", 0);
		mask |= UROCE_QP_QKEY;
	}
	if (line_has(l, "access")) {
		a.access = (uint32_t)line_number(l, "access", 0);
		mask |= UROCE_QP_ACCESS_FLAGS;
	}
	int rc = uroce_qp_modify(w->qp, &a, mask);
	if (rc != want)
		fail("uroce_qp_modify: %d", rc);
}

static void do_state(struct world *w, struct line *l)
{
	struct uroce_qp_attr a;
	enum uroce_qp_state want = world_state(line_first(l));
	if (uroce_qp_query(w->qp, &a) || a.state != want)
		fail("the state is %u (0 RESET, 1 INIT, 2 RTR, 3 RTS, 4 SQD, 6 ERR)", a.state);
	compare(l, "sq_psn", a.sq_psn);
	compare(l, "rq_psn", a.rq_psn);
}

static void do_destroy(struct world *w, struct line *l)
{
	uroce_qp_destroy(w->qp);
	w->qp = NULL;
}

static void do_destroy_ah(struct world *w, struct line *l)
{
	struct uroce_ah **ah = world_ah(w, line_first(l));
	if (uroce_ah_destroy(*ah))
		fail("it cannot be destroyed");
}

/* srq limit= max_wr= [refused=]: changes it; is_limit=, is_max_wr=: what it is. */
static void do_srq(struct world *w, struct line *l)
{
	struct uroce_srq_attr a = { .limit = (uint32_t)line_number(l, "limit", 0), .max_wr = (uint32_t)line_number(l, "max_wr", 0) };
	uint32_t mask = (line_has(l, "limit") ? UROCE_SRQ_LIMIT : 0u) | (line_has(l, "max_wr") ? UROCE_SRQ_MAX_WR : 0u);
	int want = (int)line_number(l, "refused", 0), rc = mask ? uroce_srq_modify(w->srq, &a, mask) : 0;
	if (rc != want)
		fail("uroce_srq_modify: %d", rc);
	if (uroce_srq_query(w->srq, &a))
		fail("it cannot be queried");
	compare(l, "is_limit", a.limit);
	compare(l, "is_max_wr", a.max_wr);
}

static void do_event(struct world *w, struct line *l)
{
	struct uroce_async_event e;
	unsigned want = value_of(events, line_first(l));
	int rc = uroce_async_get_event(w->ctx, &e);
	if (rc)
		fail("no event: %d", rc);
	uroce_async_ack_event(&e);
	if (e.type != want)
		fail("the event is %s", name_of(events, e.type));
}

static void do_counter(struct world *w, struct line *l)
{
	uint64_t value[64];
	const char *name;
	int n = uroce_qp_counters(w->qp, value, 64);
	for (int i = 0; i < n && (name = uroce_qp_counter_name((unsigned)i)); i++)
		if (line_has(l, name))
			compare(l, name, value[i]);
}

static void do_dereg(struct world *w, struct line *l)
{
	int i = world_mr(line_first(l)), want = (int)line_number(l, "refused", 0);
	int rc = i < 0 ? 0 : uroce_mr_deregister(w->mr[i]);
	if (i < 0 || rc != want)
		fail("no such MR, or it answers %d", rc);
	if (!rc)
		w->mr[i] = NULL;
}

static void do_destroy_mw(struct world *w, struct line *l)
{
	if (uroce_mw_destroy(w->mw))
		fail("it cannot be destroyed");
	w->mw = NULL;
}

/* A window of type 1: a WR, whose key `old` names until then and `one` from then on. */
static void do_bind(struct world *w, struct line *l)
{
	struct uroce_bind b;
	int want = (int)line_number(l, "refused", 0);
	read_bind(w, l, &b);
	int rc = uroce_mw_bind(w->qp, w->mw_1, &b, line_number(l, "wr", 0), line_has(l, "unsignaled") ? 0 : UROCE_SEND_SIGNALED);
	if (rc != want)
		fail("uroce_mw_bind: %d", rc);
}

/* mem at=N len=N is=BYTE | same | word=N | set=BYTE | setword=N */
static void do_mem(struct world *w, struct line *l)
{
	uint32_t at = (uint32_t)line_number(l, "at", 0), len = (uint32_t)line_number(l, "len", 8);
	uint64_t word;
	if (at > MEMORY_BYTES || len > MEMORY_BYTES - at)
		fail("there are %u bytes of memory", MEMORY_BYTES);
	bool is_same = line_has(l, "same"), is_byte = line_has(l, "is");
	uint8_t want = is_byte ? (uint8_t)line_number(l, "is", 0) : 0;
	if (line_has(l, "set"))
		memset(w->memory + at, (int)line_number(l, "set", 0), len);
	if (line_has(l, "setword")) {
		word = line_number(l, "setword", 0);
		memcpy(w->memory + at, &word, sizeof(word));
	}
	for (uint32_t i = 0; i < len; i++) {
		uint8_t got = w->memory[at + i];
		if ((is_same && got != pattern_at(at + i)) || (is_byte && got != want))
			fail("byte 0x%x is 0x%02x", at + i, got);
	}
	if (line_has(l, "word")) {
		memcpy(&word, w->memory + at, sizeof(word));
		compare(l, "word", word);
	}
}

/* ---- the language ---- */

static const struct {
	const char *verb;
	void (*run)(struct world *w, struct line *l);
	bool is_late; /* the burst goes on: packets before it have not arrived yet */
} verbs[] = {
	{ "qp", do_qp }, { ">", do_expect }, { "<", do_inject }, { "<&", do_inject, true }, { "skip", do_skip }, { "nothing", do_nothing }, { "drop", do_drop }, { "post", do_post }, { "recv", do_recv },
	{ "wc", do_wc }, { "rwc", do_rwc }, { "nowc", do_nowc }, { "modify", do_modify }, { "state", do_state }, { "destroy", do_destroy }, { "srq", do_srq }, { "destroy_ah", do_destroy_ah }, { "event", do_event }, { "counter", do_counter },
	{ "dereg", do_dereg }, { "destroy_mw", do_destroy_mw }, { "bind", do_bind }, { "mem", do_mem },
};

void step_run(struct world *w, struct line *l)
{
	for (unsigned i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(l->verb, verbs[i].verb))
			continue;
		if (!w->core && verbs[i].run != do_qp)
			fail("a script begins with a qp line");
		if (!verbs[i].is_late)
			world_flush(w);
		if (l->has_time && verbs[i].run != do_expect && verbs[i].run != do_wc && verbs[i].run != do_rwc)
			world_run(w, w->event_at + l->from_ns);
		verbs[i].run(w, l);
		line_finish(l);
		w->event_at = w->now;
		return;
	}
	fail("no verb %s", l->verb);
}

void step_end(struct world *w)
{
	static struct line end = { .text = "(end of the script)", .verb = "end" };
	struct uroce_async_event e;
	world_flush(w);
	if (world_pull(w))
		fail("a packet came");
	do_nowc(w, &end);
	if (!uroce_async_get_event(w->ctx, &e))
		fail("event %s", name_of(events, e.type));
}

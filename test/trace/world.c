/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the world of a trace and moves its time. Owns the core, the objects and the list of packets that is shown when a script fails. */
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "direct_session.h"
#include "qp.h"

#define START_NS 1000000000ull
#define SHOWN 14u
#define STEPS_MAX 10000000u
#define LINE_BYTES 320u

static const uint8_t own_mac[6] = { 2, 0, 0, 0, 0, 1 }, peer_mac[6] = { 2, 0, 0, 0, 0, 2 };

/* The packets that passed last, for a failure. */
static struct {
	char text[SHOWN][LINE_BYTES];
	unsigned n;
} shown;

void world_show(void)
{
	for (unsigned i = shown.n > SHOWN ? shown.n - SHOWN : 0; i < shown.n; i++)
		printf("    %s\n", shown.text[i % SHOWN]);
}

static void on_packet(void *arg, const struct core_seen *seen)
{
	struct world *w = arg;
	char *to = shown.text[shown.n++ % SHOWN];
	int n = snprintf(to, LINE_BYTES, "%12.3f us %c ", (double)(seen->now_ns - START_NS) / 1000, seen->is_tx ? '>' : '<');
	packet_print(to + n, LINE_BYTES - (uint32_t)n, seen->frame, seen->len, VLAN_NONE);
	if (!seen->is_tx) {
		w->last_drop = seen->why;
		memcpy(w->last_ip, seen->frame + 14, sizeof(w->last_ip));
		n = (int)strlen(to);
		if (seen->why)
			snprintf(to + n, LINE_BYTES - (uint32_t)n, " [%s]", drop_name(seen->why));
	}
}

static void must(int rc, const char *what)
{
	if (rc)
		fail("%s: %s", what, strerror(-rc));
}

struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));
	if (!w)
		abort();
	w->now = w->event_at = START_NS;
	shown.n = 0;
	fail_in(NULL, NULL, world_show);
	return w;
}

void world_free(struct world *w)
{
	uroce_close(w->ctx);
	core_free(w->core);
	free(w->memory);
	free(w);
}

static void open_core(struct world *w, struct line *l)
{
	struct core_config c = {
		.name = "trace", .addr.mode = ADDR_OWN, .max_frame = 4300, .max_qp = 8, .max_cq = 8, .max_mr = 16, .window_packets = (uint32_t)line_number(l, "window", 256), .seed = 1, .hooks = &direct_hooks,
	};
	struct gid own, peer;
	uint32_t index;
	memcpy(c.addr.mac, own_mac, 6);
	w->is_ip6 = line_has(l, "ip6");
	gid_parse(world_address(w, 0), &own);
	gid_parse(world_address(w, 1), &peer);
	must(core_new(&w->core, &c, w->now), "core");
	must(addr_gid_add(core_addr(w->core), &own, VLAN_NONE, 24, &index), "own address");
	must(addr_learn(core_addr(w->core), &peer, VLAN_NONE, peer_mac, true, w->now), "peer's address");
	core_set_tap(w->core, on_packet, w);
	struct uroce_open_attr attr = { .log_level = 1 };
	must(direct_session_open(w->core, &w->now, &attr, &w->ctx), "context");
	fcntl(uroce_async_fd(w->ctx), F_SETFL, O_NONBLOCK);
}

static void register_memory(struct world *w)
{
	static const uint32_t access[MR_COUNT] = { ACCESS_ALL | UROCE_ACCESS_MW_BIND, UROCE_ACCESS_LOCAL_WRITE, UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_MW_BIND, ACCESS_ALL | UROCE_ACCESS_MW_BIND };
	w->memory = aligned_alloc(4096, MEMORY_BYTES);
	if (!w->memory)
		abort();
	for (uint32_t i = 0; i < MEMORY_BYTES; i++)
		w->memory[i] = pattern_at(i);
	must(uroce_pd_create(w->ctx, &w->pd), "PD");
	must(uroce_pd_create(w->ctx, &w->foreign_pd), "PD");
	for (int i = 0; i < MR_COUNT; i++) {
		must(uroce_mr_register_iova(i == MR_FOREIGN ? w->foreign_pd : w->pd, w->memory, MEMORY_BYTES, MEMORY_VA, access[i], &w->mr[i]), "MR");
		w->lkey[i] = uroce_mr_lkey(w->mr[i]);
		w->rkey[i] = uroce_mr_rkey(w->mr[i]);
	}
	must(uroce_mw_create(w->pd, UROCE_MW_TYPE_2, &w->mw), "window");
	must(uroce_mw_create(w->pd, UROCE_MW_TYPE_1, &w->mw_1), "window");
	must(uroce_mr_alloc(w->pd, &w->fast), "MR");
	w->mw_key = uroce_mw_rkey(w->mw);
	w->fast_key = uroce_mr_rkey(w->fast);
}

static const struct service_steps {
	const char *name;
	uint32_t init, rtr, rts; /* attributes of each step */
} services[] = {
	[UROCE_RC] = { "RC", UROCE_QP_STATE | UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_ACCESS_FLAGS,
		UROCE_QP_STATE | UROCE_QP_AV | UROCE_QP_PATH_MTU | UROCE_QP_DEST_QPN | UROCE_QP_RQ_PSN | UROCE_QP_MAX_DEST_RD_ATOMIC | UROCE_QP_MIN_RNR_TIMER,
		UROCE_QP_STATE | UROCE_QP_TIMEOUT | UROCE_QP_RETRY_CNT | UROCE_QP_RNR_RETRY | UROCE_QP_SQ_PSN | UROCE_QP_MAX_RD_ATOMIC },
	[UROCE_UC] = { "UC", UROCE_QP_STATE | UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_ACCESS_FLAGS,
		UROCE_QP_STATE | UROCE_QP_AV | UROCE_QP_PATH_MTU | UROCE_QP_DEST_QPN | UROCE_QP_RQ_PSN, UROCE_QP_STATE | UROCE_QP_SQ_PSN },
	[UROCE_UD] = { "UD", UROCE_QP_STATE | UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_QKEY, UROCE_QP_STATE, UROCE_QP_STATE | UROCE_QP_SQ_PSN },
};

static enum uroce_service find_service(const char *name)
{
	for (unsigned i = 0; name && i < sizeof(services) / sizeof(services[0]); i++)
		if (!strcmp(name, services[i].name))
			return (enum uroce_service)i;
	if (name)
		fail("no service %s", name);
	return UROCE_RC;
}

static void connect_qp(struct world *w, struct line *l)
{
	const struct service_steps *s = &services[w->service];
	const char *to = line_text(l, "state");
	enum uroce_qp_state goal = to ? world_state(to) : UROCE_QP_RTS;
	struct gid peer;
	gid_parse(world_address(w, 1), &peer);
	struct uroce_qp_attr a = {
		.state = UROCE_QP_INIT, .port_num = 1, .access = (uint32_t)line_number(l, "access", ACCESS_ALL), .path_mtu = (uint32_t)line_number(l, "mtu", 1024), .dest_qpn = PEER_QPN,
		.rq_psn = (uint32_t)line_number(l, "rq_psn", 500), .sq_psn = (uint32_t)line_number(l, "sq_psn", 100), .max_dest_rd_atomic = (uint8_t)line_number(l, "dest_rd", 4),
		.max_rd_atomic = (uint8_t)line_number(l, "rd", 4), .min_rnr_timer = (uint8_t)line_number(l, "rnr_timer", 12), .timeout = (uint8_t)line_number(l, "timeout", 14),
		.qkey = (uint32_t)line_number(l, "qkey", QKEY), .retry_cnt = (uint8_t)line_number(l, "retry_cnt", 3), .rnr_retry = (uint8_t)line_number(l, "rnr_retry", 3),
	};
	memcpy(a.av.dgid.raw, peer.b, 16);
	if (goal == UROCE_QP_RESET)
		return;
	must(uroce_qp_modify(w->qp, &a, s->init), "to INIT");
	a.state = UROCE_QP_RTR;
	if (goal == UROCE_QP_INIT)
		return;
	must(uroce_qp_modify(w->qp, &a, s->rtr), "to RTR");
	a.state = UROCE_QP_RTS;
	if (goal == UROCE_QP_RTS)
		must(uroce_qp_modify(w->qp, &a, s->rts), "to RTS");
}

static const char *const ah_names[AH_COUNT] = { "peer", "self", "foreign" };

static void make_ahs(struct world *w)
{
	for (unsigned i = 0; i < AH_COUNT; i++) {
		struct uroce_av av = { .traffic_class = 0x20 };
		struct gid to;
		gid_parse(world_address(w, i == AH_SELF ? 0 : 1), &to);
		memcpy(av.dgid.raw, to.b, 16);
		must(uroce_ah_create(i == AH_FOREIGN ? w->foreign_pd : w->pd, &av, &w->ah[i]), "AH");
	}
}

struct uroce_ah **world_ah(struct world *w, const char *name)
{
	static struct uroce_ah *none;
	for (unsigned i = 0; i < AH_COUNT; i++)
		if (!strcmp(name, ah_names[i]))
			return &w->ah[i];
	if (strcmp(name, "none"))
		fail("no AH %s", name);
	return &none;
}

const char *world_address(const struct world *w, unsigned which)
{
	static const char *const text[2][2] = { { "10.0.0.1", "10.0.0.2" }, { "fd00::1", "fd00::2" } };
	return text[w->is_ip6][which];
}

void world_open(struct world *w, struct line *l)
{
	if (w->core)
		fail("there is a QP already");
	open_core(w, l);
	register_memory(w);
	must(uroce_cq_create(w->ctx, (uint32_t)line_number(l, "cq", 256), NULL, NULL, &w->send_cq), "send CQ");
	must(uroce_cq_create(w->ctx, 256, NULL, NULL, &w->recv_cq), "receive CQ");
	if (line_has(l, "srq")) {
		struct uroce_srq_init srq = { .attr = { .max_wr = (uint32_t)line_number(l, "srq", 64), .max_sge = 4 } };
		must(uroce_srq_create(w->pd, &srq, &w->srq), "SRQ");
	}
	w->service = find_service(line_text(l, "service"));
	struct uroce_qp_init init = { .service = w->service, .send_cq = w->send_cq, .recv_cq = w->recv_cq, .cap = { 64, 64, 4, 4, 64 }, .signal_all = line_has(l, "signal_all"), .srq = w->srq };
	must(uroce_qp_create(w->pd, &init, &w->qp), "QP");
	w->qpn = uroce_qp_num(w->qp);
	connect_qp(w, l);
	if (w->service == UROCE_UD)
		make_ahs(w);
}

uint32_t world_pull(struct world *w)
{
	struct core_frame f = { .data = w->frame, .room = FRAME_BYTES };
	core_run(w->core, w->now);
	core_scan(w->core);
	for (unsigned round = 0; round <= ACK_ROUNDS; round++) /* for which an ACK waits */
		if (core_tx(w->core, w->now, &f, 1))
			return f.len;
	return 0;
}

uint32_t world_step(struct world *w, uint64_t until_ns)
{
	uint32_t len = world_pull(w);
	uint64_t next = core_next(w->core);
	if (len)
		return len;
	next = next > w->now ? next : w->now + 1;
	w->now = next < until_ns ? next : until_ns;
	return 0;
}

uint32_t world_wait(struct world *w, uint64_t until_ns)
{
	for (unsigned i = 0; i < STEPS_MAX && w->now < until_ns; i++) {
		uint32_t len = world_step(w, until_ns);
		if (len)
			return len;
	}
	if (w->now < until_ns)
		fail("the core finds no rest");
	return world_pull(w);
}

void world_run(struct world *w, uint64_t until_ns)
{
	if (until_ns <= w->now) {
		core_run(w->core, w->now);
		return;
	}
	if (world_wait(w, until_ns))
		fail("%.3f us after the event before, a packet that the script does not have", (double)(w->now - w->event_at) / 1000);
}

void world_flush(struct world *w)
{
	struct core_frame frames[BURST_MAX];
	if (!w->burst_n)
		return;
	for (unsigned i = 0; i < w->burst_n; i++)
		frames[i] = (struct core_frame){ .data = w->burst[i], .len = w->burst_len[i], .vlan_tci = VLAN_NONE };
	core_rx(w->core, w->now, frames, w->burst_n);
	w->burst_n = 0;
}

static const char *const mr_names[MR_COUNT] = { "main", "local", "readonly", "foreign" };

int world_mr(const char *name)
{
	for (int i = 0; i < MR_COUNT; i++)
		if (!strcmp(name, mr_names[i]))
			return i;
	return -1;
}

/* base, or base+N: N more in the low 8 bits. */
static bool is_key(const char *name, const char *base, uint32_t *more)
{
	size_t n = strlen(base);
	if (strncmp(name, base, n) || (name[n] && name[n] != '+'))
		return false;
	*more = name[n] ? (uint32_t)parse_number(name + n + 1) : 0;
	return true;
}

uint32_t world_key(const struct world *w, const char *name, bool is_remote)
{
	int i = world_mr(name);
	uint32_t more;
	if (is_key(name, "window", &more))
		return (w->mw_key & 0xffffff00) | ((w->mw_key + more) & 0xff);
	if (is_key(name, "fast", &more))
		return (w->fast_key & 0xffffff00) | ((w->fast_key + more) & 0xff);
	if (!strcmp(name, "one"))
		return uroce_mw_rkey(w->mw_1);
	if (!strcmp(name, "old"))
		return (uroce_mw_rkey(w->mw_1) & 0xffffff00) | ((uroce_mw_rkey(w->mw_1) - 1) & 0xff);
	if (i < 0)
		return (uint32_t)parse_number(name);
	return is_remote ? w->rkey[i] : w->lkey[i];
}

uint64_t world_va(const char *text)
{
	return text[0] == '@' ? MEMORY_VA + parse_number(text + 1) : parse_number(text);
}

enum uroce_qp_state world_state(const char *name)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	for (unsigned i = 0; i < 7; i++)
		if (!strcmp(name, names[i]))
			return (enum uroce_qp_state)i;
	fail("no state %s", name);
}

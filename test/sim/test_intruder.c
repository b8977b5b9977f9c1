/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that reach for what is not theirs, strangers that forge packets, and QPs that flood: refused, counted, and without harm to the others. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "counters.h"
#include "frames.h"
#include "machine.h"
#include "rig.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define RIGHTS (UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC)

static uint64_t dropped(struct rig *r, unsigned host, enum drop why)
{
	return core_drops(sim_host_core(r->host[host]))->count[why];
}

static enum uroce_wc_status finish(struct rig *r, unsigned pair, struct uroce_send_wr *wr)
{
	struct uroce_wc wc;
	wr->wr_id = 1000 + pair;
	assert_int_equal(uroce_post_send(r->near[pair].qp, wr, 1), 1);
	do
		assert_int_equal(rig_wait(r, 0, &wc, 1, SECOND), 1);
	while (wc.wr_id != wr->wr_id);
	return wc.status;
}

static void assert_serving(struct rig *r, unsigned pair)
{
	struct uroce_sge sge;
	struct uroce_send_wr wr = rig_wr(&r->near[pair], &r->far[pair], &sge, UROCE_OP_WRITE, 5000);
	assert_int_equal(finish(r, pair, &wr), UROCE_WC_SUCCESS);
}

/* ---- the edges of a region ---- */

#define AT 256u     /* where the region begins */
#define LEN 4096u
#define AROUND 8192u

/* from: relative to the region's beginning. */
static const struct reach {
	enum uroce_opcode opcode;
	int32_t from;
	uint32_t len;
	bool is_granted;
} reaches[] = {
	{ UROCE_OP_WRITE, 0, 1, true },
	{ UROCE_OP_WRITE, LEN - 1, 1, true },
	{ UROCE_OP_WRITE, 0, LEN, true },
	{ UROCE_OP_WRITE, -1, 1, false },
	{ UROCE_OP_WRITE, -1, 2, false },
	{ UROCE_OP_WRITE, -1, LEN, false },
	{ UROCE_OP_WRITE, LEN, 1, false },
	{ UROCE_OP_WRITE, LEN - 1, 2, false },
	{ UROCE_OP_WRITE, 1, LEN, false },
	{ UROCE_OP_WRITE_WITH_IMM, -1, 1, false },
	{ UROCE_OP_WRITE_WITH_IMM, LEN, 1, false },
	{ UROCE_OP_READ, 0, LEN, true },
	{ UROCE_OP_READ, -1, 1, false },
	{ UROCE_OP_READ, -1, LEN, false },
	{ UROCE_OP_READ, LEN, 1, false },
	{ UROCE_OP_READ, LEN - 1, 2, false },
	{ UROCE_OP_READ, 0, LEN + 1, false },
	{ UROCE_OP_FETCH_ADD, 0, 8, true },
	{ UROCE_OP_FETCH_ADD, LEN - 8, 8, true },
	{ UROCE_OP_FETCH_ADD, -8, 8, false },
	{ UROCE_OP_FETCH_ADD, LEN, 8, false },
	{ UROCE_OP_COMPARE_SWAP, -8, 8, false },
	{ UROCE_OP_COMPARE_SWAP, LEN, 8, false },
	{ UROCE_OP_ATOMIC_WRITE, 0, 8, true },
	{ UROCE_OP_ATOMIC_WRITE, -8, 8, false },
	{ UROCE_OP_ATOMIC_WRITE, LEN, 8, false },
};
#define REACHES (sizeof(reaches) / sizeof(reaches[0]))

/* Each on a QP of its own. What lies around the region is as it was, and nobody read it. */
/* known-bugs: V4 */
static void test_a_byte_before_and_after(void **state)
{
	static uint8_t before[AROUND];
	struct rig r;
	unsigned refused = 0;
	rig_open(&r, &(struct rig_config){ .qps = REACHES + 1, .memory = AROUND, .mtu = 1024 });
	for (unsigned i = 0; i < REACHES; i++) {
		const struct reach *x = &reaches[i];
		struct rig_end *far = &r.far[i];
		struct uroce_mr *mr;
		struct uroce_sge sge;
		memset(r.near[i].memory, 0x11, AROUND);
		memset(far->memory, 0xee, AROUND);
		memset(far->memory + AT, 0, LEN);
		memcpy(before, far->memory, AROUND);
		assert_int_equal(uroce_mr_register(r.pd[1], far->memory + AT, LEN, RIGHTS, &mr), 0);
		struct uroce_send_wr wr = rig_wr(&r.near[i], far, &sge, x->opcode, x->len);
		wr.remote_addr += AT + (uint64_t)(int64_t)x->from;
		wr.rkey = uroce_mr_rkey(mr);
		assert_int_equal(finish(&r, i, &wr), x->is_granted ? UROCE_WC_SUCCESS : UROCE_WC_REM_ACCESS_ERR);
		refused += !x->is_granted;
		assert_int_equal(dropped(&r, 1, DROP_REMOTE_ACCESS), refused);
		assert_int_equal(rig_counter(far->qp, QP_NAKS_SENT), !x->is_granted);
		if (!x->is_granted)
			assert_memory_equal(far->memory, before, AROUND);
		assert_memory_equal(far->memory, before, AT);
		assert_memory_equal(far->memory + AT + LEN, before + AT + LEN, AROUND - AT - LEN);
		for (unsigned b = 0; b < AROUND; b++)
			assert_int_not_equal(r.near[i].memory[b], 0xee);
	}
	assert_serving(&r, REACHES);
	rig_close(&r);
}

/* ---- other protection domains ---- */

enum whose { REMOTE_KEY, LOCAL_KEY, RECEIVE_KEY };
static const struct crossing {
	enum uroce_opcode opcode;
	enum whose whose; /* key is of another PD */
	enum uroce_wc_status status;
} crossings[] = {
	{ UROCE_OP_WRITE, REMOTE_KEY, UROCE_WC_REM_ACCESS_ERR },
	{ UROCE_OP_WRITE_WITH_IMM, REMOTE_KEY, UROCE_WC_REM_ACCESS_ERR },
	{ UROCE_OP_READ, REMOTE_KEY, UROCE_WC_REM_ACCESS_ERR },
	{ UROCE_OP_FETCH_ADD, REMOTE_KEY, UROCE_WC_REM_ACCESS_ERR },
	{ UROCE_OP_COMPARE_SWAP, REMOTE_KEY, UROCE_WC_REM_ACCESS_ERR },
	{ UROCE_OP_ATOMIC_WRITE, REMOTE_KEY, UROCE_WC_REM_ACCESS_ERR },
	{ UROCE_OP_SEND, LOCAL_KEY, UROCE_WC_LOC_PROT_ERR },
	{ UROCE_OP_SEND_WITH_IMM, LOCAL_KEY, UROCE_WC_LOC_PROT_ERR },
	{ UROCE_OP_WRITE, LOCAL_KEY, UROCE_WC_LOC_PROT_ERR },
	{ UROCE_OP_WRITE_WITH_IMM, LOCAL_KEY, UROCE_WC_LOC_PROT_ERR },
	{ UROCE_OP_READ, LOCAL_KEY, UROCE_WC_LOC_PROT_ERR },
	{ UROCE_OP_FETCH_ADD, LOCAL_KEY, UROCE_WC_LOC_PROT_ERR },
	{ UROCE_OP_COMPARE_SWAP, LOCAL_KEY, UROCE_WC_LOC_PROT_ERR },
	{ UROCE_OP_ATOMIC_WRITE, LOCAL_KEY, UROCE_WC_LOC_PROT_ERR },
	{ UROCE_OP_SEND, RECEIVE_KEY, UROCE_WC_REM_OP_ERR },
};
#define CROSSINGS (sizeof(crossings) / sizeof(crossings[0]))

/* The same bytes, registered in both domains: with the key of the other one, nothing is read or written. */
/* known-bugs: 35 V9 */
static void test_key_of_another_domain(void **state)
{
	struct rig r;
	struct uroce_pd *other[2];
	rig_open(&r, &(struct rig_config){ .qps = CROSSINGS + 1, .memory = 8192, .mtu = 1024 });
	for (unsigned h = 0; h < 2; h++)
		assert_int_equal(uroce_pd_create(r.ctx[h], &other[h]), 0);
	for (unsigned i = 0; i < CROSSINGS; i++) {
		const struct crossing *x = &crossings[i];
		struct rig_end *near = &r.near[i], *far = &r.far[i];
		struct uroce_mr *foreign[2];
		struct uroce_sge sge;
		memset(near->memory, 0x11, 4096);
		memset(far->memory, 0xee, 4096);
		for (unsigned h = 0; h < 2; h++)
			assert_int_equal(uroce_mr_register(other[h], h ? far->memory : near->memory, 4096, RIGHTS, &foreign[h]), 0);
		struct uroce_send_wr wr = rig_wr(near, far, &sge, x->opcode, x->opcode >= UROCE_OP_COMPARE_SWAP ? 8 : 64);
		struct uroce_sge into = { (uintptr_t)far->memory, 4096, uroce_mr_lkey(x->whose == RECEIVE_KEY ? foreign[1] : far->mr) };
		assert_int_equal(uroce_post_recv(far->qp, &(struct uroce_recv_wr){ .sg_list = &into, .num_sge = 1 }, 1), 1);
		if (x->whose == REMOTE_KEY)
			wr.rkey = uroce_mr_rkey(foreign[1]);
		if (x->whose == LOCAL_KEY)
			sge.lkey = uroce_mr_lkey(foreign[0]);
		assert_int_equal(finish(&r, i, &wr), x->status);
		for (unsigned b = 0; b < 4096; b++)
			assert_true(near->memory[b] == 0x11 && far->memory[b] == 0xee);
	}
	assert_serving(&r, CROSSINGS);
	rig_close(&r);
}

/* Implicit registration on demand, which would open all memory, is a right that there is not; as are all others that have no name. */
/* known-bugs: V10 */
static void test_rights_that_there_are_not(void **state)
{
	uint32_t named = RIGHTS | UROCE_ACCESS_MW_BIND | UROCE_ACCESS_ZERO_BASED | UROCE_ACCESS_FLUSH_GLOBAL | UROCE_ACCESS_FLUSH_PERSISTENT;
	struct uroce_mr *mr;
	struct rig r;
	rig_open(&r, &(struct rig_config){ .memory = 8192 });
	for (unsigned bit = 0; bit < 32; bit++)
		if (!(named >> bit & 1)) {
			assert_int_equal(uroce_mr_register(r.pd[0], r.memory[0], 8192, UROCE_ACCESS_LOCAL_WRITE | 1u << bit, &mr), -EINVAL);
			assert_int_equal(uroce_mr_register_iova(r.pd[0], NULL, SIZE_MAX, 0, 1u << bit, &mr), -EINVAL);
		}
	rig_close(&r);
}

/* ---- strangers ---- */

#define FORGED 1000u
#define L3 14u
#define UDP_AT (L3 + 20)
#define BTH_AT (UDP_AT + 8)
#define PAYLOAD_AT (BTH_AT + 12 + 16)

/* The last WRITE of one packet that went out. */
struct catcher {
	uint8_t frame[256];
	uint32_t len;
};

static void catch_write(void *arg, const struct core_seen *seen)
{
	struct catcher *c = arg;
	struct packet p;
	if (!seen->is_tx || seen->len > sizeof(c->frame) || packet_parse(&p, seen->frame, seen->len, VLAN_NONE, NULL) != DROP_NONE || p.kind != PACKET_ROCE || !(p.op->flags & OPCODE_RETH))
		return;
	memcpy(c->frame, seen->frame, seen->len);
	c->len = seen->len;
}

#define QPN_AT (BTH_AT + 4)
#define PSN_AT (BTH_AT + 8)

/* The lower 24 bits of a word: QPN or PSN. */
static uint32_t get_number(const uint8_t *word)
{
	return get_be32(word) & 0xffffff;
}

static void put_number(uint8_t *word, uint32_t v)
{
	put_be32(word, (get_be32(word) & 0xff000000) | (v & 0xffffff));
}

static void forge_icrc(uint8_t *frame, struct rng *rng)
{
	frame[PAYLOAD_AT + rng_below(rng, 64)] ^= (uint8_t)(1u << rng_below(rng, 8));
}

static void forge_source(uint8_t *frame, struct rng *rng)
{
	frame[L3 + 15] = (uint8_t)(100 + rng_below(rng, 100));
	frame_mend(frame + L3);
}

static void forge_qpn(uint8_t *frame, struct rng *rng)
{
	put_number(frame + QPN_AT, get_number(frame + QPN_AT) ^ (uint32_t)(1 + rng_below(rng, 0xfff)) << CORE_INDEX_BITS);
	frame_mend(frame + L3);
}

/* In the half of the space that is no duplicate, far beyond what can be on its way; a stranger does not know the port either. */
static void forge_psn(uint8_t *frame, struct rng *rng)
{
	put_number(frame + PSN_AT, get_number(frame + PSN_AT) + 0x100000 + (uint32_t)rng_below(rng, 0x600000));
	put_be16(frame + UDP_AT, (uint16_t)(get_be16(frame + UDP_AT) ^ (1 + rng_below(rng, 0x3fff))));
	frame_mend(frame + L3);
}

static const struct forgery {
	void (*forge)(uint8_t *frame, struct rng *rng);
	enum drop why;
	bool has_other_port;
} forgeries[] = {
	{ forge_icrc, DROP_ICRC, false },
	{ forge_source, DROP_SOURCE, false },
	{ forge_qpn, DROP_QP_UNKNOWN, false },
	{ forge_psn, DROP_PSN_FAR, true },
};

/* A thousand of each kind, made of a real packet: every one is counted under its reason and under no other, none is answered, and the connection goes on without a loss. */
/* known-bugs: V7 A1 A2 */
static void test_forged_packets_are_counted(void **state)
{
	for (unsigned k = 0; k < sizeof(forgeries) / sizeof(forgeries[0]); k++) {
		const struct forgery *x = &forgeries[k];
		struct rig r;
		struct catcher c = { .len = 0 };
		struct uroce_sge sge;
		struct rng rng;
		rng_seed(&rng, 7 + k);
		rig_open(&r, &(struct rig_config){ .memory = 8192 });
		struct core *core = sim_host_core(r.host[1]);
		core_set_tap(sim_host_core(r.host[0]), catch_write, &c);
		struct uroce_send_wr wr = rig_wr(&r.near[0], &r.far[0], &sge, UROCE_OP_WRITE, 64);
		assert_int_equal(finish(&r, 0, &wr), UROCE_WC_SUCCESS);
		assert_int_equal(c.len, PAYLOAD_AT + 64 + ICRC_LEN);
		put_number(c.frame + PSN_AT, get_number(c.frame + PSN_AT) + 1);
		memset(c.frame + PAYLOAD_AT, 0xff, 64);
		frame_mend(c.frame + L3);
		memset(r.far[0].memory, 0x22, 8192);
		struct drop_counters before = *core_drops(core);
		uint64_t sent = rig_counter(r.far[0].qp, QP_TX_PACKETS);
		for (unsigned i = 0; i < FORGED; i++) {
			uint8_t frame[256];
			memcpy(frame, c.frame, c.len);
			x->forge(frame, &rng);
			core_rx(core, sim_world_now(r.world), &(struct core_frame){ .data = frame, .len = c.len, .vlan_tci = VLAN_NONE }, 1);
		}
		rig_run(&r, 10 * MS);
		for (unsigned d = 1; d < DROP_COUNT; d++)
			assert_int_equal(core_drops(core)->count[d] - before.count[d], d == x->why ? FORGED : 0);
		assert_int_equal(rig_counter(r.far[0].qp, QP_TX_PACKETS), sent);
		assert_int_equal(rig_counter(r.far[0].qp, QP_SOURCE_PORT_CHANGES), x->has_other_port ? FORGED : 0);
		for (unsigned b = 0; b < 8192; b++)
			assert_int_equal(r.far[0].memory[b], 0x22);
		assert_serving(&r, 0);
		assert_int_equal(rig_counter(r.near[0].qp, QP_RETRANSMITTED_PACKETS), 0);
		rig_close(&r);
	}
}

/* ---- congestion notifications ---- */

#define CNPS 20000u
#define MESSAGES 200u

/* A CNP in the headers of a packet that was caught. */
static uint32_t make_cnp(uint8_t *frame, const struct catcher *c, uint32_t qpn)
{
	struct bth b = { .op = opcode_find(SERVICE_CNP, MESSAGE_CNP, 0), .dqpn = qpn, .pkey = 0xffff };
	uint32_t len = 8 + b.op->header_len + ICRC_LEN;
	memcpy(frame, c->frame, BTH_AT);
	memset(bth_write(frame + BTH_AT, &b, 0), 0, b.op->header_len - BTH_LEN);
	put_be16(frame + L3 + 2, (uint16_t)(20 + len));
	put_be16(frame + UDP_AT + 4, (uint16_t)len);
	frame_mend(frame + L3);
	return L3 + 20 + len;
}

/* How long host 1 takes for its messages while so many CNPs, half of them its peer's and half a stranger's, come between them. */
static uint64_t time_beside_cnps(unsigned cnps)
{
	struct rig r;
	struct catcher c = { .len = 0 };
	struct uroce_sge sge[2];
	uint8_t frame[256];
	rig_open(&r, &(struct rig_config){ .memory = 65536 });
	core_set_tap(sim_host_core(r.host[0]), catch_write, &c);
	struct uroce_send_wr wr = rig_wr(&r.near[0], &r.far[0], &sge[0], UROCE_OP_WRITE, 64), back = rig_wr(&r.far[0], &r.near[0], &sge[1], UROCE_OP_WRITE, 65536);
	assert_int_equal(finish(&r, 0, &wr), UROCE_WC_SUCCESS);
	struct core *victim = sim_host_core(r.host[1]);
	uint64_t sent = rig_counter(r.far[0].qp, QP_TX_PACKETS), begin = sim_world_now(r.world);
	for (unsigned i = 0; i < MESSAGES; i++) {
		struct uroce_wc wc;
		assert_int_equal(uroce_post_send(r.far[0].qp, &back, 1), 1);
		for (unsigned k = 0; k < cnps / MESSAGES; k++) {
			uint32_t len = make_cnp(frame, &c, uroce_qp_num(r.far[0].qp));
			if (k % 2) {
				frame[L3 + 15] = 77;
				frame_mend(frame + L3);
			}
			core_rx(victim, sim_world_now(r.world), &(struct core_frame){ .data = frame, .len = len, .vlan_tci = VLAN_NONE }, 1);
		}
		assert_int_equal(rig_wait(&r, 1, &wc, 1, SECOND), 1);
		assert_int_equal(wc.status, UROCE_WC_SUCCESS);
	}
	uint64_t ns = sim_world_now(r.world) - begin;
	assert_int_equal(dropped(&r, 1, DROP_CNP), cnps);
	assert_int_equal(rig_counter(r.far[0].qp, QP_DROPPED_PACKETS), cnps);
	assert_int_equal(rig_counter(r.far[0].qp, QP_TX_PACKETS) - sent, MESSAGES * 16);
	assert_int_equal(rig_counter(r.far[0].qp, QP_RETRANSMITTED_PACKETS), 0);
	rig_close(&r);
	return ns;
}

/* Whoever sends them, with a right ICRC and the right QPN: each is counted, none is answered, and nobody is slowed by them, now or later. With a congestion control that heeds them there will be a floor. */
/* known-bugs: N2 */
static void test_a_flood_of_cnps_slows_nobody(void **state)
{
	assert_int_equal(time_beside_cnps(CNPS), time_beside_cnps(0));
}

/* ---- floods ---- */

#define QPS 8u
#define FLOOD_LEN (1u << 20)

static void post(struct rig_end *from, struct rig_end *to, enum uroce_opcode opcode, uint32_t len, uint64_t wr_id)
{
	struct uroce_sge sge;
	struct uroce_send_wr wr = rig_wr(from, to, &sge, opcode, len);
	wr.wr_id = wr_id;
	assert_int_equal(uroce_post_send(from->qp, &wr, 1), 1);
}

/* All but QP 0 send WRITEs of 1 MiB and answer READs of 1 MiB; QP 0 keeps WRITEs of `len` bytes under way. Bytes sent by host 0 within 50 ms, of all and of QP 0. */
static void flood(uint32_t len, uint64_t *all, uint64_t *victim)
{
	struct rig r;
	struct uroce_wc wc[64];
	rig_open(&r, &(struct rig_config){ .qps = QPS, .memory = FLOOD_LEN, .is_memory_shared = true, .tx_frames = 64 });
	for (unsigned i = 1; i < QPS; i++)
		for (unsigned k = 0; k < 8; k++) {
			post(&r.near[i], &r.far[i], UROCE_OP_WRITE, FLOOD_LEN, i);
			post(&r.far[i], &r.near[i], UROCE_OP_READ, FLOOD_LEN, i);
		}
	for (unsigned k = 0; k < 128; k++)
		post(&r.near[0], &r.far[0], UROCE_OP_WRITE, len, 0);
	*all = *victim = 0;
	uint64_t begin = sim_world_now(r.world) + 20 * MS, end = begin + 50 * MS;
	while (sim_world_step(r.world, end)) {
		bool counts = sim_world_now(r.world) >= begin;
		for (unsigned h = 0; h < 2; h++) {
			int n = uroce_cq_poll(r.cq[h], wc, 64);
			for (int i = 0; i < n; i++) {
				unsigned q = (unsigned)wc[i].wr_id;
				uint32_t bytes = q ? FLOOD_LEN : len;
				assert_int_equal(wc[i].status, UROCE_WC_SUCCESS);
				*all += counts ? bytes : 0;
				*victim += counts && !q ? bytes : 0;
				post(h ? &r.far[q] : &r.near[q], h ? &r.near[q] : &r.far[q], h ? UROCE_OP_READ : UROCE_OP_WRITE, bytes, q);
			}
		}
	}
	rig_close(&r);
}

/* Who has enough to send gets its share of what goes out, by messages of one packet and of several; READs that are answered count like WRITEs. Long messages end in steps: 5 % of room. */
/* known-bugs: A5 */
static void test_a_flood_leaves_others_their_share(void **state)
{
	static const uint32_t lens[] = { 4096, 65536 };
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint64_t all, victim;
		flood(lens[i], &all, &victim);
		double share = (double)victim * QPS / (double)all;
		print_message("%u bytes: %.3f of its share\n", lens[i], share);
		assert_true(share >= 0.95 && share <= 1.1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_byte_before_and_after),
		cmocka_unit_test(test_key_of_another_domain),
		cmocka_unit_test(test_rights_that_there_are_not),
		cmocka_unit_test(test_forged_packets_are_counted),
		cmocka_unit_test(test_a_flood_of_cnps_slows_nobody),
		cmocka_unit_test(test_a_flood_leaves_others_their_share),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

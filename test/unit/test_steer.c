/* SPDX-License-Identifier: BSD-3-Clause */
/* Which core a frame belongs to, and two cores of one engine: they learn from each other's address packets, and a QP of one talks to a QP of the other. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arp.h"
#include "frames.h"
#include "machine.h"
#include "protocol.h"
#include "raw_client.h"

#define CORES 4u

/* The frame as a piece of memory of its own size, so that a sanitizer sees a read beyond it. */
static int owner_of(const uint8_t *frame, uint32_t len, unsigned cores)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct gid group;
	memcpy(copy, frame, len);
	int owner = core_frame_owner(copy, len, cores, &group);
	free(copy);
	return owner;
}

static uint32_t bth_offset(unsigned version, uint16_t vlan)
{
	return ETHERNET_LEN + (vlan == VLAN_NONE ? 0 : VLAN_LEN) + (version == 4 ? IP4_LEN : IP6_LEN) + UDP_LEN;
}

static uint32_t make_roce(uint8_t *frame, unsigned version, uint16_t vlan, uint32_t qpn)
{
	uint32_t len = frame_make(frame, opcode_find(SERVICE_RC, MESSAGE_SEND, OPCODE_FIRST | OPCODE_LAST), version, vlan, 8);
	uint8_t *at = frame + bth_offset(version, vlan) + 4;
	put_be32(at, (get_be32(at) & 0xff000000) | qpn);
	return len;
}

static const struct {
	unsigned version;
	uint16_t vlan;
} kinds[] = { { 4, VLAN_NONE }, { 4, 7 }, { 6, VLAN_NONE }, { 6, 7 } };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void test_qpn_says_the_core(void **state)
{
	static const struct {
		uint32_t qpn;
		int owner;
	} rows[] = { { 0x12340, 0 }, { 0x12341, 1 }, { 0x12343, 3 }, { 0x12344, CORE_ANY }, { 0xabcdef, CORE_ANY }, { 0, CORE_ANY }, { 1, CORE_ANY }, { 2, 2 }, { 0xffffff, CORE_ANY } };
	uint8_t frame[FRAME_ROOM];
	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			uint32_t len = make_roce(frame, kinds[k].version, kinds[k].vlan, rows[i].qpn);
			assert_int_equal(owner_of(frame, len, CORES), rows[i].owner);
			assert_int_equal(owner_of(frame, len, 1), rows[i].owner == 0 ? 0 : CORE_ANY);
		}
	uint32_t len = make_roce(frame, 4, VLAN_NONE, 0xffffff);
	assert_int_equal(owner_of(frame, len, 16), CORE_ANY);
}

/* To a group: of those that are in it. What asks after groups: of the core that answers for all. */
static void test_groups(void **state)
{
	static const char *const groups[] = { "239.1.2.3", "ff05::1:3" };
	for (unsigned k = 0; k < KINDS; k++) {
		uint8_t frame[FRAME_ROOM];
		struct gid group = { { 0 } }, right;
		bool is_ip4 = kinds[k].version == 4;
		uint32_t len = make_roce(frame, kinds[k].version, kinds[k].vlan, QPN_MULTICAST), needed = bth_offset(kinds[k].version, kinds[k].vlan) + 8;
		uint8_t *ip = frame + needed - 8 - UDP_LEN - (is_ip4 ? IP4_LEN : IP6_LEN);
		gid_parse(groups[!is_ip4], &right);
		memcpy(ip + (is_ip4 ? 16 : 24), right.b + (is_ip4 ? 12 : 0), is_ip4 ? 4 : 16);
		for (uint32_t n = 0; n <= len; n++)
			assert_int_equal(owner_of(frame, n, CORES), n < needed ? CORE_ANY : CORE_GROUP);
		assert_int_equal(core_frame_owner(frame, len, CORES, &group), CORE_GROUP);
		assert_true(gid_is_equal(&group, &right));
		ip[is_ip4 ? 9 : 6] = is_ip4 ? PROTOCOL_IGMP : PROTOCOL_HOP_BY_HOP;
		assert_int_equal(owner_of(frame, len, CORES), 0);
	}
}

static void test_cut_at_every_length(void **state)
{
	uint8_t frame[FRAME_ROOM];
	for (unsigned k = 0; k < KINDS; k++) {
		uint32_t whole = make_roce(frame, kinds[k].version, kinds[k].vlan, 0x12343), needed = bth_offset(kinds[k].version, kinds[k].vlan) + 8;
		for (uint32_t len = 0; len <= whole; len++)
			assert_int_equal(owner_of(frame, len, CORES), len < needed ? CORE_ANY : 3);
	}
}

static void test_ip_options_are_passed(void **state)
{
	uint8_t frame[FRAME_ROOM], with[FRAME_ROOM];
	uint32_t len = make_roce(frame, 4, VLAN_NONE, 0x12343);
	for (uint32_t words = 1; words <= 10; words++) {
		uint32_t ip = ETHERNET_LEN, behind = ip + IP4_LEN;
		memcpy(with, frame, behind);
		memset(with + behind, 1, words * 4);
		memcpy(with + behind + words * 4, frame + behind, len - behind);
		with[ip] = (uint8_t)(0x45 + words);
		for (uint32_t n = behind; n <= len + words * 4; n++)
			assert_int_equal(owner_of(with, n, CORES), n < bth_offset(4, VLAN_NONE) + words * 4 + 8 ? CORE_ANY : 3);
	}
}

static void test_what_is_not_for_a_qp(void **state)
{
	struct {
		uint32_t at;
		uint8_t value;
	} rows[] = {
		{ 12, 0x86 },                             /* Ethertype */
		{ ETHERNET_LEN, 0x44 },                   /* IP header too short */
		{ ETHERNET_LEN, 0x65 },                   /* version */
		{ ETHERNET_LEN + 6, 0x20 },               /* more fragments */
		{ ETHERNET_LEN + 7, 0x01 },               /* an offset */
		{ ETHERNET_LEN + 9, PROTOCOL_ICMP },      /* no UDP */
		{ ETHERNET_LEN + IP4_LEN + 2, 0x13 },     /* UDP port */
	};
	uint8_t frame[FRAME_ROOM];
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t len = make_roce(frame, 4, VLAN_NONE, 0x12343);
		frame[rows[i].at] = rows[i].value;
		assert_int_equal(owner_of(frame, len, CORES), CORE_ANY);
	}
	uint32_t len = make_roce(frame, 4, 7, 0x12343);
	put_be16(frame + ETHERNET_LEN + 2, ETHERTYPE_VLAN); /* two tags */
	assert_int_equal(owner_of(frame, len, CORES), CORE_ANY);
	len = make_roce(frame, 6, VLAN_NONE, 0x12343);
	frame[ETHERNET_LEN + 6] = 43; /* an extension header */
	assert_int_equal(owner_of(frame, len, CORES), CORE_ANY);
}

static void test_address_packets_are_for_all(void **state)
{
	uint8_t frame[FRAME_ROOM];
	struct gid a, b;
	for (unsigned version = 4; version <= 6; version += 2)
		for (unsigned tagged = 0; tagged < 2; tagged++)
			for (unsigned told = 0; told < 2; told++) {
				uint16_t vlan = tagged ? 7 : VLAN_NONE;
				gid_parse(version == 4 ? "10.0.0.1" : "fd00::1", &a);
				gid_parse(version == 4 ? "10.0.0.2" : "fd00::2", &b);
				uint32_t len = told ? neighbour_write_tell(frame, frame_smac, frame_dmac, vlan, &a, &b) : neighbour_write_ask(frame, frame_smac, NULL, vlan, &a, &b);
				uint32_t l3 = ETHERNET_LEN + (tagged ? VLAN_LEN : 0), needed = version == 4 ? l3 : l3 + IP6_LEN + 1;
				for (uint32_t n = 0; n <= len; n++)
					assert_int_equal(owner_of(frame, n, CORES), n < needed ? CORE_ANY : CORE_ALL);
				if (version == 6) { /* the rest of ICMPv6 */
					frame[l3 + IP6_LEN] = ICMP6_ROUTER_SOLICITATION;
					assert_int_equal(owner_of(frame, len, CORES), CORE_ANY);
					frame[l3 + IP6_LEN] = ICMP6_ECHO_REQUEST;
					assert_int_equal(owner_of(frame, len, CORES), CORE_ANY);
				}
			}
}

/* ---- two cores of one engine ---- */

struct pair {
	uint64_t now;
	struct core *core[2];
};

static void open_pair(struct pair *p)
{
	p->now = 1000000;
	for (unsigned i = 0; i < 2; i++)
		p->core[i] = raw_core_new(i, 2, p->now);
}

static void close_pair(struct pair *p)
{
	for (unsigned i = 0; i < 2; i++)
		core_free(p->core[i]);
}

/* One frame of a core; 0: none. */
static uint32_t pull(struct core *c, uint64_t now, uint8_t *data, uint8_t *to)
{
	struct core_frame f = { .data = data, .room = CORE_FRAME_MAX, .to_core = 0x55 };
	if (!core_tx(c, now, &f, 1))
		return 0;
	*to = f.to_core;
	return f.len;
}

static void test_a_copy_teaches_and_is_not_answered(void **state)
{
	struct pair p;
	uint8_t frame[FRAME_ROOM], answer[FRAME_ROOM], to;
	struct gid own, peer;
	struct drop_counters before;
	struct core_stats s;
	open_pair(&p);
	gid_parse("10.0.0.1", &own);
	gid_parse("10.0.0.2", &peer);
	uint32_t len = neighbour_write_ask(frame, frame_smac, NULL, VLAN_NONE, &peer, &own);
	for (unsigned i = 0; i < 2; i++) {
		struct core_frame f = { .data = frame, .len = len, .vlan_tci = VLAN_NONE, .is_copy = i == 1 };
		before = *core_drops(p.core[i]);
		core_rx(p.core[i], p.now, &f, 1);
		len = i ? len : f.len;
		core_stats(p.core[i], &s);
		assert_int_equal(s.rx_packets, i ? 0 : 1);
		assert_int_equal(core_drops(p.core[i])->count[DROP_NONE] - before.count[DROP_NONE], i ? 0 : 1);
		assert_int_equal(pull(p.core[i], p.now, answer, &to) != 0, i == 0);
		assert_int_equal(p.core[i]->env.drops.count[DROP_ARP_NOT_OURS], 0);
	}
	/* both know the asker: neither asks when a QP wants to send to it */
	for (unsigned i = 0; i < 2; i++) {
		struct ah ah;
		struct ah_fields fields = { .dgid = peer };
		assert_int_equal(ah_open(&ah, core_addr(p.core[i]), &fields, NULL, p.now), 0);
		assert_int_equal(ah.state, AH_READY);
		ah_close(&ah);
	}
	/* a copy of what is no address packet is nobody's */
	len = make_roce(frame, 4, VLAN_NONE, 0x12341);
	core_rx(p.core[1], p.now, &(struct core_frame){ .data = frame, .len = len, .vlan_tci = VLAN_NONE, .is_copy = true }, 1);
	core_stats(p.core[1], &s);
	assert_int_equal(s.rx_packets, 0);
	close_pair(&p);
}

/* Carries what each core has for the other; returns how many frames. */
static unsigned carry(struct pair *p)
{
	uint8_t data[CORE_FRAME_MAX], to;
	unsigned carried = 0;
	for (unsigned i = 0; i < 2; i++) {
		core_run(p->core[i], p->now);
		core_scan(p->core[i]);
		for (;;) {
			uint32_t len = pull(p->core[i], p->now, data, &to);
			if (!len)
				break;
			assert_int_equal(to, !i);
			core_rx(p->core[!i], p->now, &(struct core_frame){ .data = data, .len = len, .vlan_tci = 0x1234, .is_looped = true }, 1);
			carried++;
		}
	}
	p->now += 1000;
	return carried;
}

static void test_qps_of_two_cores_talk(void **state)
{
	static const struct abi_qp_cap cap = { 16, 16, 1, 1, 32 };
	struct pair p;
	struct raw_client c[2];
	struct raw_cq cq[2];
	struct raw_qp qp[2];
	struct raw_memory m[2];
	struct abi_cqe cqe;
	struct core_stats s;
	open_pair(&p);
	for (unsigned i = 0; i < 2; i++) {
		raw_open(&c[i], p.core[i], &p.now);
		raw_memory_new(&c[i], 4096, &m[i]);
		raw_cq_new(&c[i], 16, 0, &cq[i]);
		raw_qp_new(&c[i], &cq[i], &cq[i], &cap, &qp[i]);
		assert_int_equal(qp[i].qpn & 15, i);
	}
	for (unsigned i = 0; i < 2; i++)
		raw_connect(&c[i], &qp[i], "10.0.0.1", qp[!i].qpn);
	raw_write(&c[0], &qp[0], 77, &m[1]);
	unsigned carried = 0;
	for (unsigned i = 0; i < 10; i++)
		carried += carry(&p);
	assert_int_equal(carried, 2); /* the WRITE and its ACK */
	assert_true(raw_poll(&cq[0], &cqe));
	assert_int_equal(cqe.status, ABI_WC_SUCCESS);
	assert_int_equal(cqe.wr_id, 77);
	assert_int_equal(m[1].host[0], 77);
	for (unsigned i = 0; i < 2; i++) {
		core_stats(p.core[i], &s);
		assert_int_equal(s.loopback_packets, 1);
		assert_int_equal(s.tx_packets + s.rx_packets, 0);
		assert_null(p.core[i]->loop.buffer);
	}
	close_pair(&p);
}

/* A QP on the same core by the loop, a QP elsewhere by the wire, a core that does not exist by the loop, where it ends under a counter. */
static void test_what_does_not_cross(void **state)
{
	static const struct abi_qp_cap cap = { 16, 16, 1, 1, 32 };
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 2 };
	struct pair p;
	struct raw_client c;
	struct raw_cq cq;
	struct raw_qp local, remote, lost;
	struct raw_memory m;
	struct gid peer;
	uint8_t data[CORE_FRAME_MAX], to;
	open_pair(&p);
	gid_parse("10.0.0.2", &peer);
	addr_learn(core_addr(p.core[0]), &peer, VLAN_NONE, mac, true, p.now);
	raw_open(&c, p.core[0], &p.now);
	raw_memory_new(&c, 4096, &m);
	raw_cq_new(&c, 16, 0, &cq);
	raw_qp_new(&c, &cq, &cq, &cap, &local);
	raw_qp_new(&c, &cq, &cq, &cap, &remote);
	raw_qp_new(&c, &cq, &cq, &cap, &lost);
	raw_connect(&c, &local, "10.0.0.1", local.qpn);
	raw_connect(&c, &remote, "10.0.0.2", 0x12341);
	raw_connect(&c, &lost, "10.0.0.1", 0x12345);
	raw_write(&c, &local, 1, &m);
	raw_write(&c, &remote, 2, &m);
	raw_write(&c, &lost, 3, &m);
	core_run(p.core[0], p.now);
	core_scan(p.core[0]);
	assert_true(pull(p.core[0], p.now, data, &to));
	assert_int_equal(to, CORE_TO_WIRE);
	assert_int_equal(pull(p.core[0], p.now, data, &to), 0);
	core_run(p.core[0], p.now);
	core_scan(p.core[0]);
	assert_int_equal(core_drops(p.core[0])->count[DROP_QP_UNKNOWN], 1);
	assert_int_equal(m.host[0], 1);
	close_pair(&p);
}

static void test_more_cores_than_can_be_numbered(void **state)
{
	struct core *c;
	struct core_config config = { .name = "test", .max_frame = 4300, .seed = 1, .cores = 17 };
	assert_int_equal(core_new(&c, &config, 0), -EINVAL);
	config.cores = 4;
	config.core_index = 4;
	assert_int_equal(core_new(&c, &config, 0), -EINVAL);
	config.core_index = 3;
	assert_int_equal(core_new(&c, &config, 0), 0);
	core_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_qpn_says_the_core),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_cut_at_every_length),
		cmocka_unit_test(test_ip_options_are_passed),
		cmocka_unit_test(test_what_is_not_for_a_qp),
		cmocka_unit_test(test_address_packets_are_for_all),
		cmocka_unit_test(test_a_copy_teaches_and_is_not_answered),
		cmocka_unit_test(test_qps_of_two_cores_talk),
		cmocka_unit_test(test_what_does_not_cross),
		cmocka_unit_test(test_more_cores_than_can_be_numbered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

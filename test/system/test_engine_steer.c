/* SPDX-License-Identifier: BSD-3-Clause */
/* The flow rules of a port with several cores, against a NIC that is played here: this program's rte_flow functions come before the library's. What a rule matches is tried on bytes of packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dpdk_compat.h"

#include <rte_byteorder.h>
#include <rte_flow.h>

#include "packet.h"
#include "port.h"
#include "steer.h"

#define PORT 7
#define QUEUE 3
#define RULES_MAX 64

struct rte_flow {
	bool is_there;
	enum rte_flow_item_type ip;
	uint16_t vlan, queue;
	uint8_t qpn_low, qpn_mask;
};

static struct rte_flow rules[RULES_MAX];
static unsigned created, destroyed, refuse_at, fail_at;

static void read_bth(struct rte_flow *f, const struct rte_flow_item *item)
{
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
	const struct rte_flow_item_ib_bth *spec = item->spec, *mask = item->mask;
	const struct rte_flow_item_ib_bth none = { 0 };
	struct rte_flow_item_ib_bth rest = *mask;
	assert_int_equal(item->type, RTE_FLOW_ITEM_TYPE_IB_BTH);
	f->qpn_low = spec->hdr.dst_qp[2];
	f->qpn_mask = mask->hdr.dst_qp[2];
	rest.hdr.dst_qp[2] = 0;
	assert_memory_equal(&rest, &none, sizeof(rest));
#else
	const struct rte_flow_item_raw *spec = item->spec, *mask = item->mask;
	assert_int_equal(item->type, RTE_FLOW_ITEM_TYPE_RAW);
	assert_true(spec->relative && !spec->search && !spec->offset && mask->relative && mask->length == 0xffff);
	assert_int_equal(spec->length, 8); /* opcode, flags, P_Key, reserved, QPN */
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(mask->pattern[i], 0);
	f->qpn_low = spec->pattern[7];
	f->qpn_mask = mask->pattern[7];
#endif
}

static struct rte_flow read_rule(const struct rte_flow_item *item, const struct rte_flow_action *action)
{
	struct rte_flow f = { .is_there = true, .vlan = VLAN_NONE };
	assert_int_equal(item++->type, RTE_FLOW_ITEM_TYPE_ETH);
	if (item->type == RTE_FLOW_ITEM_TYPE_VLAN) {
		const struct rte_flow_item_vlan *spec = item->spec, *mask = item->mask;
		assert_int_equal(rte_be_to_cpu_16(mask->hdr.vlan_tci), 0xfff);
		f.vlan = rte_be_to_cpu_16(spec->hdr.vlan_tci);
		item++;
	}
	f.ip = item++->type;
	const struct rte_flow_item_udp *udp = item->spec, *udp_mask = item->mask;
	assert_int_equal(item++->type, RTE_FLOW_ITEM_TYPE_UDP);
	assert_int_equal(rte_be_to_cpu_16(udp->hdr.dst_port), 4791);
	assert_int_equal(udp_mask->hdr.dst_port, 0xffff);
	assert_int_equal(udp_mask->hdr.src_port, 0);
	read_bth(&f, item++);
	assert_int_equal(item->type, RTE_FLOW_ITEM_TYPE_END);
	assert_int_equal(action[0].type, RTE_FLOW_ACTION_TYPE_QUEUE);
	f.queue = ((const struct rte_flow_action_queue *)action[0].conf)->index;
	assert_int_equal(action[1].type, RTE_FLOW_ACTION_TYPE_END);
	return f;
}

int rte_flow_validate(uint16_t port, const struct rte_flow_attr *attr, const struct rte_flow_item item[], const struct rte_flow_action action[], struct rte_flow_error *error)
{
	assert_int_equal(port, PORT);
	assert_true(attr->ingress && !attr->egress);
	read_rule(item, action);
	return created == refuse_at ? -ENOTSUP : 0;
}

struct rte_flow *rte_flow_create(uint16_t port, const struct rte_flow_attr *attr, const struct rte_flow_item item[], const struct rte_flow_action action[], struct rte_flow_error *error)
{
	assert_int_equal(port, PORT);
	assert_true(created < RULES_MAX);
	if (created == fail_at)
		return NULL;
	rules[created] = read_rule(item, action);
	return &rules[created++];
}

int rte_flow_destroy(uint16_t port, struct rte_flow *flow, struct rte_flow_error *error)
{
	assert_int_equal(port, PORT);
	assert_true(flow->is_there);
	flow->is_there = false;
	destroyed++;
	return 0;
}

static char last_line[512];

static void take_line(void *arg, enum log_level level, const char *line)
{
	assert_int_equal(level, LOG_INFO);
	snprintf(last_line, sizeof(last_line), "%s", line);
}

static const struct log to_last_line = { take_line, NULL, LOG_DEBUG };
static const struct port nic = { .id = PORT, .queue = QUEUE, .queues = 16, .text = "nic" };

static int reset(void **state)
{
	created = destroyed = 0;
	refuse_at = fail_at = RULES_MAX;
	last_line[0] = 0;
	return 0;
}

/* Which queue a packet to this QPN comes on; -1: no rule says. */
static int find_queue(enum rte_flow_item_type ip, uint32_t qpn)
{
	int queue = -1;
	for (unsigned i = 0; i < created; i++) {
		if (!rules[i].is_there || rules[i].ip != ip || (qpn & rules[i].qpn_mask) != rules[i].qpn_low)
			continue;
		assert_int_equal(queue, -1); /* no two rules match */
		queue = rules[i].queue;
	}
	return queue;
}

static void test_each_core_has_its_queue(void **state)
{
	static const unsigned cores[] = { 2, 3, 16 };
	for (unsigned c = 0; c < sizeof(cores) / sizeof(cores[0]); c++) {
		struct steer *s;
		reset(NULL);
		steer_open(&s, &nic, cores[c], VLAN_NONE, &to_last_line);
		assert_non_null(s);
		assert_non_null(strstr(last_line, "steers"));
		assert_int_equal(created, 2 * cores[c]);
		for (uint32_t qpn = 0x123450; qpn < 0x123460; qpn++) {
			int queue = (qpn & 15) < cores[c] ? QUEUE + (int)(qpn & 15) : -1;
			assert_int_equal(find_queue(RTE_FLOW_ITEM_TYPE_IPV4, qpn), queue);
			assert_int_equal(find_queue(RTE_FLOW_ITEM_TYPE_IPV6, qpn), queue);
		}
		for (unsigned i = 0; i < created; i++)
			assert_int_equal(rules[i].vlan, VLAN_NONE);
		steer_close(s);
		assert_int_equal(destroyed, created);
	}
}

static void test_tagged(void **state)
{
	struct steer *s;
	steer_open(&s, &nic, 2, 77, &to_last_line);
	assert_int_equal(created, 4);
	for (unsigned i = 0; i < created; i++)
		assert_int_equal(rules[i].vlan, 77);
	steer_close(s);
}

/* Whichever rule is refused, none is left, and a line says how it goes on. */
static void test_all_or_nothing(void **state)
{
	for (unsigned at = 0; at < 6; at++) {
		for (unsigned how = 0; how < 2; how++) {
			struct steer *s;
			reset(NULL);
			*(how ? &fail_at : &refuse_at) = at;
			steer_open(&s, &nic, 3, VLAN_NONE, &to_last_line);
			assert_null(s);
			assert_int_equal(created, at);
			assert_int_equal(destroyed, at);
			assert_non_null(strstr(last_line, "software"));
			steer_close(s);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_each_core_has_its_queue, reset),
		cmocka_unit_test_setup(test_tagged, reset),
		cmocka_unit_test_setup(test_all_or_nothing, reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

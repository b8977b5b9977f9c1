/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the flow rules of a port with several cores: IPv4 and IPv6, UDP to 4791, and the low bits of the destination QPN, which are the number of its core. A port takes all of them or none.
 * What does not match (addresses, echo) goes where the NIC puts it. */
#include "steer.h"

#include <stdlib.h>

#include "dpdk_compat.h"

#include <rte_byteorder.h>
#include <rte_flow.h>

#include "core.h"
#include "packet.h"
#include "port.h"

#define RULES_MAX (2u << CORE_INDEX_BITS)

struct steer {
	uint16_t port_id;
	unsigned rules;
	struct rte_flow *rule[RULES_MAX];
};

/* What is common to all rules but the number of the core and the IP version. */
struct pattern {
	struct rte_flow_item_vlan vlan, vlan_mask;
	struct rte_flow_item_udp udp, udp_mask;
	struct compat_bth bth;
	struct rte_flow_item item[6];
};

static void make_pattern(struct pattern *t, enum rte_flow_item_type ip, unsigned core, uint16_t vlan)
{
	unsigned n = 0;
	*t = (struct pattern){ .item[0] = { .type = RTE_FLOW_ITEM_TYPE_ETH } };
	n++;
	if (vlan != VLAN_NONE) {
		t->vlan.hdr.vlan_tci = rte_cpu_to_be_16(vlan);
		t->vlan_mask.hdr.vlan_tci = rte_cpu_to_be_16(0x0fff);
		t->item[n++] = (struct rte_flow_item){ .type = RTE_FLOW_ITEM_TYPE_VLAN, .spec = &t->vlan, .mask = &t->vlan_mask };
	}
	t->item[n++] = (struct rte_flow_item){ .type = ip };
	t->udp.hdr.dst_port = rte_cpu_to_be_16(ROCE_UDP_PORT);
	t->udp_mask.hdr.dst_port = 0xffff;
	t->item[n++] = (struct rte_flow_item){ .type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &t->udp, .mask = &t->udp_mask };
	t->item[n++] = compat_bth_item(&t->bth, (uint8_t)core, (1u << CORE_INDEX_BITS) - 1);
	t->item[n] = (struct rte_flow_item){ .type = RTE_FLOW_ITEM_TYPE_END };
}

static bool add_rule(struct steer *s, const struct port *p, enum rte_flow_item_type ip, unsigned core, uint16_t vlan)
{
	struct pattern t;
	struct rte_flow_error error;
	const struct rte_flow_attr attr = { .ingress = 1 };
	const struct rte_flow_action_queue queue = { .index = (uint16_t)(p->queue + core) };
	const struct rte_flow_action actions[] = { { .type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue }, { .type = RTE_FLOW_ACTION_TYPE_END } };
	make_pattern(&t, ip, core, vlan);
	if (rte_flow_validate(p->id, &attr, t.item, actions, &error))
		return false;
	s->rule[s->rules] = rte_flow_create(p->id, &attr, t.item, actions, &error);
	if (!s->rule[s->rules])
		return false;
	s->rules++;
	return true;
}

void steer_open(struct steer **out, const struct port *p, unsigned cores, uint16_t vlan, const struct log *log)
{
	static const enum rte_flow_item_type ip[] = { RTE_FLOW_ITEM_TYPE_IPV4, RTE_FLOW_ITEM_TYPE_IPV6 };
	struct steer *s = calloc(1, sizeof(*s));
	bool is_taken = s;
	*out = NULL;
	if (s)
		s->port_id = p->id;
	for (unsigned core = 0; core < cores; core++)
		for (unsigned i = 0; i < sizeof(ip) / sizeof(ip[0]); i++)
			is_taken = is_taken && add_rule(s, p, ip[i], core, vlan);
	if (is_taken) {
		log_write(log, LOG_INFO, "%s: the port steers packets by QPN to the queues of %u cores", p->text, cores);
		*out = s;
		return;
	}
	log_write(log, LOG_INFO, "%s: the port cannot steer packets by QPN to %u cores; they are handed from core to core in software", p->text, cores);
	steer_close(s);
}

void steer_close(struct steer *s)
{
	struct rte_flow_error error;
	if (!s)
		return;
	while (s->rules)
		rte_flow_destroy(s->port_id, s->rule[--s->rules], &error);
	free(s);
}

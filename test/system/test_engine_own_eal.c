/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that has an EAL and ports of its own hands queues of them over: port=N,queue=Q. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "side.h"

#define QUEUES 2

static struct rte_mempool *pool;

static uint16_t start_port(const char *name, struct rte_ring **rx, struct rte_ring **tx)
{
	struct rte_eth_conf conf = { 0 };
	int id = rte_eth_from_rings(name, rx, QUEUES, tx, QUEUES, 0);
	CHECK(id >= 0 && !rte_eth_dev_configure((uint16_t)id, QUEUES, QUEUES, &conf));
	for (uint16_t q = 0; q < QUEUES; q++) {
		CHECK(!rte_eth_rx_queue_setup((uint16_t)id, q, 256, SOCKET_ID_ANY, NULL, pool));
		CHECK(!rte_eth_tx_queue_setup((uint16_t)id, q, 256, SOCKET_ID_ANY, NULL));
	}
	CHECK(!rte_eth_dev_start((uint16_t)id));
	return (uint16_t)id;
}

static void make_ports(uint16_t port[2])
{
	static const char *const given[] = { "test", "-l", "0", "--no-huge", "--no-shconf", "-m", "256", "--no-pci", "--no-telemetry", "--log-level=*:error" };
	static char *args[sizeof(given) / sizeof(given[0]) + 1];
	struct rte_ring *ring[2][QUEUES];
	for (unsigned i = 0; i < sizeof(given) / sizeof(given[0]); i++)
		args[i] = strdup(given[i]);
	CHECK(rte_eal_init((int)(sizeof(given) / sizeof(given[0])), args) >= 0);
	pool = rte_pktmbuf_pool_create("test", 1024, 32, 0, 2176, SOCKET_ID_ANY);
	CHECK(pool);
	for (int i = 0; i < 2; i++) {
		for (int q = 0; q < QUEUES; q++) {
			char name[16];
			snprintf(name, sizeof(name), "r%d%d", i, q);
			ring[i][q] = rte_ring_create(name, 256, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
			CHECK(ring[i][q]);
		}
	}
	port[0] = start_port("t0", ring[0], ring[1]);
	port[1] = start_port("t1", ring[1], ring[0]);
}

static void use_ports(void *arg)
{
	uint16_t port[2];
	struct side s[2];
	struct uroce_context *ctx;
	struct engine *engine;
	char device[2][64];
	make_ports(port);
	CHECK(side_open_context("inline:port=7,ip=10.5.0.9/24", &ctx, &engine) == -ENODEV);
	snprintf(device[0], sizeof(device[0]), "inline:port=%u,queue=%u,ip=10.5.0.9/24", port[0], QUEUES);
	CHECK(side_open_context(device[0], &ctx, &engine) == -EINVAL);
	CHECK(strstr(side_last_line(), "2 RX"));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2; i++) {
			snprintf(device[i], sizeof(device[i]), "inline:port=%u,queue=1,ip=10.5.0.%d/24", port[i], i + 1);
			side_open(&s[i], device[i]);
			CHECK(s[i].endpoint.mtu == 1024); /* ethdev's own MTU is believed */
		}
		struct side_card card[2] = { side_card(&s[0]), side_card(&s[1]) };
		side_connect(&s[0], &card[1], 0);
		side_connect(&s[1], &card[0], 0);
		side_fill(&s[0], 0, 100000, 5 + (uint32_t)round);
		side_post_write(&s[0], 1, 0, 100000, &card[1], 0);
		side_wait(&s[0], &s[1], 1);
		side_check(&s[1], 0, 100000, 5 + (uint32_t)round);
		side_close(&s[0]);
		side_close(&s[1]);
		/* The ports are still the program's, and run. */
		struct rte_eth_link link;
		CHECK(rte_eth_dev_is_valid_port(port[0]) && !rte_eth_link_get_nowait(port[0], &link) && link.link_status);
	}
	CHECK(rte_lcore_count() == 1);
}

/* Cuts what has come into a chain of three: 40 bytes of headers, half of the rest, the other half. */
static struct rte_mbuf *make_chain(struct rte_mbuf *m)
{
	uint16_t half = (uint16_t)((m->data_len - 40) / 2);
	const uint16_t len[3] = { 40, half, (uint16_t)(m->data_len - 40 - half) };
	const char *from = rte_pktmbuf_mtod(m, const char *);
	struct rte_mbuf *head = NULL;
	for (int i = 0; i < 3; from += len[i++]) {
		struct rte_mbuf *piece = rte_pktmbuf_alloc(pool);
		CHECK(piece);
		memcpy(rte_pktmbuf_append(piece, len[i]), from, len[i]);
		if (!head)
			head = piece;
		else
			CHECK(!rte_pktmbuf_chain(head, piece));
	}
	rte_pktmbuf_free(m);
	return head;
}

static uint16_t chain_all(uint16_t port, uint16_t queue, struct rte_mbuf *pkts[], uint16_t n, uint16_t room, void *arg)
{
	for (uint16_t i = 0; i < n; i++)
		pkts[i] = make_chain(pkts[i]);
	*(uint64_t *)arg += n;
	return n;
}

static void receive_chains(void *arg)
{
	uint16_t port[2];
	uint64_t chained[2] = { 0 };
	struct side s[2];
	char device[2][64];
	make_ports(port);
	for (int i = 0; i < 2; i++) {
		CHECK(rte_eth_add_rx_callback(port[i], 1, chain_all, &chained[i]));
		snprintf(device[i], sizeof(device[i]), "inline:port=%u,queue=1,ip=10.5.0.%d/24", port[i], i + 1);
		side_open(&s[i], device[i]);
	}
	struct side_card card[2] = { side_card(&s[0]), side_card(&s[1]) };
	side_connect(&s[0], &card[1], 0);
	side_connect(&s[1], &card[0], 0);
	for (uint32_t round = 0; round < 100; round++) {
		side_fill(&s[0], 0, 100000, round);
		side_post_write(&s[0], 1, 0, 100000, &card[1], 0);
		side_wait(&s[0], &s[1], 1);
		side_check(&s[1], 0, 100000, round);
	}
	CHECK(chained[1] > 9000 && chained[0] > 100);
	for (int i = 0; i < 2; i++) {
		const struct drop_counters *drops = core_drops(engine_core_stack(s[i].core));
		CHECK(drops->count[DROP_ICRC] == 0 && drops->count[DROP_PSN_AHEAD] == 0);
		side_close(&s[i]);
	}
}

static void test_ports_of_the_program(void **state)
{
	assert_int_equal(side_child(use_ports, NULL), 0);
}

/* known-bugs: 56 */
static void test_chained_mbufs(void **state)
{
	assert_int_equal(side_child(receive_chains, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ports_of_the_program),
		cmocka_unit_test(test_chained_mbufs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

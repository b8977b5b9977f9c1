/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults in front of a real RX queue: a port that receives what it sends, over a ring, without huge pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "fault_dpdk.h"
#include "frames.h"

#define MBUFS 511u
#define BURST 32u

static uint16_t port;
static struct rte_mempool *pool;

static void send_frames(unsigned n, uint8_t first)
{
	static uint8_t room[FRAME_ROOM];
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
		assert_non_null(m);
		uint32_t len = frame_make(room, opcode_of(0x04), 4, VLAN_NONE, 64);
		room[0] = (uint8_t)(first + i); /* the frame's number, in the MAC address */
		memcpy(rte_pktmbuf_append(m, (uint16_t)len), room, len);
		assert_int_equal(rte_eth_tx_burst(port, 0, &m, 1), 1);
	}
}

/* Frees what one burst of `room` returns; numbers of the frames go to number. */
static unsigned receive(uint16_t room, uint8_t *number)
{
	struct rte_mbuf *m[BURST];
	unsigned n = rte_eth_rx_burst(port, 0, m, room);
	assert_true(n <= room);
	for (unsigned i = 0; i < n; i++) {
		number[i] = *rte_pktmbuf_mtod(m[i], uint8_t *);
		rte_pktmbuf_free(m[i]);
	}
	return n;
}

static struct fault_port *attach(const char *spec)
{
	struct fault_port *p = NULL;
	char why[200] = "";
	int err = fault_attach(&p, port, 0, spec, why, sizeof(why));
	if (err)
		fail_msg("%s: %d: %s", spec, err, why);
	return p;
}

static void finish(struct fault_port *p)
{
	fault_detach(p);
	assert_int_equal(rte_mempool_avail_count(pool), MBUFS); /* every mbuf is back */
}

static void test_nothing_changes(void **state)
{
	uint8_t number[BURST];
	struct fault_port *p = attach("seed:1");
	send_frames(20, 0);
	assert_int_equal(receive(BURST, number), 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(number[i], i);
	assert_int_equal(fault_port_counter(p, FAULT_IN), 20);
	assert_int_equal(fault_port_counter(p, FAULT_OUT), 20);
	finish(p);
}

static void test_dropped_frames_are_freed(void **state)
{
	uint8_t number[BURST];
	struct fault_port *p = attach("mask:0x05");
	send_frames(4, 0);
	assert_int_equal(receive(BURST, number), 2);
	assert_int_equal(number[0], 1);
	assert_int_equal(number[1], 3);
	assert_int_equal(fault_port_counter(p, FAULT_DROPPED), 2);
	finish(p);
}

/* Twice as many come out as went in: never more than the caller has room for, the rest in bursts to which the port adds nothing. */
static void test_burst_is_never_exceeded(void **state)
{
	uint8_t number[BURST];
	struct fault_port *p = attach("dup:100%");
	send_frames(BURST, 0);
	unsigned n = receive(BURST, number);
	assert_int_equal(n, BURST);
	assert_int_equal(number[0], 0);
	assert_int_equal(number[1], 0);
	assert_int_equal(receive(10, number), 10);
	assert_int_equal(number[0], 16);
	assert_int_equal(receive(BURST, number), 22);
	assert_int_equal(number[21], 31);
	assert_int_equal(receive(BURST, number), 0);
	finish(p);
}

static void test_held_frame_comes_without_others(void **state)
{
	uint8_t number[BURST];
	struct fault_port *p = attach("reorder:100%:64:1ms");
	send_frames(1, 9);
	unsigned n = receive(BURST, number); /* already, if this process was held up */
	for (unsigned tries = 0; !n && tries < 1000; tries++) {
		usleep(1000);
		n = receive(BURST, number);
	}
	assert_int_equal(n, 1);
	assert_int_equal(number[0], 9);
	assert_int_equal(fault_port_counter(p, FAULT_REORDERED), 1);
	finish(p);
}

/* net_ring gives the very mbuf that was sent: another reference to it must not see the damage. */
static void test_changes_are_made_in_a_copy(void **state)
{
	struct rte_mbuf *sent = rte_pktmbuf_alloc(pool), *got;
	struct packet packet;
	struct fault_port *p = attach("corrupt:100%");
	assert_non_null(sent);
	uint8_t *at = rte_pktmbuf_mtod(sent, uint8_t *);
	uint32_t len = frame_make(at, opcode_of(0x04), 4, VLAN_NONE, 100);
	sent->data_len = (uint16_t)(sent->pkt_len = len);
	rte_mbuf_refcnt_update(sent, 1);
	assert_int_equal(rte_eth_tx_burst(port, 0, &sent, 1), 1);
	assert_int_equal(rte_eth_rx_burst(port, 0, &got, 1), 1);
	assert_ptr_not_equal(got, sent);
	assert_int_equal(packet_parse(&packet, at, len, VLAN_NONE, NULL), DROP_NONE);
	assert_true(packet_is_icrc_ok(&packet));
	assert_int_equal(got->data_len, len);
	assert_true(packet_parse(&packet, rte_pktmbuf_mtod(got, uint8_t *), len, VLAN_NONE, NULL) != DROP_NONE || !packet_is_icrc_ok(&packet));
	rte_pktmbuf_free(got);
	rte_pktmbuf_free(sent);
	finish(p);
}

static void test_switch(void **state)
{
	uint8_t number[BURST];
	struct fault_port *p = attach("drop:100%");
	send_frames(1, 0);
	assert_int_equal(receive(BURST, number), 0);
	fault_port_switch(p, false);
	send_frames(1, 1);
	assert_int_equal(receive(BURST, number), 1);
	fault_port_switch(p, true);
	send_frames(1, 2);
	assert_int_equal(receive(BURST, number), 0);
	assert_int_equal(fault_port_counter(p, FAULT_DROPPED), 2);
	finish(p);
}

/* A full line makes room while it is being left. */
static void test_off_loses_nothing(void **state)
{
	uint8_t number[BURST];
	struct fault_port *p = attach("delay:10s/limit:8");
	send_frames(16, 0);
	assert_int_equal(receive(BURST, number), 0);
	assert_int_equal(fault_port_counter(p, FAULT_OVERFLOWED), 8);
	fault_port_switch(p, false);
	send_frames(16, 16);
	assert_int_equal(receive(16, number), 16);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(number[i], i < 8 ? i : i + 8);
	assert_int_equal(receive(BURST, number), 8);
	assert_int_equal(number[7], 31);
	assert_int_equal(fault_port_counter(p, FAULT_OVERFLOWED), 8);
	finish(p);
}

static void test_waiting_frames_are_freed(void **state)
{
	uint8_t number[BURST];
	struct fault_port *p = attach("delay:10s");
	send_frames(BURST, 0);
	assert_int_equal(receive(BURST, number), 0);
	finish(p);
}

static void test_refusals(void **state)
{
	struct fault_port *p = NULL;
	char why[200] = "";
	assert_int_equal(fault_attach(&p, port, 0, "drop:200%", why, sizeof(why)), -EINVAL);
	assert_true(strlen(why) > 10);
	why[0] = 0;
	assert_int_equal(fault_attach(&p, port, 7, "drop:1%", why, sizeof(why)), -EINVAL);
	assert_true(strlen(why) > 10);
	why[0] = 0;
	assert_int_equal(fault_attach(&p, 31, 0, "drop:1%", why, sizeof(why)), -EINVAL);
	assert_true(strlen(why) > 10);
	assert_null(p);
	fault_detach(NULL);
}

/* false: this machine cannot do it. */
static bool bring_up(void)
{
	static char text[][24] = { "test_fault_dpdk", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "--iova-mode=va", "-m", "64", "--log-level=*:error" };
	char *argv[sizeof(text) / sizeof(text[0]) + 1] = { NULL };
	struct rte_eth_conf conf = { .link_speeds = 0 };
	for (unsigned i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		argv[i] = text[i];
	if (rte_eal_init(sizeof(text) / sizeof(text[0]), argv) < 0)
		return false;
	struct rte_ring *ring = rte_ring_create("fault_test", 128, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	pool = rte_pktmbuf_pool_create("fault_test", MBUFS, 0, 0, 2048, SOCKET_ID_ANY);
	int id = ring && pool ? rte_eth_from_rings("fault_test", &ring, 1, &ring, 1, SOCKET_ID_ANY) : -1;
	if (id < 0)
		return false;
	port = (uint16_t)id;
	return !rte_eth_dev_configure(port, 1, 1, &conf) && !rte_eth_rx_queue_setup(port, 0, 128, SOCKET_ID_ANY, NULL, pool) &&
	       !rte_eth_tx_queue_setup(port, 0, 128, SOCKET_ID_ANY, NULL) && !rte_eth_dev_start(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_changes), cmocka_unit_test(test_dropped_frames_are_freed), cmocka_unit_test(test_burst_is_never_exceeded), cmocka_unit_test(test_held_frame_comes_without_others),
		cmocka_unit_test(test_changes_are_made_in_a_copy), cmocka_unit_test(test_switch), cmocka_unit_test(test_off_loses_nothing), cmocka_unit_test(test_waiting_frames_are_freed), cmocka_unit_test(test_refusals),
	};
	if (!bring_up()) {
		printf("skipped: DPDK or its ring port does not come up here: %s\n", rte_strerror(rte_errno));
		return 77;
	}
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
	return failed;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines with several cores: QPs of every core with QPs of every core, over rings, over ports whose frames all come on one queue, over net_af_packet, and within one engine; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "mesh.h"
#include "netns.h"

#define SIDE0 "net_ring,link=t,side=0,ip=10.1.0.1/24"
#define SIDE1 "net_ring,link=t,side=1,ip=10.1.0.2/24"

/* ---- over rings, and within one engine ---- */

static void exchange_on_rings(void *arg)
{
	static const char *const devices[][2] = {
		{ "embedded:" SIDE0 ",cores=2,window=64", "embedded:" SIDE1 ",cores=2,window=64" },
		{ "embedded:" SIDE0 ",cores=3,window=64", "embedded:" SIDE1 ",cores=3,window=64,core=0+0+0" },
		{ "embedded:" SIDE0 ",cores=2,window=64,idle=sleep", "embedded:" SIDE1 ",cores=2,window=64,idle=sleep:1000" },
	};
	static struct mesh m;
	for (unsigned i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		mesh_open(&m, i == 1 ? 3 : 2, i == 1 ? 9 : 4, devices[i][0], devices[i][1]);
		for (uint32_t round = 0; round < 4; round++)
			mesh_exchange(&m, 100 * round);
		mesh_check_handed_over(m.a[0].engine);
		mesh_check_handed_over(m.b[0].engine);
		mesh_check_drops(&m, m.a);
		mesh_check_drops(&m, m.b);
		mesh_close_end(&m, m.a);
		mesh_close_end(&m, m.b);
	}
}

static void test_all_cores_with_all_cores(void **state)
{
	assert_int_equal(side_child(exchange_on_rings, NULL), 0);
}

/* QPs of two cores of one engine: not a frame to the wire. */
static void exchange_within(void *arg)
{
	static struct mesh m;
	struct core_stats stats;
	mesh_open(&m, 3, 9, "embedded:" SIDE0 ",cores=3", "embedded:" SIDE0 ",cores=3");
	CHECK(m.a[0].engine == m.b[0].engine);
	for (uint32_t round = 0; round < 4; round++)
		mesh_exchange(&m, 100 * round);
	mesh_check_handed_over(m.a[0].engine);
	mesh_check_drops(&m, m.a);
	for (unsigned i = 0; i < m.cores; i++) {
		core_stats(engine_core_stack(engine_core_at(m.a[0].engine, i)), &stats);
		CHECK(stats.loopback_packets > 0 && !stats.tx_packets);
	}
	mesh_close_end(&m, m.b);
	mesh_close_end(&m, m.a);
}

static void test_loopback_between_cores(void **state)
{
	assert_int_equal(side_child(exchange_within, NULL), 0);
}

#define MUCH 1000000u /* more packets than a QP has in flight */

/* More than the ring of a core holds: it waits, as for a port, and none is lost. */
static void overfill_within(void *arg)
{
	static struct mesh m;
	struct hold hold;
	mesh_open(&m, 2, MESH_PAIRS_MAX, "embedded:" SIDE0 ",cores=2", "embedded:" SIDE0 ",cores=2");
	hold_core(&hold, m.a[1].core);
	mesh_post_writes(&m, MUCH, 1);
	for (unsigned i = 0; !mesh_sum_stats(m.a[0].engine).tx_partial; i++) {
		CHECK(i < 20000);
		usleep(1000);
	}
	hold_let_go(&hold);
	mesh_wait_for_writes(&m, MUCH, 1);
	mesh_check_handed_over(m.a[0].engine);
	mesh_check_drops(&m, m.a);
	mesh_close_end(&m, m.b);
	mesh_close_end(&m, m.a);
}

static void test_loopback_to_busy_core_waits(void **state)
{
	assert_int_equal(side_child(overfill_within, NULL), 0);
}

/* ---- the worst of ports: all frames come on queue 0 ---- */

#define QUEUES 2

static struct rte_ring *to_port[2][QUEUES], *from_port[2][QUEUES];
static struct rte_mempool *pool;
static _Atomic bool is_switching = true;
static _Atomic unsigned arp[3]; /* frames by operation: 1 questions, 2 answers */

static struct rte_ring *make_ring(const char *what, int port, int queue)
{
	char name[16];
	snprintf(name, sizeof(name), "%s%d%d", what, port, queue);
	struct rte_ring *r = rte_ring_create(name, 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	CHECK(r);
	return r;
}

static void make_ports(uint16_t port[2])
{
	static const char *const given[] = { "test", "-l", "0", "--no-huge", "--no-shconf", "-m", "256", "--no-pci", "--no-telemetry", "--log-level=*:error" };
	static char *args[sizeof(given) / sizeof(given[0]) + 1];
	const struct rte_eth_conf conf = { 0 };
	for (unsigned i = 0; i < sizeof(given) / sizeof(given[0]); i++)
		args[i] = strdup(given[i]);
	CHECK(rte_eal_init((int)(sizeof(given) / sizeof(given[0])), args) >= 0);
	pool = rte_pktmbuf_pool_create("test", 1024, 32, 0, 2176, SOCKET_ID_ANY);
	CHECK(pool);
	for (int i = 0; i < 2; i++) {
		for (int q = 0; q < QUEUES; q++) {
			to_port[i][q] = make_ring("to", i, q);
			from_port[i][q] = make_ring("from", i, q);
		}
		int id = rte_eth_from_rings(i ? "p1" : "p0", to_port[i], QUEUES, from_port[i], QUEUES, 0);
		CHECK(id >= 0 && !rte_eth_dev_configure((uint16_t)id, QUEUES, QUEUES, &conf));
		for (uint16_t q = 0; q < QUEUES; q++)
			CHECK(!rte_eth_rx_queue_setup((uint16_t)id, q, 256, SOCKET_ID_ANY, NULL, pool) && !rte_eth_tx_queue_setup((uint16_t)id, q, 256, SOCKET_ID_ANY, NULL));
		CHECK(!rte_eth_dev_start((uint16_t)id));
		port[i] = (uint16_t)id;
	}
}

static void pass_on(struct rte_ring *from, struct rte_ring *to)
{
	void *m;
	while (rte_ring_free_count(to) && !rte_ring_dequeue(from, &m)) {
		const uint8_t *frame = rte_pktmbuf_mtod((struct rte_mbuf *)m, uint8_t *);
		if (frame[12] == 0x08 && frame[13] == 0x06)
			arp[frame[21] % 3]++;
		CHECK(!rte_ring_enqueue(to, m));
	}
}

static void *run_switch(void *arg)
{
	while (atomic_load(&is_switching)) {
		for (int i = 0; i < 2; i++)
			for (int q = 0; q < QUEUES; q++)
				pass_on(from_port[i][q], to_port[!i][0]);
		sched_yield();
	}
	return NULL;
}

static void refuse_queues(uint16_t port)
{
	struct uroce_context *ctx;
	struct engine *engine;
	char device[64];
	snprintf(device, sizeof(device), "embedded:port=%u,cores=3,ip=10.5.0.9/24", port);
	CHECK(side_open_context(device, &ctx, &engine) == -EINVAL && strstr(side_last_line(), "no queue=2"));
	snprintf(device, sizeof(device), "embedded:port=%u,queue=1,cores=2,ip=10.5.0.9/24", port);
	CHECK(side_open_context(device, &ctx, &engine) == -EINVAL && strstr(side_last_line(), "no queue=2"));
}

static void exchange_on_one_queue(void *arg)
{
	static struct mesh m;
	uint16_t port[2];
	pthread_t thread;
	char device[2][64];
	struct engine_stats stats;
	struct uroce_context *ctx;
	struct engine *engine;
	make_ports(port);
	CHECK(!pthread_create(&thread, NULL, run_switch, NULL));
	refuse_queues(port[0]);
	for (int i = 0; i < 2; i++)
		snprintf(device[i], sizeof(device[i]), "embedded:port=%u,cores=2,window=64,ip=10.5.0.%d/24", port[i], i + 1);
	mesh_open(&m, QUEUES, 4, device[0], device[1]);
	CHECK(side_open_context("embedded:port=0,queue=1,ip=10.5.0.9/24", &ctx, &engine) == -EBUSY && strstr(side_last_line(), "queues 0 to 1"));
	for (uint32_t round = 0; round < 4; round++)
		mesh_exchange(&m, 100 * round);
	CHECK(arp[1] > 0 && arp[2] == arp[1]); /* each question is answered by one core */
	for (int i = 0; i < 2; i++) {
		struct side *end = i ? m.b : m.a;
		mesh_check_handed_over(end->engine);
		mesh_check_drops(&m, end);
		engine_core_stats(end[1].core, &stats);
		CHECK(stats.tx_frames > 0 && !stats.rx_frames && stats.handed_over_rx > 0);
		mesh_close_end(&m, end);
	}
	atomic_store(&is_switching, false);
	pthread_join(thread, NULL);
}

static void test_all_frames_on_one_queue(void **state)
{
	assert_int_equal(side_child(exchange_on_one_queue, NULL), 0);
}

/* What the ring of a core that is busy does not hold is lost and counted, and comes again. */
static void overfill(void *arg)
{
	static struct mesh m;
	struct hold hold;
	uint16_t port[2];
	pthread_t thread;
	make_ports(port);
	CHECK(!pthread_create(&thread, NULL, run_switch, NULL));
	mesh_open(&m, QUEUES, MESH_PAIRS_MAX, "embedded:port=0,cores=2,ip=10.5.0.1/24", "embedded:port=1,cores=2,ip=10.5.0.2/24");
	hold_core(&hold, m.b[1].core);
	mesh_post_writes(&m, MUCH, 1);
	for (unsigned i = 0; !mesh_sum_stats(m.b[0].engine).handed_over_dropped; i++) {
		CHECK(i < 20000);
		usleep(1000);
	}
	hold_let_go(&hold);
	mesh_wait_for_writes(&m, MUCH, 1);
	mesh_close_end(&m, m.a);
	mesh_close_end(&m, m.b);
	atomic_store(&is_switching, false);
	pthread_join(thread, NULL);
}

static void test_full_ring_between_cores(void **state)
{
	assert_int_equal(side_child(overfill, NULL), 0);
}

/* ---- net_af_packet, where the kernel spreads the frames by flow ---- */

static void exchange_writes(int side, int fd, bool has_own_addresses)
{
	static struct mesh m = { .cores = 2, .pairs = MESH_PAIRS_MAX };
	struct side_card ours[MESH_PAIRS_MAX], theirs[MESH_PAIRS_MAX];
	char device[128], ip[32] = "kernel", byte = 0;
	netns_enter(side);
	if (has_own_addresses)
		snprintf(ip, sizeof(ip), "10.3.0.%d/24", side + 1);
	snprintf(device, sizeof(device), "embedded:net_af_packet0,iface=u%d,cores=2,ip=%s", side, ip);
	mesh_open_end(&m, m.a, device);
	for (unsigned k = 0; k < m.pairs; k++)
		ours[k] = side_card(&m.a[k]);
	side_exchange(fd, ours, theirs, sizeof(ours));
	for (unsigned k = 0; k < m.pairs; k++)
		mesh_connect_side(&m.a[k], &theirs[mesh_partner(&m, k)]);
	side_exchange(fd, &byte, &byte, 1);
	for (uint32_t round = 0; round < 3; round++) {
		for (unsigned k = 0; k < m.pairs; k++) {
			side_fill(&m.a[k], 0, MESH_LEN, 100 * round + k);
			side_post_write(&m.a[k], round, 0, MESH_LEN, &theirs[mesh_partner(&m, k)], MESH_UPPER);
		}
		for (unsigned k = 0; k < m.pairs; k++)
			side_wait(&m.a[k], NULL, round);
		side_exchange(fd, &byte, &byte, 1); /* all are placed */
		for (unsigned k = 0; k < m.pairs; k++)
			side_check(&m.a[k], MESH_UPPER, MESH_LEN, 100 * round + mesh_partner(&m, k));
		side_exchange(fd, &byte, &byte, 1); /* all are checked */
	}
	mesh_check_handed_over(m.a[0].engine);
	for (unsigned i = 0; i < m.cores; i++)
		CHECK(!side_drops(&m.a[i], DROP_ICRC) && !side_drops(&m.a[i], DROP_QP_UNKNOWN));
	mesh_close_end(&m, m.a);
}

static void run_a(int fd, void *arg)
{
	exchange_writes(0, fd, *(bool *)arg);
}

static void run_b(int fd, void *arg)
{
	exchange_writes(1, fd, *(bool *)arg);
}

static void test_af_packet_kernel_addresses(void **state)
{
	bool has_own_addresses = false;
	netns_make_pair(4200);
	assert_int_equal(side_children(run_a, run_b, &has_own_addresses), 0);
}

/* ARP is ours, and its answers come on one of the queues. */
static void test_af_packet_own_addresses(void **state)
{
	bool has_own_addresses = true;
	netns_make_pair(4200);
	assert_int_equal(side_children(run_a, run_b, &has_own_addresses), 0);
}

/* ---- what is refused ---- */

static void refuse(void *arg)
{
	struct uroce_context *ctx;
	struct engine *engine;
	struct side a;
	CHECK(side_open_context("inline:" SIDE0 ",cores=2", &ctx, &engine) == -EINVAL && strstr(side_last_line(), "inline:"));
	CHECK(side_open_context("embedded:" SIDE0 ",cores=17", &ctx, &engine) == -EINVAL && strstr(side_last_line(), "1..16"));
	side_open(&a, "embedded:" SIDE0 ",cores=2");
	CHECK(side_open_context("embedded:" SIDE1, &ctx, &engine) == -EINVAL && strstr(side_last_line(), "cores=2"));
	CHECK(side_open_context("embedded:" SIDE1 ",cores=3", &ctx, &engine) == -EINVAL && strstr(side_last_line(), "cores=2"));
	side_close(&a);
}

static void test_refusals(void **state)
{
	assert_int_equal(side_child(refuse, NULL), 0);
}

struct refusal {
	const char *device, *word;
};

static void refuse_in_space(void *arg)
{
	const struct refusal *r = arg;
	struct uroce_context *ctx;
	struct engine *engine;
	netns_enter(0);
	CHECK(side_open_context(r->device, &ctx, &engine) == -EINVAL && strstr(side_last_line(), r->word));
}

/* Number of queues that the driver does not have, or that was asked for behind our back. */
static void test_queues_refused(void **state)
{
	struct refusal pairs = { "embedded:net_af_packet0,iface=u0,qpairs=4,cores=2", "qpairs= would have to be 2" }, tap = { "embedded:net_tap0,ip=10.3.0.1/24,cores=9", "at most 8" };
	netns_make_pair(1500);
	assert_int_equal(side_child(refuse_in_space, &pairs), 0);
	if (!access("/dev/net/tun", R_OK | W_OK))
		assert_int_equal(side_child(refuse_in_space, &tap), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_cores_with_all_cores),
		cmocka_unit_test(test_loopback_between_cores),
		cmocka_unit_test(test_loopback_to_busy_core_waits),
		cmocka_unit_test(test_all_frames_on_one_queue),
		cmocka_unit_test(test_full_ring_between_cores),
		cmocka_unit_test(test_af_packet_kernel_addresses),
		cmocka_unit_test(test_af_packet_own_addresses),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_queues_refused),
	};
	return cmocka_run_group_tests(tests, netns_make, netns_drop);
}

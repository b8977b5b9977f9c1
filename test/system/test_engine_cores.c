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

#include "netns.h"
#include "side.h"

#define SIDE0 "net_ring,link=t,side=0,ip=10.1.0.1/24"
#define SIDE1 "net_ring,link=t,side=1,ip=10.1.0.2/24"
#define PAIRS_MAX 16u
#define LEN 50000u
#define UPPER (SIDE_BYTES / 2)

/* ---- every core with every core ---- */

/* QP k of one end is connected to QP partner(k) of the other. Contexts are spread over the cores in turn, so they are on cores k % n and k / n % n: every combination in each n * n pairs. */
struct mesh {
	unsigned cores, pairs;
	struct side a[PAIRS_MAX], b[PAIRS_MAX];
};

static unsigned partner(const struct mesh *m, unsigned k)
{
	unsigned n = m->cores, i = k % (n * n);
	return k - i + i % n * n + i / n;
}

static void open_end(const struct mesh *m, struct side *end, const char *device)
{
	for (unsigned k = 0; k < m->pairs; k++) {
		side_open(&end[k], device);
		CHECK(engine_cores(end[k].engine) == m->cores && end[k].engine == end[0].engine);
		CHECK(engine_core_index(end[k].core) == k % m->cores);
		CHECK((end[k].endpoint.qpn & 15) == k % m->cores);
	}
}

static void close_end(const struct mesh *m, struct side *end)
{
	for (unsigned k = 0; k < m->pairs; k++)
		side_close(&end[k]);
}

/* More patient than side_connect: there are more threads here than CPUs. */
static void connect_side(struct side *s, const struct side_card *remote)
{
	struct uroce_qp_attr attr = { .timeout = 17 };
	CHECK(!uroce_qp_connect(s->qp, &s->endpoint, &remote->endpoint, &attr, UROCE_QP_TIMEOUT));
}

static void open_mesh(struct mesh *m, unsigned cores, const char *device_a, const char *device_b)
{
	m->cores = cores;
	m->pairs = cores * cores;
	open_end(m, m->a, device_a);
	open_end(m, m->b, device_b);
	for (unsigned k = 0; k < m->pairs; k++) {
		struct side *a = &m->a[k], *b = &m->b[partner(m, k)];
		struct side_card of_a = side_card(a), of_b = side_card(b);
		connect_side(a, &of_b);
		connect_side(b, &of_a);
	}
}

static void post_read(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t len, const struct side_card *remote, uint32_t remote_offset)
{
	struct uroce_sge sge = { (uintptr_t)s->buffer + offset, len, uroce_mr_lkey(s->mr) };
	struct uroce_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_READ, .flags = UROCE_SEND_SIGNALED,
		.remote_addr = remote->addr + remote_offset, .rkey = remote->rkey };
	CHECK(uroce_post_send(s->qp, &wr, 1) == 1);
}

/* All pairs at once: a sends and then reads, b writes; all is checked. */
static void exchange(struct mesh *m, uint32_t seed)
{
	for (unsigned k = 0; k < m->pairs; k++) {
		struct side *a = &m->a[k], *b = &m->b[partner(m, k)];
		side_fill(a, 0, LEN, seed + k);
		memset(b->buffer, 0, LEN);
		side_post_recv(b, 1, 0, LEN);
		side_post_send(a, 2, 0, LEN);
	}
	for (unsigned k = 0; k < m->pairs; k++) {
		struct side *a = &m->a[k], *b = &m->b[partner(m, k)];
		struct side_card of_a = side_card(a);
		CHECK(side_wait(b, a, 1).byte_len == LEN);
		side_wait(a, b, 2);
		side_check(b, 0, LEN, seed + k);
		side_fill(b, UPPER, LEN, ~seed + k);
		side_post_write(b, 3, UPPER, LEN, &of_a, UPPER);
	}
	for (unsigned k = 0; k < m->pairs; k++) {
		struct side *a = &m->a[k], *b = &m->b[partner(m, k)];
		struct side_card of_b = side_card(b);
		side_wait(b, a, 3);
		side_check(a, UPPER, LEN, ~seed + k);
		memset(a->buffer, 0, LEN);
		post_read(a, 4, 0, LEN, &of_b, 0);
	}
	for (unsigned k = 0; k < m->pairs; k++) {
		side_wait(&m->a[k], NULL, 4);
		side_check(&m->a[k], 0, LEN, seed + k);
	}
}

static struct engine_stats sum_stats(struct engine *e)
{
	struct engine_stats sum = { 0 }, one;
	for (unsigned i = 0; i < engine_cores(e); i++) {
		engine_core_stats(engine_core_at(e, i), &one);
		sum.handed_over_tx += one.handed_over_tx;
		sum.handed_over_rx += one.handed_over_rx;
		sum.handed_over_dropped += one.handed_over_dropped;
	}
	return sum;
}

static void check_handed_over(struct engine *e)
{
	struct engine_stats s;
	for (unsigned i = 0; i < 1000; i++) {
		s = sum_stats(e);
		if (s.handed_over_tx == s.handed_over_rx)
			break;
		usleep(1000);
	}
	CHECK(s.handed_over_tx > 0 && s.handed_over_tx == s.handed_over_rx && !s.handed_over_dropped);
}

static void check_drops(const struct mesh *m, const struct side *end)
{
	static const enum drop none[] = { DROP_ICRC, DROP_QP_UNKNOWN, DROP_PSN_AHEAD };
	for (unsigned k = 0; k < m->cores; k++)
		for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
			CHECK(!side_drops(&end[k], none[i]));
}

static void exchange_on_rings(void *arg)
{
	static const char *const devices[][2] = {
		{ "embedded:" SIDE0 ",cores=2,window=64", "embedded:" SIDE1 ",cores=2,window=64" },
		{ "embedded:" SIDE0 ",cores=3,window=64", "embedded:" SIDE1 ",cores=3,window=64,core=0+0+0" },
		{ "embedded:" SIDE0 ",cores=2,window=64,idle=sleep", "embedded:" SIDE1 ",cores=2,window=64,idle=sleep:1000" },
	};
	static struct mesh m;
	for (unsigned i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		open_mesh(&m, i == 1 ? 3 : 2, devices[i][0], devices[i][1]);
		for (uint32_t round = 0; round < 4; round++)
			exchange(&m, 100 * round);
		check_handed_over(m.a[0].engine);
		check_handed_over(m.b[0].engine);
		check_drops(&m, m.a);
		check_drops(&m, m.b);
		close_end(&m, m.a);
		close_end(&m, m.b);
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
	open_mesh(&m, 3, "embedded:" SIDE0 ",cores=3", "embedded:" SIDE0 ",cores=3");
	CHECK(m.a[0].engine == m.b[0].engine);
	for (uint32_t round = 0; round < 4; round++)
		exchange(&m, 100 * round);
	check_handed_over(m.a[0].engine);
	check_drops(&m, m.a);
	for (unsigned i = 0; i < m.cores; i++) {
		core_stats(engine_core_stack(engine_core_at(m.a[0].engine, i)), &stats);
		CHECK(stats.loopback_packets > 0 && !stats.tx_packets);
	}
	close_end(&m, m.b);
	close_end(&m, m.a);
}

static void test_loopback_between_cores(void **state)
{
	assert_int_equal(side_child(exchange_within, NULL), 0);
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
	open_mesh(&m, QUEUES, device[0], device[1]);
	CHECK(side_open_context("embedded:port=0,queue=1,ip=10.5.0.9/24", &ctx, &engine) == -EBUSY && strstr(side_last_line(), "queues 0 to 1"));
	for (uint32_t round = 0; round < 4; round++)
		exchange(&m, 100 * round);
	CHECK(arp[1] > 0 && arp[2] == arp[1]); /* each question is answered by one core */
	for (int i = 0; i < 2; i++) {
		struct side *end = i ? m.b : m.a;
		check_handed_over(end->engine);
		check_drops(&m, end);
		engine_core_stats(end[1].core, &stats);
		CHECK(stats.tx_frames > 0 && !stats.rx_frames && stats.handed_over_rx > 0);
		close_end(&m, end);
	}
	atomic_store(&is_switching, false);
	pthread_join(thread, NULL);
}

static void test_all_frames_on_one_queue(void **state)
{
	assert_int_equal(side_child(exchange_on_one_queue, NULL), 0);
}

/* ---- net_af_packet, where the kernel spreads the frames by flow ---- */

static void exchange_writes(int side, int fd, bool has_own_addresses)
{
	static struct mesh m = { .cores = 2, .pairs = PAIRS_MAX };
	struct side_card ours[PAIRS_MAX], theirs[PAIRS_MAX];
	char device[128], ip[32] = "kernel", byte = 0;
	netns_enter(side);
	if (has_own_addresses)
		snprintf(ip, sizeof(ip), "10.3.0.%d/24", side + 1);
	snprintf(device, sizeof(device), "embedded:net_af_packet0,iface=u%d,cores=2,ip=%s", side, ip);
	open_end(&m, m.a, device);
	for (unsigned k = 0; k < m.pairs; k++)
		ours[k] = side_card(&m.a[k]);
	side_exchange(fd, ours, theirs, sizeof(ours));
	for (unsigned k = 0; k < m.pairs; k++)
		connect_side(&m.a[k], &theirs[partner(&m, k)]);
	side_exchange(fd, &byte, &byte, 1);
	for (uint32_t round = 0; round < 3; round++) {
		for (unsigned k = 0; k < m.pairs; k++) {
			side_fill(&m.a[k], 0, LEN, 100 * round + k);
			side_post_write(&m.a[k], round, 0, LEN, &theirs[partner(&m, k)], UPPER);
		}
		for (unsigned k = 0; k < m.pairs; k++)
			side_wait(&m.a[k], NULL, round);
		side_exchange(fd, &byte, &byte, 1); /* all are placed */
		for (unsigned k = 0; k < m.pairs; k++)
			side_check(&m.a[k], UPPER, LEN, 100 * round + partner(&m, k));
		side_exchange(fd, &byte, &byte, 1); /* all are checked */
	}
	check_handed_over(m.a[0].engine);
	for (unsigned i = 0; i < m.cores; i++)
		CHECK(!side_drops(&m.a[i], DROP_ICRC) && !side_drops(&m.a[i], DROP_QP_UNKNOWN));
	close_end(&m, m.a);
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
		cmocka_unit_test(test_all_frames_on_one_queue),
		cmocka_unit_test(test_af_packet_kernel_addresses),
		cmocka_unit_test(test_af_packet_own_addresses),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_queues_refused),
	};
	return cmocka_run_group_tests(tests, netns_make, netns_drop);
}

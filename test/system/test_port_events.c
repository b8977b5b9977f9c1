/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the device, over each kind of port: its link comes and goes, addresses come and go. Of an engine in this process and of a daemon; each client is told once. net_ring and net_memif for anyone, the kernel's
 * interfaces for root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events.h"
#include "link_watch.h"
#include "netns.h"
#include "server_fixture.h"

#define CLIENTS 2u

/* Two programs on the port: of a daemon, or in one process with the engine. */
struct port_world {
	struct daemon d;
	struct uroce_context *ctx[CLIENTS];
	bool is_served;
};

static void open_world(struct port_world *w, bool is_served, const char *device)
{
	char text[256];
	struct engine *engine;
	memset(w, 0, sizeof(*w));
	w->is_served = is_served;
	if (is_served) {
		snprintf(text, sizeof(text), "served:%s", device);
		daemon_prepare_device(&w->d, text);
		daemon_run(&w->d);
		CHECK(!w->d.err);
	}
	snprintf(text, sizeof(text), is_served ? "unix:%s" : "embedded:%s", is_served ? w->d.path : device);
	for (unsigned i = 0; i < CLIENTS; i++)
		CHECK(!(is_served ? uroce_open(text, NULL, &w->ctx[i]) : side_open_context(text, &w->ctx[i], &engine)));
}

static void expect(struct port_world *w, enum uroce_event_type type)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		events_expect(w->ctx[i], type, NULL);
}

static void expect_link(struct port_world *w, bool is_up)
{
	struct uroce_device_attr attr;
	CHECK(!uroce_query_device(w->ctx[0], &attr) && attr.port_up == is_up);
}

static void expect_no_more(struct port_world *w)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		events_expect_none(w->ctx[i]);
}

static void close_world(struct port_world *w)
{
	expect_no_more(w);
	for (unsigned i = 0; i < CLIENTS; i++)
		uroce_close(w->ctx[i]);
	if (w->is_served)
		daemon_close(&w->d);
}

#define BOTH(body)                                                                                                                            \
	do {                                                                                                                                  \
		for (uintptr_t is_served = 0; is_served < 2; is_served++)                                                                     \
			assert_int_equal(side_child(body, (void *)is_served), 0);                                                             \
	} while (0)

/* ---- net_ring: the other end is there, or not ---- */

static void watch_ring(void *is_served)
{
	struct port_world w;
	struct uroce_context *other;
	struct engine *engine;
	open_world(&w, is_served, "net_ring,link=watched,side=0,ip=10.8.0.1/24");
	expect_link(&w, false);
	for (unsigned i = 0; i < 3; i++) {
		expect_no_more(&w);
		CHECK(!side_open_context("embedded:net_ring,link=watched,side=1,ip=10.8.0.2/24", &other, &engine));
		expect(&w, UROCE_EVENT_PORT_ACTIVE);
		expect_link(&w, true);
		uroce_close(other);
		expect(&w, UROCE_EVENT_PORT_ERR);
		expect_link(&w, false);
	}
	close_world(&w);
}

static void test_ring(void **state)
{
	BOTH(watch_ring);
}

static void watch_cores(void *arg)
{
	struct uroce_context *ctx[4], *other;
	struct engine *engine;
	for (unsigned i = 0; i < 4; i++)
		CHECK(!side_open_context("embedded:net_ring,link=cores,side=0,ip=10.8.0.1/24,cores=2", &ctx[i], &engine));
	CHECK(!side_open_context("embedded:net_ring,link=cores,side=1,ip=10.8.0.2/24,cores=2", &other, &engine));
	for (unsigned i = 0; i < 4; i++) { /* two of them on each core */
		events_expect(ctx[i], UROCE_EVENT_PORT_ACTIVE, NULL);
		events_expect_none(ctx[i]);
	}
	uroce_close(other);
	for (unsigned i = 0; i < 4; i++)
		events_expect(ctx[i], UROCE_EVENT_PORT_ERR, NULL);
	for (unsigned i = 0; i < 4; i++)
		uroce_close(ctx[i]);
}

static void test_every_core(void **state)
{
	assert_int_equal(side_child(watch_cores, NULL), 0);
}

/* ---- net_memif: a peer comes, and is killed ---- */

static void be_peer(int fd)
{
	struct uroce_context *ctx;
	struct engine *engine;
	char byte;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(read(fd, &byte, 1) == 1);
	CHECK(!side_open_context("embedded:net_memif0,role=client,socket=uroce-port-events,ip=10.8.0.2/24", &ctx, &engine));
	for (;;)
		pause();
}

static void watch_memif(void *is_served)
{
	struct port_world w;
	int fd[2];
	CHECK(!pipe(fd));
	fflush(NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		be_peer(fd[0]);
	open_world(&w, is_served, "net_memif0,role=server,socket=uroce-port-events,ip=10.8.0.1/24");
	expect_link(&w, false);
	CHECK(write(fd[1], "", 1) == 1);
	expect(&w, UROCE_EVENT_PORT_ACTIVE);
	expect_link(&w, true);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	expect(&w, UROCE_EVENT_PORT_ERR);
	close_world(&w);
}

static void test_memif(void **state)
{
	BOTH(watch_memif);
}

/* ---- interfaces ---- */

/* The carrier goes with the other end of the pair; addresses are added and removed. */
static void watch_packet(void *is_served)
{
	struct port_world w;
	struct uroce_device_attr attr;
	struct uroce_gid gid;
	netns_enter(0);
	CHECK(!netns_run("ip link set u0 addrgenmode none && ip -6 addr flush dev u0")); /* those come and go by themselves */
	open_world(&w, is_served, "net_af_packet0,iface=u0");
	events_expect_none(w.ctx[0]);
	expect_link(&w, true);
	CHECK(!netns_run("ip addr add 10.2.0.77/24 dev u0"));
	expect(&w, UROCE_EVENT_GID_CHANGE);
	CHECK(!netns_run("ip addr add 10.2.0.78/24 dev u0"));
	expect(&w, UROCE_EVENT_GID_CHANGE);
	uint32_t last = 0;
	CHECK(!uroce_query_device(w.ctx[0], &attr) && attr.gid_slots == 3);
	for (uint32_t i = 0; i < attr.gid_slots; i++)
		if (!uroce_query_gid(w.ctx[0], i, &gid, NULL) && gid.raw[15] == 78)
			last = i;
	CHECK(last);
	CHECK(!netns_run("ip addr del 10.2.0.78/24 dev u0"));
	expect(&w, UROCE_EVENT_GID_CHANGE);
	CHECK(uroce_query_gid(w.ctx[0], last, &gid, NULL));
	expect_no_more(&w);
	CHECK(!netns_run("ip -n %s link set u1 down", netns_name(1)));
	expect(&w, UROCE_EVENT_PORT_ERR);
	expect_link(&w, false);
	CHECK(!netns_run("ip -n %s link set u1 up", netns_name(1)));
	expect(&w, UROCE_EVENT_PORT_ACTIVE);
	expect_link(&w, true);
	expect_no_more(&w);
	CHECK(!netns_run("ip link set u0 down"));
	expect(&w, UROCE_EVENT_PORT_ERR);
	CHECK(!netns_run("ip link set u0 up"));
	expect(&w, UROCE_EVENT_PORT_ACTIVE);
	close_world(&w);
}

static void test_packet(void **state)
{
	for (uintptr_t is_served = 0; is_served < 2; is_served++) {
		netns_make_pair(1500);
		assert_int_equal(side_child(watch_packet, (void *)is_served), 0);
	}
}

/* Each time an interface leaves a bridge, for a moment there is news of a link that is gone. */
static void leave_bridges(void *arg)
{
	struct link_watch *w;
	char name[64];
	snprintf(name, sizeof(name), "/tmp/uroce-bridge-%d", getpid());
	netns_enter(0);
	CHECK(!netns_run("ip link add br0 type bridge && ip link set br0 up && ip link set u0 master br0"));
	CHECK(!netns_run("for i in $(seq 100); do echo link set u0 nomaster; echo link set u0 master br0; done > %s", name));
	CHECK(!link_watch_open(&w, if_nametoindex("u0")) && link_watch_is_up(w));
	fflush(NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(netns_run("ip -batch %s", name) ? 1 : 0);
	int status;
	while (!waitpid(pid, &status, WNOHANG))
		CHECK(link_watch_is_up(w));
	CHECK(!status && link_watch_is_up(w));
	link_watch_close(w);
	unlink(name);
	CHECK(!netns_run("ip link del br0"));
}

static void test_bridge(void **state)
{
	netns_make_pair(1500);
	assert_int_equal(side_child(leave_bridges, NULL), 0);
}

static void watch_tap(void *is_served)
{
	struct port_world w;
	netns_enter(0);
	open_world(&w, is_served, "net_tap0,iface=tev,ip=10.4.0.1/24");
	CHECK(!netns_run("ip link set tev up"));
	for (unsigned i = 0; i < 100; i++) { /* it may come up only now */
		struct uroce_device_attr attr;
		CHECK(!uroce_query_device(w.ctx[0], &attr));
		if (attr.port_up)
			break;
		usleep(20000);
	}
	expect_link(&w, true);
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct uroce_async_event e;
		while (events_is_there(w.ctx[i]))
			CHECK(!uroce_async_get_event(w.ctx[i], &e) && e.type == UROCE_EVENT_PORT_ACTIVE);
	}
	CHECK(!netns_run("ip link set tev down"));
	expect(&w, UROCE_EVENT_PORT_ERR);
	expect_link(&w, false);
	CHECK(!netns_run("ip link set tev up"));
	expect(&w, UROCE_EVENT_PORT_ACTIVE);
	close_world(&w);
}

static void test_tap(void **state)
{
	netns_make_pair(1500); /* skips where there can be none */
	BOTH(watch_tap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_every_core),
		cmocka_unit_test(test_memif),
		cmocka_unit_test(test_packet),
		cmocka_unit_test(test_bridge),
		cmocka_unit_test(test_tap),
	};
	return cmocka_run_group_tests(tests, netns_make, netns_drop);
}

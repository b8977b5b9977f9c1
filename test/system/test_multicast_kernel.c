/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast between an engine and the kernel: groups joined on the kernel's sockets where it shares the interface; MAC filters where it does not; our IGMP and MLD reports believed by a bridge that snoops and asks; and the kernel's own
 * sockets hearing what an engine sends. Needs root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine_change.h"
#include "multicast.h"
#include "netns.h"
#include "talker.h"

static const char *const groups[] = { "239.1.2.3", "ff15::1:2:3" };

/* Whether a file of /proc/net says a word of an interface's line, or anywhere. */
static bool proc_says(const char *file, const char *word)
{
	char path[64], line[512];
	bool is_said = false;
	snprintf(path, sizeof(path), "/proc/self/net/%s", file);
	FILE *f = fopen(path, "re");
	CHECK(f);
	while (!is_said && fgets(line, sizeof(line), f))
		is_said = strstr(line, word);
	fclose(f);
	return is_said;
}

static bool is_joined_by_kernel(unsigned k)
{
	return k ? proc_says("igmp6", "ff150000000000000000000100020003") : proc_says("igmp", "030201EF");
}

static void meet(int fd)
{
	char byte = 0;
	side_exchange(fd, &byte, &byte, 1);
}

/* ---- shared with the kernel ---- */

struct devices {
	const char *device[2];
	bool is_shared[2];
};

/* Both ends are in both groups, send, and hear each other and themselves. */
static void talk(int side, int fd, const struct devices *d)
{
	static struct talker t;
	char own[32], theirs[32];
	netns_enter(side);
	talker_open(&t, d->device[side], false);
	for (unsigned k = 0; k < 2; k++) {
		snprintf(own, sizeof(own), "from %d in %u", side, k);
		snprintf(theirs, sizeof(theirs), "from %d in %u", !side, k);
		CHECK(!is_joined_by_kernel(k));
		CHECK(!talker_attach(&t, groups[k]));
		CHECK(is_joined_by_kernel(k) == d->is_shared[side]);
		meet(fd); /* both are in */
		if (side)
			talker_hear(&t, theirs);
		talker_send(&t, talker_ah(&t, groups[k]), UROCE_QPN_MULTICAST, own);
		talker_hear(&t, own);
		if (!side)
			talker_hear(&t, theirs);
		meet(fd); /* both have heard */
		CHECK(!talker_detach(&t, groups[k]));
		CHECK(!is_joined_by_kernel(k));
		meet(fd); /* both have left */
	}
	CHECK(!talker_listen(&t, "", 100));
	CHECK(!core_drops(engine_core_stack(talker_core(&t)))->count[DROP_ICRC]);
	talker_close(&t);
}

static void talk_a(int fd, void *arg)
{
	talk(0, fd, arg);
}

static void talk_b(int fd, void *arg)
{
	talk(1, fd, arg);
}

static void test_both_shared(void **state)
{
	struct devices d = { { "embedded:net_af_packet0,iface=u0", "embedded:net_af_packet0,iface=u1" }, { true, true } };
	netns_make_pair(4200);
	assert_int_equal(side_children(talk_a, talk_b, &d), 0);
}

static void test_own_and_shared(void **state)
{
	struct devices d = { { "embedded:net_af_packet0,iface=u0,ip=10.2.0.9/24,ip=fd02::9/64", "embedded:net_af_packet0,iface=u1,cores=2" }, { false, true } };
	netns_make_pair(4200);
	assert_int_equal(side_children(talk_a, talk_b, &d), 0);
}

/* Many more than one socket takes. */
static void join_many(void *arg)
{
	static struct talker t;
	struct multicast_stats s;
	char group[64];
	netns_enter(0);
	talker_open(&t, "embedded:net_af_packet0,iface=u0", false);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 200; i++) {
			snprintf(group, sizeof(group), i & 1 ? "ff15::7:%x" : "239.7.7.%u", i);
			CHECK(!talker_attach(&t, group));
		}
		CHECK(proc_says("igmp", "C60707EF") && proc_says("igmp6", "ff1500000000000000000000000700c7")); /* the last ones */
		multicast_stats(engine_multicast(t.engine), &s);
		CHECK(s.groups == 200 && !s.refused);
		for (unsigned i = 0; i < 200; i++) {
			snprintf(group, sizeof(group), i & 1 ? "ff15::7:%x" : "239.7.7.%u", i);
			CHECK(!talker_detach(&t, group));
		}
		CHECK(!proc_says("igmp", "0707EF") && !proc_says("igmp6", "ff15000000000000000000000007"));
	}
	talker_close(&t);
}

static void test_many_groups(void **state)
{
	netns_make_pair(1500);
	assert_int_equal(side_child(join_many, NULL), 0);
}

static uint32_t add_address(const struct talker *t, const char *text)
{
	struct gid gid;
	uint32_t index;
	CHECK(!gid_parse(text, &gid) && !engine_gid_add(t->engine, &gid, VLAN_NONE, 64, &index));
	return index;
}

/* An address that comes while the engine runs is looked for in a group of its own, until nobody uses it any more. */
static void look_at_filter_of_address(struct talker *t)
{
	uint32_t index = add_address(t, "fd02::77:8899");
	struct uroce_av av = { .sgid_index = index };
	struct uroce_ah *ah;
	CHECK(proc_says("dev_mcast", "3333ff778899"));
	av.dgid = talker_gid("fd02::2");
	CHECK(!uroce_ah_create(t->pd, &av, &ah));
	CHECK(!engine_gid_remove(t->engine, index));
	CHECK(proc_says("dev_mcast", "3333ff778899"));
	CHECK(!uroce_ah_destroy(ah));
	CHECK(!proc_says("dev_mcast", "3333ff778899"));
	CHECK(proc_says("dev_mcast", "3333ff123456"));
	/* another one with the same group comes and goes */
	index = add_address(t, "fd02:0:0:1::12:3456");
	CHECK(!engine_gid_remove(t->engine, index));
	CHECK(proc_says("dev_mcast", "3333ff123456"));
}

/* In own mode the kernel's NIC passes the groups' MAC addresses, and those of neighbour discovery. */
static void look_at_filter(void *arg)
{
	static struct talker t;
	netns_enter(0);
	talker_open(&t, "embedded:net_af_packet0,iface=u0,ip=10.2.0.9/24,ip=fd02::12:3456/64", false);
	CHECK(proc_says("dev_mcast", "01005e000001") && proc_says("dev_mcast", "3333ff123456"));
	CHECK(!proc_says("dev_mcast", "01005e010203") && !proc_says("dev_mcast", "333300020003"));
	CHECK(!talker_attach(&t, groups[0]) && !talker_attach(&t, groups[1]) && !talker_attach(&t, "239.129.2.3")); /* the same MAC address as the first */
	CHECK(proc_says("dev_mcast", "01005e010203") && proc_says("dev_mcast", "333300020003"));
	CHECK(!talker_detach(&t, groups[0]) && !talker_detach(&t, groups[1]));
	CHECK(proc_says("dev_mcast", "01005e010203") && !proc_says("dev_mcast", "333300020003"));
	CHECK(!talker_detach(&t, "239.129.2.3"));
	CHECK(!proc_says("dev_mcast", "01005e010203"));
	look_at_filter_of_address(&t);
	talker_close(&t);
}

static void test_mac_filter(void **state)
{
	netns_make_pair(1500);
	assert_int_equal(side_child(look_at_filter, NULL), 0);
}

/* ---- a socket of the kernel's ---- */

static int open_socket(unsigned k, const char *interface)
{
	struct ip_mreqn m4 = { .imr_ifindex = (int)if_nametoindex(interface) };
	struct ipv6_mreq m6 = { .ipv6mr_interface = if_nametoindex(interface) };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(4791) };
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(4791) };
	struct timeval patience = { .tv_sec = 20 };
	int one = 1, fd = socket(k ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && inet_pton(AF_INET, groups[0], &m4.imr_multiaddr) == 1 && inet_pton(AF_INET6, groups[1], &m6.ipv6mr_multiaddr) == 1);
	CHECK(!k || (!setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) && !setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &one, sizeof(one)))); /* annex A17.3.2: no UDP checksum */
	CHECK(!bind(fd, k ? (void *)&a6 : (void *)&a4, k ? sizeof(a6) : sizeof(a4)));
	CHECK(!(k ? setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m6, sizeof(m6)) : setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m4, sizeof(m4))));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	return fd;
}

/* BTH and DETH as in the specification: UD SEND ONLY to 0xFFFFFF. */
static void hear_on_socket(int fd, const char *text)
{
	uint8_t b[2048];
	size_t pad = -strlen(text) & 3;
	ssize_t n;
	while ((n = recv(fd, b, sizeof(b), 0)) < 0 && errno == EINTR) /* the signals of net_tap */
		;
	CHECK(n == (ssize_t)(12 + 8 + strlen(text) + pad + 4));
	CHECK(b[0] == 0x64 && b[5] == 0xff && b[6] == 0xff && b[7] == 0xff);
	CHECK(!memcmp(b + 20, text, strlen(text)));
}

static void send_to_kernel(int fd, void *arg)
{
	static struct talker t;
	netns_enter(0);
	talker_open(&t, "embedded:net_af_packet0,iface=u0", false);
	meet(fd);
	for (unsigned i = 0; i < 10; i++, usleep(100000)) /* one may be lost, on an interface that has just come up */
		for (unsigned k = 0; k < 2; k++)
			talker_send(&t, talker_ah(&t, groups[k]), UROCE_QPN_MULTICAST, groups[k]);
	meet(fd);
	talker_close(&t);
}

static void listen_in_kernel(int fd, void *arg)
{
	netns_enter(1);
	int sockets[] = { open_socket(0, "u1"), open_socket(1, "u1") };
	meet(fd);
	for (unsigned k = 0; k < 2; k++)
		hear_on_socket(sockets[k], groups[k]);
	meet(fd);
}

static void test_a_socket_hears_what_an_engine_sends(void **state)
{
	netns_make_pair(1500);
	assert_int_equal(side_children(send_to_kernel, listen_in_kernel, NULL), 0);
}

/* ---- a bridge that snoops and asks ---- */

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* br0 in a namespace, with that port; times in hundredths of a second: it asks every second, and forgets after three. */
static void make_bridge(int side, const char *port)
{
	const char *space = netns_name(side);
	assert_int_equal(netns_run("ip -n %s link add br0 mtu 4200 type bridge forward_delay 0 mcast_snooping 1 mcast_querier 1 mcast_igmp_version 3 mcast_mld_version 2", space), 0);
	assert_int_equal(netns_run("ip -n %s link set br0 type bridge mcast_query_interval 100 mcast_query_response_interval 50 mcast_membership_interval 300 mcast_startup_query_interval 50 mcast_last_member_interval 30", space), 0);
	assert_int_equal(netns_run("ip -n %s addr add 10.4.0.100/24 dev br0 && ip -n %s link set br0 up && ip -n %s link set %s master br0", space, space, space, port), 0);
}

static bool is_in_mdb(int side, const char *port, const char *group)
{
	return !netns_run("bridge -n %s mdb show dev br0 | grep -q 'port %s grp %s '", netns_name(side), port, group);
}

static void await_mdb(int side, const char *port, const char *group, bool is_there)
{
	for (double end = now_s() + 10; is_in_mdb(side, port, group) != is_there; usleep(100000))
		CHECK(now_s() < end);
}

struct bridged {
	const char *device, *port;
	const char *own; /* group of its own address */
	int side, engine_side; /* of the bridge, and of the engine */
};

static void be_bridged(void *arg)
{
	static struct talker t;
	static const char late[] = "ff02::1:ffab:cdef";
	const struct bridged *b = arg;
	netns_enter(b->engine_side);
	talker_open(&t, b->device, false);
	CHECK(!netns_run("for i in $(seq 100); do bridge -n %s link show dev %s | grep -q 'state forwarding' && exit 0; sleep 0.1; done; exit 1", netns_name(b->side), b->port));
	for (unsigned k = 0; k < 2; k++)
		CHECK(!talker_attach(&t, groups[k]));
	for (unsigned k = 0; k < 2; k++)
		await_mdb(b->side, b->port, groups[k], true);
	await_mdb(b->side, b->port, b->own, true);
	uint32_t index = add_address(&t, "fd04::ab:cdef");
	await_mdb(b->side, b->port, late, true);
	for (double end = now_s() + 7; now_s() < end;) /* it has asked, and forgets who does not answer */
		usleep(100000);
	for (unsigned k = 0; k < 2; k++) {
		CHECK(is_in_mdb(b->side, b->port, groups[k]));
		CHECK(!talker_detach(&t, groups[k]));
	}
	CHECK(is_in_mdb(b->side, b->port, b->own) && is_in_mdb(b->side, b->port, late));
	CHECK(!engine_gid_remove(t.engine, index));
	struct core_stats s;
	core_stats(engine_core_stack(talker_core(&t)), &s);
	CHECK(s.group_queries >= 4 && s.group_reports >= 4);
	for (unsigned k = 0; k < 2; k++)
		await_mdb(b->side, b->port, groups[k], false); /* well before it would have been forgotten anyway */
	await_mdb(b->side, b->port, late, false);
	CHECK(is_in_mdb(b->side, b->port, b->own));
	talker_close(&t);
}

static void skip_without_bridge_tool(void)
{
	if (netns_run("command -v bridge >/dev/null && ip link help bridge 2>&1 | grep -q mcast_mld_version")) {
		print_message("no bridge tool that knows MLD versions\n");
		skip();
	}
}

static void test_reports_of_af_packet(void **state)
{
	struct bridged b = { "embedded:net_af_packet0,iface=u0,ip=10.4.0.1/24,ip=fe80::1234/64,cores=2", "u1", "ff02::1:ff00:1234", 1, 0 };
	netns_make_pair(4200);
	skip_without_bridge_tool();
	make_bridge(1, "u1");
	int status = side_child(be_bridged, &b);
	netns_run("ip -n %s link del br0", netns_name(1));
	assert_int_equal(status, 0);
}

static void make_tap(void)
{
	if (access("/dev/net/tun", R_OK | W_OK))
		skip();
	netns_run("ip -n %s link del t0 2>/dev/null", netns_name(0));
	assert_int_equal(netns_run("ip -n %s tuntap add dev t0 mode tap multi_queue && ip -n %s link set t0 mtu 4200 up", netns_name(0), netns_name(0)), 0);
}

static void test_reports_of_tap(void **state)
{
	struct bridged b = { "embedded:net_tap0,iface=t0,ip=10.4.0.1/24,ip=fd04::1/64", "t0", "ff02::1:ff00:1", 0, 0 };
	netns_make_pair(4200);
	skip_without_bridge_tool();
	make_tap();
	make_bridge(0, "t0");
	int status = side_child(be_bridged, &b);
	netns_run("ip -n %s link del br0", netns_name(0));
	assert_int_equal(status, 0);
}

/* The kernel's end of a tap hears and is heard. */
static void talk_over_tap(void *arg)
{
	static struct talker t, shared;
	netns_enter(0);
	talker_open(&t, "embedded:net_tap0,iface=t0,ip=10.4.0.1/24,ip=fd04::1/64", false);
	CHECK(!netns_run("ip addr add 10.4.0.2/24 dev t0 && ip addr add fd04::2/64 dev t0 nodad"));
	int sockets[] = { open_socket(0, "t0"), open_socket(1, "t0") };
	for (unsigned k = 0; k < 2; k++) {
		CHECK(!talker_attach(&t, groups[k]));
		talker_send(&t, talker_ah(&t, groups[k]), UROCE_QPN_MULTICAST, groups[k]);
		talker_hear(&t, groups[k]);
		hear_on_socket(sockets[k], groups[k]);
		close(sockets[k]);
	}
	talker_open(&shared, "embedded:net_af_packet0,iface=t0", false);
	for (unsigned k = 0; k < 2; k++) {
		talker_send(&shared, talker_ah(&shared, groups[k]), UROCE_QPN_MULTICAST, groups[k]);
		talker_hear(&t, groups[k]);
	}
	talker_close(&shared);
	talker_close(&t);
}

static void test_tap(void **state)
{
	netns_make_pair(4200);
	make_tap();
	assert_int_equal(side_child(talk_over_tap, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_shared),
		cmocka_unit_test(test_own_and_shared),
		cmocka_unit_test(test_many_groups),
		cmocka_unit_test(test_mac_filter),
		cmocka_unit_test(test_a_socket_hears_what_an_engine_sends),
		cmocka_unit_test(test_reports_of_af_packet),
		cmocka_unit_test(test_reports_of_tap),
		cmocka_unit_test(test_tap),
	};
	return cmocka_run_group_tests(tests, netns_make, netns_drop);
}

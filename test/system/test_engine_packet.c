/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines over net_af_packet on a veth pair between two network namespaces, with the addresses of the kernel: full-size frames both ways, what is refused, a small TX ring, foreign jumbo frames. Needs root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "netns.h"
#include "side.h"

struct job {
	const char *keys[2];  /* of the two device strings */
	uint32_t path_mtu, bytes, rounds;
	uint32_t gid_index;   /* 0: IPv4 */
	void (*disturb)(struct side *s, int side);
};

/* Port unreachables that this namespace's kernel sent: there is no other reason for one here. */
static long count_unreachable(void)
{
	char names[1024], values[1024], *name, *value, *rest[2];
	FILE *f = fopen("/proc/thread-self/net/snmp", "r");
	CHECK(f);
	do
		CHECK(fgets(names, sizeof(names), f));
	while (strncmp(names, "Icmp: ", 6));
	CHECK(fgets(values, sizeof(values), f));
	fclose(f);
	name = strtok_r(names, " \n", &rest[0]);
	value = strtok_r(values, " \n", &rest[1]);
	while (name && value && strcmp(name, "OutDestUnreachs")) {
		name = strtok_r(NULL, " \n", &rest[0]);
		value = strtok_r(NULL, " \n", &rest[1]);
	}
	CHECK(name && value);
	return atol(value);
}

/* Each side writes into the other's upper half what it has in its lower half, and checks what came. */
static void exchange_writes(int side, int fd, void *arg)
{
	const struct job *job = arg;
	struct side s;
	struct side_card ours, theirs;
	char device[256], byte = 0;
	netns_enter(side);
	long unreachable = count_unreachable();
	snprintf(device, sizeof(device), "embedded:net_af_packet0,iface=u%d%s", side, job->keys[side]);
	side_open(&s, device);
	CHECK(!uroce_qp_endpoint(s.qp, job->gid_index, &s.endpoint));
	ours = side_card(&s);
	side_exchange(fd, &ours, &theirs, sizeof(ours));
	side_connect(&s, &theirs, job->path_mtu);
	side_exchange(fd, &byte, &byte, 1);
	for (uint32_t round = 0; round < job->rounds; round++) {
		side_fill(&s, 0, job->bytes, 2 * round + (uint32_t)side);
		side_post_write(&s, round, 0, job->bytes, &theirs, SIDE_BYTES / 2);
		if (job->disturb)
			job->disturb(&s, side);
		side_wait(&s, NULL, round);
		side_exchange(fd, &byte, &byte, 1); /* both are placed */
		side_check(&s, SIDE_BYTES / 2, job->bytes, 2 * round + !side);
		side_exchange(fd, &byte, &byte, 1); /* both are checked */
	}
	CHECK(!side_drops(&s, DROP_ICRC));
	CHECK(count_unreachable() == unreachable);
	side_close(&s);
}

static void run_a(int fd, void *arg)
{
	exchange_writes(0, fd, arg);
}

static void run_b(int fd, void *arg)
{
	exchange_writes(1, fd, arg);
}

/* A path MTU of 4096 over an interface MTU of 4200: every packet but the last is of full size. known-bugs 59: the real largest frame, for each path MTU. */
/* known-bugs: 59 */
static void test_full_size_each_way(void **state)
{
	static const uint32_t mtus[] = { 1024, 2048, 4096 };
	netns_make_pair(4200);
	for (unsigned i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		struct job job = { { ",mtu=4096", ",mtu=4096" }, mtus[i], 1 << 20, 4, 0, NULL };
		assert_int_equal(side_children(run_a, run_b, &job), 0);
	}
}

static void test_ip6(void **state)
{
	netns_make_pair(4200);
	struct job job = { { "", "" }, 4096, 1 << 20, 2, 1, NULL };
	assert_int_equal(side_children(run_a, run_b, &job), 0);
}

/* Addresses of the engine's own, beside the kernel's. */
static void test_own_addresses(void **state)
{
	netns_make_pair(4200);
	struct job job = { { ",ip=10.3.0.1/24", ",ip=10.3.0.2/24" }, 4096, 1 << 20, 2, 0, NULL };
	assert_int_equal(side_children(run_a, run_b, &job), 0);
}

struct refusal {
	const char *keys;
	int err;
	const char *word;
};

static void refuse(void *arg)
{
	const struct refusal *r = arg;
	char device[256];
	netns_enter(0);
	snprintf(device, sizeof(device), "embedded:net_af_packet0%s", r->keys);
	side_is_refused(device, r->err, r->word);
}

/* known-bugs: 54 59 */
static void test_mtu_refused(void **state)
{
	static struct refusal rows[] = {
		{ ",iface=u0,mtu=4096", -EINVAL, "path MTU of 1024" },
		{ ",iface=u0,mtu=2048", -EINVAL, "raise the MTU of interface u0" },
		{ ",iface=u0,mtu=1024,framesz=1024", -EINVAL, "path MTU of 512" },
		{ ",iface=nope", -ENODEV, "nope" },
		{ "", -EINVAL, "iface=" },
		{ ",iface=u0,frames=3", -EINVAL, "framecnt" },
		{ ",iface=lo", -EINVAL, "loopback" },
	};
	netns_make_pair(1500);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(side_child(refuse, &rows[i]), 0);
}

/* Frames of 9,000 bytes into slots of 2,048, between our own. */
static void send_jumbo(struct side *s, int side)
{
	uint8_t frame[9014];
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(side ? "u1" : "u0") };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	CHECK(fd >= 0);
	memset(frame, 0xff, sizeof(frame)); /* to everybody */
	frame[12] = 0x08;
	frame[13] = 0x00;
	for (int i = 0; i < 50; i++)
		CHECK(sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)) == sizeof(frame));
	close(fd);
}

/* known-bugs: 54 */
static void test_foreign_jumbo_frames(void **state)
{
	netns_make_pair(9000);
	struct job job = { { ",framesz=2048", ",framesz=2048" }, 1024, 1 << 20, 3, 0, send_jumbo };
	assert_int_equal(side_children(run_a, run_b, &job), 0);
}

/* 16 slots in the rings under a window of 256 packets: what is sent is right at the peer, whatever is lost on the way is sent again. */
/* known-bugs: 55 */
static void test_small_tx_ring(void **state)
{
	netns_make_pair(4200);
	struct job job = { { ",framecnt=16,blocksz=65536,window=256", "" }, 4096, 2 << 20, 8, 0, NULL };
	assert_int_equal(side_children(run_a, run_b, &job), 0);
}

/* An ordinary container: CAP_NET_RAW and nothing else, little locked memory. */
static void become_container_user(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .effective = 1u << CAP_NET_RAW, .permitted = 1u << CAP_NET_RAW } };
	struct rlimit locked = { 8 << 20, 8 << 20 };
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &locked));
	CHECK(!prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	CHECK(!setgroups(0, NULL) && !setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
	CHECK(!syscall(SYS_capset, &header, data));
}

static void run_contained(int fd, void *arg)
{
	netns_enter(0);
	become_container_user();
	struct job job = *(struct job *)arg;
	struct side s;
	struct side_card ours, theirs;
	char byte = 0;
	side_open(&s, "embedded:net_af_packet0,iface=u0");
	ours = side_card(&s);
	side_exchange(fd, &ours, &theirs, sizeof(ours));
	side_connect(&s, &theirs, job.path_mtu);
	side_exchange(fd, &byte, &byte, 1);
	for (uint32_t round = 0; round < job.rounds; round++) {
		side_fill(&s, 0, job.bytes, 2 * round);
		side_post_write(&s, round, 0, job.bytes, &theirs, SIDE_BYTES / 2);
		side_wait(&s, NULL, round);
		side_exchange(fd, &byte, &byte, 1);
		side_check(&s, SIDE_BYTES / 2, job.bytes, 2 * round + 1);
		side_exchange(fd, &byte, &byte, 1);
	}
	side_close(&s);
}

static void test_only_net_raw(void **state)
{
	netns_make_pair(4200);
	struct job job = { { "", "" }, 4096, 1 << 20, 2, 0, NULL };
	assert_int_equal(side_children(run_contained, run_b, &job), 0);
}

/* The interface's own flags stay as somebody set them. */
static void look_at_flags(void *arg)
{
	struct side s;
	netns_enter(0);
	side_open(&s, "inline:net_af_packet0,iface=u0");
	CHECK(!netns_run("ip link show u0 | grep -q PROMISC"));
	side_close(&s);
	CHECK(!netns_run("ip link show u0 | grep -q PROMISC"));
}

static void test_interface_is_left_alone(void **state)
{
	netns_make_pair(1500);
	assert_int_equal(netns_run("ip -n %s link set u0 promisc on", netns_name(0)), 0);
	assert_int_equal(side_child(look_at_flags, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_size_each_way),
		cmocka_unit_test(test_ip6),
		cmocka_unit_test(test_own_addresses),
		cmocka_unit_test(test_mtu_refused),
		cmocka_unit_test(test_foreign_jumbo_frames),
		cmocka_unit_test(test_small_tx_ring),
		cmocka_unit_test(test_only_net_raw),
		cmocka_unit_test(test_interface_is_left_alone),
	};
	return cmocka_run_group_tests(tests, netns_make, netns_drop);
}

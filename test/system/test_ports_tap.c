/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine over net_tap, and one over net_af_packet on the kernel's end of the tap, or behind a bridge: full-size frames, MTUs, what is refused, signals, a killed process. Needs root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netns.h"
#include "operations.h"

#define TAP_MAC "02:00:00:00:74:70"

/* Interface t0, a tap that nobody holds. */
static void make_tap(uint32_t mtu)
{
	netns_make_pair(4200); /* skips where there can be none */
	if (access("/dev/net/tun", R_OK | W_OK))
		skip();
	netns_run("for i in t0 t1 br0; do ip -n %s link del $i; done 2>/dev/null", netns_name(0));
	assert_int_equal(netns_run("ip -n %s tuntap add dev t0 mode tap multi_queue && ip -n %s link set t0 mtu %u address " TAP_MAC, netns_name(0), netns_name(0), mtu), 0);
}

struct job {
	const char *keys[2]; /* more of each side's device string: of the tap's, of af_packet's */
	const char *kernel;  /* interface of the kernel's end */
	int space;           /* of the namespaces, that it is in */
	uint32_t path_mtu, most;
	bool is_captured, is_blocking;
};

static void make_device(char *device, size_t room, const struct job *job, int side)
{
	int n = side ? snprintf(device, room, "embedded:net_af_packet0,iface=%s%s", job->kernel, job->keys[1])
		     : snprintf(device, room, "embedded:net_tap0,iface=t0,ip=10.4.0.1/24%s", job->keys[0]);
	if (job->is_captured)
		snprintf(device + n, room - (size_t)n, ",capture=/tmp/uroce-%s-%d", netns_name(0), side);
}

/* The tap's side is there first: until then its interface has no carrier. */
static void run_tap(int fd, void *arg)
{
	const struct job *job = arg;
	struct side s;
	char device[384], byte = 0;
	sigset_t all;
	netns_enter(0);
	sigfillset(&all);
	if (job->is_blocking)
		pthread_sigmask(SIG_BLOCK, &all, NULL);
	make_device(device, sizeof(device), job, 0);
	side_open(&s, device);
	side_exchange(fd, &byte, &byte, 1);
	operations_run(&s, fd, 0, job->path_mtu, job->most);
	CHECK(!side_drops(&s, DROP_ICRC));
	side_close(&s);
}

static void run_kernel_end(int fd, void *arg)
{
	const struct job *job = arg;
	struct side s;
	char device[384], byte = 0;
	netns_enter(job->space);
	side_exchange(fd, &byte, &byte, 1);
	/* A bridge hears up to a second late that the tap has a carrier, and a neighbour that does not answer for half a second is given up. */
	for (int i = 0; job->space && i < 50 && netns_run("ip -n %s -d link show t0 | grep -q 'bridge_slave state forwarding'", netns_name(0)); i++)
		usleep(100000);
	CHECK(!netns_run("ip addr flush dev %s scope global && ip addr add 10.4.0.2/24 dev %s", job->kernel, job->kernel));
	make_device(device, sizeof(device), job, 1);
	side_open(&s, device);
	operations_run(&s, fd, 1, job->path_mtu, job->most);
	CHECK(!side_drops(&s, DROP_ICRC));
	side_close(&s);
}

/* A WRITE_WITH_IMM of one packet: Ethernet, IPv4, UDP, BTH, RETH, immediate, 4096 bytes, ICRC. */
#define LARGEST (14u + 20 + 8 + 12 + 16 + 4 + 4096 + 4)

/* known-bugs: 59 */
static void test_full_size_each_way(void **state)
{
	struct job job = { { ",mtu=4096", ",mtu=4096" }, "t0", 0, 4096, 1 << 16, true, false };
	make_tap(4200);
	assert_int_equal(side_children(run_tap, run_kernel_end, &job), 0);
	for (int side = 0; side < 2; side++) {
		char path[96];
		snprintf(path, sizeof(path), "/tmp/uroce-%s-%d", netns_name(0), side);
		uint32_t sent = operations_largest_frame(path, true), received = operations_largest_frame(path, false);
		unlink(path);
		assert_int_equal(sent, LARGEST);
		assert_int_equal(received, LARGEST);
	}
	/* It keeps what it had before the driver took it over. */
	assert_int_equal(netns_run("ip -n %s link show t0 | grep -q 'mtu 4200' && ip -n %s link show t0 | grep -q " TAP_MAC, netns_name(0), netns_name(0)), 0);
}

static void test_megabytes(void **state)
{
	struct job job = { { "", "" }, "t0", 0, 4096, 1 << 20, false, false };
	make_tap(4200);
	assert_int_equal(side_children(run_tap, run_kernel_end, &job), 0);
}

/* Every packet below 1500 bytes: the path MTU is 1024 unless someone raises the interface's. */
static void test_ordinary_mtu(void **state)
{
	struct job job = { { "", "" }, "t0", 0, 1024, 1 << 16, false, false };
	make_tap(1500);
	assert_int_equal(side_children(run_tap, run_kernel_end, &job), 0);
}

static void look_at_mtu(void *arg)
{
	struct side s;
	netns_enter(0);
	side_open(&s, "embedded:net_tap0,iface=t0,ip=10.4.0.1/24");
	CHECK(s.endpoint.mtu == *(uint32_t *)arg);
	side_close(&s);
}

static void test_path_mtu_is_the_largest_that_fits(void **state)
{
	static const uint32_t mtus[][2] = { { 1500, 1024 }, { 4200, 4096 }, { 9000, 4096 }, { 600, 512 } };
	for (unsigned i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		uint32_t path_mtu = mtus[i][1];
		make_tap(mtus[i][0]);
		assert_int_equal(side_child(look_at_mtu, &path_mtu), 0);
	}
}

/* Both ends of the tap have an address of their own: a bridge would otherwise keep our frames. */
static void test_behind_a_bridge(void **state)
{
	struct job job = { { "", "" }, "u1", 1, 4096, 1 << 16, false, false };
	make_tap(4200);
	assert_int_equal(netns_run("ip -n %s link add br0 mtu 4200 type bridge && ip -n %s link set br0 up", netns_name(0), netns_name(0)), 0);
	assert_int_equal(netns_run("for i in t0 u0; do ip -n %s link set $i master br0 || exit 1; done", netns_name(0)), 0);
	assert_int_equal(side_children(run_tap, run_kernel_end, &job), 0);
}

/* The kernel puts each flow on the queue that it last came from, whatever core its QP is on. */
static void test_two_cores(void **state)
{
	struct job job = { { ",cores=2", "" }, "t0", 0, 4096, 1 << 16, false, false };
	make_tap(4200);
	assert_int_equal(side_children(run_tap, run_kernel_end, &job), 0);
}

/* The program's own threads take no signal at all. */
static void test_program_blocks_signals(void **state)
{
	struct job job = { { "", "" }, "t0", 0, 4096, 1 << 16, false, true };
	make_tap(4200);
	assert_int_equal(side_children(run_tap, run_kernel_end, &job), 0);
}

/* ---- an interface that was not there ---- */

static void look_at_made(void *arg)
{
	struct side s;
	netns_enter(0);
	side_open(&s, "embedded:net_tap0,iface=t1,ip=10.4.0.1/24,mtu=4096,mac=02:00:00:00:00:99");
	CHECK(!netns_run("ip link show t1 | grep -q 'mtu 4200'"));
	CHECK(netns_run("ip link show t1 | grep -q 02:00:00:00:00:99")); /* is ours, not the kernel's */
	CHECK(s.endpoint.mtu == 4096);
	side_close(&s);
	CHECK(netns_run("ip link show t1 2>/dev/null"));
	side_open(&s, "embedded:net_tap0,iface=t1,ip=10.4.0.1/24");
	CHECK(!netns_run("ip link show t1 | grep -q 'mtu 1500'"));
	CHECK(s.endpoint.mtu == 1024);
	side_close(&s);
}

static void test_made_interface(void **state)
{
	make_tap(1500);
	assert_int_equal(side_child(look_at_made, NULL), 0);
}

/* ---- what is refused ---- */

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
	snprintf(device, sizeof(device), "embedded:net_tap1,ip=10.4.0.1/24%s", r->keys);
	side_is_refused(device, r->err, r->word);
}

static void test_refused(void **state)
{
	static struct refusal rows[] = {
		{ ",iface=t0,mtu=4096", -EINVAL, "path MTU of 1024; raise the MTU of interface t0 to 4200" },
		{ ",iface=t0,mtu=2048", -EINVAL, "path MTU of 1024" },
		{ ",iface=u0", -EBUSY, "no tap" },
		{ ",iface=t1", -EINVAL, "multi_queue" },
		{ ",iface=much-too-long-name", -EINVAL, "15 characters" },
		{ ",iface=t0,remote=u0", -EINVAL, "iface mac persist" },
	};
	make_tap(1500);
	assert_int_equal(netns_run("ip -n %s tuntap add dev t1 mode tap", netns_name(0)), 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(side_child(refuse, &rows[i]), 0);
}

static void hold(int fd, void *arg)
{
	struct side s;
	char byte = 0;
	netns_enter(0);
	side_open(&s, "embedded:net_tap0,iface=t0,ip=10.4.0.2/24");
	side_exchange(fd, &byte, &byte, 1); /* it is held */
	side_exchange(fd, &byte, &byte, 1); /* the other one has tried */
	side_close(&s);
}

static void hold_too(int fd, void *arg)
{
	struct refusal second = { ",iface=t0", -EBUSY, "in use" };
	char byte = 0;
	side_exchange(fd, &byte, &byte, 1);
	refuse(&second);
	side_exchange(fd, &byte, &byte, 1);
}

static void test_held_by_another_process(void **state)
{
	make_tap(1500);
	assert_int_equal(side_children(hold, hold_too, NULL), 0);
}

static void refuse_without_rights(void *arg)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .effective = 1u << CAP_SYS_ADMIN, .permitted = 1u << CAP_SYS_ADMIN } };
	struct refusal none = { ",iface=t0", -EPERM, "CAP_NET_ADMIN" };
	CHECK(!syscall(SYS_capset, &header, data));
	refuse(&none);
}

static void test_without_rights(void **state)
{
	make_tap(1500);
	assert_int_equal(side_child(refuse_without_rights, NULL), 0);
}

/* ---- a killed process ---- */

static void die(void *arg)
{
	struct side s;
	netns_enter(0);
	side_open(&s, "embedded:net_tap0,iface=t0,ip=10.4.0.1/24");
	kill(getpid(), SIGKILL);
}

static void test_killed_process(void **state)
{
	struct job job = { { "", "" }, "t0", 0, 4096, 1 << 16, false, false };
	make_tap(4200);
	for (int i = 0; i < 3; i++)
		assert_int_equal(side_child(die, NULL), 128 + SIGKILL);
	assert_int_equal(side_children(run_tap, run_kernel_end, &job), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_size_each_way),
		cmocka_unit_test(test_megabytes),
		cmocka_unit_test(test_ordinary_mtu),
		cmocka_unit_test(test_path_mtu_is_the_largest_that_fits),
		cmocka_unit_test(test_behind_a_bridge),
		cmocka_unit_test(test_two_cores),
		cmocka_unit_test(test_program_blocks_signals),
		cmocka_unit_test(test_made_interface),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_held_by_another_process),
		cmocka_unit_test(test_without_rights),
		cmocka_unit_test(test_killed_process),
	};
	return cmocka_run_group_tests(tests, netns_make, netns_drop);
}

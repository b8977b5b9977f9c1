/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the two namespaces of this test's process. */
#include "netns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "side.h"

static char spaces[2][32];

int netns_run(const char *format, ...)
{
	char command[256];
	va_list args;
	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command);
}

static void remove_spaces(void)
{
	for (int i = 0; i < 2; i++)
		netns_run("ip netns del %s 2>/dev/null", spaces[i]);
}

int netns_make(void **state)
{
	for (int i = 0; i < 2; i++)
		snprintf(spaces[i], sizeof(spaces[i]), "uroce-%d-%c", getpid(), 'a' + i);
	if (geteuid() || netns_run("ip netns add %s 2>/dev/null", spaces[0]) || netns_run("ip netns add %s 2>/dev/null", spaces[1])) {
		remove_spaces();
		spaces[0][0] = 0;
		printf("needs root, ip, and network namespaces\n");
	}
	return 0;
}

int netns_drop(void **state)
{
	if (spaces[0][0])
		remove_spaces();
	return 0;
}

void netns_make_pair(uint32_t mtu)
{
	if (!spaces[0][0])
		skip();
	netns_run("ip -n %s link del u0 2>/dev/null", spaces[0]);
	assert_int_equal(netns_run("ip link add u0 netns %s mtu %u type veth peer name u1 netns %s mtu %u", spaces[0], mtu, spaces[1], mtu), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(netns_run("ip -n %s addr add 10.2.0.%d/24 dev u%d && ip -n %s addr add fd02::%d/64 dev u%d nodad", spaces[i], i + 1, i, spaces[i], i + 1, i), 0);
		assert_int_equal(netns_run("ip -n %s link set u%d up && ip -n %s link set lo up", spaces[i], i, spaces[i]), 0);
	}
}

void netns_enter(int side)
{
	char path[64];
	snprintf(path, sizeof(path), "/run/netns/%s", spaces[side]);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && !setns(fd, CLONE_NEWNET));
	close(fd);
}

const char *netns_name(int side)
{
	return spaces[side];
}

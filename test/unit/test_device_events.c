/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the device at a core: every client hears of each change once; one that does not read loses what there is no room for, counted, and costs the others nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "machine.h"
#include "raw_client.h"

#define CLIENTS 3u

struct fixture {
	uint64_t now;
	struct core *core;
	struct raw_client c[CLIENTS];
};

static void open_fixture(struct fixture *x)
{
	*x = (struct fixture){ .now = 1000 };
	x->core = raw_core_new(0, 1, x->now);
	for (unsigned i = 0; i < CLIENTS; i++)
		raw_open(&x->c[i], x->core, &x->now);
}

static void close_fixture(struct fixture *x)
{
	core_free(x->core);
}

/* ABI_EVENT_TYPES: none. */
static uint32_t next_event(struct raw_client *c)
{
	struct abi_async_event e;
	if (read(core_client_async_fd(c->k), &e, sizeof(e)) != sizeof(e))
		return ABI_EVENT_TYPES;
	assert_int_equal(e.cookie, 0);
	return e.type;
}

static void expect(struct fixture *x, uint32_t type)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		assert_int_equal(next_event(&x->c[i]), type);
		assert_int_equal(next_event(&x->c[i]), ABI_EVENT_TYPES);
	}
}

static uint64_t raised(const struct fixture *x, uint32_t type)
{
	struct core_stats s;
	core_stats(x->core, &s);
	return s.raised[type];
}

static void test_link(void **state)
{
	struct fixture x;
	open_fixture(&x);
	core_set_port_up(x.core, x.now, true); /* as it was taken to be */
	expect(&x, ABI_EVENT_TYPES);
	for (unsigned i = 0; i < 2; i++) {
		core_set_port_up(x.core, x.now, false);
		core_set_port_up(x.core, x.now, false);
		expect(&x, ABI_EVENT_PORT_ERR);
		assert_int_equal(raw_ask(&x.c[0], &(struct abi_req){ .type = ABI_QUERY_DEVICE }), 0);
		assert_false(x.c[0].rep.device.port_up);
		core_set_port_up(x.core, x.now, true);
		expect(&x, ABI_EVENT_PORT_ACTIVE);
		assert_int_equal(raw_ask(&x.c[0], &(struct abi_req){ .type = ABI_QUERY_DEVICE }), 0);
		assert_true(x.c[0].rep.device.port_up);
	}
	assert_int_equal(raised(&x, ABI_EVENT_PORT_ERR), 2 * CLIENTS);
	assert_int_equal(raised(&x, ABI_EVENT_PORT_ACTIVE), 2 * CLIENTS);
	close_fixture(&x);
}

static void test_gids(void **state)
{
	struct fixture x;
	struct gid gid;
	uint32_t index;
	open_fixture(&x);
	assert_int_equal(gid_parse("10.0.0.9", &gid), 0);
	assert_int_equal(addr_gid_add(core_addr(x.core), &gid, VLAN_NONE, 24, &index), 0);
	expect(&x, ABI_EVENT_GID_CHANGE);
	assert_int_equal(addr_gid_add(core_addr(x.core), &gid, VLAN_NONE, 24, &index), -EEXIST); /* no change */
	expect(&x, ABI_EVENT_TYPES);
	assert_int_equal(addr_gid_remove(core_addr(x.core), index), 0);
	expect(&x, ABI_EVENT_GID_CHANGE);
	assert_int_equal(addr_gid_remove(core_addr(x.core), index), -ENOENT);
	expect(&x, ABI_EVENT_TYPES);
	assert_int_equal(raised(&x, ABI_EVENT_GID_CHANGE), 2 * CLIENTS);
	close_fixture(&x);
}

/* Writes what waits for room. */
static void wait_for_more(struct fixture *x)
{
	x->now += 2000000;
	core_run(x->core, x->now);
}

static void test_who_never_reads(void **state)
{
	enum { CHANGES = 3000 };
	struct fixture x;
	struct core_stats s;
	unsigned read_by_others = 0, left = 0;
	open_fixture(&x);
	for (unsigned i = 0; i < CHANGES; i++) {
		core_set_port_up(x.core, x.now, false);
		core_set_port_up(x.core, x.now, true);
		for (unsigned c = 1; c < CLIENTS; c++)
			while (next_event(&x.c[c]) != ABI_EVENT_TYPES)
				read_by_others++;
	}
	assert_int_equal(read_by_others, (CLIENTS - 1) * 2 * CHANGES);
	/* what it gets is what was first, in order, however late */
	for (unsigned idle = 0; idle < 2; wait_for_more(&x), idle++)
		for (uint32_t type; (type = next_event(&x.c[0])) != ABI_EVENT_TYPES; idle = 0)
			assert_int_equal(type, left++ % 2 ? ABI_EVENT_PORT_ACTIVE : ABI_EVENT_PORT_ERR);
	core_stats(x.core, &s);
	assert_true(s.lost_events > 0);
	assert_true(left > 4096);
	assert_int_equal(left + s.lost_events, 2 * CHANGES);
	core_set_port_up(x.core, x.now, false);
	assert_int_equal(next_event(&x.c[0]), ABI_EVENT_PORT_ERR);
	close_fixture(&x);
}

/* It goes while events of its wait for room; its channel is closed, and nothing is written there any more. */
static void test_who_goes_unread(void **state)
{
	struct fixture x;
	struct core_stats s;
	open_fixture(&x);
	for (unsigned i = 0; i < 1000; i++)
		core_set_port_up(x.core, x.now, i % 2);
	assert_false(TAILQ_EMPTY(&x.core->late));
	core_client_detach(x.c[0].k, 0);
	core_client_detach(x.c[1].k, UINT32_MAX);
	core_set_port_up(x.core, x.now, false);
	wait_for_more(&x);
	core_client_free(x.c[0].k);
	core_client_free(x.c[1].k);
	assert_int_equal(TAILQ_FIRST(&x.core->late) == TAILQ_LAST(&x.core->late, late_channels), true); /* the third's */
	core_stats(x.core, &s);
	assert_int_equal(s.lost_events, 0);
	close_fixture(&x);
}

/* A client that shuts its end has its events thrown away, each counted; neither a signal nor a retry comes of it. */
static void test_who_shuts_its_end(void **state)
{
	struct fixture x;
	struct core_stats s;
	open_fixture(&x);
	assert_int_equal(shutdown(core_client_async_fd(x.c[0].k), SHUT_RDWR), 0);
	for (unsigned i = 0; i < 10; i++)
		core_set_port_up(x.core, x.now, i % 2);
	core_stats(x.core, &s);
	assert_int_equal(s.lost_events, 10);
	assert_true(TAILQ_EMPTY(&x.core->late));
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(next_event(&x.c[1]), i % 2 ? ABI_EVENT_PORT_ACTIVE : ABI_EVENT_PORT_ERR);
	/* also what waits already */
	for (unsigned i = 0; i < 1000; i++)
		core_set_port_up(x.core, x.now, i % 2);
	assert_false(TAILQ_EMPTY(&x.core->late));
	for (unsigned i = 1; i < CLIENTS; i++)
		assert_int_equal(shutdown(core_client_async_fd(x.c[i].k), SHUT_RD), 0);
	for (unsigned i = 0; i < 100 && !TAILQ_EMPTY(&x.core->late); i++)
		wait_for_more(&x);
	assert_true(TAILQ_EMPTY(&x.core->late));
	close_fixture(&x);
}

static void test_clients_that_come_and_go(void **state)
{
	struct fixture x;
	open_fixture(&x);
	core_client_free(x.c[0].k);
	core_set_port_up(x.core, x.now, false);
	assert_int_equal(next_event(&x.c[1]), ABI_EVENT_PORT_ERR);
	raw_open(&x.c[0], x.core, &x.now); /* what was before it, it can ask for */
	assert_int_equal(next_event(&x.c[0]), ABI_EVENT_TYPES);
	assert_int_equal(raised(&x, ABI_EVENT_PORT_ERR), CLIENTS - 1);
	close_fixture(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_gids),
		cmocka_unit_test(test_who_never_reads),
		cmocka_unit_test(test_who_goes_unread),
		cmocka_unit_test(test_who_shuts_its_end),
		cmocka_unit_test(test_clients_that_come_and_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

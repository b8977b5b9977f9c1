/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of the server by themselves: totals of users, who is connected to which peer, and the thread that makes memory. Needs no engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memfd.h"
#include "peers.h"
#include "quota.h"
#include "region.h"
#include "server_builder.h"

/* ---- quotas ---- */

static void test_what_is_left(void **state)
{
	static const struct core_usage per_client = { .qps = 10, .pool_bytes = 1ull << 40 }, per_user = { .qps = 15, .pool_bytes = 1ull << 40 };
	struct core_usage none = { 0 }, a = { 0 }, b = { .qps = 3, .pool_bytes = 7 };
	struct quota q = { 0 };
	struct quota_user *u = quota_join(&q, 5);
	assert_ptr_equal(quota_join(&q, 5), u);
	assert_ptr_not_equal(quota_join(&q, 6), u);
	assert_int_equal(quota_clients(&q, 5), 2);
	assert_int_equal(quota_clients(&q, 7), 0);
	assert_int_equal(quota_most(u, &a, &per_client, &per_user).qps, 10);
	quota_update(u, &none, &b);
	assert_int_equal(quota_most(u, &a, &per_client, &per_user).qps, 10); /* 12 are left to the user */
	struct core_usage more = { .qps = 9, .pool_bytes = 1ull << 39 };
	quota_update(u, &b, &more);
	assert_int_equal(quota_most(u, &a, &per_client, &per_user).qps, 6);
	assert_true(quota_most(u, &a, &per_client, &per_user).pool_bytes == 1ull << 39);
	assert_int_equal(quota_most(u, &more, &per_client, &per_user).qps, 10); /* its own count as its own */
	/* more in use than is allowed: nothing is left, and nothing wraps */
	struct core_usage huge = { .qps = 4000000000u, .pool_bytes = UINT64_MAX };
	quota_update(u, &more, &huge);
	assert_int_equal(quota_most(u, &a, &per_client, &per_user).qps, 0);
	assert_int_equal(quota_most(u, &a, &per_client, &per_user).pool_bytes, 0);
	assert_int_equal(quota_most(u, &a, &per_client, &per_user).cqs, 0);
	quota_update(u, &huge, &none);
	quota_leave(&q, u);
	assert_int_equal(quota_clients(&q, 5), 1);
	quota_leave(&q, u);
	assert_int_equal(quota_clients(&q, 5), 0);
	quota_leave(&q, quota_join(&q, 6));
	quota_leave(&q, q.users);
	assert_null(q.users);
}

/* ---- peers ---- */

static void connect_one(struct peers *p, struct peer_holds *h, uint32_t qp, uid_t uid, const struct peer_key *key)
{
	assert_int_equal(peers_take(p, h, qp, uid, key), 0);
	peers_settle(p, h, qp, true);
}

/* known-bugs: N1 */
static void test_peers(void **state)
{
	struct peers p = { 0 };
	struct peer_holds a = { 0 }, b = { 0 };
	struct peer_key x = { .qpn = 1 }, y = { .qpn = 2 };
	uint32_t qpn;
	connect_one(&p, &a, 100, 1, &x);
	connect_one(&p, &a, 101, 1, &x);
	assert_int_equal(peers_take(&p, &b, 100, 2, &x), -EACCES);
	/* moved to another peer: one hold less here, one more there */
	connect_one(&p, &a, 101, 1, &y);
	assert_true(peers_qpn(&a, 101, &qpn) && qpn == 2);
	assert_int_equal(peers_take(&p, &b, 100, 2, &y), -EACCES);
	/* an attempt that failed changes nothing, for a connected QP and for another one */
	assert_int_equal(peers_take(&p, &a, 101, 1, &x), 0);
	peers_settle(&p, &a, 101, false);
	assert_true(peers_qpn(&a, 101, &qpn) && qpn == 2);
	assert_int_equal(peers_take(&p, &a, 102, 1, &y), 0);
	peers_settle(&p, &a, 102, false);
	assert_false(peers_qpn(&a, 102, &qpn));
	/* the same once more, to where it is */
	connect_one(&p, &a, 101, 1, &y);
	peers_release(&p, &a, 101);
	peers_release(&p, &a, 101);
	connect_one(&p, &b, 100, 2, &y);
	assert_int_equal(peers_take(&p, &a, 103, 1, &y), -EACCES);
	peers_release_all(&p, &b);
	connect_one(&p, &a, 103, 1, &y);
	peers_release_all(&p, &a);
	assert_null(p.by_key);
	assert_null(a.by_qp);
	assert_null(b.by_qp);
}

/* As many as one client may have QPs, all to one peer and to different ones. */
static void test_many_peers(void **state)
{
	struct peers p = { 0 };
	struct peer_holds h = { 0 };
	for (uint32_t i = 0; i < 20000; i++) {
		struct peer_key key = { .qpn = i / 2 };
		connect_one(&p, &h, i, 1, &key);
	}
	for (uint32_t i = 0; i < 20000; i += 2)
		peers_release(&p, &h, i);
	struct peer_holds other = { 0 };
	struct peer_key key = { .qpn = 77 };
	assert_int_equal(peers_take(&p, &other, 1, 2, &key), -EACCES);
	peers_release_all(&p, &h);
	assert_null(p.by_key);
}

/* ---- the builder ---- */

struct test_job {
	struct job job;
	struct builder *builder;
	int works, dones;
	unsigned order;
	bool is_unwanted;
	_Atomic bool may_end;
};
static unsigned order;

static bool start(struct job *j)
{
	return !((struct test_job *)j)->is_unwanted;
}

static void work(struct job *j)
{
	struct test_job *t = (struct test_job *)j;
	t->works++;
	while (!t->may_end && !j->is_cancelled)
		usleep(100);
}

static void done(struct job *j)
{
	struct test_job *t = (struct test_job *)j;
	t->order = ++order;
	if (!t->dones++ && t->works == 1 && t->builder) /* once more */
		builder_post(t->builder, j, false);
}

static void await(struct builder *b, struct test_job *t, int dones)
{
	for (unsigned i = 0; t->dones < dones; i++) {
		struct pollfd fd = { .fd = b->event_fd, .events = POLLIN };
		assert_true(i < 1000 && poll(&fd, 1, 20000) == 1);
		builder_on_event(b);
	}
}

static void test_builder(void **state)
{
	struct builder b;
	struct test_job t[6] = { 0 };
	assert_int_equal(builder_start(&b), 0);
	for (unsigned i = 0; i < 6; i++)
		t[i].job = (struct job){ .start = start, .work = work, .done = done };
	t[3].is_unwanted = true;
	for (unsigned i = 0; i < 5; i++)
		builder_post(&b, &t[i].job, false);
	builder_post(&b, &t[5].job, true);
	assert_true(builder_cancel(&b, &t[1].job)); /* still waits */
	assert_false(builder_cancel(&b, &t[0].job)); /* is under way, and ends for it */
	for (unsigned i = 1; i < 6; i++)
		t[i].may_end = true;
	await(&b, &t[4], 1);
	assert_int_equal(t[0].dones, 1);
	assert_int_equal(t[1].works, 0);
	assert_int_equal(t[3].works, 0);
	assert_int_equal(t[0].order, 1);
	assert_int_equal(t[5].order, 2);
	assert_int_equal(t[2].order, 3);
	assert_int_equal(t[4].order, 4);
	/* the last of the queue is cancelled: the queue goes on behind it */
	t[0].may_end = false;
	t[2].builder = &b;
	t[2].works = t[2].dones = t[0].dones = 0;
	builder_post(&b, &t[0].job, false);
	builder_post(&b, &t[1].job, false);
	assert_true(builder_cancel(&b, &t[1].job));
	builder_post(&b, &t[2].job, false);
	t[0].may_end = true;
	await(&b, &t[2], 2); /* it posted itself once more */
	assert_int_equal(t[2].works, 2);
	assert_null(b.current);
	builder_stop(&b);
}

/* Neither kind holds the other up. */
static void test_builder_takes_turns(void **state)
{
	struct builder b;
	struct test_job t[6] = { 0 };
	assert_int_equal(builder_start(&b), 0);
	for (unsigned i = 0; i < 6; i++)
		t[i].job = (struct job){ .work = work, .done = done };
	builder_post(&b, &t[0].job, false);
	for (unsigned i = 1; i < 6; i++) {
		t[i].may_end = true;
		builder_post(&b, &t[i].job, i >= 3);
	}
	order = 0;
	t[0].may_end = true;
	await(&b, &t[5], 1);
	const unsigned expected[6] = { 1, 3, 5, 2, 4, 6 };
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(t[i].order, expected[i]);
	builder_stop(&b);
}

/* ---- regions ---- */

static void test_region_is_called_off(void **state)
{
	struct region_source source = { .node = -1 };
	_Atomic bool is_cancelled = true;
	void *base;
	int fd, next = dup(0);
	close(next);
	assert_int_equal(region_make(&source, 64 << 20, &is_cancelled, &base, &fd), -ECANCELED);
	assert_int_equal(dup(0), next); /* no descriptor stays */
	close(next);
	assert_int_equal(region_make(&source, 4095, NULL, &base, &fd), -EINVAL);
	assert_int_equal(region_make(&source, 0, NULL, &base, &fd), -EINVAL);
	assert_int_equal(region_make(&source, 6 << 20, NULL, &base, &fd), 0);
	memset(base, 1, 6 << 20);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW), F_SEAL_SHRINK | F_SEAL_GROW); /* before anybody has it */
	assert_int_equal(region_keep(base, 6 << 20, fd, NULL), -EPERM);
	assert_int_equal(ctl_memfd_seal(fd), 0);
	assert_int_equal(region_keep(base, 6 << 20, fd, &is_cancelled), -ECANCELED);
	assert_int_equal(region_keep(base, 6 << 20, fd, NULL), 0);
	region_free(base, 6 << 20, fd);
	assert_int_equal(dup(0), next);
	close(next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_left),
		cmocka_unit_test(test_peers),
		cmocka_unit_test(test_many_peers),
		cmocka_unit_test(test_builder),
		cmocka_unit_test(test_builder_takes_turns),
		cmocka_unit_test(test_region_is_called_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

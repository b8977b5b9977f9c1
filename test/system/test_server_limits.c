/* SPDX-License-Identifier: BSD-3-Clause */
/* What one client, one user and all together may have; who may connect to whose peer; and clients of the daemon that end, in whatever way: everything they had is free again within 100 ms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "server_fixture.h"

#define RUN(body) assert_int_equal(side_child(body, NULL), 0)
#define SOMEBODY 54321u
#define SOMEBODY_ELSE 54322u
#define PEER "10.7.0.2"

/* Runs body as that user, in a process that is a client and nothing else. */
struct as_user {
	uid_t uid;
	struct daemon *d;
	void (*body)(struct daemon *d);
};

static void become(void *arg)
{
	const struct as_user *a = arg;
	CHECK(!setgroups(0, NULL) && !setresgid(a->uid, a->uid, a->uid) && !setresuid(a->uid, a->uid, a->uid));
	a->body(a->d);
}

static void as_user(uid_t uid, struct daemon *d, void (*body)(struct daemon *d))
{
	struct as_user a = { uid, d, body };
	CHECK(!side_child(become, &a));
}

/* ---- quotas ---- */

static void want_all(struct raw *r, uint32_t pd, uint32_t cq, int quota_of_qps)
{
	struct abi_req qp = { .type = ABI_CREATE_QP, .create_qp = { .pd = pd, .send_cq = cq, .recv_cq = cq, .cap = { 16, 16, 1, 1, 0 } } };
	struct abi_rep rep;
	int made = 0;
	while (!raw_call(r, &qp, &rep))
		made++;
	CHECK(rep.status == -EDQUOT && strstr(rep.text, "QPs") && made == quota_of_qps);
}

static void use_up(void *arg)
{
	struct daemon d;
	struct raw r, other;
	struct abi_rep rep;
	daemon_prepare(&d);
	d.config.client.qps = 10;
	d.config.uid.qps = 15;
	d.config.client.pool_bytes = 4 << 20;
	d.config.uid.pool_bytes = 6 << 20;
	d.config.client.channels = 0;
	daemon_run(&d);
	raw_open(&r, d.path);
	raw_open(&other, d.path);
	uint32_t pd = raw_pd(&r), cq = raw_cq(&r, 16), pd2 = raw_pd(&other), cq2 = raw_cq(&other, 16);
	want_all(&r, pd, cq, 10);
	want_all(&other, pd2, cq2, 5);
	CHECK(raw_call(&r, &(struct abi_req){ .type = ABI_CREATE_CHANNEL }, &rep) == -EDQUOT);
	struct abi_req memory = { .type = ABI_ALLOC_MEMORY, .alloc_memory.bytes = 4 << 20 };
	CHECK(!raw_call(&r, &memory, &rep));
	CHECK(raw_call(&other, &memory, &rep) == -EDQUOT && strstr(rep.text, "pool"));
	memory.alloc_memory.bytes = UINT64_MAX;
	CHECK(raw_call(&other, &memory, &rep) < 0);
	CHECK(server_count(d.server, SERVER_REFUSED_QUOTA) >= 4);
	/* what one gives back, the other may have */
	raw_close(&r);
	daemon_await_clients(&d, 1);
	memory.alloc_memory.bytes = 4 << 20;
	CHECK(!raw_call(&other, &memory, &rep));
	want_all(&other, pd2, cq2, 5);
	raw_close(&other);
	daemon_close(&d);
}

/* known-bugs: A4 */
static void test_quotas(void **state)
{
	RUN(use_up);
}

/* Ever larger pieces, each given back: the quota of pool memory is never exceeded, but regions stay. */
static void grow_without_end(void *arg)
{
	struct daemon d;
	struct raw r, other;
	struct abi_rep rep = { 0 };
	uint64_t bytes = 0;
	daemon_prepare(&d);
	d.config.client.pool_bytes = 64 << 20;
	d.config.client.ring_bytes = 4 << 20;
	d.config.uid = d.config.client;
	daemon_run(&d);
	raw_open(&other, d.path);
	raw_open(&r, d.path);
	for (uint64_t want = 30 << 20; want <= 64 << 20; want += 4 << 20) {
		struct abi_req req = { .type = ABI_ALLOC_MEMORY, .alloc_memory.bytes = want };
		if (raw_call(&r, &req, &rep))
			break;
		CHECK(!raw_destroy(&r, ABI_FREE_MEMORY, rep.handle));
	}
	CHECK(rep.status == -EDQUOT && strstr(rep.text, "regions"));
	for (uint32_t i = 1; i < r.arenas; i++)
		bytes += r.arena[i].bytes;
	printf("# %llu MiB of regions where 68 may be used\n", (unsigned long long)bytes >> 20);
	CHECK(bytes < (68ull + 68 + 64) << 20);
	CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	raw_close(&r);
	daemon_await_clients(&d, 1); /* with it went what its user had */
	CHECK(!raw_call(&other, &(struct abi_req){ .type = ABI_ALLOC_MEMORY, .alloc_memory.bytes = 30 << 20 }, &rep));
	raw_close(&other);
	daemon_close(&d);
}

static void test_regions_are_bounded(void **state)
{
	RUN(grow_without_end);
}

/* ---- how many ---- */

static void open_three(struct daemon *d)
{
	struct raw r[3];
	for (int i = 0; i < 2; i++)
		raw_open(&r[i], d->path);
	raw_connect(&r[2], d->path);
	raw_expect_bye(&r[2], CTL_BYE_LIMIT, "user 54321 has 2 clients");
	raw_close(&r[0]);
}

struct crowd {
	uint32_t max_clients, max_clients_per_uid;
	const char *text;
};

static void crowd(void *arg)
{
	const struct crowd *limits = arg;
	struct daemon d;
	static struct raw r[1000];
	struct raw good;
	struct abi_rep rep;
	daemon_prepare(&d);
	d.config.max_clients = limits->max_clients;
	d.config.max_clients_per_uid = limits->max_clients_per_uid;
	daemon_run(&d);
	unsigned fds = count_fds();
	raw_open(&good, d.path);
	for (unsigned i = 0; i < 1000; i++)
		raw_connect(&r[i], d.path);
	/* who may be an operator comes in beyond, as long as it does not want to be a client */
	const unsigned beyond = getuid() ? 0 : 8;
	daemon_await(&d, SERVER_REFUSED_LIMIT, 501 - beyond);
	for (unsigned i = 499; i < 499 + beyond; i++)
		raw_say_hello(&r[i]);
	daemon_await(&d, SERVER_REFUSED_LIMIT, 501);
	CHECK(server_count(d.server, SERVER_ACCEPTED) == 500 + beyond && server_count(d.server, SERVER_REFUSED_LIMIT) == 501);
	CHECK(!raw_call(&good, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	for (unsigned i = 499; i < 1000; i++)
		raw_expect_bye(&r[i], CTL_BYE_LIMIT, limits->text);
	for (unsigned i = 0; i < 1000; i++)
		raw_close(&r[i]);
	raw_close(&good);
	printf("# 500 clients were gone after %.1f ms\n", daemon_await_empty(&d));
	CHECK(count_fds() == fds);
	daemon_close(&d);
}

static void test_thousand_connections(void **state)
{
	struct crowd of_user = { 600, 500, "user 0 has 500 clients" }, of_daemon = { 500, 600, "the daemon serves 500 clients" };
	if (getuid())
		of_user.text = "has 500 clients";
	assert_int_equal(side_child(crowd, &of_user), 0);
	assert_int_equal(side_child(crowd, &of_daemon), 0);
}

static void limit_users(void *arg)
{
	struct daemon d;
	struct raw r;
	daemon_prepare(&d);
	d.config.max_clients_per_uid = 2;
	daemon_run(&d);
	as_user(SOMEBODY, &d, open_three);
	raw_open(&r, d.path); /* another user is not concerned */
	raw_close(&r);
	daemon_close(&d);
}

static void test_limit_of_a_user(void **state)
{
	if (getuid())
		skip();
	RUN(limit_users);
}

/* No descriptor left: said to the client, and the loop does not spin on a connection that it cannot take. */
static void starve(void *arg)
{
	struct daemon d;
	struct raw r, good;
	struct rlimit limit;
	struct abi_rep rep;
	daemon_prepare(&d);
	daemon_run(&d);
	raw_open(&good, d.path);
	raw_connect(&r, d.path); /* this end needs one too, so it is there before */
	daemon_await(&d, SERVER_ACCEPTED, 2);
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	rlim_t had = limit.rlim_cur;
	int probe = dup(0);
	limit.rlim_cur = (rlim_t)probe; /* the one that connect takes is the last */
	close(probe);
	CHECK(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){ limit.rlim_cur + 1, limit.rlim_max }));
	struct raw starved;
	raw_connect(&starved, d.path);
	raw_expect_bye(&starved, CTL_BYE_LIMIT, "descriptors");
	CHECK(raw_call(&good, &(struct abi_req){ .type = ABI_CREATE_CHANNEL }, &rep) < 0); /* only this request */
	raw_say_hello(&r);
	raw_expect_bye(&r, CTL_BYE_FAILED, "");
	limit.rlim_cur = had;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	CHECK(!raw_call(&good, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	raw_close(&starved);
	raw_close(&r);
	raw_close(&good);
	daemon_close(&d);
}

static void test_no_descriptors(void **state)
{
	RUN(starve);
}

/* ---- peers ---- */

static void connect_to_taken(struct daemon *d)
{
	struct raw r;
	struct abi_rep rep;
	struct abi_qp_attr reset = { .state = ABI_QP_RESET }, rts = { .state = ABI_QP_RTS, .timeout = 14 }, sqd = { .state = ABI_QP_SQD };
	raw_open(&r, d->path);
	uint32_t qp = raw_qp(&r, raw_pd(&r), raw_cq(&r, 16));
	CHECK(raw_connect_qp(&r, qp, PEER, 0x1234, &rep) == -EACCES && strstr(rep.text, "another user") && strstr(rep.text, PEER));
	CHECK(!raw_modify(&r, qp, ABI_QP_STATE, &reset, &rep));
	CHECK(!raw_connect_qp(&r, qp, "10.7.0.3", 0x1234, &rep)); /* the same number elsewhere */
	/* nor by way of SQD, which lets the path be changed */
	CHECK(!raw_modify(&r, qp, ABI_QP_STATE | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY | ABI_QP_SQ_PSN | ABI_QP_MAX_QP_RD_ATOMIC, &rts, &rep));
	CHECK(!raw_modify(&r, qp, ABI_QP_STATE, &sqd, &rep));
	sqd.av = (struct abi_av){ .dgid = { [10] = 0xff, 0xff, 10, 7, 0, 2 }, .hop_limit = 64 };
	CHECK(raw_modify(&r, qp, ABI_QP_STATE | ABI_QP_AV, &sqd, &rep) == -EACCES);
	sqd.av.dgid[15] = 4;
	CHECK(!raw_modify(&r, qp, ABI_QP_STATE | ABI_QP_AV, &sqd, &rep));
	CHECK(!raw_modify(&r, qp, ABI_QP_STATE, &reset, &rep));
	CHECK(!raw_connect_qp(&r, qp, PEER, 0x1235, &rep)); /* another number */
	raw_close(&r);
}

static void connect_to_free(struct daemon *d)
{
	struct raw r;
	struct abi_rep rep;
	raw_open(&r, d->path);
	uint32_t qp = raw_qp(&r, raw_pd(&r), raw_cq(&r, 16));
	CHECK(!raw_connect_qp(&r, qp, PEER, 0x1234, &rep));
	CHECK(!raw_destroy(&r, ABI_DESTROY_QP, qp));
	raw_close(&r);
}

static void share_peers(void *arg)
{
	struct daemon d;
	struct raw a, b;
	struct abi_rep rep;
	struct abi_qp_attr reset = { .state = ABI_QP_RESET };
	daemon_prepare(&d);
	daemon_run(&d);
	raw_open(&a, d.path);
	raw_open(&b, d.path);
	uint32_t pd = raw_pd(&a), cq = raw_cq(&a, 16), first = raw_qp(&a, pd, cq), second = raw_qp(&a, pd, cq), third = raw_qp(&b, raw_pd(&b), raw_cq(&b, 16));
	CHECK(!raw_connect_qp(&a, first, PEER, 0x1234, &rep));
	as_user(SOMEBODY, &d, connect_to_taken);
	CHECK(server_count(d.server, SERVER_REFUSED_PEER) == 2);
	/* one user's own affair */
	CHECK(!raw_connect_qp(&a, second, PEER, 0x1234, &rep));
	CHECK(!raw_connect_qp(&b, third, PEER, 0x1234, &rep));
	/* it is free when the last of them has left: by RESET, by its end, by its client's end */
	CHECK(!raw_modify(&a, first, ABI_QP_STATE, &reset, &rep));
	CHECK(!raw_destroy(&a, ABI_DESTROY_QP, second));
	as_user(SOMEBODY, &d, connect_to_taken);
	raw_close(&b);
	daemon_await_clients(&d, 1);
	as_user(SOMEBODY_ELSE, &d, connect_to_free);
	CHECK(!raw_connect_qp(&a, first, PEER, 0x1234, &rep));
	CHECK(server_count(d.server, SERVER_REFUSED_PEER) == 4);
	/* a failed attempt holds nothing */
	struct raw c;
	raw_open(&c, d.path);
	CHECK(raw_connect_qp(&c, 77, PEER, 0x4321, &rep) == -ENOENT);
	raw_close(&c);
	raw_close(&a);
	daemon_close(&d);
}

/* known-bugs: N1 */
static void test_peer_of_another_user(void **state)
{
	if (getuid())
		skip();
	RUN(share_peers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quotas),
		cmocka_unit_test(test_regions_are_bounded),
		cmocka_unit_test(test_thousand_connections),
		cmocka_unit_test(test_limit_of_a_user),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_peer_of_another_user),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

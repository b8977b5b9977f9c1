/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of one daemon in multicast groups: each gets its own copies and nobody else's; limits, requests that no library makes, and what is left of a client that is killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "multicast.h"
#include "server_fixture.h"
#include "talker.h"

#define RUN(body) assert_int_equal(side_child(body, NULL), 0)
#define CLIENTS 4u

static const char *const groups[] = { "239.1.2.3", "ff15::1:2:3" };

static struct talker peer; /* at the other end of the wire, which it also empties */

static void begin(struct daemon *d, const char *keys, char device[80])
{
	char other[160];
	daemon_prepare_with(d, keys);
	snprintf(device, 80, "unix:%s", d->path);
	snprintf(other, sizeof(other), "embedded:net_ring,link=server,side=1,ip=10.7.0.2/24,ip=fd07::2/64%s", strstr(keys, ",cores=") ? strstr(keys, ",cores=") : "");
	talker_open(&peer, other, false);
}

static void end(struct daemon *d)
{
	daemon_close(d);
	talker_close(&peer);
}

static unsigned count_groups(const struct daemon *d)
{
	struct multicast_stats s;
	multicast_stats(engine_multicast(d->engine), &s);
	CHECK(!s.refused);
	return s.groups;
}

static void talk(struct talker *t, const char *group, unsigned members)
{
	char text[32];
	for (unsigned from = 0; from < CLIENTS; from++) {
		struct uroce_ah *ah = talker_ah(&t[from], group);
		snprintf(text, sizeof(text), "from client %u", from);
		talker_send(&t[from], ah, UROCE_QPN_MULTICAST, text);
		CHECK(talker_hear(&peer, text) == t[from].qpn);
		for (unsigned i = 0; i < CLIENTS; i++)
			if (members >> i & 1 && !(i == 0 && from == 0)) /* client 0 does not want its own */
				CHECK(talker_hear(&t[i], text) == t[from].qpn);
		CHECK(!uroce_ah_destroy(ah));
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		CHECK(!talker_listen(&t[i], "", i ? 0 : 50));
}

static void talk_in_groups(struct daemon *d, const char *device)
{
	static struct talker t[CLIENTS];
	for (unsigned i = 0; i < CLIENTS; i++)
		talker_open(&t[i], device, i == 0);
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; i < CLIENTS - 1; i++)
			CHECK(!talker_attach(&t[i], groups[k]) && !talker_attach(&t[i], groups[k]));
		CHECK(!talker_attach(&peer, groups[k]));
		CHECK(count_groups(d) == 1);
		talk(t, groups[k], 7);
		CHECK(!talker_detach(&t[1], groups[k]));
		CHECK(talker_detach(&t[1], groups[k]) == -EINVAL);
		talk(t, groups[k], 5);
		CHECK(!talker_detach(&t[0], groups[k]) && !talker_detach(&t[2], groups[k]));
		CHECK(count_groups(d) == 0);
		talk(t, groups[k], 0);
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		talker_close(&t[i]);
}

static void serve_groups(void *arg)
{
	static const char *const keys[] = { ",ip=fd07::1/64", ",ip=fd07::1/64,cores=2,idle=sleep" };
	for (unsigned i = 0; i < 2; i++) {
		struct daemon d;
		char device[80];
		begin(&d, keys[i], device);
		daemon_run(&d);
		CHECK(!d.err);
		talk_in_groups(&d, device);
		daemon_await_empty(&d);
		char *report = daemon_report(&d);
		CHECK(strstr(report, "group_copies ") && strstr(report, "multicast groups 0 refused 0"));
		free(report);
		end(&d);
	}
}

/* known-bugs: 30 */
static void test_clients_of_one_daemon(void **state)
{
	RUN(serve_groups);
}

/* ---- limits and hostile requests ---- */

static uint32_t make_ud(struct raw *r)
{
	struct abi_rep rep;
	uint32_t pd = raw_pd(r), cq = raw_cq(r, 16);
	struct abi_req req = { .type = ABI_CREATE_QP, .create_qp = { .pd = pd, .send_cq = cq, .recv_cq = cq, .service = ABI_SERVICE_UD, .cap = { 16, 16, 1, 1, 0 } } };
	CHECK(!raw_call(r, &req, &rep));
	return rep.handle;
}

static int ask(struct raw *r, enum abi_msg type, uint32_t qp, const char *group, struct abi_rep *rep)
{
	struct abi_req req = { .type = type, .group.qp = qp };
	struct uroce_gid g = talker_gid(group);
	memcpy(req.group.gid, g.raw, 16);
	return raw_call(r, &req, rep);
}

static void ask_too_much(void *arg)
{
	struct daemon d;
	struct raw r, other;
	struct abi_rep rep;
	char device[80], group[32];
	begin(&d, "", device);
	d.config.client.attachments = 3;
	d.config.uid.attachments = 4;
	daemon_run(&d);
	raw_open(&r, d.path);
	raw_open(&other, d.path);
	uint32_t qp = make_ud(&r), qp2 = make_ud(&other), rc = raw_qp(&r, raw_pd(&r), raw_cq(&r, 16));
	for (unsigned i = 0; i < 4; i++) {
		snprintf(group, sizeof(group), "239.0.0.%u", i);
		CHECK(ask(&r, ABI_ATTACH_MULTICAST, qp, group, &rep) == (i < 3 ? 0 : -EDQUOT));
	}
	CHECK(strstr(rep.text, "multicast"));
	CHECK(!ask(&other, ABI_ATTACH_MULTICAST, qp2, "239.0.0.9", &rep));
	CHECK(ask(&other, ABI_ATTACH_MULTICAST, qp2, "239.0.0.8", &rep) == -EDQUOT); /* the user's */
	CHECK(server_count(d.server, SERVER_REFUSED_QUOTA) >= 2);
	CHECK(count_groups(&d) == 4);
	/* handles of others, of other services, and groups that are none */
	CHECK(ask(&other, ABI_ATTACH_MULTICAST, 0xffffffff, "239.0.0.1", &rep) == -ENOENT);
	CHECK(ask(&r, ABI_ATTACH_MULTICAST, rc, "239.0.0.1", &rep) == -EINVAL);
	CHECK(ask(&r, ABI_DETACH_MULTICAST, qp, "10.7.0.1", &rep) == -EINVAL);
	CHECK(ask(&r, ABI_DETACH_MULTICAST, qp, "239.0.0.9", &rep) == -EINVAL);
	CHECK(count_groups(&d) == 4);
	/* what one gives back, the other may have */
	CHECK(!raw_destroy(&r, ABI_DESTROY_QP, qp));
	CHECK(count_groups(&d) == 1);
	CHECK(!ask(&other, ABI_ATTACH_MULTICAST, qp2, "239.0.0.8", &rep));
	raw_close(&r);
	raw_close(&other);
	daemon_await_clients(&d, 0);
	CHECK(count_groups(&d) == 0);
	end(&d);
}

static void test_limits(void **state)
{
	RUN(ask_too_much);
}

/* By default, one client has a quarter of the places of a group, and one user, with as many clients as it likes, leaves some. */
static void fill_a_group(void *arg)
{
	struct daemon d;
	struct raw r[CLIENTS];
	struct abi_rep rep;
	char device[80];
	unsigned taken = 0;
	begin(&d, "", device);
	daemon_run(&d);
	for (unsigned i = 0; i < CLIENTS; i++) {
		int rc = 0;
		raw_open(&r[i], d.path);
		for (unsigned n = 0; !rc; n++) {
			rc = ask(&r[i], ABI_ATTACH_MULTICAST, make_ud(&r[i]), groups[0], &rep);
			taken += !rc;
			CHECK(!rc || (rc == -EDQUOT && (n == 60 || i == CLIENTS - 1)));
		}
	}
	CHECK(taken == d.config.uid.attachments && taken < 240);
	CHECK(count_groups(&d) == 1);
	for (unsigned i = 0; i < CLIENTS; i++)
		raw_close(&r[i]);
	daemon_await_clients(&d, 0);
	end(&d);
}

static void test_share_of_a_group(void **state)
{
	RUN(fill_a_group);
}

/* Groups come and go as fast as a client can ask, many more than the engine holds at a time; another one is not disturbed. */
static void churn(void *arg)
{
	static struct talker t;
	struct daemon d;
	struct raw r;
	struct abi_rep rep;
	char device[80], group[32];
	begin(&d, "", device);
	daemon_run(&d);
	talker_open(&t, device, false);
	CHECK(!talker_attach(&t, groups[0]));
	struct uroce_ah *ah = talker_ah(&t, groups[0]);
	raw_open(&r, d.path);
	uint32_t qp = make_ud(&r);
	for (unsigned i = 0; i < 10000; i++) {
		snprintf(group, sizeof(group), "239.5.%u.%u", i >> 8 & 255, i & 255);
		CHECK(!ask(&r, ABI_ATTACH_MULTICAST, qp, group, &rep));
		CHECK(!ask(&r, ABI_DETACH_MULTICAST, qp, group, &rep));
		if (i % 1000)
			continue;
		talker_send(&t, ah, UROCE_QPN_MULTICAST, "still here");
		talker_hear(&t, "still here");
	}
	CHECK(count_groups(&d) == 1);
	raw_close(&r);
	talker_close(&t);
	daemon_await_empty(&d);
	end(&d);
}

static void test_churn(void **state)
{
	RUN(churn);
}

/* ---- kill -9 ---- */

static void be_in_groups(const char *path, int fd)
{
	struct raw r;
	struct abi_rep rep;
	char group[32];
	raw_open(&r, path);
	for (unsigned q = 0; q < 4; q++) {
		uint32_t qp = make_ud(&r);
		for (unsigned i = 0; i < 50; i++) {
			snprintf(group, sizeof(group), "239.6.0.%u", i);
			CHECK(!ask(&r, ABI_ATTACH_MULTICAST, qp, group, &rep));
		}
	}
	client_stay(fd);
}

static void kill_members(void *arg)
{
	static struct talker t;
	struct daemon d;
	char device[80];
	begin(&d, "", device);
	d.config.client.attachments = d.config.uid.attachments = 256;
	daemon_run(&d);
	talker_open(&t, device, false);
	CHECK(!talker_attach(&t, "239.6.0.7"));
	struct uroce_ah *ah = talker_ah(&t, "239.6.0.7");
	for (unsigned i = 0; i < 5; i++) {
		int fd;
		pid_t pid = client_fork(be_in_groups, d.path, &fd);
		CHECK(count_groups(&d) == 50);
		talker_send(&t, ah, UROCE_QPN_MULTICAST, "to the dying");
		kill(pid, SIGKILL);
		talker_send(&t, ah, UROCE_QPN_MULTICAST, "to the dead");
		CHECK(waitpid(pid, NULL, 0) == pid);
		daemon_await_clients(&d, 1);
		close(fd);
		CHECK(count_groups(&d) == 1);
		talker_hear(&t, "to the dying");
		talker_hear(&t, "to the dead");
	}
	talker_close(&t);
	daemon_await_empty(&d);
	end(&d);
}

static void test_kill(void **state)
{
	RUN(kill_members);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clients_of_one_daemon),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_share_of_a_group),
		cmocka_unit_test(test_churn),
		cmocka_unit_test(test_kill),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that end, however they do: all that they had is free again within 100 ms, whoever still holds their socket, and the others are served meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "server_fixture.h"

#define RUN(body) assert_int_equal(side_child(body, NULL), 0)
#define LIMIT_MS 100.0
#define MANY_QPS 3000u
#define ATTEMPTS 3u

/* From the kill until nothing is left, of `left` clients that stay. */
static double kill_and_await(struct daemon *d, pid_t pid, unsigned left)
{
	double start = now_ms();
	kill(pid, SIGKILL);
	daemon_await_clients(d, left);
	double took = now_ms() - start;
	CHECK(waitpid(pid, NULL, 0) == pid);
	return took;
}

/* The best of a few: a busy machine may hold up the test itself, or the end of the process. */
static void check_kill(struct daemon *d, const char *name, void (*body)(const char *path, int fd))
{
	double best = 1e9;
	for (unsigned i = 0; i < ATTEMPTS && best > LIMIT_MS; i++) {
		int fd;
		pid_t pid = client_fork(body, d->path, &fd);
		double took = kill_and_await(d, pid, 1);
		close(fd);
		best = took < best ? took : best;
	}
	printf("# %s: all was free after %.1f ms\n", name, best);
	CHECK(best <= LIMIT_MS);
}

/* ---- kinds of clients ---- */

static void have_many_qps(const char *path, int fd)
{
	struct raw r;
	struct abi_rep rep;
	raw_open(&r, path);
	uint32_t pd = raw_pd(&r), cq = raw_cq(&r, 1024);
	for (uint32_t i = 0; i < MANY_QPS; i++)
		CHECK(!raw_connect_qp(&r, raw_qp(&r, pd, cq), "10.7.0.1", 2 + i, &rep));
	client_stay(fd);
}

/* Its own child has the socket too, and lives on. */
static void leave_socket_to_child(const char *path, int fd)
{
	struct raw r;
	raw_open(&r, path);
	raw_qp(&r, raw_pd(&r), raw_cq(&r, 16));
	if (!fork()) {
		alarm(20);
		for (;;)
			pause();
	}
	client_stay(fd);
}

static void want_memory(const char *path, int fd)
{
	struct raw r;
	struct ctl_message m = { .request = { .type = ABI_ALLOC_MEMORY, .alloc_memory.bytes = 512u << 20 } };
	raw_open(&r, path);
	raw_qp(&r, raw_pd(&r), raw_cq(&r, 16));
	raw_say(&r, CTL_REQUEST, &m);
	client_stay(fd);
}

static void have_memory(const char *path, int fd)
{
	struct raw r;
	struct abi_rep rep;
	raw_open(&r, path);
	CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_ALLOC_MEMORY, .alloc_memory.bytes = 64 << 20 }, &rep));
	client_stay(fd);
}

/* All that a client does, again and again. */
static void live(const char *path, int fd)
{
	struct raw r;
	struct abi_rep rep;
	CHECK(write(fd, "", 1) == 1);
	for (;;) {
		raw_open(&r, path);
		uint32_t pd = raw_pd(&r), cq = raw_cq(&r, 64), qp = raw_qp(&r, pd, cq);
		CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_CREATE_CHANNEL }, &rep));
		CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_ALLOC_MEMORY, .alloc_memory.bytes = 3 << 20 }, &rep));
		CHECK(!raw_connect_qp(&r, qp, "10.7.0.1", 99, &rep));
		CHECK(!raw_destroy(&r, ABI_DESTROY_QP, qp));
		raw_close(&r);
	}
}

/* The second ring is 64 MiB, in regions of its own; whether it is used already or not. */
static void resize_halfway(const char *path, int fd)
{
	struct raw r;
	struct abi_rep rep;
	raw_open(&r, path);
	uint32_t cq = raw_cq(&r, 16);
	raw_qp(&r, raw_pd(&r), cq);
	CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_MODIFY_CQ, .modify_cq = { .cq = cq, .mask = ABI_CQ_ENTRIES, .entries = 1 << 20 } }, &rep));
	client_stay(fd);
}

static void resize_all_but_moved(const char *path, int fd)
{
	struct raw r;
	struct abi_rep rep;
	raw_open(&r, path);
	uint32_t cq = raw_cq(&r, 1 << 19);
	raw_qp(&r, raw_pd(&r), cq);
	CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_MODIFY_CQ, .modify_cq = { .cq = cq, .mask = ABI_CQ_ENTRIES, .entries = 16 } }, &rep));
	CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_MODIFY_CQ, .modify_cq = { .cq = cq, .mask = ABI_CQ_SWITCH } }, &rep));
	client_stay(fd);
}

/* ---- tests ---- */

static void kill_each_kind(void *arg)
{
	static const struct {
		const char *name;
		void (*body)(const char *path, int fd);
	} kinds[] = {
		{ "kill -9 of a client with 3,000 QPs", have_many_qps },
		{ "kill -9 of a client whose child keeps its socket", leave_socket_to_child },
		{ "kill -9 while 512 MiB are made", want_memory },
		{ "kill -9 of a client with 64 MiB", have_memory },
		{ "kill -9 halfway in the resize of a CQ", resize_halfway },
		{ "kill -9 after the resize of a CQ, before it has moved", resize_all_but_moved },
	};
	struct daemon d;
	struct raw witness;
	struct abi_rep rep;
	daemon_prepare(&d);
	daemon_run(&d);
	raw_open(&witness, d.path);
	unsigned fds = count_fds();
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		check_kill(&d, kinds[i].name, kinds[i].body);
		CHECK(count_fds() == fds);
		CHECK(!raw_call(&witness, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	}
	CHECK(server_count(d.server, SERVER_ENDED_DEATH) >= 1); /* the one whose socket stayed open */
	raw_close(&witness);
	daemon_await_empty(&d);
	daemon_close(&d);
}

static void test_kill(void **state)
{
	RUN(kill_each_kind);
}

/* The end of a client with many QPs, while another one asks without pause: how long a call takes then. */
static void kill_beside_others(void *arg)
{
	struct daemon d;
	struct raw witness;
	struct abi_rep rep;
	int fd;
	double worst = 0;
	daemon_prepare(&d);
	daemon_run(&d);
	raw_open(&witness, d.path);
	pid_t pid = client_fork(have_many_qps, d.path, &fd);
	kill(pid, SIGKILL);
	for (double end = now_ms() + LIMIT_MS; now_ms() < end;) {
		double from = now_ms();
		CHECK(!raw_call(&witness, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
		worst = now_ms() - from > worst ? now_ms() - from : worst;
	}
	daemon_await_clients(&d, 1);
	CHECK(waitpid(pid, NULL, 0) == pid);
	close(fd);
	printf("# another client's calls took at most %.2f ms meanwhile\n", worst);
	CHECK(worst < LIMIT_MS);
	raw_close(&witness);
	daemon_close(&d);
}

static void test_end_holds_nobody_up(void **state)
{
	RUN(kill_beside_others);
}

static void kill_at_random(void *arg)
{
	enum { CLIENTS = 8, KILLS = 200 };
	struct daemon d;
	pid_t pid[CLIENTS];
	int fd[CLIENTS];
	uint32_t random = 12345;
	daemon_prepare(&d);
	daemon_run(&d);
	unsigned fds = count_fds();
	char *before = daemon_report(&d);
	for (unsigned i = 0; i < CLIENTS; i++)
		pid[i] = client_fork(live, d.path, &fd[i]);
	for (unsigned i = 0; i < KILLS; i++) {
		random = random * 1664525 + 1013904223;
		unsigned k = (random >> 16) % CLIENTS;
		usleep(random % 5000);
		kill(pid[k], SIGKILL);
		CHECK(waitpid(pid[k], NULL, 0) == pid[k]);
		close(fd[k]);
		pid[k] = client_fork(live, d.path, &fd[k]);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		kill(pid[i], SIGKILL);
		CHECK(waitpid(pid[i], NULL, 0) == pid[i]);
		close(fd[i]);
	}
	double took = daemon_await_empty(&d);
	printf("# %u clients had been there; the last %u were gone %.1f ms after their death\n", (unsigned)server_count(d.server, SERVER_ACCEPTED), CLIENTS, took);
	CHECK(took < 1000); /* eight at once, and what their processes take to end */
	CHECK(count_fds() == fds);
	CHECK(!server_count(d.server, SERVER_ENDED_PROTOCOL) && !server_count(d.server, SERVER_ENDED_FAILED) && !server_count(d.server, SERVER_ENDED_SILENT));
	char *after = daemon_report(&d);
	const char *mbufs = strstr(before, "mbufs ");
	CHECK(mbufs && !strncmp(mbufs, strstr(after, "mbufs "), strcspn(mbufs, "\n")));
	free(before);
	free(after);
	daemon_close(&d);
}

static void test_kill_at_random(void **state)
{
	RUN(kill_at_random);
}

/* Who has only connected has nothing, so nothing but the end itself wakes the loop: the daemon must not wait for more. */
static void stop_with_mute_ones(void *arg)
{
	struct daemon d;
	struct raw r[3];
	daemon_prepare(&d);
	daemon_run(&d);
	for (unsigned i = 0; i < 3; i++)
		raw_connect(&r[i], d.path);
	daemon_await(&d, SERVER_ACCEPTED, 3);
	double start = now_ms();
	daemon_close(&d);
	CHECK(now_ms() - start < 20000);
	for (unsigned i = 0; i < 3; i++) {
		raw_expect_bye(&r[i], CTL_BYE_SHUTDOWN, "the test is over");
		raw_close(&r[i]);
	}
}

static void test_stop_with_mute_ones(void **state)
{
	RUN(stop_with_mute_ones);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_end_holds_nobody_up),
		cmocka_unit_test(test_kill_at_random),
		cmocka_unit_test(test_stop_with_mute_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon and clients that behave: the dialogue, requests, data between two programs, reports, and the daemon's start and end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "server_fixture.h"

#define RUN(body) assert_int_equal(side_child(body, NULL), 0)

/* ---- the dialogue ---- */

static bool is_eventfd(int fd)
{
	eventfd_t rung;
	return !eventfd_write(fd, 1) && !eventfd_read(fd, &rung) && rung == 1;
}

/* What a program finds that sends into it is that it cannot. */
static bool is_reading_end(int fd)
{
	int type;
	socklen_t len = sizeof(type);
	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_SEQPACKET && send(fd, "", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE;
}

/* Nobody but the daemon can write there, whatever a client does with the descriptor. */
static void check_life(const struct raw *r)
{
	char path[64];
	CHECK(r->life->word && !(r->life->word & CTL_LIFE_DEAD));
	CHECK(mmap(NULL, CTL_LIFE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, r->life_fd, 0) == MAP_FAILED && errno == EPERM);
	CHECK(mprotect((void *)(uintptr_t)r->life, CTL_LIFE_BYTES, PROT_READ | PROT_WRITE) && errno == EACCES);
	CHECK(ftruncate(r->life_fd, 0) && errno == EPERM);
	CHECK(fallocate(r->life_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, CTL_LIFE_BYTES) && errno == EPERM);
	CHECK(pwrite(r->life_fd, "", 1, 0) < 0 && errno == EPERM);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->life_fd);
	int again = open(path, O_RDWR | O_CLOEXEC);
	CHECK(again < 0 || mmap(NULL, CTL_LIFE_BYTES, PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED);
	if (again >= 0)
		close(again);
}

static void hold_dialogue(void *arg)
{
	struct daemon d;
	struct raw r;
	struct abi_rep rep;
	daemon_prepare(&d);
	daemon_run(&d);
	CHECK(!d.err);
	unsigned fds = count_fds();
	raw_open(&r, d.path);
	CHECK(r.welcome.version == CTL_VERSION_MAX && !r.welcome.features && r.welcome.core < engine_cores(d.engine));
	check_life(&r);
	CHECK(is_eventfd(r.wake_fd) && is_reading_end(r.async_fd));
	CHECK(r.arena[0].bytes >= 4096 + sizeof(struct abi_doorbells));
	CHECK(!((struct abi_engine_page *)r.arena[0].base)->dead);
	CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	CHECK(rep.device.mode == 2);
	raw_close(&r);
	daemon_await(&d, SERVER_ENDED_BYE, 1);
	daemon_await_empty(&d);
	CHECK(count_fds() == fds);
	daemon_close(&d);
}

static void test_dialogue(void **state)
{
	RUN(hold_dialogue);
}

/* ---- requests ---- */

/* Beyond the text of a refusal, and in what a reply does not use, there is nothing of the daemon's memory. */
static void check_clean(const struct abi_rep *rep, size_t used)
{
	const uint8_t *bytes = (const uint8_t *)rep;
	for (size_t i = used; i < sizeof(*rep); i++)
		CHECK(!bytes[i]);
}

static void ask(void *arg)
{
	struct daemon d;
	struct raw r, other;
	struct abi_rep rep;
	daemon_prepare(&d);
	daemon_run(&d);
	raw_open(&r, d.path);
	raw_open(&other, d.path);
	uint32_t pd = raw_pd(&r), second = raw_pd(&r), cq = raw_cq(&r, 64), qp = raw_qp(&r, pd, cq);
	/* a client's handles are its own: `second` is nobody's there, nor are cq and qp */
	CHECK(raw_pd(&other) == pd);
	CHECK(raw_destroy(&other, ABI_DESTROY_PD, second) == -ENOENT && raw_destroy(&other, ABI_DESTROY_CQ, cq) == -ENOENT);
	CHECK(raw_destroy(&other, ABI_DESTROY_QP, qp) == -ENOENT && raw_destroy(&other, ABI_QUERY_QP, qp) == -ENOENT);
	struct abi_req alien = { .type = ABI_CREATE_QP, .create_qp = { .pd = pd, .send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 } } };
	CHECK(raw_call(&other, &alien, &rep) == -ENOENT);
	check_clean(&rep, offsetof(struct abi_rep, text) + strlen(rep.text));
	/* a channel comes with its reading end, whose number here is nobody's business */
	CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_CREATE_CHANNEL }, &rep));
	CHECK(rep.channel.fd == -1 && is_reading_end(r.channel_fd));
	check_clean(&rep, offsetof(struct abi_rep, channel) + sizeof(rep.channel));
	CHECK(!raw_destroy(&r, ABI_DESTROY_CHANNEL, rep.handle));
	struct pollfd hup = { .fd = r.channel_fd };
	CHECK(poll(&hup, 1, 0) == 1 && hup.revents == POLLHUP); /* its writing end is closed */
	/* memory of another process is not to be had */
	struct abi_req direct = { .type = ABI_REG_MR, .reg_mr = { .pd = pd, .addr = (uintptr_t)&d, .len = 64, .iova = 64 } };
	CHECK(raw_call(&r, &direct, &rep) == -EOPNOTSUPP && strstr(rep.text, "embedded"));
	CHECK(raw_call(&r, &(struct abi_req){ .type = ABI_MSG_COUNT }, &rep) == -EINVAL);
	CHECK(raw_call(&r, &(struct abi_req){ .type = UINT32_MAX }, &rep) == -EINVAL);
	raw_close(&r);
	raw_close(&other);
	daemon_close(&d);
}

static void test_requests(void **state)
{
	RUN(ask);
}

/* A request that needs new memory gets it, sealed, in few regions; the daemon keeps no descriptor of any. */
static void ask_for_memory(void *arg)
{
	struct daemon d;
	struct raw r;
	struct abi_rep rep;
	uint32_t handles[8];
	daemon_prepare(&d);
	daemon_run(&d);
	raw_open(&r, d.path);
	unsigned fds = count_fds();
	for (uint32_t i = 0; i < 8; i++) {
		struct abi_req req = { .type = ABI_ALLOC_MEMORY, .alloc_memory.bytes = (3u << 20) + i };
		CHECK(!raw_call(&r, &req, &rep));
		handles[i] = rep.handle;
		CHECK(rep.memory.arena < r.arenas && rep.memory.offset + rep.memory.bytes <= r.arena[rep.memory.arena].bytes);
		memset((uint8_t *)r.arena[rep.memory.arena].base + rep.memory.offset, (int)i, rep.memory.bytes);
	}
	CHECK(r.arenas > 1 && r.arenas < 7);
	CHECK(count_fds() == fds);
	for (uint32_t i = 0; i < 8; i++)
		CHECK(!raw_destroy(&r, ABI_FREE_MEMORY, handles[i]));
	uint32_t arenas = r.arenas;
	CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_ALLOC_MEMORY, .alloc_memory.bytes = 4 << 20 }, &rep));
	CHECK(r.arenas == arenas); /* what was given back is used again */
	raw_close(&r);
	daemon_close(&d);
}

static void test_memory_on_demand(void **state)
{
	RUN(ask_for_memory);
}

/* ---- programs ---- */

static void open_program(struct side *s, const char *path)
{
	char device[128];
	snprintf(device, sizeof(device), "unix:%s", path);
	memset(s, 0, sizeof(*s));
	CHECK(!uroce_open(device, NULL, &s->ctx));
	CHECK(!uroce_pd_create(s->ctx, &s->pd));
	CHECK(!uroce_cq_create(s->ctx, 4 * SIDE_DEPTH, NULL, NULL, &s->cq));
	struct uroce_qp_init init = { .send_cq = s->cq, .recv_cq = s->cq, .cap = { SIDE_DEPTH, SIDE_DEPTH, 1, 1, 0 } };
	CHECK(!uroce_qp_create(s->pd, &init, &s->qp));
	void *memory;
	CHECK(!uroce_alloc(s->ctx, SIDE_BYTES, &memory));
	s->buffer = memory;
	CHECK(!uroce_mr_register(s->pd, s->buffer, SIDE_BYTES, UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ, &s->mr));
	CHECK(!uroce_qp_endpoint(s->qp, 0, &s->endpoint));
}

static void close_program(struct side *s)
{
	CHECK(!uroce_qp_destroy(s->qp));
	CHECK(!uroce_cq_destroy(s->cq));
	CHECK(!uroce_mr_deregister(s->mr));
	CHECK(!uroce_free(s->ctx, s->buffer));
	CHECK(!uroce_pd_destroy(s->pd));
	uroce_close(s->ctx);
}

static void exchange_data(void *arg)
{
	struct daemon d;
	struct side a, b;
	daemon_prepare_with(&d, arg);
	daemon_run(&d);
	open_program(&a, d.path);
	open_program(&b, d.path);
	struct side_card ca = side_card(&a), cb = side_card(&b);
	side_connect(&a, &cb, 0);
	side_connect(&b, &ca, 0);
	for (uint32_t seed = 1; seed < 20; seed++) {
		side_fill(&a, 0, 200000, seed);
		side_post_write(&a, seed, 0, 200000, &cb, 1000);
		side_wait(&a, NULL, seed);
		side_check(&b, 1000, 200000, seed);
		side_post_recv(&a, seed, 300000, 5000);
		side_post_send(&b, seed, 1000, 5000);
		side_wait(&a, NULL, seed);
		side_wait(&b, NULL, seed);
		side_check(&a, 300000, 5000, seed);
	}
	close_program(&a);
	close_program(&b);
	daemon_await_empty(&d);
	daemon_close(&d);
}

/* On one core, from one core to the other, and with a core that sleeps whenever it can, which the programs have to wake. */
static void test_data_between_programs(void **state)
{
	static const char *const keys[] = { "", ",cores=2", ",cores=2,idle=sleep" };
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_int_equal(side_child(exchange_data, (void *)(uintptr_t)keys[i]), 0);
}

static void spread(void *arg)
{
	struct daemon d;
	struct raw r[4];
	unsigned on_core[2] = { 0 };
	daemon_prepare_with(&d, ",cores=2");
	daemon_run(&d);
	for (unsigned i = 0; i < 4; i++) {
		raw_open(&r[i], d.path);
		on_core[r[i].welcome.core]++;
		raw_qp(&r[i], raw_pd(&r[i]), raw_cq(&r[i], 16));
	}
	CHECK(on_core[0] == 2 && on_core[1] == 2);
	/* who goes makes room where it was */
	for (unsigned i = 0; i < 20; i++) {
		uint32_t core = r[i % 4].welcome.core;
		raw_close(&r[i % 4]);
		daemon_await_clients(&d, 3);
		raw_open(&r[i % 4], d.path);
		CHECK(r[i % 4].welcome.core == core);
	}
	for (unsigned i = 0; i < 4; i++)
		raw_close(&r[i]);
	daemon_await_empty(&d);
	char *text = daemon_report(&d);
	CHECK(strstr(text, "\ncore 1 clients 0 qps 0 cqs 0 mrs 0 "));
	free(text);
	daemon_close(&d);
}

static void test_clients_are_spread_over_cores(void **state)
{
	RUN(spread);
}

/* ---- the report ---- */

static uint64_t value_of(const char *text, const char *line, const char *key)
{
	char word[64];
	const char *at = strstr(text, line);
	CHECK(at);
	snprintf(word, sizeof(word), " %s ", key);
	const char *end = strchr(at, '\n'), *value = strstr(at, word);
	CHECK(end && value && value < end);
	return strtoull(value + strlen(word), NULL, 10);
}

static void report(void *arg)
{
	struct daemon d;
	struct raw r;
	char line[64];
	daemon_prepare(&d);
	daemon_run(&d);
	raw_open(&r, d.path);
	uint32_t pd = raw_pd(&r), cq = raw_cq(&r, 64);
	raw_qp(&r, pd, cq);
	raw_qp(&r, pd, cq);
	char *text = daemon_report(&d);
	fputs(text, stderr);
	snprintf(line, sizeof(line), "client %d uid %u program raw_client state ready core ", getpid(), getuid());
	CHECK(value_of(text, line, "qps") == 2 && value_of(text, line, "cqs") == 1 && value_of(text, line, "pds") == 1 && value_of(text, line, "ring_bytes") > 0);
	CHECK(value_of(text, "server ", "clients") == 1 && value_of(text, "user ", "qps") == 2);
	CHECK(value_of(text, "count accepted ", "accepted") == 1 && !strstr(text, "count refused"));
	CHECK(value_of(text, "core 0 ", "rounds") > 0 && value_of(text, "mbufs ", "available") > 0);
	for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
		unsigned words = 1;
		for (const char *c = at; *c != '\n'; c++)
			words += *c == ' ';
		CHECK(strchr(at, '\n') && words >= 3);
	}
	free(text);
	raw_close(&r);
	daemon_close(&d);
}

static void test_report(void **state)
{
	RUN(report);
}

/* ---- start and end of the daemon ---- */

static void take_path(void *arg)
{
	struct daemon d;
	struct server *second;
	struct stat st;
	char lock[128];
	daemon_prepare(&d);
	snprintf(lock, sizeof(lock), "%s.lock", d.path);
	d.config.mode = 0620;
	d.config.group = getuid() ? (gid_t)-1 : 12;
	mode_t mask = umask(0777); /* is not asked */
	daemon_run(&d);
	CHECK(!d.err && !stat(d.path, &st) && S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0620 && (getuid() || st.st_gid == 12));
	umask(mask);
	CHECK(!stat(lock, &st) && (st.st_mode & 077) == 0);
	unsigned fds = count_fds();
	CHECK(server_start(&second, d.engine, &d.config) == -EADDRINUSE && strstr(d.last_line, "another daemon serves it"));
	CHECK(count_fds() == fds && !access(d.path, F_OK) && !access(lock, F_OK));
	daemon_stop(&d, CTL_BYE_SHUTDOWN, "again");
	CHECK(access(d.path, F_OK) && access(lock, F_OK)); /* nothing is left */
	/* what is no socket is not ours to remove */
	int fd = open(d.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && server_start(&second, d.engine, &d.config) == -EEXIST && strstr(d.last_line, "no socket"));
	close(fd);
	CHECK(!unlink(d.path) && access(lock, F_OK));
	/* a path in no folder, and one that is too long */
	struct server_config bad = d.config;
	bad.path = "/nonexistent/folder/sock";
	CHECK(server_start(&second, d.engine, &bad) == -ENOENT);
	char longest[200];
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	bad.path = longest;
	CHECK(server_start(&second, d.engine, &bad) == -ENAMETOOLONG);
	daemon_run(&d);
	CHECK(!d.err);
	daemon_close(&d);
}

static void test_one_daemon_a_path(void **state)
{
	RUN(take_path);
}

/* A daemon in a child, for the tests that end it. */
static void be_daemon(int fd, struct daemon *d)
{
	char byte;
	daemon_prepare(d);
	daemon_run(d);
	CHECK(!d->err && write(fd, d->path, sizeof(d->path)) == sizeof(d->path));
	CHECK(read(fd, &byte, 1) == 1);
}

static pid_t fork_daemon(int *fd, char path[64])
{
	int pair[2];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		struct daemon d;
		close(pair[0]);
		be_daemon(pair[1], &d);
		daemon_close(&d);
		_exit(0);
	}
	close(pair[1]);
	*fd = pair[0];
	CHECK(read(pair[0], path, 64) == 64);
	return pid;
}

/* kill -9: the kernel says so in the life page. Leftovers do not stop the next daemon. */
static void die(void *arg)
{
	char path[64];
	int fd;
	struct raw r;
	struct ctl_message m;
	struct stat st;
	pid_t pid = fork_daemon(&fd, path);
	raw_open(&r, path);
	CHECK(!(r.life->word & CTL_LIFE_DEAD));
	double start = now_ms();
	kill(pid, SIGKILL);
	while (!(*(volatile uint32_t *)(uintptr_t)&r.life->word & CTL_LIFE_DEAD))
		CHECK(now_ms() < start + 10000);
	printf("# the life page said so %.2f ms after kill -9\n", now_ms() - start);
	CHECK(raw_hear(&r, &m, NULL) == -1);
	CHECK(waitpid(pid, NULL, 0) == pid);
	raw_close(&r);
	close(fd);
	CHECK(!stat(path, &st)); /* left over */
	struct daemon d;
	daemon_prepare(&d);
	rmdir(d.folder);
	d.config.path = path;
	strcpy(d.path, path);
	*strrchr(strcpy(d.folder, path), '/') = 0;
	daemon_run(&d);
	CHECK(!d.err);
	raw_open(&r, path);
	raw_close(&r);
	daemon_close(&d);
}

static void test_daemon_killed(void **state)
{
	RUN(die);
}

/* The orderly end: a reason, and the page says that no call will be answered any more. */
static void shut_down(void *arg)
{
	struct daemon d;
	struct raw ready, mapping, mute;
	daemon_prepare(&d);
	unsigned fds = count_fds();
	daemon_run(&d);
	raw_open(&ready, d.path);
	raw_meet(&mapping, d.path);
	raw_connect(&mute, d.path);
	daemon_await(&d, SERVER_ACCEPTED, 3);
	raw_qp(&ready, raw_pd(&ready), raw_cq(&ready, 16));
	daemon_stop(&d, CTL_BYE_SHUTDOWN, "the daemon is going down for the night");
	raw_expect_bye(&ready, CTL_BYE_SHUTDOWN, "for the night");
	CHECK(((struct abi_engine_page *)ready.arena[0].base)->dead == 1);
	raw_expect_bye(&mapping, CTL_BYE_SHUTDOWN, "for the night");
	raw_expect_bye(&mute, CTL_BYE_SHUTDOWN, "for the night");
	CHECK(ready.life->word == 0); /* not a death */
	raw_close(&ready);
	raw_close(&mapping);
	raw_close(&mute);
	CHECK(count_fds() == fds);
	daemon_run(&d);
	daemon_close(&d);
}

static void test_shutdown(void **state)
{
	RUN(shut_down);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dialogue),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_memory_on_demand),
		cmocka_unit_test(test_data_between_programs),
		cmocka_unit_test(test_clients_are_spread_over_cores),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_one_daemon_a_path),
		cmocka_unit_test(test_daemon_killed),
		cmocka_unit_test(test_shutdown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

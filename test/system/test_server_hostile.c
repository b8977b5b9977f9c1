/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that say, send, change or omit what they should not. Each is thrown out for a reason that is counted; the daemon keeps nothing of it, and the others notice nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "held_page.h"
#include "memfd.h"
#include "server_fixture.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif
#define RUN(body) assert_int_equal(side_child(body, NULL), 0)

/* A client that behaves, beside those that do not. */
struct witness {
	struct daemon d;
	struct raw r;
	uint32_t qp;
	unsigned fds;
};

static void begin(struct witness *w)
{
	daemon_prepare(&w->d);
	daemon_run(&w->d);
	CHECK(!w->d.err);
	raw_open(&w->r, w->d.path);
	w->qp = raw_qp(&w->r, raw_pd(&w->r), raw_cq(&w->r, 16));
	w->fds = count_fds();
}

/* As if nothing had been. */
static void await_only_witness(struct witness *w)
{
	double end = now_ms() + 20000;
	struct abi_rep rep;
	for (bool is_alone = false; !is_alone;) {
		char *text = daemon_report(&w->d);
		is_alone = strstr(text, " clients 1\n") && strstr(text, "core 0 clients 1 qps 1 cqs 1 ") && count_fds() == w->fds;
		free(text);
		CHECK(now_ms() < end);
	}
	CHECK(!raw_call(&w->r, &(struct abi_req){ .type = ABI_QUERY_QP, .handle = w->qp }, &rep));
	CHECK(rep.query_qp.attr.state == ABI_QP_RESET);
}

static void finish(struct witness *w)
{
	await_only_witness(w);
	raw_close(&w->r);
	daemon_close(&w->d);
}

/* ---- messages in the wrong state ---- */

enum state { HELLO, MAPPING, READY, GROWING, OPERATOR, STATES };

static void reach(struct raw *r, enum state state, const char *path)
{
	struct ctl_message m = { .request = { .type = ABI_ALLOC_MEMORY, .alloc_memory.bytes = 8 << 20 } };
	int fd;
	if (state == HELLO)
		raw_connect(r, path);
	else if (state == OPERATOR)
		raw_operate(r, path);
	else if (state == MAPPING)
		raw_meet(r, path);
	else
		raw_open(r, path);
	if (state != GROWING)
		return;
	raw_say(r, CTL_REQUEST, &m);
	raw_expect(r, CTL_REGION, &m, &fd);
	raw_map(r, &m.region, fd);
}

static void say_all_in_all_states(void *arg)
{
	static const uint32_t right[STATES] = { 1u << CTL_HELLO | 1u << CTL_OPERATOR, 1u << CTL_MAPPED, 1u << CTL_REQUEST, 1u << CTL_MAPPED,
		1u << CTL_SHOW | 1u << CTL_GID_ADD | 1u << CTL_GID_DEL | 1u << CTL_CLIENT_KILL | 1u << CTL_CAPTURE_START | 1u << CTL_CAPTURE_STOP };
	struct witness w;
	uint64_t wrong_state = 0, wrong_side = 0;
	begin(&w);
	for (int state = 0; state < STATES; state++) {
		for (int type = 0; type < CTL_TYPE_COUNT; type++) {
			struct raw r;
			struct ctl_message m = { 0 };
			if (type == CTL_BYE || right[state] >> type & 1)
				continue;
			reach(&r, (enum state)state, w.d.path);
			int fd = ctl_rows[type].has_fd ? r.socket : -1; /* any */
			int err;
			while ((err = ctl_send(r.socket, (enum ctl_type)type, &m, fd)) == -EPERM)
				usleep(100); /* until it is let in, nobody may pass a descriptor */
			CHECK(!err);
			raw_expect_bye(&r, CTL_BYE_PROTOCOL, ctl_rows[type].is_from_client ? ctl_rows[type].name : "from the wrong side");
			if (state == READY)
				CHECK(((struct abi_engine_page *)r.arena[0].base)->dead);
			wrong_state += ctl_rows[type].is_from_client;
			wrong_side += !ctl_rows[type].is_from_client;
			raw_close(&r);
		}
	}
	CHECK(server_count(w.d.server, SERVER_REFUSED_STATE) == wrong_state);
	CHECK(server_count(w.d.server, SERVER_REFUSED_MESSAGE + CTL_DIRECTION) == wrong_side);
	CHECK(server_count(w.d.server, SERVER_ENDED_PROTOCOL) == wrong_state + wrong_side);
	finish(&w);
}

static void test_every_message_in_every_state(void **state)
{
	RUN(say_all_in_all_states);
}

static void leave_in_all_states(void *arg)
{
	struct witness w;
	begin(&w);
	for (int state = 0; state < STATES; state++) {
		struct raw said, closed;
		struct ctl_message m = { 0 };
		reach(&said, (enum state)state, w.d.path);
		raw_say(&said, CTL_BYE, &m);
		CHECK(raw_hear(&said, &m, NULL) == -1);
		raw_close(&said);
		reach(&closed, (enum state)state, w.d.path);
		raw_close(&closed);
	}
	daemon_await(&w.d, SERVER_ENDED_BYE, 2 * STATES);
	finish(&w);
}

static void test_leaving_in_every_state(void **state)
{
	RUN(leave_in_all_states);
}

/* ---- what is no message ---- */

/* false: it has been thrown out by now. */
static bool send_raw(int socket, const void *bytes, size_t len, unsigned fds)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(250 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)bytes, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (fds) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(fds * sizeof(int)) };
		for (unsigned i = 0; i < fds; i++)
			memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &socket, sizeof(socket));
	}
	/* Before it is let in, nobody may pass any; this process may then. */
	ssize_t n;
	for (double end = now_ms() + 20000; (n = sendmsg(socket, &msg, MSG_NOSIGNAL)) < 0 && errno == EPERM && fds && now_ms() < end;)
		;
	return n == (ssize_t)len;
}

static void send_no_messages(void *arg)
{
	static uint8_t big[60000];
	const struct {
		uint32_t type, length;
		size_t bytes;
		unsigned fds;
		enum ctl_refusal why;
	} rows[] = {
		{ CTL_HELLO, 0, 1, 0, CTL_SHORT }, { CTL_HELLO, 0, 7, 0, CTL_SHORT }, { CTL_HELLO, sizeof(struct ctl_hello), 8, 0, CTL_LENGTH },
		{ CTL_HELLO, sizeof(struct ctl_hello), sizeof(struct ctl_hello) + 7, 0, CTL_LENGTH }, { CTL_HELLO, sizeof(struct ctl_hello), sizeof(struct ctl_hello) + 9, 0, CTL_LENGTH },
		{ CTL_HELLO, sizeof(struct ctl_hello) + 1, sizeof(struct ctl_hello) + 8, 0, CTL_LENGTH }, { CTL_HELLO, UINT32_MAX, sizeof(struct ctl_hello) + 8, 0, CTL_LENGTH },
		{ CTL_HELLO, sizeof(struct ctl_hello), sizeof(big), 0, CTL_LENGTH }, { CTL_TYPE_COUNT, 0, 8, 0, CTL_UNKNOWN }, { UINT32_MAX, 0, 8, 0, CTL_UNKNOWN },
		{ CTL_HELLO, sizeof(struct ctl_hello), sizeof(struct ctl_hello) + 8, 1, CTL_FDS }, { CTL_HELLO, sizeof(struct ctl_hello), sizeof(struct ctl_hello) + 8, 16, CTL_FDS },
		{ CTL_HELLO, sizeof(struct ctl_hello), sizeof(struct ctl_hello) + 8, 250, CTL_FDS }, { CTL_HELLO, 3, 11, 250, CTL_LENGTH }, { UINT32_MAX, 3, 11, 2, CTL_UNKNOWN },
		{ CTL_BYE, sizeof(struct ctl_bye), sizeof(struct ctl_bye) + 8, 1, CTL_FDS },
		{ CTL_OPERATOR, sizeof(struct ctl_hello), sizeof(struct ctl_hello) + 8, 1, CTL_FDS }, { CTL_SHOW, sizeof(struct ctl_show), sizeof(struct ctl_show) + 8, 1, CTL_FDS },
		{ CTL_SHOW, sizeof(struct ctl_show) - 1, sizeof(struct ctl_show) + 7, 0, CTL_LENGTH }, { CTL_GID_ADD, 24, 32, 1, CTL_FDS }, { CTL_GID_ADD, 16, 24, 0, CTL_LENGTH },
		{ CTL_CLIENT_KILL, 4, 12, 0, CTL_LENGTH }, { CTL_CAPTURE_START, sizeof(struct ctl_capture_start), sizeof(struct ctl_capture_start) + 8, 0, CTL_FDS },
		{ CTL_CAPTURE_START, sizeof(struct ctl_capture_start), sizeof(struct ctl_capture_start) + 8, 2, CTL_FDS }, { CTL_CAPTURE_START, 0, 8, 1, CTL_LENGTH }, { CTL_CAPTURE_STOP, 0, 8, 1, CTL_FDS },
	};
	struct witness w;
	begin(&w);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct raw r;
		raw_connect(&r, w.d.path);
		memcpy(big, &(struct ctl_header){ rows[i].type, rows[i].length }, sizeof(struct ctl_header));
		uint64_t before = server_count(w.d.server, SERVER_REFUSED_MESSAGE + rows[i].why);
		CHECK(send_raw(r.socket, big, rows[i].bytes, rows[i].fds));
		raw_expect_bye(&r, CTL_BYE_PROTOCOL, ctl_refusal_name(rows[i].why));
		CHECK(server_count(w.d.server, SERVER_REFUSED_MESSAGE + rows[i].why) == before + 1);
		raw_close(&r);
	}
	/* descriptors that wait behind the message for which the client is thrown out */
	struct raw r;
	raw_connect(&r, w.d.path);
	for (unsigned i = 0; i < 50 && send_raw(r.socket, big, 8, 5); i++)
		;
	raw_expect_bye(&r, CTL_BYE_PROTOCOL, "");
	raw_close(&r);
	/* an empty record is the end */
	raw_connect(&r, w.d.path);
	CHECK(send_raw(r.socket, "", 0, 0));
	daemon_await(&w.d, SERVER_ENDED_BYE, 1);
	raw_close(&r);
	finish(&w);
}

static void test_no_messages(void **state)
{
	RUN(send_no_messages);
}

/* A socket that lingers: whoever closes it last waits until its peer has read, or for the time that it says. */
static int open_lingering(void)
{
	const struct linger linger = { 1, 60 };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	static const char much[65536];
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!bind(listener, (const struct sockaddr *)&at, sizeof(at)) && !listen(listener, 1) && !getsockname(listener, (struct sockaddr *)&at, &len));
	CHECK(!connect(fd, (const struct sockaddr *)&at, sizeof(at)) && accept(listener, NULL, NULL) >= 0);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	while (send(fd, much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	return fd;
}

static void pass_lingering(const char *path, int fd)
{
	struct raw r;
	struct ctl_message m = { 0 };
	CHECK(!setresuid(65534, 65534, 65534));
	raw_connect(&r, path);
	int lingering = open_lingering(), err = ctl_send(r.socket, CTL_CAPTURE_START, &m, lingering);
	CHECK(err == -EPERM);
	raw_say_hello(&r);
	raw_expect(&r, CTL_WELCOME, &m, &r.life_fd);
	CHECK(ctl_send(r.socket, CTL_CAPTURE_START, &m, lingering) == -EPERM);
	client_stay(fd);
}

/* The daemon takes no descriptor of who is no operator: to close it could take for ever. */
static void pass_what_lingers(void *arg)
{
	struct witness w;
	struct abi_rep rep;
	int fd, probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), off = 0;
	if (geteuid() || setsockopt(probe, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)))
		_exit(77);
	close(probe);
	begin(&w);
	pid_t pid = client_fork(pass_lingering, w.d.path, &fd);
	CHECK(!raw_call(&w.r, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	close(fd);
	finish(&w);
}

static void test_descriptors_that_linger(void **state)
{
	int status = side_child(pass_what_lingers, NULL);
	if (status == 77) {
		print_message("# not run: it needs root and Linux 6.16 (SO_PASSRIGHTS)\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void say_wrong_hellos(void *arg)
{
	struct witness w;
	struct raw r;
	struct ctl_message m;
	char text[64];
	begin(&w);
	const struct {
		struct ctl_hello hello;
		enum ctl_bye_code code;
	} rows[] = {
		{ { .magic = CTL_MAGIC + 1, .version_min = CTL_VERSION_MIN, .version_max = CTL_VERSION_MAX }, CTL_BYE_PROTOCOL },
		{ { .magic = CTL_MAGIC, .version_min = CTL_VERSION_MAX + 1, .version_max = CTL_VERSION_MAX + 5 }, CTL_BYE_VERSION },
		{ { .magic = CTL_MAGIC, .version_min = 0, .version_max = CTL_VERSION_MIN - 1 }, CTL_BYE_VERSION },
		{ { .magic = CTL_MAGIC, .version_min = CTL_VERSION_MAX + 1, .version_max = CTL_VERSION_MIN }, CTL_BYE_VERSION },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		raw_connect(&r, w.d.path);
		m.hello = rows[i].hello;
		raw_say(&r, CTL_HELLO, &m);
		snprintf(text, sizeof(text), "%u to %u", rows[i].hello.version_min, rows[i].hello.version_max);
		raw_expect_bye(&r, rows[i].code, rows[i].code == CTL_BYE_VERSION ? text : "magic");
		snprintf(text, sizeof(text), "%u to %u", CTL_VERSION_MIN, CTL_VERSION_MAX);
		CHECK(rows[i].code != CTL_BYE_VERSION || strstr(r.bye.text, text));
		raw_close(&r);
	}
	CHECK(server_count(w.d.server, SERVER_REFUSED_VERSION) == 3);
	/* a wide range, unknown features, and a name that would be a nuisance in a log */
	raw_connect(&r, w.d.path);
	m.hello = (struct ctl_hello){ .magic = CTL_MAGIC, .version_min = 0, .version_max = UINT32_MAX, .features = UINT64_MAX };
	memset(m.hello.program, '\n', sizeof(m.hello.program));
	raw_say(&r, CTL_HELLO, &m);
	raw_expect(&r, CTL_WELCOME, &m, &r.life_fd);
	CHECK(m.welcome.version == CTL_VERSION_MAX && m.welcome.features == CTL_FEATURES);
	char *report = daemon_report(&w.d);
	CHECK(strstr(report, " program _______________________________ "));
	free(report);
	raw_close(&r);
	finish(&w);
}

static void test_wrong_hello(void **state)
{
	RUN(say_wrong_hellos);
}

/* ---- silence ---- */

static void say_nothing(void *arg)
{
	struct witness w;
	struct raw mute, unmapped;
	struct ctl_message m;
	struct abi_rep rep;
	double worst = 0, end[2];
	begin(&w);
	double start = now_ms();
	raw_connect(&mute, w.d.path);
	raw_meet(&unmapped, w.d.path);
	while (!server_count(w.d.server, SERVER_ENDED_SILENT)) { /* meanwhile the others are served */
		double from = now_ms();
		CHECK(!raw_call(&w.r, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
		worst = now_ms() - from > worst ? now_ms() - from : worst;
	}
	raw_expect_bye(&mute, CTL_BYE_PROTOCOL, "HELLO");
	end[0] = now_ms() - start;
	raw_expect_bye(&unmapped, CTL_BYE_PROTOCOL, "MAPPED");
	end[1] = now_ms() - start;
	printf("# thrown out after %.0f and %.0f ms; a call meanwhile took at most %.1f ms\n", end[0], end[1], worst);
	CHECK(end[0] > 1900 && end[0] < 4000 && end[1] > 4900 && end[1] < 8000);
	CHECK(raw_hear(&mute, &m, NULL) == -1);
	raw_close(&mute);
	raw_close(&unmapped);
	finish(&w);
}

static void test_silence(void **state)
{
	RUN(say_nothing);
}

/* A client that asks and asks and reads nothing would have the daemon's descriptors pile up in its socket. */
static void read_nothing(void *arg)
{
	struct witness w;
	struct raw r;
	begin(&w);
	for (int round = 0; round < 2; round++) {
		struct ctl_message m = { .request.type = round ? ABI_CREATE_CHANNEL : ABI_QUERY_DEVICE };
		raw_open(&r, w.d.path);
		for (unsigned i = 0; i < 1000 && !ctl_send(r.socket, CTL_REQUEST, &m, -1); i++)
			;
		daemon_await(&w.d, SERVER_ENDED_UNREAD, (uint64_t)round + 1);
		raw_expect_bye(&r, CTL_BYE_PROTOCOL, "before it has read");
		raw_close(&r);
	}
	finish(&w);
}

static void test_unread_answers(void **state)
{
	RUN(read_nothing);
}

/* ---- memory ---- */

static void meet_with_fd(struct raw *r, const char *path, int *region)
{
	struct ctl_message m;
	raw_connect(r, path);
	raw_say_hello(r);
	raw_expect(r, CTL_WELCOME, &m, &r->life_fd);
	raw_expect(r, CTL_WAKE, &m, &r->wake_fd);
	raw_expect(r, CTL_ASYNC, &m, &r->async_fd);
	raw_expect(r, CTL_REGION, &m, region);
	CHECK(!ctl_memfd_map(*region, m.region.bytes, true, &r->arena[0].base));
	r->arena[r->arenas++].bytes = m.region.bytes;
}

static void tamper(void *arg)
{
	static const struct {
		int seals;
		uint32_t arena;
		const char *words;
	} tricks[] = {
		{ 0, 0, "not sealed" }, { F_SEAL_FUTURE_WRITE, 0, "not sealed" }, { F_SEAL_SEAL, 0, "not sealed" }, { F_SEAL_FUTURE_WRITE | F_SEAL_SEAL, 1, "arena 1" },
	};
	struct witness w;
	struct raw r;
	int fd;
	begin(&w);
	for (unsigned i = 0; i < sizeof(tricks) / sizeof(tricks[0]); i++) {
		meet_with_fd(&r, w.d.path, &fd);
		CHECK(ftruncate(fd, 0) && errno == EPERM);
		CHECK(ftruncate(fd, 2 * (off_t)r.arena[0].bytes) && errno == EPERM);
		CHECK(!fcntl(fd, F_ADD_SEALS, tricks[i].seals));
		raw_say_mapped(&r, tricks[i].arena);
		raw_expect_bye(&r, CTL_BYE_PROTOCOL, tricks[i].words);
		close(fd);
		raw_close(&r);
	}
	CHECK(server_count(w.d.server, SERVER_ENDED_PROTOCOL) == sizeof(tricks) / sizeof(tricks[0]));
	/* a region that comes later */
	struct ctl_message m = { .request = { .type = ABI_ALLOC_MEMORY, .alloc_memory.bytes = 8 << 20 } };
	raw_open(&r, w.d.path);
	raw_say(&r, CTL_REQUEST, &m);
	raw_expect(&r, CTL_REGION, &m, &fd);
	raw_say_mapped(&r, 1);
	raw_expect_bye(&r, CTL_BYE_PROTOCOL, "not sealed");
	CHECK(((struct abi_engine_page *)r.arena[0].base)->dead);
	close(fd);
	raw_close(&r);
	finish(&w);
}

static void test_not_sealed_before_mapped(void **state)
{
	RUN(tamper);
}

/* Pages that the client took away before it said MAPPED are there again afterwards, and none can be taken any more: the poll core never meets a hole. */
static void punch(void *arg)
{
	struct witness w;
	struct raw r;
	struct ctl_message m;
	struct abi_rep rep;
	struct stat st;
	int fd;
	begin(&w);
	meet_with_fd(&r, w.d.path, &fd);
	off_t bytes = (off_t)r.arena[0].bytes;
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, bytes));
	CHECK(!ctl_memfd_seal(fd));
	raw_say_mapped(&r, 0);
	raw_expect(&r, CTL_READY, &m, NULL);
	CHECK(!fstat(fd, &st) && st.st_blocks * 512 == bytes);
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, bytes) && errno == EPERM);
	CHECK(ftruncate(fd, 0) && errno == EPERM);
	CHECK(ftruncate(fd, 2 * bytes) && errno == EPERM);
	CHECK(madvise(r.arena[0].base, (size_t)bytes, MADV_REMOVE));
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM);
	madvise(r.arena[0].base, (size_t)bytes, MADV_DONTNEED); /* only its own mapping's */
	CHECK(!fstat(fd, &st) && st.st_blocks * 512 == bytes);
	raw_cq(&r, 1000);
	CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	close(fd);
	raw_close(&r);
	/* who does not map cannot do so afterwards, and that is all */
	raw_connect(&r, w.d.path);
	raw_say_hello(&r);
	raw_expect(&r, CTL_WELCOME, &m, &r.life_fd);
	raw_expect(&r, CTL_WAKE, &m, &r.wake_fd);
	raw_expect(&r, CTL_ASYNC, &m, &r.async_fd);
	raw_expect(&r, CTL_REGION, &m, &fd);
	CHECK(!ctl_memfd_seal(fd));
	raw_say_mapped(&r, 0);
	raw_expect(&r, CTL_READY, &m, NULL);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM);
	raw_qp(&r, raw_pd(&r), raw_cq(&r, 16));
	close(fd);
	raw_close(&r);
	finish(&w);
}

static void test_holes(void **state)
{
	RUN(punch);
}

/* The ends of channels that a client has, and its eventfd: filled, made to block, shut, opened again for the other direction. */
static void misuse_channels(void *arg)
{
	struct witness w;
	struct raw r;
	struct abi_rep rep;
	char path[64];
	eventfd_t rung;
	begin(&w);
	raw_open(&r, w.d.path);
	CHECK(!fcntl(r.wake_fd, F_SETFL, 0));
	CHECK(!eventfd_write(r.wake_fd, UINT64_MAX - 1)); /* one more, of anybody's, would wait */
	CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	CHECK(!eventfd_read(r.wake_fd, &rung) && rung == UINT64_MAX - 1); /* and so would one more read */
	CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	CHECK(!fcntl(r.async_fd, F_SETFL, 0));
	CHECK(send(r.async_fd, "", 1, MSG_NOSIGNAL) < 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r.async_fd);
	CHECK(open(path, O_RDWR | O_CLOEXEC) < 0);
	CHECK(!shutdown(r.async_fd, SHUT_RDWR));
	close(r.wake_fd); /* no hang-up of its may keep the core from sleeping, or from others */
	r.wake_fd = -1;
	CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	CHECK(!raw_call(&w.r, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	raw_close(&r);
	finish(&w);
}

static void test_misused_channels(void **state)
{
	RUN(misuse_channels);
}

/* ---- memory that stands still while the kernel copies from or to it ---- */

/* A program of the library's, and a QP of its in ERR whose receives fire its CQ. */
struct hostile {
	struct uroce_context *ctx;
	struct uroce_channel *channel;
	struct uroce_cq *cq;
	struct uroce_qp *qp;
};

static void open_hostile(struct hostile *h, const char *path)
{
	char device[128];
	struct uroce_pd *pd;
	struct uroce_endpoint e;
	struct uroce_qp_attr err = { .state = UROCE_QP_ERR };
	snprintf(device, sizeof(device), "unix:%s", path);
	CHECK(!uroce_open(device, NULL, &h->ctx));
	CHECK(!uroce_pd_create(h->ctx, &pd));
	CHECK(!uroce_channel_create(h->ctx, &h->channel));
	CHECK(!uroce_cq_create(h->ctx, 16, h->channel, NULL, &h->cq));
	struct uroce_qp_init init = { .send_cq = h->cq, .recv_cq = h->cq, .cap = { 1, 16, 1, 1, 0 } };
	CHECK(!uroce_qp_create(pd, &init, &h->qp));
	CHECK(!uroce_qp_endpoint(h->qp, 0, &e));
	CHECK(!uroce_qp_connect(h->qp, &e, &e, NULL, 0));
	CHECK(!uroce_qp_modify(h->qp, &err, UROCE_QP_STATE));
}

static void fire(struct hostile *h)
{
	struct uroce_wc wc;
	CHECK(!uroce_cq_arm(h->cq, false));
	CHECK(uroce_post_recv(h->qp, &(struct uroce_recv_wr){ 0 }, 1) == 1);
	for (double end = now_ms() + 20000; uroce_cq_poll(h->cq, &wc, 1) != 1;)
		CHECK(now_ms() < end);
}

struct transfer {
	int fd;
	bool is_write;
	struct held_page page;
	ssize_t done;
};

static void *transfer(void *arg)
{
	struct transfer *t = arg;
	t->done = t->is_write ? write(t->fd, t->page.at, 8) : read(t->fd, t->page.at, 8);
	return NULL;
}

/* One that reads its events into such a page, and wakes the engine out of another. */
static void stand_still(void *arg)
{
	struct witness w;
	struct raw r;
	struct hostile h;
	struct abi_rep rep;
	struct transfer t[2] = { { .is_write = false }, { .is_write = true } };
	pthread_t thread[2];
	begin(&w);
	CHECK(held_page_open(&t[0].page) && held_page_open(&t[1].page));
	raw_open(&r, w.d.path);
	open_hostile(&h, w.d.path);
	t[0].fd = uroce_channel_fd(h.channel);
	t[1].fd = r.wake_fd;
	fire(&h);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(!pthread_create(&thread[i], NULL, transfer, &t[i]));
		CHECK(held_page_is_wanted(&t[i].page, 20000));
	}
	for (unsigned i = 0; i < 10; i++) {
		fire(&h);
		CHECK(!eventfd_write(r.wake_fd, 1));
		CHECK(!raw_call(&w.r, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	}
	CHECK(!uroce_qp_destroy(h.qp) && !uroce_cq_destroy(h.cq) && !uroce_channel_destroy(h.channel)); /* closing waits no more than writing */
	for (unsigned i = 0; i < 2; i++) {
		held_page_let_go(&t[i].page);
		CHECK(!pthread_join(thread[i], NULL) && t[i].done == 8);
		held_page_close(&t[i].page);
	}
	uroce_close(h.ctx);
	raw_close(&r);
	finish(&w);
}

/* A `write` to the memfd holds the file's lock meanwhile, which a new seal needs. */
static void write_to_region(void *arg)
{
	struct witness w;
	struct ctl_message m;
	begin(&w);
	for (int is_sealed = 0; is_sealed < 2; is_sealed++) {
		struct transfer t = { .is_write = true };
		struct raw r, other;
		pthread_t thread;
		CHECK(held_page_open(&t.page));
		meet_with_fd(&r, w.d.path, &t.fd);
		CHECK(!is_sealed || !ctl_memfd_seal(t.fd));
		CHECK(!pthread_create(&thread, NULL, transfer, &t));
		bool is_held = held_page_is_wanted(&t.page, 2000); /* huge pages cannot be written to */
		raw_say_mapped(&r, 0);
		if (is_sealed)
			raw_expect(&r, CTL_READY, &m, NULL);
		else
			raw_expect_bye(&r, CTL_BYE_PROTOCOL, "not sealed");
		raw_open(&other, w.d.path);
		raw_close(&other);
		raw_close(&r);
		daemon_await_clients(&w.d, 1);
		if (is_held)
			held_page_let_go(&t.page);
		CHECK(!pthread_join(thread, NULL));
		held_page_close(&t.page);
		close(t.fd);
	}
	finish(&w);
}

static void run_held(void (*body)(void *arg))
{
	struct held_page page;
	if (!held_page_open(&page)) {
		print_message("# not run: userfaultfd for faults of the kernel is not allowed here\n");
		skip();
	}
	held_page_close(&page);
	RUN(body);
}

static void test_events_read_into_memory_that_stands_still(void **state)
{
	run_held(stand_still);
}

static void test_region_written_from_memory_that_stands_still(void **state)
{
	run_held(write_to_region);
}

/* ---- requests that cannot be ---- */

static void resize_wrongly(void *arg)
{
	struct witness w;
	struct raw r;
	struct abi_rep rep;
	begin(&w);
	raw_open(&r, w.d.path);
	uint32_t cq = raw_cq(&r, 64), pd = raw_pd(&r);
	raw_qp(&r, pd, cq);
	const struct {
		uint32_t cq, mask, entries, count, period_us;
		int status;
	} rows[] = {
		{ cq ^ 1, ABI_CQ_ENTRIES, 128, 0, 0, -ENOENT }, { pd + 77, ABI_CQ_SWITCH, 0, 0, 0, -ENOENT }, { UINT32_MAX, ABI_CQ_MODERATION, 0, 0, 0, -ENOENT }, { 0, ABI_CQ_ENTRIES, 1, 0, 0, -ENOENT },
		{ cq, ABI_CQ_SWITCH, 128, 0, 0, -EINVAL }, { cq, 0, 128, 0, 0, -EINVAL }, { cq, UINT32_MAX, 128, 1, 1, -EINVAL }, { cq, ABI_CQ_ENTRIES | ABI_CQ_SWITCH, 128, 0, 0, -EINVAL },
		{ cq, ABI_CQ_ENTRIES, 0, 0, 0, -EINVAL }, { cq, ABI_CQ_ENTRIES, UINT32_MAX, 0, 0, -EINVAL }, { cq, ABI_CQ_ENTRIES, 0x80000000, 0, 0, -EINVAL }, { cq, ABI_CQ_MODERATION, 0, UINT32_MAX, UINT32_MAX, -EINVAL },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct abi_req req = { .type = ABI_MODIFY_CQ, .modify_cq = { rows[i].cq, rows[i].mask, rows[i].entries, rows[i].count, rows[i].period_us, 0 } };
		CHECK(raw_call(&r, &req, &rep) == rows[i].status && rep.text[0]);
	}
	/* again and again, without ever going on, then for ever to and fro */
	for (unsigned i = 0; i < 200; i++)
		CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_MODIFY_CQ, .modify_cq = { .cq = cq, .mask = ABI_CQ_ENTRIES, .entries = 1 + (i * 7919) % 10000 } }, &rep));
	for (unsigned i = 0; i < 200; i++) {
		CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_MODIFY_CQ, .modify_cq = { .cq = cq, .mask = ABI_CQ_ENTRIES, .entries = 1u << i % 12 } }, &rep));
		CHECK(!raw_call(&r, &(struct abi_req){ .type = ABI_MODIFY_CQ, .modify_cq = { .cq = cq, .mask = ABI_CQ_SWITCH } }, &rep));
	}
	char *text = daemon_report(&w.d);
	char *refused = strstr(text, " refused_requests ");
	CHECK(refused && strtoul(refused + 18, NULL, 10) == sizeof(rows) / sizeof(rows[0]));
	free(text);
	raw_close(&r);
	finish(&w);
}

/* known-bugs: 43 */
static void test_resizing_wrongly(void **state)
{
	RUN(resize_wrongly);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_message_in_every_state),
		cmocka_unit_test(test_leaving_in_every_state),
		cmocka_unit_test(test_no_messages),
		cmocka_unit_test(test_descriptors_that_linger),
		cmocka_unit_test(test_wrong_hello),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_unread_answers),
		cmocka_unit_test(test_not_sealed_before_mapped),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_misused_channels),
		cmocka_unit_test(test_events_read_into_memory_that_stands_still),
		cmocka_unit_test(test_region_written_from_memory_that_stands_still),
		cmocka_unit_test(test_resizing_wrongly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

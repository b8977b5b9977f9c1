/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages over a socket pair: every row of the table with what is right and what is wrong about it; no descriptor is
 * left over whatever came. And which files are mapped. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "memfd.h"
#include "socket.h"

#define HEADER sizeof(struct ctl_header)

static unsigned count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

struct ends {
	int client, daemon;
	unsigned fds; /* of the process, when nothing is under way */
};

static struct ends open_ends(void)
{
	struct ends e;
	int fd[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
	e = (struct ends){ fd[0], fd[1], count_fds() };
	return e;
}

static void close_ends(struct ends *e)
{
	assert_int_equal(count_fds(), e->fds);
	close(e->client);
	close(e->daemon);
}

/* A record as it is, with n descriptors of /dev/null. */
static void send_raw(int socket, const void *bytes, size_t len, unsigned n)
{
	char control[CMSG_SPACE(32 * sizeof(int))];
	struct iovec iov = { (void *)bytes, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int)) };
	int fds[32];
	for (unsigned i = 0; i < n; i++)
		assert_true((fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
	memset(control, 0, sizeof(control));
	memcpy(control, &header, sizeof(header));
	memcpy(control + CMSG_LEN(0), fds, n * sizeof(int));
	if (n) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	assert_int_equal(sendmsg(socket, &msg, 0), len);
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

static void expect_refusal(struct ends *e, bool is_daemon, enum ctl_refusal want)
{
	struct ctl_message m;
	enum ctl_refusal why;
	int fd = 77;
	assert_int_equal(ctl_recv(is_daemon ? e->daemon : e->client, is_daemon, &m, &fd, &why), -EPROTO);
	assert_int_equal(why, want);
	assert_int_equal(fd, -1);
	assert_int_equal(count_fds(), e->fds);
}

static bool takes(unsigned type, bool is_daemon)
{
	return is_daemon ? ctl_rows[type].is_from_client : ctl_rows[type].is_from_daemon;
}

/* ---- the table ---- */

static void test_table(void **state)
{
	uint32_t longest = 0;
	for (unsigned t = 0; t < CTL_TYPE_COUNT; t++) {
		const struct ctl_row *row = &ctl_rows[t];
		assert_non_null(row->name);
		assert_true(row->is_from_client || row->is_from_daemon);
		/* a client has no descriptor that a daemon would want; an operator has the file that it captures into */
		assert_int_equal(row->has_fd && row->is_from_client, t == CTL_CAPTURE_START);
		longest = row->length > longest ? row->length : longest;
	}
	assert_int_equal(HEADER + longest, sizeof(struct ctl_message));
}

static void test_right_messages(void **state)
{
	struct ends e = open_ends();
	for (unsigned n = 0; n < 2 * CTL_TYPE_COUNT; n++) {
		unsigned type = n / 2;
		bool is_daemon = n & 1;
		const struct ctl_row *row = &ctl_rows[type];
		struct ctl_message out, in;
		enum ctl_refusal why;
		int null = row->has_fd ? open("/dev/null", O_RDONLY) : -1, fd;
		struct stat sent, came;
		memset(&out, 0x40 + (int)n, sizeof(out));
		memset(&in, 0, sizeof(in));
		assert_int_equal(ctl_send(is_daemon ? e.client : e.daemon, (enum ctl_type)type, &out, null), 0);
		if (!takes(type, is_daemon)) {
			close(null);
			expect_refusal(&e, is_daemon, CTL_DIRECTION);
			continue;
		}
		assert_int_equal(ctl_recv(is_daemon ? e.daemon : e.client, is_daemon, &in, &fd, &why), 0);
		assert_int_equal(in.header.type, type);
		assert_int_equal(in.header.length, row->length);
		assert_memory_equal(&in, &out, HEADER + row->length);
		assert_int_equal(fd >= 0, row->has_fd);
		if (row->has_fd) {
			assert_int_equal(fstat(null, &sent) | fstat(fd, &came), 0);
			assert_int_equal(sent.st_rdev, came.st_rdev);
			assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
			close(fd);
			close(null);
		}
		assert_int_equal(count_fds(), e.fds);
	}
	close_ends(&e);
}

/* Each row with every length, to one too long for any; the header tells the truth, or what the row says. */
static void test_lengths(void **state)
{
	struct ends e = open_ends();
	char bytes[sizeof(struct ctl_message) + 8] = { 0 };
	for (unsigned type = 0; type < CTL_TYPE_COUNT; type++) {
		const struct ctl_row *row = &ctl_rows[type];
		bool is_daemon = row->is_from_client;
		for (size_t len = 1; len <= sizeof(bytes); len++) {
			bool is_right = len == HEADER + row->length;
			struct ctl_header lie = { type, row->length }, truth = { type, (uint32_t)(len - HEADER) };
			memcpy(bytes, is_right ? &(struct ctl_header){ type, row->length + 1 } : &lie, HEADER);
			send_raw(is_daemon ? e.client : e.daemon, bytes, len, row->has_fd);
			expect_refusal(&e, is_daemon, len < HEADER ? CTL_SHORT : CTL_LENGTH);
			if (is_right || len < HEADER)
				continue;
			memcpy(bytes, &truth, HEADER);
			send_raw(is_daemon ? e.client : e.daemon, bytes, len, row->has_fd);
			expect_refusal(&e, is_daemon, CTL_LENGTH);
		}
	}
	close_ends(&e);
}

static void test_types(void **state)
{
	static const uint32_t types[] = { CTL_TYPE_COUNT, CTL_TYPE_COUNT + 1, 0x80000000, UINT32_MAX };
	struct ends e = open_ends();
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct ctl_header h = { types[i], 0 };
		for (unsigned fds = 0; fds < 2; fds++) {
			send_raw(e.client, &h, sizeof(h), fds);
			expect_refusal(&e, true, CTL_UNKNOWN);
			send_raw(e.daemon, &h, sizeof(h), fds);
			expect_refusal(&e, false, CTL_UNKNOWN);
		}
	}
	close_ends(&e);
}

static void test_numbers_of_descriptors(void **state)
{
	static const unsigned numbers[] = { 0, 1, 2, 15, 16, 17, 20, 31 };
	struct ends e = open_ends();
	for (unsigned n = 0; n < CTL_TYPE_COUNT * 8; n++) {
		unsigned type = n / 8, fds = numbers[n % 8];
		const struct ctl_row *row = &ctl_rows[type];
		bool is_daemon = row->is_from_client;
		struct ctl_message m = { .header = { type, row->length } };
		if (fds == row->has_fd)
			continue;
		send_raw(is_daemon ? e.client : e.daemon, &m, HEADER + row->length, fds);
		expect_refusal(&e, is_daemon, CTL_FDS);
	}
	close_ends(&e);
}

/* Where only the first of two finds room, the message is refused all the same. */
static void test_no_room_for_descriptors(void **state)
{
	struct ends e = open_ends();
	struct ctl_message m = { .header = { CTL_WAKE, 0 } };
	struct rlimit before, now;
	enum ctl_refusal why;
	int fd, next;
	send_raw(e.daemon, &m, HEADER, 2);
	next = dup(e.client);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	now = before;
	now.rlim_cur = (rlim_t)next + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	assert_int_equal(ctl_recv(e.client, false, &m, &fd, &why), -EPROTO);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(why, CTL_FDS);
	assert_int_equal(fd, -1);
	close_ends(&e);
}

/* Descriptors that come with what is refused for another reason are closed too. */
static void test_descriptors_of_refused_messages(void **state)
{
	struct ends e = open_ends();
	struct ctl_header h = { CTL_WAKE, 0 };
	send_raw(e.daemon, &h, 3, 2);
	expect_refusal(&e, false, CTL_SHORT);
	send_raw(e.client, &h, sizeof(h), 1);
	expect_refusal(&e, true, CTL_DIRECTION);
	send_raw(e.daemon, &h, 0, 5);
	expect_refusal(&e, false, CTL_SHORT);
	close_ends(&e);
}

/* Credentials may come along with a descriptor, if the receiver asked the kernel for them. */
static void test_other_ancillary_data(void **state)
{
	struct ends e = open_ends();
	struct ctl_message m;
	enum ctl_refusal why;
	int yes = 1, null = open("/dev/null", O_RDONLY), fd;
	assert_int_equal(setsockopt(e.client, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)), 0);
	assert_int_equal(ctl_send(e.daemon, CTL_WAKE, &m, null), 0);
	assert_int_equal(ctl_recv(e.client, false, &m, &fd, &why), 0);
	assert_true(fd >= 0);
	close(fd);
	close(null);
	close_ends(&e);
}

/* ---- the ends of a socket ---- */

static void test_sending(void **state)
{
	struct ends e = open_ends();
	struct ctl_message m = { 0 };
	unsigned sent = 0;
	int err;
	assert_int_equal(ctl_send(e.daemon, CTL_WAKE, &m, -1), -EINVAL);
	assert_int_equal(ctl_send(e.daemon, CTL_READY, &m, e.client), -EINVAL);
	while (!(err = ctl_send(e.daemon, CTL_READY, &m, -1)))
		assert_true(++sent < 100000);
	assert_int_equal(err, -EAGAIN);
	close(e.client);
	assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	err = ctl_send(e.daemon, CTL_READY, &m, -1);
	assert_true(err == -EPIPE || err == -ECONNRESET);
	assert_int_equal(ctl_send(e.daemon, CTL_READY, &m, -1), -EPIPE);
	close(e.daemon);
}

static void test_nothing_there(void **state)
{
	struct ends e = open_ends();
	struct ctl_message m;
	enum ctl_refusal why;
	int fd = 77;
	assert_int_equal(ctl_recv(e.daemon, true, &m, &fd, &why), -EAGAIN);
	assert_int_equal(fd, -1);
	assert_int_equal(send(e.client, "", 0, 0), 0);
	assert_int_equal(ctl_recv(e.daemon, true, &m, &fd, &why), -ECONNRESET);
	close(e.client);
	assert_int_equal(ctl_recv(e.daemon, true, &m, &fd, &why), -ECONNRESET);
	close(e.daemon);
	assert_int_equal(ctl_recv(e.daemon, true, &m, &fd, &why), -EBADF);
}

static void test_names_of_refusals(void **state)
{
	for (unsigned i = 0; i < CTL_REFUSAL_COUNT; i++) {
		assert_string_not_equal(ctl_refusal_name((enum ctl_refusal)i), "?");
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(ctl_refusal_name((enum ctl_refusal)i), ctl_refusal_name((enum ctl_refusal)j));
	}
	assert_string_equal(ctl_refusal_name(CTL_REFUSAL_COUNT), "?");
}

static void test_peer(void **state)
{
	struct ends e = open_ends();
	struct ctl_peer peer;
	int null = open("/dev/null", O_RDONLY);
	assert_int_equal(ctl_peer_of(e.daemon, &peer), 0);
	assert_int_equal(peer.pid, getpid());
	assert_int_equal(peer.uid, getuid());
	assert_int_equal(peer.gid, getgid());
	assert_int_equal(ctl_peer_of(null, &peer), -ENOTSOCK);
	close(null);
	close_ends(&e);
}

/* ---- mapping ---- */

static int new_memfd(off_t bytes)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	return fd;
}

static void test_map(void **state)
{
	int fd = new_memfd(8192);
	char *writer, *reader;
	pid_t child;
	int status;
	assert_int_equal(ctl_memfd_map(fd, 8192, true, (void **)&writer), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE), 0);
	assert_false(ctl_memfd_is_sealed(fd));
	assert_int_equal(ctl_memfd_seal(fd), 0);
	assert_true(ctl_memfd_is_sealed(fd));
	assert_int_equal(ctl_memfd_seal(fd), -EPERM); /* once */
	assert_int_equal(ctl_memfd_map(fd, 8192, true, (void **)&reader), -EPERM);
	assert_int_equal(ctl_memfd_map(fd, 8192, false, (void **)&reader), 0);
	close(fd);
	writer[8191] = 'x';
	assert_int_equal(reader[8191], 'x');
	child = fork();
	if (!child) {
		unsigned char there;
		_exit(mincore(writer, 4096, &there) && mincore(reader, 4096, &there) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	munmap(writer, 8192);
	munmap(reader, 8192);
}

static void refuse_map(int fd, uint64_t bytes, int err)
{
	void *base = &base;
	assert_int_equal(ctl_memfd_map(fd, bytes, true, &base), err);
	assert_int_equal(ctl_memfd_map(fd, bytes, false, &base), err);
	close(fd);
}

static void test_what_is_not_mapped(void **state)
{
	char path[] = "/tmp/uroce-test-XXXXXX", shm[] = "/dev/shm/uroce-test-XXXXXX";
	int pipes[2], sockets[2], file;
	unsigned fds = count_fds();
	file = mkstemp(path);
	assert_true(file >= 0);
	unlink(path);
	assert_int_equal(ftruncate(file, 4096), 0);
	if (fcntl(file, F_GET_SEALS) < 0) /* else /tmp is in memory itself */
		refuse_map(file, 4096, -EPROTO);
	else
		close(file);
	file = mkstemp(shm);
	if (file >= 0) {
		assert_int_equal(ftruncate(file, 4096), 0);
		refuse_map(file, 4096, -EPROTO);
		unlink(shm);
	}
	assert_int_equal(pipe(pipes) | socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	refuse_map(pipes[0], 4096, -EPROTO);
	refuse_map(pipes[1], 0, -EPROTO);
	refuse_map(sockets[0], 4096, -EPROTO);
	refuse_map(sockets[1], 0, -EPROTO);
	refuse_map(open("/dev/zero", O_RDWR), 4096, -EPROTO);
	refuse_map(open("/", O_RDONLY), 4096, -EPROTO);
	refuse_map(open("/proc/self/exe", O_RDONLY), 4096, -EPROTO);
	refuse_map(new_memfd(4096), 0, -EPROTO);
	refuse_map(new_memfd(4096), 4095, -EPROTO);
	refuse_map(new_memfd(4096), 8192, -EPROTO);
	refuse_map(new_memfd(4096), UINT64_MAX, -EPROTO);
	refuse_map(new_memfd(0), 0, -EPROTO);
	assert_int_equal(count_fds(), fds);
	refuse_map(-1, 4096, -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_right_messages),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_numbers_of_descriptors),
		cmocka_unit_test(test_no_room_for_descriptors),
		cmocka_unit_test(test_descriptors_of_refused_messages),
		cmocka_unit_test(test_other_ancillary_data),
		cmocka_unit_test(test_sending),
		cmocka_unit_test(test_nothing_there),
		cmocka_unit_test(test_names_of_refusals),
		cmocka_unit_test(test_peer),
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_what_is_not_mapped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

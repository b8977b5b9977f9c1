/* SPDX-License-Identifier: BSD-3-Clause */
/* The channels of events that a core has by default: what a reader can do at its end, and that nothing of it holds up or signals who writes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core.h"
#include "held_page.h"

struct channel {
	int read_fd, write_fd;
};

static const struct core_hooks *const hooks = &core_host_hooks;

static struct channel open_channel(void)
{
	struct channel c;
	assert_int_equal(hooks->channel_new(hooks->arg, &c.read_fd, &c.write_fd), 0);
	return c;
}

static void close_channel(struct channel *c)
{
	hooks->channel_free(hooks->arg, c->read_fd, c->write_fd);
}

static int put(const struct channel *c, uint64_t record, uint32_t len)
{
	uint64_t two[2] = { record, ~record };
	return hooks->channel_write(hooks->arg, c->write_fd, two, len);
}

static bool is_readable(const struct channel *c)
{
	struct pollfd fd = { .fd = c->read_fd, .events = POLLIN };
	return poll(&fd, 1, 0) == 1;
}

/* One read a record, whatever room it offers; readable while there is one. */
static void test_records(void **state)
{
	struct channel c = open_channel();
	uint64_t buffer[64];
	assert_false(is_readable(&c));
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(put(&c, i, i % 2 ? 8 : 16), 0);
	for (uint64_t i = 0; i < 100; i++) {
		assert_true(is_readable(&c));
		assert_int_equal(read(c.read_fd, buffer, i % 3 ? sizeof(buffer) : 16), i % 2 ? 8 : 16);
		assert_int_equal(buffer[0], i);
		assert_true(i % 2 || buffer[1] == ~i);
	}
	assert_false(is_readable(&c));
	assert_false(fcntl(c.read_fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(c.read_fd, F_GETFD) & fcntl(c.write_fd, F_GETFD) & FD_CLOEXEC);
	close_channel(&c);
}

static void test_full(void **state)
{
	struct channel c = open_channel();
	uint64_t record;
	unsigned n = 0;
	for (; n < 100000 && !put(&c, n, 8); n++)
		;
	print_message("# holds %u records\n", n);
	assert_in_range(n, 100, 99999);
	assert_int_equal(put(&c, n, 8), -EAGAIN);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(read(c.read_fd, &record, sizeof(record)), sizeof(record));
		assert_int_equal(record, i);
	}
	for (unsigned i = 0; i < n; i++) /* all of its room is there again */
		assert_int_equal(put(&c, i, 8), 0);
	close_channel(&c);
}

/* A reader's flags are its own, it can write nothing back, and no program of its runs where records are written. */
static void test_what_a_reader_may_not(void **state)
{
	struct channel c = open_channel();
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &all };
	const int off = 0;
	assert_int_equal(fcntl(c.read_fd, F_SETFL, O_NONBLOCK), 0);
	assert_false(fcntl(c.write_fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(send(c.read_fd, "", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(setsockopt(c.read_fd, SOL_SOCKET, SO_LOCK_FILTER, &off, sizeof(off)), -1);
	assert_int_equal(setsockopt(c.read_fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(put(&c, 5, 8), 0);
	assert_true(is_readable(&c));
	close_channel(&c);
}

/* It shuts its end: told as such, and no signal comes (its action is the default, which would end this process). */
static void test_shut(void **state)
{
	static const int how[] = { SHUT_RD, SHUT_RDWR };
	signal(SIGPIPE, SIG_DFL);
	for (unsigned i = 0; i < 2; i++) {
		struct channel c = open_channel();
		assert_int_equal(put(&c, 1, 8), 0);
		assert_int_equal(shutdown(c.read_fd, how[i]), 0);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(put(&c, 1, 8), -EPIPE);
		close_channel(&c);
	}
	struct channel c = open_channel();
	close(c.read_fd);
	for (unsigned k = 0; k < 3; k++)
		assert_int_equal(put(&c, 1, 8), -EPIPE);
	close(c.write_fd);
}

/* ---- a reader whose memory stands still ---- */

struct stuck {
	struct held_page page;
	int fd; /* read from */
	ssize_t got;
	struct channel c;
	int (*put)(struct stuck *s);
	_Atomic bool is_done;
};

static void *read_into_page(void *arg)
{
	struct stuck *s = arg;
	s->got = read(s->fd, s->page.at, 8);
	return NULL;
}

static void *write_three(void *arg)
{
	struct stuck *s = arg;
	for (unsigned i = 0; i < 3; i++)
		if (s->put(s))
			return NULL;
	s->is_done = true;
	return NULL;
}

static int put_into_channel(struct stuck *s)
{
	return put(&s->c, 7, 8);
}

static int put_into_pipe(struct stuck *s)
{
	return write(s->c.write_fd, "12345678", 8) != 8;
}

/* Whether who writes is done although who reads stands still. */
static bool is_free_of_reader(struct stuck *s)
{
	pthread_t reader, writer;
	struct timespec end;
	s->fd = s->c.read_fd;
	assert_int_equal(s->put(s), 0);
	assert_int_equal(pthread_create(&reader, NULL, read_into_page, s), 0);
	assert_true(held_page_is_wanted(&s->page, 20000));
	assert_int_equal(pthread_create(&writer, NULL, write_three, s), 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 2;
	bool is_joined = !pthread_timedjoin_np(writer, NULL, &end), is_done = s->is_done;
	held_page_let_go(&s->page);
	if (!is_joined)
		pthread_join(writer, NULL);
	pthread_join(reader, NULL);
	assert_int_equal(s->got, 8);
	held_page_close(&s->page);
	return is_done;
}

static void test_reader_that_stands_still(void **state)
{
	struct stuck s = { .put = put_into_channel }, pipe_too = { .put = put_into_pipe };
	if (!held_page_open(&s.page)) {
		print_message("# not run: userfaultfd for faults of the kernel is not allowed here\n");
		skip();
	}
	s.c = open_channel();
	assert_true(is_free_of_reader(&s));
	close_channel(&s.c);
	/* what the default was once, and why it is no more */
	int fd[2];
	assert_true(held_page_open(&pipe_too.page));
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	pipe_too.c = (struct channel){ fd[0], fd[1] };
	print_message("# a pipe's writer is %s\n", is_free_of_reader(&pipe_too) ? "free of it too" : "held up");
	close(fd[0]);
	close(fd[1]);
}

/* Nor does closing wait. */
static void test_end_with_a_reader_that_stands_still(void **state)
{
	struct stuck s = { 0 };
	pthread_t reader;
	if (!held_page_open(&s.page))
		skip();
	s.c = open_channel();
	s.fd = dup(s.c.read_fd); /* as another process has it */
	assert_int_equal(put_into_channel(&s), 0);
	assert_int_equal(pthread_create(&reader, NULL, read_into_page, &s), 0);
	assert_true(held_page_is_wanted(&s.page, 20000));
	close_channel(&s.c);
	held_page_let_go(&s.page);
	pthread_join(reader, NULL);
	assert_int_equal(s.got, 8);
	assert_int_equal(read(s.fd, &s.got, sizeof(s.got)), 0);
	close(s.fd);
	held_page_close(&s.page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_what_a_reader_may_not),
		cmocka_unit_test(test_shut),
		cmocka_unit_test(test_reader_that_stands_still),
		cmocka_unit_test(test_end_with_a_reader_that_stands_still),
	};
	alarm(100); /* what hangs here hangs a poll core */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

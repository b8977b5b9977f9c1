/* SPDX-License-Identifier: BSD-3-Clause */
/* The way to a daemon's socket: each reason why it may lead nowhere has its error, and a line that says what would help. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "client.h"
#include "fake_engine.h"

struct place {
	char dir[64], path[96];
	int socket;
	struct fake_engine *f; /* for its log */
};

static struct place make_place(int type, bool is_listening)
{
	struct place p = { .dir = "/tmp/uroce-test-XXXXXX", .f = fake_new() };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	assert_non_null(mkdtemp(p.dir));
	chmod(p.dir, 0755);
	snprintf(p.path, sizeof(p.path), "%s/socket", p.dir);
	strcpy(at.sun_path, p.path);
	p.socket = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(p.socket, (struct sockaddr *)&at, sizeof(at)), 0);
	if (is_listening)
		assert_int_equal(listen(p.socket, 0), 0);
	return p;
}

static void leave_place(struct place *p)
{
	close(p->socket);
	unlink(p->path);
	rmdir(p->dir);
	fake_free(p->f);
}

static void expect(struct place *p, const char *path, int err, const char *words)
{
	struct uroce_open_attr attr = fake_open_attr(p->f);
	struct client_log log;
	int fd, next = dup(p->socket), got;
	close(next);
	context_log_init(&log, &attr);
	p->f->lines = 0;
	got = dial(&log.log, path, 100, &fd);
	fd = dup(p->socket);
	assert_int_equal(fd, next); /* nothing stayed open */
	close(fd);
	if (got != err || p->f->lines != 1 || !strstr(p->f->line, words))
		fail_msg("%s: error %d with %u lines, \"%s\"; wanted %d, \"%s\"", path, got, p->f->lines, p->f->line, err, words);
	assert_true(strlen(path) > 200 || strstr(p->f->line, path));
}

static void test_no_daemon(void **state)
{
	struct place p = make_place(SOCK_SEQPACKET, false);
	char path[300];
	snprintf(path, sizeof(path), "%s/nothing", p.dir);
	expect(&p, path, -ENOENT, "uroced --config");
	expect(&p, p.path, -ECONNREFUSED, "uroced --config"); /* bound, and nobody listens */
	expect(&p, "/proc/self/exe/socket", -ENOTDIR, "no path of a socket");
	expect(&p, "/dev/null", -ECONNREFUSED, "uroced --config");
	expect(&p, "", -EINVAL, "/run/uroce/uroce0.sock");
	memset(path, 'p', sizeof(path));
	path[108] = '\0';
	expect(&p, path, -ENAMETOOLONG, "has 108 bytes, that of a socket at most 107");
	path[108] = 'p';
	path[299] = '\0';
	expect(&p, path, -ENAMETOOLONG, "has 299 bytes");
	path[107] = '\0';
	expect(&p, path, -ENOENT, "uroced --config");
	leave_place(&p);
}

static void test_another_server(void **state)
{
	struct place p = make_place(SOCK_STREAM, true);
	expect(&p, p.path, -EPROTOTYPE, "not a daemon's of uroce");
	leave_place(&p);
}

/* One that does not accept: its backlog takes a few, then connecting waits, but not for ever. */
static void test_full_backlog(void **state)
{
	struct place p = make_place(SOCK_SEQPACKET, true);
	int fd[8], n = 0;
	while (n < 8 && !dial(NULL, p.path, 50, &fd[n]))
		n++;
	assert_in_range(n, 1, 7);
	expect(&p, p.path, -ETIMEDOUT, "does not take the connection");
	while (n > 0)
		close(fd[--n]);
	leave_place(&p);
}

static void test_no_permission(void **state)
{
	struct place p = make_place(SOCK_SEQPACKET, true);
	bool is_root = !geteuid();
	chmod(p.path, 0600);
	if (is_root)
		assert_int_equal(seteuid(65534), 0);
	else
		chmod(p.path, 0);
	expect(&p, p.path, -EACCES, is_root ? "mode is 0600, its group root" : "mode is 0000, its group");
	if (is_root) {
		assert_int_equal(seteuid(0), 0);
		chmod(p.dir, 0700);
		assert_int_equal(seteuid(65534), 0);
	} else {
		chmod(p.dir, 0);
	}
	expect(&p, p.path, -EACCES, "enter the socket's directory");
	if (is_root)
		assert_int_equal(seteuid(0), 0);
	chmod(p.dir, 0700);
	leave_place(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_daemon),
		cmocka_unit_test(test_another_server),
		cmocka_unit_test(test_full_backlog),
		cmocka_unit_test(test_no_permission),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

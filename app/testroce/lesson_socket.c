/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns its sockets. */
#include "lesson_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the kernel was asked for since a moment. */
struct asked {
	uint64_t from, calls;
	char names[400];
};

static void begin(const struct tracer *t, struct asked *k)
{
	k->from = t ? tracer_calls(t) : 0;
}

static void end(const struct tracer *t, struct asked *k)
{
	k->calls = t ? tracer_calls(t) - k->from : 0; /* before anything is printed */
	if (t)
		tracer_name(t, k->from, k->names, sizeof(k->names));
}

static void print_asked(const struct tracer *t, const struct asked *k)
{
	if (t)
		printf("  kernel   %" PRIu64 " system call%s%s%s\n", k->calls, k->calls == 1 ? "" : "s", k->calls ? ": " : "", k->names);
	else
		printf("  kernel   not counted\n");
}

/* Both ends of a connection. */
static int make_connection(int fd[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd[0] = fd[1] = -1;
	if (listener >= 0 && !bind(listener, (struct sockaddr *)&a, len) && !listen(listener, 1) && !getsockname(listener, (struct sockaddr *)&a, &len)) {
		fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd[0] >= 0 && !connect(fd[0], (struct sockaddr *)&a, len))
			fd[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	}
	if (listener >= 0)
		close(listener);
	return fd[1] >= 0 ? 0 : -errno;
}

/* How many calls the message took. */
static uint64_t send_one(const struct tracer *t, const int fd[2], const void *message, size_t bytes)
{
	char into[256];
	struct asked k;
	uint64_t all;
	begin(t, &k);
	ssize_t sent = send(fd[0], message, bytes, 0);
	end(t, &k);
	printf("\nsocket 2: program A calls send: %zd bytes\n", sent);
	print_asked(t, &k);
	printf("  memory   copied by the kernel out of A's buffer into one of its own, which its TCP takes to B's socket\n");
	all = k.calls;
	begin(t, &k);
	ssize_t got = recv(fd[1], into, sizeof(into) < bytes ? sizeof(into) : bytes, MSG_WAITALL);
	end(t, &k);
	printf("\nsocket 3: program B calls recv: %zd bytes\n", got);
	print_asked(t, &k);
	printf("  memory   copied by the kernel out of its buffer into B's\n");
	return all + k.calls;
}

int lesson_socket(const struct tracer *t, const void *message, size_t bytes, uint64_t *calls)
{
	int fd[2];
	struct asked k;
	begin(t, &k);
	int err = make_connection(fd);
	end(t, &k);
	printf("\nsocket 1: both programs make sockets and connect them\n");
	print_asked(t, &k);
	if (err)
		fprintf(stderr, "no TCP connection over loopback: %s\n", strerror(-err));
	else
		*calls = send_one(t, fd, message, bytes);
	for (int i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return err;
}

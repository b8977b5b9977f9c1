/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel TCP on loopback, the same work and the same two CPUs as bench: 1 MiB writes, and 8-byte ping-pong with both ends spinning on a non-blocking socket. NODELAY. Lines "NAME VALUE".
 *
 *   tcp_stream    Gbit/s of payload
 *   tcp_cpu       CPU seconds of both ends for each GiB of it
 *   tcp_pingpong  half round trip, ns */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE = 1 << 20, PINGPONGS = 50000 };
static const double PERIOD = 1.0;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_seconds(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* One end of the ping-pong; never sleeps in the kernel. */
static void bounce(int fd, int begins)
{
	uint64_t word = 0;
	for (int i = 0; i < 2 * PINGPONGS; i++) {
		if ((i & 1) != begins) {
			if (send(fd, &word, sizeof(word), 0) != sizeof(word))
				fail("send");
			continue;
		}
		ssize_t n;
		while ((n = recv(fd, &word, sizeof(word), MSG_DONTWAIT)) < 0 && errno == EAGAIN)
			;
		if (n != sizeof(word))
			fail("recv");
	}
}

static void *serve(void *arg)
{
	int fd = *(int *)arg;
	uint8_t *buffer = malloc(MESSAGE);
	pin(1);
	bounce(fd, 0);
	while (recv(fd, buffer, MESSAGE, 0) > 0)
		;
	free(buffer);
	return NULL;
}

static void connect_both(int fd[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || fd[0] < 0 || bind(listener, (struct sockaddr *)&a, len) || listen(listener, 1) || getsockname(listener, (struct sockaddr *)&a, &len) ||
	    connect(fd[0], (struct sockaddr *)&a, len) || (fd[1] = accept(listener, NULL, NULL)) < 0)
		fail("connect");
	for (int i = 0; i < 2; i++)
		setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	close(listener);
}

int main(void)
{
	pthread_t thread;
	int fd[2];
	uint8_t *buffer = calloc(1, MESSAGE);
	uint64_t bytes = 0;
	connect_both(fd);
	if (pthread_create(&thread, NULL, serve, &fd[1]))
		fail("thread");
	pin(0);
	double from = now();
	bounce(fd[0], 1);
	double pingpong = (now() - from) * 5e8 / PINGPONGS, cpu = cpu_seconds();
	for (from = now(); now() < from + PERIOD;) {
		ssize_t n = send(fd[0], buffer, MESSAGE, 0);
		if (n < 0)
			fail("send");
		bytes += (uint64_t)n;
	}
	shutdown(fd[0], SHUT_WR);
	pthread_join(thread, NULL);
	double seconds = now() - from;
	printf("tcp_stream %.3f\ntcp_cpu %.3f\ntcp_pingpong %.1f\n", (double)bytes * 8 / seconds / 1e9, (cpu_seconds() - cpu) / ((double)bytes / (1 << 30)), pingpong);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs commands inside the guest for the host: one process for each virtio-serial port named "rxe.N", each with one command at a time, so that as many can run as there are ports.
 *
 * Both ways travel frames: "RXF1", type (1 byte), command number (4, big-endian), length (4, big-endian), payload.
 *   host to guest  'C' run the payload by sh -c;  'I' standard input;  'E' its end;  'K' kill the command and its process group
 *   guest to host  'O' standard output;  'R' standard error;  'X' exit code (4 bytes; 128 + signal)
 * Invariant: in[0, have) is what came and was not taken; a command whose host end went away is killed with its process group. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAD_BYTES 13u
#define PAYLOAD_MAX 65536u
#define HANGUP_TRIES 100u /* of 10 ms: the port's "host is there" is set late, behind its data */

static int port;
static unsigned char in[1 << 17];
static size_t have;

struct frame {
	char type;
	uint32_t number, len;
	const unsigned char *payload;
};

struct command {
	pid_t pid;
	uint32_t number;
	int to, from[2]; /* standard input; output and error; -1: closed */
	size_t fed;      /* bytes of the first 'I' frame that were written */
};

static bool put_bytes(const void *data, size_t len)
{
	const char *at = data;
	unsigned hangups = 0;
	while (len) {
		ssize_t n = write(port, at, len);
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			struct pollfd p = { port, POLLOUT, 0 };
			poll(&p, 1, 200);
			if (p.revents & POLLHUP && ++hangups > HANGUP_TRIES)
				return false;
			if (p.revents & POLLHUP)
				usleep(10000);
		} else if (n >= 0 || errno != EINTR) {
			return false;
		}
	}
	return true;
}

static bool put_frame(char type, uint32_t number, const void *payload, uint32_t len)
{
	unsigned char head[HEAD_BYTES] = "RXF1";
	uint32_t wire[2] = { htonl(number), htonl(len) };
	head[4] = (unsigned char)type;
	memcpy(head + 5, wire, sizeof(wire));
	return put_bytes(head, sizeof(head)) && put_bytes(payload, len);
}

/* false: nobody is at the host's end. */
static bool fill(void)
{
	ssize_t n = have < sizeof(in) ? read(port, in + have, sizeof(in) - have) : -1;
	if (n > 0)
		have += (size_t)n;
	return n != 0;
}

static void drop(size_t len)
{
	memmove(in, in + len, have - len);
	have -= len;
}

/* The first whole frame; what is no frame is passed over. */
static bool find_frame(struct frame *f)
{
	uint32_t wire[2];
	while (have >= HEAD_BYTES && memcmp(in, "RXF1", 4))
		drop(1);
	if (have < HEAD_BYTES)
		return false;
	memcpy(wire, in + 5, sizeof(wire));
	*f = (struct frame){ (char)in[4], ntohl(wire[0]), ntohl(wire[1]), in + HEAD_BYTES };
	if (f->len > PAYLOAD_MAX)
		drop(4);
	return f->len <= PAYLOAD_MAX && have >= HEAD_BYTES + f->len;
}

static bool start(struct command *c, const char *text)
{
	int pipes[3][2];
	for (int i = 0; i < 3; i++)
		if (pipe2(pipes[i], O_CLOEXEC))
			return false;
	c->pid = fork();
	if (!c->pid) {
		setsid();
		dup2(pipes[0][0], 0);
		dup2(pipes[1][1], 1);
		dup2(pipes[2][1], 2);
		execl("/bin/sh", "sh", "-c", text, (char *)NULL);
		_exit(127);
	}
	close(pipes[0][0]);
	c->to = pipes[0][1];
	fcntl(c->to, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 2; i++) {
		close(pipes[i + 1][1]);
		c->from[i] = pipes[i + 1][0];
		fcntl(c->from[i], F_SETFL, O_NONBLOCK);
	}
	return c->pid > 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Hands the frames that came to the command's standard input, as far as it takes them. */
static void feed(struct command *c)
{
	struct frame f;
	while (find_frame(&f)) {
		bool is_ours = f.number == c->number && c->to >= 0;
		if (is_ours && f.type == 'I' && c->fed < f.len) {
			ssize_t n = write(c->to, f.payload + c->fed, f.len - c->fed);
			if (n < 0 && errno == EAGAIN)
				return;
			if (n < 0)
				close_fd(&c->to);
			else if ((c->fed += (size_t)n) < f.len)
				return;
		} else if (is_ours && f.type == 'E') {
			close_fd(&c->to);
		} else if (f.number == c->number && f.type == 'K') {
			kill(-c->pid, SIGKILL);
		}
		drop(HEAD_BYTES + f.len);
		c->fed = 0;
	}
}

/* What the command wrote goes to the host. false: nothing was there. */
static bool collect(struct command *c)
{
	char data[32768];
	bool is_any = false;
	for (int i = 0; i < 2; i++) {
		ssize_t n = c->from[i] >= 0 ? read(c->from[i], data, sizeof(data)) : -1;
		if (n > 0)
			is_any |= put_frame(i ? 'R' : 'O', c->number, data, (uint32_t)n);
		else if (n == 0)
			close_fd(&c->from[i]);
	}
	return is_any;
}

/* Waits for something to do. false: the host's end has gone. */
static bool wait_for_work(const struct command *c, bool is_done, bool *was_there, unsigned *hangups)
{
	struct pollfd p[4] = { { port, have < sizeof(in) ? POLLIN : 0, 0 }, { c->from[0], POLLIN, 0 }, { c->from[1], POLLIN, 0 }, { have ? c->to : -1, POLLOUT, 0 } };
	poll(p, 4, is_done ? 0 : 20);
	if (p[0].revents & POLLIN)
		fill();
	if (!(p[0].revents & POLLHUP)) {
		*was_there = true;
		return true;
	}
	if (*was_there || ++*hangups > HANGUP_TRIES)
		return false;
	usleep(10000);
	return true;
}

static void run(uint32_t number, const char *text)
{
	struct command c = { .number = number, .to = -1, .from = { -1, -1 } };
	bool is_done = false, was_there = false;
	unsigned hangups = 0;
	int status = 0;
	if (!start(&c, text))
		return;
	for (;;) {
		feed(&c);
		if (!wait_for_work(&c, is_done, &was_there, &hangups)) {
			kill(-c.pid, SIGKILL);
			waitpid(c.pid, &status, 0);
			break;
		}
		bool is_any = collect(&c);
		if (is_done && !is_any) {
			uint32_t code = htonl((uint32_t)(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
			put_frame('X', number, &code, sizeof(code));
			break;
		}
		if (!is_done && waitpid(c.pid, &status, WNOHANG) == c.pid)
			is_done = true;
	}
	close_fd(&c.to);
	close_fd(&c.from[0]);
	close_fd(&c.from[1]);
}

static void serve(const char *device)
{
	struct frame f;
	port = open(device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	for (unsigned hangups = 0; port >= 0;) {
		struct pollfd p = { port, POLLIN, 0 };
		poll(&p, 1, 1000);
		if (!(p.revents & POLLIN)) {
			if (p.revents & POLLHUP && ++hangups > HANGUP_TRIES / 2)
				have = 0; /* the rest of a host that went away */
			usleep(p.revents & POLLHUP ? 10000 : 0);
			continue;
		}
		hangups = 0;
		if (!fill())
			usleep(10000);
		while (find_frame(&f)) {
			char *text = f.type == 'C' ? strndup((const char *)f.payload, f.len) : NULL;
			drop(HEAD_BYTES + f.len);
			if (text)
				run(f.number, text);
			free(text);
		}
	}
	perror(device);
	_exit(1);
}

/* Whether a port of the console driver is one of ours. */
static bool is_ours(const char *name)
{
	char path[300], text[8] = "";
	snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", name);
	FILE *f = fopen(path, "re");
	bool is_read = f && fgets(text, sizeof(text), f);
	if (f)
		fclose(f);
	return is_read && !strncmp(text, "rxe.", 4);
}

int main(void)
{
	char device[300];
	struct dirent *e;
	DIR *d = opendir("/sys/class/virtio-ports");
	signal(SIGPIPE, SIG_IGN);
	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.' || !is_ours(e->d_name))
			continue;
		snprintf(device, sizeof(device), "/dev/%s", e->d_name);
		if (!fork())
			serve(device);
	}
	for (;;) /* as the first process it also reaps what others left */
		if (wait(NULL) < 0)
			sleep(1);
}

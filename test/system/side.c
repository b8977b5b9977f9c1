/* SPDX-License-Identifier: BSD-3-Clause */
#include "side.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "session.h"

#define PATIENCE_S 20

static char last_line[512];

const char *side_last_line(void)
{
	return last_line;
}

static void take_line(void *arg, int level, const char *line)
{
	snprintf(last_line, sizeof(last_line), "%s", line);
	fprintf(stderr, "# %s\n", line);
}

uroce_engine_session_open_fn uroce_engine_session_open;

static int open_session(const char *device, struct side *s)
{
	const struct session_ops *ops;
	struct uroce_open_attr attr = { .log = take_line };
	void *session;
	int err = uroce_engine_session_open(device, &attr, &ops, &session);
	if (err)
		return err;
	s->engine = engine_of_session(session);
	s->core = engine_core_of_session(session);
	return context_open(ops, session, &attr, &s->ctx);
}

int side_open_context(const char *device, struct uroce_context **ctx, struct engine **engine)
{
	struct side s;
	int err = open_session(device, &s);
	if (err)
		return err;
	*ctx = s.ctx;
	*engine = s.engine;
	return 0;
}

void side_is_refused(const char *device, int err, const char *word)
{
	struct uroce_context *ctx;
	struct engine *engine;
	CHECK(side_open_context(device, &ctx, &engine) == err);
	if (strstr(side_last_line(), word))
		return;
	printf("\"%s\" does not say \"%s\"\n", side_last_line(), word);
	_exit(1);
}

void side_open(struct side *s, const char *device)
{
	memset(s, 0, sizeof(*s));
	s->is_inline = !strncmp(device, "inline:", 7);
	CHECK(!open_session(device, s));
	CHECK(!uroce_pd_create(s->ctx, &s->pd));
	CHECK(!uroce_cq_create(s->ctx, 4 * SIDE_DEPTH, NULL, NULL, &s->cq));
	struct uroce_qp_init init = { .send_cq = s->cq, .recv_cq = s->cq, .cap = { SIDE_DEPTH, SIDE_DEPTH, 1, 1, 0 } };
	CHECK(!uroce_qp_create(s->pd, &init, &s->qp));
	s->buffer = aligned_alloc(4096, SIDE_BYTES);
	CHECK(s->buffer);
	memset(s->buffer, 0, SIDE_BYTES);
	CHECK(!uroce_mr_register(s->pd, s->buffer, SIDE_BYTES, UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ, &s->mr));
	CHECK(!uroce_qp_endpoint(s->qp, 0, &s->endpoint));
}

struct side_card side_card(const struct side *s)
{
	return (struct side_card){ s->endpoint, (uintptr_t)s->buffer, uroce_mr_rkey(s->mr) };
}

void side_connect(struct side *s, const struct side_card *remote, uint32_t path_mtu)
{
	struct uroce_qp_attr attr = { .path_mtu = path_mtu, .timeout = 15 }; /* 134 ms: eight of them outlast a busy machine's stalls */
	CHECK(!uroce_qp_connect(s->qp, &s->endpoint, &remote->endpoint, &attr, UROCE_QP_TIMEOUT | (path_mtu ? UROCE_QP_PATH_MTU : 0)));
}

void side_close(struct side *s)
{
	CHECK(!uroce_qp_destroy(s->qp));
	CHECK(!uroce_cq_destroy(s->cq));
	CHECK(!uroce_mr_deregister(s->mr));
	CHECK(!uroce_pd_destroy(s->pd));
	uroce_close(s->ctx);
	free(s->buffer);
}

/* Another thread may be in a round of it: one that looks at the engine. */
static void poll_side(const struct side *s)
{
	int n = s && s->is_inline ? uroce_engine_poll(s->ctx) : 0;
	CHECK(n >= 0 || n == -EBUSY);
}

void side_poll(struct side *a, struct side *b)
{
	poll_side(a);
	poll_side(b);
}

struct uroce_wc side_wait(struct side *a, struct side *b, uint64_t wr_id)
{
	struct uroce_wc wc;
	time_t end = time(NULL) + PATIENCE_S;
	int n;
	while (!(n = uroce_cq_poll(a->cq, &wc, 1))) {
		side_poll(a, b);
		if (time(NULL) > end) {
			printf("no completion of WR %llu within %d s\n", (unsigned long long)wr_id, PATIENCE_S);
			fflush(stdout);
			_exit(1);
		}
	}
	CHECK(n == 1);
	if (wc.status != UROCE_WC_SUCCESS || wc.wr_id != wr_id) {
		char text[256] = "";
		uroce_qp_error_text(a->qp, text, sizeof(text));
		printf("WR %llu awaited, WR %llu: %s; %s\n", (unsigned long long)wr_id, (unsigned long long)wc.wr_id, uroce_wc_status_str(wc.status), text);
		fflush(stdout);
		_exit(1);
	}
	return wc;
}

void side_post_recv(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t len)
{
	struct uroce_sge sge = { (uintptr_t)s->buffer + offset, len, uroce_mr_lkey(s->mr) };
	struct uroce_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	CHECK(uroce_post_recv(s->qp, &wr, 1) == 1);
}

void side_post_send(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t len)
{
	struct uroce_sge sge = { (uintptr_t)s->buffer + offset, len, uroce_mr_lkey(s->mr) };
	struct uroce_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_SEND, .flags = UROCE_SEND_SIGNALED };
	CHECK(uroce_post_send(s->qp, &wr, 1) == 1);
}

void side_post_write(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t len, const struct side_card *remote, uint32_t remote_offset)
{
	struct uroce_sge sge = { (uintptr_t)s->buffer + offset, len, uroce_mr_lkey(s->mr) };
	struct uroce_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_WRITE, .flags = UROCE_SEND_SIGNALED,
		.remote_addr = remote->addr + remote_offset, .rkey = remote->rkey };
	CHECK(uroce_post_send(s->qp, &wr, 1) == 1);
}

static uint8_t get_pattern(uint32_t at, uint32_t seed)
{
	uint32_t x = (at + 1) * 2654435761u ^ seed * 40503u;
	return (uint8_t)(x >> 13);
}

void side_fill(struct side *s, uint32_t offset, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		s->buffer[offset + i] = get_pattern(i, seed);
}

void side_check(const struct side *s, uint32_t offset, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		CHECK(s->buffer[offset + i] == get_pattern(i, seed));
}

uint64_t side_drops(const struct side *s, enum drop why)
{
	return core_drops(engine_core_stack(s->core))->count[why];
}

/* In the child: cmocka's handlers would run its other tests here. */
static void begin_child(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_DFL);
	alarm(3 * PATIENCE_S);
}

static int wait_child(pid_t pid)
{
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int side_child(void (*body)(void *arg), void *arg)
{
	fflush(NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		begin_child();
		body(arg);
		fflush(NULL);
		_exit(0);
	}
	return wait_child(pid);
}

int side_children(void (*a)(int fd, void *arg), void (*b)(int fd, void *arg), void *arg)
{
	int fd[2], status = 0;
	pid_t pid[2];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i])
			continue;
		close(fd[!i]);
		begin_child();
		(i ? b : a)(fd[i], arg);
		fflush(NULL);
		_exit(0);
	}
	close(fd[0]);
	close(fd[1]);
	for (int i = 0; i < 2; i++) {
		int s = wait_child(pid[i]);
		status = status ? status : s;
	}
	return status;
}

void side_exchange(int fd, const void *ours, void *theirs, size_t len)
{
	CHECK(write(fd, ours, len) == (ssize_t)len);
	for (size_t at = 0; at < len;) {
		ssize_t n = read(fd, (char *)theirs + at, len - at);
		if (n <= 0) {
			printf("the other side ended early\n");
			fflush(stdout);
			_exit(1);
		}
		at += (size_t)n;
	}
}

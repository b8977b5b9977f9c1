/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a daemon that is played by hand: the dialogue, and everything that can be wrong about it. Whatever the daemon
 * does, the client says so in one line, with the right error, in time, and leaves no descriptor and no mapping behind. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "client.h"
#include "fake_daemon.h"
#include "socket.h"

/* Much, since the machine may be busy; little where the daemon will not answer. */
static const struct served_patience much = { .step_ms = 10000, .reply_ms = 20000 }, little = { .step_ms = 400, .reply_ms = 500 };

/* ---- what is left behind ---- */

struct census {
	unsigned fds, mappings;
};

static struct census take_census(void)
{
	struct census c = { 0 };
	DIR *d = opendir("/proc/self/fd");
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	assert_non_null(d);
	assert_non_null(maps);
	while (readdir(d))
		c.fds++;
	while (fgets(line, sizeof(line), maps))
		c.mappings += strstr(line, "/memfd:") != NULL;
	closedir(d);
	fclose(maps);
	return c;
}

static void expect_census(const struct census *before)
{
	struct census now = take_census();
	assert_int_equal(now.fds, before->fds);
	assert_int_equal(now.mappings, before->mappings);
}

/* ---- a client that makes one of each ---- */

struct client {
	struct fake_daemon *d;
	struct uroce_context *ctx;
	struct uroce_channel *ch;
	struct uroce_cq *cq;
	struct uroce_pd *pd;
	struct uroce_qp *qp;
	bool is_impatient;
};

static int open_context(struct client *c)
{
	struct uroce_open_attr attr = fake_open_attr(c->d->f);
	const struct session_ops *ops;
	struct client_log log;
	void *session;
	int err;
	attr.log_level = 2; /* warnings */
	context_log_init(&log, &attr);
	err = served_open(&log, c->d->path, c->is_impatient ? &little : &much, &ops, &session);
	return err ? err : context_open(ops, session, &attr, &c->ctx);
}

static int create_objects(struct client *c)
{
	struct uroce_qp_init init = { .cap = { 8, 8, 1, 1, 0 } };
	int err = uroce_channel_create(c->ctx, &c->ch);
	if (!err)
		err = uroce_cq_create(c->ctx, 16, c->ch, NULL, &c->cq);
	if (!err)
		err = uroce_pd_create(c->ctx, &c->pd);
	init.send_cq = init.recv_cq = c->cq;
	return err ? err : uroce_qp_create(c->pd, &init, &c->qp);
}

static void destroy_objects(struct client *c)
{
	assert_int_equal(uroce_qp_destroy(c->qp), 0);
	assert_int_equal(uroce_pd_destroy(c->pd), 0);
	assert_int_equal(uroce_cq_destroy(c->cq), 0);
	assert_int_equal(uroce_channel_destroy(c->ch), 0);
}

static struct client open_client_of(bool is_impatient)
{
	struct uroce_qp_attr attr = { .state = UROCE_QP_RTS };
	struct client c = { .d = fake_daemon_new(), .is_impatient = is_impatient };
	fake_daemon_serve(c.d);
	assert_int_equal(open_context(&c), 0);
	assert_int_equal(create_objects(&c), 0);
	assert_int_equal(uroce_qp_modify(c.qp, &attr, UROCE_QP_STATE), 0);
	return c;
}

static struct client open_client(void)
{
	return open_client_of(false);
}

static void close_client(struct client *c)
{
	uroce_close(c->ctx);
	fake_daemon_wait(c->d);
	fake_daemon_free(c->d);
}

static int post(struct client *c, uint64_t wr_id)
{
	struct uroce_send_wr wr = { .wr_id = wr_id, .opcode = UROCE_OP_SEND };
	return uroce_post_send(c->qp, &wr, 1);
}

/* ---- as it should be ---- */

static void test_dialogue(void **state)
{
	struct census before = take_census();
	struct client c = open_client();
	struct uroce_device_attr device;
	struct uroce_cq *fired;
	struct uroce_wc wc;
	struct uroce_mr *mr;
	uint8_t *pool;
	eventfd_t rung;
	assert_int_equal(c.d->sent, SENDINGS + 1);
	assert_int_equal(c.d->hello.version_min, CTL_VERSION_MIN);
	assert_int_equal(c.d->hello.version_max, CTL_VERSION_MAX);
	assert_string_equal(c.d->hello.program, "test_served");
	assert_int_equal(uroce_query_device(c.ctx, &device), 0);
	assert_string_equal(device.name, "fake0");
	/* both see one memory */
	assert_int_equal(uroce_alloc(c.ctx, 5000, (void **)&pool), 0);
	strcpy((char *)pool, "from the client");
	assert_non_null(memmem(c.d->f->arena[1], FAKE_ARENA, "from the client", 16));
	assert_int_equal(uroce_mr_register(c.pd, pool, 100, 0, &mr), 0);
	assert_int_equal(post(&c, 42), 1);
	assert_int_equal(fake_tail(&c.d->f->qp[0].sq), 1);
	/* an event, and a wake-up */
	assert_int_equal(uroce_cq_arm(c.cq, false), 0);
	fake_finish(c.d->f, &c.d->f->cq[0], 0, false);
	assert_int_equal(uroce_channel_get_event(c.ch, &fired), 0);
	assert_ptr_equal(fired, c.cq);
	uroce_cq_ack_events(fired, 1);
	assert_int_equal(uroce_cq_poll(c.cq, &wc, 1), 1);
	assert_int_equal(wc.wr_id, 42);
	assert_int_equal(eventfd_read(c.d->wake, &rung), -1);
	atomic_store(&c.d->f->page->sleeping, 1);
	assert_int_equal(post(&c, 43), 1);
	assert_int_equal(eventfd_read(c.d->wake, &rung), 0);
	assert_int_equal(uroce_mr_deregister(mr), 0);
	destroy_objects(&c);
	assert_int_equal(c.d->f->lines, 0);
	uroce_close(c.ctx);
	fake_daemon_wait(c.d);
	assert_int_equal(c.d->byes, 1);
	assert_int_equal(c.d->bye.code, CTL_BYE_DONE);
	assert_int_equal(fake_count(c.d->f, ABI_DESTROY_CHANNEL), 1);
	fake_daemon_free(c.d);
	expect_census(&before);
}

static void test_uroce_open(void **state)
{
	struct fake_daemon *d = fake_daemon_new();
	struct uroce_open_attr attr = fake_open_attr(d->f);
	struct uroce_context *ctx;
	char device[128];
	snprintf(device, sizeof(device), "unix:%s", d->path);
	fake_daemon_serve(d);
	assert_int_equal(uroce_open(device, &attr, &ctx), 0);
	assert_int_equal(uroce_engine_poll(ctx), -EOPNOTSUPP);
	uroce_close(ctx);
	fake_daemon_wait(d);
	fake_daemon_free(d);
}

/* What the session holds goes with an exec, and a wake-up that nobody takes, or can take any more, is nothing to wait for. */
static void test_descriptors(void **state)
{
	struct client c;
	bool was_open[256];
	for (int fd = 0; fd < 256; fd++)
		was_open[fd] = fcntl(fd, F_GETFD) >= 0;
	c = open_client();
	for (int fd = 0; fd < 256; fd++)
		assert_true(was_open[fd] || fcntl(fd, F_GETFD) < 0 || fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_false(fcntl(uroce_channel_fd(c.ch), F_GETFL) & O_NONBLOCK);
	assert_false(fcntl(uroce_async_fd(c.ctx), F_GETFL) & O_NONBLOCK);
	atomic_store(&c.d->f->page->sleeping, 1);
	assert_int_equal(eventfd_write(c.d->wake, UINT64_MAX - 1), 0); /* it is full */
	for (unsigned i = 0; i < 3; i++)
		c.ctx->ops->wake(c.ctx->session);
	close(c.d->wake);
	c.d->wake = -1;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(post(&c, i), 1);
	destroy_objects(&c);
	close_client(&c);
}

/* A channel's fd closes with the channel, and is left alone when the request was refused. */
static void test_channels(void **state)
{
	struct census before = take_census(), open;
	struct client c = open_client();
	struct uroce_channel *ch[10];
	open = take_census();
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(uroce_channel_create(c.ctx, &ch[i]), 0);
	for (unsigned i = 0; i < 10; i++) {
		int fd = uroce_channel_fd(ch[i * 3 % 10]);
		assert_int_equal(uroce_channel_destroy(ch[i * 3 % 10]), 0);
		assert_int_equal(fcntl(fd, F_GETFD), -1);
	}
	assert_int_equal(take_census().fds, open.fds + 20); /* both ends, the daemon's */
	assert_int_equal(uroce_channel_create(c.ctx, &ch[0]), 0);
	destroy_objects(&c);
	close_client(&c);
	expect_census(&before);
}

/* ---- everything that can be wrong ---- */

/* What the client gets of a daemon that does one thing wrong, somewhere on the way to a QP; lines and errors are checked. */
static int run(unsigned at, enum mischief how, int arg, void (*twist)(struct fake_daemon *, struct ctl_message *), char *line, size_t len)
{
	struct census before = take_census();
	struct client c = { .d = fake_daemon_new(), .is_impatient = how == STAY_SILENT };
	struct uroce_device_attr device;
	int err;
	c.d->at = at;
	c.d->how = how;
	c.d->arg = arg;
	c.d->twist = twist;
	fake_daemon_serve(c.d);
	err = open_context(&c);
	if (!err) {
		err = create_objects(&c);
		assert_int_equal(err, -ENODEV);
		assert_true(at >= AT_DEVICE);
		/* and so it stays, without a further line */
		assert_int_equal(uroce_query_device(c.ctx, &device), -ENODEV);
		assert_int_equal(uroce_pd_create(c.ctx, &c.pd), -ENODEV);
		assert_true(engine_is_dead(c.ctx->page, c.ctx->life));
		uroce_close(c.ctx);
	}
	fake_daemon_wait(c.d);
	if (c.d->f->lines != 1)
		fail_msg("message %u, mischief %d(%d): %u lines, the last is \"%s\"", at, how, arg, c.d->f->lines, c.d->f->line);
	snprintf(line, len, "%s", c.d->f->line);
	assert_non_null(strstr(line, c.d->path));
	/* The daemon hears that it was too bad to talk to, but not in answer to a BYE. */
	if (how == SAY_BYE || how <= SEND_TWISTED)
		assert_int_equal(c.d->byes, how != SAY_BYE);
	fake_daemon_free(c.d);
	expect_census(&before);
	return err;
}

static void expect(unsigned at, enum mischief how, int arg, int err, const char *words)
{
	char line[512];
	int got = run(at, how, arg, NULL, line, sizeof(line));
	if (got != (at < AT_DEVICE ? err : -ENODEV) || !strstr(line, words))
		fail_msg("message %u, mischief %d(%d): error %d, \"%s\"; wanted %d, \"%s\"", at, how, arg, got, line, err, words);
}

/* The type that each message has, and another that would be as good. */
static const struct {
	enum ctl_type type, other;
} sendings[SENDINGS] = {
	[AT_WELCOME] = { CTL_WELCOME, CTL_WELCOME },
	[AT_WAKE] = { CTL_WAKE, CTL_WAKE },
	[AT_ASYNC] = { CTL_ASYNC, CTL_ASYNC },
	[AT_REGION] = { CTL_REGION, CTL_REGION },
	[AT_READY] = { CTL_READY, CTL_READY },
	[AT_DEVICE] = { CTL_REPLY, CTL_REGION },
	[AT_CHANNEL] = { CTL_CHANNEL, CTL_REGION },
	[AT_CHANNEL_REPLY] = { CTL_REPLY, CTL_REGION },
	[AT_CQ_REGION] = { CTL_REGION, CTL_REPLY },
	[AT_CQ_REPLY] = { CTL_REPLY, CTL_REGION },
	[AT_PD_REPLY] = { CTL_REPLY, CTL_REGION },
	[AT_QP_REPLY] = { CTL_REPLY, CTL_REGION },
};

static void test_other_messages(void **state)
{
	for (unsigned at = 0; at < SENDINGS; at++) {
		for (int type = 0; type < CTL_BYE; type++) {
			bool is_taken = type == (int)sendings[at].type || type == (int)sendings[at].other;
			if (is_taken)
				continue;
			if (at == AT_CHANNEL && type == CTL_REPLY)
				expect(at, SEND_OTHER, type, -EPROTO, "no descriptor for it");
			else
				expect(at, SEND_OTHER, type, -EPROTO,
					ctl_rows[type].is_from_daemon ? ctl_rows[type].name : "from the wrong side");
		}
	}
}

/* Where only one kind of file is right: which, and what is said of others. */
static const struct {
	int file;
	const char *words;
} right_files[CTL_TYPE_COUNT] = {
	[CTL_WAKE] = { FILE_EVENTFD, "another file than an eventfd" },
	[CTL_ASYNC] = { FILE_EVENTS, "another file than the end of a channel" },
	[CTL_CHANNEL] = { FILE_EVENTS, "another file than the end of a channel" },
};

static void test_other_files(void **state)
{
	for (unsigned at = 0; at < SENDINGS; at++) {
		enum ctl_type type = sendings[at].type;
		for (int which = 0; which < OTHER_FILES && ctl_rows[type].has_fd; which++)
			if (!right_files[type].words || which != right_files[type].file)
				expect(at, SEND_OTHER_FILE, which, -EPROTO, right_files[type].words ? right_files[type].words : "cannot be mapped");
	}
}

static void test_no_messages(void **state)
{
	for (unsigned at = 0; at < SENDINGS; at++)
		for (int fds = 0; fds < 3; fds++)
			expect(at, SEND_NO_MESSAGE, fds, -EPROTO, "shorter than a header");
}

static void test_byes(void **state)
{
	static const int errors[CTL_BYE_CODE_COUNT + 1] = { -ENODEV, -ENODEV, -EPROTONOSUPPORT, -EPROTO, -EUSERS, -ENODEV, -EIO, -ENODEV };
	for (unsigned at = 0; at < SENDINGS; at++)
		for (int code = 0; code <= CTL_BYE_CODE_COUNT; code++)
			expect(at, SAY_BYE, code, errors[code], ": that is why xxx");
	expect(AT_WELCOME, SAY_BYE, CTL_BYE_VERSION, -EPROTONOSUPPORT, "this one speaks 1 to 1");
}

static void test_hang_up(void **state)
{
	for (unsigned at = 0; at < SENDINGS; at++)
		expect(at, HANG_UP, 0, -ENODEV, "closed the connection");
}

static void test_silence(void **state)
{
	for (unsigned at = 0; at < SENDINGS; at++)
		expect(at, STAY_SILENT, 0, -ETIMEDOUT, at < AT_DEVICE ? "within 400 ms" : "within 500 ms");
}

static void test_death(void **state)
{
	for (unsigned at = AT_WAKE; at < SENDINGS; at++) {
		expect(at, DIE_IN_PART, 0, -ENODEV, "has died");
		expect(at, DIE, 0, -ENODEV, "the daemon "); /* closed, or died: whichever is seen first */
	}
}

static uint64_t get_now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void test_let_go(void **state)
{
	for (unsigned at = AT_READY; at < SENDINGS; at++) {
		uint64_t start = get_now_ms();
		expect(at, LET_GO, 0, -ENODEV, "without a word");
		assert_in_range(get_now_ms() - start, 0, 5000); /* not all of its patience */
		expect(at, LET_GO_BYE, 0, -ENODEV, "that is why");
	}
}

static void *turn_away(void *arg)
{
	struct fake_daemon *d = arg;
	struct ctl_message bye = { .bye = { CTL_BYE_LIMIT, 0, "64 clients are here already" } };
	int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
	struct pollfd wait = { fd, POLLIN, 0 };
	poll(&wait, 1, 1000);
	ctl_send(fd, CTL_BYE, &bye, -1);
	close(fd);
	return NULL;
}

/* A daemon that turns a client away without having read its HELLO: what it said is heard all the same. */
static void test_turned_away(void **state)
{
	struct client c = { .d = fake_daemon_new() };
	assert_int_equal(pthread_create(&c.d->thread, NULL, turn_away, c.d), 0);
	assert_int_equal(open_context(&c), -EUSERS);
	assert_int_equal(c.d->f->lines, 1);
	assert_non_null(strstr(c.d->f->line, "64 clients are here already"));
	fake_daemon_wait(c.d);
	fake_daemon_free(c.d);
}

/* ---- the right message with wrong contents ---- */

static void twist_version_0(struct fake_daemon *d, struct ctl_message *m) { m->welcome.version = 0; }
static void twist_version_9(struct fake_daemon *d, struct ctl_message *m) { m->welcome.version = 9; }
static void twist_features(struct fake_daemon *d, struct ctl_message *m) { m->welcome.features = 4; }
static void twist_arena(struct fake_daemon *d, struct ctl_message *m) { m->region.arena++; }
static void twist_far_arena(struct fake_daemon *d, struct ctl_message *m) { m->region.arena = UINT32_MAX; }
static void twist_more_bytes(struct fake_daemon *d, struct ctl_message *m) { m->region.bytes += 4096; }
static void twist_fewer_bytes(struct fake_daemon *d, struct ctl_message *m) { m->region.bytes -= 4096; }
static void twist_no_bytes(struct fake_daemon *d, struct ctl_message *m) { m->region.bytes = 0; }
static void twist_all_bytes(struct fake_daemon *d, struct ctl_message *m) { m->region.bytes = UINT64_MAX; }

static void test_wrong_contents(void **state)
{
	static const struct {
		unsigned at;
		void (*twist)(struct fake_daemon *d, struct ctl_message *m);
		int err;
		const char *words;
	} rows[] = {
		{ AT_WELCOME, twist_version_0, -EPROTONOSUPPORT, "version 0" },
		{ AT_WELCOME, twist_version_9, -EPROTONOSUPPORT, "version 9 of the control protocol, this library speaks 1 to 1" },
		{ AT_WELCOME, twist_features, -EPROTO, "features 0x4" },
		{ AT_REGION, twist_arena, -EPROTO, "arena 1, and the next one is 0" },
		{ AT_REGION, twist_far_arena, -EPROTO, "arena 4294967295" },
		{ AT_REGION, twist_more_bytes, -EPROTO, "cannot be mapped" },
		{ AT_REGION, twist_fewer_bytes, -EPROTO, "too few" },
		{ AT_REGION, twist_no_bytes, -EPROTO, "too few" },
		{ AT_REGION, twist_all_bytes, -EPROTO, "cannot be mapped" },
		{ AT_CQ_REGION, twist_arena, -ENODEV, "arena 2, and the next one is 1" },
		{ AT_CQ_REGION, twist_fewer_bytes, -ENODEV, "cannot be mapped" },
	};
	char line[512];
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(run(rows[i].at, SEND_TWISTED, 0, rows[i].twist, line, sizeof(line)), rows[i].err);
		if (!strstr(line, rows[i].words))
			fail_msg("\"%s\" does not say \"%s\"", line, rows[i].words);
	}
}

static void refuse_reply(struct fake_daemon *d, struct ctl_message *m)
{
	m->reply.status = -EDQUOT;
	strcpy(m->reply.text, "no more of these");
}

/* A request that is refused, even after its descriptor came, is no end. */
static void test_refused_channel(void **state)
{
	struct census before = take_census(), open;
	struct client c = { .d = fake_daemon_new() };
	c.d->at = AT_CHANNEL_REPLY;
	c.d->how = SEND_TWISTED;
	c.d->twist = refuse_reply;
	fake_daemon_serve(c.d);
	assert_int_equal(open_context(&c), 0);
	open = take_census();
	assert_int_equal(uroce_channel_create(c.ctx, &c.ch), -EDQUOT);
	assert_string_equal(c.d->f->line, "no more of these");
	assert_int_equal(take_census().fds, open.fds + 2);
	assert_int_equal(uroce_channel_create(c.ctx, &c.ch), 0);
	close_client(&c);
	expect_census(&before);
}

/* ---- the end, seen from outside of any call ---- */

static void *get_channel_event(void *arg)
{
	struct client *c = arg;
	struct uroce_cq *cq;
	return (void *)(intptr_t)uroce_channel_get_event(c->ch, &cq);
}

static void *get_async_event(void *arg)
{
	struct client *c = arg;
	struct uroce_async_event event;
	int err = uroce_async_get_event(c->ctx, &event);
	return (void *)(intptr_t)(err ? err : 1 + (int)event.type);
}

#define READERS 3

static void block_readers(struct client *c, pthread_t threads[READERS])
{
	assert_int_equal(pthread_create(&threads[0], NULL, get_channel_event, c), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, get_async_event, c), 0);
	assert_int_equal(pthread_create(&threads[2], NULL, get_async_event, c), 0);
	usleep(20000);
}

/* One of the readers of asynchronous events is told of the death. */
static void expect_readers_return(pthread_t threads[READERS])
{
	unsigned told = 0;
	void *result;
	for (unsigned i = 0; i < READERS; i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		told += result == (void *)(intptr_t)(1 + UROCE_EVENT_DEVICE_FATAL);
		assert_true((intptr_t)result == -ENODEV || (i && told == 1));
	}
	assert_int_equal(told, 1);
}

static void test_blocked_getters_return(void **state)
{
	struct client c = open_client();
	pthread_t threads[READERS];
	block_readers(&c, threads);
	fake_daemon_die(c.d, true);
	expect_readers_return(threads);
	close_client(&c);
}

/* A daemon that hangs has all its descriptors; whoever finds out wakes the readers, and who only polls the descriptors sees it too. */
static void test_blocked_getters_return_when_it_hangs(void **state)
{
	struct census before = take_census();
	struct client c = open_client_of(true);
	struct uroce_device_attr device;
	pthread_t threads[READERS];
	c.d->at = c.d->sent;
	c.d->how = STAY_SILENT;
	block_readers(&c, threads);
	struct pollfd fds[] = { { uroce_channel_fd(c.ch), POLLIN, 0 }, { uroce_async_fd(c.ctx), POLLIN, 0 } };
	assert_int_equal(poll(fds, 2, 0), 0);
	assert_int_equal(uroce_query_device(c.ctx, &device), -ENODEV);
	assert_int_equal(poll(fds, 2, 0), 2);
	expect_readers_return(threads);
	destroy_objects(&c);
	close_client(&c);
	expect_census(&before);
}

/* Seen by who polls and posts, without a call; calls and destruction then do not wait for anybody. */
static void test_death_while_polling(void **state)
{
	struct census before = take_census();
	for (unsigned is_whole = 0; is_whole < 2; is_whole++) {
		struct client c = open_client();
		struct census open;
		struct uroce_device_attr device;
		struct uroce_wc wc[4];
		void *p;
		for (unsigned i = 0; i < 5; i++)
			assert_int_equal(post(&c, 100 + i), 1);
		fake_finish(c.d->f, &c.d->f->cq[0], 0, false);
		assert_int_equal(uroce_cq_poll(c.cq, wc, 1), 1);
		fake_finish(c.d->f, &c.d->f->cq[0], 0, false);
		atomic_store(&c.d->f->page->sleeping, 1);
		fake_daemon_die(c.d, is_whole);
		assert_int_equal(post(&c, 105), -ENODEV);
		assert_int_equal(uroce_cq_poll(c.cq, wc, 4), 1);
		assert_int_equal(wc[0].status, UROCE_WC_SUCCESS);
		assert_int_equal(wc[0].wr_id, 101);
		assert_int_equal(uroce_cq_poll(c.cq, wc, 4), 3);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(wc[i].status, UROCE_WC_WR_FLUSH_ERR);
			assert_int_equal(wc[i].wr_id, 102 + i);
		}
		assert_int_equal(uroce_cq_poll(c.cq, wc, 4), -ENODEV);
		assert_int_equal(uroce_cq_arm(c.cq, false), -ENODEV);
		assert_int_equal(c.d->f->lines, 0);
		open = take_census();
		assert_int_equal(uroce_query_device(c.ctx, &device), -ENODEV);
		assert_int_equal(c.d->f->lines, 1);
		assert_int_equal(take_census().fds, open.fds - 1); /* the socket */
		assert_int_equal(uroce_alloc(c.ctx, 4096, &p), -ENODEV);
		destroy_objects(&c);
		assert_int_equal(take_census().fds, open.fds - 2); /* the channel's */
		assert_int_equal(c.d->f->lines, 1);
		close_client(&c);
		expect_census(&before);
	}
}

/* The reason that was given while nobody listened is told at the latest when the context is closed. */
static void test_reason_is_told_at_close(void **state)
{
	struct client c = open_client();
	struct fake_engine *f = c.d->f;
	struct ctl_message bye = { .header = { CTL_BYE, sizeof(bye.bye) }, .bye = { CTL_BYE_SHUTDOWN, 0, "going down for repairs" } };
	struct uroce_wc wc;
	atomic_store(&f->page->dead, 1);
	assert_int_equal(send(c.d->socket, &bye, sizeof(bye.header) + sizeof(bye.bye), 0), sizeof(bye.header) + sizeof(bye.bye));
	shutdown(c.d->socket, SHUT_WR);
	assert_int_equal(uroce_cq_poll(c.cq, &wc, 1), -ENODEV);
	uroce_close(c.ctx);
	assert_int_equal(f->lines, 1);
	assert_non_null(strstr(f->line, "ended the session (shutdown): going down for repairs"));
	fake_daemon_wait(c.d);
	fake_daemon_free(c.d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dialogue),
		cmocka_unit_test(test_uroce_open),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_channels),
		cmocka_unit_test(test_other_messages),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_no_messages),
		cmocka_unit_test(test_byes),
		cmocka_unit_test(test_hang_up),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_let_go),
		cmocka_unit_test(test_turned_away),
		cmocka_unit_test(test_wrong_contents),
		cmocka_unit_test(test_refused_channel),
		cmocka_unit_test(test_blocked_getters_return),
		cmocka_unit_test(test_blocked_getters_return_when_it_hangs),
		cmocka_unit_test(test_death_while_polling),
		cmocka_unit_test(test_reason_is_told_at_close),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

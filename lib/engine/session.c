/* SPDX-License-Identifier: BSD-3-Clause */
/* What liburoce calls when the device string says embedded: or inline: (client/session.h). Owns one client of a core and one hold on its engine; every call becomes mail to the thread that drives the engine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "core.h"
#include "engine.h"
#include "session.h"
#include "uroce.h"

#define DETACH_OBJECTS 64u
#define EXPORTED __attribute__((visibility("default")))

struct engine_session {
	struct engine *engine;
	struct engine_core *core; /* all objects of the client are on this one */
	struct core_client *client;
	struct log log;
	void (*log_line)(void *arg, int level, const char *line);
	void *log_arg;
	int async_fd;
};

struct session_mail {
	struct mail mail;
	struct engine_session *s;
	const struct abi_req *req;
	struct abi_rep *rep;
	uint32_t arena;
	void *base;
	uint64_t bytes;
	int err;
};

static int carry_out(struct engine_session *s, struct session_mail *m, void (*run)(struct mail *, uint64_t))
{
	m->mail.run = run;
	m->s = s;
	engine_carry_out(s->core, &m->mail);
	return m->err;
}

static void run_call(struct mail *mail, uint64_t now_ns)
{
	struct session_mail *m = (struct session_mail *)mail;
	core_control(m->s->client, now_ns, m->req, m->rep);
}

/* Memory is made and faulted in here and not by the thread that drives the engine. */
static int call(void *session, const struct abi_req *req, struct abi_rep *rep)
{
	struct engine_session *s = session;
	for (;;) {
		struct session_mail m = { .req = req, .rep = rep };
		uint32_t arena;
		int err = carry_out(s, &m, run_call);
		if (err || rep->status != -ENOBUFS)
			return err;
		err = core_client_grow(s->client, &arena);
		if (err == -ENOENT) /* the reply means something else */
			return 0;
		if (err) {
			rep->status = err;
			snprintf(rep->text, sizeof(rep->text), "no memory for a further region: %s", strerror(-err));
			return 0;
		}
	}
}

static void run_region(struct mail *mail, uint64_t now_ns)
{
	struct session_mail *m = (struct session_mail *)mail;
	int fd;
	m->err = core_client_region(m->s->client, m->arena, &m->base, &m->bytes, &fd);
}

static int region(void *session, uint32_t arena, void **base, uint64_t *bytes)
{
	struct session_mail m = { .arena = arena };
	int err = carry_out(session, &m, run_region);
	*base = m.base;
	*bytes = m.bytes;
	return err;
}

static void wake(void *session)
{
	engine_wake(((struct engine_session *)session)->core);
}

static int poll_engine(void *session)
{
	return engine_poll(((struct engine_session *)session)->core);
}

static int async_fd(void *session)
{
	return ((struct engine_session *)session)->async_fd;
}

struct engine_core *engine_core_of_session(void *session)
{
	return ((struct engine_session *)session)->core;
}

struct engine *engine_of_session(void *session)
{
	return ((struct engine_session *)session)->engine;
}

static void run_attach(struct mail *mail, uint64_t now_ns)
{
	core_client_attach(((struct session_mail *)mail)->s->client);
}

static int add_client(struct engine_session *s)
{
	struct session_mail m = { 0 };
	s->core = engine_core_choose(s->engine);
	int err = core_client_new(engine_core_stack(s->core), &s->client);
	if (err) {
		engine_core_leave(s->core);
		return err;
	}
	s->async_fd = core_client_async_fd(s->client);
	struct core_who who = { .pid = getpid(), .uid = getuid(), .since_ns = clock_monotonic() };
	snprintf(who.program, sizeof(who.program), "%s", program_invocation_short_name);
	core_client_introduce(s->client, &who);
	return carry_out(s, &m, run_attach);
}

static void run_detach(struct mail *mail, uint64_t now_ns)
{
	struct session_mail *m = (struct session_mail *)mail;
	m->err = !core_client_detach(m->s->client, DETACH_OBJECTS);
}

static void close_session(void *session)
{
	struct engine_session *s = session;
	struct session_mail m = { 0 };
	while (carry_out(s, &m, run_detach)) /* in pieces: others want their turn too */
		;
	core_client_free(s->client);
	engine_core_leave(s->core);
	engine_close(s->engine, &s->log);
	free(s);
}

static const struct session_ops embedded_ops = { .call = call, .region = region, .wake = wake, .async_fd = async_fd, .close = close_session };
static const struct session_ops inline_ops = { .call = call, .region = region, .wake = wake, .poll = poll_engine, .async_fd = async_fd, .close = close_session };

static void write_line(void *arg, enum log_level level, const char *line)
{
	struct engine_session *s = arg;
	s->log_line(s->log_arg, (int)level, line);
}

static void set_log(struct engine_session *s, const struct uroce_open_attr *attr)
{
	const char *wanted = getenv("UROCE_LOG");
	s->log.arg = s; /* tells this hold on the engine from others, also without a sink */
	s->log.level = LOG_WARN;
	if (attr && attr->log_level > 0)
		s->log.level = (enum log_level)(attr->log_level - 1);
	else if (wanted)
		log_level_parse(wanted, &s->log.level);
	if (!attr || !attr->log)
		return;
	s->log_line = attr->log;
	s->log_arg = attr->log_arg;
	s->log.sink = write_line;
}

EXPORTED uroce_engine_session_open_fn uroce_engine_session_open;

EXPORTED int uroce_engine_session_open(const char *device, const struct uroce_open_attr *attr, const struct session_ops **ops, void **session)
{
	struct engine_session *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	set_log(s, attr);
	int err = engine_open(&s->engine, device, &s->log);
	if (!err) {
		err = add_client(s);
		if (err) {
			log_write(&s->log, LOG_ERROR, "%s: cannot add a client: %s", device, strerror(-err));
			engine_close(s->engine, &s->log);
		}
	}
	if (err) {
		free(s);
		return err;
	}
	*ops = engine_mode(s->engine) == DEVICE_INLINE ? &inline_ops : &embedded_ops;
	*session = s;
	return 0;
}

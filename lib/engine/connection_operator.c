/* SPDX-License-Identifier: BSD-3-Clause */
/* What an operator asks for: one table, message to command. Who may ask is looked at for each message; what is asked is done by the control thread, but for a report, which can be long and so is the builder's.
 * Owns the one capture that operators have, in the name of the one who started it (server.capturer).
 * Invariant: an operator has no core, no memory and no place among the clients; each of its messages gets one answer. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture.h"
#include "engine_change.h"
#include "engine_core.h"
#include "gid.h"
#include "packet.h"
#include "server_inside.h"

#define VLAN_MAX 4094u

bool connection_may_operate(const struct ctl_peer *peer)
{
	return !peer->uid || peer->uid == geteuid();
}

/* ---- answers ---- */

/* Status 0: no text. An error goes into the text and, of what would have changed something, nowhere else: it is the operator's. */
__attribute__((format(printf, 4, 5))) static void answer(struct connection *c, int status, uint64_t value, const char *format, ...)
{
	struct ctl_message m;
	va_list args;
	memset(&m, 0, sizeof(m));
	m.answer.status = status;
	m.answer.value = value;
	va_start(args, format);
	vsnprintf(m.answer.text, sizeof(m.answer.text), format, args);
	va_end(args);
	connection_send(c, CTL_ANSWER, &m, -1);
}

static void refuse(struct connection *c, const char *why)
{
	server_note(c->server, SERVER_REFUSED_OPERATOR, LOG_WARN, "pid %ld uid %u may not operate this daemon: %s", (long)c->peer.pid, c->peer.uid, why);
}

/* Who changed what is in the log. */
__attribute__((format(printf, 2, 3))) static void note_change(struct connection *c, const char *format, ...)
{
	char text[160];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	server_note(c->server, SERVER_OPERATED, LOG_INFO, "operator pid %ld uid %u %s: %s", (long)c->peer.pid, c->peer.uid, c->program, text);
}

/* ---- coming and going ---- */

static void become_operator(struct connection *c, const struct ctl_message *m, int fd)
{
	struct server *s = c->server;
	if (!c->is_operator && s->n_operators >= OPERATORS_MAX) {
		refuse(c, "there are as many operators as there may be");
		answer(c, -EUSERS, 0, "the daemon has %u operators, as many as it may", s->n_operators);
		return;
	}
	if (!connection_meet(c, &m->operator))
		return;
	if (!c->is_operator) {
		connection_leave_user(c);
		c->is_operator = true;
		s->n_operators++;
	}
	connection_enter(c, CONNECTION_OPERATOR, 0);
	answer(c, 0, c->version, "%s", "");
}

void connection_operate_no_more(struct connection *c)
{
	struct server *s = c->server;
	uint64_t frames;
	if (s->capturer != c)
		return;
	s->capturer = NULL;
	int err = engine_capture_stop(s->engine, &frames);
	note_change(c, "its capture ends with it, %llu frames%s%s", (unsigned long long)frames, err ? ": " : "", err ? strerror(-err) : "");
}

/* ---- SHOW ---- */

static bool find_noun(const char *name, enum report_noun *noun)
{
	for (*noun = 0; *noun < REPORT_NOUNS; ++*noun)
		if (!strncmp(report_noun_name(*noun), name, CTL_NOUN_MAX))
			return true;
	return false;
}

/* Through a stream: jansson writes token by token, and a call for each would take seconds for thousands of QPs. */
static int write_rows(int file, const json_t *rows)
{
	int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
	FILE *f = own < 0 ? NULL : fdopen(own, "w");
	if (!f) {
		int err = -errno;
		if (own >= 0)
			close(own);
		return err;
	}
	int err = json_dumpf(rows, f, JSON_COMPACT) ? -EIO : 0;
	return fclose(f) && !err ? -EIO : err;
}

/* The report as a file in memory that nobody can change any more. */
static int write_report(struct engine *e, enum report_noun noun, int *fd, uint64_t *bytes)
{
	json_t *rows = report(e, noun);
	if (!rows)
		return -errno;
	int file = memfd_create("uroce-report", MFD_CLOEXEC | MFD_ALLOW_SEALING), err = file < 0 ? -errno : 0;
	if (!err)
		err = write_rows(file, rows);
	off_t end = err ? 0 : lseek(file, 0, SEEK_END);
	if (!err && (end <= 0 || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)))
		err = -EIO;
	json_decref(rows);
	if (err && file >= 0)
		close(file);
	*fd = file;
	*bytes = (uint64_t)end;
	return err;
}

static void work_report(struct job *j)
{
	struct connection *c = connection_of_job(j);
	c->job_err = write_report(c->server->engine, c->noun, &c->fd, &c->bytes);
}

static void on_reported(struct job *j)
{
	struct connection *c = connection_of_job(j);
	struct ctl_message m = { .report.bytes = c->bytes };
	c->has_job = false;
	if (c->state != CONNECTION_ENDING) {
		connection_enter(c, CONNECTION_OPERATOR, 0);
		if (c->job_err)
			answer(c, c->job_err, 0, "the report cannot be made: %s", strerror(-c->job_err));
		else
			connection_send(c, CTL_REPORT, &m, c->fd);
	}
	if (!c->job_err)
		close(c->fd);
}

static void show(struct connection *c, const struct ctl_message *m, int fd)
{
	if (find_noun(m->show.noun, &c->noun))
		connection_post_job(c, NULL, work_report, on_reported);
	else
		answer(c, -EINVAL, 0, "expected device, port, gid, neigh, client, qp, cq, mr, drops or cores");
}

/* ---- GID_ADD, GID_DEL ---- */

/* What to do about it. */
static const char *explain_gid(int err)
{
	static const struct {
		int err;
		const char *why;
	} rows[] = {
		{ -EPERM, "the port's addresses are those of its kernel interface: change them there (ip addr)" },
		{ -EEXIST, "the port has this address already" },
		{ -ENOSPC, "the port's table of GIDs is full" },
		{ -ENOENT, "there is no GID of this index" },
		{ -EINVAL, "expected a unicast address, a prefix length that fits it, and a VLAN of 1 to 4094, if any" },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].err == err)
			return rows[i].why;
	return err ? strerror(-err) : "";
}

static void add_gid(struct connection *c, const struct ctl_message *m, int fd)
{
	const struct ctl_gid_add *a = &m->gid_add;
	char text[GID_TEXT_MAX];
	uint32_t index = 0;
	struct gid g;
	memcpy(g.b, a->gid, sizeof(g.b));
	int err = a->vlan > VLAN_MAX ? -EINVAL : engine_gid_add(c->server->engine, &g, a->vlan ? (uint16_t)a->vlan : VLAN_NONE, a->prefix_len, &index);
	if (!err)
		note_change(c, "GID %u is %s/%u now, VLAN %u", index, gid_format(&g, text), a->prefix_len, a->vlan);
	answer(c, err, index, "%s", explain_gid(err));
}

static void delete_gid(struct connection *c, const struct ctl_message *m, int fd)
{
	int err = engine_gid_remove(c->server->engine, m->gid_del.index);
	if (!err)
		note_change(c, "GID %u is gone", m->gid_del.index);
	answer(c, err, 0, "%s", explain_gid(err));
}

/* ---- CLIENT_KILL ---- */

static void kill_client(struct connection *c, const struct ctl_message *m, int fd)
{
	struct connection *k = c->server->clients;
	while (k && !(k->is_attached && k->state != CONNECTION_ENDING && core_client_id(k->client) == m->client_kill.id))
		k = k->next;
	if (!k) {
		answer(c, -ENOENT, 0, "there is no client %llu", (unsigned long long)m->client_kill.id);
		return;
	}
	note_change(c, "ends client %llu, pid %ld uid %u %s", (unsigned long long)m->client_kill.id, (long)k->peer.pid, k->peer.uid, k->program);
	connection_end(k, SERVER_ENDED_KILLED, CTL_BYE_KILLED, "an operator (pid %ld, uid %u) ended it", (long)c->peer.pid, c->peer.uid);
	answer(c, 0, 0, "%s", "");
}

/* ---- CAPTURE_START, CAPTURE_STOP ---- */

/* The file is emptied only when there can be a capture: it may be the one that another writes to. */
static int begin_capture(struct engine *e, int fd, uint32_t qpn)
{
	if (engine_core_has_capture(engine_core_at(e, 0)))
		return -EBUSY;
	return ftruncate(fd, 0) ? -errno : engine_capture_start_fd(e, fd, qpn);
}

static void start_capture(struct connection *c, const struct ctl_message *m, int fd)
{
	struct server *s = c->server;
	const char *why = capture_check_file(fd);
	if (why) {
		answer(c, -EINVAL, 0, "%s", why);
		return;
	}
	int err = begin_capture(s->engine, fd, m->capture_start.qpn);
	if (err == -EBUSY && s->capturer) {
		answer(c, err, 0, "another capture runs, of the operator with pid %ld", (long)s->capturer->peer.pid);
	} else if (err) {
		answer(c, err, 0, "%s", err == -EBUSY ? "the daemon was started with capture=, which goes on" : strerror(-err));
	} else {
		s->capturer = c;
		note_change(c, "captures QP 0x%x (0: all)", m->capture_start.qpn);
		answer(c, 0, 0, "%s", "");
	}
}

static void stop_capture(struct connection *c, const struct ctl_message *m, int fd)
{
	struct server *s = c->server;
	uint64_t frames = 0;
	if (s->capturer != c) {
		answer(c, -ENOENT, 0, "no capture of this operator's runs");
		return;
	}
	s->capturer = NULL;
	int err = engine_capture_stop(s->engine, &frames);
	note_change(c, "its capture has %llu frames", (unsigned long long)frames);
	answer(c, err, frames, "%s", err ? "the file could not be written to its end; it lacks the last frames" : "");
}

/* ---- the table ---- */

typedef void command_fn(struct connection *c, const struct ctl_message *m, int fd);
static command_fn *const commands[CTL_TYPE_COUNT] = {
	[CTL_OPERATOR] = become_operator,
	[CTL_SHOW] = show,
	[CTL_GID_ADD] = add_gid,
	[CTL_GID_DEL] = delete_gid,
	[CTL_CLIENT_KILL] = kill_client,
	[CTL_CAPTURE_START] = start_capture,
	[CTL_CAPTURE_STOP] = stop_capture,
};

void connection_operate(struct connection *c, const struct ctl_message *m, int fd)
{
	if (connection_has_unread(c))
		return;
	if (connection_may_operate(&c->peer)) {
		commands[m->header.type](c, m, fd);
		return;
	}
	refuse(c, "it is neither root nor this daemon's user");
	answer(c, -EPERM, 0, "expected root or user %u, whom this daemon runs as, to operate it", geteuid());
}

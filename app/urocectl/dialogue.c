/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the order of the dialogue: OPERATOR first, then one request and one answer at a time. Waiting, and the end of a talk, are talk.c's of the client library. */
#include "dialogue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "complain.h"
#include "memfd.h"

#define STEP_MS 5000u
#define REPORT_MS 30000u

static void write_line(void *arg, enum log_level level, const char *line)
{
	struct dialogue *d = arg;
	if (d->is_quiet)
		snprintf(d->kept, sizeof(d->kept), "%s", line);
	else
		complain_refused("%s", line);
}

/* Of an answer that is in order: whether it says yes. */
static bool take_answer(struct dialogue *d, struct ctl_message *m, struct ctl_answer *answer)
{
	m->answer.text[sizeof(m->answer.text) - 1] = 0;
	*answer = m->answer;
	if (answer->status >= 0)
		return true;
	log_write(&d->talk.log.log, LOG_ERROR, "unix:%s: the daemon refuses: %s", d->talk.path, answer->text[0] ? answer->text : strerror(-answer->status));
	return false;
}

/* Waits for one of two messages. */
static bool await(struct dialogue *d, unsigned ms, enum ctl_type type, enum ctl_type other, struct ctl_message *m, int *fd)
{
	if (talk_await(&d->talk, ms, m, fd))
		return false;
	if (m->header.type == type || m->header.type == other)
		return true;
	if (*fd >= 0)
		close(*fd);
	if (m->header.type == CTL_BYE)
		talk_on_bye(&d->talk, &m->bye);
	else
		talk_end(&d->talk, -EPROTO, "sent %s where %s was due", ctl_rows[m->header.type].name, ctl_rows[type].name);
	return false;
}

bool dialogue_ask(struct dialogue *d, enum ctl_type type, struct ctl_message *m, int fd, struct ctl_answer *answer)
{
	int none;
	return !talk_say_with(&d->talk, type, m, fd) && await(d, STEP_MS, CTL_ANSWER, CTL_ANSWER, m, &none) && take_answer(d, m, answer);
}

bool dialogue_open(struct dialogue *d, const char *path)
{
	struct ctl_message m = { .operator = { CTL_MAGIC, CTL_VERSION_MIN, CTL_VERSION_MAX, CTL_FEATURES, "urocectl" } };
	struct ctl_answer answer;
	*d = (struct dialogue){ .talk = { .path = strdup(path), .socket = -1, .log.log = { .sink = write_line, .arg = d, .level = LOG_WARN } } };
	if (!d->talk.path || dial(&d->talk.log.log, path, STEP_MS, &d->talk.socket)) {
		d->talk.is_over = true;
		return false;
	}
	return dialogue_ask(d, CTL_OPERATOR, &m, -1, &answer);
}

void dialogue_close(struct dialogue *d)
{
	talk_hang_up(&d->talk);
	free(d->talk.path);
	if (d->kept[0])
		complain_refused("%s", d->kept);
}

/* ---- reports ---- */

static bool read_report(struct dialogue *d, int fd, uint64_t bytes, json_t **rows)
{
	json_error_t error;
	void *text;
	if (ctl_memfd_map(fd, bytes, false, &text)) {
		talk_end(&d->talk, -EPROTO, "sent a report that cannot be mapped");
		return false;
	}
	*rows = json_loadb(text, bytes, 0, &error);
	munmap(text, bytes);
	if (json_is_array(*rows))
		return true;
	json_decref(*rows);
	talk_end(&d->talk, -EPROTO, "sent a report that is no list");
	return false;
}

bool dialogue_show(struct dialogue *d, const char *noun, json_t **rows)
{
	struct ctl_message m = { .show.noun = "" };
	struct ctl_answer answer;
	int fd;
	snprintf(m.show.noun, sizeof(m.show.noun), "%s", noun);
	if (talk_say(&d->talk, CTL_SHOW, &m) || !await(d, REPORT_MS, CTL_REPORT, CTL_ANSWER, &m, &fd))
		return false;
	if (m.header.type == CTL_ANSWER) {
		take_answer(d, &m, &answer);
		return false;
	}
	bool is_read = read_report(d, fd, m.report.bytes, rows);
	close(fd);
	return is_read;
}

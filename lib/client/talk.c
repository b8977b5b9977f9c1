/* SPDX-License-Identifier: BSD-3-Clause */
/* The talk with a daemon. Owns the socket, every wait for the daemon, and the end: how it is noticed, told to the log once and
 * shown to all threads of the program. Which messages there are, and which may come when, is served.c's.
 * Invariants: no wait is longer than its patience; after the end nothing is sent, waited for or taken any more. */
#include "talk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "socket.h"

#define SLICE_MS 10u     /* how often a wait looks at the life of the daemon */
#define FAREWELL_MS 200u /* how long a daemon that has let go of us may take to say why */
#define LAST_WORDS 64u   /* messages that are passed over to find its BYE */

/* ---- the end ---- */

static void close_socket(struct talk *t)
{
	if (t->socket >= 0)
		close(t->socket);
	t->socket = -1;
}

static void say_bye(struct talk *t, enum ctl_bye_code code, const char *text)
{
	struct ctl_message m = { .bye.code = code };
	snprintf(m.bye.text, sizeof(m.bye.text), "%.*s", (int)sizeof(m.bye.text) - 1, text);
	ctl_send(t->socket, CTL_BYE, &m, -1);
}

int talk_end(struct talk *t, int err, const char *format, ...)
{
	char text[CTL_TEXT_MAX + 128];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_write(&t->log.log, LOG_ERROR, "unix:%s: the daemon %s", t->path, text);
	if (t->socket >= 0)
		say_bye(t, err == -EPROTO ? CTL_BYE_PROTOCOL : CTL_BYE_FAILED, text);
	close_socket(t);
	t->is_over = true;
	/* Release: who sees it sees also what the daemon did before. */
	if (t->page)
		atomic_store_explicit(&t->page->dead, 1, memory_order_release);
	return err;
}

void talk_hang_up(struct talk *t)
{
	if (!t->is_over)
		say_bye(t, CTL_BYE_DONE, "");
	close_socket(t);
	t->is_over = true;
}

static const struct {
	const char *name;
	int err; /* of an attempt to open */
} byes[CTL_BYE_CODE_COUNT] = {
	[CTL_BYE_DONE] = { "done", -ENODEV },
	[CTL_BYE_SHUTDOWN] = { "shutdown", -ENODEV },
	[CTL_BYE_VERSION] = { "version", -EPROTONOSUPPORT },
	[CTL_BYE_PROTOCOL] = { "protocol", -EPROTO },
	[CTL_BYE_LIMIT] = { "limit", -EUSERS },
	[CTL_BYE_KILLED] = { "killed", -ENODEV },
	[CTL_BYE_FAILED] = { "failed", -EIO },
};

int talk_on_bye(struct talk *t, const struct ctl_bye *bye)
{
	int len = (int)strnlen(bye->text, sizeof(bye->text));
	close_socket(t); /* there is no answer to a BYE */
	if (bye->code >= CTL_BYE_CODE_COUNT)
		return talk_end(t, -ENODEV, "ended the session (code %u, unknown here): %.*s", bye->code, len, bye->text);
	if (bye->code == CTL_BYE_VERSION)
		return talk_end(t, byes[bye->code].err,
			"and this library have no version of the control protocol in common, this one speaks %u to %u: %.*s",
			CTL_VERSION_MIN, CTL_VERSION_MAX, len, bye->text);
	return talk_end(t, byes[bye->code].err, "ended the session (%s): %.*s", byes[bye->code].name, len, bye->text);
}

/* ---- waiting ---- */

static uint64_t get_now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static bool has_died(const struct talk *t)
{
	return t->life && atomic_load_explicit(&t->life->word, memory_order_acquire) & CTL_LIFE_DEAD;
}

static bool has_let_go(const struct talk *t)
{
	return t->page && atomic_load_explicit(&t->page->dead, memory_order_acquire);
}

bool talk_is_broken(const struct talk *t)
{
	return has_died(t) || has_let_go(t);
}

/* The socket is looked at once more after the last word on the daemon's life: what it said before is not missed. */
int talk_await(struct talk *t, unsigned patience_ms, struct ctl_message *m, int *fd)
{
	uint64_t start = get_now_ms(), waited = 0;
	bool was_reset = false;
	for (;;) {
		struct pollfd wait = { .fd = t->socket, .events = POLLIN };
		bool is_dead = has_died(t), has_left = has_let_go(t);
		bool is_late = waited >= (has_left && patience_ms > FAREWELL_MS ? FAREWELL_MS : patience_ms);
		enum ctl_refusal why;
		int err = ctl_recv(t->socket, false, m, fd, &why);
		if (!err)
			return 0;
		if (err == -EPROTO)
			return talk_end(t, err, "sent what is no message: %s", ctl_refusal_name(why));
		if (err == -ECONNRESET && !was_reset) {
			was_reset = true; /* it left something of ours unread: what it said before comes after this */
			continue;
		}
		if (err != -EAGAIN)
			return talk_end(t, -ENODEV, "closed the connection without a word");
		if (is_dead)
			return talk_end(t, -ENODEV, "has died");
		if (is_late && has_left)
			return talk_end(t, -ENODEV, "ended the session without a word");
		if (is_late)
			return talk_end(t, -ETIMEDOUT, "did not answer within %u ms: it hangs, or has too much to do", patience_ms);
		poll(&wait, 1, SLICE_MS);
		waited = get_now_ms() - start;
	}
}

int talk_take_leave(struct talk *t)
{
	struct ctl_message m;
	int fd, err = 0;
	for (unsigned i = 0; !err && i < LAST_WORDS; i++) {
		err = talk_await(t, FAREWELL_MS, &m, &fd);
		if (!err && m.header.type == CTL_BYE)
			err = talk_on_bye(t, &m.bye);
		if (fd >= 0)
			close(fd);
	}
	return err ? err : talk_end(t, -ENODEV, "does not come to an end");
}

/* A living daemon has read what was sent before: no more than one message of ours is ever unread. */
int talk_say_with(struct talk *t, enum ctl_type type, struct ctl_message *m, int fd)
{
	int err = ctl_send(t->socket, type, m, fd);
	if (!err)
		return 0;
	return err == -EAGAIN ? talk_end(t, -ETIMEDOUT, "does not read what it is sent") : talk_take_leave(t);
}

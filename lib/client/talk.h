/* SPDX-License-Identifier: BSD-3-Clause */
/* The talk with a daemon: sending one message, waiting for one, and the end. */
#ifndef UROCE_TALK_H
#define UROCE_TALK_H

#include "client.h"
#include "ctl.h"

struct talk {
	char *path; /* of the socket, for lines of the log */
	struct client_log log;
	int socket; /* -1 when the talk is over */
	bool is_over;
	const struct ctl_life *life;  /* NULL until it was sent */
	struct abi_engine_page *page; /* the same */
};

/* Ends the talk: one line in the log, which begins with "the daemon"; a BYE, if the daemon may still listen; the page says
 * dead. Returns err, always. */
int talk_end(struct talk *t, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The daemon said BYE. */
int talk_on_bye(struct talk *t, const struct ctl_bye *bye);
/* Says that we have finished. */
void talk_hang_up(struct talk *t);

/* Sends a message, with descriptor fd or -1, which stays the caller's. 0, or the error that the talk ended with. */
int talk_say_with(struct talk *t, enum ctl_type type, struct ctl_message *m, int fd);
static inline int talk_say(struct talk *t, enum ctl_type type, struct ctl_message *m)
{
	return talk_say_with(t, type, m, -1);
}
/* Waits for a message and its descriptor (-1: none), which is then the caller's. 0, or the error that the talk ended with:
 * -ETIMEDOUT, patience_ms are over; -EPROTO, it was no message; -ENODEV, the daemon is gone. */
int talk_await(struct talk *t, unsigned patience_ms, struct ctl_message *m, int *fd);
/* The daemon died, or has let go of this client. */
bool talk_is_broken(const struct talk *t);
/* To be called when it is: takes what the daemon had to say about it, and ends the talk. Returns the error. */
int talk_take_leave(struct talk *t);

#endif

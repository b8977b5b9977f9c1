/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon played by a thread: the other half of the dialogue of ctl.h over a socket in a directory of its own, in front of an
 * engine played by hand. It serves one client, and does one thing wrong if it is told to. */
#ifndef UROCE_FAKE_DAEMON_H
#define UROCE_FAKE_DAEMON_H

#include <pthread.h>
#include <stdbool.h>

#include "ctl.h"
#include "fake_engine.h"

/* What it does instead of sending a message. */
enum mischief {
	SEND_OTHER,      /* another message: arg its type */
	SEND_OTHER_FILE, /* the right one with another file: arg one of enum other_file */
	SEND_NO_MESSAGE, /* a record that is none: arg how many descriptors with it */
	SEND_TWISTED,    /* changed by `twist` */
	SAY_BYE,         /* arg: code */
	HANG_UP,
	STAY_SILENT,
	DIE,             /* the life page says so, all descriptors close */
	DIE_IN_PART,     /* the life page says so, a forked child holds the rest */
	LET_GO,          /* the client's page says dead, and nothing else comes */
	LET_GO_BYE,      /* with a BYE that comes a little later */
};
enum other_file { FILE_ON_DISK, FILE_READING_END, FILE_WRITING_END, FILE_SOCKET, FILE_DATAGRAM, FILE_EVENTS, FILE_EVENTFD, FILE_SMALL_MEMFD, OTHER_FILES };

/* The messages that a daemon sends to a client that opens a context, then makes a channel, a CQ, a PD and a QP. */
enum sending {
	AT_WELCOME,
	AT_WAKE,
	AT_ASYNC,
	AT_REGION,
	AT_READY,
	AT_DEVICE, /* replies from here on */
	AT_CHANNEL,
	AT_CHANNEL_REPLY,
	AT_CQ_REGION,
	AT_CQ_REPLY,
	AT_PD_REPLY,
	AT_QP_REPLY,
	SENDINGS,
	NEVER = 0x7fffffff
};

struct fake_daemon {
	struct fake_engine *f;
	char dir[64], path[96];
	int listener, socket;
	int wake; /* eventfd */
	int life_fd;
	struct ctl_life *life;
	pthread_t thread;
	bool has_arena1;
	unsigned sent;
	/* the one thing that goes wrong */
	unsigned at; /* enum sending */
	enum mischief how;
	int arg;
	void (*twist)(struct fake_daemon *d, struct ctl_message *m);
	/* what came */
	struct ctl_hello hello;
	struct ctl_bye bye;
	unsigned byes;
};

/* Listens; the thread begins with fake_daemon_serve, when it is known what goes wrong. */
struct fake_daemon *fake_daemon_new(void);
void fake_daemon_serve(struct fake_daemon *d);
/* Waits for the thread, which ends when the client hung up. */
void fake_daemon_wait(struct fake_daemon *d);
/* After that. The engine goes too. */
void fake_daemon_free(struct fake_daemon *d);

/* By any thread: the daemon dies. It does nothing any more. */
void fake_daemon_die(struct fake_daemon *d, bool is_whole);

#endif

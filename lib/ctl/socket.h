/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and receiving control messages. Owns the check of what came against the table, and every descriptor that came with it until the caller takes it: whatever is not asked for is closed. */
#ifndef UROCE_CTL_SOCKET_H
#define UROCE_CTL_SOCKET_H

#include <sys/types.h>

#include "ctl.h"

struct msghdr;

struct ctl_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
};

/* Sends m (its header is filled in here from `type`), with descriptor fd or -1, as its row says; fd stays the caller's. Never blocks when the socket does not. 0; -EAGAIN: the other side does not read;
 * -EPIPE, -ECONNRESET: it is gone; -EINVAL: fd and row do not agree. No SIGPIPE. Any thread. */
int ctl_send(int socket, enum ctl_type type, struct ctl_message *m, int fd);

/* Why a record was not a message. The daemon counts each. */
enum ctl_refusal {
	CTL_OK,
	CTL_SHORT,     /* less than a header */
	CTL_UNKNOWN,   /* no such type */
	CTL_LENGTH,    /* not the length of its row, or the header says another */
	CTL_FDS,       /* more than one descriptor, one that the row has not, or none where it has one */
	CTL_DIRECTION, /* a type that this side does not take */
	CTL_REFUSAL_COUNT
};
const char *ctl_refusal_name(enum ctl_refusal r);

/* Receives one record. is_daemon: which side we are. *fd: the descriptor that came, close-on-exec, the caller's to close; -1: none. Returns 0; -EAGAIN: nothing there (only on a non-blocking socket); -ECONNRESET: the other side has closed;
 * -EPROTO with *why: not a message, everything that came with it is closed; another negative errno of recvmsg. */
int ctl_recv(int socket, bool is_daemon, struct ctl_message *m, int *fd, enum ctl_refusal *why);

/* For who receives other messages than these: all descriptors of a record that was received; the first is kept in *fd (-1: none), the others are closed. Returns how many came. */
unsigned ctl_take_fds(struct msghdr *msg, int *fd);

/* Whether the other side may pass descriptors; of a socket that listens, those who connect. What one was given has to be closed, and that can take as long as the giver likes (SO_LINGER, a file system of its own). Where it may not, its send fails with EPERM; before Linux 6.16 it always may. */
void ctl_allow_fds(int socket, bool are_allowed);

/* Credentials as they were when the peer connected (SO_PEERCRED). 0 or a negative errno. */
int ctl_peer_of(int socket, struct ctl_peer *peer);

#endif

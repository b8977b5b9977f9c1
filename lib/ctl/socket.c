/* SPDX-License-Identifier: BSD-3-Clause */
/* One control message out, one in. Invariant: after ctl_recv every descriptor that the kernel installed is either the caller's or closed. */
#include "socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif
#define FDS_MAX 16 /* room for more than one, so that those too many can be closed; what is beyond the kernel closes itself (MSG_CTRUNC) */

static const char *const refusal_names[CTL_REFUSAL_COUNT] = {
	[CTL_OK] = "ok",
	[CTL_SHORT] = "shorter than a header",
	[CTL_UNKNOWN] = "unknown type",
	[CTL_LENGTH] = "wrong length",
	[CTL_FDS] = "wrong number of descriptors",
	[CTL_DIRECTION] = "from the wrong side",
};

const char *ctl_refusal_name(enum ctl_refusal r)
{
	return (unsigned)r < CTL_REFUSAL_COUNT ? refusal_names[r] : "?";
}

int ctl_send(int socket, enum ctl_type type, struct ctl_message *m, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	const struct ctl_row *row = &ctl_rows[type];
	struct iovec iov = { m, sizeof(m->header) + row->length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (row->has_fd != (fd >= 0))
		return -EINVAL;
	m->header = (struct ctl_header){ type, row->length };
	if (fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) };
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	ssize_t n;
	do
		n = sendmsg(socket, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

unsigned ctl_take_fds(struct msghdr *msg, int *fd)
{
	unsigned n = 0;
	*fd = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int got;
			memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(got));
			if (n++)
				close(got);
			else
				*fd = got;
		}
	}
	return n;
}

static enum ctl_refusal check(const struct ctl_message *m, size_t bytes, unsigned fds, bool is_whole, bool is_daemon)
{
	if (bytes < sizeof(m->header))
		return CTL_SHORT;
	if (m->header.type >= CTL_TYPE_COUNT)
		return CTL_UNKNOWN;
	const struct ctl_row *row = &ctl_rows[m->header.type];
	if (m->header.length != row->length || bytes != sizeof(m->header) + row->length || !is_whole)
		return CTL_LENGTH;
	if (!(is_daemon ? row->is_from_client : row->is_from_daemon))
		return CTL_DIRECTION;
	return fds == row->has_fd ? CTL_OK : CTL_FDS;
}

int ctl_recv(int socket, bool is_daemon, struct ctl_message *m, int *fd, enum ctl_refusal *why)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes) };
	ssize_t n;
	*fd = -1;
	*why = CTL_OK;
	do
		n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	unsigned fds = ctl_take_fds(&msg, fd);
	if (!n && !fds)
		return -ECONNRESET; /* the end; an empty record cannot be told from it and ends the session too */
	*why = check(m, (size_t)n, msg.msg_flags & MSG_CTRUNC ? FDS_MAX + 1 : fds, !(msg.msg_flags & MSG_TRUNC), is_daemon);
	if (*why == CTL_OK)
		return 0;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EPROTO;
}

void ctl_allow_fds(int socket, bool are_allowed)
{
	int value = are_allowed;
	setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value)); /* ENOPROTOOPT: an older kernel */
}

int ctl_peer_of(int socket, struct ctl_peer *peer)
{
	struct ucred c;
	socklen_t len = sizeof(c);
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &c, &len))
		return -errno;
	*peer = (struct ctl_peer){ c.pid, c.uid, c.gid };
	return 0;
}

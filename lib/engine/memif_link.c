/* SPDX-License-Identifier: BSD-3-Clause */
/* See memif_link.h. Owns the socket that the user named and both ends of the connection under way: `outer` to the peer, `inner` to our own driver. Decides nothing about the memif protocol; of its messages it
 * looks at the type, and at what says how large a client's buffers are. Invariant: the driver frees no ring while its port is in a burst: it is told of an end only by end_connection, which waits until it has done so. */
#include "memif_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "dpdk_compat.h"

#include <rte_ethdev.h>

#include "random.h"
#include "socket.h"

#define MESSAGE_LEN 128u
#define MESSAGES_AT_ONCE 16u
#define RETRY_NS 10000000u
#define SILENCE_NS 2000000000u /* a peer that says nothing for so long, before it is connected, gives its place to another */
#define ANSWER_MS 3
#define CLOSE_MS 1000

/* The memif protocol, version 2: types of messages, and where in them stands what we read. All in host order. */
enum message_type { MESSAGE_ADD_REGION = 4, MESSAGE_ADD_RING = 5, MESSAGE_CONNECT = 6, MESSAGE_CONNECTED = 7, MESSAGE_DISCONNECT = 8 };
#define REGION_SIZE_AT 4u
#define RING_LOG2_SIZE_AT 12u
#define DISCONNECT_TEXT_AT 6u
#define RING_HEADER_LEN 128u
#define DESCRIPTOR_LEN 16u

struct memif_link {
	struct memif_link_config config;
	char path[108], inner_path[108], text[64];
	uint16_t port_id;
	int listener;            /* server: for peers; client: for our own driver */
	int outer, inner;
	bool is_connected;       /* the handshake is over */
	uint64_t now_ns, next_try_ns, heard_ns;
	uint64_t region_bytes;   /* what the client has told of its memory so far */
	uint64_t slots, rings;
	unsigned carried;        /* messages, ever */
	struct log_limit ends, strangers;
};

/* ---- sockets ---- */

static socklen_t make_address(struct sockaddr_un *un, const char *path, bool is_abstract)
{
	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(un->sun_path + is_abstract, path, strlen(path));
	return (socklen_t)(is_abstract ? offsetof(struct sockaddr_un, sun_path) + 1 + strlen(path) : sizeof(*un));
}

static int connect_to(const char *path, bool is_abstract)
{
	struct sockaddr_un un;
	socklen_t len = make_address(&un, path, is_abstract);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&un, len))
		return fd;
	int err = -errno;
	close(fd);
	return err;
}

static int bind_listener(struct memif_link *l, const char *path, bool is_abstract)
{
	struct sockaddr_un un;
	socklen_t len = make_address(&un, path, is_abstract);
	l->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->listener < 0)
		return -errno;
	int err = bind(l->listener, (struct sockaddr *)&un, len) ? -errno : 0;
	if (err == -EADDRINUSE && !is_abstract) {
		int fd = connect_to(path, false);
		if (fd == -ECONNREFUSED && !unlink(path)) /* whoever made the file is gone */
			err = bind(l->listener, (struct sockaddr *)&un, len) ? -errno : 0;
		else if (fd >= 0)
			close(fd);
	}
	return err ? err : listen(l->listener, 4) ? -errno : 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int memif_link_open(struct memif_link **out, const struct memif_link_config *config)
{
	const struct log *log = config->log;
	struct memif_link *l = calloc(1, sizeof(*l));
	uint64_t name;
	if (!l)
		return -ENOMEM;
	l->config = *config;
	l->listener = l->outer = l->inner = -1;
	l->ends.burst = l->strangers.burst = 1;
	snprintf(l->text, sizeof(l->text), "%s", config->text);
	int err = snprintf(l->path, sizeof(l->path), "%s", config->path) < (int)sizeof(l->path) - 8 && config->path[0] ? random_bytes(&name, sizeof(name)) : -EINVAL;
	if (err) {
		log_write(log, LOG_ERROR, "%s: socket=%s: takes 1 to %zu characters", l->text, config->path, sizeof(l->path) - 9);
	} else if (config->is_server) {
		snprintf(l->inner_path, sizeof(l->inner_path), "%.100s.driver", l->path);
		err = bind_listener(l, l->path, config->is_abstract);
		if (!err && !config->is_abstract)
			unlink(l->inner_path);
	} else {
		snprintf(l->inner_path, sizeof(l->inner_path), "uroce-memif-%016llx", (unsigned long long)name);
		err = bind_listener(l, l->inner_path, true);
	}
	if (err && err != -EINVAL)
		log_write(log, LOG_ERROR, "%s: cannot listen at socket=%s: %s%s", l->text, l->path, strerror(-err), err == -EADDRINUSE ? " by another program, or by another port here" : "");
	if (err) {
		l->path[0] = 0; /* the file, if any, is not ours */
		memif_link_close(l);
		return err;
	}
	*out = l;
	return 0;
}

const char *memif_link_inner(const struct memif_link *l)
{
	return l->inner_path;
}

bool memif_link_is_abstract(const struct memif_link *l)
{
	return l->config.is_abstract || !l->config.is_server;
}

void memif_link_begin(struct memif_link *l, uint16_t port_id)
{
	l->port_id = port_id;
}

/* ---- the end of a connection ---- */

/* Our driver reads the end, unmaps the rings, and only then closes its side. */
static void end_driver(struct memif_link *l)
{
	char rest[MESSAGE_LEN];
	struct pollfd p = { .fd = l->inner, .events = POLLIN };
	ssize_t n = -1;
	shutdown(l->inner, SHUT_WR);
	while (poll(&p, 1, CLOSE_MS) > 0 && ((n = recv(l->inner, rest, sizeof(rest), 0)) > 0 || (n < 0 && errno == EINTR)))
		;
	if (n > 0 || (n < 0 && errno != ECONNRESET))
		log_write(l->config.log, LOG_ERROR, "%s: the driver does not end its connection", l->text);
	close_fd(&l->inner);
}

static void end_connection(struct memif_link *l, const char *why)
{
	bool has_driver = l->inner >= 0;
	if (l->outer >= 0)
		log_limited(l->config.log, &l->ends, l->now_ns, LOG_WARN, "%s: %s the %s: %s", l->text, l->is_connected ? "no longer connected to" : "gives up connecting to", l->config.is_server ? "client" : "server", why);
	close_fd(&l->outer);
	if (has_driver)
		end_driver(l);
	l->is_connected = false;
	l->region_bytes = l->slots = l->rings = 0;
}

/* ---- messages ---- */

static uint64_t get_bytes(const uint8_t *message, size_t at, size_t len)
{
	uint64_t v = 0;
	memcpy(&v, message + at, len);
	return v;
}

/* What the driver sends to a smaller buffer it would cut in pieces, and lose count of them when the ring is nearly full. */
static bool is_too_small(const struct memif_link *l)
{
	uint64_t all = l->rings * l->slots, frame = l->config.frame_max;
	if (!all || l->region_bytes >= l->rings * (RING_HEADER_LEN + l->slots * DESCRIPTOR_LEN) + all * frame)
		return false;
	log_write(l->config.log, LOG_ERROR, "%s: a client with buffers of %llu bytes is turned away: frames have up to %u; give it bsize=%u, or this end a smaller mtu=", l->text,
		(unsigned long long)((l->region_bytes - l->rings * (RING_HEADER_LEN + l->slots * DESCRIPTOR_LEN)) / all), l->config.frame_max, l->config.frame_max);
	return true;
}

/* Learns from a message of the peer's; NULL, or why it is the last one. */
static const char *look_at(struct memif_link *l, const uint8_t *message)
{
	unsigned type = (unsigned)get_bytes(message, 0, 2);
	l->heard_ns = l->now_ns;
	if (type == MESSAGE_DISCONNECT)
		return "it said so";
	if (l->is_connected)
		return "it sent what does not belong here";
	if (type == MESSAGE_ADD_REGION)
		l->region_bytes += get_bytes(message, REGION_SIZE_AT, 8);
	if (type == MESSAGE_ADD_RING) {
		l->slots = 1ull << (message[RING_LOG2_SIZE_AT] & 15);
		l->rings++;
	}
	if (type == MESSAGE_CONNECT && is_too_small(l))
		return "its buffers are too small";
	if (type == MESSAGE_CONNECT || type == MESSAGE_CONNECTED) {
		l->is_connected = true;
		log_write(l->config.log, LOG_INFO, "%s: connected to the %s", l->text, l->config.is_server ? "client" : "server");
	}
	return NULL;
}

/* A message and the descriptor that travels with it. */
struct parcel {
	uint8_t message[MESSAGE_LEN];
	int fd;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))]; /* where alignment leaves place for a second one, it comes too */
	} control;
};

/* The driver keeps a descriptor that comes with any other message, and forgets it. */
static unsigned fds_of(const uint8_t *message)
{
	unsigned type = (unsigned)get_bytes(message, 0, 2);
	return type == MESSAGE_ADD_REGION || type == MESSAGE_ADD_RING;
}

/* Bytes, 0 at the end, or a negative errno. */
static ssize_t take(int fd, struct parcel *p)
{
	struct iovec iov = { p->message, sizeof(p->message) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &p->control, .msg_controllen = sizeof(p->control) };
	p->fd = -1;
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	unsigned fds = ctl_take_fds(&m, &p->fd);
	if (n == MESSAGE_LEN && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && fds <= fds_of(p->message))
		return n;
	close_fd(&p->fd);
	return n || fds ? -EPROTO : 0;
}

static int pass(int fd, struct parcel *p)
{
	struct iovec iov = { p->message, sizeof(p->message) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (p->fd >= 0) {
		p->control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&p->control.header), &p->fd, sizeof(p->fd));
		m.msg_control = &p->control;
		m.msg_controllen = CMSG_SPACE(sizeof(int));
	}
	int err = sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == MESSAGE_LEN ? 0 : -errno;
	close_fd(&p->fd);
	return err;
}

/* From one end to the other, all that there is. NULL, or why the connection has ended. */
static const char *carry(struct memif_link *l, int from, int to)
{
	struct parcel p;
	for (unsigned i = 0; i < MESSAGES_AT_ONCE; i++) {
		ssize_t n = take(from, &p);
		if (n == -EAGAIN || n == -EINTR)
			return NULL;
		if (n <= 0)
			return n == -EPROTO ? "its messages are none of the memif protocol" : from == l->inner ? "our driver ended it" : "it is gone";
		const char *why = from == l->outer ? look_at(l, p.message) : NULL;
		if (why) {
			close_fd(&p.fd);
			return why;
		}
		if (pass(to, &p))
			return "it is gone";
		l->carried++;
	}
	return NULL;
}

/* ---- the beginning of one ---- */

/* A peer's descriptors are closed by the thread that drives the port, and that takes as long as their giver likes (SO_LINGER, a file system of its own). Who may write to a file was decided by its owner; a name is there for everybody. */
static void turn_strangers_away(struct memif_link *l)
{
	struct ctl_peer peer = { .uid = (uid_t)-1 };
	if (l->outer < 0 || !l->config.is_abstract || (!ctl_peer_of(l->outer, &peer) && (!peer.uid || peer.uid == geteuid())))
		return;
	log_limited(l->config.log, &l->strangers, l->now_ns, LOG_WARN, "%s: the %s, process %ld of user %u, is turned away: by name only root and user %u are taken; for others give both socket-abstract=no", l->text,
		l->config.is_server ? "client" : "server", (long)peer.pid, peer.uid, geteuid());
	close_fd(&l->outer);
}

/* Whoever connects to the socket for our own driver has to be this process. */
static int accept_driver(struct memif_link *l)
{
	struct ctl_peer peer;
	int fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (!ctl_peer_of(fd, &peer) && peer.pid == getpid())
		return fd;
	close(fd);
	return -EPERM;
}

/* The driver of a client connects when its port is started, and only then. */
static void start_driver(struct memif_link *l)
{
	l->inner = accept_driver(l);
	if (l->inner >= 0)
		return;
	rte_eth_dev_stop(l->port_id);
	int err = rte_eth_dev_start(l->port_id);
	if (err)
		log_write(l->config.log, LOG_ERROR, "%s: DPDK cannot start the port again: %s", l->text, strerror(-err));
	else
		l->inner = accept_driver(l);
}

static void begin_connection(struct memif_link *l, uint64_t now_ns)
{
	if (l->config.is_server) {
		l->outer = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		turn_strangers_away(l);
		if (l->outer >= 0)
			l->inner = connect_to(l->inner_path, l->config.is_abstract);
	} else if (now_ns >= l->next_try_ns) {
		l->next_try_ns = now_ns + RETRY_NS;
		if (l->inner < 0)
			start_driver(l);
		if (l->inner >= 0)
			l->outer = connect_to(l->path, l->config.is_abstract);
		turn_strangers_away(l);
		if (l->outer >= 0)
			ctl_allow_fds(l->outer, false); /* a server has none to give */
	}
	l->heard_ns = now_ns;
	if (l->outer >= 0 && l->inner < 0)
		end_connection(l, "the driver does not listen");
}

/* While they shake hands, one answers the other: no need to come back for each of a dozen messages. Nothing is sent by this port yet, and who is silent is not waited for. */
static bool has_answer(const struct memif_link *l)
{
	struct pollfd p[] = { { .fd = l->outer, .events = POLLIN }, { .fd = l->inner, .events = POLLIN } };
	return !l->is_connected && poll(p, 2, ANSWER_MS) > 0;
}

void memif_link_poll(struct memif_link *l, uint64_t now_ns)
{
	const char *why = NULL;
	unsigned before, rounds = 0;
	l->now_ns = now_ns;
	if (l->outer < 0)
		begin_connection(l, now_ns);
	if (l->outer < 0)
		return;
	do {
		before = l->carried;
		why = carry(l, l->outer, l->inner);
		if (!why)
			why = carry(l, l->inner, l->outer);
	} while (!why && l->carried != before && ++rounds < MESSAGES_AT_ONCE && has_answer(l));
	if (!why && !l->is_connected && now_ns - l->heard_ns > SILENCE_NS)
		why = "it does not answer";
	if (why)
		end_connection(l, why);
}

bool memif_link_is_connected(const struct memif_link *l)
{
	return l->is_connected;
}

void memif_link_close(struct memif_link *l)
{
	if (!l)
		return;
	close_fd(&l->outer);
	end_connection(l, "");
	close_fd(&l->listener);
	if (l->config.is_server && !l->config.is_abstract && l->path[0])
		unlink(l->path);
	free(l);
}

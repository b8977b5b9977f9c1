/* SPDX-License-Identifier: BSD-3-Clause */
/* The name is that of an abstract unix socket. Anybody may take such a name, so a holder that listens not, or is a user's who runs no daemon here, is said and passed over: else any program could keep us from starting. */
#include "port_lock.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "socket.h"

/* The kernel interface or the PCI address of a device; false: it has neither. */
static bool name_port(const struct device_string *d, char *name, size_t room)
{
	const char *iface = d->devargs;
	if (strchr(d->vdev, ':'))
		return snprintf(name, room, "%s", d->vdev) < (int)room;
	while (iface && strncmp(iface, "iface=", 6)) {
		iface = strchr(iface, ',');
		iface += iface != NULL;
	}
	return iface && snprintf(name, room, "%.*s", (int)strcspn(iface + 6, ","), iface + 6) < (int)room;
}

static socklen_t make_address(struct sockaddr_un *a, const char *name)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	int len = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "uroce/port/%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/* ---- who holds the name ---- */

struct holder {
	uid_t uid;
	pid_t pid; /* 0: not known */
};

/* Whoever listens: asked by connecting. 0; -ECONNREFUSED: nobody listens; -EAGAIN: somebody takes nobody in. */
static int ask_holder(const struct sockaddr_un *a, socklen_t len, struct holder *h)
{
	struct ctl_peer peer = { 0 };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = fd < 0 || connect(fd, (const struct sockaddr *)a, len) ? -errno : ctl_peer_of(fd, &peer);
	if (fd >= 0)
		close(fd);
	*h = (struct holder){ peer.uid, peer.pid };
	return err;
}

struct search {
	const char *name;
	size_t len;
	bool is_found;
	uid_t uid;
};

static int on_socket(struct nl_msg *m, void *arg)
{
	struct search *s = arg;
	struct nlattr *attr[UNIX_DIAG_MAX + 1];
	const struct unix_diag_msg *u = nlmsg_data(nlmsg_hdr(m));
	if (nlmsg_parse(nlmsg_hdr(m), sizeof(*u), attr, UNIX_DIAG_MAX, NULL) || u->udiag_type != SOCK_SEQPACKET || !attr[UNIX_DIAG_NAME] || !attr[UNIX_DIAG_UID])
		return NL_OK;
	if ((size_t)nla_len(attr[UNIX_DIAG_NAME]) == s->len && !memcmp(nla_data(attr[UNIX_DIAG_NAME]), s->name, s->len)) {
		s->is_found = true;
		s->uid = nla_get_u32(attr[UNIX_DIAG_UID]);
	}
	return NL_OK;
}

/* Whoever listens, out of all sockets of the network namespace; an older kernel tells no user (before Linux 5.3). */
static bool search_holder(const struct sockaddr_un *a, socklen_t len, struct holder *h)
{
	struct unix_diag_req request = { .sdiag_family = AF_UNIX, .udiag_states = 1u << TCP_LISTEN, .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID };
	struct search s = { .name = a->sun_path, .len = len - offsetof(struct sockaddr_un, sun_path) };
	struct nl_sock *sock = nl_socket_alloc();
	if (!sock)
		return false;
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, on_socket, &s);
	bool is_told = !nl_connect(sock, NETLINK_SOCK_DIAG) && nl_send_simple(sock, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &request, sizeof(request)) >= 0 && !nl_recvmsgs_default(sock);
	nl_socket_free(sock);
	*h = (struct holder){ .uid = s.uid };
	return is_told && s.is_found;
}

/* Root, ourselves, or the user that config/uroced.service runs as. */
static bool can_be_daemon(uid_t uid)
{
	const struct passwd *service = getpwnam("uroce");
	return !uid || uid == geteuid() || (service && uid == service->pw_uid);
}

static int pass_over(const char *name, const char *who, const struct log *log)
{
	log_write(log, LOG_WARN, "%s holds the name that keeps a second uroced off %s: going on", who, name);
	return 0;
}

static int judge(const struct holder *h, const char *name, const struct log *log)
{
	char pid[32] = "", who[80];
	if (h->pid)
		snprintf(pid, sizeof(pid), " (pid %ld)", (long)h->pid);
	if (can_be_daemon(h->uid)) {
		log_write(log, LOG_ERROR, "%s is served by another uroced%s", name, pid);
		return -EBUSY;
	}
	snprintf(who, sizeof(who), "user %u, who runs no daemon%s,", h->uid, pid);
	return pass_over(name, who, log);
}

/* ---- the name ---- */

static int take(const struct sockaddr_un *a, socklen_t len, int *fd)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s >= 0 && !bind(s, (const struct sockaddr *)a, len) && !listen(s, 8)) {
		*fd = s;
		return 0;
	}
	int err = -errno;
	if (s >= 0)
		close(s);
	return err;
}

/* A daemon listens as soon as it has the name: who does not for so long is none. */
#define TRIES 20
#define RETRY_US 10000

static int take_or_judge(const struct sockaddr_un *a, socklen_t len, const char *name, const struct log *log, int *fd)
{
	struct holder h;
	int err, told = -ECONNREFUSED;
	for (unsigned i = 0; (err = take(a, len, fd)) == -EADDRINUSE && i < TRIES; i++) {
		told = ask_holder(a, len, &h);
		if (told != -ECONNREFUSED)
			break;
		usleep(RETRY_US);
	}
	if (err != -EADDRINUSE) {
		if (err)
			log_write(log, LOG_ERROR, "%s: cannot be reserved: %s", name, strerror(-err));
		return err;
	}
	if (told == -ECONNREFUSED)
		return pass_over(name, "a process that does not listen, and so is no daemon,", log);
	if (!told || search_holder(a, len, &h))
		return judge(&h, name, log);
	log_write(log, LOG_ERROR, "%s: somebody holds the name that keeps a second uroced off it, and takes no connection (%s); the kernel does not tell who", name, strerror(-told));
	return -EBUSY;
}

int port_lock(const struct device_string *d, const struct log *log, int *fd)
{
	struct sockaddr_un a;
	char name[64];
	*fd = -1;
	if (!name_port(d, name, sizeof(name)))
		return 0;
	socklen_t len = make_address(&a, name);
	return take_or_judge(&a, len, name, log, fd);
}

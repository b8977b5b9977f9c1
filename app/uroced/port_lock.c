/* SPDX-License-Identifier: BSD-3-Clause */
/* The name is that of an abstract unix socket. Anybody may take such a name, so one that is held by a user who runs no daemon here is said and passed over: else any program could keep us from starting. */
#include "port_lock.h"

#include <errno.h>
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

/* Who holds the name: the kernel tells of the listening process. */
static bool find_holder(const struct sockaddr_un *a, socklen_t len, struct ctl_peer *holder)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool is_found = fd >= 0 && !connect(fd, (const struct sockaddr *)a, len) && !ctl_peer_of(fd, holder);
	if (fd >= 0)
		close(fd);
	return is_found;
}

/* Root, ourselves, or the user that config/uroced.service runs as. */
static bool can_be_daemon(uid_t uid)
{
	const struct passwd *service = getpwnam("uroce");
	return !uid || uid == geteuid() || (service && uid == service->pw_uid);
}

static int refuse(const struct sockaddr_un *a, socklen_t len, const char *name, const struct log *log)
{
	struct ctl_peer holder;
	if (!find_holder(a, len, &holder)) {
		log_write(log, LOG_ERROR, "%s is served by another uroced", name);
		return -EBUSY;
	}
	if (!can_be_daemon(holder.uid)) {
		log_write(log, LOG_WARN, "process %ld of user %u, who runs no daemon, holds the name that keeps a second uroced off %s: going on", (long)holder.pid, holder.uid, name);
		return 0;
	}
	log_write(log, LOG_ERROR, "%s is served by another uroced (pid %ld)", name, (long)holder.pid);
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
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err = 0;
	if (s < 0 || bind(s, (struct sockaddr *)&a, len) || listen(s, 8))
		err = -errno;
	if (err && s >= 0)
		close(s);
	if (err == -EADDRINUSE)
		return refuse(&a, len, name, log);
	if (err)
		log_write(log, LOG_ERROR, "%s: cannot be reserved: %s", name, strerror(-err));
	else
		*fd = s;
	return err;
}

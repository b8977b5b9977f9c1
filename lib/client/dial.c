/* SPDX-License-Identifier: BSD-3-Clause */
/* The way to a daemon's socket. Owns the attempt to connect and the line that says why it failed and what would help; what
 * is said over the socket is served.c's.
 * Invariant: it waits no longer than it was told to, and a socket that is returned never blocks. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"

static const struct {
	int err;
	const char *why; /* after "unix:PATH: " */
} failures[] = {
	{ ENOENT, "no daemon serves this socket, there is no such file; start one: uroced --config FILE" },
	{ ECONNREFUSED, "no daemon serves this socket any more; start one: uroced --config FILE" },
	{ ENOTDIR, "this is no path of a socket; a daemon's is named in its configuration" },
	{ EPROTOTYPE, "this socket is not a daemon's of uroce" },
	{ EAGAIN, "the daemon does not take the connection in time: it hangs, or is busy with others" },
};

/* Who may connect: the one who has just been refused wants to know. */
static void explain_permission(const struct log *log, const char *path)
{
	char group[64], buffer[1024];
	struct group entry, *found = NULL;
	struct stat st;
	if (stat(path, &st)) {
		log_write(log, LOG_ERROR, "unix:%s: no permission to enter the socket's directory", path);
		return;
	}
	if (getgrgid_r(st.st_gid, &entry, buffer, sizeof(buffer), &found) || !found)
		snprintf(group, sizeof(group), "%u", (unsigned)st.st_gid);
	else
		snprintf(group, sizeof(group), "%s", entry.gr_name);
	log_write(log, LOG_ERROR,
		"unix:%s: no permission to connect; the socket's mode is %04o, its group %s: become a member of it", path,
		(unsigned)st.st_mode & 07777, group);
}

static int explain(const struct log *log, const char *path, int err)
{
	if (err == EACCES || err == EPERM) {
		explain_permission(log, path);
		return -EACCES;
	}
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		if (failures[i].err == err) {
			log_write(log, LOG_ERROR, "unix:%s: %s", path, failures[i].why);
			return err == EAGAIN ? -ETIMEDOUT : -err;
		}
	}
	log_write(log, LOG_ERROR, "unix:%s: cannot connect: %s", path, strerror(err));
	return -err;
}

static int check_path(const struct log *log, const char *path)
{
	const size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
	if (!*path) {
		log_write(log, LOG_ERROR, "device \"unix:\" names no socket; as in unix:/run/uroce/uroce0.sock");
		return -EINVAL;
	}
	if (strlen(path) > most) {
		log_write(log, LOG_ERROR, "unix:%s: the path has %zu bytes, that of a socket at most %zu", path, strlen(path), most);
		return -ENAMETOOLONG;
	}
	return 0;
}

/* A daemon whose backlog is full makes connect wait, for as long as a send may. */
static int connect_in_time(int fd, const struct sockaddr_un *to, unsigned ms)
{
	struct timeval patience = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	int rc;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)))
		return errno;
	do
		rc = connect(fd, (const struct sockaddr *)to, sizeof(*to));
	while (rc && errno == EINTR);
	if (rc || fcntl(fd, F_SETFL, O_NONBLOCK))
		return errno;
	return 0;
}

int dial(const struct log *log, const char *path, unsigned ms, int *out)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int err = check_path(log, path), fd;
	if (err)
		return err;
	strcpy(to.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return explain(log, path, errno);
	err = connect_in_time(fd, &to, ms);
	if (err) {
		close(fd);
		return explain(log, path, err);
	}
	*out = fd;
	return 0;
}

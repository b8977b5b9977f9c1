/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket's place in the file system: one daemon at a path, and nothing left of it afterwards. */
#ifndef UROCE_SERVER_PATH_H
#define UROCE_SERVER_PATH_H

#include <sys/types.h>
#include <sys/un.h>

#include "log.h"

struct server_path {
	struct sockaddr_un address;
	char lock_path[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];
	int lock_fd;   /* locked for as long as the server lives, -1: not ours */
	int listen_fd; /* -1: none; the socket file is then none of ours */
};

/* Locks path.lock, removes what a dead daemon left, and listens at path with this mode and group ((gid_t)-1: as it comes), non-blocking. 0; -EADDRINUSE: another daemon lives there; other negative errno; each after one log line. */
int server_path_take(struct server_path *p, const char *path, mode_t mode, gid_t group, const struct log *log);
/* No more connections. */
void server_path_close(struct server_path *p);
/* Removes both files. Fine after a take that failed. */
void server_path_leave(struct server_path *p);

#endif

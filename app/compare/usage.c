/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. Reads what the kernel counts: getrusage of this process; /proc/PID/task of a daemon, whose time on a CPU schedstat has in nanoseconds. */
#include "usage.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void add_task(struct usage *u, pid_t process, const char *task)
{
	char path[300], line[256];
	unsigned long long number;
	snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)process, task);
	FILE *f = fopen(path, "re");
	if (f && fscanf(f, "%llu", &number) == 1)
		u->cpu_s += (double)number * 1e-9;
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)process, task);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &number) == 1 || sscanf(line, "nonvoluntary_ctxt_switches: %llu", &number) == 1)
			u->switches += number;
	if (f)
		fclose(f);
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

struct usage usage_read(pid_t daemon)
{
	struct usage u = { 0 };
	struct rusage r;
	struct dirent *d;
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)daemon);
	DIR *dir = daemon ? opendir(path) : NULL;
	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			add_task(&u, daemon, d->d_name);
	if (dir)
		closedir(dir);
	getrusage(RUSAGE_SELF, &r);
	u.cpu_s += seconds(r.ru_utime) + seconds(r.ru_stime);
	u.switches += (uint64_t)r.ru_nvcsw + (uint64_t)r.ru_nivcsw;
	return u;
}

struct usage usage_between(struct usage from, struct usage to)
{
	return (struct usage){ to.cpu_s - from.cpu_s, to.switches - from.switches };
}

pid_t usage_find_daemon(const char *device)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);
	if (!device || strncmp(device, "unix:", 5) || strlen(device + 5) >= sizeof(a.sun_path))
		return 0;
	strcpy(a.sun_path, device + 5);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)))
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
	if (fd >= 0)
		close(fd);
	return who.pid;
}

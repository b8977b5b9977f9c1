/* SPDX-License-Identifier: BSD-3-Clause */
/* The core's tap, written to a file by the thread that drives the core: a debugging aid that slows the engine down. Owns a descriptor of the file and a buffer. A write error stops the capture, with one log line, not the engine.
 * Invariant: what leaves the buffer are whole blocks, in one write; so the captures of several cores can share a file, and it is complete whenever nothing is in a buffer. */
#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "modify.h"
#include "pcapng.h"

#define BUFFER_BYTES 65536u /* several of the largest blocks */

struct capture {
	FILE *file;
	char *buffer;
	uint32_t pending; /* bytes in it */
	struct core *core; /* NULL: not begun, or ended */
	const struct log *log;
	uint32_t qpn;
	uint64_t day_offset_ns; /* of the engine's clock to CLOCK_REALTIME */
	uint64_t frames;
	bool has_failed;
};

static void describe(char *text, size_t room, const struct core_seen *s)
{
	int n = snprintf(text, room, "%s", s->is_tx ? "tx" : "rx");
	if (s->qpn)
		n += snprintf(text + n, room - (size_t)n, ", QP 0x%06x in %s", s->qpn, qp_state_name(s->qp_state));
	if (s->why != DROP_NONE)
		snprintf(text + n, room - (size_t)n, ", dropped: %s", drop_name(s->why));
}

static void write_frame(void *arg, const struct core_seen *seen)
{
	struct capture *c = arg;
	char comment[128];
	if (c->qpn && c->qpn != seen->qpn)
		return;
	describe(comment, sizeof(comment), seen);
	uint32_t bytes = pcapng_packet_bytes(seen->len, comment);
	if (c->pending + bytes > BUFFER_BYTES)
		capture_flush(c);
	if (c->has_failed)
		return;
	pcapng_packet(c->file, seen->now_ns + c->day_offset_ns, seen->frame, seen->len, comment);
	c->pending += bytes;
	c->frames++;
}

int capture_create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return fd < 0 ? -errno : fd;
}

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#define ZFS_SUPER_MAGIC 0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e

const char *capture_check_file(int fd)
{
	static const uint32_t local[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, ZFS_SUPER_MAGIC, BCACHEFS_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, OVERLAYFS_SUPER_MAGIC };
	struct stat st;
	struct statfs fs;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return "expected an ordinary file to capture into: poll cores cannot wait for the reader of another kind";
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return "expected a file that is open for writing";
	for (unsigned i = 0; !fstatfs(fd, &fs) && i < sizeof(local) / sizeof(local[0]); i++)
		if ((uint32_t)fs.f_type == local[i])
			return NULL;
	return "expected a file in a local file system (or /dev/shm): poll cores cannot wait for another";
}

static int begin_file(struct capture *c, const char *interface)
{
	if (!c->file || !c->buffer || setvbuf(c->file, c->buffer, _IOFBF, BUFFER_BYTES))
		return -ENOMEM;
	if (!interface)
		return 0;
	int err = pcapng_begin(c->file, interface);
	return !err && fflush(c->file) ? -errno : err;
}

int capture_open(struct capture **out, int fd, const char *interface, uint32_t qpn, const struct log *log)
{
	struct capture *c = calloc(1, sizeof(*c));
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), err = own < 0 ? -errno : c ? 0 : -ENOMEM;
	if (!err) {
		*c = (struct capture){ .file = fdopen(own, "w"), .buffer = malloc(BUFFER_BYTES), .qpn = qpn, .log = log };
		err = begin_file(c, interface);
	}
	if (err && own >= 0 && !(c && c->file))
		close(own);
	if (err) {
		capture_close(c);
		return err;
	}
	*out = c;
	return 0;
}

void capture_begin(struct capture *c, struct core *core, uint64_t now_ns)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	c->day_offset_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - now_ns;
	c->core = core;
	core_set_tap(core, write_frame, c);
}

void capture_end(struct capture *c)
{
	if (c->core)
		core_set_tap(c->core, NULL, NULL);
	c->core = NULL;
}

void capture_flush(struct capture *c)
{
	c->pending = 0;
	if (c->has_failed || !fflush(c->file))
		return;
	log_write(c->log, LOG_ERROR, "capture ends: %s", strerror(errno));
	__fpurge(c->file); /* the rest of it must not follow what other cores have written meanwhile */
	c->has_failed = true;
	capture_end(c);
}

uint64_t capture_frames(const struct capture *c)
{
	return c->frames;
}

bool capture_has_failed(const struct capture *c)
{
	return c->has_failed;
}

void capture_close(struct capture *c)
{
	if (!c)
		return;
	if (c->file)
		fclose(c->file);
	free(c->buffer);
	free(c);
}

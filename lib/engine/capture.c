/* SPDX-License-Identifier: BSD-3-Clause */
/* The core's tap, written to a file by the thread that drives the core: a debugging aid that slows the engine down. Owns the file. A write error stops the capture, with one log line, not the engine. */
#include "capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pcapng.h"

struct capture {
	FILE *file;
	struct core *core;
	const struct log *log;
	uint64_t day_offset_ns; /* of the engine's clock to CLOCK_REALTIME */
};

static void write_frame(void *arg, uint64_t now_ns, const uint8_t *frame, uint32_t len, bool is_tx, enum drop why)
{
	struct capture *c = arg;
	char comment[96];
	snprintf(comment, sizeof(comment), "%s%s%s", is_tx ? "tx" : "rx", why != DROP_NONE ? " dropped: " : "", why != DROP_NONE ? drop_name(why) : "");
	int err = pcapng_packet(c->file, now_ns + c->day_offset_ns, frame, len, comment);
	if (!err)
		return;
	log_write(c->log, LOG_ERROR, "capture ends: %s", strerror(-err));
	core_set_tap(c->core, NULL, NULL);
}

int capture_open(struct capture **out, const char *path, const char *interface, struct core *core, uint64_t now_ns, const struct log *log)
{
	struct timespec t;
	struct capture *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->file = fopen(path, "we");
	int err = c->file ? pcapng_begin(c->file, interface) : -errno;
	if (err) {
		log_write(log, LOG_ERROR, "capture=%s: %s", path, strerror(-err));
		if (c->file)
			fclose(c->file);
		free(c);
		return err;
	}
	clock_gettime(CLOCK_REALTIME, &t);
	c->day_offset_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - now_ns;
	c->core = core;
	c->log = log;
	core_set_tap(core, write_frame, c);
	*out = c;
	return 0;
}

void capture_flush(struct capture *c)
{
	fflush(c->file);
}

void capture_close(struct capture *c)
{
	if (!c)
		return;
	core_set_tap(c->core, NULL, NULL);
	fclose(c->file);
	free(c);
}

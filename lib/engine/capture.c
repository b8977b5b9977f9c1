/* SPDX-License-Identifier: BSD-3-Clause */
/* The core's tap, written to a file by the thread that drives the core: a debugging aid that slows the engine down. Owns the file. A write error stops the capture, with one log line, not the engine. */
#include "capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "modify.h"
#include "pcapng.h"

struct capture {
	FILE *file;
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
	int err = pcapng_packet(c->file, seen->now_ns + c->day_offset_ns, seen->frame, seen->len, comment);
	c->frames++;
	if (!err)
		return;
	log_write(c->log, LOG_ERROR, "capture ends: %s", strerror(-err));
	c->has_failed = true;
	capture_end(c);
}

int capture_open(struct capture **out, const char *path, const char *interface, uint32_t qpn, const struct log *log)
{
	struct capture *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->file = fopen(path, "we");
	int err = c->file ? pcapng_begin(c->file, interface) : -errno;
	if (err) {
		if (c->file)
			fclose(c->file);
		free(c);
		return err;
	}
	c->qpn = qpn;
	c->log = log;
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
	if (fflush(c->file))
		c->has_failed = true;
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
	fclose(c->file);
	free(c);
}

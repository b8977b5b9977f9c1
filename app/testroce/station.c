/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the context of a port. Invariant: engine is NULL or outlives ctx, which holds it. */
#include "station.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "engine.h"
#include "gid.h"

int station_open_context(const struct station *s, struct uroce_context **out)
{
	return uroce_open(s->device, NULL, out); /* says itself what is wrong */
}

int station_open(struct station *s, unsigned number, const char *device)
{
	*s = (struct station){ .number = number };
	if (strlen(device) >= sizeof(s->device)) {
		fprintf(stderr, "the device string is too long: expected at most %zu characters\n", sizeof(s->device) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(s->device, device);
	int err = station_open_context(s, &s->ctx);
	if (!err)
		err = uroce_query_device(s->ctx, &s->attr);
	if (err) {
		fprintf(stderr, "cannot use device %s: %s\n", device, strerror(-err));
		station_close(s);
		return err;
	}
	s->is_inline = s->attr.mode == 1;
	s->has_events = !fcntl(uroce_async_fd(s->ctx), F_SETFL, O_NONBLOCK);
	s->engine = s->attr.mode <= 1 ? engine_of_session(s->ctx->session) : NULL;
	return 0;
}

void station_close(struct station *s)
{
	if (s->ctx)
		uroce_close(s->ctx);
	s->ctx = NULL;
	s->engine = NULL;
}

uint32_t station_access(const struct station *s)
{
	return UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC | UROCE_ACCESS_MW_BIND | (s->attr.caps & UROCE_CAP_FLUSH_GLOBAL ? UROCE_ACCESS_FLUSH_GLOBAL : 0);
}

int station_gid_index(const struct station *s, uint32_t *index)
{
	struct uroce_gid raw;
	struct gid gid;
	uint32_t first = s->attr.gid_slots;
	for (*index = 0; *index < s->attr.gid_slots; ++*index) {
		if (uroce_query_gid(s->ctx, *index, &raw, NULL))
			continue;
		memcpy(gid.b, raw.raw, sizeof(gid.b));
		if (gid_is_ip4(&gid))
			return 0;
		first = first < *index ? first : *index;
	}
	*index = first;
	if (first < s->attr.gid_slots)
		return 0;
	fprintf(stderr, "port %u has no address: expected one in its device string (ip=), or at its interface\n", s->number);
	return -EADDRNOTAVAIL;
}

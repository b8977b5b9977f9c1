/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the context of a port. Invariant: engine is NULL or outlives ctx, which holds it. */
#include "station.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "engine.h"

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

int station_gid_index(const struct station *s, uint32_t *index)
{
	struct uroce_gid gid;
	for (*index = 0; *index < s->attr.gid_slots; ++*index)
		if (!uroce_query_gid(s->ctx, *index, &gid, NULL))
			return 0;
	fprintf(stderr, "port %u has no address: expected one in its device string (ip=), or at its interface\n", s->number);
	return -EADDRNOTAVAIL;
}

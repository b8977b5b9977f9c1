/* SPDX-License-Identifier: BSD-3-Clause */
/* A port of testroce's: a device opened through the public API, and where it is an engine in this process the engine behind it. */
#ifndef TESTROCE_STATION_H
#define TESTROCE_STATION_H

#include <stdbool.h>

#include "uroce.h"

#define STATIONS_MAX 2u

struct engine;

struct station {
	unsigned number;
	char device[512];       /* as it was given */
	struct uroce_context *ctx;
	struct uroce_device_attr attr;
	struct engine *engine;  /* NULL: it is a daemon's */
	bool is_inline;         /* the driver's thread runs it */
	bool has_events;        /* asynchronous ones can still come */
};

/* 0, or a negative errno after a line on standard error. */
int station_open(struct station *s, unsigned number, const char *device);
/* A further context on the same device: another client of its engine. */
int station_open_context(const struct station *s, struct uroce_context **out);
void station_close(struct station *s);
/* Every right that an MR can have there. */
uint32_t station_access(const struct station *s);
/* The first GID of an IPv4 address, else the first that there is, so that both ends choose the same family; or an error. */
int station_gid_index(const struct station *s, uint32_t *index);

#endif

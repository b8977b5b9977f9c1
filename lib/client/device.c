/* SPDX-License-Identifier: BSD-3-Clause */
/* From a device string to a session. Owns the table of the ways to reach an engine; what stands behind a prefix is for the
 * way to read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

static int open_daemon(const struct client_log *log, const char *device, const struct uroce_open_attr *attr,
	const struct session_ops **ops, void **session)
{
	return served_open(log, strchr(device, ':') + 1, &served_patience, ops, session);
}

static const struct {
	const char *prefix;
	int (*open)(const struct client_log *log, const char *device, const struct uroce_open_attr *attr,
		const struct session_ops **ops, void **session);
} ways[] = {
	{ "embedded:", engine_library_open },
	{ "inline:", engine_library_open },
	{ "unix:", open_daemon },
};

static const char *choose_device(const struct log *log, const char *device)
{
	if (!device || !*device)
		device = getenv("UROCE_DEVICE");
	if (device && *device)
		return device;
	log_write(log, LOG_ERROR,
		"no device: name one in uroce_open or the environment, as in UROCE_DEVICE=unix:/run/uroce/uroce0.sock or "
		"UROCE_DEVICE=embedded:net_ring0,ip=10.0.0.1/24");
	return NULL;
}

int device_open(const struct client_log *log, const char *device, const struct uroce_open_attr *attr,
	const struct session_ops **ops, void **session)
{
	device = choose_device(&log->log, device);
	if (!device)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strncmp(device, ways[i].prefix, strlen(ways[i].prefix)))
			return ways[i].open(log, device, attr, ops, session);
	log_write(&log->log, LOG_ERROR,
		"device \"%s\": it has to begin with unix:, embedded: or inline:, as in unix:/run/uroce/uroce0.sock or "
		"embedded:net_ring0,ip=10.0.0.1/24",
		device);
	return -EINVAL;
}

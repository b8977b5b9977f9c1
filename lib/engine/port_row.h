/* SPDX-License-Identifier: BSD-3-Clause */
/* What is peculiar to each virtual driver, in one table: the keys it takes, and what has to be decided before its device is made and put right after it has been started. */
#ifndef UROCE_PORT_ROW_H
#define UROCE_PORT_ROW_H

#include <stdint.h>

#include "port.h"

#define PORT_ETH_LEN 14u
#define PORT_VLAN_LEN 4u
#define PORT_ROOM_DEFAULT 4352u /* CORE_FRAME_MAX, to whole cache lines */

/* What a row decides before the device is made; filled with defaults and the user's devargs beforehand. */
struct port_plan {
	char devargs[640];
	uint32_t max_frame, room, window_max;
	uint32_t mbufs; /* for each queue */
};

struct port_row {
	const char *driver;
	const char *devargs;  /* the keys it takes */
	unsigned queues;      /* most pairs */
	/* Each 0 or a negative errno after one log line. */
	int (*plan)(struct port *p, const struct device_string *d, struct port_plan *plan, const struct log *log);
	int (*made)(struct port *p, const struct log *log);   /* at once after the device has been made; NULL: nothing to do */
	int (*settle)(struct port *p, const struct log *log); /* after its start; the same */
	bool (*has_link)(struct port *p); /* asked every millisecond by the thread of the first core */
	const char *log_name; /* of the driver, whose errors we say better or which are none; NULL: leave it */
	bool is_ring;         /* ring_link.c makes its device */
	enum port_groups groups;
};

/* NULL: a driver that we know nothing of. */
const struct port_row *port_row_find(const char *vdev);
/* Whether the driver takes all these keys; -EINVAL after one log line. */
int port_row_check(const struct port *p, const struct port_row *row, const char *devargs, const struct log *log);

#endif

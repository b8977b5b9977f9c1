/* SPDX-License-Identifier: BSD-3-Clause */
/* The device string of uroce_open: MODE:VDEV[,key=value...]. VDEV is a DPDK virtual device ("net_ring", "net_af_packet0"), a PCI address, or absent when key port= names a port
 * of the program's own EAL. Keys that uroce knows are in one table (device_string.c); every other key is handed to the device as it is. A value may stand in
 * parentheses and then hold commas: capture=(a,b.pcapng). */
#ifndef UROCE_DEVICE_STRING_H
#define UROCE_DEVICE_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gid.h"
#include "log.h"

enum device_mode { DEVICE_EMBEDDED, DEVICE_INLINE, DEVICE_SERVED }; /* values of struct abi_device; served: by a daemon, which is the only one to say so */
enum device_idle { DEVICE_IDLE_SPIN, DEVICE_IDLE_PAUSE, DEVICE_IDLE_SLEEP };

#define DEVICE_IPS_MAX 16u
#define DEVICE_GATEWAYS_MAX 4u
#define DEVICE_PORT_NONE (-1)
#define DEVICE_CORES_MAX 16u /* as many as core.h has numbers for */

struct device_ip {
	struct gid gid;
	unsigned prefix_len; /* of the IPv4 address: 0..32, of the IPv6 address: 0..128 */
};

struct device_string {
	enum device_mode mode;
	char vdev[64];         /* "" when port is set */
	char devargs[512];     /* keys that are the device's, comma separated, in the order given */
	struct device_ip ip[DEVICE_IPS_MAX];
	unsigned ips;
	bool ip_from_kernel;   /* ip=kernel */
	struct gid gateway[DEVICE_GATEWAYS_MAX];
	unsigned gateways;
	uint16_t vlan;         /* VLAN_NONE (0xffff): untagged */
	uint32_t mtu;          /* path MTU in bytes that must be carried; 0: the largest that fits */
	unsigned cores;        /* 1..DEVICE_CORES_MAX, each with a pair of queues */
	uint16_t cpu[DEVICE_CORES_MAX];
	unsigned cpus;         /* 0: any; else as many as cores, each the CPU of one */
	enum device_idle idle;
	uint32_t sleep_us;     /* longest sleep, DEVICE_IDLE_SLEEP */
	uint32_t memory_mib;   /* 0: default */
	bool has_telemetry;    /* shows itself to DPDK's telemetry */
	char link[32];         /* net_ring: the pair's name */
	unsigned side;         /* 0 or 1 */
	uint32_t ring;         /* slots of each direction of a ring pair; 0: default */
	uint32_t window;       /* most packets of a QP in flight; 0: default */
	uint64_t seed;
	char fault[256];
	char capture[256];
	int port;              /* DEVICE_PORT_NONE, or the program's ethdev port */
	uint16_t queue;        /* of that port, the first of cores */
};

/* 0, or -EINVAL after one log line that says what was wrong and what would be right. */
int device_string_parse(const char *text, struct device_string *out, const struct log *log);
/* Whether both name the same port, so that the second open attaches to the first one's engine. */
bool device_string_is_same_port(const struct device_string *a, const struct device_string *b);

/* Whether both mean ports of the program's that are the same, and queues of which some are. */
bool device_string_shares_queue(const struct device_string *a, const struct device_string *b);
/* As the string begins, without the colon. */
const char *device_mode_name(enum device_mode mode);

/* One row of the table of keys, for help texts: false beyond the last. */
struct device_key_help {
	const char *name, *takes, *text;
};
bool device_string_help(unsigned i, struct device_key_help *help);

#endif

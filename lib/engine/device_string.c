/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses device strings. Owns the table of keys; opens nothing and asks the system nothing, so whether a CPU, an interface or a device exists is found out by those who use the
 * value. Invariant: what device_string_parse accepted is in range, and every text in it is terminated. */
#include "device_string.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet.h"

/* Whole text as a number (decimal, or 0x...) from min to max. */
static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	unsigned long long v = strtoull(text, &end, 0);
	if (errno || *end || v < min || v > max)
		return false;
	*out = v;
	return true;
}

static bool copy_text(char *to, size_t room, const char *from)
{
	size_t len = strlen(from);
	if (!len || len >= room)
		return false;
	memcpy(to, from, len + 1);
	return true;
}

/* An address that a host can have. */
static bool is_host(const struct gid *g)
{
	static const uint8_t any4[4];
	struct gid none4 = gid_from_ip4(any4);
	return !gid_is_zero(g) && !gid_is_equal(g, &none4) && !gid_is_multicast(g);
}

static bool take_ip(struct device_string *d, const char *v)
{
	char text[GID_TEXT_MAX];
	if (!strcmp(v, "kernel")) {
		d->ip_from_kernel = true;
		return !d->ips;
	}
	const char *slash = strchr(v, '/');
	if (!slash || (size_t)(slash - v) >= sizeof(text) || d->ips == DEVICE_IPS_MAX || d->ip_from_kernel)
		return false;
	memcpy(text, v, (size_t)(slash - v));
	text[slash - v] = 0;
	struct device_ip *ip = &d->ip[d->ips];
	uint64_t prefix_len;
	if (gid_parse(text, &ip->gid) || !is_host(&ip->gid))
		return false;
	if (!parse_number(slash + 1, 0, gid_is_ip4(&ip->gid) ? 32 : 128, &prefix_len))
		return false;
	ip->prefix_len = (unsigned)prefix_len;
	for (unsigned i = 0; i < d->ips; i++)
		if (gid_is_equal(&d->ip[i].gid, &ip->gid))
			return false;
	d->ips++;
	return true;
}

static bool take_gateway(struct device_string *d, const char *v)
{
	if (d->gateways == DEVICE_GATEWAYS_MAX)
		return false;
	struct gid *g = &d->gateway[d->gateways];
	if (gid_parse(v, g) || !is_host(g))
		return false;
	d->gateways++;
	return true;
}

static bool take_vlan(struct device_string *d, const char *v)
{
	uint64_t n;
	if (!parse_number(v, 1, 4094, &n))
		return false;
	d->vlan = (uint16_t)n;
	return true;
}

static bool take_mtu(struct device_string *d, const char *v)
{
	uint64_t n;
	if (!parse_number(v, 256, 4096, &n) || (n & (n - 1)))
		return false;
	d->mtu = (uint32_t)n;
	return true;
}

static bool take_cores(struct device_string *d, const char *v)
{
	uint64_t n;
	if (!parse_number(v, 1, DEVICE_CORES_MAX, &n))
		return false;
	d->cores = (unsigned)n;
	return true;
}

static bool take_cpus(struct device_string *d, const char *v)
{
	char one[8];
	uint64_t n;
	if (!strcmp(v, "-1"))
		return true;
	for (;; v++) {
		size_t len = strcspn(v, "+");
		if (len >= sizeof(one) || d->cpus == DEVICE_CORES_MAX)
			return false;
		memcpy(one, v, len);
		one[len] = 0;
		if (!parse_number(one, 0, CPU_SETSIZE - 1, &n))
			return false;
		d->cpu[d->cpus++] = (uint16_t)n;
		v += len;
		if (!*v)
			return true;
	}
}

static bool take_idle(struct device_string *d, const char *v)
{
	uint64_t us = 50;
	if (!strcmp(v, "spin")) {
		d->idle = DEVICE_IDLE_SPIN;
	} else if (!strcmp(v, "pause")) {
		d->idle = DEVICE_IDLE_PAUSE;
	} else if (!strncmp(v, "sleep", 5) && (!v[5] || (v[5] == ':' && parse_number(v + 6, 1, 10000, &us)))) {
		d->idle = DEVICE_IDLE_SLEEP;
		d->sleep_us = (uint32_t)us;
	} else {
		return false;
	}
	return true;
}

static bool take_memory(struct device_string *d, const char *v)
{
	uint64_t n;
	if (!parse_number(v, 32, 1 << 20, &n))
		return false;
	d->memory_mib = (uint32_t)n;
	return true;
}

static bool take_telemetry(struct device_string *d, const char *v)
{
	d->has_telemetry = !strcmp(v, "on");
	return d->has_telemetry || !strcmp(v, "off");
}

static bool take_link(struct device_string *d, const char *v)
{
	return copy_text(d->link, sizeof(d->link), v);
}

static bool take_side(struct device_string *d, const char *v)
{
	uint64_t n;
	if (!parse_number(v, 0, 1, &n))
		return false;
	d->side = (unsigned)n;
	return true;
}

static bool take_ring(struct device_string *d, const char *v)
{
	uint64_t n;
	if (!parse_number(v, 8, 65536, &n) || (n & (n - 1)))
		return false;
	d->ring = (uint32_t)n;
	return true;
}

static bool take_window(struct device_string *d, const char *v)
{
	uint64_t n;
	if (!parse_number(v, 1, 65536, &n))
		return false;
	d->window = (uint32_t)n;
	return true;
}

static bool take_seed(struct device_string *d, const char *v)
{
	return parse_number(v, 1, UINT64_MAX, &d->seed);
}

static bool take_fault(struct device_string *d, const char *v)
{
	return copy_text(d->fault, sizeof(d->fault), v);
}

static bool take_capture(struct device_string *d, const char *v)
{
	return copy_text(d->capture, sizeof(d->capture), v);
}

static bool take_port(struct device_string *d, const char *v)
{
	uint64_t n;
	if (!parse_number(v, 0, 1023, &n))
		return false;
	d->port = (int)n;
	return true;
}

static bool take_queue(struct device_string *d, const char *v)
{
	uint64_t n;
	if (!parse_number(v, 0, 1023, &n))
		return false;
	d->queue = (uint16_t)n;
	return true;
}

static const struct key {
	const char *name;
	bool (*take)(struct device_string *d, const char *value);
	bool is_repeatable;
	const char *takes, *text;
} keys[] = {
	{ "ip", take_ip, true, "ADDRESS/PREFIX (10.0.0.1/24, fd00::1/64; up to 16, each once) or, alone, \"kernel\"",
		"our own address; kernel: share the addresses of the interface" },
	{ "gw", take_gateway, true, "an address (10.0.0.254, fd00::fe; up to 4)", "default gateway of its family" },
	{ "vlan", take_vlan, false, "1..4094", "VLAN of all addresses" },
	{ "mtu", take_mtu, false, "256, 512, 1024, 2048 or 4096", "largest path MTU to use; refused if the port cannot carry it (default: the largest that fits)" },
	{ "cores", take_cores, false, "1..16", "poll cores, each with a thread and a pair of the port's queues (default 1)" },
	{ "core", take_cpus, false, "a CPU number for each of cores= (2, or 2+3), or -1", "CPUs that the poll cores are pinned to (default -1: not pinned)" },
	{ "idle", take_idle, false, "spin, pause, sleep or sleep:MICROSECONDS (1..10000)", "when nothing happens for 20 us: keep the CPU, offer it to other threads (default), or sleep at most so long" },
	{ "memory", take_memory, false, "MiB, at least 32", "DPDK memory of the process when there are no hugepages (default 512)" },
	{ "telemetry", take_telemetry, false, "on or off", "show this engine to DPDK's telemetry, as /uroce/... (default: on with uroced, else off)" },
	{ "link", take_link, false, "a name of up to 31 characters", "net_ring: the pair in this process to make or join" },
	{ "side", take_side, false, "0 or 1", "net_ring: which end of the pair" },
	{ "ring", take_ring, false, "a power of two from 8 to 65536", "net_ring: slots in each direction (default 1024)" },
	{ "window", take_window, false, "1..65536", "most packets of a QP in flight (default 256, or half of a smaller ring)" },
	{ "fault", take_fault, false, "a list of faults such as drop:1%/reorder:2%:4/seed:7", "receive through a link that loses, delays, reorders, corrupts or marks frames" },
	{ "seed", take_seed, false, "a number other than 0", "make everything random follow from it (tests only)" },
	{ "capture", take_capture, false, "a file name", "write every frame to this pcapng file; several cores: one each, FILE.0, FILE.1 and so on" },
	{ "port", take_port, false, "0..1023", "use this started port of the program's own EAL" },
	{ "queue", take_queue, false, "0..1023", "RX and TX queue of that port, and the ones after it for further cores (default 0)" },
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

static const char *const mode_names[] = { [DEVICE_EMBEDDED] = "embedded", [DEVICE_INLINE] = "inline", [DEVICE_SERVED] = "served" };

const char *device_mode_name(enum device_mode mode)
{
	return mode_names[mode];
}

bool device_string_help(unsigned i, struct device_key_help *help)
{
	if (i >= KEYS)
		return false;
	*help = (struct device_key_help){ keys[i].name, keys[i].takes, keys[i].text };
	return true;
}

/* Cuts the next item off at a comma outside parentheses. false: parentheses do not match. */
static bool cut_item(char **rest, char **item)
{
	int depth = 0;
	char *p = *rest;
	*item = p;
	for (; *p && (*p != ',' || depth); p++) {
		depth += (*p == '(') - (*p == ')');
		if (depth < 0)
			return false;
	}
	*rest = *p ? p + 1 : NULL;
	*p = 0;
	return !depth;
}

static int append_devarg(struct device_string *d, const char *item, const struct log *log)
{
	size_t len = strlen(d->devargs), more = strlen(item);
	if (len + more + 2 > sizeof(d->devargs)) {
		log_write(log, LOG_ERROR, "device string: the keys for the device are longer than %zu characters", sizeof(d->devargs) - 2);
		return -EINVAL;
	}
	if (len)
		d->devargs[len++] = ',';
	memcpy(d->devargs + len, item, more + 1);
	return 0;
}

static int take_item(struct device_string *d, char *item, uint32_t *seen, const struct log *log)
{
	char *value = strchr(item, '=');
	if (!value || value == item) {
		log_write(log, LOG_ERROR, "device string: \"%s\" is not key=value", item);
		return -EINVAL;
	}
	for (unsigned i = 0; i < KEYS; i++) {
		const struct key *k = &keys[i];
		if (strlen(k->name) != (size_t)(value - item) || strncmp(k->name, item, (size_t)(value - item)))
			continue;
		if (*seen & 1u << i && !k->is_repeatable) {
			log_write(log, LOG_ERROR, "device string: %s= is there twice; give it once", k->name);
			return -EINVAL;
		}
		*seen |= 1u << i;
		size_t len = strlen(++value);
		if (len > 1 && *value == '(' && value[len - 1] == ')') {
			value[len - 1] = 0;
			value++;
		}
		if (!k->take(d, value)) {
			log_write(log, LOG_ERROR, "device string: %s=%s: takes %s", k->name, value, k->takes);
			return -EINVAL;
		}
		return 0;
	}
	return append_devarg(d, item, log);
}

/* Rules between keys. */
static int check_whole(const struct device_string *d, const struct log *log)
{
	bool is_ring = !strncmp(d->vdev, "net_ring", 8), has_port = d->port != DEVICE_PORT_NONE;
	const char *wrong = NULL;
	if (!d->vdev[0] && !has_port)
		wrong = "names no device: write MODE:VDEV,... (net_af_packet0,iface=eth0) or port=N of the program's own EAL";
	else if (d->vdev[0] && has_port)
		wrong = "has a device and port=; give one of them";
	else if (is_ring && !d->link[0])
		wrong = "net_ring needs link=NAME,side=0 (or 1): the pair of rings to make or join";
	else if (!is_ring && d->link[0])
		wrong = "link= is for net_ring";
	else if (!d->ips && !d->ip_from_kernel && (is_ring || has_port || strncmp(d->vdev, "net_af_packet", 13)))
		wrong = "this port has no address: give ip=ADDRESS/PREFIX";
	else if (d->ip_from_kernel && strncmp(d->vdev, "net_af_packet", 13))
		wrong = "ip=kernel is for net_af_packet; give ip=ADDRESS/PREFIX";
	else if (d->mode == DEVICE_INLINE && d->cores > 1)
		wrong = "cores= is for threads of the engine's own; inline: has one core, driven by the program";
	else if (d->cpus && d->cpus != d->cores)
		wrong = "core= does not give one CPU for each of cores=; write them with + between, as in cores=2,core=1+3";
	if (!wrong)
		return 0;
	log_write(log, LOG_ERROR, "device string: %s", wrong);
	return -EINVAL;
}

static int parse_mode(const char *text, struct device_string *out, const char **rest, const struct log *log)
{
	for (unsigned m = 0; m < sizeof(mode_names) / sizeof(mode_names[0]); m++) {
		size_t len = strlen(mode_names[m]);
		if (strncmp(text, mode_names[m], len) || text[len] != ':')
			continue;
		out->mode = (enum device_mode)m;
		*rest = text + len + 1;
		return 0;
	}
	log_write(log, LOG_ERROR, "device string \"%s\": starts with none of embedded:, inline:", text);
	return -EINVAL;
}

int device_string_parse(const char *text, struct device_string *out, const struct log *log)
{
	uint32_t seen = 0;
	const char *rest;
	_Static_assert(KEYS <= 32, "one bit of seen each");
	*out = (struct device_string){ .vlan = VLAN_NONE, .cores = 1, .idle = DEVICE_IDLE_PAUSE, .sleep_us = 50, .port = DEVICE_PORT_NONE };
	int err = parse_mode(text, out, &rest, log);
	if (err)
		return err;
	out->has_telemetry = out->mode == DEVICE_SERVED;
	char *copy = strdup(rest), *next = copy, *item;
	if (!copy)
		return -ENOMEM;
	for (bool is_first = true; next && !err; is_first = false) {
		if (!cut_item(&next, &item)) {
			log_write(log, LOG_ERROR, "device string: the parentheses in \"%s\" do not match", item);
			err = -EINVAL;
		} else if (is_first && !strchr(item, '=')) {
			if (strlen(item) >= sizeof(out->vdev)) {
				log_write(log, LOG_ERROR, "device string: the device's name is longer than %zu characters", sizeof(out->vdev) - 1);
				err = -EINVAL;
			} else {
				strcpy(out->vdev, item);
			}
		} else {
			err = take_item(out, item, &seen, log);
		}
	}
	free(copy);
	if (!err)
		err = check_whole(out, log);
	if (!err && !out->ips && !out->ip_from_kernel)
		out->ip_from_kernel = true;
	return err;
}

bool device_string_is_same_port(const struct device_string *a, const struct device_string *b)
{
	return !strcmp(a->vdev, b->vdev) && !strcmp(a->devargs, b->devargs) && !strcmp(a->link, b->link) && a->side == b->side &&
	       a->port == b->port && a->queue == b->queue;
}

bool device_string_shares_queue(const struct device_string *a, const struct device_string *b)
{
	return a->port != DEVICE_PORT_NONE && a->port == b->port && a->queue < b->queue + b->cores && b->queue < a->queue + a->cores;
}

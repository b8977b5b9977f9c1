/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of settings, and how file and command line are taken by it. What a device can be told is the device string's to know: values of [port] are tried on it one by one, so that each refusal names the setting.
 * Invariant: what settings_read answered SETTINGS_RUN for is in range, and device_string_parse has accepted the device as a whole. */
#include "settings.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "config_file.h"
#include "version.h"

#define PORT_VALUES 48u
#define PROBE "served:net_af_packet0" /* a device that every key of ours can be tried on */

enum source { FROM_DEFAULT, FROM_FILE, FROM_COMMAND };

struct setting;

/* A value for the device string. */
struct port_value {
	const struct setting *row;
	enum source source;
	const char *text;
};

struct reading {
	struct settings *s;
	FILE *err;
	const char *file;
	enum source source; /* of what is taken now */
	uint64_t seen;      /* rows that this source has given; one bit each */
	char *vdev;
	enum source vdev_source;
	struct port_value port[PORT_VALUES];
	unsigned ports;
	char *kept[PORT_VALUES]; /* texts that port points at */
	unsigned keeps;
};

struct setting {
	const char *section, *key, *option;
	bool (*take)(struct reading *r, const struct setting *row, const char *value);
	const char *device_key; /* of the device string, which then says what it takes and means */
	bool is_repeatable;
	size_t offset;          /* else of a member of struct settings */
	uint64_t max;
	const char *takes, *text;
};

/* ---- values ---- */

static char *keep(struct reading *r, const char *text)
{
	if (r->keeps == PORT_VALUES)
		return NULL;
	char *copy = strdup(text);
	if (copy)
		r->kept[r->keeps++] = copy;
	return copy;
}

static bool take_vdev(struct reading *r, const struct setting *row, const char *value)
{
	r->vdev = keep(r, value);
	r->vdev_source = r->source;
	return r->vdev && strcspn(value, ",=") > 0 && value[strcspn(value, ",=")] != '=';
}

/* Whether the device string takes this value. */
static bool try_key(const char *key, const char *value)
{
	char probe[512];
	struct device_string d;
	unsigned cores = 1;
	for (const char *p = strchr(value, '+'); p; p = strchr(p + 1, '+'))
		cores++; /* as many as CPUs, or they would not fit each other */
	int len = !strcmp(key, "core") ? snprintf(probe, sizeof(probe), PROBE ",core=(%s),cores=%u", value, cores) : snprintf(probe, sizeof(probe), PROBE ",%s=(%s)", key, value);
	return !strpbrk(value, "()") && len < (int)sizeof(probe) && !device_string_parse(probe, &d, NULL);
}

static bool take_key(struct reading *r, const struct setting *row, const char *value)
{
	unsigned kept = 0;
	if (!try_key(row->device_key, value))
		return false;
	for (unsigned i = 0; i < r->ports; i++)
		if (r->port[i].row != row || r->port[i].source == r->source)
			r->port[kept++] = r->port[i];
	r->ports = kept;
	char *text = keep(r, value);
	if (!text)
		return false;
	r->port[r->ports++] = (struct port_value){ row, r->source, text };
	return true;
}

/* Digits, then K, M or G. */
static bool parse_size(const char *text, uint64_t max, uint64_t *out)
{
	static const char units[] = "KMG";
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	const char *unit = memchr(units, *end & ~0x20, sizeof(units) - 1);
	unsigned shift = unit ? 10u * (unsigned)(unit - units + 1) : 0;
	if (errno || end[unit != NULL] || n > max >> shift)
		return false;
	*out = (uint64_t)n << shift;
	return true;
}

static bool take_size(struct reading *r, const struct setting *row, const char *value)
{
	return parse_size(value, row->max, (uint64_t *)(void *)((char *)r->s + row->offset));
}

static bool take_count(struct reading *r, const struct setting *row, const char *value)
{
	uint64_t n;
	if (!parse_size(value, row->max, &n))
		return false;
	*(uint32_t *)(void *)((char *)r->s + row->offset) = (uint32_t)n;
	return true;
}

static bool take_some(struct reading *r, const struct setting *row, const char *value)
{
	return take_count(r, row, value) && *(uint32_t *)(void *)((char *)r->s + row->offset);
}

static bool take_path(struct reading *r, const struct setting *row, const char *value)
{
	size_t len = strlen(value);
	if (*value != '/' || len >= sizeof(r->s->path) - sizeof(".lock") || value[len - 1] == '/')
		return false;
	memcpy(r->s->path, value, len + 1);
	return true;
}

static bool take_mode(struct reading *r, const struct setting *row, const char *value)
{
	char *end;
	unsigned long mode = strtoul(value, &end, 8);
	if (*value < '0' || *value > '7' || *end || mode > 0777)
		return false;
	r->s->server.mode = (mode_t)mode;
	return true;
}

static bool take_group(struct reading *r, const struct setting *row, const char *value)
{
	uint64_t number;
	const struct group *g = getgrnam(value);
	if (!g && !parse_size(value, INT32_MAX, &number))
		return false;
	r->s->server.group = g ? g->gr_gid : (gid_t)number;
	return snprintf(r->s->group, sizeof(r->s->group), "%s", value) < (int)sizeof(r->s->group);
}

static bool take_level(struct reading *r, const struct setting *row, const char *value)
{
	return !log_level_parse(value, &r->s->log_level);
}

/* ---- the table ---- */

#define IN(member) offsetof(struct settings, member)
#define COUNT "a number, 0: none"
#define SIZE "bytes, with K, M or G; 0: none"

static const struct setting rows[] = {
	{ "port", "vdev", "vdev", take_vdev, .takes = "a DPDK device with its keys, as net_af_packet0,iface=eth0, or a PCI address",
		.text = "the port to serve; keys of uroce may follow those of the device" },
	{ "port", "ip", "ip", take_key, "ip", .is_repeatable = true },
	{ "port", "gateway", NULL, take_key, "gw", .is_repeatable = true },
	{ "port", "vlan", NULL, take_key, "vlan" },
	{ "port", "mtu", NULL, take_key, "mtu" },
	{ "port", "cores", "cores", take_key, "cores" },
	{ "port", "cpu", "cpu", take_key, "core" },
	{ "port", "idle", "idle", take_key, "idle" },
	{ "port", "sleep", NULL, take_some, .offset = IN(sleep_us), .max = 10000, .takes = "microseconds, 1..10000", .text = "longest sleep of idle = sleep (default 50)" },
	{ "port", "memory", NULL, take_key, "memory" },
	{ "port", "telemetry", NULL, take_key, "telemetry" },
	{ "port", "window", NULL, take_key, "window" },
	{ "port", "fault", NULL, take_key, "fault" },
	{ "port", "capture", NULL, take_key, "capture" },
	{ "socket", "path", "socket", take_path, .takes = "an absolute path of at most 102 characters", .text = "the socket that clients open as unix:PATH; its folder is made if need be (default /run/uroce/uroce0.sock)" },
	{ "socket", "mode", "mode", take_mode, .takes = "an octal mode, 0 to 0777", .text = "of the socket file: who may write to it may be a client (default 0660)" },
	{ "socket", "group", "group", take_group, .takes = "the name or number of a group of this system", .text = "of the socket file (default: uroce if there is such a group, else as it comes)" },
	{ "limits", "clients", NULL, take_some, .offset = IN(server.max_clients), .max = 65536, .takes = "1..65536", .text = "clients at a time" },
	{ "limits", "clients-per-uid", NULL, take_some, .offset = IN(server.max_clients_per_uid), .max = 65536, .takes = "1..65536", .text = "clients of one user at a time" },
	{ "quota.client", "qps", NULL, take_count, .offset = IN(server.client.qps), .max = UINT32_MAX, .takes = COUNT, .text = "most QPs of one client" },
	{ "quota.client", "cqs", NULL, take_count, .offset = IN(server.client.cqs), .max = UINT32_MAX, .takes = COUNT, .text = "most CQs of one client" },
	{ "quota.client", "srqs", NULL, take_count, .offset = IN(server.client.srqs), .max = UINT32_MAX, .takes = COUNT, .text = "most SRQs of one client" },
	{ "quota.client", "ahs", NULL, take_count, .offset = IN(server.client.ahs), .max = UINT32_MAX, .takes = COUNT, .text = "most AHs of one client" },
	{ "quota.client", "mrs", NULL, take_count, .offset = IN(server.client.mrs), .max = UINT32_MAX, .takes = COUNT, .text = "most MRs of one client" },
	{ "quota.client", "mws", NULL, take_count, .offset = IN(server.client.mws), .max = UINT32_MAX, .takes = COUNT, .text = "most memory windows of one client" },
	{ "quota.client", "pds", NULL, take_count, .offset = IN(server.client.pds), .max = UINT32_MAX, .takes = COUNT, .text = "most PDs of one client" },
	{ "quota.client", "channels", NULL, take_count, .offset = IN(server.client.channels), .max = UINT32_MAX, .takes = COUNT, .text = "most completion channels of one client" },
	{ "quota.client", "attachments", NULL, take_count, .offset = IN(server.client.attachments), .max = UINT32_MAX, .takes = COUNT, .text = "most attachments of QPs of one client to multicast groups" },
	{ "quota.client", "registered-bytes", NULL, take_size, .offset = IN(server.client.registered_bytes), .max = UINT64_MAX, .takes = SIZE, .text = "most memory of one client in MRs" },
	{ "quota.client", "ring-bytes", NULL, take_size, .offset = IN(server.client.ring_bytes), .max = UINT64_MAX, .takes = SIZE, .text = "most memory of one client for SQs, RQs and CQs" },
	{ "quota.client", "pool-bytes", NULL, take_size, .offset = IN(server.client.pool_bytes), .max = UINT64_MAX, .takes = SIZE, .text = "most memory of one client by uroce_alloc" },
	{ "quota.uid", "qps", NULL, take_count, .offset = IN(server.uid.qps), .max = UINT32_MAX, .takes = COUNT, .text = "most QPs of all clients of one user" },
	{ "quota.uid", "cqs", NULL, take_count, .offset = IN(server.uid.cqs), .max = UINT32_MAX, .takes = COUNT, .text = "most CQs of all clients of one user" },
	{ "quota.uid", "srqs", NULL, take_count, .offset = IN(server.uid.srqs), .max = UINT32_MAX, .takes = COUNT, .text = "most SRQs of all clients of one user" },
	{ "quota.uid", "ahs", NULL, take_count, .offset = IN(server.uid.ahs), .max = UINT32_MAX, .takes = COUNT, .text = "most AHs of all clients of one user" },
	{ "quota.uid", "mrs", NULL, take_count, .offset = IN(server.uid.mrs), .max = UINT32_MAX, .takes = COUNT, .text = "most MRs of all clients of one user" },
	{ "quota.uid", "mws", NULL, take_count, .offset = IN(server.uid.mws), .max = UINT32_MAX, .takes = COUNT, .text = "most memory windows of all clients of one user" },
	{ "quota.uid", "pds", NULL, take_count, .offset = IN(server.uid.pds), .max = UINT32_MAX, .takes = COUNT, .text = "most PDs of all clients of one user" },
	{ "quota.uid", "channels", NULL, take_count, .offset = IN(server.uid.channels), .max = UINT32_MAX, .takes = COUNT, .text = "most completion channels of all clients of one user" },
	{ "quota.uid", "attachments", NULL, take_count, .offset = IN(server.uid.attachments), .max = UINT32_MAX, .takes = COUNT, .text = "most attachments of QPs of all clients of one user to multicast groups" },
	{ "quota.uid", "registered-bytes", NULL, take_size, .offset = IN(server.uid.registered_bytes), .max = UINT64_MAX, .takes = SIZE, .text = "most memory of all clients of one user in MRs" },
	{ "quota.uid", "ring-bytes", NULL, take_size, .offset = IN(server.uid.ring_bytes), .max = UINT64_MAX, .takes = SIZE, .text = "most memory of all clients of one user for SQs, RQs and CQs" },
	{ "quota.uid", "pool-bytes", NULL, take_size, .offset = IN(server.uid.pool_bytes), .max = UINT64_MAX, .takes = SIZE, .text = "most memory of all clients of one user by uroce_alloc" },
	{ "log", "level", "log-level", take_level, .takes = "error, warn, info or debug", .text = "what is written to standard error (default info)" },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

bool settings_help(unsigned i, struct setting_help *help)
{
	struct device_key_help key;
	if (i >= ROWS)
		return false;
	*help = (struct setting_help){ rows[i].section, rows[i].key, rows[i].option, rows[i].takes, rows[i].text };
	for (unsigned k = 0; rows[i].device_key && device_string_help(k, &key); k++) {
		if (!strcmp(key.name, rows[i].device_key)) {
			help->takes = key.takes;
			help->text = key.text;
		}
	}
	return true;
}

static void print_help(FILE *out)
{
	struct setting_help h;
	fprintf(out, "uroced: serves an Ethernet port to the uroce programs of this machine.\n"
		"  uroced --vdev net_af_packet0,iface=eth0\n"
		"  uroced --config /etc/uroce/uroced.conf\n\n"
		"Options, each also a key of the file (the command line wins):\n"
		"  --config      file of [section] and key = value. Takes a file name\n");
	for (unsigned i = 0; settings_help(i, &h); i++)
		if (h.option)
			fprintf(out, "  --%-11s [%s] %s: %s. Takes %s\n", h.option, h.section, h.key, h.text, h.takes);
	fprintf(out, "  --help        this\n  --version     of uroced and what it is built with\n\nOnly in the file:\n");
	for (unsigned i = 0; settings_help(i, &h); i++)
		if (!h.option)
			fprintf(out, "  [%s] %s: %s. Takes %s\n", h.section, h.key, h.text, h.takes);
	fprintf(out, "\nSignals: SIGTERM and SIGINT end it, SIGUSR1 has it print a report. Exit code: 0, ended by a signal; 1, it could not serve; 2, settings that make no sense.\n");
}

/* ---- taking ---- */

/* What a setting is called where it was given. */
static void name_setting(const struct reading *r, const struct setting *row, char *text, size_t room)
{
	if (r->source == FROM_FILE)
		snprintf(text, room, "%s: [%s] %s =", r->file, row->section, row->key);
	else
		snprintf(text, room, "--%s", row->option);
}

static bool take_row(struct reading *r, const struct setting *row, const char *value)
{
	char name[PATH_MAX + 80];
	struct setting_help help;
	uint64_t bit = UINT64_C(1) << (row - rows);
	_Static_assert(ROWS <= 64, "a bit of seen each");
	name_setting(r, row, name, sizeof(name));
	if (r->seen & bit && !row->is_repeatable) {
		fprintf(r->err, "uroced: %s %s: is there twice, expected once\n", name, value);
		return false;
	}
	r->seen |= bit;
	if (row->take(r, row, value))
		return true;
	settings_help((unsigned)(row - rows), &help);
	fprintf(r->err, "uroced: %s %s: expected %s\n", name, value, help.takes);
	return false;
}

/* Names of a kind, each once, in the order of the table: of sections, or of the keys of one section. */
static void list_names(FILE *err, const char *section)
{
	const char *comma = "";
	for (unsigned i = 0; i < ROWS; i++) {
		bool is_wanted = section ? !strcmp(rows[i].section, section) : !i || strcmp(rows[i].section, rows[i - 1].section);
		if (!is_wanted)
			continue;
		fprintf(err, "%s%s", comma, section ? rows[i].key : rows[i].section);
		comma = ", ";
	}
	fprintf(err, "\n");
}

static bool take_from_file(void *arg, const char *section, const char *key, const char *value)
{
	struct reading *r = arg;
	bool is_section = false;
	for (unsigned i = 0; i < ROWS; i++) {
		if (strcmp(rows[i].section, section))
			continue;
		is_section = true;
		if (key && !strcmp(rows[i].key, key))
			return take_row(r, &rows[i], value);
	}
	if (is_section && !key)
		return true;
	if (is_section)
		fprintf(r->err, "uroced: %s: [%s] %s: no such key; expected one of ", r->file, section, key);
	else
		fprintf(r->err, "uroced: %s: [%s]: no such section; expected one of ", r->file, section);
	list_names(r->err, is_section ? section : NULL);
	return false;
}

/* argv[*at] is --NAME VALUE or --NAME=VALUE. *value is NULL when there is none. */
static bool is_option(const char *name, char **argv, int at, const char **value, int *words)
{
	size_t len = strlen(name);
	if (strncmp(argv[at], "--", 2) || strncmp(argv[at] + 2, name, len))
		return false;
	const char *rest = argv[at] + 2 + len;
	if (*rest && *rest != '=')
		return false;
	*value = *rest ? rest + 1 : argv[at + 1];
	*words = *rest || !argv[at + 1] ? 1 : 2;
	return true;
}

static bool take_argument(struct reading *r, char **argv, int at, int *words)
{
	const char *value;
	if (is_option("config", argv, at, &value, words))
		return true; /* has been read */
	for (unsigned i = 0; i < ROWS; i++) {
		if (!rows[i].option || !is_option(rows[i].option, argv, at, &value, words))
			continue;
		if (value && *value)
			return take_row(r, &rows[i], value);
		struct setting_help help;
		settings_help(i, &help);
		fprintf(r->err, "uroced: --%s: expected %s\n", rows[i].option, help.takes);
		return false;
	}
	fprintf(r->err, "uroced: %s: no such option; expected one of those that --help lists\n", argv[at]);
	return false;
}

/* Finds --config, --help and --version before anything is taken. */
static enum settings_outcome look_ahead(struct reading *r, char **argv, FILE *out)
{
	const char *value;
	int words = 1;
	for (int i = 1; argv[i]; i += words) {
		words = 1;
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			print_help(out);
			return SETTINGS_DONE;
		}
		if (!strcmp(argv[i], "--version")) {
			version_print(out);
			return SETTINGS_DONE;
		}
		if (is_option("config", argv, i, &value, &words)) {
			if (!value || !*value || r->file) {
				fprintf(r->err, "uroced: --config: expected the name of one file\n");
				return SETTINGS_WRONG;
			}
			r->file = value;
		} else {
			for (unsigned k = 0; k < ROWS && words == 1; k++) /* a value is no option */
				if (rows[k].option)
					is_option(rows[k].option, argv, i, &value, &words);
		}
	}
	return SETTINGS_RUN;
}

static bool take_all(struct reading *r, char **argv)
{
	r->source = FROM_FILE;
	if (r->file && !config_file_read(r->file, take_from_file, r, r->err))
		return false;
	r->source = FROM_COMMAND;
	r->seen = 0;
	int words = 1;
	for (int i = 1; argv[i]; i += words)
		if (!take_argument(r, argv, i, &words))
			return false;
	return true;
}

/* ---- the device ---- */

static bool append(struct settings *s, const char *format, const char *a, const char *b)
{
	size_t len = strlen(s->device);
	return snprintf(s->device + len, sizeof(s->device) - len, format, a, b) < (int)(sizeof(s->device) - len);
}

/* Whether --vdev names the key itself; it then wins over the file. */
static bool vdev_has(const struct reading *r, const char *key)
{
	size_t len = strlen(key);
	for (const char *p = strchr(r->vdev, ','); p; p = strchr(p + 1, ','))
		if (!strncmp(p + 1, key, len) && p[1 + len] == '=')
			return true;
	return false;
}

static bool append_value(struct reading *r, const struct port_value *v)
{
	char sleep[32];
	const char *text = v->text, *key = v->row->device_key;
	if (v->source < r->vdev_source && vdev_has(r, key))
		return true;
	if (!strcmp(key, "idle") && !strcmp(text, "sleep") && r->s->sleep_us) {
		snprintf(sleep, sizeof(sleep), "sleep:%u", r->s->sleep_us);
		text = sleep;
	}
	return append(r->s, strchr(text, ',') ? ",%s=(%s)" : ",%s=%s", key, text);
}

static void write_error(void *arg, enum log_level level, const char *line)
{
	struct reading *r = arg;
	fprintf(r->err, "uroced: %s\n", line);
}

static bool make_device(struct reading *r)
{
	struct log log = { write_error, r, LOG_ERROR };
	if (!r->vdev) {
		fprintf(r->err, "uroced: no port: expected --vdev net_af_packet0,iface=eth0, or vdev in section [port] of the file that --config names\n");
		return false;
	}
	bool is_fitting = append(r->s, "served:%s%s", r->vdev, "");
	for (unsigned i = 0; i < r->ports && is_fitting; i++)
		is_fitting = append_value(r, &r->port[i]);
	if (!is_fitting)
		fprintf(r->err, "uroced: the settings of the port are too long: expected at most %zu characters altogether\n", sizeof(r->s->device) - 1);
	return is_fitting && !device_string_parse(r->s->device, &r->s->parsed, &log);
}

enum settings_outcome settings_read(struct settings *s, int argc, char **argv, FILE *out, FILE *err)
{
	struct reading r = { .s = s, .err = err };
	const struct group *own = getgrnam("uroce");
	*s = (struct settings){ .log_level = LOG_INFO };
	server_defaults(&s->server);
	snprintf(s->path, sizeof(s->path), "%s", s->server.path);
	s->server.path = s->path;
	s->server.group = own ? own->gr_gid : s->server.group;
	if (own)
		strcpy(s->group, "uroce");
	enum settings_outcome outcome = look_ahead(&r, argv, out);
	if (outcome == SETTINGS_RUN && (!take_all(&r, argv) || !make_device(&r)))
		outcome = SETTINGS_WRONG;
	for (unsigned i = 0; i < r.keeps; i++)
		free(r.kept[i]);
	return outcome;
}

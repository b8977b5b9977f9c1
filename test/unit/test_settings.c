/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of uroced: every one by file and by command line, which of them wins, what is refused with which line, and that config/uroced.conf has them all with their defaults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings.h"

#define ARGS_MAX 16
#define VDEV "net_af_packet0,iface=eth0"

static char file_name[64], said[16384];

/* Writes the configuration file of the test; NULL: there is none. */
static void write_file(const char *text)
{
	FILE *f = text ? fopen(file_name, "w") : NULL;
	unlink(text ? "" : file_name);
	if (!text)
		return;
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* With the words of `line` as arguments, after --config FILE if there is a text for it. What was written to err is in `said`. */
static enum settings_outcome take(const char *text, const char *line, struct settings *s)
{
	char name[] = "uroced", option[] = "--config", *argv[ARGS_MAX + 1] = { name }, words[1024], *output = NULL;
	size_t size = 0;
	int argc = 1;
	FILE *err = open_memstream(&output, &size);
	write_file(text);
	if (text) {
		argv[argc++] = option;
		argv[argc++] = file_name;
	}
	snprintf(words, sizeof(words), "%s", line);
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
		assert_true(argc < ARGS_MAX);
		argv[argc++] = word;
	}
	enum settings_outcome outcome = settings_read(s, argc, argv, err, err);
	fclose(err);
	snprintf(said, sizeof(said), "%s", output);
	free(output);
	write_file(NULL);
	return outcome;
}

static void accept(const char *text, const char *line, struct settings *s)
{
	if (take(text, line, s) != SETTINGS_RUN)
		fail_msg("refused: %s", said);
	assert_string_equal(said, "");
}

/* Refused with one line that has each of the words (at most three). */
static void refuse(const char *text, const char *line, const char *one, const char *two, const char *three)
{
	struct settings s;
	const char *words[] = { one, two, three };
	if (take(text, line, &s) != SETTINGS_WRONG)
		fail_msg("accepted: %s with %s", line, text ? text : "no file");
	if (strncmp(said, "uroced: ", 8) || strchr(said, '\n') != said + strlen(said) - 1)
		fail_msg("not one line of uroced: \"%s\"", said);
	for (unsigned i = 0; i < 3 && words[i]; i++)
		if (!strstr(said, words[i]))
			fail_msg("\"%s\" does not say \"%s\"", said, words[i]);
}

static void compare_usage(const struct core_usage *a, const struct core_usage *b)
{
	assert_int_equal(a->qps, b->qps);
	assert_int_equal(a->cqs, b->cqs);
	assert_int_equal(a->srqs, b->srqs);
	assert_int_equal(a->ahs, b->ahs);
	assert_int_equal(a->attachments, b->attachments);
	assert_int_equal(a->mrs, b->mrs);
	assert_int_equal(a->mws, b->mws);
	assert_int_equal(a->pds, b->pds);
	assert_int_equal(a->channels, b->channels);
	assert_int_equal(a->registered_bytes, b->registered_bytes);
	assert_int_equal(a->ring_bytes, b->ring_bytes);
	assert_int_equal(a->pool_bytes, b->pool_bytes);
}

static void compare_servers(const struct server_config *a, const struct server_config *b)
{
	assert_string_equal(a->path, b->path);
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->group, b->group);
	assert_int_equal(a->max_clients, b->max_clients);
	assert_int_equal(a->max_clients_per_uid, b->max_clients_per_uid);
	compare_usage(&a->client, &b->client);
	compare_usage(&a->uid, &b->uid);
}

static void test_defaults(void **state)
{
	struct settings s;
	struct server_config usual;
	server_defaults(&usual);
	accept(NULL, "--vdev " VDEV, &s);
	assert_string_equal(s.device, "served:" VDEV);
	assert_int_equal(s.parsed.mode, DEVICE_SERVED);
	assert_string_equal(s.path, "/run/uroce/uroce0.sock");
	assert_ptr_equal(s.server.path, s.path);
	assert_int_equal(s.server.mode, 0660);
	assert_int_equal(s.log_level, LOG_INFO);
	assert_int_equal(s.server.max_clients, usual.max_clients);
	compare_usage(&s.server.client, &usual.client);
	compare_usage(&s.server.uid, &usual.uid);
	assert_int_equal(s.server.group, getgrnam("uroce") ? getgrnam("uroce")->gr_gid : (gid_t)-1);
}

/* Each key of [port] and what it makes of the device string. */
static void test_port(void **state)
{
	static const struct {
		const char *key, *value, *device;
	} rows[] = {
		{ "ip", "10.0.0.1/24", "ip=10.0.0.1/24" },
		{ "gateway", "10.0.0.254", "gw=10.0.0.254" },
		{ "vlan", "7", "vlan=7" },
		{ "mtu", "1024", "mtu=1024" },
		{ "cores", "2", "cores=2" },
		{ "cpu", "1", "core=1" },
		{ "cpu", "-1", "core=-1" },
		{ "idle", "spin", "idle=spin" },
		{ "idle", "sleep:70", "idle=sleep:70" },
		{ "memory", "128", "memory=128" },
		{ "window", "64", "window=64" },
		{ "fault", "drop:1%/seed:7", "fault=drop:1%/seed:7" },
		{ "capture", "/tmp/a,b.pcapng", "capture=(/tmp/a,b.pcapng)" },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[256], device[256];
		struct settings s;
		snprintf(text, sizeof(text), "[port]\nvdev = " VDEV "\n%s = %s\n", rows[i].key, rows[i].value);
		snprintf(device, sizeof(device), "served:" VDEV ",%s", rows[i].device);
		accept(text, "", &s);
		assert_string_equal(s.device, device);
	}
}

/* Each option and the setting of the file that it stands for. */
static void test_options(void **state)
{
	static const struct {
		const char *option, *text;
	} rows[] = {
		{ "--ip 10.0.0.1/24 --ip fd00::1/64", "[port]\nip = 10.0.0.1/24\nip = fd00::1/64" },
		{ "--cores 2", "[port]\ncores = 2" },
		{ "--cpu=3", "[port]\ncpu = 3" },
		{ "--idle pause", "[port]\nidle=pause" },
		{ "--socket /tmp/u.sock", "[socket]\npath = /tmp/u.sock" },
		{ "--mode 0666", "[socket]\nmode = 666" },
		{ "--group 17", "[socket]\ngroup = 17" },
		{ "--log-level debug", "[log]\nlevel = debug" },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct settings by_option, by_file, usual;
		char line[256];
		snprintf(line, sizeof(line), "--vdev " VDEV " %s", rows[i].option);
		accept(NULL, "--vdev " VDEV, &usual);
		accept(NULL, line, &by_option);
		accept(rows[i].text, "--vdev " VDEV, &by_file);
		by_option.server.path = by_file.server.path = usual.server.path = NULL;
		if (memcmp(&by_option, &by_file, sizeof(by_file)))
			fail_msg("%s is not %s: %s, %s", rows[i].option, rows[i].text, by_option.device, by_file.device);
		if (!memcmp(&by_option, &usual, sizeof(usual)))
			fail_msg("%s changes nothing", rows[i].option);
	}
}

/* Numbers of [limits] and of both quotas, each in its place. */
static void test_limits(void **state)
{
	struct settings s;
	accept("[limits]\nclients = 1\nclients-per-uid = 2\n"
	       "[quota.client]\nqps = 3\ncqs = 4\nsrqs = 44\nahs = 45\nmrs = 5\nmws = 55\npds = 6\nchannels = 7\nattachments = 77\nregistered-bytes = 8K\nring-bytes = 9m\npool-bytes = 10G\n"
	       "[quota.uid]\nqps = 13\ncqs = 14\nsrqs = 144\nahs = 145\nmrs = 15\nmws = 155\npds = 16\nchannels = 0\nattachments = 177\nregistered-bytes = 18\nring-bytes = 19K\npool-bytes = 4294967296\n",
		"--vdev " VDEV, &s);
	assert_int_equal(s.server.max_clients, 1);
	assert_int_equal(s.server.max_clients_per_uid, 2);
	const struct core_usage client = { .qps = 3, .cqs = 4, .srqs = 44, .ahs = 45, .mrs = 5, .mws = 55, .pds = 6, .channels = 7, .attachments = 77, .registered_bytes = 8 << 10, .ring_bytes = 9 << 20, .pool_bytes = UINT64_C(10) << 30 };
	const struct core_usage uid = { .qps = 13, .cqs = 14, .srqs = 144, .ahs = 145, .mrs = 15, .mws = 155, .pds = 16, .channels = 0, .attachments = 177, .registered_bytes = 18, .ring_bytes = 19 << 10, .pool_bytes = UINT64_C(1) << 32 };
	compare_usage(&s.server.client, &client);
	compare_usage(&s.server.uid, &uid);
}

static void test_group(void **state)
{
	struct settings s;
	const struct group *g = getgrgid(0);
	assert_non_null(g);
	char line[128];
	snprintf(line, sizeof(line), "--vdev " VDEV " --group %s", g->gr_name);
	accept(NULL, line, &s);
	assert_int_equal(s.server.group, 0);
	assert_string_equal(s.group, g->gr_name);
}

/* The command line over the file, keys of --vdev over the file, whatever the order. */
static void test_precedence(void **state)
{
	struct settings s;
	const char *file = "[port]\nvdev = net_af_packet0,iface=eth1\nip = 10.0.0.1/24\nip = 10.0.0.2/24\nmtu = 256\nidle = sleep\nsleep = 60\n[socket]\nmode = 0600\n[log]\nlevel = error\n";
	accept(file, "", &s);
	assert_string_equal(s.device, "served:net_af_packet0,iface=eth1,ip=10.0.0.1/24,ip=10.0.0.2/24,mtu=256,idle=sleep:60");
	assert_int_equal(s.parsed.sleep_us, 60);
	accept(file, "--ip 10.0.0.3/24 --mode 0666 --idle spin", &s);
	assert_string_equal(s.device, "served:net_af_packet0,iface=eth1,mtu=256,ip=10.0.0.3/24,idle=spin");
	assert_int_equal(s.server.mode, 0666);
	assert_int_equal(s.log_level, LOG_ERROR);
	accept(file, "--vdev net_af_packet1,iface=eth2,mtu=512", &s);
	assert_string_equal(s.device, "served:net_af_packet1,iface=eth2,mtu=512,ip=10.0.0.1/24,ip=10.0.0.2/24,idle=sleep:60");
	accept("[port]\ncores = 3\n", "--vdev " VDEV " --cpu 4+0+2", &s);
	assert_string_equal(s.device, "served:" VDEV ",cores=3,core=4+0+2");
	accept(NULL, "--vdev 0000:03:00.0 --ip 10.0.0.1/24", &s);
	assert_string_equal(s.parsed.vdev, "0000:03:00.0");
}

static void test_file_shape(void **state)
{
	struct settings s;
	accept("# all of it\n\n[ port ]\n\tvdev = " VDEV "   # this one\n  mtu=256\n[limits]\n[port]\nidle = spin", "", &s);
	assert_string_equal(s.device, "served:" VDEV ",mtu=256,idle=spin");
}

static void test_refused_values(void **state)
{
	static const struct {
		const char *section, *key, *value, *expected;
	} rows[] = {
		{ "port", "vdev", ",iface=eth0", "expected a DPDK device" },
		{ "port", "vdev", "iface=eth0", "expected a DPDK device" },
		{ "port", "ip", "10.0.0.1", "expected ADDRESS/PREFIX" },
		{ "port", "ip", "10.0.0.1/33", "expected ADDRESS/PREFIX" },
		{ "port", "ip", "(10.0.0.1/24),mtu=256", "expected ADDRESS/PREFIX" },
		{ "port", "capture", "a),mtu=256,x=(b", "expected a file name" },
		{ "port", "gateway", "10.0.0", "expected an address" },
		{ "port", "vlan", "4095", "expected 1..4094" },
		{ "port", "mtu", "1500", "expected 256, 512" },
		{ "port", "cores", "0", "expected" },
		{ "port", "cpu", "first", "expected a CPU" },
		{ "port", "cpu", "1+", "expected a CPU" },
		{ "port", "idle", "wait", "expected spin, pause" },
		{ "port", "sleep", "0", "expected microseconds" },
		{ "port", "sleep", "10001", "expected microseconds" },
		{ "port", "memory", "16", "expected MiB" },
		{ "port", "window", "0", "expected 1..65536" },
		{ "socket", "path", "uroce.sock", "expected an absolute path" },
		{ "socket", "path", "/run/uroce/", "expected an absolute path" },
		{ "socket", "path", "/1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123", "expected an absolute path" },
		{ "socket", "mode", "0668", "expected an octal mode" },
		{ "socket", "mode", "1777", "expected an octal mode" },
		{ "socket", "mode", "rw", "expected an octal mode" },
		{ "socket", "group", "no-such-group", "expected the name or number of a group" },
		{ "limits", "clients", "0", "expected 1..65536" },
		{ "limits", "clients", "65537", "expected 1..65536" },
		{ "limits", "clients-per-uid", "many", "expected 1..65536" },
		{ "quota.client", "qps", "-1", "expected a number" },
		{ "quota.client", "qps", "4294967296", "expected a number" },
		{ "quota.client", "ring-bytes", "1T", "expected bytes" },
		{ "quota.uid", "pool-bytes", "1 G", "expected bytes" },
		{ "quota.uid", "pool-bytes", "17179869184G", "expected bytes" },
		{ "quota.uid", "registered-bytes", "18446744073709551616", "expected bytes" },
		{ "log", "level", "loud", "expected error, warn" },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[512], name[512];
		snprintf(text, sizeof(text), "[%s]\n%s = %s\n", rows[i].section, rows[i].key, rows[i].value);
		snprintf(name, sizeof(name), "%s: [%s] %s = %s: ", file_name, rows[i].section, rows[i].key, rows[i].value);
		refuse(text, strcmp(rows[i].key, "vdev") ? "--vdev " VDEV : "", name, rows[i].expected, NULL);
	}
}

static void test_refused_files(void **state)
{
	static const struct {
		const char *text, *one, *two;
	} rows[] = {
		{ "[port]\nmtuu = 256\n", "[port] mtuu: no such key", "expected one of vdev, ip, gateway" },
		{ "[prot]\nmtu = 256\n", "[prot]: no such section", "expected one of port, socket, limits, quota.client, quota.uid, log" },
		{ "[prot]\n", "[prot]: no such section", "expected one of port" },
		{ "[socket]\nmtu = 256\n", "[socket] mtu: no such key", "expected one of path, mode, group" },
		{ "[port]\nmtu 256\n", "line 2 has no \"=\"", "expected key = value" },
		{ "[port]\nmtu =\n", "line 2 has nothing on one side", "expected key = value" },
		{ "[port]\nmtu = # 256\n", "line 2 has nothing on one side", "expected key = value" },
		{ "[port]\n= 256\n", "line 2 has nothing on one side", "expected key = value" },
		{ "mtu = 256\n", "line 1 is in no section", "expected [port]" },
		{ "[port\nmtu = 256\n", "line 1 is no section", "expected [name]" },
		{ "[port] mtu = 256\n", "line 1 is no section", "expected [name]" },
		{ "[port]\nmtu = 256\nmtu = 512\n", "[port] mtu = 512: is there twice", "expected once" },
		{ "[port]\nmtu = 256\n[port]\nmtu = 256\n", "[port] mtu = 256: is there twice", "expected once" },
		{ "[port]\nip = 10.0.0.1/24\nip = 10.0.0.1/24\n", "ip=10.0.0.1/24", "each once" },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(rows[i].text, "--vdev " VDEV, rows[i].one, rows[i].two, NULL);
	char line[512] = "[port]\nip = ", name[128];
	memset(line + strlen(line), '1', 400);
	refuse(line, "--vdev " VDEV, "line 2 is too long", NULL, NULL);
	line[12 + 280] = 0;
	refuse(line, "--vdev " VDEV, "line 2 is too long", "at most 255", NULL);
	snprintf(name, sizeof(name), "--config %s", file_name);
	refuse(NULL, name, file_name, "cannot be read: No such file", NULL);
	refuse(NULL, "--config /", "/: cannot be read: Is a directory", NULL, NULL);
}

/* A blank behind a number, as only a command line has it, is no unit. */
static void test_refused_blank(void **state)
{
	static const char *const words[] = { "uroced", "--vdev", VDEV, "--group", "0 " };
	char text[5][64], *argv[6] = { NULL };
	struct settings s;
	for (unsigned i = 0; i < 5; i++)
		argv[i] = strcpy(text[i], words[i]);
	FILE *err = fopen("/dev/null", "w");
	assert_int_equal(settings_read(&s, 5, argv, err, err), SETTINGS_WRONG);
	fclose(err);
}

static void test_refused_options(void **state)
{
	refuse(NULL, "", "no port: expected --vdev", "[port]", NULL);
	refuse("[limits]\nclients = 5\n", "", "no port: expected --vdev", NULL, NULL);
	refuse(NULL, "--vdev", "--vdev: expected a DPDK device", NULL, NULL);
	refuse(NULL, "--vdev " VDEV " --mode", "--mode: expected an octal mode", NULL, NULL);
	refuse(NULL, "--vdev " VDEV " --mode 99", "--mode 99: expected an octal mode", NULL, NULL);
	refuse(NULL, "--vdev " VDEV " --cores 99", "--cores 99: expected", NULL, NULL);
	refuse(NULL, "--vdev " VDEV " --fast", "--fast: no such option", "--help", NULL);
	refuse(NULL, "--vdev " VDEV " --vlan 7", "--vlan: no such option", NULL, NULL);
	refuse(NULL, "--vdev " VDEV " --ipx 7", "--ipx: no such option", NULL, NULL);
	refuse(NULL, "--vdev " VDEV " eth0", "eth0: no such option", NULL, NULL);
	refuse(NULL, "--vdev " VDEV " --idle spin --idle spin", "--idle spin: is there twice", NULL, NULL);
	refuse(NULL, "--config", "--config: expected the name of one file", NULL, NULL);
	refuse("", "--config other", "--config: expected the name of one file", NULL, NULL);
	/* Rules of the device as a whole. */
	refuse(NULL, "--vdev net_memif0,id=1", "has no address", "ip=ADDRESS/PREFIX", NULL);
	refuse(NULL, "--vdev " VDEV " --cores 2 --cpu 1", "core=", NULL, NULL);
	refuse(NULL, "--vdev " VDEV ",mtu=1500", "mtu=1500", "256, 512", NULL);
	refuse(NULL, "--vdev " VDEV ",idle=spin --idle pause", "idle= is there twice", NULL, NULL);
}

static void test_help_and_version(void **state)
{
	struct settings s;
	struct setting_help h;
	assert_int_equal(take(NULL, "--vdev " VDEV " --help", &s), SETTINGS_DONE);
	for (unsigned i = 0; settings_help(i, &h); i++) {
		char name[64];
		snprintf(name, sizeof(name), h.option ? "--%s " : "[%s] %s:", h.option ? h.option : h.section, h.key);
		assert_non_null(h.takes);
		assert_non_null(h.text);
		if (!strstr(said, name))
			fail_msg("--help does not have \"%s\"", name);
	}
	assert_int_equal(take(NULL, "--version", &s), SETTINGS_DONE);
	assert_int_equal(strncmp(said, "uroced " UROCE_VERSION ", DPDK ", strlen("uroced " UROCE_VERSION ", DPDK ")), 0);
}

/* ---- config/uroced.conf ---- */

static char *read_example(void)
{
	char *text = calloc(1, 65536);
	FILE *f = fopen(SOURCE_ROOT "/config/uroced.conf", "r");
	assert_non_null(text);
	assert_non_null(f);
	assert_true(fread(text, 1, 65535, f) > 0);
	fclose(f);
	return text;
}

/* The example as it is, and with every "#key = value" of it in force: the defaults, but for keys that have none. */
static void test_example(void **state)
{
	char *text = read_example(), section[64] = "", line[512], found[4096] = "";
	struct settings as_it_is, usual;
	accept(text, "", &as_it_is);
	accept(NULL, "--vdev " VDEV, &usual);
	compare_servers(&as_it_is.server, &usual.server);
	assert_string_equal(as_it_is.device, usual.device);
	assert_int_equal(as_it_is.log_level, usual.log_level);
	char *all = calloc(1, 65536);
	for (const char *at = text; *at; at += strlen(line) + (at[strlen(line)] == '\n')) {
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
		char key[64], value[256];
		const char *setting = *line == '#' && line[1] != ' ' ? line + 1 : line;
		if (sscanf(line, "[%60[^]]]", section) == 1 || sscanf(setting, "%60[a-z-] = %250s", key, value) != 2 || *setting == '#') {
			strcat(strcat(all, *line == '[' ? line : ""), "\n");
			continue;
		}
		size_t len = strlen(found);
		snprintf(found + len, sizeof(found) - len, " %s/%s ", section, key);
		/* Examples of settings without a default. */
		bool has_default = strcmp(section, "port") || !strcmp(key, "vdev");
		if (has_default && strcmp(key, "group"))
			strcat(strcat(all, setting), "\n");
	}
	struct settings spelt;
	accept(all, "", &spelt);
	compare_servers(&spelt.server, &usual.server);
	assert_string_equal(spelt.device, usual.device);
	assert_int_equal(spelt.log_level, usual.log_level);
	struct setting_help h;
	for (unsigned i = 0; settings_help(i, &h); i++) {
		snprintf(line, sizeof(line), " %s/%s ", h.section, h.key);
		if (!strstr(found, line))
			fail_msg("config/uroced.conf does not have%s", line);
	}
	free(all);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_port),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_file_shape),
		cmocka_unit_test(test_refused_values),
		cmocka_unit_test(test_refused_files),
		cmocka_unit_test(test_refused_blank),
		cmocka_unit_test(test_refused_options),
		cmocka_unit_test(test_help_and_version),
		cmocka_unit_test(test_example),
	};
	snprintf(file_name, sizeof(file_name), "/tmp/test_settings.%ld.conf", (long)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}

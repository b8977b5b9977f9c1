/* SPDX-License-Identifier: BSD-3-Clause */
/* Device strings: what is accepted, with every key; what is refused, and that the one line says what would be right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_string.h"
#include "packet.h"

struct lines {
	unsigned n;
	char last[1024];
};

static void take_line(void *arg, enum log_level level, const char *line)
{
	struct lines *l = arg;
	l->n++;
	assert_int_equal(level, LOG_ERROR);
	snprintf(l->last, sizeof(l->last), "%s", line);
}

static void accept(const char *text, struct device_string *d)
{
	struct lines l = { 0 };
	struct log log = { take_line, &l, LOG_DEBUG };
	int err = device_string_parse(text, d, &log);
	if (err)
		fail_msg("%s: refused: %s", text, l.last);
	assert_int_equal(l.n, 0);
}

/* Refused with exactly one line that contains each of the words. */
static void refuse(const char *text, const char *word)
{
	struct lines l = { 0 };
	struct device_string d;
	struct log log = { take_line, &l, LOG_DEBUG };
	int err = device_string_parse(text, &d, &log);
	if (err != -EINVAL)
		fail_msg("\"%s\": %d, not -EINVAL", text, err);
	assert_int_equal(l.n, 1);
	if (!strstr(l.last, word))
		fail_msg("\"%s\": \"%s\" does not say \"%s\"", text, l.last, word);
}

static void test_defaults(void **state)
{
	struct device_string d;
	accept("embedded:net_ring,link=a,ip=10.0.0.1/24", &d);
	assert_int_equal(d.mode, DEVICE_EMBEDDED);
	assert_string_equal(d.vdev, "net_ring");
	assert_string_equal(d.devargs, "");
	assert_string_equal(d.link, "a");
	assert_int_equal(d.side, 0);
	assert_int_equal(d.vlan, VLAN_NONE);
	assert_int_equal(d.mtu, 0);
	assert_int_equal(d.cores, 1);
	assert_int_equal(d.cpus, 0);
	assert_int_equal(d.idle, DEVICE_IDLE_PAUSE);
	assert_int_equal(d.port, DEVICE_PORT_NONE);
	assert_int_equal(d.ips, 1);
	assert_int_equal(d.ip[0].prefix_len, 24);
	assert_false(d.ip_from_kernel);
	assert_int_equal(d.seed, 0);
}

static void test_every_key(void **state)
{
	struct device_string d;
	struct gid g;
	accept("inline:net_ring1,link=pair,side=1,ring=64,ip=10.0.0.1/8,ip=fd00::1/64,gw=10.0.0.254,gw=fd00::fe,vlan=7,mtu=2048,core=3,idle=sleep:20,memory=64,telemetry=on,"
	       "window=100,seed=0x10,fault=drop:1%/seed:3,capture=(/tmp/x,y.pcapng)", &d);
	assert_int_equal(d.mode, DEVICE_INLINE);
	assert_string_equal(d.vdev, "net_ring1");
	assert_int_equal(d.side, 1);
	assert_int_equal(d.ring, 64);
	assert_int_equal(d.ips, 2);
	assert_int_equal(gid_parse("fd00::1", &g), 0);
	assert_true(gid_is_equal(&g, &d.ip[1].gid));
	assert_int_equal(d.ip[0].prefix_len, 8);
	assert_int_equal(d.ip[1].prefix_len, 64);
	assert_int_equal(d.gateways, 2);
	assert_int_equal(gid_parse("10.0.0.254", &g), 0);
	assert_true(gid_is_equal(&g, &d.gateway[0]));
	assert_int_equal(d.vlan, 7);
	assert_int_equal(d.mtu, 2048);
	assert_int_equal(d.cores, 1);
	assert_int_equal(d.cpus, 1);
	assert_int_equal(d.cpu[0], 3);
	assert_int_equal(d.idle, DEVICE_IDLE_SLEEP);
	assert_int_equal(d.sleep_us, 20);
	assert_int_equal(d.memory_mib, 64);
	assert_true(d.has_telemetry);
	assert_int_equal(d.window, 100);
	assert_int_equal(d.seed, 16);
	assert_string_equal(d.fault, "drop:1%/seed:3");
	assert_string_equal(d.capture, "/tmp/x,y.pcapng");
	assert_string_equal(d.devargs, "");
	accept("served:port=2,queue=5,ip=10.0.0.1/24", &d);
	assert_int_equal(d.mode, DEVICE_SERVED);
	assert_string_equal(device_mode_name(d.mode), "served");
	assert_true(d.has_telemetry); /* a daemon is shown unless it is told otherwise; */
	assert_int_equal(d.port, 2);
	assert_int_equal(d.queue, 5);
	assert_string_equal(d.vdev, "");
	accept("served:port=2,ip=10.0.0.1/24,telemetry=off", &d);
	assert_false(d.has_telemetry);
	accept("embedded:port=2,ip=10.0.0.1/24", &d);
	assert_false(d.has_telemetry); /* a library is not */
}

static void test_device_keys_pass_through(void **state)
{
	struct device_string d;
	accept("embedded:net_af_packet0,iface=eth0,core=1,framesz=8192,qdisc_bypass=0", &d);
	assert_string_equal(d.devargs, "iface=eth0,framesz=8192,qdisc_bypass=0");
	assert_true(d.ip_from_kernel); /* nothing said: shared with the interface */
	assert_int_equal(d.cpu[0], 1);
	accept("embedded:net_af_packet0,iface=eth0,ip=kernel", &d);
	assert_true(d.ip_from_kernel);
	accept("embedded:net_af_packet0,iface=eth0,ip=10.1.2.3/24", &d);
	assert_false(d.ip_from_kernel);
	accept("embedded:0000:03:00.1,ip=10.1.2.3/24", &d);
	assert_string_equal(d.vdev, "0000:03:00.1");
}

static void test_several_cores(void **state)
{
	struct device_string d;
	accept("embedded:net_ring,link=a,ip=10.0.0.1/24,cores=3,core=1+0+1023", &d);
	assert_int_equal(d.cores, 3);
	assert_int_equal(d.cpus, 3);
	assert_int_equal(d.cpu[0], 1);
	assert_int_equal(d.cpu[1], 0);
	assert_int_equal(d.cpu[2], 1023);
	accept("embedded:net_ring,link=a,ip=10.0.0.1/24,core=-1,cores=16", &d);
	assert_int_equal(d.cores, 16);
	assert_int_equal(d.cpus, 0);
	accept("inline:net_ring,link=a,ip=10.0.0.1/24,cores=1", &d);
	accept("embedded:net_ring,link=a,ip=10.0.0.1/24,cores=16,core=0+1+2+3+4+5+6+7+8+9+10+11+12+13+14+15", &d);
	assert_int_equal(d.cpu[15], 15);
}

static void test_queues_are_shared(void **state)
{
	static const struct {
		const char *a, *b;
		bool is_shared;
	} rows[] = {
		{ "port=1,queue=2", "port=1,queue=2", true },
		{ "port=1,queue=2", "port=1,queue=3", false },
		{ "port=1,queue=2,cores=2", "port=1,queue=3", true },
		{ "port=1,queue=2,cores=2", "port=1,queue=4", false },
		{ "port=1,queue=0,cores=3", "port=1,queue=1,cores=3", true },
		{ "port=1,queue=0,cores=3", "port=2,queue=0,cores=3", false },
		{ "net_null0", "net_null0", false },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct device_string a, b;
		char text[2][64];
		snprintf(text[0], sizeof(text[0]), "embedded:%s,ip=10.0.0.1/24", rows[i].a);
		snprintf(text[1], sizeof(text[1]), "embedded:%s,ip=10.0.0.1/24", rows[i].b);
		accept(text[0], &a);
		accept(text[1], &b);
		assert_int_equal(device_string_shares_queue(&a, &b), rows[i].is_shared);
		assert_int_equal(device_string_shares_queue(&b, &a), rows[i].is_shared);
	}
}

static void test_idle_policies(void **state)
{
	static const struct {
		const char *value;
		enum device_idle idle;
		uint32_t us;
	} rows[] = {
		{ "spin", DEVICE_IDLE_SPIN, 50 },
		{ "pause", DEVICE_IDLE_PAUSE, 50 },
		{ "sleep", DEVICE_IDLE_SLEEP, 50 },
		{ "sleep:1", DEVICE_IDLE_SLEEP, 1 },
		{ "sleep:10000", DEVICE_IDLE_SLEEP, 10000 },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[128];
		struct device_string d;
		snprintf(text, sizeof(text), "embedded:net_ring,link=a,ip=10.0.0.1/24,idle=%s", rows[i].value);
		accept(text, &d);
		assert_int_equal(d.idle, rows[i].idle);
		assert_int_equal(d.sleep_us, rows[i].us);
	}
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *word;
	} rows[] = {
		{ "", "embedded:" },
		{ "net_ring,link=a", "embedded:" },
		{ "remote:x", "embedded:" },
		{ "embedded:", "names no device" },
		{ "embedded:,ip=10.0.0.1/24", "names no device" },
		{ "embedded:net_ring,ip=10.0.0.1/24", "link=NAME" },
		{ "embedded:net_ring,link=a", "ip=ADDRESS/PREFIX" },
		{ "embedded:net_ring,link=a,ip=kernel", "net_af_packet" },
		{ "embedded:net_memif,ip=10.0.0.1/24,link=a", "net_ring" },
		{ "embedded:net_tap0,iface=t", "ip=ADDRESS/PREFIX" },
		{ "embedded:port=0", "ip=ADDRESS/PREFIX" },
		{ "embedded:net_ring,link=a,port=0,ip=10.0.0.1/24", "one of them" },
		{ "embedded:net_ring,link=a,side=0,side=1,ip=10.0.0.1/24", "twice" },
		{ "embedded:net_ring,link,ip=10.0.0.1/24", "key=value" },
		{ "embedded:net_ring,=1", "key=value" },
		{ "embedded:net_ring,,link=a", "key=value" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,fault=(a", "parentheses" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,fault=a)", "parentheses" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1", "ADDRESS/PREFIX" },
		{ "embedded:net_ring,link=a,ip=10.0.0.300/24", "ADDRESS/PREFIX" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/33", "ADDRESS/PREFIX" },
		{ "embedded:net_ring,link=a,ip=fd00::1/129", "ADDRESS/PREFIX" },
		{ "embedded:net_ring,link=a,ip=224.0.0.1/24", "ADDRESS/PREFIX" },
		{ "embedded:net_ring,link=a,ip=0.0.0.0/24", "ADDRESS/PREFIX" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,ip=10.0.0.1/16", "each once" },
		{ "embedded:net_af_packet0,iface=e,ip=10.0.0.1/24,ip=kernel", "alone" },
		{ "embedded:net_af_packet0,iface=e,ip=kernel,ip=10.0.0.1/24", "alone" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,gw=10.0.0", "10.0.0.254" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,gw=0.0.0.0", "10.0.0.254" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,vlan=0", "1..4094" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,vlan=4095", "1..4094" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,mtu=1500", "1024, 2048 or 4096" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,mtu=8192", "1024, 2048 or 4096" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,mtu=", "1024, 2048 or 4096" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,core=-2", "CPU" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,core=1x", "CPU" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,core=1+", "CPU" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,cores=17,core=0+1+2+3+4+5+6+7+8+9+10+11+12+13+14+15+16", "1..16" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,core=0+1+2+3+4+5+6+7+8+9+10+11+12+13+14+15+16", "CPU" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,cores=0", "1..16" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,cores=2,core=1", "one CPU for each" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,core=1+2", "one CPU for each" },
		{ "inline:net_ring,link=a,ip=10.0.0.1/24,cores=2", "inline:" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,idle=nap", "spin, pause, sleep" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,idle=sleep:0", "spin, pause, sleep" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,idle=sleep50", "spin, pause, sleep" },
		{ "embedded:net_ring,link=a,ip=10.0.0.1/24,memory=1", "32" },
		{ "embedded:net_ring,link=a,telemetry=1,ip=10.0.0.1/24", "on or off" },
		{ "embedded:net_ring,link=a,side=2,ip=10.0.0.1/24", "0 or 1" },
		{ "embedded:net_ring,link=a,ring=100,ip=10.0.0.1/24", "power of two" },
		{ "embedded:net_ring,link=a,window=0,ip=10.0.0.1/24", "1..65536" },
		{ "embedded:net_ring,link=a,seed=0,ip=10.0.0.1/24", "other than 0" },
		{ "embedded:net_ring,link=,ip=10.0.0.1/24", "31 characters" },
		{ "embedded:net_ring,link=12345678901234567890123456789012,ip=10.0.0.1/24", "31 characters" },
		{ "embedded:port=x,ip=10.0.0.1/24", "0..1023" },
		{ "embedded:1234567890123456789012345678901234567890123456789012345678901234", "longer than 63" },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(rows[i].text, rows[i].word);
}

static void test_limits_of_lists(void **state)
{
	char text[1400] = "embedded:net_ring,link=a";
	struct device_string d;
	for (unsigned i = 0; i < DEVICE_IPS_MAX; i++)
		sprintf(text + strlen(text), ",ip=10.0.0.%u/24", i + 1);
	accept(text, &d);
	assert_int_equal(d.ips, DEVICE_IPS_MAX);
	strcat(text, ",ip=10.0.0.99/24");
	refuse(text, "up to 16");
	strcpy(text, "embedded:net_af_packet0");
	for (unsigned i = 0; i < 60; i++)
		sprintf(text + strlen(text), ",key%u=value", i);
	refuse(text, "longer than");
}

static void test_same_port(void **state)
{
	struct device_string a, b;
	accept("embedded:net_ring,link=a,side=0,ip=10.0.0.1/24", &a);
	accept("inline:net_ring,link=a,ip=10.0.0.9/24,core=1", &b);
	assert_true(device_string_is_same_port(&a, &b));
	accept("embedded:net_ring,link=a,side=1,ip=10.0.0.1/24", &b);
	assert_false(device_string_is_same_port(&a, &b));
	accept("embedded:net_ring,link=b,side=0,ip=10.0.0.1/24", &b);
	assert_false(device_string_is_same_port(&a, &b));
	accept("embedded:net_af_packet0,iface=a", &a);
	accept("embedded:net_af_packet0,iface=b", &b);
	assert_false(device_string_is_same_port(&a, &b));
	accept("embedded:port=0,queue=0,ip=10.0.0.1/24", &a);
	accept("embedded:port=0,queue=1,ip=10.0.0.1/24", &b);
	assert_false(device_string_is_same_port(&a, &b));
}

/* Each key of the table explains itself, and a value that no key takes is refused with what it takes. */
static void test_help_walks_the_table(void **state)
{
	struct device_key_help help;
	unsigned n = 0;
	for (; device_string_help(n, &help); n++) {
		char text[256];
		assert_true(strlen(help.text) > 10);
		snprintf(text, sizeof(text), "embedded:net_ring,%s=", help.name);
		refuse(text, help.takes);
	}
	assert_int_equal(n, 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_device_keys_pass_through),
		cmocka_unit_test(test_several_cores),
		cmocka_unit_test(test_queues_are_shared),
		cmocka_unit_test(test_idle_policies),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_limits_of_lists),
		cmocka_unit_test(test_same_port),
		cmocka_unit_test(test_help_walks_the_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

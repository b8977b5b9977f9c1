/* SPDX-License-Identifier: BSD-3-Clause */
/* app/perf/options.c, options_settle.c, operation.c and program.c: what uroce-perf makes of its command line, which combinations it refuses, and the form in which a trial travels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "number.h"
#include "operation.h"
#include "options.h"
#include "program.h"

#define DEVICE "inline:net_ring,link=x,side=0,ip=10.0.0.1/24"

/* Arguments separated by blanks. */
static bool parse(const char *line, struct options *o)
{
	static char text[512];
	char *argv[32] = { (char *)(uintptr_t)"uroce-perf" };
	int argc = 1;
	bool is_done;
	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	return options_parse(argc, argv, o, &is_done);
}

static bool has_op(const struct options *o, const char *name)
{
	for (unsigned i = 0; operation_at(i); i++)
		if (!strcmp(operation_at(i)->name, name))
			return o->ops >> i & 1;
	return false;
}

static void test_defaults(void **state)
{
	struct options o;
	assert_true(parse("", &o));
	assert_int_equal(o.service, UROCE_RC);
	assert_false(o.has_srq);
	assert_int_equal(o.qps, 1);
	assert_int_equal(o.depth, 128);
	assert_int_equal(o.batch, 16);
	assert_int_equal(__builtin_popcount(o.ops), 8);
	assert_int_equal(o.size_count, 4);
	assert_true(parse("--depth 40 --batch 16", &o));
	assert_int_equal(o.depth, 32); /* a whole number of batches */
}

static void test_services(void **state)
{
	static const struct {
		const char *line;
		enum uroce_service service;
		int ops;
		unsigned sizes;
		uint64_t largest;
	} rows[] = {
		{ "--service rc", UROCE_RC, 8, 4, 1 << 20 },
		{ "--service uc", UROCE_UC, 4, 4, 1 << 20 },
		{ "--service ud", UROCE_UD, 2, 3, 1024 },
		{ "--service ud --all", UROCE_UD, 2, 12, 1024 },
		{ "--all --service ud", UROCE_UD, 2, 12, 1024 },
		{ "--service uc --op all", UROCE_UC, 4, 4, 1 << 20 },
		{ "--service uc --op write-imm --sizes 7", UROCE_UC, 1, 1, 7 },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct options o;
		assert_true(parse(rows[i].line, &o));
		assert_int_equal(o.service, rows[i].service);
		assert_int_equal(__builtin_popcount(o.ops), rows[i].ops);
		assert_true(o.service == UROCE_UD ? !has_op(&o, "write") : has_op(&o, "send") || has_op(&o, "write-imm"));
		assert_int_equal(o.size_count, rows[i].sizes);
		assert_int_equal(o.sizes[o.size_count - 1], rows[i].largest);
	}
}

static void test_srq(void **state)
{
	struct options o;
	assert_true(parse("--srq --qps 1000", &o));
	assert_true(o.has_srq);
	assert_int_equal(o.qps, 1000);
	assert_true(parse("--srq --service ud", &o));
}

static void test_refused(void **state)
{
	static const char *const lines[] = {
		"--service", "--service xrc", "--service rc,uc", "--srq yes", "--service uc --op read", "--service uc --op send,cas", "--service ud --op write", "--service ud --op send,write-imm",
		"--service ud --mtu 1024", "--tcp --service uc", "--tcp --srq", "--qps 0", "--batch 2 --depth 1", "--op", "--sizes 65M", "--mtu 1000", "send", "--nothing",
		"--self --listen", "--listen --self --device " DEVICE, "--self --connect localhost --device " DEVICE, "--listen --op read --device " DEVICE, "--listen --json out.json --device " DEVICE,
		"--verify --listen --device " DEVICE, "--listen --seconds 1 --device " DEVICE, "--listen --service ud --device " DEVICE, "--listen --tcp --sizes 8", "--tcp --op send", "--tcp --qps 2",
		"--tcp --depth 1", "--tcp --batch 1", "--tcp --inline 0", "--tcp --mtu 1024", "--tcp --gid-index 1", "--tcp --fault drop:1%", "--tcp --device " DEVICE,
		"--peer pingpong --listen --depth 4 --device " DEVICE, "--peer pingpong --listen --batch 1 --device " DEVICE, "--peer pingpong --listen --seconds 1 --device " DEVICE,
		"--peer pingpong --listen --bytes 1 --device " DEVICE,
		"--peer pong", "--peer pingpong", "--peer pingpong --listen --qps 2 --device " DEVICE, "--peer pingpong --listen --srq --qps 257 --device " DEVICE,
		"--peer pingpong --listen --srq --service uc --device " DEVICE, "--peer pingpong --listen --srq --service ud --device " DEVICE,
		"--peer pingpong --listen --op send --device " DEVICE, "--peer pingpong --listen --op all --device " DEVICE, "--peer pingpong --listen --all --device " DEVICE,
		"--peer pingpong --listen --latency --device " DEVICE, "--peer pingpong --listen --sizes 1,2 --device " DEVICE, "--peer pingpong --listen --tcp",
		"--peer pingpong --listen --service ud --mtu 1024 --device " DEVICE, "--peer pingpong --listen", "--listen 1 --connect localhost", "--fault drop:1% --device unix:/nowhere",
	};
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct options o;
		if (parse(lines[i], &o))
			fail_msg("not refused: %s", lines[i]);
	}
}

/* Each of rdma-core's programs with its own defaults, and with what is told. */
static void test_pingpong(void **state)
{
	static const struct {
		const char *line, *name;
		uint64_t size;
		uint32_t qps, mtu, cards;
	} rows[] = {
		{ "", "ibv_rc_pingpong", 4096, 1, 1024, 1 },
		{ "--service rc", "ibv_rc_pingpong", 4096, 1, 1024, 1 },
		{ "--service uc", "ibv_uc_pingpong", 4096, 1, 1024, 1 },
		{ "--service ud", "ibv_ud_pingpong", 1024, 1, 0, 1 },
		{ "--srq", "ibv_srq_pingpong", 4096, 16, 1024, 256 },
		{ "--srq --qps 256 --sizes 1 --mtu 256", "ibv_srq_pingpong", 1, 256, 256, 256 },
		{ "--service uc --sizes 0 --mtu 4096", "ibv_uc_pingpong", 0, 1, 4096, 1 },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct options o;
		char line[256];
		snprintf(line, sizeof(line), "--peer pingpong --listen --device %s %s", DEVICE, rows[i].line);
		assert_true(parse(line, &o));
		const struct program *p = program_find(o.service, o.has_srq);
		assert_non_null(p);
		assert_string_equal(p->name, rows[i].name);
		assert_int_equal(p->cards, rows[i].cards);
		assert_int_equal(o.size_count, 1);
		assert_int_equal(o.sizes[0], rows[i].size);
		assert_int_equal(o.qps, rows[i].qps);
		assert_int_equal(o.mtu, rows[i].mtu);
		assert_int_equal(o.iters, 1000);
	}
	assert_null(program_find(UROCE_UD, true));
}

/* An option whose value may be left out, before another option. */
static void test_left_out_values(void **state)
{
	struct options o;
	assert_true(parse("--listen -d " DEVICE, &o));
	assert_string_equal(o.listen, "");
	assert_string_equal(o.device[0], DEVICE);
	assert_true(parse("--json -d " DEVICE " --json", &o));
	assert_string_equal(o.json, "-");
	assert_string_equal(o.device[0], DEVICE);
	assert_true(parse("--json - --progress", &o));
	assert_string_equal(o.json, "-");
	assert_true(parse("--json a.json", &o));
	assert_string_equal(o.json, "a.json");
}

/* What says something is taken. */
static void test_not_refused(void **state)
{
	static const char *const lines[] = {
		"--self --op send", "--listen --tcp", "--listen --tcp --cores 0", "--listen --gid-index 1 --cores 0 --fault drop:1% --device " DEVICE, "--connect localhost --tcp --all --json",
		"--tcp --sizes 4K --seconds 0.1 --verify --iters 3 --bytes 1M --latency --progress", "--peer pingpong --listen --json --verify --iters 3 --inline 0 --mtu 512 --gid-index 1 --device " DEVICE,
	};
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct options o;
		if (!parse(lines[i], &o))
			fail_msg("refused: %s", lines[i]);
	}
}

static void test_values_behind_equals(void **state)
{
	struct options o;
	assert_true(parse("--sizes=8,4K --connect=localhost --json=a=b --device=" DEVICE, &o));
	assert_int_equal(o.size_count, 2);
	assert_string_equal(o.connect, "localhost");
	assert_string_equal(o.json, "a=b");
	assert_string_equal(o.device[0], DEVICE);
	assert_false(parse("--verify=yes", &o));
	assert_false(parse("--sizes= --verify", &o));
	assert_false(parse("--size=8", &o));
	assert_false(parse("-d=" DEVICE, &o));
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		uint64_t value; /* 0: none */
	} rows[] = {
		{ "1", 1 }, { "1k", 1 << 10 }, { "2G", UINT64_C(2) << 30 }, { "010", 10 }, { "08", 8 }, { "0x10", 16 }, { "0X1fK", 31 << 10 },
		{ "1 ", 0 }, { "1`", 0 }, { "1KB", 0 }, { "1T", 0 }, { " 1", 0 }, { "-1", 0 }, { "0x", 0 }, { "0xg", 0 }, { "", 0 }, { "1025G", 0 }, { "18446744073709551617", 0 },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t value = 0;
		bool is_number = number_take_all(rows[i].text, 1, UINT64_C(1) << 40, &value);
		if (is_number != (rows[i].value != 0) || (is_number && value != rows[i].value))
			fail_msg("\"%s\": %d, %llu", rows[i].text, is_number, (unsigned long long)value);
	}
}

static struct trial make_trial(const struct operation *op, enum uroce_service service)
{
	return (struct trial){ .op = op, .service = service, .has_srq = true, .test = TEST_VERIFY, .size = 77, .qps = 3, .depth = 32, .batch = 16, .inline_bytes = 5, .mtu = 512, .iters = 9,
		.bytes = 11, .seconds = 0.25 };
}

static void test_trial_travels(void **state)
{
	for (unsigned i = 0; operation_at(i); i++)
		for (unsigned service = UROCE_RC; service <= UROCE_UD; service++) {
			struct trial t = make_trial(operation_at(i), (enum uroce_service)service), got = { 0 };
			json_t *message = trial_pack(&t);
			bool has_it = t.op->services >> service & 1;
			assert_int_equal(trial_unpack(message, &got), has_it);
			json_decref(message);
			if (!has_it)
				continue;
			assert_ptr_equal(got.op, t.op);
			assert_int_equal(got.service, t.service);
			assert_true(got.has_srq && got.test == t.test && got.size == t.size && got.qps == t.qps && got.depth == t.depth && got.batch == t.batch);
			assert_true(got.inline_bytes == t.inline_bytes && got.mtu == t.mtu && got.iters == t.iters && got.bytes == t.bytes && got.seconds == t.seconds);
		}
}

/* A peer can say anything. */
static void test_trial_refused(void **state)
{
	static const struct {
		const char *key;
		json_int_t value;
	} wrong[] = {
		{ "service", 1 }, { "srq", 1 }, { "test", TESTS }, { "test", -1 }, { "size", -1 }, { "size", ((json_int_t)1 << 31) + 1 }, { "qps", 0 }, { "qps", 65537 }, { "depth", 0 },
		{ "depth", 65537 }, { "batch", 0 }, { "batch", 33 }, { "inline", -1 }, { "mtu", -1 }, { "iters", -1 }, { "bytes", -1 }, { "seconds", 1 }, { "op", 1 },
	};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct trial t = make_trial(operation_find("send", 4), UROCE_UD), got;
		json_t *message = trial_pack(&t);
		bool is_number = !strcmp(wrong[i].key, "seconds");
		json_object_set_new(message, wrong[i].key, json_integer(wrong[i].value));
		if (trial_unpack(message, &got) != is_number)
			fail_msg("%s %lld", wrong[i].key, (long long)wrong[i].value);
		json_object_del(message, wrong[i].key);
		assert_false(trial_unpack(message, &got));
		json_decref(message);
	}
	struct trial t = make_trial(operation_find("send", 4), UROCE_UC), got;
	json_t *message = trial_pack(&t);
	json_object_set_new(message, "service", json_string("xrc"));
	assert_false(trial_unpack(message, &got));
	json_decref(message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_services), cmocka_unit_test(test_srq), cmocka_unit_test(test_refused), cmocka_unit_test(test_pingpong),
		cmocka_unit_test(test_left_out_values), cmocka_unit_test(test_not_refused), cmocka_unit_test(test_values_behind_equals), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_trial_travels), cmocka_unit_test(test_trial_refused),
	};
	unsetenv("UROCE_DEVICE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}

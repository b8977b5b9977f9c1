/* SPDX-License-Identifier: BSD-3-Clause */
/* The link with faults: each fault by itself, bounds of chance over many frames, rules one by one, and that a specification of any bytes is either taken or refused with a line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fault.h"
#include "fault_spec.h"
#include "frames.h"
#include "random.h"

#define RC_SEND_ONLY 0x04
#define RC_ACK 0x11

struct frame {
	uint32_t len;
	uint64_t serial;
	uint8_t b[];
};

static int frames_alive, copies_allowed;

static uint8_t *frame_data(void *frame, uint32_t *len)
{
	struct frame *f = frame;
	*len = f->len;
	return f->b;
}

static struct frame *frame_new(uint32_t len)
{
	struct frame *f = malloc(offsetof(struct frame, b) + len);
	assert_non_null(f);
	f->len = len;
	f->serial = 0;
	frames_alive++;
	return f;
}

static void *frame_copy(void *arg, void *frame)
{
	const struct frame *f = frame;
	if (!copies_allowed)
		return NULL;
	struct frame *c = frame_new(f->len);
	memcpy(c, f, offsetof(struct frame, b) + f->len);
	return c;
}

static void frame_free(void *arg, void *frame)
{
	frames_alive--;
	free(frame);
}

static const struct fault_frames ops = { frame_data, frame_copy, frame_free, NULL };

/* ---- helpers ---- */

static int start(void **state)
{
	frames_alive = 0;
	copies_allowed = 1;
	return 0;
}

static struct fault *make(const char *spec)
{
	struct fault *f = NULL;
	char why[200] = "";
	int err = fault_new(&f, spec, &ops, why, sizeof(why));
	if (err)
		fail_msg("%s: %s", spec, why);
	return f;
}

static struct frame *roce_full(uint64_t serial, uint8_t opcode, unsigned ip_version, uint32_t psn, uint32_t qpn)
{
	static uint8_t room[FRAME_ROOM];
	struct template t;
	frame_template(&t, ip_version, VLAN_NONE);
	struct bth b = { opcode_of(opcode), qpn, psn_make(psn), FRAME_PKEY, false, false };
	uint8_t *at = frame_extensions(bth_write(template_lay(room, &t), &b, 0), b.op);
	if (b.op->flags & OPCODE_PAYLOAD)
		for (uint32_t i = 0; i < 16; i++)
			*at++ = frame_byte(i);
	uint32_t len = packet_finish(room, &t, at);
	struct frame *f = frame_new(len);
	memcpy(f->b, room, len);
	f->serial = serial;
	return f;
}

static struct frame *roce(uint64_t serial, uint8_t opcode)
{
	return roce_full(serial, opcode, 4, (uint32_t)serial, FRAME_DQPN);
}

static bool is_icrc_ok(const struct frame *f, bool *is_ce)
{
	struct packet p;
	if (packet_parse(&p, f->b, f->len, VLAN_NONE, NULL) != DROP_NONE) /* the IPv4 checksum among others */
		return false;
	if (is_ce)
		*is_ce = packet_is_ce(&p);
	return packet_is_icrc_ok(&p);
}

/* Pops what is due and records serials; returns how many. */
static unsigned drain(struct fault *f, uint64_t now, uint64_t *serials, unsigned room)
{
	struct frame *x;
	unsigned n = 0;
	while ((x = fault_pop(f, now))) {
		assert_true(n < room);
		serials[n++] = x->serial;
		frame_free(NULL, x);
	}
	return n;
}

static void finish(struct fault *f)
{
	fault_free(f);
	assert_int_equal(frames_alive, 0);
}

/* Pushes n SENDs, one a microsecond, and returns the serials that came out, in order. */
static unsigned run(struct fault *f, unsigned n, uint64_t *serials, unsigned room)
{
	unsigned out = 0;
	for (unsigned i = 0; i < n; i++) {
		fault_push(f, i * 1000, roce(i, RC_SEND_ONLY));
		out += drain(f, i * 1000, serials + out, room - out);
	}
	return out + drain(f, UINT64_MAX - 1, serials + out, room - out);
}

/* ---- chance ---- */

#define MANY 20000u
static uint64_t serials[3 * MANY];

/* Five standard deviations of a binomial distribution: the seeds are fixed, so it passes always or never. */
static void assert_share(uint64_t count, double p)
{
	double expected = MANY * p, deviation = MANY * p * (1 - p), off = (double)count - expected;
	assert_true(off * off <= 25 * deviation);
}

static void test_chances_are_kept(void **state)
{
	static const struct {
		const char *spec;
		enum fault_counter counter;
		double p;
	} rows[] = {
		{ "drop:1%", FAULT_DROPPED, 0.01 }, { "drop:0.25/seed:9", FAULT_DROPPED, 0.25 }, { "dup:0.5%", FAULT_DUPLICATED, 0.005 }, { "reorder:2%", FAULT_REORDERED, 0.02 },
		{ "corrupt:10%/seed:77", FAULT_CORRUPTED, 0.1 }, { "ce:50%", FAULT_CE_MARKED, 0.5 }, { "drop:0", FAULT_DROPPED, 0 }, { "drop:100%", FAULT_DROPPED, 1 }, { "ce:1.0", FAULT_CE_MARKED, 1 },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fault *f = make(rows[i].spec);
		unsigned n = run(f, MANY, serials, 3 * MANY);
		assert_share(fault_counter(f, rows[i].counter), rows[i].p);
		assert_int_equal(n, MANY - fault_counter(f, FAULT_DROPPED) + fault_counter(f, FAULT_DUPLICATED));
		assert_int_equal(fault_counter(f, FAULT_IN), MANY);
		assert_int_equal(fault_counter(f, FAULT_OUT), n);
		assert_int_equal(fault_waiting(f), 0);
		finish(f);
	}
}

static void test_replays_from_seed(void **state)
{
	static uint64_t first[4000], second[4000];
	const char *spec = "drop:5%/dup:5%/reorder:10%:8/delay:3us:9us/corrupt:5%/seed:1234";
	struct fault *f = make(spec);
	unsigned n = run(f, 2000, first, 4000);
	finish(f);
	f = make(spec);
	assert_int_equal(run(f, 2000, second, 4000), n);
	assert_memory_equal(first, second, n * sizeof(first[0]));
	finish(f);
	f = make("drop:5%/dup:5%/reorder:10%:8/delay:3us:9us/corrupt:5%/seed:1235");
	unsigned other = run(f, 2000, second, 4000);
	assert_true(other != n || memcmp(first, second, n * sizeof(first[0])));
	finish(f);
}

/* A rule more must not change what chance does to the other frames: that is what makes a failure reducible. */
static void test_rule_leaves_chance_alone(void **state)
{
	static uint64_t first[2000], second[2000];
	struct fault *f = make("drop:20%");
	unsigned n = run(f, 1000, first, 2000);
	finish(f);
	f = make("drop:20%/rule:drop@500:ANY");
	unsigned m = run(f, 1000, second, 2000);
	finish(f);
	for (unsigned i = 0, j = 0; i < n; i++) {
		if (first[i] == 499)
			continue;
		assert_true(j < m);
		assert_int_equal(first[i], second[j]);
		j++;
	}
}

/* ---- each fault ---- */

static void test_nothing_is_transparent(void **state)
{
	struct fault *f = make("seed:1");
	assert_int_equal(fault_next_due(f), UINT64_MAX);
	assert_int_equal(run(f, 100, serials, MANY), 100);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(serials[i], i);
	finish(f);
}

static void test_duplicate_follows(void **state)
{
	struct fault *f = make("rule:dup@2:ANY");
	assert_int_equal(run(f, 3, serials, MANY), 4);
	assert_int_equal(serials[1], 1);
	assert_int_equal(serials[2], 1);
	finish(f);
}

/* No frame is overtaken by more than N, and some are. */
static void test_reordering_is_bounded(void **state)
{
	struct fault *f = make("reorder:30%:5:1ms");
	unsigned n = run(f, MANY, serials, 3 * MANY), most = 0, overtaken = 0;
	static unsigned at[MANY];
	assert_int_equal(n, MANY);
	for (unsigned i = 0; i < n; i++)
		at[serials[i]] = i;
	for (unsigned s = 0; s < MANY; s++) {
		unsigned before = 0;
		for (unsigned t = s + 1; t < MANY && t < s + 64; t++)
			before += at[t] < at[s];
		most = before > most ? before : most;
		overtaken += before > 0;
	}
	assert_int_equal(most, 5);
	assert_true(overtaken > MANY / 5);
	finish(f);
}

static void test_reordered_frame_comes_alone(void **state)
{
	struct fault *f = make("rule:reorder@1:ANY/reorder:0:4:7us");
	fault_push(f, 1000, roce(5, RC_SEND_ONLY));
	assert_int_equal(fault_next_due(f), 8000);
	assert_null(fault_pop(f, 7999));
	assert_int_equal(drain(f, 8000, serials, MANY), 1);
	assert_int_equal(fault_next_due(f), UINT64_MAX);
	finish(f);
}

static void test_delay_keeps_order_and_bounds(void **state)
{
	struct fault *f = make("delay:20us:5us");
	uint64_t late_least = UINT64_MAX, late_most = 0, expect = 0;
	for (uint64_t i = 0; i < 2000; i++)
		fault_push(f, i * 100, roce(i, RC_SEND_ONLY));
	assert_int_equal(fault_waiting(f), 1024); /* the default limit; the rest was lost, by name */
	assert_int_equal(fault_counter(f, FAULT_OVERFLOWED), 2000 - 1024);
	for (uint64_t now; (now = fault_next_due(f)) != UINT64_MAX;) {
		assert_null(fault_pop(f, now - 1));
		struct frame *x = fault_pop(f, now);
		assert_non_null(x);
		assert_int_equal(x->serial, expect++);
		uint64_t late = now - x->serial * 100;
		late_least = late < late_least ? late : late_least;
		late_most = late > late_most ? late : late_most;
		frame_free(NULL, x);
	}
	assert_true(late_least >= 20000 && late_most <= 25000 && late_most > late_least + 2000);
	finish(f);
}

static void test_limit_loses_by_name(void **state)
{
	struct fault *f = make("limit:3/dup:100%");
	fault_push(f, 0, roce(0, RC_SEND_ONLY));
	fault_push(f, 0, roce(1, RC_SEND_ONLY));
	assert_int_equal(fault_counter(f, FAULT_OVERFLOWED), 1);
	assert_int_equal(fault_waiting(f), 3);
	finish(f);
}

static void check_ce(unsigned ip_version)
{
	bool is_ce = false;
	struct fault *f = make("ce:100%");
	for (unsigned byte = 0; byte < 256; byte++) {
		if (!opcode_of((uint8_t)byte))
			continue;
		struct frame *in = roce_full(0, (uint8_t)byte, ip_version, 7, 0x1234);
		uint8_t before[14];
		memcpy(before, in->b, 14);
		fault_push(f, 0, in);
		struct frame *out = fault_pop(f, 0);
		assert_true(is_icrc_ok(out, &is_ce));
		assert_true(is_ce);
		assert_memory_equal(out->b, before, 14);
		frame_free(NULL, out);
	}
	finish(f);
}

static void test_ce_keeps_checksum_and_icrc(void **state)
{
	check_ce(4);
	check_ce(6);
}

/* Every TOS with every value of the rest of its word: the incremental checksum never comes out as the other zero. */
static void test_ce_on_any_tos(void **state)
{
	struct fault *f = make("ce:100%");
	for (unsigned tos = 0; tos < 256; tos++) {
		struct frame *in = roce(0, RC_SEND_ONLY);
		in->b[15] = (uint8_t)tos;
		frame_mend(in->b + 14);
		fault_push(f, 0, in);
		struct frame *out = fault_pop(f, 0);
		assert_int_equal(out->b[15], tos | 3);
		assert_true(is_icrc_ok(out, NULL));
		frame_free(NULL, out);
	}
	finish(f);
}

/* Both halves: the copy is broken, and whoever still holds the original sees nothing of it. */
static void check_corrupt(const char *spec, unsigned bits, unsigned ip_version)
{
	struct fault *f = make(spec);
	for (unsigned i = 0; i < 500; i++) {
		struct frame *in = roce_full(0, i & 1 ? RC_SEND_ONLY : RC_ACK, ip_version, i, 0x1234);
		struct frame *kept = frame_copy(NULL, in);
		fault_push(f, 0, in);
		struct frame *out = fault_pop(f, 0);
		unsigned flipped = 0;
		assert_int_equal(out->len, kept->len);
		for (uint32_t b = 0; b < out->len; b++)
			flipped += (unsigned)__builtin_popcount(out->b[b] ^ kept->b[b]);
		assert_int_equal(flipped, bits);
		assert_false(is_icrc_ok(out, NULL));
		frame_free(NULL, out);
		frame_free(NULL, kept);
	}
	finish(f);
}

static void test_corrupt_breaks_icrc(void **state)
{
	check_corrupt("corrupt:100%", 1, 4);
	check_corrupt("corrupt:100%:2", 2, 6);
	check_corrupt("corrupt:1:3/seed:5", 3, 4);
	check_corrupt("rule:corrupt@1+1:ANY", 1, 4);
}

static void test_corrupt_copies(void **state)
{
	struct fault *f = make("corrupt:100%/dup:100%");
	fault_push(f, 0, roce(0, RC_SEND_ONLY));
	struct frame *bad = fault_pop(f, 0), *good = fault_pop(f, 0);
	assert_false(is_icrc_ok(bad, NULL));
	assert_true(is_icrc_ok(good, NULL));
	frame_free(NULL, bad);
	frame_free(NULL, good);
	finish(f);
}

static void test_no_memory_is_counted(void **state)
{
	struct fault *f = make("corrupt:100%");
	copies_allowed = 0;
	fault_push(f, 0, roce(0, RC_SEND_ONLY));
	assert_null(fault_pop(f, 0));
	assert_int_equal(fault_counter(f, FAULT_NO_MEMORY), 1);
	finish(f);
	f = make("dup:100%");
	fault_push(f, 0, roce(0, RC_SEND_ONLY));
	assert_int_equal(drain(f, 0, serials, MANY), 1);
	assert_int_equal(fault_counter(f, FAULT_NO_MEMORY), 1);
	assert_int_equal(fault_counter(f, FAULT_DUPLICATED), 0);
	finish(f);
}

/* Frames that are not RoCE, or nothing at all: chance loses them, but nothing is changed in them and no rule sees them. */
static void test_other_frames(void **state)
{
	struct fault *f = make("corrupt:100%/ce:100%/mask:0xff/rule:drop@1+1:ANY");
	for (uint32_t len = 0; len < 64; len++) {
		struct frame *in = frame_new(len);
		memset(in->b, (int)len, len);
		fault_push(f, 0, in);
		assert_ptr_equal(fault_pop(f, 0), in);
		frame_free(NULL, in);
	}
	finish(f);
}

static void test_switch(void **state)
{
	struct fault *f = make("drop:100%/delay:10us");
	fault_switch(f, false);
	fault_push(f, 0, roce(0, RC_SEND_ONLY));
	assert_int_equal(drain(f, 0, serials, MANY), 1);
	fault_switch(f, true);
	fault_push(f, 0, roce(1, RC_SEND_ONLY));
	assert_int_equal(drain(f, 1000000, serials, MANY), 0);
	finish(f);
	f = make("delay:10us");
	fault_push(f, 0, roce(0, RC_SEND_ONLY));
	fault_switch(f, false);
	fault_push(f, 0, roce(1, RC_SEND_ONLY));
	assert_int_equal(drain(f, 0, serials, MANY), 2); /* behind what waits */
	assert_int_equal(serials[1], 1);
	finish(f);
}

/* A line full of frames that are due in ten seconds, and one held for longer: off, they make way at once, oldest first as far as they are in line, and leave new ones no delay. */
static void test_off_lets_all_go(void **state)
{
	struct fault *f = make("delay:10s/limit:4/rule:reorder@1:ANY/reorder:0:64:10s");
	for (unsigned i = 0; i < 5; i++)
		fault_push(f, i, roce(i, RC_SEND_ONLY));
	assert_int_equal(fault_counter(f, FAULT_OVERFLOWED), 1);
	fault_switch(f, false);
	fault_switch(f, false); /* as before each burst */
	assert_true(fault_next_due(f) <= 5);
	assert_int_equal(drain(f, 5, serials, MANY), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(serials[i], (i + 1) % 4);
	fault_push(f, 6, roce(5, RC_SEND_ONLY));
	assert_int_equal(drain(f, 6, serials, MANY), 1);
	fault_switch(f, true);
	fault_push(f, 7, roce(6, RC_SEND_ONLY));
	assert_int_equal(fault_next_due(f), UINT64_C(10000000007)); /* and the delay is there again */
	assert_int_equal(fault_counter(f, FAULT_OVERFLOWED), 1);
	finish(f);
}

/* ---- rules and masks ---- */

static void assert_lost(const char *spec, unsigned n, const uint64_t *lost, unsigned losts)
{
	struct fault *f = make(spec);
	unsigned out = run(f, n, serials, MANY), j = 0, k = 0;
	for (uint64_t i = 0; i < n; i++) {
		if (j < losts && lost[j] == i)
			j++;
		else if (k < out && serials[k] == i)
			k++;
		else
			fail_msg("%s: frame %llu", spec, (unsigned long long)i);
	}
	assert_int_equal(k, out);
	assert_int_equal(j, losts);
	finish(f);
}

static void test_rules(void **state)
{
	assert_lost("rule:drop@3:RC_SEND_ONLY", 10, (uint64_t[]){ 2 }, 1);
	assert_lost("rule:drop@3:rc_send_only", 10, (uint64_t[]){ 2 }, 1);
	assert_lost("rule:drop@1+10:ANY", 25, (uint64_t[]){ 0, 10, 20 }, 3);
	assert_lost("rule:drop@2+1:RC_SEND*", 5, (uint64_t[]){ 1, 2, 3, 4 }, 4);
}

static void test_rule_filters(void **state)
{
	assert_lost("rule:drop@1+1:ANY:psn=3-5", 10, (uint64_t[]){ 3, 4, 5 }, 3);
	assert_lost("rule:drop@2:ANY:psn=3-5", 10, (uint64_t[]){ 4 }, 1);
	assert_lost("rule:drop@1+1:ANY:psn=0xfffffe-1", 10, (uint64_t[]){ 0, 1 }, 2);
	assert_lost("rule:drop@1:ANY:psn=7", 10, (uint64_t[]){ 7 }, 1);
	assert_lost("rule:drop@1:ANY:qpn=0xabcdef:psn=7", 10, (uint64_t[]){ 7 }, 1);
	assert_lost("rule:drop@1:ANY:qpn=0xabcdee", 10, NULL, 0);
	assert_lost("rule:drop@1:RC_ACKNOWLEDGE", 10, NULL, 0);
	assert_lost("rule:drop@1:ANY/rule:drop@3:ANY/rule:drop@1:RC_RDMA_READ*", 10, (uint64_t[]){ 0, 2 }, 2);
}

/* Every name of the opcode table is understood, and means that opcode alone. */
static void test_rule_every_opcode(void **state)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		const struct opcode *o = opcode_of((uint8_t)byte);
		char spec[128], why[200];
		struct fault_spec s;
		if (!o)
			continue;
		snprintf(spec, sizeof(spec), "rule:ce@1:%s", o->name);
		for (char *p = spec; *p; p++)
			*p = *p == ' ' ? '_' : *p;
		assert_int_equal(fault_spec_parse(spec, &s, why, sizeof(why)), 0);
		for (unsigned b = 0; b < 256; b++)
			assert_int_equal(s.rule[0].opcodes[b / 64] >> b % 64 & 1, b == byte);
	}
}

static void test_mask(void **state)
{
	assert_lost("mask:0x15", 70, (uint64_t[]){ 0, 2, 4 }, 3);
	assert_lost("mask:0x8000000000000000", 200, (uint64_t[]){ 63 }, 1);
	assert_lost("mask:2:repeat", 140, (uint64_t[]){ 1, 65, 129 }, 3);
}

/* ---- specifications ---- */

static void test_spec_values(void **state)
{
	struct fault_spec s;
	char why[200];
	assert_int_equal(fault_spec_parse("drop:1%/dup:0.1%/reorder:2%:7:3ms/delay:20us:5us/corrupt:0.25:3/ce:5%/seed:42/mask:0x00ff/limit:77/rule:drop@3:RC_SEND_ONLY/rule:corrupt@1+10:ANY:qpn=17", &s, why, sizeof(why)), 0);
	assert_true(s.chance[FAULT_DROP] == 0.01 && s.chance[FAULT_CORRUPT] == 0.25 && s.chance[FAULT_CE] == 0.05 && s.chance[FAULT_REORDER] == 0.02);
	assert_int_equal(s.reorder_frames, 7);
	assert_int_equal(s.reorder_ns, 3000000);
	assert_int_equal(s.delay_ns, 20000);
	assert_int_equal(s.jitter_ns, 5000);
	assert_int_equal(s.corrupt_bits, 3);
	assert_int_equal(s.seed, 42);
	assert_int_equal(s.mask, 0xff);
	assert_false(s.is_mask_repeated);
	assert_int_equal(s.limit, 77);
	assert_int_equal(s.rules, 2);
	assert_int_equal(s.rule[0].nth, 3);
	assert_int_equal(s.rule[0].every, 0);
	assert_int_equal(s.rule[0].qpn, FAULT_QPN_ANY);
	assert_int_equal(s.rule[1].every, 10);
	assert_int_equal(s.rule[1].qpn, 17);
	assert_int_equal(s.rule[1].action, FAULT_CORRUPT);
}

/* Zeros in front make no octal numbers. */
static void test_spec_numbers(void **state)
{
	struct fault_spec s;
	char why[200];
	assert_int_equal(fault_spec_parse("limit:0100/seed:0X1f/mask:09/rule:drop@010+08:ANY:qpn=0x10:psn=0-020", &s, why, sizeof(why)), 0);
	assert_int_equal(s.limit, 100);
	assert_int_equal(s.seed, 0x1f);
	assert_int_equal(s.mask, 9);
	assert_int_equal(s.rule[0].nth, 10);
	assert_int_equal(s.rule[0].every, 8);
	assert_int_equal(s.rule[0].qpn, 16);
	assert_int_equal(s.rule[0].psns, 21);
}

static void test_spec_refusals(void **state)
{
	static const char *const bad[] = {
		"", "/", "drop", "drop:", "drop:1%/", "/drop:1%", "drop:1%//dup:1%", "drop:101%", "drop:1.1", "drop:-1%", "drop:1%%", "drop:1 %", "drop:1,5%", "drop:.5", "drop:1.", "drop:nan", "drop:inf",
		"drop:1%:2", "drop:1%/drop:2%", "drp:1%", "Drop:1%", "dup:x", "reorder:1%:0", "reorder:1%:65", "reorder:1%:4:0us", "reorder:1%:4:5", "reorder:1%:4:5us:6", "delay:20", "delay:20us:5", "delay:11s",
		"delay:9999999999999999s", "delay:us", "corrupt:1%:0", "corrupt:1%:4", "ce", "mask:", "mask:0x1ffffffffffffffff", "mask:1:again", "mask:-1", "rule:drop@3", "rule:drop:ANY", "rule:drop@:ANY",
		"rule:drop@0:ANY", "rule:drop@1+0:ANY", "rule:drop@1+:ANY", "rule:drop@1x:ANY", "rule:delay@1:ANY", "rule:drop@1:", "rule:drop@1:RC_SEND_ONLYX", "rule:drop@1:RC_SEND", "rule:drop@1:NO*",
		"rule:drop@1:ANY:qpn=0x1000000", "rule:drop@1:ANY:psn=1-", "rule:drop@1:ANY:psn=0x1000000", "rule:drop@1:ANY:psn", "rule:drop@1:ANY:qpn=1:psn=1:psn=2", "rule:@1:ANY", "limit:0", "limit:65537",
		"seed:", "seed:x", "seed:18446744073709551616", "seed:1:2", "a:b:c:d:e:f:g:h",
	};
	struct fault_spec s;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char why[300] = "";
		if (fault_spec_parse(bad[i], &s, why, sizeof(why)) != -EINVAL)
			fail_msg("taken: \"%s\"", bad[i]);
		assert_true(strlen(why) > 10 && !strchr(why, '\n'));
	}
}

static void test_spec_too_many_rules(void **state)
{
	char spec[2000] = "seed:1", why[20];
	struct fault_spec s;
	for (unsigned i = 0; i < FAULT_RULES_MAX; i++)
		strcat(spec, "/rule:drop@1:ANY");
	assert_int_equal(fault_spec_parse(spec, &s, why, sizeof(why)), 0);
	strcat(spec, "/rule:drop@1:ANY");
	assert_int_equal(fault_spec_parse(spec, &s, why, sizeof(why)), -EINVAL);
	assert_true(memchr(why, 0, sizeof(why)) != NULL);
	assert_int_equal(fault_spec_parse(spec, &s, NULL, 0), -EINVAL);
}

/* Good specifications with bytes changed, cut off and put together: never beyond the end (under ASan), and a refusal has its line. */
static void test_spec_hostile(void **state)
{
	static const char good[] = "drop:1%/reorder:2%:4:1ms/delay:20us:5us/rule:drop@3+2:RC_SEND_ONLY:qpn=0x12:psn=1-9/mask:0x00ff:repeat/limit:5";
	static const char alphabet[] = "/:@+%.=-*_0189xusmndropRCANYqpn\n\xff ";
	struct rng r;
	rng_seed(&r, 1);
	for (unsigned i = 0; i < 20000; i++) {
		struct fault_spec s;
		char why[200] = "";
		size_t len = rng_below(&r, sizeof(good) + 200);
		char *text = malloc(len + 1); /* exactly, so that ASan sees one byte beyond */
		for (size_t k = 0; k < len; k++)
			text[k] = good[k % (sizeof(good) - 1)];
		text[len] = 0;
		for (uint64_t n = rng_below(&r, 6); len && n; n--)
			text[rng_below(&r, len)] = alphabet[rng_below(&r, sizeof(alphabet) - 1)];
		int err = fault_spec_parse(text, &s, why, sizeof(why));
		assert_true(err == 0 || (err == -EINVAL && why[0]));
		if (!err)
			assert_true(s.reorder_frames >= 1 && s.reorder_frames <= 64 && s.limit >= 1 && s.rules <= FAULT_RULES_MAX && s.chance[FAULT_DROP] <= 1);
		free(text);
	}
}

static void test_counter_names(void **state)
{
	for (unsigned c = 0; c < FAULT_COUNTERS; c++)
		for (unsigned d = 0; d < c; d++)
			assert_string_not_equal(fault_counter_name((enum fault_counter)c), fault_counter_name((enum fault_counter)d));
}

#define T(test) cmocka_unit_test_setup(test, start)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_chances_are_kept), T(test_replays_from_seed), T(test_rule_leaves_chance_alone), T(test_nothing_is_transparent), T(test_duplicate_follows), T(test_reordering_is_bounded),
		T(test_reordered_frame_comes_alone), T(test_delay_keeps_order_and_bounds), T(test_limit_loses_by_name), T(test_ce_keeps_checksum_and_icrc), T(test_ce_on_any_tos), T(test_corrupt_breaks_icrc),
		T(test_corrupt_copies), T(test_no_memory_is_counted), T(test_other_frames), T(test_switch), T(test_off_lets_all_go), T(test_rules), T(test_rule_filters), T(test_rule_every_opcode), T(test_mask), T(test_spec_values),
		T(test_spec_numbers), T(test_spec_refusals), T(test_spec_too_many_rules), T(test_spec_hostile), T(test_counter_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands about what is between the ports: faults, and captures of what passes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "engine_change.h"
#include "engine_core.h"
#include "fault_dpdk.h"
#include "lab.h"

/* What was given last, for show. */
static struct {
	char faults[GRAMMAR_WORD_MAX];
	bool is_on;
	char file[GRAMMAR_WORD_MAX];
} links[STATIONS_MAX];

/* The port with an engine here; NULL after a line on standard error. */
static struct station *find(struct lab *lab, const struct value *v)
{
	struct station *s = &lab->station[v[0].number];
	if (s->engine)
		return s;
	lab_fail("port %u is a daemon's: expected a port with an engine in this process (embedded:, inline:)", s->number);
	return NULL;
}

/* ---- fault ---- */

static int set_fault(struct lab *lab, const struct value *v, unsigned given)
{
	struct station *s = find(lab, v);
	char why[300];
	if (!s)
		return -EINVAL;
	int err = engine_fault_set(s->engine, v[1].text, why, sizeof(why));
	if (err)
		return lab_fail("%s", why[0] ? why : strerror(-err));
	snprintf(links[s->number].faults, sizeof(links[0].faults), "%s", v[1].text);
	links[s->number].is_on = true;
	return 0;
}

static int switch_fault(struct lab *lab, const struct value *v, bool is_on)
{
	struct station *s = find(lab, v);
	if (!s)
		return -EINVAL;
	if (engine_fault_switch(s->engine, is_on))
		return lab_fail("port %u has no faults: expected fault set %u <faults> first", s->number, s->number);
	links[s->number].is_on = is_on;
	return 0;
}

static int fault_on(struct lab *lab, const struct value *v, unsigned given)
{
	return switch_fault(lab, v, true);
}

static int fault_off(struct lab *lab, const struct value *v, unsigned given)
{
	return switch_fault(lab, v, false);
}

static int remove_fault(struct lab *lab, const struct value *v, unsigned given)
{
	struct station *s = find(lab, v);
	if (!s)
		return -EINVAL;
	engine_fault_set(s->engine, NULL, NULL, 0);
	links[s->number].faults[0] = 0;
	return 0;
}

static void print_fault(const struct station *s)
{
	const char *given = links[s->number].faults;
	if (!s->engine || !engine_core_fault(engine_core_at(s->engine, 0))) {
		printf("port %u: no faults\n", s->number);
		return;
	}
	printf("port %u: %s, %s\n ", s->number, given[0] ? given : "as its device string says", given[0] && !links[s->number].is_on ? "off" : "on");
	for (unsigned c = 0; c < FAULT_COUNTERS; c++) {
		uint64_t sum = 0;
		for (unsigned i = 0; i < engine_cores(s->engine); i++)
			sum += fault_port_counter(engine_core_fault(engine_core_at(s->engine, i)), (enum fault_counter)c);
		printf(" %s %" PRIu64, fault_counter_name((enum fault_counter)c), sum);
	}
	printf("\n");
}

static int show_fault(struct lab *lab, const struct value *v, unsigned given)
{
	for (unsigned i = 0; i < lab->stations; i++)
		if (!given || v[0].number == i)
			print_fault(&lab->station[i]);
	return 0;
}

/* ---- capture ---- */

static int start_capture(struct lab *lab, const struct value *v, unsigned given)
{
	struct station *s = find(lab, v);
	if (!s)
		return -EINVAL;
	int err = engine_capture_start(s->engine, v[1].text, given > 2 ? (uint32_t)v[2].number : 0);
	if (err == -EBUSY)
		return lab_fail("a capture of port %u runs: expected capture stop %u first", s->number, s->number);
	if (err)
		return lab_fail("cannot capture into %s: %s (expected: the name of a file that can be written)", v[1].text, strerror(-err));
	snprintf(links[s->number].file, sizeof(links[0].file), "%s", v[1].text);
	return 0;
}

static int stop_capture(struct lab *lab, const struct value *v, unsigned given)
{
	struct station *s = find(lab, v);
	uint64_t frames;
	if (!s)
		return -EINVAL;
	int err = engine_capture_stop(s->engine, &frames);
	if (err == -ENOENT)
		return lab_fail("no capture of port %u runs: expected capture start first", s->number);
	printf("%" PRIu64 " frames in %s\n", frames, links[s->number].file[0] ? links[s->number].file : "the file of its device string");
	links[s->number].file[0] = 0;
	return err ? lab_fail("the file could not be written to its end") : 0;
}

static int show_capture(struct lab *lab, const struct value *v, unsigned given)
{
	for (unsigned i = 0; i < lab->stations; i++) {
		const struct station *s = &lab->station[i];
		if (s->engine && engine_core_has_capture(engine_core_at(s->engine, 0)))
			printf("port %u: into %s\n", i, links[i].file[0] ? links[i].file : "the file of its device string");
		else
			printf("port %u: none\n", i);
	}
	return 0;
}

const struct command commands_link[] = {
	{ "fault set <port> <faults>", set_fault, "what the port receives is lost, doubled, reordered, delayed, damaged or marked" },
	{ "fault on <port>", fault_on, "switch them on again" },
	{ "fault off <port>", fault_off, "let everything pass for a while" },
	{ "fault del <port>", remove_fault, "take them away" },
	{ "show fault [<port|all>]", show_fault, "the faults, and what they have done" },
	{ "capture start <port> <file> [<qpn>]", start_capture, "every frame into a pcapng file, or those of one QPN" },
	{ "capture stop <port>", stop_capture, "end it" },
	{ "show capture", show_capture, "where captures go" },
	{ .pattern = NULL },
};

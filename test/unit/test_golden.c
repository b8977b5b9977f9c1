/* SPDX-License-Identifier: BSD-3-Clause */
/* Golden captures: in each capture of two other stacks (rxe of two kernels, NICs) one core takes the place of either side: of a reliable connection as responder and as requester, of a flow of UC or UD as receiver and as
 * sender. Whole frames are compared, from the Ethernet address to the pad.
 *
 * Free, and why:
 *   fields   those of free_bytes and free_mask in golden/capture.c; the receiver's QPN and keys are ours (what is invalidated, a window), and are put into what is fed
 *   DETH     the sending QP's number: it is ours
 *   MSN      of captures that begin in the middle of a connection: the first difference holds for all
 *   ACKs     of NICs: which packets are acknowledged. Each of theirs must be one of ours, in order, when every packet asks for one; rxe's are the same in number too
 *   time     when something is sent again, and how often (tail-loss probes, implied NAKs): whatever is sent must be what they sent at that PSN
 * Departures of rxe, where ours is what the specification says (doc/guide/interop.md):
 *   NAK 0x63 for a SEND longer than its receive (ours: 0x61); a sequence NAK behind an RNR NAK of the same PSN (none); MIDDLE and LAST in answer to a READ that is repeated in part (FIRST, ONLY)
 *   in one capture, of an old kernel: WRITEs do not count in the MSN
 * Not looked at: reliable connections of which one direction is missing, and what goes to QP 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "golden/replace.h"

struct golden_place golden_place;

void golden_fail(const struct packet *p, const char *format, ...)
{
	char text[512], packet[512] = "";
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (p)
		packet_print(packet, sizeof(packet), p->frame, (uint32_t)(p->l3 - p->frame) + p->l3_len, VLAN_NONE);
	fail_msg("%s, in the place of side %u: %s\n    %s", golden_place.file, golden_place.side, text, packet);
	abort(); /* not reached */
}

int golden_first_request(const struct golden *g, unsigned side)
{
	struct psn end = { 0 };
	int first = -1;
	for (unsigned i = 0; i < g->frames; i++) {
		const struct packet *p = &g->frame[i].p;
		if (!golden_is_request(&g->frame[i], side))
			continue;
		if (first < 0 && !(p->op->flags & OPCODE_FIRST))
			return -1;
		if (first >= 0 && psn_is_before(end, p->psn))
			return -1;
		struct psn next = psn_add(p->psn, golden_psns(g, p));
		end = first < 0 || psn_is_before(end, next) ? next : end;
		first = first < 0 ? (int)i : first;
	}
	return first;
}

/* Where the shared data of the workplace is; the tests skip without it. */
static const char *shared(void)
{
	const char *dir = getenv("UROCE_SHARED");
	return dir ? dir : SOURCE_ROOT "/../shared";
}

static void replace_both(const char *path, const char *name, bool is_wild, struct golden_tally *t)
{
	struct golden all, g;
	unsigned n = 0;
	golden_place.file = name;
	const char *why = golden_load(&all, path, GOLDEN_RELIABLE);
	for (; !why && golden_pick(&g, &all, n); n++) {
		g.is_msn_odd = !strcmp(name, "soft-roce__rdma.dump.pcap");
		g.is_wild = is_wild;
		for (unsigned side = 0; side < 2; side++) {
			golden_replace_responder(&g, side, t);
			golden_replace_requester(&g, side, t);
		}
		golden_free(&g);
	}
	t->files += n > 0;
	t->connections += n;
	if (!n && getenv("GOLDEN_VERBOSE"))
		print_message("%s: %s\n", name, why ? why : "has no connection with both directions");
	golden_free(&all);
}

static void replace_flows(const char *path, const char *name, struct golden_tally *t)
{
	struct golden all, g;
	golden_place.file = name;
	const char *why = golden_load(&all, path, GOLDEN_UNRELIABLE);
	for (unsigned n = 0; !why && golden_pick_flow(&g, &all, n); n++) {
		golden_replace_sender(&g, t);
		golden_replace_receiver(&g, t);
		golden_free(&g);
	}
	golden_free(&all);
}

static bool is_capture(const char *name)
{
	size_t len = strlen(name);
	return len > 5 && !strcmp(name + len - 5, ".pcap");
}

static void replace_in(const char *folder, bool is_wild, struct golden_tally *t)
{
	char path[4096];
	struct dirent **list;
	snprintf(path, sizeof(path), "%s/%s", shared(), folder);
	int n = scandir(path, &list, NULL, alphasort);
	if (n < 0) {
		print_message("skipped: no %s (set UROCE_SHARED)\n", path);
		skip();
	}
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s/%s", shared(), folder, list[i]->d_name);
		if (is_capture(list[i]->d_name)) {
			replace_both(path, list[i]->d_name, is_wild, t);
			replace_flows(path, list[i]->d_name, t);
		}
		free(list[i]);
	}
	free(list);
}

static void expect(const struct golden_tally *t, const struct golden_tally *expected)
{
	print_message("%u files, %u connections: %u responders with %u answers and %u ACKs, %u requesters with %u requests and %u messages; %u flows with %u packets and %u messages\n", t->files, t->connections, t->responders, t->answers,
		      t->acks, t->requesters, t->requests, t->completions, t->flows, t->sent, t->received);
	assert_memory_equal(t, expected, sizeof(*t));
}

/* known-bugs: 31 */
static void test_linux_6_1(void **state)
{
	struct golden_tally t = { 0 };
	replace_in("rxe-peer/pcaps", false, &t);
	expect(&t, &(struct golden_tally){ 66, 68, 79, 79, 173, 250, 711, 314, 13, 66, 51 });
}

static void test_linux_6_12(void **state)
{
	struct golden_tally t = { 0 };
	replace_in("rxe-peer/pcaps-6.12", false, &t);
	expect(&t, &(struct golden_tally){ 66, 68, 79, 79, 173, 250, 706, 314, 13, 66, 51 });
}

static void test_others(void **state)
{
	static const char *const folders[] = { "magnate3_linux-riscv-dev", "montybeatnik_rdma-roce-lab", "oferby_proxy", "derived" };
	struct golden_tally t = { 0 };
	for (unsigned i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char folder[256];
		snprintf(folder, sizeof(folder), "captures/%s", folders[i]);
		replace_in(folder, true, &t);
	}
	expect(&t, &(struct golden_tally){ 17, 53, 38, 38, 39, 162, 233, 174, 2, 16, 8 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linux_6_1),
		cmocka_unit_test(test_linux_6_12),
		cmocka_unit_test(test_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared-memory and control contract, frozen: size and offset of every struct and member, every enum value and number, and
 * the length and direction of every message, against layout.golden. layout.py finds them in the headers. A difference means that
 * clients and engines of two builds no longer understand each other. If that is meant: test_layout --print >
 * test/abi/layout.golden, and say so in the commit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cause.h"
#include "counters.h"
#include "cqe.h"
#include "ctl.h"
#include "msg.h"
#include "ring.h"
#include "wqe.h"

#define LINES_MAX 1000
#define LINE_MAX_BYTES 120

struct lines {
	char line[LINES_MAX][LINE_MAX_BYTES];
	unsigned n;
};

__attribute__((format(printf, 2, 3))) static void add(struct lines *to, const char *format, ...)
{
	va_list args;
	assert_true(to->n < LINES_MAX);
	va_start(args, format);
	vsnprintf(to->line[to->n++], LINE_MAX_BYTES, format, args);
	va_end(args);
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void add_headers(struct lines *to)
{
#define SIZE(type) add(to, "struct %s: %zu bytes, aligned to %zu", #type, sizeof(struct type), _Alignof(struct type));
#define AT(type, member) \
	add(to, "struct %s.%s: %zu bytes at %zu", #type, #member, sizeof(((struct type *)0)->member), offsetof(struct type, member));
#define VALUE(name) add(to, "%s = %lld", #name, (long long)(name));
#include "layout_rows.h"
}

static void add_messages(struct lines *to)
{
	for (unsigned i = 0; i < CTL_TYPE_COUNT; i++)
		add(to, "message %s: %u bytes%s%s%s", ctl_rows[i].name, ctl_rows[i].length, ctl_rows[i].has_fd ? ", with a descriptor" : "",
			ctl_rows[i].is_from_client ? ", from client" : "", ctl_rows[i].is_from_daemon ? ", from daemon" : "");
}

static void add_slots(struct lines *to)
{
	static const uint32_t inlines[] = { 0, 32, 33, 64, 96, 97, ABI_MAX_INLINE };
	for (uint32_t sge = 1; sge <= ABI_MAX_SGE; sge++)
		add(to, "slot of %2u SGEs: send %u, receive %u bytes", sge, abi_send_slot_bytes(sge, 0), abi_recv_slot_bytes(sge));
	for (unsigned i = 0; i < sizeof(inlines) / sizeof(inlines[0]); i++)
		add(to, "slot of %3u bytes inline: send %u bytes", inlines[i], abi_send_slot_bytes(1, inlines[i]));
}

static struct lines *list_build(void)
{
	struct lines *l = calloc(1, sizeof(*l));
	assert_non_null(l);
	add_headers(l);
	add_messages(l);
	add_slots(l);
	qsort(l->line, l->n, sizeof(l->line[0]), compare);
	return l;
}

static struct lines *read_golden(void)
{
	struct lines *l = calloc(1, sizeof(*l));
	FILE *file = fopen(SOURCE_ROOT "/test/abi/layout.golden", "r");
	assert_non_null(l);
	assert_non_null(file);
	while (l->n < LINES_MAX && fgets(l->line[l->n], LINE_MAX_BYTES, file))
		l->line[l->n][strcspn(l->line[l->n], "\n")] = '\0', l->n++;
	fclose(file);
	return l;
}

/* Both are sorted. Says each difference. */
static void test_layout_is_golden(void **state)
{
	struct lines *golden = read_golden(), *build = list_build();
	unsigned g = 0, b = 0, differences = 0;
	while (g < golden->n || b < build->n) {
		int order = g == golden->n ? 1 : b == build->n ? -1 : strcmp(golden->line[g], build->line[b]);
		if (order < 0)
			print_error("layout.golden:%u, not in this build: %s\n", g + 1, golden->line[g]);
		if (order > 0)
			print_error("in this build, not in layout.golden: %s\n", build->line[b]);
		differences += order != 0;
		g += order <= 0;
		b += order >= 0;
	}
	free(golden);
	free(build);
	assert_int_equal(differences, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout_is_golden),
	};
	if (argc > 1 && !strcmp(argv[1], "--print")) {
		struct lines *build = list_build();
		for (unsigned i = 0; i < build->n; i++)
			puts(build->line[i]);
		free(build);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

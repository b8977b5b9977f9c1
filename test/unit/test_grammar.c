/* SPDX-License-Identifier: BSD-3-Clause */
/* The reading of command lines: what fits which pattern, what is completed, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grammar.h"

static char ran[256];

static int note(const char *name, const struct value *v, unsigned given)
{
	int n = snprintf(ran, sizeof(ran), "%s", name);
	for (unsigned i = 0; i < given; i++)
		n += snprintf(ran + n, sizeof(ran) - (size_t)n, " %s", v[i].text);
	return 0;
}

static int run_set(struct lab *lab, const struct value *v, unsigned given)
{
	return note("set", v, given);
}

static int run_show(struct lab *lab, const struct value *v, unsigned given)
{
	return note("show", v, given);
}

static int run_fail(struct lab *lab, const struct value *v, unsigned given)
{
	return -1;
}

static bool take_digit(struct lab *lab, const char *text, struct value *v)
{
	return text[0] >= '0' && text[0] <= '9' && !text[1];
}

static bool take_colour(struct lab *lab, const char *text, struct value *v)
{
	return !strcmp(text, "red") || !strcmp(text, "rose");
}

static const char *nth_colour(struct lab *lab, const struct kind *k, unsigned i)
{
	static const char *const names[] = { "red", "rose" };
	return i < 2 ? names[i] : NULL;
}

static const struct kind kinds[] = { { "digit", "a digit", take_digit, NULL, 0 }, { "colour", "a colour: red or rose", take_colour, nth_colour, 0 }, { .name = NULL } };
static const struct command first[] = { { "set colour <colour>", run_set, "" }, { "set size <digit>", run_set, "a size" }, { .pattern = NULL } };
static const struct command second[] = { { "show [<digit|all>]", run_show, "" }, { "fail", run_fail, "" }, { .pattern = NULL } };
static const struct section sections[] = { { "one", "the first", first }, { "two", "the second", second }, { .name = NULL } };
static const struct habit habits[] = { { "paint all", "set colour" }, { "show size", "show" }, { .theirs = NULL } };
static const struct grammar grammar = { sections, kinds, habits, NULL };

/* Runs a line; what it wrote to standard error. */
static const char *refusal(const char *line, int *rc)
{
	static char text[2048];
	char *memory = NULL;
	size_t size = 0;
	FILE *usual = stderr, *f = open_memstream(&memory, &size);
	assert_non_null(f);
	ran[0] = 0;
	stderr = f;
	*rc = grammar_run(&grammar, line);
	stderr = usual;
	fclose(f);
	snprintf(text, sizeof(text), "%s", memory);
	free(memory);
	return text;
}

static void test_commands(void **state)
{
	static const struct {
		const char *line, *ran;
	} rows[] = {
		{ "set colour red", "set red" }, { "  set\tsize 7 \n", "set 7" }, { "show", "show" }, { "show all", "show" }, { "show 3", "show 3" }, { "", "" }, { "# set size 7", "" }, { "\n", "" },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc;
		assert_string_equal(refusal(rows[i].line, &rc), "");
		assert_int_equal(rc, 0);
		assert_string_equal(ran, rows[i].ran);
	}
	int rc;
	refusal("fail", &rc);
	assert_int_equal(rc, -1);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *line, *said;
	} rows[] = {
		{ "foo", "\"foo\": expected set, show or fail\n" },
		{ "set", "after \"set\": expected colour or size\n" },
		{ "set hue red", "\"hue\": expected colour or size\n" },
		{ "set colour blue", "\"blue\": expected a colour: red or rose\n" },
		{ "set colour", "after \"colour\": expected a colour: red or rose\n" },
		{ "set size 12", "\"12\": expected a digit\n" },
		{ "show x", "\"x\": expected all, a digit or nothing\n" },
		{ "show 1 2", "\"2\": expected nothing\n" },
		{ "paint all red", "\"paint\": expected set, show or fail; paint all is set colour here\n" },
		{ "paint", "\"paint\": expected set, show or fail\n" },
		{ "show size 3", "\"size\": expected all, a digit or nothing; show size is show here\n" },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc;
		assert_string_equal(refusal(rows[i].line, &rc), rows[i].said);
		assert_true(rc < 0);
		assert_string_equal(ran, "");
	}
}

static void test_too_long(void **state)
{
	char line[2 * GRAMMAR_WORD_MAX];
	int rc;
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = 0;
	assert_non_null(strstr(refusal(line, &rc), "too long"));
	assert_true(rc < 0);
	assert_non_null(strstr(refusal("set a b c d e f g h i j k l m n o p", &rc), "too long"));
}

/* All words that can stand there, one after the other. */
static void check_completion(const char *line, const char *words, unsigned part)
{
	char all[256] = "";
	const char *word;
	unsigned got = 0;
	for (unsigned i = 0; (word = grammar_complete(&grammar, line, i, &got)); i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " " : "", word);
	assert_string_equal(all, words);
	assert_int_equal(got, part);
}

static void test_completion(void **state)
{
	check_completion("", "set show fail", 0);
	check_completion("s", "set show", 1);
	check_completion("set ", "colour size", 0);
	check_completion("set c", "colour", 1);
	check_completion("set colour ", "red rose", 0);
	check_completion("set colour ro", "rose", 2);
	check_completion("set size ", "", 0);
	check_completion("nothing ", "", 0);
	check_completion("show ", "all", 0);
}

/* What is shown to people: values that cannot be listed, too, and what a whole line does. */
static void check_hints(const char *line, const char *hints)
{
	char all[256] = "";
	const char *hint;
	for (unsigned i = 0; (hint = grammar_hint(&grammar, line, i)); i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? "|" : "", hint);
	assert_string_equal(all, hints);
}

static void test_hints(void **state)
{
	check_hints("set ", "colour|size");
	check_hints("set colour ", "red|rose");
	check_hints("set size ", "<digit>: a digit");
	check_hints("set size 1", "<digit>: a digit");
	check_hints("set size 1 ", "Enter: a size");
	check_hints("show ", "all|<digit>: a digit|Enter: show [<digit|all>]");
	check_hints("nothing ", "");
}

/* Which lines help shows. */
static void check_help(const char *word, unsigned n, const char *in, const char *not_in)
{
	char *memory = NULL;
	size_t size = 0;
	FILE *usual = stdout, *f = open_memstream(&memory, &size);
	assert_non_null(f);
	stdout = f;
	unsigned shown = grammar_help(&grammar, word);
	stdout = usual;
	fclose(f);
	assert_int_equal(shown, n);
	assert_true(!in || strstr(memory, in));
	assert_true(!not_in || !strstr(memory, not_in));
	free(memory);
}

static void test_help(void **state)
{
	check_help(NULL, 4, "two: the second\n", NULL);
	check_help("set", 2, "set size <digit>", "show");
	check_help("two", 2, "show [<digit|all>]", "set");
	check_help("sh", 0, NULL, "show");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands), cmocka_unit_test(test_refusals), cmocka_unit_test(test_too_long), cmocka_unit_test(test_completion),
		cmocka_unit_test(test_hints), cmocka_unit_test(test_help),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

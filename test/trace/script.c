/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader of trace scripts, and the one way in which a script fails. Knows no verb. */
#include "script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The one script of this process. */
static struct {
	const char *file;
	const struct line *line;
	void (*show)(void);
} now;

void fail_in(const char *file, const struct line *l, void (*show)(void))
{
	now.file = file;
	now.line = l;
	now.show = show;
}

void fail(const char *format, ...)
{
	va_list args;
	printf("%s:%u: %s\n  ", now.file ? now.file : "?", now.line ? now.line->number : 0, now.line ? now.line->text : "");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	if (now.show)
		now.show();
	fflush(stdout);
	_Exit(1); /* what is still allocated is no leak then */
}

uint64_t parse_number(const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 0);
	if (end == text || *end)
		fail("\"%s\" is not a number", text);
	return v;
}

uint64_t parse_time(const char *text)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char *end;
	double v = strtod(text, &end);
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].name))
			return (uint64_t)(v * units[i].ns + 0.5);
	if (*end || v != 0)
		fail("\"%s\" is not a time: a number and ns, us, ms or s", text);
	return 0;
}

static void take_time(struct line *l, char *text)
{
	char *dots = strstr(text, "..");
	if (dots)
		*dots = 0;
	l->has_time = true;
	l->from_ns = parse_time(text + 1);
	l->to_ns = dots ? parse_time(dots + 2) : l->from_ns;
}

bool line_parse(struct line *l, const char *text, unsigned number)
{
	*l = (struct line){ .number = number };
	snprintf(l->text, sizeof(l->text), "%.*s", (int)strcspn(text, "\r\n"), text);
	memcpy(l->store, l->text, sizeof(l->store));
	l->store[strcspn(l->store, "#")] = 0;
	fail_in(now.file, l, now.show);
	char *rest = NULL;
	for (char *w = strtok_r(l->store, " \t", &rest); w; w = strtok_r(NULL, " \t", &rest)) {
		if (w[0] == '+' && !l->verb) {
			take_time(l, w);
		} else if (!l->verb) {
			l->verb = w;
		} else {
			if (l->n == WORDS_MAX)
				fail("more than %u words", WORDS_MAX);
			char *is = strchr(w, '=');
			if (is)
				*is++ = 0;
			l->words[l->n++] = (struct word){ .key = w, .value = is };
		}
	}
	return l->verb != NULL;
}

void line_finish(const struct line *l)
{
	for (unsigned i = 0; i < l->n; i++)
		if (!l->words[i].is_used)
			fail("%s does not know the word \"%s\"", l->verb, l->words[i].key);
}

static struct word *find(struct line *l, const char *key)
{
	for (unsigned i = 0; i < l->n; i++)
		if (!strcmp(l->words[i].key, key)) {
			l->words[i].is_used = true;
			return &l->words[i];
		}
	return NULL;
}

bool line_has(struct line *l, const char *key)
{
	return find(l, key) != NULL;
}

const char *line_text(struct line *l, const char *key)
{
	struct word *w = find(l, key);
	if (w && !w->value)
		fail("%s needs a value", key);
	return w ? w->value : NULL;
}

uint64_t line_number(struct line *l, const char *key, uint64_t fallback)
{
	const char *text = line_text(l, key);
	return text ? parse_number(text) : fallback;
}

const char *line_first(struct line *l)
{
	if (!l->n || l->words[0].value)
		fail("%s what?", l->verb);
	l->words[0].is_used = true;
	return l->words[0].key;
}

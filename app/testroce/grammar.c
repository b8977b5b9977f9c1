/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing but the reading of patterns: what commands there are, and what their values can be, is in the tables of others. A line that fits no pattern is answered by what could have stood at the first word that fits none. */
#include "grammar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A line, or a pattern, cut at its blanks. */
struct words {
	char text[GRAMMAR_WORD_MAX];
	char *word[GRAMMAR_WORDS];
	unsigned n;
	bool is_too_much;
};

static void cut(struct words *w, const char *line)
{
	*w = (struct words){ .n = 0 };
	w->is_too_much = strlen(line) >= sizeof(w->text);
	snprintf(w->text, sizeof(w->text), "%s", line);
	char *rest = w->text;
	for (char *p; (p = strtok_r(NULL, " \t\r\n", &rest));) {
		if (w->n == GRAMMAR_WORDS) {
			w->is_too_much = true;
			return;
		}
		w->word[w->n++] = p;
	}
}

/* The way through all commands. */
struct walk {
	const struct section *section;
	const struct command *next;
};

static struct walk begin(const struct grammar *g)
{
	return (struct walk){ g->sections, g->sections->commands };
}

/* The next one; NULL after the last. */
static const struct command *go_on(struct walk *w)
{
	while (w->section->name && !w->next->pattern) {
		w->section++;
		w->next = w->section->commands;
	}
	return w->section->name ? w->next++ : NULL;
}

/* One word of a pattern. */
struct token {
	const struct kind *kind; /* NULL: a plain word */
	bool is_optional;
	bool has_all;            /* the word "all" stands for all values, as if none was given */
	char text[64];           /* without brackets */
};

static const struct kind *find_kind(const struct grammar *g, const char *name)
{
	for (const struct kind *k = g->kinds; k->name; k++)
		if (!strcmp(k->name, name))
			return k;
	return NULL;
}

/* The i-th word of a command's pattern; false: there are fewer. */
static bool read_token(const struct grammar *g, const struct command *c, unsigned i, struct token *t)
{
	const char *p = c->pattern;
	for (; i && *p; i--) {
		p += strcspn(p, " ");
		p += strspn(p, " ");
	}
	int len = (int)strcspn(p, " ");
	*t = (struct token){ .is_optional = *p == '[' };
	if (!len)
		return false;
	if (t->is_optional) {
		p++;
		len -= 2;
	}
	if (*p == '<')
		snprintf(t->text, sizeof(t->text), "%.*s", len - 2, p + 1);
	else
		snprintf(t->text, sizeof(t->text), "%.*s", len, p);
	char *all = *p == '<' ? strstr(t->text, "|all") : NULL;
	t->has_all = all != NULL;
	if (all)
		*all = 0;
	t->kind = *p == '<' ? find_kind(g, t->text) : NULL;
	return true;
}

static bool is_all(const struct token *t, const char *word)
{
	return t->has_all && !strcmp(word, "all");
}

static bool takes(const struct grammar *g, const struct token *t, const char *word, struct value *v)
{
	*v = (struct value){ .text = word };
	if (is_all(t, word))
		return true;
	return t->kind ? t->kind->take(g->lab, word, v) : !strcmp(t->text, word);
}

/* How many words of w, from the first, fit a command; *is_whole: they all do, and nothing is missing. */
static unsigned match(const struct grammar *g, const struct command *c, const struct words *w, struct value *value, unsigned *given, bool *is_whole)
{
	struct token t;
	struct value v;
	unsigned i = 0;
	*given = 0;
	for (; i < w->n && read_token(g, c, i, &t) && takes(g, &t, w->word[i], &v); i++)
		if (t.kind && value && !is_all(&t, w->word[i]))
			value[(*given)++] = v;
	*is_whole = i == w->n && (!read_token(g, c, i, &t) || t.is_optional);
	return i;
}

/* ---- the one line ---- */

#define EXPECTED_MAX 48u

/* What could have stood there, each once: commands may begin alike. */
struct expected {
	char text[EXPECTED_MAX][128];
	unsigned n;
};

static void expect(struct expected *e, const char *what)
{
	for (unsigned i = 0; i < e->n; i++)
		if (!strcmp(e->text[i], what))
			return;
	if (e->n < EXPECTED_MAX)
		snprintf(e->text[e->n++], sizeof(e->text[0]), "%s", what);
}

static bool begins_as(const struct words *w, const char *theirs)
{
	struct words t;
	unsigned i = 0;
	cut(&t, theirs);
	while (i < t.n && i < w->n && !strcmp(t.word[i], w->word[i]))
		i++;
	return i == t.n;
}

static int refuse(const struct grammar *g, const struct words *w)
{
	unsigned most = 0, given;
	bool is_whole, may_end = false;
	struct expected e = { .n = 0 };
	struct token t;
	const struct command *c;
	for (struct walk at = begin(g); (c = go_on(&at));) {
		unsigned n = match(g, c, w, NULL, &given, &is_whole);
		most = n > most ? n : most;
	}
	for (struct walk at = begin(g); (c = go_on(&at));) {
		if (match(g, c, w, NULL, &given, &is_whole) < most)
			continue;
		bool has_more = read_token(g, c, most, &t);
		may_end = may_end || !has_more || t.is_optional;
		if (has_more && t.has_all)
			expect(&e, "all");
		if (has_more)
			expect(&e, t.kind ? t.kind->takes : t.text);
	}
	if (may_end)
		expect(&e, "nothing");
	fprintf(stderr, "%s%s%s: expected ", w->n > most ? "\"" : "after \"", w->word[w->n > most ? most : most - 1], "\"");
	for (unsigned i = 0; i < e.n; i++)
		fprintf(stderr, "%s%s", i ? i + 1 < e.n ? ", " : " or " : "", e.text[i]);
	for (const struct habit *h = g->habits; h && h->theirs; h++)
		if (begins_as(w, h->theirs))
			fprintf(stderr, "; %s is %s here", h->theirs, h->ours);
	fputc('\n', stderr);
	return -EINVAL;
}

int grammar_run(const struct grammar *g, const char *line)
{
	struct words w;
	struct value value[GRAMMAR_WORDS];
	const struct command *c;
	unsigned given;
	bool is_whole;
	cut(&w, line);
	if (!w.n || w.word[0][0] == '#')
		return 0;
	if (w.is_too_much) {
		fprintf(stderr, "the line is too long: expected at most %u characters and %u words\n", GRAMMAR_WORD_MAX - 1, GRAMMAR_WORDS);
		return -EINVAL;
	}
	for (struct walk at = begin(g); (c = go_on(&at));) {
		match(g, c, &w, value, &given, &is_whole);
		if (is_whole)
			return c->run(g->lab, value, given);
	}
	return refuse(g, &w);
}

/* ---- completion ---- */

/* What can stand at the place of t: the i-th text. */
static const char *nth_of(const struct grammar *g, const struct token *t, unsigned i)
{
	static char text[64];
	if (t->has_all && !i--)
		return "all";
	if (t->kind)
		return t->kind->nth ? t->kind->nth(g->lab, t->kind, i) : NULL;
	snprintf(text, sizeof(text), "%s", t->text);
	return i ? NULL : text;
}

/* Whether an earlier command offers the same at this place: it is listed once. */
static bool is_offered(const struct grammar *g, const struct words *w, const struct command *until, const struct token *t)
{
	struct token other;
	const struct command *c;
	unsigned given;
	bool is_whole;
	for (struct walk at = begin(g); (c = go_on(&at)) && c != until;)
		if (match(g, c, w, NULL, &given, &is_whole) == w->n && read_token(g, c, w->n, &other) && other.kind == t->kind && !strcmp(other.text, t->text))
			return true;
	return false;
}

/* A line, cut before the word that is being typed; begun: what there is of that one. */
static void cut_begun(struct words *w, const char *line, const char **begun)
{
	size_t len = strlen(line);
	cut(w, line);
	*begun = w->n && len && !strchr(" \t", line[len - 1]) ? w->word[--w->n] : "";
}

const char *grammar_complete(const struct grammar *g, const char *line, unsigned i, unsigned *part)
{
	struct words w;
	struct token t;
	const struct command *c;
	const char *text, *begun;
	unsigned given;
	bool is_whole;
	cut_begun(&w, line, &begun);
	*part = (unsigned)strlen(begun);
	for (struct walk at = begin(g); (c = go_on(&at));) {
		if (match(g, c, &w, NULL, &given, &is_whole) < w.n || !read_token(g, c, w.n, &t) || is_offered(g, &w, c, &t))
			continue;
		for (unsigned n = 0; (text = nth_of(g, &t, n)); n++)
			if (!strncmp(text, begun, *part) && !i--)
				return text;
	}
	return NULL;
}

const char *grammar_hint(const struct grammar *g, const char *line, unsigned i)
{
	static char text[256];
	struct words w;
	struct token t;
	const struct command *c;
	const char *begun, *word;
	unsigned given, part;
	bool is_whole;
	for (unsigned n = 0; (word = grammar_complete(g, line, n, &part)); n++)
		if (!i--)
			return word;
	cut_begun(&w, line, &begun);
	for (struct walk at = begin(g); (c = go_on(&at));) {
		if (match(g, c, &w, NULL, &given, &is_whole) < w.n)
			continue;
		bool has_more = read_token(g, c, w.n, &t);
		if (has_more && t.kind && !t.kind->nth && !is_offered(g, &w, c, &t) && !i--)
			return snprintf(text, sizeof(text), "<%s>: %s", t.text, t.kind->takes) < 0 ? NULL : text;
		if (is_whole && w.n && !*begun && !i--)
			return snprintf(text, sizeof(text), "Enter: %s", c->help[0] ? c->help : c->pattern) < 0 ? NULL : text;
	}
	return NULL;
}

/* ---- help ---- */

static bool begins_with(const struct command *c, const char *word)
{
	size_t len = strlen(word);
	return !strncmp(c->pattern, word, len) && (!c->pattern[len] || c->pattern[len] == ' ');
}

unsigned grammar_help(const struct grammar *g, const char *word)
{
	unsigned shown = 0;
	for (const struct section *s = g->sections; s->name; s++) {
		unsigned of_section = 0;
		for (const struct command *c = s->commands; c->pattern; c++) {
			if (word && strcmp(s->name, word) && !begins_with(c, word))
				continue;
			if (!of_section++)
				printf("%s: %s\n", s->name, s->title);
			printf("  %-56s %s\n", c->pattern, c->help);
		}
		shown += of_section;
	}
	return shown;
}

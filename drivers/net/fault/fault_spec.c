/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses fault specifications. Owns the table of items. Invariant: what was accepted is in range; a text of any bytes is read to its end and no further. */
#include "fault_spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "opcode.h"

#define ITEM_MAX 128u
#define FIELDS_MAX 6u
#define TIME_MAX_NS 10000000000.0
#define LIMIT_MAX 65536u
#define REORDER_FRAMES 4u
#define REORDER_NS 100000u
#define LIMIT 1024u

/* One item cut at its colons; field[0] is the name. */
struct item {
	char text[ITEM_MAX];
	char *field[FIELDS_MAX];
	unsigned fields;
};

/* ---- values ---- */

/* Digits with or without a decimal point (strtod would follow the locale). */
static bool parse_decimal(const char *text, const char **end, double *out)
{
	const char *p = text;
	double v = 0, unit = 1;
	for (; *p >= '0' && *p <= '9' && p - text < 16; p++)
		v = v * 10 + (*p - '0');
	if (p == text)
		return false;
	if (*p == '.') {
		const char *point = p++;
		for (; *p >= '0' && *p <= '9' && p - point < 16; p++) {
			unit /= 10;
			v += unit * (*p - '0');
		}
		if (p == point + 1)
			return false;
	}
	*end = p;
	*out = v;
	return true;
}

static bool parse_chance(const char *text, double *out)
{
	const char *end;
	double v;
	if (!parse_decimal(text, &end, &v))
		return false;
	if (*end == '%') {
		v /= 100;
		end++;
	}
	*out = v;
	return !*end && v <= 1;
}

static bool parse_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	const char *end;
	double v;
	if (!parse_decimal(text, &end, &v))
		return false;
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name) || v * units[i].ns > TIME_MAX_NS)
			continue;
		*ns = (uint64_t)(v * units[i].ns + 0.5);
		return true;
	}
	return false;
}

/* A number from min to max, decimal or 0x..., up to where it ends. */
static bool parse_number(const char *text, const char **end, uint64_t min, uint64_t max, uint64_t *out)
{
	char *stop;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	unsigned long long v = strtoull(text, &stop, text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10);
	*end = stop;
	*out = v;
	return !errno && v >= min && v <= max;
}

static bool parse_whole_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *end;
	return parse_number(text, &end, min, max, out) && !*end;
}

/* ---- items ---- */

static bool take_drop(struct fault_spec *s, const struct item *i)
{
	return parse_chance(i->field[1], &s->chance[FAULT_DROP]);
}

static bool take_dup(struct fault_spec *s, const struct item *i)
{
	return parse_chance(i->field[1], &s->chance[FAULT_DUP]);
}

static bool take_ce(struct fault_spec *s, const struct item *i)
{
	return parse_chance(i->field[1], &s->chance[FAULT_CE]);
}

static bool take_reorder(struct fault_spec *s, const struct item *i)
{
	uint64_t frames = s->reorder_frames;
	if (!parse_chance(i->field[1], &s->chance[FAULT_REORDER]))
		return false;
	if (i->fields > 2 && !parse_whole_number(i->field[2], 1, 64, &frames))
		return false;
	s->reorder_frames = (uint32_t)frames;
	return i->fields < 4 || (parse_time(i->field[3], &s->reorder_ns) && s->reorder_ns);
}

static bool take_delay(struct fault_spec *s, const struct item *i)
{
	return parse_time(i->field[1], &s->delay_ns) && (i->fields < 3 || parse_time(i->field[2], &s->jitter_ns));
}

static bool take_corrupt(struct fault_spec *s, const struct item *i)
{
	uint64_t bits = 1;
	if (!parse_chance(i->field[1], &s->chance[FAULT_CORRUPT]))
		return false;
	if (i->fields > 2 && !parse_whole_number(i->field[2], 1, 3, &bits))
		return false;
	s->corrupt_bits = (uint32_t)bits;
	return true;
}

static bool take_mask(struct fault_spec *s, const struct item *i)
{
	if (!parse_whole_number(i->field[1], 0, UINT64_MAX, &s->mask))
		return false;
	s->is_mask_repeated = i->fields > 2;
	return i->fields < 3 || !strcmp(i->field[2], "repeat");
}

static bool take_limit(struct fault_spec *s, const struct item *i)
{
	uint64_t n;
	if (!parse_whole_number(i->field[1], 1, LIMIT_MAX, &n))
		return false;
	s->limit = (uint32_t)n;
	return true;
}

static bool take_seed(struct fault_spec *s, const struct item *i)
{
	return parse_whole_number(i->field[1], 0, UINT64_MAX, &s->seed);
}

/* ---- rules ---- */

static const char *const action_names[FAULT_ACTIONS] = { "drop", "dup", "reorder", "corrupt", "ce" };

/* ACTION@NTH[+EVERY] */
static bool parse_when(struct fault_rule *r, char *text)
{
	char *at = strchr(text, '@');
	const char *end;
	unsigned a = 0;
	if (!at)
		return false;
	*at = 0;
	while (a < FAULT_ACTIONS && strcmp(text, action_names[a]))
		a++;
	if (a == FAULT_ACTIONS || !parse_number(at + 1, &end, 1, UINT64_MAX, &r->nth))
		return false;
	r->action = (enum fault_action)a;
	return !*end || (*end == '+' && parse_whole_number(end + 1, 1, UINT64_MAX, &r->every));
}

/* Whether a name of the opcode table is text with spaces for underscores, or begins so. */
static bool is_named(const char *name, const char *text, size_t len, bool is_beginning)
{
	size_t i = 0;
	for (; i < len && name[i]; i++) {
		char c = text[i] == '_' ? ' ' : text[i];
		if (strncasecmp(&name[i], &c, 1))
			return false;
	}
	return i == len && (is_beginning || !name[i]);
}

static bool parse_opcode(struct fault_rule *r, const char *text)
{
	size_t len = strlen(text);
	bool is_any = !strcasecmp(text, "ANY"), is_beginning = len && text[len - 1] == '*', is_found = false;
	for (unsigned byte = 0; byte < 256; byte++) {
		const struct opcode *o = opcode_of((uint8_t)byte);
		if (!o || !(is_any || is_named(o->name, text, len - is_beginning, is_beginning)))
			continue;
		r->opcodes[byte / 64] |= UINT64_C(1) << byte % 64;
		is_found = true;
	}
	return is_found;
}

/* psn=N[-N], around the end of the number space too. */
static bool parse_psns(struct fault_rule *r, const char *text)
{
	uint64_t first, last;
	const char *end;
	if (!parse_number(text, &end, 0, PSN_MASK, &first))
		return false;
	last = first;
	if (*end && (*end != '-' || !parse_whole_number(end + 1, 0, PSN_MASK, &last)))
		return false;
	r->first = psn_make((uint32_t)first);
	r->psns = ((uint32_t)(last - first) & PSN_MASK) + 1;
	return true;
}

static bool parse_filter(struct fault_rule *r, const char *text)
{
	uint64_t qpn;
	if (!strncmp(text, "psn=", 4))
		return parse_psns(r, text + 4);
	if (strncmp(text, "qpn=", 4) || !parse_whole_number(text + 4, 0, 0xffffff, &qpn))
		return false;
	r->qpn = (uint32_t)qpn;
	return true;
}

static bool take_rule(struct fault_spec *s, const struct item *i)
{
	if (s->rules == FAULT_RULES_MAX)
		return false;
	struct fault_rule *r = &s->rule[s->rules];
	*r = (struct fault_rule){ .qpn = FAULT_QPN_ANY };
	if (!parse_when(r, i->field[1]) || !parse_opcode(r, i->field[2]))
		return false;
	for (unsigned f = 3; f < i->fields; f++)
		if (!parse_filter(r, i->field[f]))
			return false;
	s->rules++;
	return true;
}

/* ---- the list ---- */

static const struct key {
	const char *name;
	bool (*take)(struct fault_spec *s, const struct item *i);
	unsigned min, max; /* fields, the name included */
	bool is_repeatable;
	const char *takes;
} keys[] = {
	{ "drop", take_drop, 2, 2, false, "a probability: drop:1% or drop:0.01" },
	{ "dup", take_dup, 2, 2, false, "a probability: dup:0.1%" },
	{ "reorder", take_reorder, 2, 4, false, "a probability, at most so many frames (1..64) and a time: reorder:2%:4:100us" },
	{ "delay", take_delay, 2, 3, false, "a time and a jitter of up to 10s: delay:20us:5us" },
	{ "corrupt", take_corrupt, 2, 3, false, "a probability and 1..3 bits: corrupt:0.1%:2" },
	{ "ce", take_ce, 2, 2, false, "a probability: ce:5%" },
	{ "mask", take_mask, 2, 3, false, "64 bits, and perhaps \"repeat\": mask:0x00ff:repeat" },
	{ "rule", take_rule, 3, 5, true, "ACTION@NTH[+EVERY]:OPCODE[:qpn=N][:psn=N-N], at most 32 times, as rule:drop@3+10:RC_SEND_ONLY; actions are drop, dup, reorder, corrupt, ce" },
	{ "limit", take_limit, 2, 2, false, "frames from 1 to 65536: limit:1024" },
	{ "seed", take_seed, 2, 2, false, "a number: seed:42" },
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* Cuts the item of len characters at text into fields. false: too long, or too many. */
static bool cut(struct item *i, const char *text, size_t len)
{
	if (len >= sizeof(i->text))
		return false;
	memcpy(i->text, text, len);
	i->text[len] = 0;
	i->fields = 0;
	for (char *p = i->text; p; i->fields++) {
		if (i->fields == FIELDS_MAX)
			return false;
		i->field[i->fields] = p;
		p = strchr(p, ':');
		if (p)
			*p++ = 0;
	}
	return true;
}

static const struct key *find_key(const char *name)
{
	for (unsigned k = 0; k < KEYS; k++)
		if (!strcmp(keys[k].name, name))
			return &keys[k];
	return NULL;
}

static int take_item(struct fault_spec *s, const char *text, size_t len, uint32_t *seen, char *why, uint32_t room)
{
	struct item i;
	int shown = len < 48 ? (int)len : 48;
	if (!cut(&i, text, len)) {
		snprintf(why, room, "fault item \"%.*s...\" is too long", shown, text);
		return -EINVAL;
	}
	const struct key *k = find_key(i.field[0]);
	if (!k) {
		snprintf(why, room, "fault item \"%.*s\" begins with none of drop, dup, reorder, delay, corrupt, ce, mask, rule, limit, seed", shown, text);
		return -EINVAL;
	}
	uint32_t bit = 1u << (k - keys);
	if ((*seen & bit) && !k->is_repeatable) {
		snprintf(why, room, "fault item %s is there twice; give it once", k->name);
		return -EINVAL;
	}
	*seen |= bit;
	if (i.fields >= k->min && i.fields <= k->max && k->take(s, &i))
		return 0;
	snprintf(why, room, "fault item \"%.*s\": %s takes %s", shown, text, k->name, k->takes);
	return -EINVAL;
}

int fault_spec_parse(const char *text, struct fault_spec *out, char *why, uint32_t len)
{
	uint32_t seen = 0;
	int err;
	*out = (struct fault_spec){ .reorder_frames = REORDER_FRAMES, .reorder_ns = REORDER_NS, .corrupt_bits = 1, .limit = LIMIT, .seed = 1 };
	do {
		size_t n = strcspn(text, "/");
		err = take_item(out, text, n, &seen, why, len);
		text += n;
	} while (!err && *text++);
	return err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* gid add, gid del: the port's own addresses. What is typed is an address; what the daemon takes away is an index, so that is looked up. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "complain.h"
#include "gid.h"
#include "dialogue.h"

struct address {
	struct gid gid;
	uint64_t prefix_len;
	uint64_t vlan; /* 0: untagged */
};

/* "vlan N" behind the address, or nothing. */
static bool parse_vlan(const struct options *o, struct address *a)
{
	a->vlan = 0;
	return o->words == 3 || (o->words == 5 && !strcmp(o->word[3], "vlan") && options_number(o->word[4], 4094, &a->vlan) && a->vlan);
}

static bool parse_address(const char *text, struct address *a)
{
	char copy[64];
	char *slash;
	if (strlen(text) >= sizeof(copy))
		return false;
	slash = strchr(strcpy(copy, text), '/');
	if (slash)
		*slash = 0;
	if (gid_parse(copy, &a->gid))
		return false;
	a->prefix_len = 0;
	return !slash || options_number(slash + 1, gid_is_ip4(&a->gid) ? 32 : 128, &a->prefix_len);
}

static void report(const struct options *o, const char *what, uint64_t index, const struct gid *gid)
{
	char text[GID_TEXT_MAX] = "";
	if (gid)
		gid_format(gid, text);
	if (o->is_json && gid)
		printf("{\"index\": %llu, \"gid\": \"%s\"}\n", (unsigned long long)index, text);
	else if (o->is_json)
		printf("{\"index\": %llu}\n", (unsigned long long)index);
	else
		printf("GID %llu is %s%s\n", (unsigned long long)index, what, text);
}

static bool add(const struct options *o, struct dialogue *d, const struct address *a)
{
	struct ctl_message m;
	struct ctl_answer answer;
	memset(&m, 0, sizeof(m));
	memcpy(m.gid_add.gid, a->gid.b, sizeof(m.gid_add.gid));
	m.gid_add.vlan = (uint32_t)a->vlan;
	m.gid_add.prefix_len = (uint32_t)a->prefix_len;
	if (!dialogue_ask(d, CTL_GID_ADD, &m, -1, &answer))
		return false;
	report(o, "", answer.value, &a->gid);
	return true;
}

static bool find(struct dialogue *d, const struct address *a, uint64_t *index)
{
	json_t *rows;
	bool is_found = false;
	struct gid gid;
	if (!dialogue_show(d, "gid", &rows))
		return false;
	for (size_t i = 0; i < json_array_size(rows) && !is_found; i++) {
		const json_t *row = json_array_get(rows, i);
		const char *text = json_string_value(json_object_get(row, "gid"));
		*index = (uint64_t)json_integer_value(json_object_get(row, "index"));
		is_found = text && !gid_parse(text, &gid) && gid_is_equal(&gid, &a->gid) && (uint64_t)json_integer_value(json_object_get(row, "vlan")) == a->vlan;
	}
	json_decref(rows);
	if (!is_found)
		complain_refused("the port has no such address; expected one that urocectl show gid lists, and its VLAN");
	return is_found;
}

static bool delete(const struct options *o, struct dialogue *d, const struct address *a, uint64_t index)
{
	struct ctl_message m;
	struct ctl_answer answer;
	if (a && !find(d, a, &index))
		return false;
	memset(&m, 0, sizeof(m));
	m.gid_del.index = (uint32_t)index;
	if (!dialogue_ask(d, CTL_GID_DEL, &m, -1, &answer))
		return false;
	report(o, "gone", index, NULL);
	return true;
}

int gid_run(const struct options *o)
{
	struct address a;
	struct dialogue talk;
	uint64_t index = 0;
	bool is_add = o->words > 2 && !strcmp(o->word[1], "add"), is_del = o->words > 2 && !strcmp(o->word[1], "del");
	if (!is_add && !is_del)
		return complain_usage("gid: expected gid add ADDRESS/PREFIX [vlan N], or gid del INDEX|ADDRESS [vlan N]");
	bool is_index = is_del && o->words == 3 && options_number(o->word[2], UINT32_MAX, &index);
	if (!is_index && (!parse_address(o->word[2], &a) || (strchr(o->word[2], '/') != NULL) != is_add))
		return complain_usage("gid %s %s: expected %s", o->word[1], o->word[2], is_add ? "ADDRESS/PREFIX, as in 10.0.0.5/24 or fd00::5/64" : "an index of urocectl show gid, or an address without prefix");
	if (!is_index && !parse_vlan(o, &a))
		return complain_usage("gid %s %s: expected nothing behind it, or vlan N with N from 1 to 4094", o->word[1], o->word[2]);
	bool is_done = dialogue_open(&talk, o->socket) && (is_add ? add(o, &talk, &a) : delete(o, &talk, is_index ? NULL : &a, index));
	dialogue_close(&talk);
	return is_done ? EXIT_FINE : EXIT_REFUSED;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* How values become JSON. Owns nothing but what it puts. */
#include "report_row.h"

#include <stdio.h>
#include <string.h>

#include "gid.h"
#include "packet.h"

static void put(struct report_rows *r, const char *key, json_t *value)
{
	r->is_short |= json_object_set_new(r->row, key, value) != 0;
}

void report_row_begin(struct report_rows *r)
{
	r->row = json_object();
	r->is_short |= json_array_append_new(r->list, r->row) != 0;
	if (r->is_short)
		r->row = NULL;
}

void report_put_text(struct report_rows *r, const char *key, const char *text)
{
	char ascii[256];
	json_t *value = text ? json_string(text) : json_null();
	if (!value) {
		snprintf(ascii, sizeof(ascii), "%s", text);
		for (char *c = ascii; *c; c++)
			*c = *c & 0x80 ? '?' : *c;
		value = json_string(ascii);
	}
	put(r, key, value);
}

void report_put_number(struct report_rows *r, const char *key, uint64_t value)
{
	put(r, key, json_integer(value <= INT64_MAX ? (json_int_t)value : INT64_MAX));
}

void report_put_truth(struct report_rows *r, const char *key, bool value)
{
	put(r, key, json_boolean(value));
}

void report_put_null(struct report_rows *r, const char *key)
{
	put(r, key, json_null());
}

void report_put_gid(struct report_rows *r, const char *key, const struct gid *gid)
{
	char text[GID_TEXT_MAX];
	report_put_text(r, key, gid_format(gid, text));
}

void report_put_mac(struct report_rows *r, const char *key, const uint8_t mac[6])
{
	char text[18];
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	report_put_text(r, key, text);
}

void report_put_vlan(struct report_rows *r, uint16_t vlan)
{
	if (vlan == VLAN_NONE)
		report_put_null(r, "vlan");
	else
		report_put_number(r, "vlan", vlan);
}

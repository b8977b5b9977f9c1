/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table of kinds of values. */
#include "values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"

static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &end, 0);
	return !errno && !*end && *out >= min && *out <= max;
}

bool value_bytes(const char *text, uint64_t *bytes)
{
	static const char units[] = "kKmM";
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*bytes = strtoull(text, &end, 0);
	const char *unit = *end ? strchr(units, *end) : NULL;
	if (unit && *bytes <= VALUE_BYTES_MAX) {
		*bytes <<= unit - units < 2 ? 10 : 20;
		end++;
	}
	return !errno && !*end && *bytes <= VALUE_BYTES_MAX;
}

bool value_count(const char *text, uint32_t *count)
{
	uint64_t n = 0;
	bool is_one = parse_number(text, 1, VALUE_COUNT_MAX, &n);
	*count = (uint32_t)n;
	return is_one;
}

bool value_seconds(const char *text, double *seconds)
{
	char *end;
	if (!((*text >= '0' && *text <= '9') || *text == '.'))
		return false;
	*seconds = strtod(text, &end);
	return !*end && *seconds >= 0 && *seconds <= 86400;
}

/* ---- kinds ---- */

static bool take_port(struct lab *lab, const char *text, struct value *v)
{
	return lab->stations && parse_number(text, 0, lab->stations - 1, &v->number);
}

static const char *nth_port(struct lab *lab, const struct kind *k, unsigned i)
{
	static const char *const names[STATIONS_MAX] = { "0", "1" };
	return i < lab->stations ? names[i] : NULL;
}

static bool take_mode(struct lab *lab, const char *text, struct value *v)
{
	return mode_find(text);
}

static const char *nth_mode(struct lab *lab, const struct kind *k, unsigned i)
{
	const struct mode *m = mode_at(i);
	return m ? m->name : NULL;
}

static bool take_bytes(struct lab *lab, const char *text, struct value *v)
{
	return value_bytes(text, &v->number);
}

static bool take_count(struct lab *lab, const char *text, struct value *v)
{
	return parse_number(text, 1, VALUE_COUNT_MAX, &v->number);
}

static bool take_number(struct lab *lab, const char *text, struct value *v)
{
	return parse_number(text, 0, UINT64_MAX, &v->number);
}

/* In milliseconds. */
static bool take_seconds(struct lab *lab, const char *text, struct value *v)
{
	double s;
	bool is_one = value_seconds(text, &s);
	v->number = is_one ? (uint64_t)(s * 1000 + 0.5) : 0;
	return is_one;
}

static const char *const switches[] = { "off", "on", NULL };

static bool take_switch(struct lab *lab, const char *text, struct value *v)
{
	v->number = !strcmp(text, switches[1]);
	return v->number || !strcmp(text, switches[0]);
}

static const char *nth_switch(struct lab *lab, const struct kind *k, unsigned i)
{
	return i < 2 ? switches[i] : NULL;
}

static bool take_mtu(struct lab *lab, const char *text, struct value *v)
{
	return parse_number(text, 256, 4096, &v->number) && !(v->number & (v->number - 1));
}

static const char *nth_mtu(struct lab *lab, const struct kind *k, unsigned i)
{
	static const char *const names[] = { "256", "512", "1024", "2048", "4096" };
	return i < 5 ? names[i] : NULL;
}

static bool take_address(struct lab *lab, const char *text, struct value *v)
{
	return !gid_parse(text, &v->gid);
}

/* The length of its prefix becomes the number. */
static bool take_network(struct lab *lab, const char *text, struct value *v)
{
	char address[GID_TEXT_MAX];
	size_t len = strcspn(text, "/");
	if (len >= sizeof(address) || !text[len])
		return false;
	memcpy(address, text, len);
	address[len] = 0;
	return !gid_parse(address, &v->gid) && parse_number(text + len + 1, 0, gid_is_ip4(&v->gid) ? 32 : 128, &v->number);
}

static bool take_mac(struct lab *lab, const char *text, struct value *v)
{
	int used = 0;
	return sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &v->mac[0], &v->mac[1], &v->mac[2], &v->mac[3], &v->mac[4], &v->mac[5], &used) == 6 && !text[used];
}

static const char *const services[] = { [UROCE_RC] = "rc", [UROCE_UC] = "uc", [UROCE_UD] = "ud" };

static bool take_service(struct lab *lab, const char *text, struct value *v)
{
	for (v->number = 0; v->number < 3; v->number++)
		if (!strcmp(text, services[v->number]))
			return true;
	return false;
}

static const char *nth_service(struct lab *lab, const struct kind *k, unsigned i)
{
	return i < 3 ? services[i] : NULL;
}

static bool take_type(struct lab *lab, const char *text, struct value *v)
{
	return parse_number(text, UROCE_MW_TYPE_1, UROCE_MW_TYPE_2, &v->number);
}

static bool take_24_bits(struct lab *lab, const char *text, struct value *v)
{
	return parse_number(text, 0, 0xffffff, &v->number);
}

static bool take_32_bits(struct lab *lab, const char *text, struct value *v)
{
	return parse_number(text, 0, UINT32_MAX, &v->number);
}

/* ---- objects, by number: those that are there are completed ---- */

/* "mr:2": one of ours that is there, of that kind; NULL: it is not written so, or not there. */
static const struct object *find_own(const struct lab *lab, const char *text, const char *prefix, enum object_kind kind)
{
	uint64_t n;
	size_t len = strlen(prefix);
	bool is_one = !strncmp(text, prefix, len) && parse_number(text + len, 0, OBJECTS_MAX - 1, &n) && lab->objects.v[kind][n].is_there;
	return is_one ? &lab->objects.v[kind][n] : NULL;
}

/* An address of memory. */
static bool take_remote(struct lab *lab, const char *text, struct value *v)
{
	const struct object *mr = find_own(lab, text, "mr:", OBJECT_MR), *mw = find_own(lab, text, "mw:", OBJECT_MW);
	if (!mr && !mw)
		return parse_number(text, 0, UINT64_MAX, &v->number);
	v->number = mr && mr->memory ? (uintptr_t)mr->memory : mr ? mr->base : mw->base;
	return true;
}

static bool take_key(struct lab *lab, const char *text, struct value *v)
{
	const struct object *mr = find_own(lab, text, "mr:", OBJECT_MR), *mw = find_own(lab, text, "mw:", OBJECT_MW);
	if (!mr && !mw)
		return parse_number(text, 0, UINT32_MAX, &v->number);
	v->number = mr && mr->memory ? uroce_mr_rkey(mr->mr) : mr ? mr->key : mw->key;
	return true;
}

static bool take_qpn(struct lab *lab, const char *text, struct value *v)
{
	const struct object *qp = find_own(lab, text, "qp:", OBJECT_QP);
	if (!qp)
		return parse_number(text, 0, 0xffffff, &v->number);
	v->number = uroce_qp_num(qp->qp);
	return true;
}

static const char *nth_object(struct lab *lab, const struct kind *k, unsigned i)
{
	static char text[8];
	for (unsigned n = 0; n < OBJECTS_MAX; n++)
		if (lab->objects.v[k->of][n].is_there && !i--) {
			snprintf(text, sizeof(text), "%u", n);
			return text;
		}
	return NULL;
}

static bool take_text(struct lab *lab, const char *text, struct value *v)
{
	return true;
}

const struct kind value_kinds[] = {
	{ "port", "the number of a port (0, or 1 if there are two)", take_port, nth_port },
	{ "mode", "a mode: " MODE_NAMES, take_mode, nth_mode },
	{ "bytes", VALUE_BYTES, take_bytes, NULL },
	{ "count", VALUE_COUNT, take_count, NULL },
	{ "number", "a number, decimal or 0x...", take_number, NULL },
	{ "seconds", "seconds, as in 0.5", take_seconds, NULL },
	{ "on|off", "on or off", take_switch, nth_switch },
	{ "mtu", "a path MTU: 256, 512, 1024, 2048 or 4096", take_mtu, nth_mtu },
	{ "address", "an IP address, as in 10.0.0.1 or fd00::1", take_address, NULL },
	{ "network", "an address and its prefix, as in 10.0.0.1/24", take_network, NULL },
	{ "mac", "a MAC address, as in 02:00:00:00:00:01", take_mac, NULL },
	{ "service", "rc, uc or ud", take_service, nth_service },
	{ "pd", "the number of a PD, as show pd lists them", take_number, nth_object, OBJECT_PD },
	{ "mr", "the number of an MR, as show mr lists them", take_number, nth_object, OBJECT_MR },
	{ "cq", "the number of a CQ, as show cq lists them", take_number, nth_object, OBJECT_CQ },
	{ "mw", "the number of an MW, as show mw lists them", take_number, nth_object, OBJECT_MW },
	{ "srq", "the number of an SRQ, as show srq lists them", take_number, nth_object, OBJECT_SRQ },
	{ "qp", "the number of a QP, as show qp lists them", take_number, nth_object, OBJECT_QP },
	{ "ah", "the number of an AH, as show ah lists them", take_number, nth_object, OBJECT_AH },
	{ "type", "the type of a window, 1 or 2", take_type, NULL },
	{ "remote", "an address of the peer's memory, as show mr has it there, or mr:N or mw:N for that of an MR or MW of ours", take_remote, NULL },
	{ "rkey", "a key, as show mr and show mw have it, or mr:N or mw:N for that of one of ours", take_key, NULL },
	{ "index", "an index, as show gid lists them", take_32_bits, NULL },
	{ "wrs", "a number of WRs, or 0", take_32_bits, NULL },
	{ "imm", "an immediate, a number of 32 bits", take_32_bits, NULL },
	{ "qpn", "a QPN, as show qp has it, or qp:N for that of one of ours", take_qpn, NULL },
	{ "psn", "a PSN, as show qp has it", take_24_bits, NULL },
	{ "faults", "faults, as in drop:1%/reorder:2%", take_text, NULL },
	{ "file", "a file name", take_text, NULL },
	{ "text", "a word", take_text, NULL },
	{ "word", "the first word of commands", take_text, NULL },
	{ .name = NULL },
};

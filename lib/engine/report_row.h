/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a report (report.h) while they are made. Lack of memory is noticed once, at the end: from then on what is put is lost. */
#ifndef UROCE_REPORT_ROW_H
#define UROCE_REPORT_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct gid;

struct report_rows {
	json_t *list, *row; /* row: the last one, borrowed */
	bool is_short;      /* of memory */
};

void report_row_begin(struct report_rows *r);
/* A text that is no UTF-8 is put with '?' in the place of what is no ASCII. NULL: null. */
void report_put_text(struct report_rows *r, const char *key, const char *text);
/* Beyond 2^63: the most that JSON's readers take. */
void report_put_number(struct report_rows *r, const char *key, uint64_t value);
void report_put_truth(struct report_rows *r, const char *key, bool value);
void report_put_null(struct report_rows *r, const char *key);
void report_put_gid(struct report_rows *r, const char *key, const struct gid *gid);
void report_put_mac(struct report_rows *r, const char *key, const uint8_t mac[6]);
/* A VLAN, null for none. */
void report_put_vlan(struct report_rows *r, uint16_t vlan);

/* report_objects.c: what clients have, a row each. */
struct engine;
void report_clients(struct engine *e, struct report_rows *r);
void report_qps(struct engine *e, struct report_rows *r);
void report_cqs(struct engine *e, struct report_rows *r);
void report_mrs(struct engine *e, struct report_rows *r);

#endif

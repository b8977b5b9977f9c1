/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects made by hand at the prompt, each known by its kind and a small number. */
#ifndef TESTROCE_OBJECTS_H
#define TESTROCE_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uroce.h"

#define OBJECTS_MAX 64u /* of a kind */

enum object_kind { OBJECT_PD, OBJECT_MR, OBJECT_CQ, OBJECT_SRQ, OBJECT_MW, OBJECT_QP, OBJECT_KINDS };

struct object {
	bool is_there;
	unsigned port;
	struct uroce_context *ctx;
	unsigned of, with;          /* MR, SRQ, MW, QP: number of the PD; QP: of the CQ */
	union {
		void *handle;
		struct uroce_pd *pd;
		struct uroce_mr *mr;
		struct uroce_cq *cq;
		struct uroce_srq *srq;
		struct uroce_mw *mw;
		struct uroce_qp *qp;
	};
	uint8_t *memory;            /* MR */
	size_t bytes;
	enum uroce_service service; /* QP */
	struct uroce_endpoint local;
	uint64_t next_wr;           /* QP, SRQ: wr_id of the next one */
};

struct objects {
	struct object v[OBJECT_KINDS][OBJECTS_MAX];
};

/* The object of a number; NULL after a line on standard error. */
struct object *objects_get(struct objects *o, enum object_kind kind, uint64_t number);
/* A free place; NULL after a line on standard error. */
struct object *objects_place(struct objects *o, enum object_kind kind);
unsigned objects_number(const struct objects *o, enum object_kind kind, const struct object *object);
/* 0, or a negative errno after a line on standard error: something still uses it. */
int objects_destroy(struct objects *o, enum object_kind kind, uint64_t number);
const char *objects_kind_name(enum object_kind kind);
/* All that are left. */
void objects_free(struct objects *o);

#endif

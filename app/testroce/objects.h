/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects made by hand at the prompt, each known by its kind and a small number. What is left at the end goes with its port (uroce_close). */
#ifndef TESTROCE_OBJECTS_H
#define TESTROCE_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uroce.h"

#define OBJECTS_MAX 64u /* of a kind */

enum object_kind { OBJECT_PD, OBJECT_MR, OBJECT_CQ, OBJECT_SRQ, OBJECT_MW, OBJECT_AH, OBJECT_QP, OBJECT_KINDS };

struct object {
	bool is_there;
	unsigned port;
	struct uroce_context *ctx;
	unsigned of, with;          /* MR, SRQ, MW, AH, QP: number of the PD; QP: of the CQ */
	union {
		void *handle;
		struct uroce_pd *pd;
		struct uroce_mr *mr;
		struct uroce_cq *cq;
		struct uroce_srq *srq;
		struct uroce_mw *mw;
		struct uroce_ah *ah;
		struct uroce_qp *qp;
	};
	uint8_t *memory;            /* MR; NULL: it is for REG_MR */
	size_t bytes;
	uint32_t key;               /* MW, MR without memory: the one that was posted last, */
	uint64_t base;              /* and where what it opens begins */
	uint32_t type;              /* MW */
	struct uroce_gid gid;       /* AH */
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
/* Puts an object that was made into its place and says its number; err: how making it went, which is returned. */
int objects_put(struct objects *o, enum object_kind kind, struct object *at, const struct object *made, int err);
/* Calls show for the object of a number, or with NULL for all that there are. */
int objects_show(struct objects *o, enum object_kind kind, void (*show)(unsigned i, const struct object *object), const uint64_t *number);
/* 0, or a negative errno after a line on standard error: something still uses it. */
int objects_destroy(struct objects *o, enum object_kind kind, uint64_t number);
const char *objects_kind_name(enum object_kind kind);

#endif

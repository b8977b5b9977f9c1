/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests' peer needs of an RDMA stack: one device, one QP at a time with or without an SRQ, over memory that the peer owns. Two files implement it, stack_uroce.c and stack_verbs.c, so that both ends of a
 * test are the same program. Numbers of statuses, access rights and states are those of <infiniband/verbs.h>, which uroce.h shares. Errors are negative errnos. */
#ifndef INTEROP_STACK_H
#define INTEROP_STACK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct stack;

enum stack_service { STACK_RC, STACK_UC, STACK_UD, STACK_SERVICES };
enum stack_op { STACK_SEND, STACK_SEND_IMM, STACK_WRITE, STACK_WRITE_IMM, STACK_READ, STACK_CAS, STACK_FADD, STACK_ATOMIC_WRITE, STACK_FLUSH, STACK_SEND_INV, STACK_OPS };

struct stack_plan {
	enum stack_service service;
	bool has_srq; /* where receives go; of the same depth */
	uint8_t *memory;
	uint64_t bytes;
	uint32_t gid_index;
	uint32_t access; /* what the peer may do on the QP */
	uint32_t rights; /* and to the memory */
	uint32_t depth;  /* of the send queue, and of the receive queue */
	uint32_t qkey;   /* UD: the QP's own */
};

/* What the other end has to know. */
struct stack_card {
	uint32_t qpn;
	uint32_t rkey;    /* of the memory, in the QP's PD */
	uint32_t foreign; /* another key of the same memory, in another PD */
	uint8_t gid[16];
};

/* UD: only own_psn is looked at; where datagrams go says struct stack_aim. */
struct stack_path {
	uint8_t gid[16]; /* the peer's */
	uint32_t qpn, psn, own_psn, mtu;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, max_rd_atomic, max_dest_rd_atomic;
};

/* Where the datagrams of a UD QP go from now on. */
struct stack_aim {
	uint8_t gid[16];
	uint32_t qpn, qkey;
};

struct stack_wr {
	enum stack_op op;
	uint64_t wr_id;
	uint64_t at; /* offset in the memory */
	uint32_t len; /* FLUSH: of the range at remote_addr */
	uint64_t remote_addr;
	uint32_t rkey; /* SEND_INV: the one to invalidate */
	uint32_t imm;
	uint64_t compare_add, swap;
};

struct stack_wc {
	uint64_t wr_id;
	uint32_t status, len, src_qpn;
	uint32_t imm; /* or the key that was invalidated */
	bool has_imm, has_grh, has_inv;
};

extern const char stack_name[];
int stack_open(struct stack **out, const char *device);
/* -ENOENT: no GID there. */
int stack_gid(struct stack *s, uint32_t index, uint8_t gid[16]);
int stack_create(struct stack *s, const struct stack_plan *plan, struct stack_card *card);
void stack_destroy(struct stack *s);
int stack_connect(struct stack *s, const struct stack_path *path);
int stack_aim(struct stack *s, const struct stack_aim *aim);
/* UD: whether datagrams to a multicast group come to the QP. */
int stack_join(struct stack *s, const uint8_t group[16], bool is_in);
/* -EOPNOTSUPP: the stack has no such operation. */
int stack_post_send(struct stack *s, const struct stack_wr *wr);
int stack_post_recv(struct stack *s, uint64_t wr_id, uint64_t at, uint32_t len);
/* Posts the bind of a window, which is made at the first one, for remote read and write; type 1 or 2. *rkey opens it once the WR has completed. */
int stack_bind(struct stack *s, uint64_t wr_id, int type, uint64_t at, uint64_t len, uint32_t *rkey);
/* Posts a LOCAL_INV of the window of type 2. */
int stack_unbind(struct stack *s, uint64_t wr_id);
/* How many came, 0 to n. */
int stack_poll(struct stack *s, struct stack_wc *wc, unsigned n);
/* The QP's state, or a negative errno. */
int stack_state(struct stack *s);
/* Writes " name=value" for everything the stack counts of the QP. */
void stack_counters(struct stack *s, FILE *out);
/* Why the QP failed, in its own words; "" when it does not say. */
void stack_why(struct stack *s, char *text, size_t room);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* A traffic mode: what the client does, what the server does, and what both have to be made of. A file each; the table of them is mode.c. All but begin and end, which are the prompt's, is called by the driver's thread, and never waits. */
#ifndef TESTROCE_MODE_H
#define TESTROCE_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include "uroce.h"

struct end;
struct lane;

/* What one end does. Each but the last returns 0, or -EIO after end_fail; NULL: nothing. */
struct role {
	/* Once, when both ends are connected; the server's before the client's. */
	int (*begin)(struct end *e);
	/* Again and again while traffic is wanted: posts what there is room for. */
	int (*step)(struct end *e);
	/* Completions: of a send WR, and of a receive; slot: as it was posted. */
	int (*on_sent)(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc);
	int (*on_received)(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc);
	/* Whenever no more is wanted and everything has completed: how many WRs it has posted once more; 0 at last. */
	int (*finish)(struct end *e);
	/* Frees what begin has made for a lane, whose QP is gone. */
	void (*end)(struct lane *l);
};

struct mode {
	const char *name, *help;
	enum uroce_service service;
	enum uroce_opcode opcode;
	bool is_receiving;       /* the server posts receives */
	bool is_answering;       /* and sends, so that the client does, too */
	bool has_srq;            /* its receives come from one */
	bool has_many_clients;   /* each of the client's QPs has a context of its own */
	bool may_lose;           /* what is lost is counted and no error */
	bool is_multicast;       /* the server's QPs are all in one group, which the client's first one sends to */
	uint32_t wrs;            /* send WRs of one message, at most */
	uint32_t most_depth;     /* 0: any */
	uint32_t least_qps;      /* unless more are set */
	uint64_t fixed_size;     /* 0: any */
	uint32_t state_bytes;    /* of the mode's own for each QP, zeroed: struct lane.state */
	struct role client, server;
};

/* The i-th one, NULL after the last; and by name, or NULL. */
const struct mode *mode_at(unsigned i);
const struct mode *mode_find(const char *name);

#define MODE_NAMES "send, send-imm, write, write-imm, read, atomic, uc, ud, multicast, srq, window, echo, incast or mixed"

extern const struct mode mode_send, mode_send_imm, mode_write, mode_write_imm, mode_read, mode_atomic, mode_uc, mode_ud, mode_multicast, mode_srq, mode_window, mode_echo, mode_incast, mode_mixed;

#endif

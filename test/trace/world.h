/* SPDX-License-Identifier: BSD-3-Clause */
/* The world of a trace: one core with one QP of the client library on it, memory, virtual time, and a wire whose other end is the script. Nothing leaves the core unless the script looks: packets are
 * pulled one at a time, so that a script can act between two packets of one message. */
#ifndef UROCE_TRACE_WORLD_H
#define UROCE_TRACE_WORLD_H

#include "core.h"
#include "script.h"
#include "uroce.h"

#define MEMORY_BYTES (1u << 20)
#define MEMORY_VA 0x100000u /* what its first byte is called in WRs and requests */
#define PEER_QPN 0x777u
#define FRAME_BYTES 4352u
#define BURST_MAX 64u

#define QKEY 0x11223344u      /* a UD QP's, unless a script says otherwise */

/* Where datagrams can be sent; `foreign` is of another PD. */
enum { AH_PEER, AH_SELF, AH_FOREIGN, AH_COUNT };

#define ACCESS_ALL (UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC | UROCE_ACCESS_FLUSH_GLOBAL)

/* All name the same memory. */
enum { MR_MAIN, MR_LOCAL, MR_READONLY, MR_FOREIGN, MR_COUNT };

struct world {
	uint64_t now;
	uint64_t event_at;          /* when the event before happened */
	uint64_t window;
	struct core *core;
	struct uroce_context *ctx;
	struct uroce_pd *pd, *foreign_pd;
	struct uroce_cq *send_cq, *recv_cq;
	struct uroce_srq *srq; /* or NULL */
	struct uroce_qp *qp;
	enum uroce_service service;
	bool is_ip6;
	struct uroce_ah *ah[AH_COUNT]; /* UD */
	uint8_t last_ip[40];        /* IP header of the packet that the script sent last */
	uint32_t qpn;               /* kept when the QP is gone */
	struct uroce_mr *mr[MR_COUNT];
	uint32_t lkey[MR_COUNT], rkey[MR_COUNT]; /* kept when the MR is gone */
	struct uroce_mw *mw, *mw_1; /* of types 2 and 1 */
	struct uroce_mr *fast;      /* for REG_MR */
	uint32_t mw_key, fast_key;  /* that `window` and `fast` stand for */
	uint8_t *memory;
	enum drop last_drop;        /* of the packet that the script sent last */
	uint8_t frame[FRAME_BYTES]; /* pulled last */
	uint8_t burst[BURST_MAX][FRAME_BYTES];
	uint32_t burst_len[BURST_MAX];
	unsigned burst_n;
};

struct world *world_new(void);
/* Prints the packets that passed last. */
void world_show(void);
void world_free(struct world *w);
/* Core, context, memory and QP, as the words of a `qp` line say, up to its state. */
void world_open(struct world *w, struct line *l);
/* 0 when the core has nothing to send now. */
uint32_t world_pull(struct world *w);
/* Lets time pass until then; a packet that comes meanwhile is not what the script says. */
void world_run(struct world *w, uint64_t until_ns);
/* Lets time pass until something is to be sent, at most until then. Length of the frame, 0: nothing came. */
uint32_t world_wait(struct world *w, uint64_t until_ns);
/* One step of that: to the core's next deadline. */
uint32_t world_step(struct world *w, uint64_t until_ns);
/* Hands the packets of a burst over. */
void world_flush(struct world *w);
/* What memory holds at first. */
static inline uint8_t pattern_at(uint32_t offset)
{
	return (uint8_t)(offset * 7 + (offset >> 8) * 13 + 1);
}
/* By the name in a script: "main", "local", "readonly", "foreign"; "window", "fast", with "+1" and so on other low bits of theirs; "one", "old" of a window of type 1; or a number. */
uint32_t world_key(const struct world *w, const char *name, bool is_remote);
int world_mr(const char *name);
/* The address of the core (0) or of its peer (1), as text. */
const char *world_address(const struct world *w, unsigned which);
/* By the name in a script: "peer", "self", "foreign", "none". */
struct uroce_ah **world_ah(struct world *w, const char *name);
enum uroce_qp_state world_state(const char *name);
/* "@0x100": that byte of memory; else a number. */
uint64_t world_va(const char *text);
/* Everything a `<` line says, as a frame in the burst. trace_packet.c */
void packet_inject(struct world *w, struct line *l);
/* Whether w->frame is what a `>` line says; fails when not. trace_packet.c */
void packet_match(struct world *w, struct line *l, uint32_t len);

#endif

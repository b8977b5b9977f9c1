/* SPDX-License-Identifier: BSD-3-Clause */
/* What a link does to frames, as text. A specification is a list of items separated by "/", an item is a name and values separated by ":"; there is neither a comma nor a space in it, so that it can be
 * a value in a device string.
 *
 *     drop:P                  loses a frame with probability P
 *     dup:P                   delivers it twice
 *     reorder:P[:N[:TIME]]    holds it back until 1..N later frames have passed it, at most TIME (default 4 and 100us)
 *     delay:TIME[:JITTER]     delivers every frame TIME to TIME + JITTER later; the order stays
 *     corrupt:P[:BITS]        flips 1 bit, or BITS (1..3), behind the UDP header of a RoCE frame, where the ICRC surely finds it
 *     ce:P                    marks it as having met congestion (RFC 3168), whether or not its sender is ECN-capable; checksum and ICRC stay right
 *     mask:BITS[:repeat]      bit i loses the i-th RoCE frame, of the first 64 or of every 64
 *     rule:ACTION@NTH[+EVERY]:OPCODE[:qpn=N][:psn=N[-N]]
 *                             does ACTION (drop, dup, reorder, corrupt, ce) to the NTH RoCE frame that matches, and then to every EVERY-th; may be repeated, up to 32 rules. OPCODE: as the specification spells it, with
 *                             underscores (RC_SEND_ONLY), a beginning with a star (RC_RDMA_READ*), or ANY
 *     limit:N                 most frames held and delayed at a time (default 1024); further ones are lost
 *     seed:N                  what chance follows from (default 1)
 *
 * P is 1%, 0.1% or a fraction, 0.001. TIME has a unit: ns, us, ms or s. Numbers are decimal or 0x.... Example: drop:1%/reorder:2%:4/delay:20us:5us/seed:42/rule:drop@3:RC_SEND_ONLY */
#ifndef UROCE_FAULT_SPEC_H
#define UROCE_FAULT_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "psn.h"

enum fault_action { FAULT_DROP, FAULT_DUP, FAULT_REORDER, FAULT_CORRUPT, FAULT_CE, FAULT_ACTIONS };

#define FAULT_RULES_MAX 32u
#define FAULT_QPN_ANY UINT32_MAX

struct fault_rule {
	enum fault_action action;
	uint64_t nth, every;      /* nth counts from 1; every 0: once */
	uint64_t opcodes[4];      /* bit set by BTH opcode byte */
	uint32_t qpn;             /* destination; FAULT_QPN_ANY */
	struct psn first;
	uint32_t psns;            /* from first on; 0: any */
};

struct fault_spec {
	double chance[FAULT_ACTIONS]; /* 0 to 1 */
	uint32_t reorder_frames;
	uint64_t reorder_ns, delay_ns, jitter_ns;
	uint32_t corrupt_bits;
	uint64_t mask;
	bool is_mask_repeated;
	uint32_t limit;
	uint64_t seed;
	struct fault_rule rule[FAULT_RULES_MAX];
	unsigned rules;
};

/* 0; -EINVAL with one line in why (len bytes, always ended) that says what was wrong and what would be right. */
int fault_spec_parse(const char *text, struct fault_spec *out, char *why, uint32_t len);

#endif

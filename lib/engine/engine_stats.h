/* SPDX-License-Identifier: BSD-3-Clause */
/* What an engine's loop counts. */
#ifndef UROCE_ENGINE_STATS_H
#define UROCE_ENGINE_STATS_H

#include <stdint.h>

struct engine_stats {
	uint64_t rounds, idle_rounds;
	uint64_t rx_bursts, rx_frames;     /* bursts: that brought at least one frame */
	uint64_t rx_unusable;              /* frames in several segments that did not fit one */
	uint64_t tx_bursts, tx_frames;
	uint64_t tx_partial;               /* bursts that the port, or another core, took only in part: backpressure */
	uint64_t tx_dropped;               /* frames that the port has not taken for so long that it must be down */
	uint64_t tx_no_mbuf;               /* rounds in which the pool was empty */
	/* Several cores: frames given to another one (received on the wrong queue, copies of address packets, and to QPs there), got from another, and received ones that were lost because its ring was full or no mbuf was left for a copy. */
	uint64_t handed_over_tx, handed_over_rx, handed_over_dropped;
	uint64_t sleeps, slept_ns;
	uint64_t longest_round_ns;         /* poll core only, without sleep */
	uint64_t age_ns;
};

#endif

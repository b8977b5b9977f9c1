/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends with QPs on every core, each connected to one of every core of the other end. As with sides, a failure ends the process. */
#ifndef UROCE_TEST_MESH_H
#define UROCE_TEST_MESH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "side.h"

#define MESH_PAIRS_MAX 16u
#define MESH_LEN 50000u
#define MESH_UPPER (SIDE_BYTES / 2)

/* QP k of one end is connected to QP mesh_partner(k) of the other. Contexts are spread over the cores in turn, so they are on cores k % n and k / n % n: every combination in each n * n pairs. */
struct mesh {
	unsigned cores, pairs;
	struct side a[MESH_PAIRS_MAX], b[MESH_PAIRS_MAX];
};

unsigned mesh_partner(const struct mesh *m, unsigned k);
/* cores and pairs are set. */
void mesh_open_end(const struct mesh *m, struct side *end, const char *device);
void mesh_close_end(const struct mesh *m, struct side *end);
/* More patient than side_connect: there are more threads here than CPUs. */
void mesh_connect_side(struct side *s, const struct side_card *remote);
void mesh_open(struct mesh *m, unsigned cores, unsigned pairs, const char *device_a, const char *device_b);

/* All pairs at once: a sends and then reads, b writes; all is checked. */
void mesh_exchange(struct mesh *m, uint32_t seed);
/* All pairs at once, both ways: what is in the lower half goes into the other one's upper half. */
void mesh_post_writes(struct mesh *m, uint32_t len, uint32_t seed);
void mesh_wait_for_writes(struct mesh *m, uint32_t len, uint32_t seed);

/* Of all cores: what was handed over, and backpressure. */
struct engine_stats mesh_sum_stats(struct engine *e);
/* Some frames were, and none was lost. */
void mesh_check_handed_over(struct engine *e);
/* Nothing was dropped that tells of frames that are lost, wrong or on the wrong core. */
void mesh_check_drops(const struct mesh *m, const struct side *end);

/* A core that does nothing until it is let go. */
struct hold {
	struct mail mail;
	struct engine_core *core;
	_Atomic bool is_held, may_go;
	pthread_t thread;
};
void hold_core(struct hold *h, struct engine_core *core);
void hold_let_go(struct hold *h);

#endif

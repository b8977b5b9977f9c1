/* SPDX-License-Identifier: BSD-3-Clause */
/* One side of an RC connection for the system tests: an engine, a client on it, one QP with one registered buffer. Any failure ends the process with a line that names the place, so a side is used in a child
 * process (side_child), which also gives each test an EAL of its own. */
#ifndef UROCE_TEST_SIDE_H
#define UROCE_TEST_SIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core.h"
#include "engine.h"
#include "uroce.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);           \
			fflush(stdout);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#define SIDE_BYTES (4u << 20)
#define SIDE_DEPTH 256u

struct side {
	struct uroce_context *ctx;
	struct engine *engine;
	struct engine_core *core;
	bool is_inline;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_qp *qp;
	struct uroce_mr *mr;
	uint8_t *buffer; /* SIDE_BYTES */
	struct uroce_endpoint endpoint;
};

/* What a side tells the other one. */
struct side_card {
	struct uroce_endpoint endpoint;
	uint64_t addr;
	uint32_t rkey;
};

/* Opens a device over a session of the engine; 0 or a negative errno. Log lines go to last_line as well as to standard error. */
int side_open_context(const char *device, struct uroce_context **ctx, struct engine **engine);
const char *side_last_line(void);
/* Opening it fails with err, and the last line of the log says the word; else this process ends with 1. */
void side_is_refused(const char *device, int err, const char *word);

void side_open(struct side *s, const char *device);
void side_connect(struct side *s, const struct side_card *remote, uint32_t path_mtu);
struct side_card side_card(const struct side *s);
void side_close(struct side *s);

/* Drives inline engines (either may be NULL). */
void side_poll(struct side *a, struct side *b);
/* Waits for one completion of a, which must be a success with that wr_id; b is driven too. */
struct uroce_wc side_wait(struct side *a, struct side *b, uint64_t wr_id);
void side_post_recv(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t len);
void side_post_send(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t len);
void side_post_write(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t len, const struct side_card *remote, uint32_t remote_offset);
/* A pattern that depends on seed and place. */
void side_fill(struct side *s, uint32_t offset, uint32_t len, uint32_t seed);
void side_check(const struct side *s, uint32_t offset, uint32_t len, uint32_t seed);
uint64_t side_drops(const struct side *s, enum drop why);

/* Runs body in a child process; its exit status (0: fine, 77: cannot run here), or 128 + signal. A child that hangs dies by alarm. */
int side_child(void (*body)(void *arg), void *arg);
/* Two children at once, connected by a stream socket each. */
int side_children(void (*a)(int fd, void *arg), void (*b)(int fd, void *arg), void *arg);
/* Sends ours, takes theirs. */
void side_exchange(int fd, const void *ours, void *theirs, size_t len);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with one UD QP, for the system tests: of an engine in this process ("embedded:", "inline:") or of a daemon ("unix:"). Any failure ends the process with a line, as with sides. */
#ifndef UROCE_TEST_TALKER_H
#define UROCE_TEST_TALKER_H

#include "side.h"

#define TALKER_RECEIVES 64u
#define TALKER_QKEY 0x11u

struct talker {
	struct uroce_context *ctx;
	struct engine *engine; /* NULL with a daemon */
	bool is_inline;
	struct uroce_pd *pd;
	struct uroce_cq *send_cq, *recv_cq;
	struct uroce_qp *qp;
	struct uroce_mr *mr;
	uint8_t *buffer;
	uint32_t qpn;
	uint32_t posted; /* receives */
};

/* In RTS, with TALKER_RECEIVES receives posted. */
void talker_open(struct talker *t, const char *device, bool block_own_multicast);
void talker_close(struct talker *t);
/* By text: "239.1.2.3". */
struct uroce_gid talker_gid(const char *text);
int talker_attach(struct talker *t, const char *group);
int talker_detach(struct talker *t, const char *group);
/* From the first GID of its family, to a host or group. */
struct uroce_ah *talker_ah(struct talker *t, const char *to);
/* Waits until it is sent. */
void talker_send(struct talker *t, const struct uroce_ah *ah, uint32_t qpn, const char *text);
/* The next datagram that comes must be this one; its receive is posted again. The sender's QP number. */
uint32_t talker_hear(struct talker *t, const char *text);
/* The same, if one comes within ms; false: none did. */
bool talker_listen(struct talker *t, const char *text, unsigned ms);
/* Of the core that it is on; with an engine in this process. */
struct engine_core *talker_core(const struct talker *t);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures of other stacks: the packets of the two sides of a reliable connection, or those of one flow of UC and UD. For tests that take the place of a side. */
#ifndef UROCE_GOLDEN_CAPTURE_H
#define UROCE_GOLDEN_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "packet.h"

struct golden_frame {
	uint8_t *bytes;
	uint32_t len;
	uint64_t time_ns; /* since the first one */
	unsigned side;    /* who sent it: 0, the one that sent the first packet, or 1 */
	bool is_lost;     /* the capture has it, but it was dropped before the other side saw it */
	struct packet p;
};

struct golden {
	struct golden_frame *frame;
	unsigned frames;
	uint32_t mtu;
	const char *path;
	bool is_borrowed; /* the bytes belong to another struct golden */
	bool is_msn_odd;  /* its MSNs are not those of the specification */
	bool is_wild;     /* not made for tests: may begin in the middle of a connection, and NICs acknowledge what does not ask for it, or several packets at once */
};

/* Services, as bits. */
#define GOLDEN_RELIABLE (1u << SERVICE_RC)
#define GOLDEN_UNRELIABLE (1u << SERVICE_UC | 1u << SERVICE_UD)

/* Takes the packets of those services; not what goes to QP 1. NULL, or why the file cannot be used. */
const char *golden_load(struct golden *all, const char *path, unsigned services);
/* Those of one connection in it; NAME.p1 and NAME.p2 beside the file, where they are, say what was dropped on its way to side 0 and side 1. false: there are fewer. The bytes stay all's. */
bool golden_pick(struct golden *g, const struct golden *all, unsigned index);
/* Those to one QP from one address. */
bool golden_pick_flow(struct golden *g, const struct golden *all, unsigned index);
void golden_free(struct golden *g);
/* PSNs that a request takes: responses of a READ, else 1. */
uint32_t golden_psns(const struct golden *g, const struct packet *p);
/* Whether a request of a side begins before the end of what the side had sent by then. */
bool golden_is_repeated(const struct golden *g, unsigned frame);

/* A frame's receiver, key and MSN as another one would have them; the ICRC follows. */
void golden_set_qpn(uint8_t *frame, const struct packet *p, uint32_t qpn);
void golden_set_rkey(uint8_t *frame, const struct packet *p, uint32_t rkey);
void golden_ask_ack(uint8_t *frame, const struct packet *p);
void golden_set_msn(uint8_t *frame, const struct packet *p, uint32_t msn);
void golden_seal(uint8_t *frame, const struct packet *p);

/* NULL when both frames are the same in everything that is not free, else the name of what differs. */
const char *golden_compare(const struct packet *ours, const struct packet *theirs);

#endif

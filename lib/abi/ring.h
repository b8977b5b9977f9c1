/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared-memory contract, part 1: rings. A ring is one control block of two cache lines and an array of slots, somewhere in an arena; both
 * are named by (arena, offset). Single producer, single consumer, power-of-two slots, free-running 32-bit indices.
 *
 *            line 0 (written by the client)     line 1 (written by the engine)
 *   SQ, RQ   tail: WQEs posted                  head: slots free again; looking
 *   CQ       head: CQEs taken; arm word         tail: CQEs written (a client needs it only when the engine is gone: a CQE carries its phase); resizes
 *
 * Nobody trusts the other side's line: an index is read once, bounded, and used.
 *
 * An engine completes a WR in this order: the CQE's body, the CQ's tail, the head of the SQ or RQ (which so moves when a WR completes, not when the engine takes it), the CQE's phase. So wherever it
 * dies, a WR below its queue's head either needs no CQE, or has one, or has the one that the CQ's tail counts already and whose phase is still the old one; and no slot is used again before.
 *
 * An SRQ is an RQ but for two things: a WQE's slot is free again when the engine has taken it, since its QPs complete theirs in any order; and nobody rings for it. */
#ifndef UROCE_ABI_RING_H
#define UROCE_ABI_RING_H

#include <stdatomic.h>
#include <stdint.h>

#define ABI_CACHE_LINE 64

struct abi_ring {
	_Alignas(ABI_CACHE_LINE) _Atomic uint32_t client_index; /* SQ, RQ: tail; CQ: head */
	_Atomic uint32_t arm;                                    /* CQ: enum abi_arm, set by the client, taken by the engine with an exchange */
	_Alignas(ABI_CACHE_LINE) _Atomic uint32_t engine_index;  /* SQ, RQ: head; CQ: tail */
	_Atomic uint32_t looking;                                /* SQ, RQ: 1 while the engine looks by itself: no doorbell is needed */
	_Atomic uint32_t resizes;                                /* CQ: how often the engine has gone on in other slots (ABI_CQ_SWITCH), so that a client knows it of an engine that died meanwhile */
};
_Static_assert(sizeof(struct abi_ring) == 128, "layout");

enum abi_arm { ABI_ARM_NONE = 0, ABI_ARM_SOLICITED = 1, ABI_ARM_ANY = 2 };

/* Where a ring lies. Offsets in bytes from the start of the arena. */
struct abi_ring_place {
	uint32_t arena;
	uint32_t slots;      /* power of two */
	uint32_t slot_bytes; /* multiple of 64 */
	uint32_t reserved;
	uint64_t control_offset; /* struct abi_ring */
	uint64_t slots_offset;
};
_Static_assert(sizeof(struct abi_ring_place) == 32, "layout");

/* Doorbells of one client: queue n is bit n%64 of level 1 word n/64, whose own bit is in level 0. The client sets level 1, then level 0; the engine
 * takes level 0 words with an exchange, then level 1 words. One cache line to look at when nobody rang. */
#define ABI_DOORBELL_TOP 8u
#define ABI_DOORBELLS (ABI_DOORBELL_TOP * 64u * 64u)
struct abi_doorbells {
	_Alignas(ABI_CACHE_LINE) _Atomic uint64_t top[ABI_DOORBELL_TOP];
	_Alignas(ABI_CACHE_LINE) _Atomic uint64_t word[ABI_DOORBELL_TOP * 64u];
};
_Static_assert(sizeof(struct abi_doorbells) == 64 + 4096, "layout");

/* One page per client, written by the engine. A session of the client's that lost its daemon sets `dead` itself, so that all of the program sees it. */
struct abi_engine_page {
	_Alignas(ABI_CACHE_LINE) _Atomic uint32_t sleeping; /* 1: after ringing, wake the engine */
	_Atomic uint32_t dead;                              /* 1: the engine is gone; every call is -ENODEV */
};
_Static_assert(sizeof(struct abi_engine_page) == 64, "layout");

#endif

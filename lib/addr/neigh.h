/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside addr/: the neighbour table: which MAC a next hop has, and the asking that finds it out (RFC 826, RFC 4861, 7.2 and 7.3). */
#ifndef UROCE_NEIGH_H
#define UROCE_NEIGH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uthash.h>

#include "addr.h"
#include "slab.h"

enum neigh_state {
	NEIGH_UNKNOWN, /* nothing known, nobody asks: only between creation and first use */
	NEIGH_ASKING,  /* questions are out or wait to be sent */
	NEIGH_KNOWN,
	NEIGH_FAILED,  /* the last round of questions had no answer */
};

struct neigh_key {
	struct gid gid;
	uint16_t vlan;
	uint16_t zero[3];
};

struct neigh {
	struct neigh_key key;
	struct neigh_table *table;
	uint8_t state; /* enum neigh_state */
	uint8_t queue; /* enum neigh_queue: the list that `link` is on */
	uint8_t tries; /* questions of this round that were sent */
	uint8_t failed_rounds;
	uint8_t mac[6];
	bool is_static;
	bool is_refreshing; /* KNOWN, and a round of questions is under way */
	bool is_due;        /* FAILED, and to be asked as soon as there is room */
	uint32_t users;
	struct ah *ahs;     /* its users; written by ah.c */
	uint64_t check_ns;  /* KNOWN: when it is to be asked again, if in use */
	uint64_t failed_ns;
	struct timer timer;
	TAILQ_ENTRY(neigh) link;
	UT_hash_handle hh;
};

enum neigh_queue { NEIGH_ON_NONE, NEIGH_ON_IDLE, NEIGH_ON_QUESTIONS };
TAILQ_HEAD(neigh_list, neigh);

struct neigh_table {
	const struct addr_config *config; /* no zeros left in it */
	struct addr_stats *stats;
	struct wheel *wheel;
	struct neigh *by_key;
	struct neigh_list idle;      /* without users, least recently used first */
	struct neigh_list questions; /* waiting to be asked */
	struct slab slab;
	uint32_t count, pending;     /* pending: ASKING */
	uint64_t now_ns;             /* of the last call or timer that named it, for those that do not */
	void (*on_changed)(struct neigh *n, uint64_t now_ns); /* state or MAC; may drop any user; the table touches nothing afterwards */
	bool (*has_progress)(struct neigh *n); /* whether what its users sent since the last call has arrived */
};

/* What a message is worth. */
enum neigh_learn {
	LEARN_CREATE = 1 << 0,   /* spoke to us: worth a new entry */
	LEARN_OVERRIDE = 1 << 1, /* may replace a MAC that is known */
	LEARN_ANSWER = 1 << 2,   /* says that it answers us */
	LEARN_TRUSTED = 1 << 3,  /* from the operator or the kernel: right as it is */
	LEARN_STATIC = 1 << 4,
};

/* config and stats stay the caller's and must live as long. */
void neigh_table_init(struct neigh_table *t, const struct addr_config *config, struct addr_stats *stats, struct wheel *wheel,
		      void (*on_changed)(struct neigh *n, uint64_t now_ns), bool (*has_progress)(struct neigh *n));
/* Forgets everything, users too. */
void neigh_table_free(struct neigh_table *t);

struct neigh *neigh_find(const struct neigh_table *t, const struct gid *gid, uint16_t vlan);
/* Adds a user, creating the neighbour and asking for it when that is needed. No hook is called. -ENOBUFS: table full of neighbours
 * in use, or too many pending. */
int neigh_use(struct neigh_table *t, const struct gid *gid, uint16_t vlan, uint64_t now_ns, struct neigh **out);
/* A user has something for a neighbour that did not answer: asked again if that was long enough ago. Whether it is being asked. */
bool neigh_ask_again(struct neigh *n, uint64_t now_ns);
/* Takes a user away. */
void neigh_drop(struct neigh *n);
/* 0; -ENOENT: no entry, and the message is not worth one; -ENOBUFS: full; -EAGAIN: not taken (a static entry, or no override). */
int neigh_learn(struct neigh_table *t, const struct gid *gid, uint16_t vlan, const uint8_t mac[6], unsigned how, uint64_t now_ns);
/* Somebody who knows says that it cannot be reached. */
void neigh_fail(struct neigh *n, uint64_t now_ns);
/* The next one to be asked for, NULL when none waits. It is counted as asked. */
struct neigh *neigh_next_question(struct neigh_table *t, uint64_t now_ns);
/* Whether this question goes to the MAC that is known, not to all. */
bool neigh_is_asked_alone(const struct neigh *n);

#endif

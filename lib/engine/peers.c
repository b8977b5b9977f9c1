/* SPDX-License-Identifier: BSD-3-Clause */
/* Peer QPs by (GID, QPN), and holds on them by QP. Invariant: a peer is kept while at least one hold points to it, and all of those are its user's. */
#define HASH_NONFATAL_OOM 1
#include "peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

struct peer {
	struct peer_key key;
	uid_t uid;
	uint32_t holds;
	UT_hash_handle hh;
};

struct peer_hold {
	uint32_t qp;
	struct peer *peer; /* NULL: only about to be connected */
	struct peer *next; /* about to be connected to, until peers_settle */
	UT_hash_handle hh;
};

static struct peer *make_peer(struct peers *p, uid_t uid, const struct peer_key *key)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->key = *key;
	peer->uid = uid;
	HASH_ADD(hh, p->by_key, key, sizeof(peer->key), peer);
	if (peer->hh.tbl)
		return peer;
	free(peer);
	return NULL;
}

static void let_go(struct peers *p, struct peer *peer)
{
	if (!peer || --peer->holds)
		return;
	HASH_DELETE(hh, p->by_key, peer);
	free(peer);
}

static struct peer_hold *find_hold(const struct peer_holds *h, uint32_t qp)
{
	struct peer_hold *hold;
	HASH_FIND(hh, h->by_qp, &qp, sizeof(qp), hold);
	return hold;
}

static struct peer_hold *make_hold(struct peer_holds *h, uint32_t qp)
{
	struct peer_hold *hold = calloc(1, sizeof(*hold));
	if (!hold)
		return NULL;
	hold->qp = qp;
	HASH_ADD(hh, h->by_qp, qp, sizeof(hold->qp), hold);
	if (hold->hh.tbl)
		return hold;
	free(hold);
	return NULL;
}

static void drop_hold(struct peer_holds *h, struct peer_hold *hold)
{
	HASH_DELETE(hh, h->by_qp, hold);
	free(hold);
}

int peers_take(struct peers *p, struct peer_holds *h, uint32_t qp, uid_t uid, const struct peer_key *key)
{
	struct peer *peer;
	struct peer_hold *hold = find_hold(h, qp);
	HASH_FIND(hh, p->by_key, key, sizeof(*key), peer);
	if (peer && peer->uid != uid)
		return -EACCES;
	if (!peer)
		peer = make_peer(p, uid, key);
	if (!peer)
		return -ENOMEM;
	peer->holds++;
	if (!hold)
		hold = make_hold(h, qp);
	if (!hold) {
		let_go(p, peer);
		return -ENOMEM;
	}
	hold->next = peer;
	return 0;
}

void peers_settle(struct peers *p, struct peer_holds *h, uint32_t qp, bool is_connected)
{
	struct peer_hold *hold = find_hold(h, qp);
	let_go(p, is_connected ? hold->peer : hold->next);
	if (is_connected)
		hold->peer = hold->next;
	hold->next = NULL;
	if (!hold->peer)
		drop_hold(h, hold);
}

void peers_release(struct peers *p, struct peer_holds *h, uint32_t qp)
{
	struct peer_hold *hold = find_hold(h, qp);
	if (!hold)
		return;
	let_go(p, hold->peer);
	drop_hold(h, hold);
}

void peers_release_all(struct peers *p, struct peer_holds *h)
{
	struct peer_hold *hold, *next;
	HASH_ITER(hh, h->by_qp, hold, next) {
		let_go(p, hold->peer);
		drop_hold(h, hold);
	}
}

bool peers_qpn(const struct peer_holds *h, uint32_t qp, uint32_t *qpn)
{
	const struct peer_hold *hold = find_hold(h, qp);
	if (!hold || !hold->peer)
		return false;
	*qpn = hold->peer->key.qpn;
	return true;
}

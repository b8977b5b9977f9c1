/* SPDX-License-Identifier: BSD-3-Clause */
/* Which user is connected to which QP of a peer. A peer cannot tell our QPs apart (RC packets carry no source QPN), so a second QP connected to the same one could put packets into the first one's stream
 * (NeVerMore, known-bugs N1): only QPs of one user may share a peer QP. For the control thread. */
#ifndef UROCE_PEERS_H
#define UROCE_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct peer;
struct peer_hold;

struct peers {
	struct peer *by_key;
};
/* What the QPs of one client are connected to. */
struct peer_holds {
	struct peer_hold *by_qp;
};
struct peer_key {
	uint8_t gid[16];
	uint32_t qpn;
};

/* A QP (its handle in its client) is about to be connected to key. 0: it may; peers_settle must follow. -EACCES: another user's QP is; -ENOMEM. */
int peers_take(struct peers *p, struct peer_holds *h, uint32_t qp, uid_t uid, const struct peer_key *key);
/* It was (what it was connected to before is let go), or it could not be. */
void peers_settle(struct peers *p, struct peer_holds *h, uint32_t qp, bool is_connected);
/* The QP is connected to nothing any more, or gone. Fine when it never was. */
void peers_release(struct peers *p, struct peer_holds *h, uint32_t qp);
void peers_release_all(struct peers *p, struct peer_holds *h);
/* The QPN that the QP is connected to. */
bool peers_qpn(const struct peer_holds *h, uint32_t qp, uint32_t *qpn);

#endif

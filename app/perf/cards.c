/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns that exchange and its order of events. The client shows its cards, "LID:QPN:PSN:GID" in hexadecimal, 51 characters and a zero byte; the server connects, answers with its own, and the client says "done" and a
 * zero byte; nothing follows. A card of zeroes stands for a QP that an end could have and has not.
 * Invariant: a card goes out in one piece, since some of these programs read only once. */
#include "cards.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "meet.h"

#define CARD_BYTES 52u /* with its zero byte */

static int put_text(struct end *e, const char *text, size_t len)
{
	return send(e->exchange->fd, text, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : end_fail(e, "the peer is gone");
}

/* Drives the engine meanwhile: the peer resolves our address before it answers. */
static int get_text(struct end *e, char *text, size_t len)
{
	uint64_t since_ns = end_now();
	for (size_t have = 0; have < len;) {
		ssize_t n = recv(e->exchange->fd, text + have, len - have, MSG_DONTWAIT);
		if (n > 0)
			have += (size_t)n;
		else if (!n || (errno != EAGAIN && errno != EINTR))
			return end_fail(e, "the peer is gone");
		else if (end_now() - since_ns > MEET_PATIENCE_S * UINT64_C(1000000000))
			return end_fail(e, "the peer has said nothing for %u s", MEET_PATIENCE_S);
		else if (end_pump(e) < 0)
			poll(&(struct pollfd){ .fd = e->exchange->fd, .events = POLLIN }, 1, 100);
	}
	return 0;
}

static int put_card(struct end *e, uint32_t qp)
{
	static const struct uroce_endpoint none;
	const struct uroce_endpoint *local = qp < e->trial.qps ? &e->local[qp] : &none;
	char text[CARD_BYTES], *gid = text + 19;
	snprintf(text, sizeof(text), "0000:%06x:%06x:", local->qpn & 0xffffff, local->psn & 0xffffff);
	for (unsigned i = 0; i < 16; i++)
		snprintf(gid + 2 * i, 3, "%02x", local->gid.raw[i]);
	return put_text(e, text, sizeof(text));
}

static bool read_card(const struct end *e, const char *text, struct uroce_endpoint *remote)
{
	char gid[33];
	unsigned lid;
	*remote = (struct uroce_endpoint){ .mtu = e->trial.mtu, .rd_atomic = 1 };
	if (sscanf(text, "%4x:%6x:%6x:%32[0-9a-f]", &lid, &remote->qpn, &remote->psn, gid) != 4 || strlen(gid) != 32)
		return false;
	for (unsigned i = 0; i < 16; i++)
		if (sscanf(gid + 2 * i, "%2hhx", &remote->gid.raw[i]) != 1)
			return false;
	return true;
}

static int get_card(struct end *e, uint32_t qp)
{
	static const struct uroce_gid none;
	char text[CARD_BYTES + 1] = "";
	struct uroce_endpoint remote;
	bool has_qp = qp < e->trial.qps;
	int err = get_text(e, text, CARD_BYTES);
	if (err)
		return err;
	if (!read_card(e, text, &remote))
		return end_fail(e, "the peer says something else than the program of rdma-core would");
	if ((remote.qpn != 0) != has_qp)
		return end_fail(e, "the peer has %s than %u QPs: both ends have to be given the same number", has_qp ? "fewer" : "more", e->trial.qps);
	if (!has_qp)
		return 0;
	if (!memcmp(&remote.gid, &none, sizeof(none)))
		return end_fail(e, "the peer has no GID: RoCE needs one (its option -g)");
	e->remote[qp] = remote;
	return 0;
}

static int each(struct end *e, uint32_t cards, int (*one)(struct end *e, uint32_t qp))
{
	int err = 0;
	for (uint32_t i = 0; i < cards && !err; i++)
		err = one(e, i);
	return err;
}

int cards_exchange(struct end *e, bool is_client, uint32_t cards)
{
	char done[5] = "done";
	int err = is_client ? each(e, cards, put_card) : 0;
	if (!err)
		err = each(e, cards, get_card);
	if (!err && is_client)
		err = put_text(e, done, sizeof(done));
	if (!err)
		err = end_join(e);
	if (!err && !is_client)
		err = each(e, cards, put_card);
	if (!err && !is_client)
		err = get_text(e, done, sizeof(done));
	exchange_close(e->exchange); /* as those programs do */
	return err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce: SENDs with immediate over one RC queue pair, each posted by itself; the immediate is the mark. Owns the WRs, which are made once. One send of a quarter of the queue is signaled.
 * Invariants: outstanding is what was posted and is not known to be completed; every receive that a message used up is posted again before the queue has run half empty. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"

#define BURST 16u
#define BYTES_UNDER_WAY (UINT64_C(8) << 20)
#define DEPTH_MAX 128u
#define DEPTH_PINGPONG 8u
#define COUNTERS 64u

struct uroce {
	struct uroce_send_wr *send;
	struct uroce_recv_wr *recv;
	struct uroce_sge *send_sge, *recv_sge;
	uint32_t next_send, unsignaled, outstanding;
	uint32_t next_recv, used; /* receives to be posted again, and where */
	struct mark came[BURST];
	unsigned first, count; /* of those that came and were not taken */
	int tx_bytes, rx_bytes; /* numbers of counters */
};

/* What becomes of a frame between the engine and the wire, as the drivers of DPDK 22.11 do it. */
static const struct driver {
	const char *name;
	unsigned tx, rx; /* copies of a frame */
	const char *text;
} drivers[] = {
	{ "net_af_packet", 1, 2, "net_af_packet: one more when sent, into its ring; two more when received, by the kernel into its ring and out of that" },
	{ "net_memif", 1, 1, "net_memif: one more when sent and one when received, into and out of the shared memory" },
	{ "net_tap", 0, 0, "net_tap: its system calls copy, and are counted" },
	{ "net_ring", 0, 0, "net_ring: the driver copies nothing" },
	{ "", 0, 0, "the NIC reads and writes memory itself" },
};

static const struct driver *find_driver(const struct link *l)
{
	const struct driver *d = drivers;
	while (!strstr(l->end->device.name, d->name))
		d++;
	return d;
}

static int fail(struct link *l)
{
	return link_fail(l, "%s", l->end->error[0] ? l->end->error : "the device failed");
}

static struct trial plan(const struct link *l)
{
	bool is_pingpong = l->work == WORK_PINGPONG;
	uint64_t depth = is_pingpong ? DEPTH_PINGPONG : BYTES_UNDER_WAY / l->size;
	return (struct trial){ .op = operation_find("send-imm", 8), .service = UROCE_RC, .test = is_pingpong ? TEST_LATENCY : TEST_STREAM, .size = l->size, .qps = 1,
		.depth = depth > DEPTH_MAX ? DEPTH_MAX : depth < 2 ? 2 : (uint32_t)depth, .batch = 1 };
}

static int post_receives(struct link *l, struct uroce *u)
{
	uint32_t room = l->end->recv_depth - u->next_recv, n = u->used < room ? u->used : room;
	if (n && end_post_recv(l->end, 0, &u->recv[u->next_recv], n))
		return fail(l);
	u->next_recv = n == room ? 0 : u->next_recv + n;
	u->used -= n;
	return 0;
}

static int make_wrs(struct link *l, struct uroce *u)
{
	struct end *e = l->end;
	uint32_t depth = e->trial.depth, recvs = e->recv_depth;
	u->send = calloc(depth, sizeof(*u->send));
	u->send_sge = calloc(depth, sizeof(*u->send_sge));
	u->recv = calloc(recvs, sizeof(*u->recv));
	u->recv_sge = calloc(recvs, sizeof(*u->recv_sge));
	if (!u->send || !u->send_sge || !u->recv || !u->recv_sge)
		return link_fail(l, "no memory");
	for (uint32_t i = 0; i < depth; i++)
		u->send[i] = end_send_wr(e, 0, i, &u->send_sge[i]);
	for (uint32_t i = 0; i < recvs; i++)
		u->recv[i] = end_recv_wr(e, 0, i, &u->recv_sge[i]);
	u->used = recvs;
	return post_receives(l, u);
}

static void find_counters(struct uroce *u)
{
	const char *name;
	for (int i = 0; (name = uroce_qp_counter_name((unsigned)i)); i++) {
		if (!strcmp(name, "tx_bytes"))
			u->tx_bytes = i;
		if (!strcmp(name, "rx_bytes"))
			u->rx_bytes = i;
	}
}

/* Receives are posted before the other end may send. */
static int meet(struct link *l, struct uroce *u)
{
	struct end *e = l->end;
	int err = l->is_client ? 0 : link_say(l, end_pack(e));
	json_t *card = err ? NULL : link_hear(l);
	if (!card)
		return -1;
	err = end_connect(e, card) ? fail(l) : 0;
	json_decref(card);
	if (!err)
		err = make_wrs(l, u);
	if (!err)
		err = l->is_client ? link_say(l, end_pack(e)) : 0;
	return err;
}

static int open_uroce(struct link *l)
{
	struct uroce *u = l->own = calloc(1, sizeof(*u));
	if (!u || !l->end)
		return link_fail(l, "no memory");
	find_counters(u);
	l->end->trial = plan(l);
	int err = end_prepare(l->end) ? fail(l) : meet(l, u);
	l->copying = find_driver(l)->text;
	return err;
}

/* Takes completions, at most as many as there is room for messages. */
static int take(struct link *l, struct uroce *u)
{
	struct uroce_wc wc[BURST];
	int n = end_take(l->end, wc, BURST - u->count, false);
	if (n < 0)
		return fail(l);
	for (int i = 0; i < n; i++) {
		if (!(wc[i].wr_id & END_RECV)) {
			u->outstanding -= (uint32_t)wc[i].wr_id;
			continue;
		}
		uint32_t imm = ntohl(wc[i].imm);
		u->came[(u->first + u->count++) % BURST] = (struct mark){ imm >> 1, imm & 1 };
		if (++u->used >= (l->end->recv_depth + 7) / 8 && post_receives(l, u))
			return -1;
	}
	if (n)
		l->empty = 0;
	return n;
}

static int send_uroce(struct link *l, struct mark m)
{
	struct uroce *u = l->own;
	uint32_t depth = l->end->trial.depth;
	while (u->outstanding == depth) {
		int n = u->count == BURST ? 0 : take(l, u);
		if (n < 0 || (!n && link_wait_for_room(l)))
			return -1;
	}
	struct uroce_send_wr *w = &u->send[u->next_send];
	bool is_signaled = ++u->unsignaled >= (depth + 3) / 4 || m.is_last;
	w->imm = htonl(m.number << 1 | m.is_last);
	w->wr_id = u->unsignaled;
	w->flags = is_signaled ? UROCE_SEND_SIGNALED : 0;
	u->next_send = u->next_send + 1 == depth ? 0 : u->next_send + 1;
	u->outstanding++;
	if (is_signaled)
		u->unsignaled = 0;
	return end_post_send(l->end, 0, w, 1) ? fail(l) : 0;
}

static int receive_uroce(struct link *l, struct mark *m)
{
	struct uroce *u = l->own;
	int n = u->count ? 0 : take(l, u);
	if (n < 0 || !u->count)
		return n < 0 ? n : 0;
	*m = u->came[u->first];
	u->first = (u->first + 1) % BURST;
	u->count--;
	return 1;
}

static int settle_uroce(struct link *l)
{
	struct uroce *u = l->own;
	while (u->outstanding) {
		int n = take(l, u);
		if (n < 0 || (!n && link_wait_for_room(l)))
			return -1;
	}
	return 0;
}

/* The engine copies each byte of a message once into a packet, and once out of one; then come the driver's. Packets between programs of one engine do not get that far. */
static uint64_t copied_uroce(struct link *l)
{
	const struct uroce *u = l->own;
	const struct end *e = l->end;
	const struct driver *d = find_driver(l);
	bool is_inside = !memcmp(&e->local[0].gid, &e->remote[0].gid, sizeof(e->local[0].gid));
	uint64_t value[COUNTERS] = { 0 };
	uroce_qp_counters(e->qp[0], value, COUNTERS);
	return value[u->tx_bytes] * (1 + (is_inside ? 0 : d->tx)) + value[u->rx_bytes] * (1 + (is_inside ? 0 : d->rx));
}

static void close_uroce(struct link *l)
{
	struct uroce *u = l->own;
	if (l->end)
		end_release(l->end);
	if (u) {
		free(u->send);
		free(u->send_sge);
		free(u->recv);
		free(u->recv_sge);
	}
	free(u);
	l->own = NULL;
}

const struct transport link_uroce = { "uroce", "uroce, SENDs over one RC queue pair; receivers ask all the time", (1 << WORKS) - 1, .has_device = true, .is_spinning = true, .open = open_uroce, .send = send_uroce,
	.receive = receive_uroce, .settle = settle_uroce, .copied = copied_uroce, .close = close_uroce };

/* SPDX-License-Identifier: BSD-3-Clause */
/* A host. Owns the core, the receive ring and the sessions' clients. Its turn is the engine's round: receive a burst, run, send a burst; like it, it calls core_rx only when frames came. */
#include "sim_host.h"

#include <errno.h>
#include <stdio.h>

#include "direct_session.h"

#define BURST 32u

struct sim_host {
	struct sim_host_config config;
	struct core_hooks hooks;
	struct core *core;
	uint8_t mac[6];
	struct sim_frame **rx;
	uint32_t rx_head, rx_n;
	uint64_t now_ns, free_at_ns;
	bool is_tx_full;
	uint64_t rx_overflows, events;
};

static int channel_write(void *arg, int write_fd, const void *record, uint32_t len)
{
	struct sim_host *h = arg;
	h->events++;
	return direct_hooks.channel_write(NULL, write_fd, record, len);
}

static void give_up(const struct sim_host *h, const char *what, int err)
{
	fprintf(stderr, "%s: %s: %s\n", h->config.name, what, strerror(-err));
	exit(2);
}

struct uroce_context *sim_host_open(struct sim_host *h, const struct uroce_open_attr *attr)
{
	struct uroce_context *ctx = NULL;
	int err = direct_session_open(h->core, &h->now_ns, attr, &ctx);
	if (err)
		give_up(h, "no context", err);
	return ctx;
}

/* ---- life ---- */

static void add_address(struct sim_host *h)
{
	struct gid gid;
	char text[GID_TEXT_MAX];
	uint32_t index;
	snprintf(text, sizeof(text), h->config.is_ip6 ? "fd00::%u" : "10.0.0.%u", h->config.number + 1u);
	int err = gid_parse(text, &gid);
	if (!err)
		err = addr_gid_add(core_addr(h->core), &gid, VLAN_NONE, h->config.is_ip6 ? 64 : 24, &index);
	if (err)
		give_up(h, "no address", err);
}

struct sim_host *sim_host_new(const struct sim_host_config *config, uint64_t now_ns)
{
	struct sim_host *h = calloc(1, sizeof(*h));
	if (!h)
		abort();
	h->config = *config;
	h->now_ns = now_ns;
	h->rx = calloc(config->rx_frames, sizeof(*h->rx));
	if (!h->rx)
		abort();
	h->hooks = direct_hooks;
	h->hooks.channel_write = channel_write;
	h->hooks.arg = h;
	memcpy(h->mac, (const uint8_t[6]){ 0x02, 0, 0, 0, 0, (uint8_t)(config->number + 1) }, 6);
	struct core_config c = {
		.mode = 0, .addr.mode = ADDR_OWN, .addr.max_neighbours = 64, .addr.ask_interval_ns = 1000000, .max_frame = config->max_frame, .max_qp = 256, .max_cq = 256, .max_mr = 1024,
		.window_packets = config->window_packets, .seed = config->seed, .log = config->log, .hooks = &h->hooks,
	};
	memcpy(c.name, config->name, sizeof(config->name));
	memcpy(c.addr.mac, h->mac, 6);
	int err = core_new(&h->core, &c, now_ns);
	if (err)
		give_up(h, "no core", err);
	add_address(h);
	return h;
}

void sim_host_free(struct sim_host *h)
{
	if (!h)
		return;
	core_free(h->core);
	for (; h->rx_n; h->rx_n--, h->rx_head++)
		sim_frame_free(h->config.pool, h->rx[h->rx_head % h->config.rx_frames]);
	free(h->rx);
	free(h);
}

struct core *sim_host_core(struct sim_host *h)
{
	return h->core;
}

const uint8_t *sim_host_mac(const struct sim_host *h)
{
	return h->mac;
}

uint64_t sim_host_rx_overflows(const struct sim_host *h)
{
	return h->rx_overflows;
}

uint64_t sim_host_events(const struct sim_host *h)
{
	return h->events;
}

void sim_host_set_time(struct sim_host *h, uint64_t now_ns)
{
	h->now_ns = now_ns;
}

/* ---- the loop ---- */

void sim_host_deliver(struct sim_host *h, struct sim_frame *f)
{
	if (h->rx_n == h->config.rx_frames) {
		h->rx_overflows++;
		sim_frame_free(h->config.pool, f);
		return;
	}
	h->rx[(h->rx_head + h->rx_n++) % h->config.rx_frames] = f;
}

uint64_t sim_host_next(struct sim_host *h, uint64_t now_ns)
{
	uint64_t at = core_next(h->core);
	if (at <= now_ns && h->is_tx_full) /* what there is to do may be to send, and that waits for room */
		at = sim_link_room_at(h->config.uplink, now_ns, h->config.tx_frames);
	if (h->rx_n)
		at = 0;
	return at > h->free_at_ns ? at : h->free_at_ns;
}

static void receive(struct sim_host *h, uint64_t now_ns)
{
	struct sim_frame *taken[BURST];
	struct core_frame frames[BURST];
	unsigned n = 0;
	for (; n < BURST && h->rx_n; n++, h->rx_n--) {
		struct sim_frame *f = taken[n] = h->rx[h->rx_head++ % h->config.rx_frames];
		frames[n] = (struct core_frame){ .data = f->b, .len = f->len, .vlan_tci = VLAN_NONE };
	}
	if (!n)
		return;
	core_rx(h->core, now_ns, frames, n);
	while (n)
		sim_frame_free(h->config.pool, taken[--n]);
}

static void transmit(struct sim_host *h, uint64_t now_ns)
{
	struct sim_frame *room[BURST];
	struct core_frame frames[BURST];
	uint32_t backlog = sim_link_backlog(h->config.uplink, now_ns);
	unsigned n = backlog < h->config.tx_frames ? h->config.tx_frames - backlog : 0;
	n = n < BURST ? n : BURST;
	for (unsigned i = 0; i < n; i++) {
		room[i] = sim_frame_new(h->config.pool);
		frames[i] = (struct core_frame){ .data = room[i]->b, .room = SIM_FRAME_ROOM };
	}
	unsigned used = core_tx(h->core, now_ns, frames, n);
	for (unsigned i = 0; i < n; i++) {
		room[i]->len = frames[i].len;
		if (i < used)
			sim_link_send(h->config.uplink, now_ns, room[i]);
		else
			sim_frame_free(h->config.pool, room[i]);
	}
	h->is_tx_full = used == n;
}

void sim_host_turn(struct sim_host *h, uint64_t now_ns)
{
	h->now_ns = now_ns;
	receive(h, now_ns);
	core_run(h->core, now_ns);
	core_scan(h->core);
	transmit(h, now_ns);
	h->free_at_ns = now_ns + h->config.turn_ns;
}

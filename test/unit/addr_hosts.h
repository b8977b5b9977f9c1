/* SPDX-License-Identifier: BSD-3-Clause */
/* Two hosts on one link in virtual time, each a struct addr with a wheel, for the tests of addr/. */
#ifndef UROCE_TEST_ADDR_HOSTS_H
#define UROCE_TEST_ADDR_HOSTS_H

#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "arp.h"
#include "bytes.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

struct host {
	struct addr *a;
	struct wheel *wheel;
	uint8_t mac[6];
	bool is_deaf;       /* takes no frame */
	bool gets_copies;   /* of what came to another core */
	unsigned sent;      /* frames so far */
	uint8_t last[2048]; /* the last of them */
	uint32_t last_len;
};

static uint64_t now; /* virtual; the same for all hosts */

static inline struct gid gid_of(const char *text)
{
	struct gid g;
	assert_int_equal(gid_parse(text, &g), 0);
	return g;
}

static inline void host_init(struct host *h, uint8_t number, struct addr_config c)
{
	const uint8_t mac[6] = { 0x52, 0x54, 0, 0, 0, number };
	memset(h, 0, sizeof(*h));
	memcpy(h->mac, mac, 6);
	memcpy(c.mac, mac, 6);
	h->wheel = wheel_new(now);
	assert_int_equal(addr_new(&h->a, &c, h->wheel, now), 0);
}

static inline void host_free(struct host *h)
{
	addr_free(h->a);
	wheel_free(h->wheel);
}

static inline uint32_t host_add(struct host *h, const char *gid, uint16_t vlan, unsigned prefix_len)
{
	struct gid g = gid_of(gid);
	uint32_t index = UINT32_MAX;
	assert_int_equal(addr_gid_add(h->a, &g, vlan, prefix_len, &index), 0);
	return index;
}

/* What h makes of a frame; frames that are not for it are not taken. The frame is a copy of its own size, so that reading beyond it shows. */
static inline enum drop host_take(struct host *h, const uint8_t *frame, uint32_t len)
{
	struct packet_filter f = { .promiscuous = false };
	struct packet p;
	uint8_t *copy = malloc(len);
	memcpy(f.mac, h->mac, 6);
	memcpy(copy, frame, len);
	enum drop d = packet_parse(&p, copy, len, VLAN_NONE, &f);
	if (d == DROP_NONE && p.kind != PACKET_ROCE)
		d = h->gets_copies ? addr_rx_copy(h->a, now, &p) : addr_rx(h->a, now, &p);
	free(copy);
	return d;
}

/* Sends what waits at h, to `to` unless that is NULL or deaf. Returns the number of frames. */
static inline unsigned host_send(struct host *h, struct host *to)
{
	unsigned n = 0;
	uint32_t len;
	while ((len = addr_tx(h->a, now, h->last, sizeof(h->last)))) {
		assert_true(len <= sizeof(h->last));
		h->last_len = len;
		h->sent++;
		n++;
		if (to && !to->is_deaf)
			host_take(to, h->last, len);
	}
	assert_false(addr_has_tx(h->a));
	return n;
}

/* Lets both speak until nobody has anything to say, then the time pass in steps. */
static inline void hosts_run(struct host *x, struct host *y, uint64_t ns, uint64_t step_ns)
{
	uint64_t end = now + ns;
	for (;;) {
		wheel_run(x->wheel, now);
		if (y)
			wheel_run(y->wheel, now);
		while (host_send(x, y) + (y ? host_send(y, x) : 0))
			;
		if (now >= end)
			return;
		now = now + step_ns < end ? now + step_ns : end;
	}
}

static inline struct addr_stats host_stats(const struct host *h)
{
	struct addr_stats s;
	addr_stats(h->a, &s);
	return s;
}

static inline int host_open(struct host *h, struct ah *ah, uint32_t sgid_index, const char *dgid, void (*on_changed)(struct ah *))
{
	struct ah_fields f = { .sgid_index = sgid_index, .dgid = gid_of(dgid), .traffic_class = 0x28, .flow_label = 0x12345, .udp_src_port = 0xc123 };
	return ah_open(ah, h->a, &f, on_changed, now);
}

/* An ARP message of anybody. */
static inline enum drop host_hear_arp(struct host *h, const uint8_t mac[6], uint16_t vlan, const char *sender, const char *target)
{
	uint8_t frame[NEIGHBOUR_FRAME_MAX];
	struct gid s = gid_of(sender), t = gid_of(target);
	return host_take(h, frame, neighbour_write_ask(frame, mac, NULL, vlan, &s, &t));
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The world. Owns hosts, links, frames and time. Order within a moment: frames cross the switch, frames reach hosts, hosts have their turns, programs act; each in the order in which they were added.
 * Invariant: time never goes back, and a moment at which nothing was due is an error of the part that asked for it. */
#include "sim_world.h"

#include <inttypes.h>

#include "packet.h"
#include "pcapng.h"

#define UPLINK_FRAMES UINT32_MAX /* bounded by the host's transmit ring */

struct sim_world {
	struct sim_world_config config;
	struct sim_pool pool;
	uint64_t now_ns;
	unsigned hosts, actors;
	struct sim_host *host[SIM_HOSTS_MAX];
	struct sim_link *up[SIM_HOSTS_MAX], *down[SIM_HOSTS_MAX]; /* from the host, to the host */
	struct sim_actor actor[SIM_ACTORS_MAX];
	struct sim_world_stats stats;
};

struct sim_world *sim_world_new(const struct sim_world_config *config)
{
	struct sim_world *w = calloc(1, sizeof(*w));
	if (!w)
		abort();
	w->config = *config;
	w->now_ns = config->start_ns;
	w->stats.digest = 0xcbf29ce484222325;
	return w;
}

void sim_world_free(struct sim_world *w)
{
	if (!w)
		return;
	for (unsigned i = 0; i < w->hosts; i++) {
		sim_host_free(w->host[i]);
		sim_link_free(w->up[i]);
		sim_link_free(w->down[i]);
	}
	sim_pool_free(&w->pool);
	free(w);
}

/* ---- watching ---- */

/* Eight bytes at a time: this is for telling runs apart, and must cost little. */
static void digest(struct sim_world *w, const void *data, uint32_t len)
{
	const uint8_t *p = data;
	uint64_t h = w->stats.digest, v;
	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&v, p, 8);
		h = (h ^ v) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (; len; len--)
		h = (h ^ *p++) * 0x100000001b3;
	w->stats.digest = h;
}

static void tap(void *arg, const char *link, enum sim_link_event event, uint64_t now_ns, const struct sim_frame *f)
{
	static const char *const names[] = { "enters", "leaves", "overflows" };
	struct sim_world *w = arg;
	char line[256], comment[64];
	w->stats.frames += event == SIM_LINK_LEAVES;
	w->stats.overflows += event == SIM_LINK_OVERFLOWS;
	if (event == SIM_LINK_ENTERS) {
		digest(w, &now_ns, sizeof(now_ns));
		digest(w, f->b, f->len);
	}
	if (w->config.trace) {
		packet_print(line, sizeof(line), f->b, f->len, VLAN_NONE);
		fprintf(w->config.trace, "%12" PRIu64 " %s %s %s\n", now_ns, link, names[event], line);
	}
	if (w->config.capture) {
		snprintf(comment, sizeof(comment), "%s %s", link, names[event]);
		pcapng_packet(w->config.capture, now_ns, f->b, f->len, comment);
	}
}

void sim_world_stats(const struct sim_world *w, struct sim_world_stats *s)
{
	*s = w->stats;
}

/* ---- building ---- */

static struct sim_link *make_link(struct sim_world *w, unsigned host, const char *direction, const struct sim_cable *c, uint32_t queue_frames, const char *fault)
{
	struct sim_link_config l = {
		.bits_per_second = c->bits_per_second, .propagation_ns = c->propagation_ns, .queue_frames = queue_frames, .fault = fault, .pool = &w->pool, .tap = tap, .tap_arg = w,
	};
	snprintf(l.name, sizeof(l.name), "h%u %s", host, direction);
	return sim_link_new(&l);
}

struct sim_host *sim_world_add_host(struct sim_world *w, struct sim_host_config *host, const struct sim_cable *cable)
{
	unsigned i = w->hosts;
	if (i == SIM_HOSTS_MAX)
		abort();
	w->up[i] = make_link(w, i, "out", cable, UPLINK_FRAMES, cable->fault_out);
	w->down[i] = make_link(w, i, "in", cable, cable->queue_frames, cable->fault_in);
	host->pool = &w->pool;
	host->uplink = w->up[i];
	w->host[i] = sim_host_new(host, w->now_ns);
	w->hosts++;
	return w->host[i];
}

void sim_world_add_actor(struct sim_world *w, const struct sim_actor *actor)
{
	if (w->actors == SIM_ACTORS_MAX)
		abort();
	w->actor[w->actors++] = *actor;
}

void sim_world_cut(struct sim_world *w, unsigned host, bool is_cut)
{
	sim_link_cut(w->up[host], is_cut);
	sim_link_cut(w->down[host], is_cut);
}

/* ---- time ---- */

uint64_t sim_world_now(const struct sim_world *w)
{
	return w->now_ns;
}

static void keep_least(uint64_t *least, uint64_t v)
{
	if (v < *least)
		*least = v;
}

static uint64_t find_next(struct sim_world *w)
{
	uint64_t at = UINT64_MAX;
	for (unsigned i = 0; i < w->hosts; i++) {
		keep_least(&at, sim_link_next(w->up[i]));
		keep_least(&at, sim_link_next(w->down[i]));
		keep_least(&at, sim_host_next(w->host[i], w->now_ns));
	}
	for (unsigned i = 0; i < w->actors; i++)
		keep_least(&at, w->actor[i].next(w->actor[i].arg, w->now_ns));
	return at;
}

static void forward(struct sim_world *w, unsigned from, struct sim_frame *f)
{
	for (unsigned i = 0; i < w->hosts; i++) {
		if (f->len < 6 || memcmp(f->b, sim_host_mac(w->host[i]), 6))
			continue;
		sim_link_send(w->down[i], w->now_ns, f);
		return;
	}
	for (unsigned i = 0; i < w->hosts; i++)
		if (i != from)
			sim_link_send(w->down[i], w->now_ns, sim_frame_copy(&w->pool, f));
	sim_frame_free(&w->pool, f);
}

bool sim_world_step(struct sim_world *w, uint64_t until_ns)
{
	struct sim_frame *f;
	uint64_t at = find_next(w);
	if (at > until_ns) {
		w->now_ns = until_ns;
		return false;
	}
	if (at > w->now_ns)
		w->now_ns = at;
	w->stats.moments++;
	for (unsigned i = 0; i < w->hosts; i++)
		while ((f = sim_link_receive(w->up[i], w->now_ns)))
			forward(w, i, f);
	for (unsigned i = 0; i < w->hosts; i++)
		while ((f = sim_link_receive(w->down[i], w->now_ns)))
			sim_host_deliver(w->host[i], f);
	for (unsigned i = 0; i < w->hosts; i++) {
		sim_host_set_time(w->host[i], w->now_ns);
		if (sim_host_next(w->host[i], w->now_ns) <= w->now_ns)
			sim_host_turn(w->host[i], w->now_ns);
	}
	for (unsigned i = 0; i < w->actors; i++)
		if (w->actor[i].next(w->actor[i].arg, w->now_ns) <= w->now_ns)
			w->actor[i].act(w->actor[i].arg, w->now_ns);
	return true;
}

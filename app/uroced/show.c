/* SPDX-License-Identifier: BSD-3-Clause */
/* The device as a client would see it: asked of the first core by the requests that clients make, carried out by the thread that drives the core. Remembers nothing. */
#include "show.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core.h"
#include "packet.h"
#include "port.h"
#include "region.h"

struct question {
	struct mail mail;
	struct core_client *client;
	struct abi_req req;
	struct abi_rep rep;
};

static void carry_out(struct mail *m, uint64_t now_ns)
{
	struct question *q = (struct question *)m;
	core_control(q->client, now_ns, &q->req, &q->rep);
}

static bool ask(struct engine_core *ec, struct core_client *k, enum abi_msg type, uint32_t handle, struct abi_rep *rep)
{
	struct question q = { .mail.run = carry_out, .client = k, .req = { .type = type, .handle = handle } };
	engine_carry_out(ec, &q.mail);
	*rep = q.rep;
	return !rep->status;
}

static void show_gid(FILE *out, uint32_t index, const struct abi_rep *rep)
{
	struct gid g;
	char text[GID_TEXT_MAX];
	memcpy(g.b, rep->gid.gid, sizeof(g.b));
	fprintf(out, "  GID %-5u %s", index, gid_format(&g, text));
	if (rep->gid.vlan != VLAN_NONE)
		fprintf(out, " on VLAN %u", rep->gid.vlan);
	fprintf(out, "\n");
}

static void show_network(FILE *out, struct engine_core *ec, const struct port *p)
{
	struct core_client *k;
	struct abi_rep rep;
	if (core_client_new(engine_core_stack(ec), &k))
		return;
	if (ask(ec, k, ABI_QUERY_DEVICE, 0, &rep)) {
		const uint8_t *m = rep.device.mac;
		uint32_t gids = rep.device.gid_slots, mtu = 128u << rep.device.active_mtu;
		fprintf(out, "  MAC       %02x:%02x:%02x:%02x:%02x:%02x\n", m[0], m[1], m[2], m[3], m[4], m[5]);
		for (uint32_t i = 0; i < gids; i++)
			if (ask(ec, k, ABI_QUERY_GID, i, &rep) && rep.gid.present)
				show_gid(out, i, &rep);
		fprintf(out, "  path MTU  %u, largest frame %u bytes\n", mtu, p->max_frame);
	}
	core_client_free(k);
}

static void show_cores(FILE *out, const struct engine *e, const struct device_string *d)
{
	static const char *const idle[] = { [DEVICE_IDLE_SPIN] = "spin", [DEVICE_IDLE_PAUSE] = "pause", [DEVICE_IDLE_SLEEP] = "sleep" };
	fprintf(out, "  cores     %u, ", engine_cores(e));
	if (!d->cpus)
		fprintf(out, "on any CPU");
	for (unsigned i = 0; i < d->cpus; i++)
		fprintf(out, "%s%u", i ? "+" : "on CPU ", d->cpu[i]);
	fprintf(out, ", idle: %s\n", idle[d->idle]);
}

/* Tries it: what clients will get now. */
static void show_memory(FILE *out, int node)
{
	const uint64_t bytes = 2u << 20;
	struct region_source source = { .node = node };
	void *base;
	int fd;
	if (!region_make(&source, bytes, NULL, &base, &fd))
		region_free(base, bytes, fd);
	fprintf(out, "  memory    %s", source.is_told ? "ordinary pages (no huge pages are free)" : "huge pages");
	if (node >= 0)
		fprintf(out, ", NUMA node %d", node);
	fprintf(out, "\n");
}

void show_device(FILE *out, struct engine *e, const struct settings *s)
{
	const struct port *p = engine_port(e);
	const struct device_string *d = &s->parsed;
	fprintf(out, "uroced " UROCE_VERSION ", process %ld\n  device    %s%s%s\n", (long)getpid(), d->devargs[0] ? d->vdev : p->text, d->devargs[0] ? "," : "", d->devargs);
	show_network(out, engine_core_at(e, 0), p);
	show_cores(out, e, d);
	fprintf(out, "  socket    %s, mode %04o%s%s\n", s->path, (unsigned)s->server.mode, s->group[0] ? ", group " : "", s->group);
	show_memory(out, p->node);
	fflush(out);
}

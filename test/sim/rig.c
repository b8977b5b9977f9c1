/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the set-up of a world with connected QPs; the tests own what happens in it. */
#include "rig.h"

#include <errno.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ACCESS (UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC)

static void check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "rig: %s: %s\n", what, strerror(-rc));
	exit(2);
}

static void apply_defaults(struct rig_config *c)
{
	c->hosts = c->hosts ? c->hosts : 2;
	c->qps = c->qps ? c->qps : 1;
	c->mtu = c->mtu ? c->mtu : 4096;
	c->bits_per_second = c->bits_per_second ? c->bits_per_second : 10000000000;
	c->propagation_ns = c->propagation_ns ? c->propagation_ns : 500; /* two links from host to host */
	c->tx_frames = c->tx_frames ? c->tx_frames : 1024;
	c->memory = c->memory ? c->memory : 1 << 20;
}

static void open_host(struct rig *r, unsigned i)
{
	const struct rig_config *c = &r->config;
	struct sim_host_config host = { .number = (uint8_t)i, .max_frame = 4300, .seed = 77 + i, .turn_ns = 300, .rx_frames = 2048, .tx_frames = c->tx_frames };
	struct sim_cable cable = { .bits_per_second = c->bits_per_second, .propagation_ns = c->propagation_ns, .queue_frames = 4096, .fault_in = c->fault[i] };
	snprintf(host.name, sizeof(host.name), "h%u", i);
	r->host[i] = sim_world_add_host(r->world, &host, &cable);
	r->ctx[i] = sim_host_open(r->host[i], NULL);
	check(uroce_pd_create(r->ctx[i], &r->pd[i]), "PD");
	check(uroce_cq_create(r->ctx[i], 65536, NULL, NULL, &r->cq[i]), "CQ");
	uint64_t bytes = c->memory * (c->is_memory_shared ? 1 : c->qps * (c->hosts - 1));
	r->memory[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r->memory[i] == MAP_FAILED)
		check(-ENOMEM, "memory");
}

static void open_end(struct rig *r, struct rig_end *e, unsigned host, unsigned n)
{
	struct uroce_qp_init init = { .service = r->config.service, .send_cq = r->cq[host], .recv_cq = r->cq[host], .cap = { .max_send_wr = 256, .max_recv_wr = 256, .max_send_sge = 32, .max_recv_sge = 4, .max_inline = 64 } };
	e->host = host;
	e->memory = r->memory[host] + (r->config.is_memory_shared ? 0 : n * r->config.memory);
	check(uroce_mr_register(r->pd[host], e->memory, r->config.memory, ACCESS, &e->mr), "MR");
	check(uroce_qp_create(r->pd[host], &init, &e->qp), "QP");
}

static void join(struct rig *r, struct rig_end *a, struct rig_end *b)
{
	const struct rig_config *c = &r->config;
	struct uroce_endpoint ea, eb;
	struct uroce_qp_attr attr = c->attr;
	attr.path_mtu = c->mtu;
	check(uroce_qp_endpoint(a->qp, 0, &ea), "endpoint");
	check(uroce_qp_endpoint(b->qp, 0, &eb), "endpoint");
	if (c->first_psn)
		ea.psn = eb.psn = c->first_psn;
	check(uroce_qp_connect(a->qp, &ea, &eb, &attr, c->attr_mask | UROCE_QP_PATH_MTU), "connect");
	check(uroce_qp_connect(b->qp, &eb, &ea, &attr, c->attr_mask | UROCE_QP_PATH_MTU), "connect");
}

void rig_open(struct rig *r, const struct rig_config *config)
{
	*r = (struct rig){ .config = *config };
	apply_defaults(&r->config);
	r->world = sim_world_new(&(struct sim_world_config){ .start_ns = 1000000 });
	for (unsigned i = 0; i < r->config.hosts; i++)
		open_host(r, i);
	for (unsigned h = 1; h < r->config.hosts; h++)
		for (unsigned q = 0; q < r->config.qps; q++, r->pairs++) {
			open_end(r, &r->near[r->pairs], 0, r->pairs);
			open_end(r, &r->far[r->pairs], h, r->pairs);
			join(r, &r->near[r->pairs], &r->far[r->pairs]);
		}
	rig_run(r, 5000000); /* ARP is over */
}

void rig_close(struct rig *r)
{
	for (unsigned i = 0; i < r->config.hosts; i++) {
		uroce_close(r->ctx[i]);
		munmap(r->memory[i], r->config.memory * (r->config.is_memory_shared ? 1 : r->config.qps * (r->config.hosts - 1)));
	}
	sim_world_free(r->world);
}

void rig_run(struct rig *r, uint64_t ns)
{
	uint64_t until = sim_world_now(r->world) + ns;
	while (sim_world_step(r->world, until))
		;
}

unsigned rig_wait(struct rig *r, unsigned host, struct uroce_wc *wc, unsigned n, uint64_t ns)
{
	uint64_t until = sim_world_now(r->world) + ns;
	unsigned got = 0;
	bool goes_on = true;
	while (got < n && goes_on) {
		goes_on = sim_world_step(r->world, until);
		int rc = uroce_cq_poll(r->cq[host], wc + got, n - got);
		check(rc, "poll");
		got += (unsigned)rc;
	}
	return got;
}

uint64_t rig_counter(struct uroce_qp *qp, unsigned counter)
{
	uint64_t v[32];
	check(uroce_qp_counters(qp, v, 32), "counters");
	return v[counter];
}

struct uroce_send_wr rig_wr(const struct rig_end *from, const struct rig_end *to, struct uroce_sge *sge, enum uroce_opcode opcode, uint32_t len)
{
	*sge = (struct uroce_sge){ (uintptr_t)from->memory, len, uroce_mr_lkey(from->mr) };
	return (struct uroce_send_wr){
		.sg_list = sge, .num_sge = 1, .opcode = opcode, .flags = UROCE_SEND_SIGNALED, .remote_addr = (uintptr_t)to->memory, .rkey = uroce_mr_rkey(to->mr), .imm = 0x12345678,
	};
}

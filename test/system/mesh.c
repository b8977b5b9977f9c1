/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what is posted and checked on a mesh. */
#include "mesh.h"

#include <string.h>
#include <unistd.h>

unsigned mesh_partner(const struct mesh *m, unsigned k)
{
	unsigned n = m->cores, i = k % (n * n);
	return k - i + i % n * n + i / n;
}

void mesh_open_end(const struct mesh *m, struct side *end, const char *device)
{
	for (unsigned k = 0; k < m->pairs; k++) {
		side_open(&end[k], device);
		CHECK(engine_cores(end[k].engine) == m->cores && end[k].engine == end[0].engine);
		CHECK(engine_core_index(end[k].core) == k % m->cores);
		CHECK((end[k].endpoint.qpn & 15) == k % m->cores);
	}
}

void mesh_close_end(const struct mesh *m, struct side *end)
{
	for (unsigned k = 0; k < m->pairs; k++)
		side_close(&end[k]);
}

void mesh_connect_side(struct side *s, const struct side_card *remote)
{
	struct uroce_qp_attr attr = { .timeout = 17 };
	CHECK(!uroce_qp_connect(s->qp, &s->endpoint, &remote->endpoint, &attr, UROCE_QP_TIMEOUT));
}

void mesh_open(struct mesh *m, unsigned cores, unsigned pairs, const char *device_a, const char *device_b)
{
	m->cores = cores;
	m->pairs = pairs;
	mesh_open_end(m, m->a, device_a);
	mesh_open_end(m, m->b, device_b);
	for (unsigned k = 0; k < m->pairs; k++) {
		struct side *a = &m->a[k], *b = &m->b[mesh_partner(m, k)];
		struct side_card of_a = side_card(a), of_b = side_card(b);
		mesh_connect_side(a, &of_b);
		mesh_connect_side(b, &of_a);
	}
}

static void post_read(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t len, const struct side_card *remote, uint32_t remote_offset)
{
	struct uroce_sge sge = { (uintptr_t)s->buffer + offset, len, uroce_mr_lkey(s->mr) };
	struct uroce_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_READ, .flags = UROCE_SEND_SIGNALED,
		.remote_addr = remote->addr + remote_offset, .rkey = remote->rkey };
	CHECK(uroce_post_send(s->qp, &wr, 1) == 1);
}

void mesh_exchange(struct mesh *m, uint32_t seed)
{
	for (unsigned k = 0; k < m->pairs; k++) {
		struct side *a = &m->a[k], *b = &m->b[mesh_partner(m, k)];
		side_fill(a, 0, MESH_LEN, seed + k);
		memset(b->buffer, 0, MESH_LEN);
		side_post_recv(b, 1, 0, MESH_LEN);
		side_post_send(a, 2, 0, MESH_LEN);
	}
	for (unsigned k = 0; k < m->pairs; k++) {
		struct side *a = &m->a[k], *b = &m->b[mesh_partner(m, k)];
		struct side_card of_a = side_card(a);
		CHECK(side_wait(b, a, 1).byte_len == MESH_LEN);
		side_wait(a, b, 2);
		side_check(b, 0, MESH_LEN, seed + k);
		side_fill(b, MESH_UPPER, MESH_LEN, ~seed + k);
		side_post_write(b, 3, MESH_UPPER, MESH_LEN, &of_a, MESH_UPPER);
	}
	for (unsigned k = 0; k < m->pairs; k++) {
		struct side *a = &m->a[k], *b = &m->b[mesh_partner(m, k)];
		struct side_card of_b = side_card(b);
		side_wait(b, a, 3);
		side_check(a, MESH_UPPER, MESH_LEN, ~seed + k);
		memset(a->buffer, 0, MESH_LEN);
		post_read(a, 4, 0, MESH_LEN, &of_b, 0);
	}
	for (unsigned k = 0; k < m->pairs; k++) {
		side_wait(&m->a[k], NULL, 4);
		side_check(&m->a[k], 0, MESH_LEN, seed + k);
	}
}

void mesh_post_writes(struct mesh *m, uint32_t len, uint32_t seed)
{
	for (unsigned k = 0; k < m->pairs; k++) {
		struct side *a = &m->a[k], *b = &m->b[mesh_partner(m, k)];
		struct side_card of_a = side_card(a), of_b = side_card(b);
		side_fill(a, 0, len, seed + k);
		side_fill(b, 0, len, ~seed + k);
		side_post_write(a, 5, 0, len, &of_b, MESH_UPPER);
		side_post_write(b, 6, 0, len, &of_a, MESH_UPPER);
	}
}

void mesh_wait_for_writes(struct mesh *m, uint32_t len, uint32_t seed)
{
	for (unsigned k = 0; k < m->pairs; k++) {
		struct side *a = &m->a[k], *b = &m->b[mesh_partner(m, k)];
		side_wait(a, NULL, 5);
		side_wait(b, NULL, 6);
		side_check(b, MESH_UPPER, len, seed + k);
		side_check(a, MESH_UPPER, len, ~seed + k);
	}
}

struct engine_stats mesh_sum_stats(struct engine *e)
{
	struct engine_stats sum = { 0 }, one;
	for (unsigned i = 0; i < engine_cores(e); i++) {
		engine_core_stats(engine_core_at(e, i), &one);
		sum.handed_over_tx += one.handed_over_tx;
		sum.handed_over_rx += one.handed_over_rx;
		sum.handed_over_dropped += one.handed_over_dropped;
		sum.tx_partial += one.tx_partial;
	}
	return sum;
}

void mesh_check_handed_over(struct engine *e)
{
	struct engine_stats s;
	for (unsigned i = 0; i < 1000; i++) {
		s = mesh_sum_stats(e);
		if (s.handed_over_tx == s.handed_over_rx)
			break;
		usleep(1000);
	}
	CHECK(s.handed_over_tx > 0 && s.handed_over_tx == s.handed_over_rx && !s.handed_over_dropped);
}

static void stay(struct mail *mail, uint64_t now_ns)
{
	struct hold *h = (struct hold *)mail;
	atomic_store(&h->is_held, true);
	while (!atomic_load(&h->may_go))
		usleep(100);
}

static void *carry_out(void *arg)
{
	struct hold *h = arg;
	engine_carry_out(h->core, &h->mail);
	return NULL;
}

void hold_core(struct hold *h, struct engine_core *core)
{
	*h = (struct hold){ .mail.run = stay, .core = core };
	CHECK(!pthread_create(&h->thread, NULL, carry_out, h));
	while (!atomic_load(&h->is_held))
		usleep(100);
}

void hold_let_go(struct hold *h)
{
	atomic_store(&h->may_go, true);
	pthread_join(h->thread, NULL);
}

void mesh_check_drops(const struct mesh *m, const struct side *end)
{
	static const enum drop none[] = { DROP_ICRC, DROP_QP_UNKNOWN, DROP_PSN_AHEAD };
	for (unsigned k = 0; k < m->cores; k++)
		for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
			CHECK(!side_drops(&end[k], none[i]));
}

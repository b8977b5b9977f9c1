/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client can say to a daemon: records of any bytes with any number of descriptors through a socket into the check of control messages, and requests of any content, in any order, into a core. The input is a list of steps, a byte each and the bytes that the
 * step wants. Holds after each input: no descriptor is left over, what passed the check is what its row says, and every object goes with its client. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz_core.h"
#include "raw_client.h"
#include "socket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 200u
#define HANDLES 16u
#define FDS_MAX 4u

struct input {
	const uint8_t *at, *end;
};

struct world {
	struct input in;
	uint64_t now;
	struct core *core;
	struct raw_client client[2]; /* handles of one are tried on the other */
	uint32_t handle[HANDLES];
	unsigned handles;
	int socket[2];
};

static uint8_t take(struct world *w)
{
	return w->in.at < w->in.end ? *w->in.at++ : 0;
}

static void take_bytes(struct world *w, void *to, size_t n)
{
	size_t left = (size_t)(w->in.end - w->in.at), got = n < left ? n : left;
	memset(to, 0, n);
	memcpy(to, w->in.at, got);
	w->in.at += got;
}

static uint32_t some_handle(struct world *w)
{
	return w->handle[take(w) % HANDLES];
}

static void carry_out(struct world *w, struct raw_client *c, struct abi_req *req)
{
	if (req->type == ABI_ALLOC_MEMORY)
		req->alloc_memory.bytes %= 64u << 20; /* beyond: only the quota's sum, again and again */
	if (!raw_ask(c, req) && c->rep.handle)
		w->handle[w->handles++ % HANDLES] = c->rep.handle;
	if (c->rep.type != req->type || c->rep.sequence != req->sequence)
		abort();
}

/* ---- steps ---- */

static void send_record(struct world *w, const void *bytes, size_t n, unsigned fds)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)bytes, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (fds) {
		int fd[FDS_MAX] = { 0, 0, 0, 0 };
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(fds * sizeof(int)) };
		memcpy(CMSG_DATA(&control.header), fd, fds * sizeof(int));
	}
	if (sendmsg(w->socket[0], &msg, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n)
		abort();
}

static void step_record(struct world *w)
{
	static uint8_t bytes[2048]; /* more than any message */
	struct ctl_message m;
	enum ctl_refusal why;
	int fd;
	uint8_t how = take(w);
	struct ctl_header header = { take(w) % (CTL_TYPE_COUNT + 2u), 0 };
	size_t n = sizeof(header) + (header.type < CTL_TYPE_COUNT ? ctl_rows[header.type].length : 16);
	header.length = (uint32_t)(n - sizeof(header));
	if (how & 1)
		n = take(w) * 4u; /* another length than its own */
	if (how & 2)
		header.length = take(w);
	n = n ? n : 1;
	take_bytes(w, bytes, n);
	memcpy(bytes, &header, n < sizeof(header) ? n : sizeof(header));
	send_record(w, bytes, n, how >> 2 & 3);
	int rc = ctl_recv(w->socket[1], how & 16, &m, &fd, &why);
	if (rc && fd >= 0)
		abort();
	if (rc)
		return;
	const struct ctl_row *row = &ctl_rows[m.header.type];
	if (m.header.length != row->length || (fd >= 0) != row->has_fd || !(how & 16 ? row->is_from_client : row->is_from_daemon))
		abort();
	if (fd >= 0)
		close(fd);
	if (m.header.type == CTL_REQUEST)
		carry_out(w, &w->client[0], &m.request);
}

/* A request whose words are small numbers, handles or anything. */
static void step_request(struct world *w)
{
	struct abi_req req = { 0 };
	uint8_t how = take(w);
	req.type = take(w) % (ABI_MSG_COUNT + 2u);
	req.sequence = 7;
	uint32_t *words = (uint32_t *)(void *)((uint8_t *)&req + offsetof(struct abi_req, handle));
	size_t n = (sizeof(req) - offsetof(struct abi_req, handle)) / sizeof(*words);
	for (size_t i = 0; i < n && i < 8u + (how & 31); i++) {
		uint8_t kind = take(w);
		words[i] = kind < 96 ? kind : kind < 192 ? some_handle(w) : (uint32_t)take(w) << (kind & 31);
	}
	carry_out(w, &w->client[how >> 7], &req);
}

/* Requests as a client makes them: what they name may be anything, the rest makes sense. */
static void step_usual(struct world *w)
{
	struct abi_req req = { .type = ABI_CREATE_PD };
	switch (take(w) % 12) {
	case 0:
		break;
	case 1:
		req = (struct abi_req){ .type = ABI_CREATE_CQ, .create_cq = { .entries = take(w) + 1u, .channel = take(w) & 1 ? some_handle(w) : 0 } };
		break;
	case 2:
		req = (struct abi_req){ .type = ABI_CREATE_QP, .create_qp = { .pd = some_handle(w), .send_cq = some_handle(w), .recv_cq = some_handle(w), .service = take(w) % (ABI_SERVICES + 1),
			.srq = take(w) & 1 ? some_handle(w) : 0, .cap = { take(w), take(w), take(w) % 40, take(w) % 40, take(w) * 4u } } };
		break;
	case 3:
		req = (struct abi_req){ .type = ABI_REG_MR, .reg_mr = { .pd = some_handle(w), .access = take(w) & 15, .addr = take(w), .len = take(w) * 64u, .memory = some_handle(w) | 1u } };
		break;
	case 4:
		req = (struct abi_req){ .type = ABI_CREATE_SRQ, .create_srq = { .pd = some_handle(w), .max_wr = take(w), .max_sge = take(w) % 40, .limit = take(w) } };
		break;
	case 5:
		req = (struct abi_req){ .type = ABI_MODIFY_SRQ, .modify_srq = { .srq = some_handle(w), .mask = take(w) & 15, .max_wr = take(w), .limit = take(w) } };
		break;
	case 6:
		req = (struct abi_req){ .type = ABI_CREATE_AH, .create_ah = { .pd = some_handle(w), .av = { .dgid = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = take(w) }, .sl = take(w) & 15 } } };
		break;
	case 7:
		req = (struct abi_req){ .type = ABI_MODIFY_QP, .modify_qp = { .qp = some_handle(w), .mask = ABI_QP_STATE | (uint32_t)take(w) << 1 | (uint32_t)take(w) << 9 | (uint32_t)take(w) << 17,
			.attr = { .state = take(w) % (ABI_QP_STATES + 1), .path_mtu = take(w) & 7, .port_num = 1, .dest_qpn = take(w), .qkey = (uint32_t)take(w) << 24, .max_rd_atomic = take(w), .max_dest_rd_atomic = take(w),
				.av = { .dgid = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = take(w) } } } } };
		break;
	case 8:
		req = (struct abi_req){ .type = ABI_MODIFY_CQ, .modify_cq = { .cq = some_handle(w), .mask = 1u << take(w) % 4, .entries = take(w) * 16u, .count = take(w), .period_us = take(w) * 256u } };
		break;
	case 9:
		req = (struct abi_req){ .type = ABI_REREG_MR, .reg_mr = { .mr = some_handle(w), .mask = take(w) & 15, .pd = some_handle(w), .access = take(w), .addr = take(w), .len = take(w) * 64u, .memory = some_handle(w) | 1u } };
		break;
	case 10:
		req = (struct abi_req){ .type = ABI_ALLOC_MR, .handle = some_handle(w) };
		break;
	case 11:
		req = (struct abi_req){ .type = ABI_CREATE_MW, .create_mw = { .pd = some_handle(w), .type = take(w) & 3 } };
		break;
	}
	carry_out(w, &w->client[0], &req);
}

static void step_run(struct world *w)
{
	static uint8_t buffer[CORE_FRAME_MAX];
	struct core_frame f = { .data = buffer, .room = sizeof(buffer) };
	w->now += (uint64_t)take(w) * 1000;
	core_run(w->core, w->now);
	core_scan(w->core);
	core_tx(w->core, w->now, &f, 1);
}

static void (*const steps[])(struct world *w) = { step_record, step_request, step_request, step_usual, step_run };

static void open_client(struct world *w, struct raw_client *c)
{
	static const struct core_usage most = { .pds = 16, .qps = 16, .cqs = 16, .srqs = 8, .ahs = 16, .mrs = 16, .mws = 16, .channels = 4, .registered_bytes = 1 << 24, .ring_bytes = 4 << 20, .pool_bytes = 4 << 20 };
	raw_open(c, w->core, &w->now);
	core_client_set_quota(c->k, &most);
	w->handle[w->handles++] = c->pd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = { .in = { data, data + size }, .now = 1000000 };
	int lowest = dup(0);
	close(lowest);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, w.socket))
		abort();
	w.core = fuzz_core_new(0, w.now);
	for (unsigned i = 0; i < 2; i++)
		open_client(&w, &w.client[i]);
	for (unsigned i = 0; i < STEPS_MAX && w.in.at < w.in.end; i++)
		steps[take(&w) % (sizeof(steps) / sizeof(steps[0]))](&w);
	struct core_stats stats;
	struct core_usage left;
	for (unsigned i = 0; i < 2; i++) {
		core_client_detach(w.client[i].k, UINT32_MAX);
		core_client_usage(w.client[i].k, &left);
		if (left.ring_bytes || left.pool_bytes || left.registered_bytes)
			abort();
		core_client_free(w.client[i].k);
	}
	core_stats(w.core, &stats);
	if (stats.qps || stats.cqs || stats.mrs || stats.mws || stats.clients)
		abort();
	core_free(w.core);
	close(w.socket[0]);
	close(w.socket[1]);
	int now = dup(0);
	if (now != lowest) /* a descriptor was left open */
		abort();
	close(now);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of the key-value example that does not keep to its rules: service_rogue HOST:PORT. Exit code 0: each bad request was answered as one, or ended this connection, and nothing worse. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kv.h"

static struct client c;

/* Posts the first bytes of a message, whatever they say. */
static bool post(const struct kv_message *m, uint32_t bytes)
{
	struct client_connection *n = &c.connections[0];
	unsigned place = (unsigned)__builtin_ctz(n->free_requests);
	n->requests[place] = *m;
	struct uroce_sge sge = { (uintptr_t)&n->requests[place], bytes, uroce_mr_lkey(c.mr) };
	struct uroce_send_wr wr = { .wr_id = 0x100u | place, .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_SEND, .flags = UROCE_SEND_SIGNALED };
	n->free_requests &= n->free_requests - 1;
	return uroce_post_send(n->qp, &wr, 1) == 1;
}

static bool is_refused(const struct kv_message *m, uint32_t bytes)
{
	const struct kv_message *answer;
	unsigned connection;
	if (!post(m, bytes) || client_wait(&c, &connection, &answer))
		return false;
	bool is_bad = answer->what == KV_BAD_REQUEST;
	return client_done(&c, connection, answer) == 0 && is_bad;
}

/* More and more requests, and no receive for the answers: the connection ends. */
static bool is_thrown_out(void)
{
	struct kv_message m = { .what = KV_GET, .key_len = 1, .data = "x" };
	const struct kv_message *answer;
	unsigned connection;
	time_t end = time(NULL) + 10;
	int n = 0;
	while (n >= 0 && time(NULL) < end) {
		if (c.connections[0].free_requests && !post(&m, KV_HEAD_BYTES + 1))
			return true;
		n = client_receive(&c, &connection, &answer);
	}
	return n < 0;
}

int main(int argc, char **argv)
{
	static const struct {
		struct kv_message m;
		uint32_t bytes;
	} bad[] = {
		{ { .id = 1 }, 3 },
		{ { .id = 2 }, 0 },
		{ { .id = 3, .what = KV_PUT }, KV_HEAD_BYTES },
		{ { .id = 4, .what = KV_OPS, .key_len = 1 }, KV_HEAD_BYTES + 1 },
		{ { .id = 5, .what = KV_GET, .key_len = 65535 }, KV_HEAD_BYTES + 1 },
		{ { .id = 6, .what = KV_PUT, .key_len = 1, .value_len = 65535 }, KV_HEAD_BYTES + 1 },
		{ { .id = 7, .what = KV_PUT, .key_len = KV_KEY_MAX + 1 }, KV_HEAD_BYTES + KV_KEY_MAX + 1 },
	};
	if (argc != 2 || client_open(&c, argv[1], 1))
		return 1;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!is_refused(&bad[i].m, bad[i].bytes)) {
			fprintf(stderr, "bad request %u was not refused\n", i + 1);
			return 1;
		}
	bool is_fine = is_thrown_out();
	client_close(&c);
	return !is_fine;
}

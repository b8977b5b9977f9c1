/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two ends of the key-value example say to each other: over a TCP socket who they are, and then all requests and answers by RDMA SEND. What comes from the other end may be anything; who reads it looks at every length. */
#ifndef KV_PROTOCOL_H
#define KV_PROTOCOL_H

#include <stdint.h>

#define KV_PORT "7480"
#define KV_DEPTH 16u /* requests that a client may have outstanding on one connection */
#define KV_KEY_MAX 64u
#define KV_VALUE_MAX (1024u - 16u - KV_KEY_MAX)

enum kv_op { KV_PUT, KV_GET, KV_DELETE, KV_OPS };
enum kv_status { KV_OK, KV_NOT_FOUND, KV_BAD_REQUEST, KV_NO_MEMORY, KV_STATUSES };

/* A request (key, then value) or its answer (the value). Numbers are little endian, as on every host that DPDK runs on. */
struct kv_message {
	uint32_t id;        /* of a request; the answer has the same */
	uint16_t key_len;   /* answers: 0 */
	uint16_t value_len;
	uint8_t what;       /* enum kv_op, enum kv_status */
	uint8_t zero[7];
	char data[KV_KEY_MAX + KV_VALUE_MAX];
};
#define KV_HEAD_BYTES 16u
_Static_assert(sizeof(struct kv_message) == 1024, "a receive takes the largest message");

#endif

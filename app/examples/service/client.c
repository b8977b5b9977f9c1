/* SPDX-License-Identifier: BSD-3-Clause */
/* kv-client: single requests, and a measurement that checks every answer.
 *
 *     kv-client HOST[:PORT] put KEY VALUE | get KEY | delete KEY | bench [CONNECTIONS [REQUESTS]]
 *
 * Exit code: 0, done; 1, something failed; 2, a command that makes no sense; 3, no such key. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kv.h"

#define BENCH_VALUE 100u
#define BENCH_KEYS 1000u

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- one request ---- */

static int request(struct client *c, enum kv_op op, const char *key, const char *value)
{
	static const int codes[KV_STATUSES] = { [KV_OK] = 0, [KV_NOT_FOUND] = 3, [KV_BAD_REQUEST] = 1, [KV_NO_MEMORY] = 1 };
	static const char *const words[KV_STATUSES] = { [KV_NOT_FOUND] = "no such key", [KV_BAD_REQUEST] = "the server does not understand the request", [KV_NO_MEMORY] = "the server has no memory left" };
	const struct kv_message *answer;
	unsigned connection;
	if (client_send(c, 0, op, key, strlen(key), value, value ? strlen(value) : 0) < 0 || client_wait(c, &connection, &answer))
		return 1;
	if (answer->what != KV_OK)
		fprintf(stderr, "kv-client: %s\n", words[answer->what]);
	else if (op == KV_GET)
		printf("%.*s\n", (int)answer->value_len, answer->data);
	return codes[answer->what];
}

/* ---- many ---- */

struct bench {
	struct client *client;
	enum kv_op op;
	uint64_t sent, received, total;
	uint64_t *latency_ns;  /* of each */
	struct {
		uint64_t sent_ns;
		unsigned key;
	} of[CLIENT_CONNECTIONS][KV_DEPTH]; /* by id */
};

/* The value of a key follows from it, so that every answer can be checked. */
static void fill(char value[BENCH_VALUE], unsigned key)
{
	for (unsigned i = 0; i < BENCH_VALUE; i++)
		value[i] = (char)(key * 31 + i * 7);
}

static bool send_some(struct bench *b, unsigned connection)
{
	char key[KV_KEY_MAX], value[BENCH_VALUE];
	while (b->sent < b->total && client_can_send(b->client, connection)) {
		unsigned k = (unsigned)(b->sent % BENCH_KEYS);
		int len = snprintf(key, sizeof(key), "key-%u", k);
		fill(value, k);
		uint64_t now = now_ns();
		int64_t id = client_send(b->client, connection, b->op, key, (size_t)len, value, b->op == KV_PUT ? BENCH_VALUE : 0);
		if (id < 0)
			return false;
		b->of[connection][id % KV_DEPTH].sent_ns = now;
		b->of[connection][id % KV_DEPTH].key = k;
		b->sent++;
	}
	return true;
}

static bool take_answer(struct bench *b, unsigned connection, const struct kv_message *answer)
{
	char value[BENCH_VALUE];
	unsigned key = b->of[connection][answer->id % KV_DEPTH].key;
	b->latency_ns[b->received++] = now_ns() - b->of[connection][answer->id % KV_DEPTH].sent_ns;
	fill(value, key);
	if (answer->what == KV_OK && (b->op != KV_GET || (answer->value_len == BENCH_VALUE && !memcmp(answer->data, value, BENCH_VALUE))))
		return client_done(b->client, connection, answer) == 0;
	fprintf(stderr, "kv-client: wrong answer for key-%u: status %u, %u bytes\n", key, answer->what, answer->value_len);
	return false;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static bool measure(struct bench *b, enum kv_op op, const char *name)
{
	const struct kv_message *answer;
	unsigned connection;
	b->op = op;
	b->sent = b->received = 0;
	uint64_t begin_ns = now_ns();
	for (unsigned i = 0; i < b->client->n; i++)
		if (!send_some(b, i))
			return false;
	while (b->received < b->total) {
		if (client_wait(b->client, &connection, &answer) || !take_answer(b, connection, answer) || !send_some(b, connection))
			return false;
	}
	double seconds = (double)(now_ns() - begin_ns) * 1e-9;
	qsort(b->latency_ns, b->total, sizeof(b->latency_ns[0]), by_size);
	printf("%s: %llu requests on %u connections, all answers right, %.0f/s, p50 %.1f us, p99 %.1f us\n", name, (unsigned long long)b->total, b->client->n, (double)b->total / seconds,
		(double)b->latency_ns[b->total / 2] * 1e-3, (double)b->latency_ns[b->total * 99 / 100] * 1e-3);
	return true;
}

static int bench(struct client *c, uint64_t total)
{
	static struct bench b;
	b = (struct bench){ .client = c, .total = total, .latency_ns = calloc(total, sizeof(b.latency_ns[0])) };
	bool is_fine = b.latency_ns && measure(&b, KV_PUT, "put") && measure(&b, KV_GET, "get");
	free(b.latency_ns);
	return !is_fine;
}

/* ---- the command ---- */

static const struct command {
	const char *name;
	int least, most; /* words after it */
	enum kv_op op;
} commands[] = { { "put", 2, 2, KV_PUT }, { "get", 1, 1, KV_GET }, { "delete", 1, 1, KV_DELETE }, { "bench", 0, 2, KV_OPS } };

static const struct command *find_command(int argc, char **argv)
{
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (argc >= 3 && !strcmp(argv[2], commands[i].name) && argc - 3 >= commands[i].least && argc - 3 <= commands[i].most)
			return &commands[i];
	return NULL;
}

static bool take_number(const char *text, unsigned long most, unsigned long *out)
{
	char *end;
	*out = strtoul(text, &end, 10);
	return *text >= '1' && *text <= '9' && !*end && *out <= most;
}

static const char *judge(const struct command *what, int argc, char **argv, unsigned long *connections, unsigned long *requests)
{
	if (!what)
		return "usage: kv-client HOST[:PORT] put KEY VALUE | get KEY | delete KEY | bench [CONNECTIONS [REQUESTS]], with UROCE_DEVICE in the environment";
	if (what->op == KV_OPS && argc > 3 && !take_number(argv[3], CLIENT_CONNECTIONS, connections))
		return "CONNECTIONS: expected 1 to 64";
	if (what->op == KV_OPS && argc > 4 && !take_number(argv[4], 10000000, requests))
		return "REQUESTS: expected 1 to 10000000";
	if (what->op != KV_OPS && (!argv[3][0] || strlen(argv[3]) > KV_KEY_MAX))
		return "KEY: expected 1 to 64 bytes";
	if (what->op == KV_PUT && strlen(argv[4]) > KV_VALUE_MAX)
		return "VALUE: expected at most 944 bytes";
	return NULL;
}

int main(int argc, char **argv)
{
	static struct client c;
	const struct command *what = find_command(argc, argv);
	unsigned long connections = 1, requests = 20000;
	const char *wrong = judge(what, argc, argv, &connections, &requests);
	if (wrong) {
		fprintf(stderr, "%s\n", wrong);
		return 2;
	}
	int rc = 1;
	if (!client_open(&c, argv[1], (unsigned)connections))
		rc = what->op == KV_OPS ? bench(&c, requests) : request(&c, what->op, argv[3], argc > 4 ? argv[4] : NULL);
	client_close(&c);
	return rc;
}

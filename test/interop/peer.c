/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of an interop test, told what to do line by line on standard input: the same program over uroce on the host and over libibverbs in the guest. It decides nothing; whoever writes the lines carries
 * QPNs, PSNs, GIDs and keys from one end to the other.
 *
 *     peer DEVICE            a device string of uroce, or the name of a verbs device
 *
 * A line is a command and key=value words (numbers in C notation); each is answered by one line, "ok key=value ..." or "error TEXT".
 *
 *     gids                                                   the GIDs, by index
 *     qp [service=rc srq=0 gid=0 bytes=1M access=15 rights=31 depth=128 qkey=0]    memory with these rights and a QP in INIT: qpn, rkey, foreign (a key of another PD), addr, gid
 *     connect own_psn= [qpn= psn= gid= mtu=1024 timeout=18 retry_cnt=7 rnr_retry=7 min_rnr=12 rd=16 dest_rd=16]    to RTS; UD takes own_psn alone
 *     aim gid= qpn= qkey=                                    UD: where datagrams go from now on
 *     join gid=, leave gid=                                  UD: a multicast group
 *     fill at= len= seed= [n=1 stride=0]                     bytes that follow from seed, of the next slot from seed + 1
 *     zero at= len= [n=1 stride=0]                           and bytes that nothing may write to
 *     check at= len= seed= [n=1 stride=0 ms=0]               whether they are so, within so long
 *     untouched at= len= [n=1 stride=0]
 *     arrived at= len= seed= of= [n=1 stride=0]              got: which of `of` messages each slot holds, - none
 *     bytes at= len=                                         hex
 *     word at= [set=]                                        eight bytes as a number
 *     bind at= len= [type=2]                                 a memory window there, for reading and writing: rkey
 *     unbind                                                 takes it away, type 2
 *     recv at= len= [n=1 stride=0]                           posts receives
 *     send op= [at= len= addr= rkey= imm= add= compare= swap= n=1 stride=0 window=depth ms=10000]    posts requests, not more than window outstanding; stops at an error
 *     wait [sends= recvs= ms=10000]                          until so many have completed since `qp`, however they did
 *     state, counters, why, destroy, quit
 *
 * wait answers: posted (sends), sends, recvs (completed in all), bad (not successes), first (status of the first of those; its wr), len, imm or inv (the key that was invalidated), src, grh (of the last receive), ms (that it took).
 * Owns the QP and what came of its WRs; the memory is peer_memory.c's to look at. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pattern.h"
#include "peer.h"

#define RECV_BIT (UINT64_C(1) << 63)
#define DRAIN_MS 5000u

static const char *const ops[STACK_OPS] = { "send", "send_imm", "write", "write_imm", "read", "cas", "fadd", "atomic_write", "flush", "send_inv" };

static const char *const services[STACK_SERVICES] = { "rc", "uc", "ud" };

static const char *const statuses[] = { "SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR", "MW_BIND_ERR", "BAD_RESP_ERR", "LOC_ACCESS_ERR",
	"REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR" };

const char *text_of(const struct line *l, const char *key)
{
	size_t len = strlen(key);
	for (unsigned i = 1; i < l->n; i++)
		if (!strncmp(l->word[i], key, len) && l->word[i][len] == '=')
			return l->word[i] + len + 1;
	return NULL;
}

uint64_t number_of(const struct line *l, const char *key, uint64_t otherwise)
{
	const char *text = text_of(l, key);
	return text ? strtoull(text, NULL, 0) : otherwise;
}

int answer_error(int err)
{
	printf("error %s\n", strerror(-err));
	return err;
}

uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int answer_ok(void)
{
	printf("ok\n");
	return 0;
}

static void print_gid(const char *key, const uint8_t gid[16])
{
	char text[INET6_ADDRSTRLEN];
	printf(" %s=%s", key, inet_ntop(AF_INET6, gid, text, sizeof(text)));
}

bool take_range(const struct peer *p, const struct line *l, struct range *r)
{
	*r = (struct range){ number_of(l, "at", 0), number_of(l, "len", 0), number_of(l, "n", 1), number_of(l, "stride", 0), number_of(l, "seed", 0) };
	return r->n && r->n <= 1 << 20 && r->stride <= p->bytes && r->len <= p->bytes && r->at <= p->bytes - r->len && (r->n - 1) * r->stride <= p->bytes - r->len - r->at;
}

static int do_gids(struct peer *p, const struct line *l)
{
	uint8_t gid[16];
	char key[16];
	printf("ok");
	for (uint32_t i = 0; i < 16; i++) {
		snprintf(key, sizeof(key), "%u", i);
		if (!stack_gid(p->stack, i, gid))
			print_gid(key, gid);
	}
	printf("\n");
	return 0;
}

/* Index of a key's value among names; n: none of them. */
static unsigned index_of(const struct line *l, const char *key, const char *otherwise, const char *const *names, unsigned n)
{
	const char *text = text_of(l, key);
	unsigned i = 0;
	while (i < n && strcmp(names[i], text ? text : otherwise))
		i++;
	return i;
}

static int do_destroy(struct peer *p, const struct line *l)
{
	if (p->has_qp)
		stack_destroy(p->stack);
	free(p->memory);
	*p = (struct peer){ .stack = p->stack };
	return answer_ok();
}

static int do_qp(struct peer *p, const struct line *l)
{
	struct stack_card card;
	unsigned service = index_of(l, "service", "rc", services, STACK_SERVICES);
	if (p->has_qp || service == STACK_SERVICES)
		return answer_error(p->has_qp ? -EEXIST : -EINVAL);
	p->service = (enum stack_service)service;
	p->bytes = number_of(l, "bytes", 1 << 20);
	p->depth = (uint32_t)number_of(l, "depth", 128);
	p->memory = p->bytes <= 1 << 30 ? aligned_alloc(4096, (p->bytes + 4095) & ~UINT64_C(4095)) : NULL;
	if (!p->memory)
		return answer_error(-ENOMEM);
	memset(p->memory, PATTERN_GUARD, p->bytes);
	p->has_qp = true;
	struct stack_plan plan = { p->service, number_of(l, "srq", 0), p->memory, p->bytes, (uint32_t)number_of(l, "gid", 0), (uint32_t)number_of(l, "access", 15),
		(uint32_t)number_of(l, "rights", 31), p->depth, (uint32_t)number_of(l, "qkey", 0) };
	int err = stack_create(p->stack, &plan, &card);
	if (err)
		return answer_error(err);
	printf("ok qpn=%u rkey=%u foreign=%u addr=%llu", card.qpn, card.rkey, card.foreign, (unsigned long long)(uintptr_t)p->memory);
	print_gid("gid", card.gid);
	printf("\n");
	return 0;
}

static bool take_gid(const struct line *l, uint8_t gid[16])
{
	const char *text = text_of(l, "gid");
	return text && inet_pton(AF_INET6, text, gid) == 1;
}

static int do_connect(struct peer *p, const struct line *l)
{
	struct stack_path path = { .qpn = (uint32_t)number_of(l, "qpn", 0), .psn = (uint32_t)number_of(l, "psn", 0), .own_psn = (uint32_t)number_of(l, "own_psn", 0),
		.mtu = (uint32_t)number_of(l, "mtu", 1024), .timeout = (uint8_t)number_of(l, "timeout", 18), .retry_cnt = (uint8_t)number_of(l, "retry_cnt", 7),
		.rnr_retry = (uint8_t)number_of(l, "rnr_retry", 7), .min_rnr_timer = (uint8_t)number_of(l, "min_rnr", 12), .max_rd_atomic = (uint8_t)number_of(l, "rd", 16),
		.max_dest_rd_atomic = (uint8_t)number_of(l, "dest_rd", 16) };
	if (!p->has_qp || (p->service != STACK_UD && !take_gid(l, path.gid)))
		return answer_error(-EINVAL);
	int err = stack_connect(p->stack, &path);
	return err ? answer_error(err) : answer_ok();
}

static int do_aim(struct peer *p, const struct line *l)
{
	struct stack_aim aim = { .qpn = (uint32_t)number_of(l, "qpn", 0), .qkey = (uint32_t)number_of(l, "qkey", 0) };
	if (!p->has_qp || p->service != STACK_UD || !take_gid(l, aim.gid))
		return answer_error(-EINVAL);
	int err = stack_aim(p->stack, &aim);
	return err ? answer_error(err) : answer_ok();
}

static int change_group(struct peer *p, const struct line *l, bool is_in)
{
	uint8_t gid[16];
	int err = p->has_qp && take_gid(l, gid) ? stack_join(p->stack, gid, is_in) : -EINVAL;
	return err ? answer_error(err) : answer_ok();
}

static int do_join(struct peer *p, const struct line *l)
{
	return change_group(p, l, true);
}

static int do_leave(struct peer *p, const struct line *l)
{
	return change_group(p, l, false);
}

static int do_recv(struct peer *p, const struct line *l)
{
	struct range r;
	int err = p->has_qp && take_range(p, l, &r) ? 0 : -EINVAL;
	for (uint64_t i = 0; !err && i < r.n; i++)
		err = stack_post_recv(p->stack, RECV_BIT | p->posted_recvs++, r.at + i * r.stride, (uint32_t)r.len);
	return err ? answer_error(err) : answer_ok();
}

/* Takes completions that are there. */
static int take_completions(struct peer *p)
{
	struct stack_wc wc[16];
	int n = stack_poll(p->stack, wc, 16);
	for (int i = 0; i < n; i++) {
		bool is_recv = wc[i].wr_id & RECV_BIT;
		(*(is_recv ? &p->recvs : &p->sends))++;
		if (wc[i].status && !p->bad++) {
			p->first_status = wc[i].status;
			p->first_wr = wc[i].wr_id & ~RECV_BIT;
		}
		if (is_recv && !wc[i].status)
			p->last_recv = wc[i];
	}
	if (!n)
		usleep(PAUSE_US);
	return n < 0 ? n : 0;
}

/* Until everything posted has completed: binds are not counted as requests by those who wait for these. */
static int drain_sends(struct peer *p)
{
	uint64_t start_ms = now_ms(), bad = p->bad;
	int err = 0;
	while (!err && p->sends < p->posted_sends)
		err = now_ms() - start_ms > DRAIN_MS ? -ETIMEDOUT : take_completions(p);
	return err ? err : p->bad != bad ? -EIO : 0;
}

static int do_bind(struct peer *p, const struct line *l)
{
	struct range r;
	uint32_t rkey;
	uint64_t type = number_of(l, "type", 2);
	int err = p->has_qp && take_range(p, l, &r) && (type == 1 || type == 2) ? stack_bind(p->stack, p->posted_sends, (int)type, r.at, r.len, &rkey) : -EINVAL;
	p->posted_sends += !err;
	err = err ? err : drain_sends(p);
	if (err)
		return answer_error(err);
	printf("ok rkey=%u\n", rkey);
	return 0;
}

static int do_unbind(struct peer *p, const struct line *l)
{
	int err = p->has_qp ? stack_unbind(p->stack, p->posted_sends) : -EINVAL;
	p->posted_sends += !err;
	err = err ? err : drain_sends(p);
	return err ? answer_error(err) : answer_ok();
}

static void answer_completions(const struct peer *p, uint64_t since_ms)
{
	unsigned known = sizeof(statuses) / sizeof(statuses[0]);
	printf("ok posted=%llu sends=%llu recvs=%llu bad=%llu first=%s wr=%llu len=%u ms=%llu", (unsigned long long)p->posted_sends, (unsigned long long)p->sends, (unsigned long long)p->recvs, (unsigned long long)p->bad,
		p->first_status < known ? statuses[p->first_status] : "OTHER", (unsigned long long)p->first_wr, p->last_recv.len, (unsigned long long)(now_ms() - since_ms));
	if (p->last_recv.has_imm)
		printf(" imm=%u", ntohl(p->last_recv.imm));
	if (p->last_recv.has_inv)
		printf(" inv=%u", p->last_recv.imm);
	if (p->last_recv.has_grh)
		printf(" grh=1 src=%u", p->last_recv.src_qpn);
	printf("\n");
}

static bool take_wr(const struct line *l, struct stack_wr *wr)
{
	unsigned op = index_of(l, "op", "", ops, STACK_OPS);
	*wr = (struct stack_wr){ .op = (enum stack_op)op, .remote_addr = number_of(l, "addr", 0), .rkey = (uint32_t)number_of(l, "rkey", 0), .imm = htonl((uint32_t)number_of(l, "imm", 0)),
		.compare_add = number_of(l, text_of(l, "add") ? "add" : "compare", 0), .swap = number_of(l, "swap", 0) };
	return op != STACK_OPS;
}

static int do_send(struct peer *p, const struct line *l)
{
	struct stack_wr wr;
	struct range r;
	uint64_t start_ms = now_ms(), limit_ms = number_of(l, "ms", 10000), window = number_of(l, "window", p->depth);
	int err = p->has_qp && take_range(p, l, &r) && take_wr(l, &wr) && window && window <= p->depth ? 0 : -EINVAL;
	for (uint64_t i = 0; !err && i < r.n && !p->bad;) {
		if (p->posted_sends - p->sends >= window) {
			err = now_ms() - start_ms > limit_ms ? -ETIMEDOUT : take_completions(p);
			continue;
		}
		wr.wr_id = p->posted_sends;
		wr.at = r.at + i * r.stride;
		wr.len = (uint32_t)r.len;
		err = stack_post_send(p->stack, &wr);
		p->posted_sends++;
		wr.remote_addr += r.stride;
		i++;
	}
	return err ? answer_error(err) : answer_ok();
}

static int do_wait(struct peer *p, const struct line *l)
{
	uint64_t start_ms = now_ms(), limit_ms = number_of(l, "ms", 10000), sends = number_of(l, "sends", 0), recvs = number_of(l, "recvs", 0);
	int err = p->has_qp ? 0 : -EINVAL;
	while (!err && (p->sends < sends || p->recvs < recvs) && now_ms() - start_ms < limit_ms)
		err = take_completions(p);
	if (err)
		return answer_error(err);
	answer_completions(p, start_ms);
	return 0;
}

static int do_state(struct peer *p, const struct line *l)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	int state = p->has_qp ? stack_state(p->stack) : -EINVAL;
	if (state < 0 || state > 6)
		return answer_error(state < 0 ? state : -EIO);
	printf("ok state=%s\n", names[state]);
	return 0;
}

static int do_counters(struct peer *p, const struct line *l)
{
	if (!p->has_qp)
		return answer_error(-EINVAL);
	printf("ok");
	stack_counters(p->stack, stdout);
	printf("\n");
	return 0;
}

static int do_why(struct peer *p, const struct line *l)
{
	char text[512] = "";
	if (!p->has_qp)
		return answer_error(-EINVAL);
	stack_why(p->stack, text, sizeof(text));
	printf("ok %s\n", text);
	return 0;
}

static const struct command commands[] = {
	{ "gids", do_gids }, { "qp", do_qp }, { "connect", do_connect }, { "aim", do_aim }, { "join", do_join }, { "leave", do_leave }, { "bind", do_bind }, { "unbind", do_unbind }, { "recv", do_recv }, { "send", do_send }, { "wait", do_wait }, { "state", do_state },
	{ "counters", do_counters }, { "why", do_why }, { "destroy", do_destroy }, { NULL, NULL },
};

static const struct command *find_command(const struct command *c, const char *name)
{
	while (c->name && strcmp(c->name, name))
		c++;
	return c->name ? c : NULL;
}

static void run_line(struct peer *p, char *text)
{
	struct line l = { .n = 0 };
	for (char *word = strtok(text, " \n"); word && l.n < WORDS_MAX; word = strtok(NULL, " \n"))
		l.word[l.n++] = word;
	const struct command *c = l.n ? find_command(commands, l.word[0]) : NULL;
	c = c || !l.n ? c : find_command(memory_commands, l.word[0]);
	if (c)
		c->run(p, &l);
	else
		printf("error no command %s\n", l.n ? l.word[0] : "");
}

int main(int argc, char **argv)
{
	static char text[4096];
	struct peer p = { 0 };
	int err = argc == 2 ? stack_open(&p.stack, argv[1]) : -EINVAL;
	if (err) {
		printf("error cannot open the device: %s\n", strerror(-err));
		return 1;
	}
	printf("ok %s\n", stack_name);
	fflush(stdout);
	while (fgets(text, sizeof(text), stdin) && strcmp(text, "quit\n")) {
		run_line(&p, text);
		fflush(stdout);
	}
	if (p.has_qp)
		stack_destroy(p.stack);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table of works. Invariant: both ends of a phase take their tally between the same two messages, and what they say to each other about it is in no tally. */
#include "work.h"

#include <stdio.h>
#include <string.h>

#include "tally.h"

#define PATIENCE_NS UINT64_C(100000000) /* what has not come after so long was lost */
#define CLOCK_EVERY 16u /* small messages, between two looks at the clock */
#define SMALL_BYTES 65536u

const struct work_row works[WORKS] = {
	[WORK_PINGPONG] = { "pingpong", "ping-pong: one message at a time, to and fro", 8, UINT64_C(16) << 20 },
	[WORK_STREAM] = { "stream", "stream: large messages one after the other, in one direction", 4096, UINT64_C(16) << 20 },
	[WORK_SMALL] = { "small", "many small messages in one direction, each handed over by itself", 8, 4095 },
};

int work_find(const char *name, size_t len)
{
	for (unsigned i = 0; i < WORKS; i++)
		if (strlen(works[i].name) == len && !memcmp(works[i].name, name, len))
			return (int)i;
	return -1;
}

static bool is_over(const struct phase *p, uint64_t before, uint64_t start_ns, uint64_t now_ns)
{
	return p->messages ? before + 1 >= p->messages : (double)(now_ns - start_ns) * 1e-9 >= p->seconds;
}

/* ---- the client ---- */

/* 1: the answer has come; 0: it is lost. */
static int wait_for_answer(struct link *l, uint32_t number, uint64_t since_ns)
{
	struct mark m;
	for (;;) {
		int came = l->transport->receive(l, &m);
		if (came > 0 && m.number == number)
			return 1;
		if (came < 0 || (!came && (came = link_wait(l)) < 0))
			return came;
		if (l->transport->may_lose && end_now() - since_ns > PATIENCE_NS)
			return 0;
	}
}

static int run_pingpong(struct link *l, const struct phase *p, struct outcome *o)
{
	uint64_t start_ns = end_now(), before_ns = start_ns, sent = 0;
	bool is_last = false;
	histogram_clear(&o->latency);
	while (!is_last) {
		is_last = is_over(p, sent, start_ns, before_ns);
		struct mark m = { ++l->number, is_last };
		int err = l->transport->send(l, m), came = err ? err : wait_for_answer(l, m.number, before_ns);
		if (came < 0)
			return came;
		uint64_t now_ns = end_now();
		if (came)
			histogram_add(&o->latency, (now_ns - before_ns) / 2);
		before_ns = now_ns;
		sent++;
	}
	o->seconds = (double)(before_ns - start_ns) * 1e-9;
	o->ends[0].messages = sent;
	return l->transport->settle ? l->transport->settle(l) : 0;
}

static int run_stream(struct link *l, const struct phase *p, struct outcome *o)
{
	uint64_t start_ns = end_now(), sent = 0;
	bool is_last = false;
	while (!is_last) {
		bool is_time = p->messages || l->size >= SMALL_BYTES || sent % CLOCK_EVERY == 0;
		is_last = is_time && is_over(p, sent, start_ns, p->messages ? 0 : end_now());
		int err = l->transport->send(l, (struct mark){ ++l->number, is_last });
		if (err)
			return err;
		sent++;
	}
	o->ends[0].messages = sent;
	int err = l->transport->settle ? l->transport->settle(l) : 0;
	o->seconds = (double)(end_now() - start_ns) * 1e-9;
	return err;
}

/* Of a stream all has arrived when the server says so; where something may be lost, that is no end. */
static int hear_tally(struct link *l, struct outcome *o, uint64_t since_ns)
{
	json_t *answer = link_hear(l);
	if (!answer)
		return -1;
	bool is_fine = tally_unpack(answer, &o->ends[1]);
	json_decref(answer);
	if (l->work != WORK_PINGPONG && !l->transport->may_lose)
		o->seconds += (double)(end_now() - since_ns) * 1e-9;
	if (!is_fine)
		return link_fail(l, "the other end's tally makes no sense");
	if (!l->transport->may_lose && o->ends[1].messages != o->ends[0].messages)
		return link_fail(l, "%llu messages were sent, and %llu came", (unsigned long long)o->ends[0].messages, (unsigned long long)o->ends[1].messages);
	return 0;
}

static int begin(struct link *l, const struct phase *p)
{
	if (link_say(l, json_pack("{s:b}", "phase", p->is_counted)))
		return -1;
	json_t *ready = link_hear(l);
	json_decref(ready);
	return ready ? 0 : -1;
}

int work_run(struct link *l, const struct phase *p, pid_t daemon, struct outcome *o)
{
	struct tally_watch w;
	memset(o, 0, sizeof(*o));
	int err = tally_open(&w, l, p->is_counted, daemon);
	if (!err)
		err = begin(l, p);
	if (!err) {
		tally_begin(&w, l);
		err = l->work == WORK_PINGPONG ? run_pingpong(l, p, o) : run_stream(l, p, o);
		uint64_t since_ns = end_now();
		tally_end(&w, l, &o->ends[0]);
		if (!err)
			err = link_say(l, json_pack("{s:b}", "end", 1));
		if (!err)
			err = hear_tally(l, o, since_ns);
	}
	tally_close(&w);
	return err;
}

/* ---- the server ---- */

/* Until the last message, or until the client goes on without. */
static int answer(struct link *l, uint64_t *came)
{
	struct mark m = { 0 };
	while (!m.is_last) {
		int n = l->transport->receive(l, &m);
		if (!n) {
			n = link_wait(l);
			if (n)
				return n < 0 ? n : 0;
			continue;
		}
		if (n < 0 || (l->work == WORK_PINGPONG && l->transport->send(l, m)))
			return -1;
		++*came;
	}
	return l->transport->settle ? l->transport->settle(l) : 0;
}

int work_serve(struct link *l, json_t *message, pid_t daemon)
{
	struct tally_watch w;
	struct tally t = { 0 };
	int err = tally_open(&w, l, json_is_true(json_object_get(message, "phase")), daemon);
	if (!err)
		err = link_say(l, json_pack("{s:b}", "ready", 1));
	if (!err) {
		tally_begin(&w, l);
		err = answer(l, &t.messages);
		tally_end(&w, l, &t);
	}
	tally_close(&w);
	json_t *end = err ? NULL : exchange_read(l->exchange);
	bool is_end = json_object_get(end, "end");
	if (is_end)
		json_decref(end);
	else if (!err)
		exchange_unread(l->exchange, end); /* it gave up */
	return err || !is_end ? err : link_say(l, tally_pack(&t));
}

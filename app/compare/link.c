/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table of transports and the patience of all of them. */
#include "link.h"

#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "reason.h"

#define LOOK_EVERY 0x10000u /* empty looks of a spinning transport between two looks at the clock */
#define LOOK_NS UINT64_C(500000000)
#define STUCK_NS UINT64_C(20000000000)

/* In the order in which they are shown. */
static const struct transport *const transports[] = { &link_tcp, &link_tcp_spin, &link_udp, &link_udp_spin, &link_uroce };

const struct transport *transport_at(unsigned i)
{
	return i < sizeof(transports) / sizeof(transports[0]) ? transports[i] : NULL;
}

int transport_find(const char *name, size_t len)
{
	for (unsigned i = 0; transport_at(i); i++)
		if (strlen(transports[i]->name) == len && !memcmp(transports[i]->name, name, len))
			return (int)i;
	return -1;
}

int link_fail(struct link *l, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int err = reason_keep(l->error, sizeof(l->error), format, args);
	va_end(args);
	return err;
}

int link_open(struct link *l)
{
	l->fd = -1;
	int err = l->transport->open(l);
	l->is_connected = !err;
	return err;
}

void link_close(struct link *l)
{
	l->transport->close(l);
}

int link_wait(struct link *l)
{
	l->empty++;
	if (l->transport->is_spinning && l->empty % LOOK_EVERY && l->empty != 1)
		return 0;
	uint64_t now_ns = end_now();
	if (l->empty == 1)
		l->quiet_since_ns = now_ns;
	else if (now_ns - l->quiet_since_ns > STUCK_NS)
		return link_fail(l, "nothing has come or gone for %llu s", (unsigned long long)(STUCK_NS / 1000000000));
	/* A look at the exchange is a system call, which would be counted: only when there is reason to. */
	if ((l->transport->is_spinning && now_ns - l->quiet_since_ns < LOOK_NS) || !exchange_is_ready(l->exchange))
		return 0;
	return l->is_client ? link_fail(l, "the other end gave up") : 1;
}

int link_wait_for_room(struct link *l)
{
	int err = link_wait(l);
	return err > 0 ? link_fail(l, "the other end gave up") : err;
}

json_t *link_hear(struct link *l)
{
	return exchange_hear(l->exchange, "the other end", l->error, sizeof(l->error));
}

int link_say(struct link *l, json_t *message)
{
	return exchange_send(l->exchange, message) ? link_fail(l, "the other end is gone") : 0;
}

void mark_put(uint8_t *at, uint32_t number, uint32_t more)
{
	const uint32_t words[2] = { htobe32(number), htobe32(more) };
	memcpy(at, words, sizeof(words));
}

void mark_get(const uint8_t *at, uint32_t *number, uint32_t *more)
{
	uint32_t words[2];
	memcpy(words, at, sizeof(words));
	*number = be32toh(words[0]);
	*more = be32toh(words[1]);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a QP is in ERR, as one sentence made of the record that the engine keeps. The words are in strings.c; this file puts peer, tries and PSNs into them. */
#include "error_sentence.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cause.h"
#include "client.h"

struct sentence {
	char *text;
	size_t room;
	size_t len; /* wanted so far, more than room when it was cut */
};

__attribute__((format(printf, 2, 3))) static void add(struct sentence *s, const char *format, ...)
{
	va_list args;
	int n;
	va_start(args, format);
	n = vsnprintf(s->len < s->room ? s->text + s->len : NULL, s->len < s->room ? s->room - s->len : 0, format, args);
	va_end(args);
	if (n > 0)
		s->len += (size_t)n;
}

static void add_peer(struct sentence *s, const struct abi_qp_error *e)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool is_ip4 = !memcmp(e->peer, mapped, sizeof(mapped));
	char addr[INET6_ADDRSTRLEN] = "?";
	inet_ntop(is_ip4 ? AF_INET : AF_INET6, is_ip4 ? e->peer + 12 : e->peer, addr, sizeof(addr));
	add(s, "%s QP 0x%x", addr, e->peer_qpn);
}

static void add_sent(struct sentence *s, const struct abi_qp_error *e)
{
	add(s, "%u", e->retries + 1);
}

static void add_rnr_sent(struct sentence *s, const struct abi_qp_error *e)
{
	add(s, "%u", e->rnr_retries + 1);
}

static const struct {
	const char *name;
	void (*add)(struct sentence *s, const struct abi_qp_error *e);
} words[] = {
	{ "{peer}", add_peer },
	{ "{sent}", add_sent },
	{ "{rnr_sent}", add_rnr_sent },
};

/* Puts one word in the place of its name and returns what follows the name. */
static const char *expand_word(struct sentence *s, const char *at, const struct abi_qp_error *e)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i].name);
		if (!strncmp(at, words[i].name, len)) {
			words[i].add(s, e);
			return at + len;
		}
	}
	add(s, "%c", *at);
	return at + 1;
}

static void expand(struct sentence *s, const char *template, const struct abi_qp_error *e)
{
	while (*template) {
		size_t plain = strcspn(template, "{");
		add(s, "%.*s", (int)plain, template);
		template += plain;
		if (*template)
			template = expand_word(s, template, e);
	}
}

int error_sentence(char *text, size_t len, uint32_t qpn, const struct abi_qp_error *e)
{
	struct sentence sentence = { .text = text, .room = len }, *s = &sentence;
	if (e->cause == CAUSE_NONE) {
		add(s, "QP 0x%x: moved to ERR by the program", qpn);
		return (int)s->len;
	}
	add(s, "QP 0x%x: ", qpn);
	/* That this QP's own requests were flushed is not why it is in ERR. */
	if (e->status && e->status != ABI_WC_WR_FLUSH_ERR)
		add(s, "%s: ", uroce_wc_status_str((enum uroce_wc_status)e->status));
	expand(s, strings_cause_sentence(e->cause), e);
	/* A QP that never had a peer has no PSNs either. */
	if (e->peer_qpn)
		add(s, ": last PSN sent 0x%02x, last acknowledged 0x%02x", e->last_psn_sent, e->last_psn_acked);
	return (int)s->len;
}

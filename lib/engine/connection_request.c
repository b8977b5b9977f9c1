/* SPDX-License-Identifier: BSD-3-Clause */
/* One request of a client: carried out by its poll core, within its and its user's quotas, and with more memory where the core asks for it. The core decides what a request may do; what it cannot know is here: other clients.
 * Invariant: from REQUEST to REPLY c->request is the request under way, and the client has no other. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gid.h"
#include "server_inside.h"

#define GROWTHS_MAX 4u /* a QP has two rings, each may need a region */

struct request_mail {
	struct mail mail;
	struct connection *c;
	struct core_usage most, used;
	struct abi_rep *rep;
	uint64_t lacks; /* bytes of the region without which it cannot be done */
	int fd;         /* of the completion channel that it made, or -1 */
};

static void run_request(struct mail *mail, uint64_t now_ns)
{
	struct request_mail *m = (struct request_mail *)mail;
	struct core_client *k = m->c->client;
	core_client_set_quota(k, &m->most);
	core_control(k, now_ns, &m->c->request, m->rep);
	core_client_usage(k, &m->used);
	if (m->rep->status == -ENOBUFS)
		m->lacks = core_client_lacks(k);
	if (m->c->request.type == ABI_CREATE_CHANNEL && !m->rep->status)
		m->fd = core_client_channel_fd(k, m->rep->handle);
}

/* ---- answers ---- */

static void reply(struct connection *c, struct ctl_message *m, int channel_fd)
{
	struct ctl_message channel;
	if (c->state != CONNECTION_READY)
		connection_enter(c, CONNECTION_READY, 0);
	if (channel_fd >= 0) {
		m->reply.channel.fd = -1; /* a number of this process's */
		if (!connection_send(c, CTL_CHANNEL, &channel, channel_fd))
			return;
	}
	connection_send(c, CTL_REPLY, m, -1);
}

/* The server's own refusal, after the core was not asked or gave no answer that counts. */
__attribute__((format(printf, 3, 4))) static void refuse(struct connection *c, int error, const char *format, ...)
{
	struct ctl_message m;
	va_list args;
	memset(&m, 0, sizeof(m));
	m.reply.type = c->request.type;
	m.reply.sequence = c->request.sequence;
	m.reply.status = error;
	va_start(args, format);
	vsnprintf(m.reply.text, sizeof(m.reply.text), format, args);
	va_end(args);
	reply(c, &m, -1);
}

static void note_refusal(struct connection *c, enum server_count count, const char *text)
{
	server_note(c->server, count, LOG_WARN, "client pid %ld uid %u %s: %s", (long)c->peer.pid, c->peer.uid, c->program, text);
}

/* ---- more memory ---- */

static uint64_t add_bytes(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* Quotas count what is used of regions; but a region stays until its client ends, and a client that asks for ever larger pieces and gives them back would make more and more of them. So a client, or a user, whose regions
 * have reached what they may use gets no further one. Looked at when the job's turn has come: one region is made at a time, so nobody overtakes the sums. */
static bool may_grow(struct job *j)
{
	struct connection *c = connection_of_job(j);
	const struct server_config *config = &c->server->config;
	if (c->grown_bytes < add_bytes(config->client.ring_bytes, config->client.pool_bytes) && c->user->grown_bytes < add_bytes(config->uid.ring_bytes, config->uid.pool_bytes))
		return true;
	c->has_job = false;
	note_refusal(c, SERVER_REFUSED_QUOTA, "has as many regions as its quotas of rings and pool memory fill, and what is free in them is in pieces");
	refuse(c, -EDQUOT, "quota: %llu bytes of regions are in use by this client, %llu by its user, and what is free in them is in pieces", (unsigned long long)c->grown_bytes,
		(unsigned long long)c->user->grown_bytes);
	return false;
}

static void work_region(struct job *j)
{
	struct connection *c = connection_of_job(j);
	c->job_err = region_make(&c->server->regions, c->bytes, &j->is_cancelled, &c->base, &c->fd);
	c->is_orphan = !c->job_err;
}

static void on_region_made(struct job *j)
{
	struct connection *c = connection_of_job(j);
	c->has_job = false;
	if (c->state == CONNECTION_ENDING)
		return;
	int err = c->job_err;
	if (!err)
		err = core_client_add_region(c->client, c->base, c->bytes, c->fd, &c->arena);
	if (err && c->is_orphan)
		region_free(c->base, c->bytes, c->fd);
	c->is_orphan = false;
	if (err) {
		refuse(c, err == -ENOMEM ? err : -ENOMEM, "no memory for a region of %llu bytes: %s", (unsigned long long)c->bytes, strerror(-err));
		return;
	}
	c->grown_bytes += c->bytes;
	c->user->grown_bytes += c->bytes;
	connection_offer_region(c);
}

static void grow(struct connection *c, uint64_t bytes)
{
	if (c->growths++ == GROWTHS_MAX) {
		refuse(c, -ENOMEM, "%u new regions were not enough for it", GROWTHS_MAX);
		return;
	}
	c->bytes = bytes;
	connection_post_job(c, may_grow, work_region, on_region_made);
}

/* ---- peers (known-bugs N1) ---- */

/* Whether the request connects a QP, or changes its path, to a peer QP. */
static bool names_peer(const struct connection *c, struct peer_key *key)
{
	const struct abi_req *req = &c->request;
	if (req->type != ABI_MODIFY_QP || !(req->modify_qp.mask & ABI_QP_AV))
		return false;
	memset(key, 0, sizeof(*key));
	memcpy(key->gid, req->modify_qp.attr.av.dgid, sizeof(key->gid));
	key->qpn = req->modify_qp.attr.dest_qpn;
	return req->modify_qp.mask & ABI_QP_DEST_QPN || peers_qpn(&c->holds, req->modify_qp.qp, &key->qpn);
}

static bool take_peer(struct connection *c, const struct peer_key *key)
{
	char gid[GID_TEXT_MAX], text[ABI_TEXT_MAX];
	struct gid g;
	int err = peers_take(&c->server->peers, &c->holds, c->request.modify_qp.qp, c->peer.uid, key);
	if (!err)
		return true;
	memcpy(g.b, key->gid, sizeof(g.b));
	if (err == -EACCES) {
		snprintf(text, sizeof(text), "a QP of another user is connected to QP 0x%x of %s, and the peer could not tell the two apart", key->qpn, gid_format(&g, gid));
		note_refusal(c, SERVER_REFUSED_PEER, text);
		refuse(c, err, "%s", text);
	} else {
		refuse(c, err, "out of memory");
	}
	return false;
}

static void release_peer(struct connection *c)
{
	const struct abi_req *req = &c->request;
	if (req->type == ABI_DESTROY_QP)
		peers_release(&c->server->peers, &c->holds, req->handle);
	else if (req->type == ABI_MODIFY_QP && req->modify_qp.mask & ABI_QP_STATE && req->modify_qp.attr.state == ABI_QP_RESET)
		peers_release(&c->server->peers, &c->holds, req->modify_qp.qp);
}

/* ---- carrying out ---- */

void connection_repeat_request(struct connection *c)
{
	struct server *s = c->server;
	struct ctl_message answer;
	struct request_mail m = { .mail.run = run_request, .c = c, .rep = &answer.reply, .fd = -1 };
	struct peer_key key;
	bool has_peer = names_peer(c, &key);
	memset(&answer, 0, sizeof(answer));
	if (has_peer && !take_peer(c, &key))
		return;
	m.most = quota_most(c->user, &c->used, &s->config.client, &s->config.uid);
	engine_carry_out(c->core, &m.mail);
	quota_update(c->user, &c->used, &m.used);
	c->used = m.used;
	if (has_peer)
		peers_settle(&s->peers, &c->holds, c->request.modify_qp.qp, !answer.reply.status);
	else if (!answer.reply.status)
		release_peer(c);
	if (m.lacks) {
		grow(c, m.lacks);
		return;
	}
	if (answer.reply.status == -EDQUOT)
		note_refusal(c, SERVER_REFUSED_QUOTA, answer.reply.text);
	reply(c, &answer, m.fd);
}

void connection_request(struct connection *c, const struct abi_req *req)
{
	if (connection_has_unread(c))
		return;
	c->request = *req;
	c->growths = 0;
	connection_repeat_request(c);
}

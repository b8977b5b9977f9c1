/* SPDX-License-Identifier: BSD-3-Clause */
/* See link_watch.h. Owns an rtnetlink socket that is told of every link; only one of them counts.
 * Invariant: after a lost notification the kernel is asked anew, so what is believed never stays behind what is. */
#include "link_watch.h"

#include <errno.h>
#include <net/if.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <linux/rtnetlink.h>

#define ANSWER_MS 1000

struct link_watch {
	struct nl_sock *socket;
	int index;
	bool is_up;
};

static int on_message(struct nl_msg *m, void *arg)
{
	struct link_watch *w = arg;
	const struct nlmsghdr *h = nlmsg_hdr(m);
	if (h->nlmsg_type != RTM_NEWLINK && h->nlmsg_type != RTM_DELLINK)
		return NL_OK;
	if (!nlmsg_valid_hdr(h, sizeof(struct ifinfomsg)))
		return NL_SKIP;
	const struct ifinfomsg *link = nlmsg_data(h);
	if (link->ifi_family != AF_UNSPEC) /* a bridge tells of a port, and of its leaving, as of a link that is gone */
		return NL_OK;
	if (link->ifi_index == w->index)
		w->is_up = h->nlmsg_type == RTM_NEWLINK && (link->ifi_flags & IFF_UP) && (link->ifi_flags & IFF_RUNNING);
	return NL_OK;
}

/* The answer comes like any other news. */
static int ask(struct link_watch *w)
{
	struct ifinfomsg link = { .ifi_index = w->index };
	int err = nl_send_simple(w->socket, RTM_GETLINK, 0, &link, sizeof(link));
	return err < 0 ? -EPROTO : 0;
}

static int open_socket(struct link_watch *w)
{
	nl_socket_modify_cb(w->socket, NL_CB_VALID, NL_CB_CUSTOM, on_message, w);
	nl_socket_disable_auto_ack(w->socket);
	nl_socket_disable_seq_check(w->socket);
	if (nl_connect(w->socket, NETLINK_ROUTE) || nl_socket_set_nonblocking(w->socket) || nl_socket_add_memberships(w->socket, RTNLGRP_LINK, 0))
		return -EPROTONOSUPPORT;
	return ask(w);
}

int link_watch_open(struct link_watch **out, uint32_t interface_index)
{
	struct link_watch *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->index = (int)interface_index;
	w->socket = nl_socket_alloc();
	int err = w->socket ? open_socket(w) : -ENOMEM;
	if (err) {
		link_watch_close(w);
		return err;
	}
	poll(&(struct pollfd){ .fd = nl_socket_get_fd(w->socket), .events = POLLIN }, 1, ANSWER_MS);
	link_watch_is_up(w);
	*out = w;
	return 0;
}

bool link_watch_is_up(struct link_watch *w)
{
	int err;
	while (!(err = nl_recvmsgs_default(w->socket)))
		;
	if (err == -NLE_NOMEM) /* more came than the socket holds */
		ask(w);
	return w->is_up;
}

void link_watch_close(struct link_watch *w)
{
	if (!w)
		return;
	nl_socket_free(w->socket);
	free(w);
}

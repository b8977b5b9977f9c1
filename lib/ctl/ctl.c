/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of control messages: what each is called, how long it is, who sends it, and whether a descriptor comes with it. */
#include "ctl.h"

#define BODY(member) sizeof(((struct ctl_message *)0)->member)

const struct ctl_row ctl_rows[CTL_TYPE_COUNT] = {
	[CTL_HELLO] = { "HELLO", BODY(hello), .is_from_client = true },
	[CTL_WELCOME] = { "WELCOME", BODY(welcome), .has_fd = true, .is_from_daemon = true },
	[CTL_WAKE] = { "WAKE", 0, .has_fd = true, .is_from_daemon = true },
	[CTL_ASYNC] = { "ASYNC", 0, .has_fd = true, .is_from_daemon = true },
	[CTL_REGION] = { "REGION", BODY(region), .has_fd = true, .is_from_daemon = true },
	[CTL_MAPPED] = { "MAPPED", BODY(mapped), .is_from_client = true },
	[CTL_READY] = { "READY", 0, .is_from_daemon = true },
	[CTL_REQUEST] = { "REQUEST", BODY(request), .is_from_client = true },
	[CTL_CHANNEL] = { "CHANNEL", 0, .has_fd = true, .is_from_daemon = true },
	[CTL_REPLY] = { "REPLY", BODY(reply), .is_from_daemon = true },
	[CTL_BYE] = { "BYE", BODY(bye), .is_from_client = true, .is_from_daemon = true },
	[CTL_OPERATOR] = { "OPERATOR", BODY(operator), .is_from_client = true },
	[CTL_SHOW] = { "SHOW", BODY(show), .is_from_client = true },
	[CTL_GID_ADD] = { "GID_ADD", BODY(gid_add), .is_from_client = true },
	[CTL_GID_DEL] = { "GID_DEL", BODY(gid_del), .is_from_client = true },
	[CTL_CLIENT_KILL] = { "CLIENT_KILL", BODY(client_kill), .is_from_client = true },
	[CTL_CAPTURE_START] = { "CAPTURE_START", BODY(capture_start), .has_fd = true, .is_from_client = true },
	[CTL_CAPTURE_STOP] = { "CAPTURE_STOP", 0, .is_from_client = true },
	[CTL_ANSWER] = { "ANSWER", BODY(answer), .is_from_daemon = true },
	[CTL_REPORT] = { "REPORT", BODY(report), .has_fd = true, .is_from_daemon = true },
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* urocectl: the operator's hand on a running daemon. Owns the table of commands. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "complain.h"

const struct command commands[] = {
	{ "show", "show NOUN [MEMBER=VALUE...]", "device, port, gid, neigh, client, qp, cq, mr, drops, cores", show_run },
	{ "watch", "watch", "rates, retransmissions and drops of clients and QPs, like top; q ends it", watch_run },
	{ "gid", "gid add ADDRESS/PREFIX [vlan N]", "give the port an address", gid_run },
	{ "gid", "gid del INDEX|ADDRESS [vlan N]", "take one away; QPs that use it go on", gid_run },
	{ "client", "client kill ID", "end a client, as show client numbers them", client_run },
	{ "capture", "capture FILE [qp N]", "the frames of the port, or of one QP, as pcapng", capture_run },
	{ NULL, NULL, NULL, NULL },
};

static int run(int argc, char **argv)
{
	struct options o;
	bool is_done;
	int code = options_parse(argc, argv, &o, &is_done);
	if (code || is_done)
		return code;
	if (!o.words)
		return complain_usage("no command: expected show, watch, gid, client or capture; see urocectl --help");
	for (unsigned i = 0; commands[i].name; i++)
		if (!strcmp(commands[i].name, o.word[0]))
			return commands[i].run(&o);
	return complain_usage("%s: expected show, watch, gid, client or capture", o.word[0]);
}

/* What nobody could read was not shown. */
int main(int argc, char **argv)
{
	int code = run(argc, argv), err = fflush(stdout) ? errno : ferror(stdout) ? EIO : 0;
	return code || !err ? code : complain_refused("standard output: %s", strerror(err));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* client kill: the daemon lets go of a client, which is told that an operator ended it. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "complain.h"
#include "dialogue.h"

int client_run(const struct options *o)
{
	struct ctl_message m;
	struct ctl_answer answer;
	struct dialogue talk;
	uint64_t id;
	if (o->words != 3 || strcmp(o->word[1], "kill"))
		return complain_usage("client: expected client kill ID, with an ID of urocectl show client");
	if (!options_number(o->word[2], UINT64_MAX, &id))
		return complain_usage("client kill %s: expected a number, an id of urocectl show client", o->word[2]);
	memset(&m, 0, sizeof(m));
	m.client_kill.id = id;
	bool is_done = dialogue_open(&talk, o->socket) && dialogue_ask(&talk, CTL_CLIENT_KILL, &m, -1, &answer);
	dialogue_close(&talk);
	if (is_done)
		printf(o->is_json ? "{\"id\": %llu}\n" : "client %llu is ended\n", (unsigned long long)id);
	return is_done ? EXIT_FINE : EXIT_REFUSED;
}

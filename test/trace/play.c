/* SPDX-License-Identifier: BSD-3-Clause */
/* From the lines of a script to what they do. Owns the process that it is played in; not the lines' meaning (steps.c). */
#include "play.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steps.h"

void play(FILE *script, const char *name)
{
	static struct line l;
	char text[1024];
	unsigned number = 0;
	struct world *w = world_new();
	while (fgets(text, sizeof(text), script)) {
		fail_in(name, &l, world_show);
		if (line_parse(&l, text, ++number))
			step_run(w, &l);
	}
	fclose(script);
	if (!w->core)
		fail("an empty script");
	step_end(w);
	world_free(w);
}

bool play_apart(FILE *script, const char *name)
{
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		play(script, name);
		fflush(stdout);
		exit(0);
	}
	fclose(script);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return false;
	if (WIFSIGNALED(status))
		printf("%s: ended by signal %d\n", name, WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

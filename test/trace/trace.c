/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs trace scripts: `trace FILE` one, `trace FOLDER` each *.trace in it, in a process of its own, so that one that crashes is one failure. Writes TAP. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steps.h"

static void run_script(const char *path)
{
	static struct line l;
	char text[1024];
	unsigned number = 0;
	FILE *f = fopen(path, "r");
	struct world *w = world_new();
	if (!f) {
		perror(path);
		exit(1);
	}
	const char *name = strrchr(path, '/');
	while (fgets(text, sizeof(text), f)) {
		fail_in(name ? name + 1 : path, &l, world_show);
		if (line_parse(&l, text, ++number))
			step_run(w, &l);
	}
	fclose(f);
	if (!w->core)
		fail("an empty script");
	step_end(w);
	world_free(w);
}

static bool run_apart(const char *path)
{
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		run_script(path);
		fflush(stdout);
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return false;
	if (WIFSIGNALED(status))
		printf("%s: ended by signal %d\n", path, WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int is_trace(const struct dirent *e)
{
	size_t n = strlen(e->d_name);
	return n > 6 && !strcmp(e->d_name + n - 6, ".trace");
}

static int run_folder(const char *folder)
{
	struct dirent **names;
	char path[4096];
	int failed = 0, n = scandir(folder, &names, is_trace, alphasort);
	printf("1..%d\n", n);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
		bool is_ok = run_apart(path);
		failed += !is_ok;
		printf("%sok %d - %.*s\n", is_ok ? "" : "not ", i + 1, (int)strlen(names[i]->d_name) - 6, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return failed || n <= 0;
}

int main(int argc, char **argv)
{
	struct stat s;
	if (argc != 2 || stat(argv[1], &s)) {
		fprintf(stderr, "usage: trace FILE|FOLDER\n");
		return 2;
	}
	if (S_ISDIR(s.st_mode))
		return run_folder(argv[1]);
	run_script(argv[1]);
	return 0;
}

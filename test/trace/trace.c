/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs trace scripts: `trace FILE` one, `trace FOLDER` each *.trace in it. Writes TAP. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "play.h"

static FILE *open_script(const char *path)
{
	FILE *f = fopen(path, "r");
	if (f)
		return f;
	perror(path);
	exit(1);
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
		bool is_ok = play_apart(open_script(path), names[i]->d_name);
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
	const char *name = strrchr(argv[1], '/');
	play(open_script(argv[1]), name ? name + 1 : argv[1]);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target over files, without a fuzzer: the seeds in every build, whatever the compiler, and a file that a fuzzer left behind. Arguments are files and folders. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned files;

static void run_file(const char *path)
{
	static uint8_t data[1u << 20];
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		exit(1);
	}
	size_t n = fread(data, 1, sizeof(data), f);
	fclose(f);
	files++;
	fprintf(stderr, "%s\n", path);
	LLVMFuzzerTestOneInput(data, n);
}

static void run_folder(const char *path)
{
	char name[4096];
	struct dirent *e;
	DIR *d = opendir(path);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
			run_file(name);
		}
	if (d)
		closedir(d);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct stat s;
		if (!stat(argv[i], &s) && S_ISDIR(s.st_mode))
			run_folder(argv[i]);
		else
			run_file(argv[i]);
	}
	printf("%u files\n", files);
	return files ? 0 : 1;
}

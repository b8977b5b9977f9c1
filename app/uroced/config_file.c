/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads configuration files; knows nothing of what their sections and keys mean.
 * Invariant: rte_cfgfile sees only files whose every line check_line accepted. By itself it passes over a line without "=", cuts long names and values, and says nothing about a key before the first section. */
#include "config_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cfgfile.h>

#define COMMENT '#'
#define LINE_MAX_CHARS (CFG_NAME_LEN + CFG_VALUE_LEN)

/* Cuts white space off both ends. */
static char *trim(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	char *end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = 0;
	return text;
}

/* What is wrong with a line, or NULL. Comments are cut off as rte_cfgfile does it: at the first mark, unless a backslash is in front of it. */
static const char *check_line(char *line, bool *has_section)
{
	if (strlen(line) > LINE_MAX_CHARS)
		return "is too long: expected at most 320 characters";
	char *comment = strchr(line, COMMENT);
	if (comment && (comment == line || comment[-1] != '\\'))
		*comment = 0;
	bool is_indented = isspace((unsigned char)*line);
	line = trim(line);
	if (!*line)
		return NULL;
	if (*line == '[') {
		char *end = strchr(line, ']');
		*has_section = true;
		return end && !end[1] && end - line < CFG_NAME_LEN && !is_indented ? NULL : "is no section: expected [name], alone and at the start of its line";
	}
	char *value = strchr(line, '=');
	if (!value)
		return "has no \"=\": expected key = value";
	*value++ = 0;
	if (!*trim(line) || !*trim(value))
		return "has nothing on one side of \"=\": expected key = value (a key that is left out has its default)";
	if (strlen(trim(line)) >= CFG_NAME_LEN || strlen(trim(value)) >= CFG_VALUE_LEN)
		return "is too long: expected a key of at most 63 characters and a value of at most 255";
	return *has_section ? NULL : "is in no section: expected [port] or another section above it";
}

static bool check_lines(const char *path, FILE *err)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	const char *wrong = NULL;
	size_t room = 0;
	unsigned number = 0;
	bool has_section = false;
	errno = f ? 0 : errno;
	while (f && !wrong && getline(&line, &room, f) >= 0) {
		number++;
		wrong = check_line(line, &has_section);
	}
	if (wrong)
		fprintf(err, "uroced: %s: line %u %s\n", path, number, wrong);
	else if (!f || ferror(f))
		fprintf(err, "uroced: %s: cannot be read: %s\n", path, strerror(errno));
	bool is_right = f && !ferror(f) && !wrong;
	if (f)
		fclose(f);
	free(line);
	return is_right;
}

static bool take_section(struct rte_cfgfile *file, int index, bool (*take)(void *arg, const char *section, const char *key, const char *value), void *arg)
{
	char section[CFG_NAME_LEN];
	int count = rte_cfgfile_section_num_entries_by_index(file, section, index);
	struct rte_cfgfile_entry *entries = calloc((size_t)count + 1, sizeof(*entries));
	if (!entries)
		return false;
	bool is_right = true;
	rte_cfgfile_section_entries_by_index(file, index, section, entries, count);
	for (int i = 0; i < count && is_right; i++)
		is_right = take(arg, section, entries[i].name, entries[i].value);
	if (!count)
		is_right = take(arg, section, NULL, NULL);
	free(entries);
	return is_right;
}

bool config_file_read(const char *path, bool (*take)(void *arg, const char *section, const char *key, const char *value), void *arg, FILE *err)
{
	static const struct rte_cfgfile_parameters parameters = { .comment_character = COMMENT };
	if (!check_lines(path, err))
		return false;
	struct rte_cfgfile *file = rte_cfgfile_load_with_params(path, 0, &parameters);
	if (!file) {
		fprintf(err, "uroced: %s: cannot be read: librte_cfgfile refuses it\n", path);
		return false;
	}
	bool is_right = true;
	int sections = rte_cfgfile_num_sections(file, NULL, 0);
	for (int i = 0; i < sections && is_right; i++)
		is_right = take_section(file, i, take, arg);
	rte_cfgfile_close(file);
	return is_right;
}

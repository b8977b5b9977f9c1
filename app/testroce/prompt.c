/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the terminal's settings while it reads from it, and gives them back. Editing and history are librte_cmdline's; what a line means, and how it goes on, is the grammar's. */
#include "prompt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <cmdline_rdline.h>

#define LOOK_MS 100
#define PROMPT "testroce> "
#define COMPLETED 2 /* what rdline's completion may answer: the rest of a word, */
#define ANOTHER 1   /* or one of several */

static volatile sig_atomic_t is_interrupted;

static void on_signal(int number)
{
	is_interrupted = 1;
}

void prompt_catch_signals(void)
{
	struct sigaction a = { .sa_handler = on_signal };
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

bool prompt_is_interrupted(void)
{
	return is_interrupted;
}

static void carry_out(struct lab *lab, const char *line)
{
	fflush(stdout);
	grammar_run(lab->grammar, line);
	fflush(stdout);
}

/* ---- waiting ---- */

/* Whether standard input has something, after at most ms. */
static bool has_input(int ms)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	return poll(&p, 1, ms) > 0;
}

bool prompt_wait(struct lab *lab, double seconds, bool until_key)
{
	for (uint64_t end_ns = end_now() + (uint64_t)(seconds * 1e9); end_now() < end_ns && !is_interrupted && !lab->is_quitting;) {
		uint64_t left_ms = (end_ns - end_now()) / 1000000 + 1;
		int ms = left_ms < LOOK_MS ? (int)left_ms : LOOK_MS;
		if (until_key && has_input(ms))
			return true;
		if (!until_key)
			poll(NULL, 0, ms);
		lab_look(lab);
		fflush(stdout);
	}
	return false;
}

/* ---- files and pipes ---- */

int prompt_run_file(struct lab *lab, const char *path)
{
	char line[2 * GRAMMAR_WORD_MAX];
	int wrong = 0;
	FILE *f = fopen(path, "re");
	if (!f) {
		fprintf(stderr, "cannot read %s: %s (expected: a file with a command a line)\n", path, strerror(errno));
		return -1;
	}
	while (!lab->is_quitting && !is_interrupted && fgets(line, sizeof(line), f)) {
		fflush(stdout);
		wrong += grammar_run(lab->grammar, line) != 0;
		lab_look(lab);
		fflush(stdout);
	}
	fclose(f);
	return wrong;
}

static void run_pipe(struct lab *lab)
{
	char line[2 * GRAMMAR_WORD_MAX];
	size_t have = 0;
	while (!lab->is_quitting && !is_interrupted) {
		if (!has_input(LOOK_MS)) {
			lab_look(lab);
			fflush(stdout);
			continue;
		}
		ssize_t n = read(STDIN_FILENO, line + have, 1);
		if (n < 1)
			return;
		if (line[have] != '\n' && have + 2 < sizeof(line)) {
			have++;
			continue;
		}
		line[have] = 0;
		have = 0;
		carry_out(lab, line);
	}
}

/* ---- a terminal ---- */

static int write_char(struct rdline *r, char c)
{
	return write(STDOUT_FILENO, &c, 1) == 1 ? 1 : -1;
}

static void on_line(struct rdline *r, const char *line, unsigned int size)
{
	carry_out(rdline_get_opaque(r), line);
}

/* What all words have that can stand here, beyond what is there already. */
static unsigned find_common(const struct grammar *g, const char *line, char *to, size_t room, unsigned *count)
{
	unsigned part, common = 0;
	const char *word;
	to[0] = 0;
	for (*count = 0; (word = grammar_complete(g, line, *count, &part)); ++*count) {
		if (!*count)
			snprintf(to, room, "%s", word + part);
		for (common = 0; to[common] && to[common] == word[part + common];)
			common++;
		to[common] = 0;
	}
	return common;
}

/* state: 0 at first when TAB was pressed, -1 for ?; then what we left there: the number of the word to be listed next. */
static int complete(struct rdline *r, const char *line, char *to, unsigned int size, int *state)
{
	const struct lab *lab = rdline_get_opaque(r);
	unsigned count, part;
	if (*state == 0) {
		unsigned common = find_common(lab->grammar, line, to, size, &count);
		if (!count)
			return 0;
		if (count == 1)
			snprintf(to + common, size - common, " ");
		if (count == 1 || common)
			return COMPLETED;
	}
	const char *word = grammar_complete(lab->grammar, line, *state > 0 ? (unsigned)*state : 0, &part);
	if (!word)
		return 0;
	snprintf(to, size, "%s", word);
	*state = *state > 0 ? *state + 1 : 1;
	return ANOTHER;
}

static bool take_char(struct lab *lab, struct rdline *r)
{
	char c;
	if (read(STDIN_FILENO, &c, 1) != 1)
		return false;
	int what = rdline_char_in(r, c);
	if (what == RDLINE_RES_VALIDATED) {
		const char *line = rdline_get_buffer(r);
		if (line[0] && line[0] != '\n')
			rdline_add_history(r, line);
		if (!lab->is_quitting)
			rdline_newline(r, PROMPT);
	}
	return what != RDLINE_RES_EOF && what != RDLINE_RES_EXITED;
}

static void run_terminal(struct lab *lab, const struct termios *usual)
{
	struct termios raw = *usual;
	struct rdline *r = rdline_new(write_char, on_line, complete, lab);
	if (!r) {
		fprintf(stderr, "no memory for a prompt\n");
		return;
	}
	raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO | ISIG);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	rdline_newline(r, PROMPT);
	while (!lab->is_quitting && !is_interrupted) {
		if (has_input(LOOK_MS)) {
			if (!take_char(lab, r))
				break;
		} else if (lab_look(lab)) {
			fflush(stdout);
			rdline_redisplay(r);
		}
	}
	tcsetattr(STDIN_FILENO, TCSANOW, usual);
	rdline_free(r);
	printf("\n");
}

void prompt_run(struct lab *lab)
{
	struct termios usual;
	fflush(stdout);
	if (tcgetattr(STDIN_FILENO, &usual))
		run_pipe(lab);
	else
		run_terminal(lab, &usual);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the terminal's settings while it reads from it, and gives them back. Editing and history are librte_cmdline's; what a line means, and how it goes on, is the grammar's. */
#include "prompt.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <cmdline_rdline.h>

#include "interrupt.h"

#define PROMPT "testroce> "
#define FILES_MAX 8u
#define COMPLETED 2 /* what rdline's completion may answer: the rest of a word, */
#define ANOTHER 1   /* or one of several */

/* Whether it went wrong. */
static bool carry_out(struct lab *lab, const char *line)
{
	fflush(stdout);
	bool is_wrong = grammar_run(lab->grammar, line) != 0;
	fflush(stdout);
	return is_wrong;
}

/* ---- waiting ---- */

/* Whether standard input has something, after at most ms. */
static bool has_input(int ms)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	return poll(&p, 1, ms) > 0;
}

/* A character, or a line's end for the end of the input. */
static bool has_ended(char *c)
{
	ssize_t n;
	do
		n = read(STDIN_FILENO, c, 1);
	while (n < 0 && errno == EINTR && !interrupt_is_there());
	if (n < 1)
		*c = '\n';
	return n < 1;
}

bool prompt_wait(struct lab *lab, double seconds, bool until_input)
{
	for (uint64_t end_ns = end_now() + (uint64_t)(seconds * 1e9); end_now() < end_ns && !interrupt_is_there() && !lab->is_quitting;) {
		uint64_t left_ms = (end_ns - end_now()) / 1000000 + 1;
		int ms = left_ms < INTERRUPT_LOOK_MS ? (int)left_ms : INTERRUPT_LOOK_MS;
		if (until_input && has_input(ms))
			return true;
		if (!until_input)
			poll(NULL, 0, ms);
		lab_look(lab);
		fflush(stdout);
	}
	return false;
}

bool prompt_is_closed(void)
{
	char c;
	return has_ended(&c);
}

/* ---- files and pipes ---- */

/* How many of them went wrong. */
static int run_lines(struct lab *lab, FILE *f)
{
	char *line = NULL;
	size_t room = 0;
	int wrong = 0;
	while (!lab->is_quitting && !interrupt_is_there() && getline(&line, &room, f) >= 0) {
		wrong += carry_out(lab, line);
		lab_look(lab);
		fflush(stdout);
	}
	free(line);
	return wrong;
}

int prompt_run_file(struct lab *lab, const char *path)
{
	if (lab->files == FILES_MAX)
		return lab_fail("%s is not read: expected files that load each other no more than %u deep", path, FILES_MAX);
	FILE *f = fopen(path, "re");
	int wrong = 0;
	if (f) {
		lab->files++;
		wrong = run_lines(lab, f);
		lab->files--;
	}
	if (!f || ferror(f)) {
		lab_fail("cannot read %s: %s (expected: a file with a command a line)", path, strerror(errno));
		wrong = -1;
	}
	if (f)
		fclose(f);
	return wrong;
}

/* How many lines went wrong; the last one needs no newline. */
static int run_pipe(struct lab *lab)
{
	char line[2 * GRAMMAR_WORD_MAX], c;
	size_t have = 0;
	int wrong = 0;
	for (bool is_over = false; !is_over && !lab->is_quitting && !interrupt_is_there();) {
		if (!has_input(INTERRUPT_LOOK_MS)) {
			lab_look(lab);
			fflush(stdout);
			continue;
		}
		is_over = has_ended(&c);
		if (is_over && interrupt_is_there())
			break; /* what was begun was not sent off */
		if (c != '\n') { /* what is too long to be kept is too long to be a command */
			line[have] = c;
			have += have + 2 < sizeof(line);
			continue;
		}
		line[have] = 0;
		have = 0;
		wrong += carry_out(lab, line);
		lab_look(lab);
		fflush(stdout);
	}
	return wrong;
}

/* ---- a terminal ---- */

struct terminal {
	struct lab *lab;
	const struct termios *usual; /* settings, to be given back */
};

static int write_char(struct rdline *r, char c)
{
	return write(STDOUT_FILENO, &c, 1) == 1 ? 1 : -1;
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

/* state: 0 at first when TAB was pressed, -1 for ?; then what we left there: the number of the hint to be listed next. */
static int complete(struct rdline *r, const char *line, char *to, unsigned int size, int *state)
{
	const struct lab *lab = ((const struct terminal *)rdline_get_opaque(r))->lab;
	unsigned count;
	if (*state == 0) {
		unsigned common = find_common(lab->grammar, line, to, size, &count);
		if (count == 1)
			snprintf(to + common, size - common, " ");
		if (count == 1 || common)
			return COMPLETED;
	}
	const char *hint = grammar_hint(lab->grammar, line, *state > 0 ? (unsigned)*state : 0);
	if (!hint)
		return 0;
	snprintf(to, size, "%s", hint);
	*state = *state > 0 ? *state + 1 : 1;
	return ANOTHER;
}

/* While a command runs Control-C is a signal, which ends the command and not the program; else it is a key, which empties the line. */
static void set_terminal(const struct termios *usual, bool has_signals)
{
	struct termios t = *usual;
	t.c_lflag &= (tcflag_t) ~(ICANON | ECHO | ISIG);
	t.c_lflag |= has_signals ? ISIG : 0;
	tcsetattr(STDIN_FILENO, TCSANOW, &t);
}

static void on_line(struct rdline *r, const char *line, unsigned int size)
{
	struct terminal *t = rdline_get_opaque(r);
	set_terminal(t->usual, true);
	t->lab->is_at_prompt = false;
	carry_out(t->lab, line);
	t->lab->is_at_prompt = true;
	set_terminal(t->usual, false);
	if (interrupt_is_there() && !interrupt_is_final()) {
		printf("interrupted\n");
		interrupt_forget();
	}
}

static bool take_char(struct terminal *t, struct rdline *r)
{
	char c;
	ssize_t n = read(STDIN_FILENO, &c, 1);
	if (n != 1)
		return n < 0 && errno == EINTR; /* whose signal it was is looked at there */
	int what = rdline_char_in(r, c);
	if (what == RDLINE_RES_VALIDATED) {
		const char *line = rdline_get_buffer(r);
		if (line[0] && line[0] != '\n')
			rdline_add_history(r, line);
		if (!t->lab->is_quitting)
			rdline_newline(r, PROMPT);
	}
	return what != RDLINE_RES_EOF && what != RDLINE_RES_EXITED;
}

static void run_terminal(struct lab *lab, const struct termios *usual)
{
	struct terminal t = { lab, usual };
	struct rdline *r = rdline_new(write_char, on_line, complete, &t);
	if (!r) {
		fprintf(stderr, "no memory for a prompt\n");
		return;
	}
	set_terminal(usual, false);
	lab->is_at_prompt = true;
	rdline_newline(r, PROMPT);
	while (!lab->is_quitting && !interrupt_is_there()) {
		if (has_input(INTERRUPT_LOOK_MS)) {
			if (!take_char(&t, r))
				break;
		} else if (lab_look(lab)) {
			fflush(stdout);
			rdline_redisplay(r);
		}
	}
	lab->is_at_prompt = false;
	tcsetattr(STDIN_FILENO, TCSANOW, usual);
	rdline_free(r);
	printf("\n");
}

int prompt_run(struct lab *lab)
{
	struct termios usual;
	fflush(stdout);
	if (tcgetattr(STDIN_FILENO, &usual))
		return run_pipe(lab);
	run_terminal(lab, &usual);
	return 0;
}

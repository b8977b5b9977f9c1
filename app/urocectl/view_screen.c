/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the terminal while watch runs, by ncurses: q, Ctrl-C or SIGTERM gives it back. Invariant: nothing else writes to it meanwhile. */
#include <curses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "complain.h"
#include "view.h"

#define KEY_CTRL_C 3
#define LINES_AROUND 9 /* the head, the port, titles and what is between them */

static SCREEN *screen;
static json_t *last; /* to be drawn again when the terminal has another size */
static volatile sig_atomic_t is_over;

static void on_end(int number)
{
	is_over = 1;
}

static bool open_screen(void)
{
	const char *kind = getenv("TERM");
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		complain_usage("TERM is %s: expected a terminal that ncurses knows; or --json, or a pipe", kind ? kind : "not set");
		return false;
	}
	signal(SIGTERM, on_end);
	raw(); /* Ctrl-C is a key then */
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	return true;
}

static void close_screen(void)
{
	endwin();
	delscreen(screen);
	json_decref(last);
	last = NULL;
}

/* A third of what there is for clients, if there are so many. */
static char *render(const json_t *sample)
{
	char *text = NULL;
	size_t len, room = LINES > LINES_AROUND + 3 ? (size_t)(LINES - LINES_AROUND) : 3, clients = json_array_size(json_object_get(sample, "clients"));
	clients = clients < room / 3 + 1 ? clients : room / 3 + 1;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	view_print(out, sample, clients, room - clients);
	fclose(out);
	return text;
}

static void draw(void)
{
	char *text = render(last), *line = text, *rest = text;
	int y = 0;
	erase();
	while (rest && (line = strsep(&rest, "\n")) && y < LINES - 1)
		mvaddnstr(y++, 0, line, COLS);
	attron(A_REVERSE);
	mvaddnstr(LINES - 1, 0, " urocectl watch: q ends it ", COLS);
	attroff(A_REVERSE);
	refresh();
	free(text);
}

static void show(const json_t *sample)
{
	json_decref(last);
	last = json_deep_copy(sample);
	draw();
}

static double get_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool wait_for_key(double seconds)
{
	double end = get_now() + seconds, left;
	while (!is_over && (left = end - get_now()) > 0) {
		timeout((int)(left * 1000) + 1);
		int key = getch();
		if (key == 'q' || key == 'Q' || key == KEY_CTRL_C)
			return false;
		if (key == KEY_RESIZE && last)
			draw();
	}
	return !is_over;
}

const struct view view_screen = { open_screen, show, wait_for_key, close_screen };

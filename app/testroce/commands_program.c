/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands about the program itself. */
#include <stdio.h>

#include "commands.h"
#include "lab.h"
#include "lesson.h"
#include "prompt.h"

static int help(struct lab *lab, const struct value *v, unsigned given)
{
	if (grammar_help(lab->grammar, given ? v->text : NULL))
		return 0;
	return lab_fail("\"%s\": expected the first word of a command, or a section: program, traffic, ports, links, objects, memory or wrs; help alone lists them all", v->text);
}

static int wait_seconds(struct lab *lab, const struct value *v, unsigned given)
{
	prompt_wait(lab, (double)v->number / 1000, false);
	return 0;
}

static int load(struct lab *lab, const struct value *v, unsigned given)
{
	return prompt_run_file(lab, v->text);
}

static int quit(struct lab *lab, const struct value *v, unsigned given)
{
	lab->is_quitting = true;
	return 0;
}

static int lesson(struct lab *lab, const struct value *v, unsigned given)
{
	return lesson_run(lab->is_interactive);
}

const struct command commands_program[] = {
	{ "help [<word>]", help, "all commands, those of a section, or those that begin with a word" },
	{ "lesson", lesson, "the life of a SEND step by step, then WRITE, READ, and a socket beside it" },
	{ "wait <seconds>", wait_seconds, "for scripts" },
	{ "load <file>", load, "carry out the commands of a file" },
	{ "quit", quit, "end" },
	{ .pattern = NULL },
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the flags that the signals set; nothing else writes them but interrupt_forget. */
#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t is_there, is_final;

static void on_signal(int number)
{
	is_there = 1;
	if (number == SIGTERM)
		is_final = 1;
}

void interrupt_catch(void)
{
	struct sigaction a = { .sa_handler = on_signal };
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

bool interrupt_is_there(void)
{
	return is_there;
}

bool interrupt_is_final(void)
{
	return is_final;
}

void interrupt_forget(void)
{
	is_there = 0;
	is_final = 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the system calls of the thread that starts it: a child process looks on as a debugger does (ptrace), so that what is said about the kernel's part is counted and not claimed. Not for fast paths: each call takes microseconds longer. */
#ifndef TESTROCE_TRACER_H
#define TESTROCE_TRACER_H

#include <stddef.h>
#include <stdint.h>

struct tracer;

/* 0; a negative errno: this process may not be traced (a container's rules, a debugger). */
int tracer_start(struct tracer **out);
/* NULL is fine. */
void tracer_stop(struct tracer *t);
/* Calls so far; takes none itself. */
uint64_t tracer_calls(const struct tracer *t);
/* The names of those from number `from` on, at most room characters: "sendto, recvfrom". */
void tracer_name(const struct tracer *t, uint64_t from, char *text, size_t room);

#endif

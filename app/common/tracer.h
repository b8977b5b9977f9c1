/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the system calls of the thread that starts it, or of all threads that its process then has: a child process looks on as a debugger does (ptrace), so that what is said about the kernel's part is counted and not claimed. Not for fast paths: each call takes microseconds longer. */
#ifndef APP_TRACER_H
#define APP_TRACER_H

#include <stddef.h>
#include <stdint.h>

struct tracer;

enum tracer_scope { TRACER_THREAD, TRACER_PROCESS };

/* 0; a negative errno: this process may not be traced (a container's rules, a debugger). */
int tracer_start(enum tracer_scope scope, struct tracer **out);
/* NULL is fine. */
void tracer_stop(struct tracer *t);
/* Calls so far; takes none itself. */
uint64_t tracer_calls(const struct tracer *t);
/* Calls so far of one number; bytes that calls so far have copied between this process and the kernel: those that send, recv, read, write and their kin returned. */
uint64_t tracer_calls_of(const struct tracer *t, unsigned number);
uint64_t tracer_bytes(const struct tracer *t);
#define TRACER_NUMBERS 512u /* calls with higher numbers are counted, but not each */
/* "sendto"; NULL: not one of those that have a name here. */
const char *tracer_call_name(unsigned number);
/* The names of those from number `from` on, at most room characters: "sendto, recvfrom". */
void tracer_name(const struct tracer *t, uint64_t from, char *text, size_t room);

#endif

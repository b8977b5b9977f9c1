/* SPDX-License-Identifier: BSD-3-Clause */
/* Two network namespaces with a veth pair between them, made for a test and removed after it: sides 0 and 1, interfaces u0 and u1. Needs root. */
#ifndef UROCE_TEST_NETNS_H
#define UROCE_TEST_NETNS_H

#include <stdint.h>

/* Group set-up and tear-down of cmocka. Where there can be no namespaces, says so, and netns_make_pair skips the test. */
int netns_make(void **state);
int netns_drop(void **state);
/* A fresh pair: 10.2.0.1 and fd02::1 on u0, 10.2.0.2 and fd02::2 on u1. */
void netns_make_pair(uint32_t mtu);
/* The calling thread into a side's namespace; a failure ends the process. */
void netns_enter(int side);
const char *netns_name(int side);
/* A shell command; its exit status as system() says it. */
__attribute__((format(printf, 1, 2))) int netns_run(const char *format, ...);

#endif

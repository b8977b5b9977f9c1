/* SPDX-License-Identifier: BSD-3-Clause */
/* A page whose first fault stands still until it is let go: what a hostile process can have the kernel copy from or to (userfaultfd; a file system of its own would do as well). */
#ifndef UROCE_TEST_HELD_PAGE_H
#define UROCE_TEST_HELD_PAGE_H

#include <stdbool.h>

struct held_page {
	int fd;
	void *at;
};

/* false: this process may not, or the kernel cannot. */
bool held_page_open(struct held_page *h);
/* Waits until somebody stands still at it, for so long at most. */
bool held_page_is_wanted(const struct held_page *h, int ms);
/* Whoever waits goes on; the page is zero. */
void held_page_let_go(struct held_page *h);
void held_page_close(struct held_page *h);

#endif

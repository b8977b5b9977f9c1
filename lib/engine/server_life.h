/* SPDX-License-Identifier: BSD-3-Clause */
/* The page that tells clients whether the daemon lives (struct ctl_life). */
#ifndef UROCE_SERVER_LIFE_H
#define UROCE_SERVER_LIFE_H

union life_page;

struct server_life {
	union life_page *page;
	int fd; /* to be sent to clients: all that they can do with it is read */
};

/* Makes the page. Until server_life_end, or until this thread ends in whatever way, the page says that there is life. 0 or a negative errno. */
int server_life_begin(struct server_life *l);
/* Same thread. Says nothing to clients that still map the page. Fine when nothing was begun and l is { NULL, -1 }. */
void server_life_end(struct server_life *l);

#endif

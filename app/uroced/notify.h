/* SPDX-License-Identifier: BSD-3-Clause */
/* What a service manager is told. Without libsystemd, or where nobody asked (NOTIFY_SOCKET, WATCHDOG_USEC), all of this does nothing. */
#ifndef UROCED_NOTIFY_H
#define UROCED_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Whether it was built in. */
bool notify_is_there(void);
/* It serves; status is one line for `systemctl status`. */
void notify_ready(const char *status);
void notify_stopping(const char *status);
/* How often notify_alive is expected, in microseconds; 0: never. */
uint64_t notify_interval_us(void);
void notify_alive(void);

#endif

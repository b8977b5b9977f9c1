/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the words of sd_notify(3), where libsystemd was built in; without it the same calls, which do nothing. */
#include "notify.h"

#ifdef HAVE_SYSTEMD

#include <systemd/sd-daemon.h>

bool notify_is_there(void)
{
	return true;
}

void notify_ready(const char *status)
{
	sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void notify_stopping(const char *status)
{
	sd_notifyf(0, "STOPPING=1\nSTATUS=%s", status);
}

uint64_t notify_interval_us(void)
{
	uint64_t limit_us;
	/* Half of what is allowed, as sd_watchdog_enabled(3) has it. */
	return sd_watchdog_enabled(0, &limit_us) > 0 ? limit_us / 2 : 0;
}

void notify_alive(void)
{
	sd_notify(0, "WATCHDOG=1");
}

#else

bool notify_is_there(void)
{
	return false;
}

void notify_ready(const char *status)
{
}

void notify_stopping(const char *status)
{
}

uint64_t notify_interval_us(void)
{
	return 0;
}

void notify_alive(void)
{
}

#endif

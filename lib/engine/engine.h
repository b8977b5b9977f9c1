/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine: one port, one core, and the thread that drives them (embedded) or none (inline: its clients' threads take turns). Opened by device string; a second open of the same port attaches to the engine that runs. */
#ifndef UROCE_ENGINE_H
#define UROCE_ENGINE_H

#include "device_string.h"
#include "engine_stats.h"
#include "log.h"
#include "mailbox.h"

struct core;
struct engine;
struct fault_port;
struct port;

/* One program's hold on an engine. log is copied: used for this open, and by the engine as long as this is its oldest hold. 0 or a negative errno after one log line. */
int engine_open(struct engine **out, const char *device, const struct log *log);
/* Gives up the hold that engine_open with this log took; the last one stops the engine and closes its port. Frames already built are sent first. */
void engine_close(struct engine *e, const struct log *log);

/* Has m run by the thread that drives the engine and waits until it has; in inline mode this thread drives meanwhile. Any thread. */
void engine_carry_out(struct engine *e, struct mail *m);
/* Inline: one round on this thread: frames and mail handled. -EBUSY: another thread is in it. -EOPNOTSUPP: the engine has its own thread. */
int engine_poll(struct engine *e);
/* The engine sleeps and there is work. Any thread. */
void engine_wake(struct engine *e);

/* The engine behind a session that uroce_engine_session_open made: for tests and programs that show an engine's counters. */
struct engine *engine_of_session(void *session);
struct core *engine_core(struct engine *e);
const struct port *engine_port(const struct engine *e);
/* What key fault= put in front of the port (fault_dpdk.h), or NULL. */
struct fault_port *engine_fault(const struct engine *e);
enum device_mode engine_mode(const struct engine *e);
/* As it was within the last round or so; not exact while the engine runs. */
void engine_stats(const struct engine *e, struct engine_stats *stats);

#endif

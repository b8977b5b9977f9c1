/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine: one port and its cores, each an RX/TX queue pair, a stack (struct core) and the thread that drives them (embedded, served) or none (inline: its clients' threads take turns). Opened by device string; a second open of the same
 * port in this process attaches to the engine that runs. */
#ifndef UROCE_ENGINE_H
#define UROCE_ENGINE_H

#include <stdbool.h>

#include "device_string.h"
#include "engine_stats.h"
#include "log.h"
#include "mailbox.h"

struct core;
struct engine;
struct engine_core;
struct fault_port;
struct multicast;
struct port;

#define ENGINE_CORES_MAX DEVICE_CORES_MAX

/* One program's hold on an engine. log is copied: used for this open, and by the engine as long as this is its oldest hold. 0 or a negative errno after one log line. */
int engine_open(struct engine **out, const char *device, const struct log *log);
/* Gives up the hold that engine_open with this log took; the last one stops the engine and closes its port. Frames already built are sent first. */
void engine_close(struct engine *e, const struct log *log);

unsigned engine_cores(const struct engine *e);
struct engine_core *engine_core_at(struct engine *e, unsigned i);
/* Counts a client in on the core that has the fewest, and out again. Any thread. */
struct engine_core *engine_core_choose(struct engine *e);
void engine_core_leave(struct engine_core *ec);
unsigned engine_core_index(const struct engine_core *ec);

/* Has m run by the thread that drives the core and waits until it has; in inline mode this thread drives meanwhile. Then does what follows of it and may wait: the port lets multicast groups in or shuts them out. Any thread but a poll core. */
void engine_carry_out(struct engine_core *ec, struct mail *m);
/* Inline: one round on this thread: frames and mail handled. -EBUSY: another thread is in it. -EOPNOTSUPP: the engine has its own threads. */
int engine_poll(struct engine_core *ec);
/* The core sleeps and there is work. Any thread. */
void engine_wake(struct engine_core *ec);
/* An eventfd that ends the core's sleep too whenever it is written to; it is never read. Any thread. 0 or a negative errno. */
int engine_core_watch(struct engine_core *ec, int fd);
void engine_core_unwatch(struct engine_core *ec, int fd);

/* The engine core behind a session that uroce_engine_session_open made: for tests and programs that show an engine's counters. */
struct engine_core *engine_core_of_session(void *session);
struct engine *engine_of_session(void *session);
struct core *engine_core_stack(struct engine_core *ec);
const struct port *engine_port(const struct engine *e);
struct multicast *engine_multicast(const struct engine *e);
/* What key fault=, or engine_fault_set, put in front of the core's queue (fault_dpdk.h), or NULL. */
struct fault_port *engine_core_fault(const struct engine_core *ec);
enum device_mode engine_mode(const struct engine *e);
/* Its addresses are those of a kernel interface, and follow it. */
bool engine_has_kernel_addresses(const struct engine *e);
const struct log *engine_log(const struct engine *e);
/* As it was within the last round or so; not exact while the engine runs. */
void engine_core_stats(const struct engine_core *ec, struct engine_stats *stats);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* uroced: an engine, its server and what signals ask of them. The main thread is the control thread: it starts the server and ends last, so that clients are told of any end but a kill by the server itself, and of that by the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "notify.h"
#include "port.h"
#include "port_lock.h"
#include "server.h"
#include "settings.h"
#include "show.h"

/* What a signal asks for; the rest is done by main between two runs of the server. */
static const struct wish {
	int signal;
	const char *name;
	bool is_end;
} wishes[] = {
	{ SIGTERM, "SIGTERM", true },
	{ SIGINT, "SIGINT", true },
	{ SIGUSR1, "SIGUSR1", false },
	{ SIGHUP, "SIGHUP", false },
	{ SIGALRM, "SIGALRM", false }, /* time to tell the watchdog */
};
#define WISHES (sizeof(wishes) / sizeof(wishes[0]))

static struct {
	_Atomic uint32_t wanted; /* one bit a signal's number */
	_Atomic(struct server *) server;
} signals;

static void on_signal(int number)
{
	int saved = errno;
	struct server *s = atomic_load_explicit(&signals.server, memory_order_acquire);
	atomic_fetch_or_explicit(&signals.wanted, 1u << number, memory_order_relaxed);
	if (s)
		server_quit(s);
	errno = saved;
}

/* Only the main thread takes these: the threads of engine and DPDK are made while they are blocked. */
static void block_signals(int how)
{
	sigset_t set;
	sigemptyset(&set);
	for (unsigned i = 0; i < WISHES; i++)
		sigaddset(&set, wishes[i].signal);
	pthread_sigmask(how, &set, NULL);
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	sigfillset(&action.sa_mask);
	for (unsigned i = 0; i < WISHES; i++)
		sigaction(wishes[i].signal, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* The watchdog is told from the loop that serves: a loop that hangs is a daemon that hangs. */
static void start_watchdog(void)
{
	uint64_t us = notify_interval_us();
	struct timeval each = { .tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000) };
	if (us)
		setitimer(ITIMER_REAL, &(struct itimerval){ each, each }, NULL);
}

/* ---- log ---- */

/* Under systemd each line carries its priority, sd-daemon(3). */
static void write_line(void *arg, enum log_level level, const char *line)
{
	static const char *const names[] = { [LOG_ERROR] = "error: ", [LOG_WARN] = "warning: ", [LOG_INFO] = "", [LOG_DEBUG] = "" };
	static const int priorities[] = { [LOG_ERROR] = 3, [LOG_WARN] = 4, [LOG_INFO] = 6, [LOG_DEBUG] = 7 };
	const bool *is_journal = arg;
	if (*is_journal)
		fprintf(stderr, "<%d>%s\n", priorities[level], line);
	else
		fprintf(stderr, "uroced: %s%s\n", names[level], line);
}

/* ---- parts ---- */

/* The folder of the socket, if it is not there: true if it was made, and is to be removed. */
static int make_folder(const char *socket_path, bool *is_made, const struct log *log)
{
	char path[SETTINGS_PATH_MAX];
	snprintf(path, sizeof(path), "%s", socket_path);
	const char *folder = dirname(path);
	mode_t mask = umask(022);
	*is_made = !mkdir(folder, 0755);
	int err = *is_made || errno == EEXIST ? 0 : -errno;
	umask(mask);
	if (err)
		log_write(log, LOG_ERROR, "folder %s of the socket cannot be made: %s", folder, strerror(-err));
	return err;
}

static void remove_folder(const char *socket_path)
{
	char path[SETTINGS_PATH_MAX];
	snprintf(path, sizeof(path), "%s", socket_path);
	rmdir(dirname(path)); /* somebody else's files in it: then it stays */
}

/* Serves until a signal asks for the end; that signal's name. */
static const char *serve(struct server *s, const struct log *log)
{
	notify_ready("serving");
	start_watchdog();
	for (;;) {
		server_run(s);
		uint32_t wanted = atomic_exchange_explicit(&signals.wanted, 0, memory_order_relaxed);
		for (unsigned i = 0; i < WISHES; i++)
			if (wishes[i].is_end && wanted & 1u << wishes[i].signal)
				return wishes[i].name;
		if (wanted & 1u << SIGALRM)
			notify_alive();
		if (wanted & 1u << SIGUSR1) {
			server_report(s, stdout);
			fflush(stdout);
		}
		if (wanted & 1u << SIGHUP)
			log_write(log, LOG_WARN, "SIGHUP is ignored: settings are read at the start only; restart to have others");
	}
}

static void say_goodbye(struct server *s, const char *signal_name, time_t since)
{
	char text[CTL_TEXT_MAX], last[160];
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(last, sizeof(last), "ended by %s after %lld s: %llu clients served, %u of them until now", signal_name, (long long)(now.tv_sec - since), (unsigned long long)server_count(s, SERVER_ATTACHED),
		server_clients(s));
	notify_stopping(last);
	snprintf(text, sizeof(text), "uroced is going down (%s)", signal_name);
	atomic_store_explicit(&signals.server, NULL, memory_order_release);
	server_stop(s, CTL_BYE_SHUTDOWN, text);
	printf("uroced: %s\n", last);
	fflush(stdout);
}

/* With the engine up: 0, or 1 after a log line. */
static int run_server(struct settings *set, struct engine *e, const struct log *log)
{
	struct server *s;
	struct timespec start;
	clock_gettime(CLOCK_MONOTONIC, &start);
	set->server.node = engine_port(e)->node;
	set->server.log = log;
	if (server_start(&s, e, &set->server))
		return 1;
	show_device(stdout, e, set);
	atomic_store_explicit(&signals.server, s, memory_order_release);
	catch_signals();
	block_signals(SIG_UNBLOCK);
	const char *signal_name = serve(s, log);
	say_goodbye(s, signal_name, start.tv_sec);
	return 0;
}

static int run(struct settings *set, const struct log *log)
{
	struct engine *e;
	bool has_made_folder = false;
	int lock, rc = 1;
	if (port_lock(&set->parsed, log, &lock))
		return 1;
	if (!make_folder(set->path, &has_made_folder, log) && !engine_open(&e, set->device, log)) {
		rc = run_server(set, e, log);
		engine_close(e, log);
	}
	if (has_made_folder)
		remove_folder(set->path);
	if (lock >= 0)
		close(lock);
	return rc;
}

int main(int argc, char **argv)
{
	static struct settings set;
	bool is_journal = getenv("JOURNAL_STREAM") != NULL;
	enum settings_outcome outcome = settings_read(&set, argc, argv, stdout, stderr);
	if (outcome != SETTINGS_RUN)
		return outcome == SETTINGS_WRONG ? 2 : 0;
	struct log log = { write_line, &is_journal, set.log_level };
	block_signals(SIG_BLOCK);
	return run(&set, &log);
}

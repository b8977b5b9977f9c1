/* SPDX-License-Identifier: BSD-3-Clause */
/* capture: opens the file and gives it to the daemon, which empties it and writes into it until this program says so, or is gone in whatever way. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "complain.h"
#include "dialogue.h"

static const int endings[] = { SIGINT, SIGTERM, SIGHUP };

/* Readable when one of them has come. Before anything is started, so that none is missed. */
static int catch_endings(void)
{
	sigset_t set;
	sigemptyset(&set);
	for (unsigned i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		sigaddset(&set, endings[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* *is_new: there was nothing. What there was stays until the daemon has agreed, and empties the file: it may be the one that another capture writes to. Does not wait for the reader of a FIFO, which the daemon would not take anyway. */
static int open_file(const char *path, bool *is_new)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	*is_new = fd >= 0;
	return fd < 0 && errno == EEXIST ? open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) : fd;
}

static bool has_qp(struct dialogue *d, uint64_t qpn)
{
	json_t *rows;
	bool is_there = !qpn;
	if (is_there || !dialogue_show(d, "qp", &rows))
		return is_there;
	for (size_t i = 0; i < json_array_size(rows) && !is_there; i++)
		is_there = (uint64_t)json_integer_value(json_object_get(json_array_get(rows, i), "qpn")) == qpn;
	json_decref(rows);
	if (!is_there)
		complain_refused("there is no QP 0x%06llx; expected one that urocectl show qp lists", (unsigned long long)qpn);
	return is_there;
}

/* Until the time is over, a signal comes, or the daemon has something to say, which can only be that it ends. */
static void wait_for_the_end(const struct dialogue *d, int signals, double seconds)
{
	struct pollfd fds[] = { { .fd = d->talk.socket, .events = POLLIN }, { .fd = signals, .events = POLLIN } };
	struct timespec most = { .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };
	while (ppoll(fds, 2, seconds > 0 ? &most : NULL, NULL) < 0 && errno == EINTR)
		;
}

static void print(const struct options *o, uint64_t frames)
{
	json_t *file = json_pack("{s:s, s:I}", "file", o->word[1], "frames", (json_int_t)frames);
	if (o->is_json)
		json_dumpf(file, stdout, 0);
	else
		printf("%llu frames in %s", (unsigned long long)frames, o->word[1]);
	putchar('\n');
	json_decref(file);
}

static bool capture(const struct options *o, struct dialogue *d, int fd, uint64_t qpn, int signals)
{
	struct ctl_message m;
	struct ctl_answer answer;
	memset(&m, 0, sizeof(m));
	m.capture_start.qpn = (uint32_t)qpn;
	if (!dialogue_ask(d, CTL_CAPTURE_START, &m, fd, &answer))
		return false;
	if (!o->is_json)
		fprintf(stderr, "capturing into %s%s\n", o->word[1], o->seconds > 0 ? "" : "; Ctrl-C ends it");
	wait_for_the_end(d, signals, o->seconds);
	bool is_whole = dialogue_ask(d, CTL_CAPTURE_STOP, &m, -1, &answer);
	if (is_whole)
		print(o, answer.value);
	return is_whole;
}

/* A file that was made in vain does not stay. */
static bool capture_to(const struct options *o, struct dialogue *d, uint64_t qpn, int signals)
{
	bool is_new;
	int fd = open_file(o->word[1], &is_new);
	if (fd < 0) {
		complain_refused("%s: %s; expected the name of an ordinary file that can be written", o->word[1], strerror(errno));
		return false;
	}
	bool is_done = capture(o, d, fd, qpn, signals);
	if (!is_done && is_new && !lseek(fd, 0, SEEK_END))
		unlink(o->word[1]);
	close(fd);
	return is_done;
}

int capture_run(const struct options *o)
{
	struct dialogue talk;
	uint64_t qpn = 0;
	if (o->words != 2 && (o->words != 4 || strcmp(o->word[2], "qp")))
		return complain_usage("capture: expected capture FILE, or capture FILE qp N");
	if (o->words == 4 && (!options_number(o->word[3], 0xfffffe, &qpn) || !qpn))
		return complain_usage("capture %s qp %s: expected a QPN, as in urocectl show qp", o->word[1], o->word[3]);
	int signals = catch_endings();
	bool is_done = dialogue_open(&talk, o->socket) && has_qp(&talk, qpn) && capture_to(o, &talk, qpn, signals);
	dialogue_close(&talk);
	close(signals);
	return is_done ? EXIT_FINE : EXIT_REFUSED;
}

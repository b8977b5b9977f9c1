/* SPDX-License-Identifier: BSD-3-Clause */
/* The soak test: one run for each seed. A failure prints the seed, the command that replays it to the same packet, and the history of the least run of this seed that still fails. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pcapng.h"
#include "shrink.h"

struct options {
	uint64_t first, runs, keep_going;
	bool is_verbose, is_twice;
	const char *capture;
	struct plan_fixed fixed;
};

static const struct option long_options[] = {
	{ "seed", required_argument, NULL, 's' }, { "qps", required_argument, NULL, 'q' }, { "mtu", required_argument, NULL, 'm' }, { "fault", required_argument, NULL, 'f' }, { "pcap", required_argument, NULL, 'p' },
	{ "verbose", no_argument, NULL, 'v' }, { "twice", no_argument, NULL, 't' }, { "keep-going", required_argument, NULL, 'k' }, { "no-mistakes", no_argument, NULL, 'g' }, { "steps", required_argument, NULL, 'c' }, { "only", required_argument, NULL, 'o' }, { "help", no_argument, NULL, 'h' }, { 0 },
};

static void print_usage(FILE *to)
{
	fprintf(to, "usage: soak [-n RUNS] [--seed FIRST] [options]\n"
		"  -n RUNS           runs, with seeds from FIRST on (default 200; 100000 for a long one)\n"
		"  --seed FIRST      (default 1)\n"
		"  --qps N           so many connections instead of 1 to 8\n"
		"  --mtu BYTES       of the ports: 256, 512, 1024, 2048 or 4096\n"
		"  --fault SPEC      on every cable instead of the seed's own; none: no faults\n"
		"  --no-mistakes     no deliberate errors\n"
		"  --steps N         programs end after N steps\n"
		"  --only BITS       only these of the seed's connections\n"
		"  --pcap FILE       writes every frame of the last run\n"
		"  --verbose         prints the plan, every frame and the stack's log lines\n"
		"  --twice           runs every seed twice and compares all frames\n"
		"  --keep-going N    ends after N failures instead of one\n");
}

static bool parse_number(const char *text, uint64_t max, uint64_t *out)
{
	char *end;
	errno = 0;
	*out = strtoull(text, &end, 0);
	return !errno && end != text && !*end && *out <= max;
}

/* 0; 2: what was given makes no sense; 1: only help was asked for. */
static int parse_options(struct options *o, int argc, char **argv)
{
	uint64_t n;
	int c;
	*o = (struct options){ .first = 1, .runs = 200, .keep_going = 1 };
	while ((c = getopt_long(argc, argv, "n:vh", long_options, NULL)) != -1) {
		bool is_right = true;
		switch (c) {
		case 'n': is_right = parse_number(optarg, UINT32_MAX, &o->runs) && o->runs; break;
		case 's': is_right = parse_number(optarg, UINT64_MAX, &o->first); break;
		case 'k': is_right = parse_number(optarg, UINT32_MAX, &o->keep_going) && o->keep_going; break;
		case 'q': is_right = parse_number(optarg, PLAN_PAIRS_MAX, &n) && n; o->fixed.qps = (unsigned)n; break;
		case 'm': is_right = parse_number(optarg, 4096, &n) && n >= 256 && !(n & (n - 1)); o->fixed.mtu = (uint32_t)n; break;
		case 'f': o->fixed.fault = optarg; break;
		case 'c': is_right = parse_number(optarg, 1000, &n) && n; o->fixed.steps = (uint32_t)n; break;
		case 'o': is_right = parse_number(optarg, UINT64_MAX, &o->fixed.only); break;
		case 'g': o->fixed.no_mistakes = true; break;
		case 'p': o->capture = optarg; break;
		case 'v': o->is_verbose = true; break;
		case 't': o->is_twice = true; break;
		case 'h': print_usage(stdout); return 1;
		default: is_right = false;
		}
		if (!is_right) {
			print_usage(stderr);
			return 2;
		}
	}
	return 0;
}

static FILE *open_capture(const struct options *o)
{
	if (!o->capture)
		return NULL;
	FILE *f = fopen(o->capture, "we");
	if (f && !pcapng_begin(f, "soak"))
		return f;
	fprintf(stderr, "%s: %s\n", o->capture, strerror(errno));
	exit(2);
}

static void print_replay(const struct plan_fixed *f, const char *program, uint64_t seed)
{
	printf("replay: %s -n 1 --seed %" PRIu64, program, seed);
	if (f->qps)
		printf(" --qps %u", f->qps);
	if (f->mtu)
		printf(" --mtu %u", f->mtu);
	if (f->fault)
		printf(" --fault %s", f->fault);
	if (f->no_mistakes)
		printf(" --no-mistakes");
	if (f->only)
		printf(" --only 0x%" PRIx64, f->only);
	if (f->steps)
		printf(" --steps %u", f->steps);
	printf(" --verbose --pcap soak.pcapng\n");
}

/* The least run that fails: its programs, and what they do and see. */
static void print_least(const struct options *o, const char *program, uint64_t seed)
{
	struct plan_fixed fixed = o->fixed;
	struct run_result result = { .failure = "" };
	struct run_config config = { .history = stdout };
	shrink(seed, &fixed, &result);
	printf("the least run that fails:\n");
	struct plan *p = plan_new(seed, &fixed);
	plan_print(p, true);
	run_plan(p, &config, &result);
	plan_free(p);
	printf("%s\n", result.failure);
	print_replay(&fixed, program, seed);
}

static bool run_seed(const struct options *o, const char *program, uint64_t seed, struct run_result *sum)
{
	struct run_result result, again;
	struct run_config config = { .is_talkative = o->is_verbose, .trace = o->is_verbose ? stdout : NULL, .history = o->is_verbose ? stdout : NULL };
	struct plan *p = plan_new(seed, &o->fixed);
	if (o->is_verbose)
		plan_print(p, true);
	config.capture = open_capture(o);
	bool is_good = run_plan(p, &config, &result), is_different = false;
	if (config.capture)
		fclose(config.capture);
	config = (struct run_config){ NULL };
	if (is_good && o->is_twice && (!run_plan(p, &config, &again) || again.world.digest != result.world.digest || again.virtual_ns != result.virtual_ns)) {
		snprintf(result.failure, sizeof(result.failure), "a second run is not the same as the first: digests %016" PRIx64 " and %016" PRIx64, result.world.digest, again.world.digest);
		is_different = true;
	}
	plan_free(p);
	if (!is_good || is_different) {
		printf("seed %" PRIu64 " failed: %s\n", seed, result.failure);
		print_replay(&o->fixed, program, seed);
	} else if (o->is_verbose) {
		printf("seed %" PRIu64 ": good; %" PRIu64 " WRs, %" PRIu64 " frames, %" PRIu64 " ns, digest %016" PRIx64 "\n", seed, result.wrs, result.world.frames, result.virtual_ns, result.world.digest);
	}
	if (!is_good && !o->is_verbose)
		print_least(o, program, seed);
	fflush(stdout);
	sum->wrs += result.wrs;
	sum->virtual_ns += result.virtual_ns;
	sum->world.frames += result.world.frames;
	return is_good && !is_different;
}

/* ---- a run that ends the process ---- */

static uint64_t running;

static void say_seed(void)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "seed %" PRIu64 " ended the process\n", running);
	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		return; /* nobody to tell */
}

static void on_signal(int sig)
{
	say_seed();
	raise(sig); /* its default now */
}

/* Of a sanitizer, if there is one. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void watch_for_death(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE };
	struct sigaction a = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_NODEFER };
	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(say_seed);
		return;
	}
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &a, NULL);
}

int main(int argc, char **argv)
{
	struct options o;
	struct run_result sum = { .failure = "" };
	uint64_t failures = 0, done = 0;
	int rc = parse_options(&o, argc, argv);
	if (rc)
		return rc == 1 ? 0 : rc;
	/* memory of one run serves the next: half of the time would go into page faults */
	mallopt(M_MMAP_THRESHOLD, 1 << 28);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	watch_for_death();
	for (; done < o.runs && failures < o.keep_going; done++) {
		running = o.first + done;
		failures += !run_seed(&o, argv[0], running, &sum);
	}
	printf("%" PRIu64 " runs, %" PRIu64 " failed; %" PRIu64 " WRs, %" PRIu64 " frames, %.1f virtual seconds\n", done, failures, sum.wrs, sum.world.frames, (double)sum.virtual_ns / 1e9);
	return failures ? 1 : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* watch: looks at the daemon again and again, and shows what happened in between. The first look is only what the second is compared with. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "complain.h"
#include "dialogue.h"
#include "rates.h"
#include "view.h"

#define RATES \
	{ "tx_bytes", "tx_bits_per_s", 8 }, { "rx_bytes", "rx_bits_per_s", 8 }, { "tx_packets", "tx_packets_per_s", 1 }, { "rx_packets", "rx_packets_per_s", 1 }, \
	{ "retransmitted_packets", "retransmitted_per_s", 1 }

static const struct rate_field port_fields[] = { { "name" }, { "state" }, RATES, { "loopback_packets", "loopback_per_s", 1 }, { NULL } };
static const struct rate_field client_fields[] = { { "id" }, { "pid" }, { "uid" }, { "program" }, { "core" }, { "qps" }, RATES, { "completed_requests", "messages_per_s", 1 }, { "dropped_packets", "dropped_per_s", 1 }, { NULL } };
static const struct rate_field qp_fields[] = { { "qpn" }, { "client" }, { "core" }, { "service" }, { "state" }, { "peer_gid" }, { "peer_qpn" }, { "srtt_ns" }, { "in_flight_packets" }, { "window_packets" }, RATES,
	{ "completed_requests", "messages_per_s", 1 }, { "dropped_packets", "dropped_per_s", 1 }, { NULL } };
static const struct rate_field drop_fields[] = { { "name" }, { "count", "dropped_per_s", 1 }, { NULL } };

/* What is looked at, in which list of a sample it is, and what names a row. */
static const struct subject {
	const char *noun, *list, *id;
	const struct rate_field *fields;
} subjects[] = {
	{ "port", "port", "name", port_fields },
	{ "client", "clients", "id", client_fields },
	{ "qp", "qps", "qpn", qp_fields },
	{ "drops", "drops", "name", drop_fields },
};
#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

struct look {
	json_t *rows[SUBJECTS];
	double at[SUBJECTS]; /* seconds, of a clock that does not jump */
};

static double get_now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void forget(struct look *k)
{
	for (unsigned i = 0; i < SUBJECTS; i++)
		json_decref(k->rows[i]);
	*k = (struct look){ 0 };
}

static bool look(struct dialogue *d, struct look *k)
{
	for (unsigned i = 0; i < SUBJECTS; i++) {
		k->at[i] = get_now(CLOCK_MONOTONIC);
		if (!dialogue_show(d, subjects[i].noun, &k->rows[i]))
			return false;
	}
	return true;
}

/* Only what was dropped now. */
static void leave_out_zeros(json_t *rows)
{
	for (size_t i = json_array_size(rows); i-- > 0;)
		if (json_number_value(json_object_get(json_array_get(rows, i), "dropped_per_s")) <= 0)
			json_array_remove(rows, i);
}

static json_t *compare(const struct look *before, const struct look *now)
{
	json_t *sample = json_pack("{s:f, s:f}", "time", get_now(CLOCK_REALTIME), "interval_s", now->at[0] - before->at[0]);
	for (unsigned i = 0; i < SUBJECTS; i++)
		json_object_set_new(sample, subjects[i].list, rates_between(before->rows[i], now->rows[i], subjects[i].id, subjects[i].fields, now->at[i] - before->at[i]));
	leave_out_zeros(json_object_get(sample, "drops"));
	return sample;
}

static bool watch(const struct options *o, struct dialogue *d, const struct view *v)
{
	struct look before = { 0 }, now = { 0 };
	bool is_fine = look(d, &before);
	for (uint64_t n = 0; is_fine && (!o->count || n < o->count) && v->wait(o->interval); n++) {
		is_fine = look(d, &now);
		if (!is_fine)
			break;
		json_t *sample = compare(&before, &now);
		v->show(sample);
		json_decref(sample);
		forget(&before);
		before = now;
		now = (struct look){ 0 };
	}
	forget(&before);
	forget(&now);
	return is_fine;
}

int watch_run(const struct options *o)
{
	const struct view *v = o->is_json ? &view_json : isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) ? &view_screen : &view_text;
	struct dialogue talk;
	int code = EXIT_REFUSED;
	if (o->words != 1)
		return complain_usage("watch %s: expected nothing behind watch but options", o->word[1]);
	if (dialogue_open(&talk, o->socket)) {
		talk.is_quiet = v == &view_screen;
		code = !v->open() ? EXIT_USAGE : EXIT_FINE;
		if (!code) {
			code = watch(o, &talk, v) ? EXIT_FINE : EXIT_REFUSED;
			v->close();
		}
	}
	dialogue_close(&talk);
	return code;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what a sample looks like as text, on the screen too. */
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "table.h"
#include "view.h"

static const struct column client_columns[] = {
	{ "id", "client" }, { "pid" }, { "program" }, { "qps" }, { "tx_bits_per_s", "tx_bit/s", COLUMN_SCALED }, { "rx_bits_per_s", "rx_bit/s", COLUMN_SCALED }, { "tx_packets_per_s", "tx_pkt/s", COLUMN_SCALED },
	{ "rx_packets_per_s", "rx_pkt/s", COLUMN_SCALED }, { "messages_per_s", "msg/s", COLUMN_SCALED }, { "retransmitted_per_s", "resent/s", COLUMN_SCALED }, { "dropped_per_s", "drops/s", COLUMN_SCALED }, { NULL },
};
static const struct column qp_columns[] = {
	{ "qpn", NULL, COLUMN_HEX }, { "client" }, { "service" }, { "state" }, { "tx_bits_per_s", "tx_bit/s", COLUMN_SCALED }, { "rx_bits_per_s", "rx_bit/s", COLUMN_SCALED }, { "messages_per_s", "msg/s", COLUMN_SCALED },
	{ "srtt_ns", "rtt", COLUMN_TIME }, { "in_flight_packets", "in_flight" }, { "window_packets", "window" }, { "retransmitted_per_s", "resent/s", COLUMN_SCALED }, { "dropped_per_s", "drops/s", COLUMN_SCALED },
	{ "peer_gid", "peer" }, { NULL },
};
static const struct column port_columns[] = {
	{ "name", "port" }, { "state" }, { "tx_bits_per_s", "tx_bit/s", COLUMN_SCALED }, { "rx_bits_per_s", "rx_bit/s", COLUMN_SCALED }, { "tx_packets_per_s", "tx_pkt/s", COLUMN_SCALED },
	{ "rx_packets_per_s", "rx_pkt/s", COLUMN_SCALED }, { "loopback_per_s", "loopback/s", COLUMN_SCALED }, { "retransmitted_per_s", "resent/s", COLUMN_SCALED }, { NULL },
};
static const struct column drop_columns[] = { { "dropped_per_s", "drops/s", COLUMN_SCALED }, { "name", "reason" }, { NULL } };
#define DROPS_SHOWN 4u

void view_print(FILE *out, const json_t *sample, size_t clients, size_t qps)
{
	char day[32];
	time_t now = (time_t)json_number_value(json_object_get(sample, "time"));
	struct tm local;
	strftime(day, sizeof(day), "%H:%M:%S", localtime_r(&now, &local));
	fprintf(out, "%s  %zu clients, %zu QPs, in the last %.2g s\n", day, json_array_size(json_object_get(sample, "clients")), json_array_size(json_object_get(sample, "qps")),
		json_number_value(json_object_get(sample, "interval_s")));
	table_print(out, json_object_get(sample, "port"), port_columns, SIZE_MAX);
	fputc('\n', out);
	table_print(out, json_object_get(sample, "clients"), client_columns, clients);
	fputc('\n', out);
	table_print(out, json_object_get(sample, "qps"), qp_columns, qps);
	if (!json_array_size(json_object_get(sample, "drops")))
		return;
	fputc('\n', out);
	table_print(out, json_object_get(sample, "drops"), drop_columns, DROPS_SHOWN);
}

/* ---- ends ---- */

static volatile sig_atomic_t is_over;

static void on_end(int number)
{
	is_over = 1;
}

static bool catch_ends(void)
{
	struct sigaction action = { .sa_handler = on_end };
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	return true;
}

bool view_nap(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };
	return !is_over && !nanosleep(&t, NULL) && !is_over;
}

static void nothing(void)
{
}

/* ---- lines ---- */

static void show_text(const json_t *sample)
{
	view_print(stdout, sample, SIZE_MAX, SIZE_MAX);
	putchar('\n');
	fflush(stdout);
}

static void show_json(const json_t *sample)
{
	json_dumpf(sample, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
	putchar('\n');
	fflush(stdout);
}

const struct view view_text = { catch_ends, show_text, view_nap, nothing };
const struct view view_json = { catch_ends, show_json, view_nap, nothing };

/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of DPDK's telemetry. Owns the process's list of engines that show themselves, under a lock that is held while one is looked at, so that it cannot end meanwhile; no poll core ever waits for it. The commands outlive every engine. */
#include "telemetry.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpdk_compat.h"
#include "engine.h"
#include "port.h"
#include "report.h"

#define ENGINES_MAX 64u

static struct {
	pthread_mutex_t lock;
	struct engine *engine[ENGINES_MAX];
	bool is_registered;
	int err; /* of that, once and for all: DPDK takes no command back */
} shown = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- JSON to DPDK's own ---- */

static void put_value(struct rte_tel_data *d, const char *name, const json_t *value)
{
	if (json_is_string(value))
		rte_tel_data_add_dict_string(d, name, json_string_value(value));
	else if (json_is_integer(value))
		compat_tel_dict_uint(d, name, (uint64_t)json_integer_value(value));
	else if (json_is_boolean(value))
		rte_tel_data_add_dict_int(d, name, json_is_true(value));
}

static void put_row(struct rte_tel_data *d, json_t *row)
{
	const char *key;
	json_t *value;
	rte_tel_data_start_dict(d);
	json_object_foreach(row, key, value)
		put_value(d, key, value);
}

/* ---- names of rows ---- */

/* A row is named by the values of one or two of its keys, with a colon between them. */
#define NAME_MAX_LEN 80u
struct naming {
	const char *key, *second;
};

static void name_value(char *text, size_t room, const json_t *row, const char *key)
{
	const json_t *value = json_object_get(row, key);
	if (json_is_string(value))
		snprintf(text, room, "%s", json_string_value(value));
	else
		snprintf(text, room, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
}

static void name_row(char *text, size_t room, const json_t *row, const struct naming *by)
{
	name_value(text, room, row, by->key);
	size_t len = strlen(text);
	if (!by->second || len + 1 >= room)
		return;
	text[len++] = ':';
	name_value(text + len, room - len, row, by->second);
}

/* ---- forms ---- */

/* How rows are shown: false: there is nothing to show. */
typedef bool form_fn(struct rte_tel_data *d, json_t *rows, const struct naming *by, const char *wanted);

static bool show_names(struct rte_tel_data *d, json_t *rows, const struct naming *by, const char *wanted)
{
	bool is_number = !by->second && json_is_integer(json_object_get(json_array_get(rows, 0), by->key));
	char name[NAME_MAX_LEN];
	size_t i;
	json_t *row;
	rte_tel_data_start_array(d, is_number ? COMPAT_TEL_UINT : RTE_TEL_STRING_VAL);
	json_array_foreach(rows, i, row) {
		if (i == RTE_TEL_MAX_ARRAY_ENTRIES)
			break;
		name_row(name, sizeof(name), row, by);
		if (is_number)
			compat_tel_array_uint(d, (uint64_t)json_integer_value(json_object_get(row, by->key)));
		else
			rte_tel_data_add_array_string(d, name);
	}
	return true;
}

/* by->second of each, under its name. */
static bool show_pairs(struct rte_tel_data *d, json_t *rows, const struct naming *by, const char *wanted)
{
	char name[NAME_MAX_LEN];
	size_t i;
	json_t *row;
	rte_tel_data_start_dict(d);
	json_array_foreach(rows, i, row) {
		name_value(name, sizeof(name), row, by->key);
		put_value(d, name, json_object_get(row, by->second));
	}
	return true;
}

static bool show_named(struct rte_tel_data *d, json_t *rows, const struct naming *by, const char *wanted)
{
	char name[NAME_MAX_LEN];
	size_t i;
	json_t *row;
	json_array_foreach(rows, i, row) {
		name_row(name, sizeof(name), row, by);
		if (strcmp(name, wanted))
			continue;
		put_row(d, row);
		return true;
	}
	return false;
}

static bool show_only(struct rte_tel_data *d, json_t *rows, const struct naming *by, const char *wanted)
{
	put_row(d, json_array_get(rows, 0));
	return true;
}

/* ---- commands ---- */

static const struct command {
	const char *path;
	enum report_noun noun;
	form_fn *show;
	struct naming by;
	const char *help; /* DPDK takes 63 characters */
} commands[] = {
	{ "/uroce/device", REPORT_DEVICE, show_only, { 0 }, "What clients are told of the device. Parameters: [ENGINE]" },
	{ "/uroce/port", REPORT_PORT, show_only, { 0 }, "Counters of the port. Parameters: [ENGINE]" },
	{ "/uroce/drops", REPORT_DROPS, show_pairs, { "name", "count" }, "Packets dropped, by reason. Parameters: [ENGINE]" },
	{ "/uroce/gids", REPORT_GID, show_pairs, { "index", "gid" }, "GIDs by index. Parameters: [ENGINE]" },
	{ "/uroce/neighs", REPORT_NEIGH, show_names, { "core", "gid" }, "Next hops, CORE:ADDRESS. Parameters: [ENGINE]" },
	{ "/uroce/neigh", REPORT_NEIGH, show_named, { "core", "gid" }, "One next hop. Parameters: CORE:ADDRESS[,ENGINE]" },
	{ "/uroce/cores", REPORT_CORES, show_names, { "core" }, "Poll cores. Parameters: [ENGINE]" },
	{ "/uroce/core", REPORT_CORES, show_named, { "core" }, "One poll core. Parameters: CORE[,ENGINE]" },
	{ "/uroce/clients", REPORT_CLIENT, show_names, { "id" }, "Clients. Parameters: [ENGINE]" },
	{ "/uroce/client", REPORT_CLIENT, show_named, { "id" }, "One client. Parameters: ID[,ENGINE]" },
	{ "/uroce/qps", REPORT_QP, show_names, { "qpn" }, "QPs. Parameters: [ENGINE]" },
	{ "/uroce/qp", REPORT_QP, show_named, { "qpn" }, "One QP. Parameters: QPN[,ENGINE]" },
	{ "/uroce/cqs", REPORT_CQ, show_names, { "client", "id" }, "CQs, CLIENT:ID. Parameters: [ENGINE]" },
	{ "/uroce/cq", REPORT_CQ, show_named, { "client", "id" }, "One CQ. Parameters: CLIENT:ID[,ENGINE]" },
	{ "/uroce/mrs", REPORT_MR, show_names, { "key" }, "MRs and windows by key. Parameters: [ENGINE]" },
	{ "/uroce/mr", REPORT_MR, show_named, { "key" }, "One MR or window. Parameters: KEY[,ENGINE]" },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* "NAME,ENGINE", each of which may be missing. A name that is a number may be written as people write QPNs, 0x.... */
static void split_params(const char *params, bool has_name, char name[NAME_MAX_LEN], const char **engine)
{
	size_t len = has_name && params ? strcspn(params, ",") : 0;
	char *end;
	name[0] = 0;
	*engine = params && !has_name ? params : params && params[len] ? params + len + 1 : "";
	if (!len || len >= NAME_MAX_LEN)
		return;
	memcpy(name, params, len);
	name[len] = 0;
	unsigned long number = strtoul(name, &end, 0);
	if (!*end && name[0] == '0')
		snprintf(name, NAME_MAX_LEN, "%lu", number);
}

/* With the lock. */
static struct engine *find_engine(const char *number)
{
	char *end;
	unsigned long i = strtoul(number, &end, 10);
	if (*number)
		return !*end && i < ENGINES_MAX ? shown.engine[i] : NULL;
	for (i = 0; i < ENGINES_MAX - 1 && !shown.engine[i];)
		i++;
	return shown.engine[i];
}

static int run_command(const char *path, const char *params, struct rte_tel_data *d)
{
	const struct command *c = commands;
	char name[NAME_MAX_LEN];
	const char *number;
	while (strcmp(c->path, path))
		c++;
	split_params(params, c->show == show_named, name, &number);
	pthread_mutex_lock(&shown.lock);
	struct engine *e = find_engine(number);
	json_t *rows = e ? report(e, c->noun) : NULL;
	pthread_mutex_unlock(&shown.lock);
	bool is_found = rows && c->show(d, rows, &c->by, name);
	json_decref(rows);
	return is_found ? 0 : -ENOENT;
}

static int run_list(const char *path, const char *params, struct rte_tel_data *d)
{
	char number[8];
	rte_tel_data_start_dict(d);
	pthread_mutex_lock(&shown.lock);
	for (unsigned i = 0; i < ENGINES_MAX; i++) {
		snprintf(number, sizeof(number), "%u", i);
		if (shown.engine[i])
			rte_tel_data_add_dict_string(d, number, engine_port(shown.engine[i])->text);
	}
	pthread_mutex_unlock(&shown.lock);
	return 0;
}

/* ---- engines ---- */

static int register_commands(void)
{
	int err = rte_telemetry_register_cmd("/uroce/list", run_list, "Engines by number. Takes no parameters");
	for (unsigned i = 0; i < COMMANDS && !err; i++)
		err = rte_telemetry_register_cmd(commands[i].path, run_command, commands[i].help);
	return err;
}

int telemetry_add(struct engine *e)
{
	unsigned i = 0;
	pthread_mutex_lock(&shown.lock);
	if (!shown.is_registered)
		shown.err = register_commands();
	shown.is_registered = true;
	int err = shown.err;
	while (i < ENGINES_MAX && shown.engine[i])
		i++;
	if (i < ENGINES_MAX && !err)
		shown.engine[i] = e;
	else if (!err)
		err = -ENOSPC;
	pthread_mutex_unlock(&shown.lock);
	return err;
}

void telemetry_remove(struct engine *e)
{
	pthread_mutex_lock(&shown.lock);
	for (unsigned i = 0; i < ENGINES_MAX; i++)
		if (shown.engine[i] == e)
			shown.engine[i] = NULL;
	pthread_mutex_unlock(&shown.lock);
}

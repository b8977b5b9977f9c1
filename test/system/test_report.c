/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of a running engine: what it says of a port, its cores and what their clients have equals what these know of themselves, also while objects come and go by the hundred; and DPDK's telemetry shows the same, of several engines
 * in one process, as long as they live. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "counter_table.h"
#include "report.h"
#include "server_fixture.h"
#include "side.h"

#include <rte_telemetry.h>

#define SIDE0 "net_ring,link=t,side=0,ip=10.1.0.1/24"
#define SIDE1 "net_ring,link=t,side=1,ip=10.1.0.2/24"

static json_t *rows_of(struct engine *e, enum report_noun noun)
{
	json_t *rows = report(e, noun);
	CHECK(json_is_array(rows));
	return rows;
}

/* The one row that has this number under this key; borrowed. */
static json_t *row_with(json_t *rows, const char *key, uint64_t number)
{
	json_t *row, *found = NULL;
	size_t i;
	json_array_foreach(rows, i, row) {
		if ((uint64_t)json_integer_value(json_object_get(row, key)) != number)
			continue;
		CHECK(!found);
		found = row;
	}
	CHECK(found);
	return found;
}

static uint64_t number(json_t *row, const char *key)
{
	json_t *value = json_object_get(row, key);
	CHECK(json_is_integer(value));
	return (uint64_t)json_integer_value(value);
}

static const char *text(json_t *row, const char *key)
{
	json_t *value = json_object_get(row, key);
	CHECK(json_is_string(value));
	return json_string_value(value);
}

static void connect_sides(struct side *a, struct side *b)
{
	struct side_card ca = side_card(a), cb = side_card(b);
	side_connect(a, &cb, 1024);
	side_connect(b, &ca, 1024);
}

static void work(struct side *a, struct side *b)
{
	struct side_card cb = side_card(b);
	for (uint32_t i = 0; i < 20; i++)
		side_post_write(a, i, 0, 10000, &cb, 0);
	for (uint32_t i = 0; i < 20; i++)
		side_wait(a, b, i);
	for (unsigned i = 0; i < 50; i++) { /* whether the port is up is looked at once in a millisecond */
		side_poll(a, b);
		usleep(100);
	}
}

/* ---- rows ---- */

static void check_qp(struct side *a, const struct side *b)
{
	uint64_t counter[32];
	json_t *qps = rows_of(a->engine, REPORT_QP), *clients = rows_of(a->engine, REPORT_CLIENT);
	json_t *qp = row_with(qps, "qpn", uroce_qp_num(a->qp)), *client = row_with(clients, "id", number(qp, "client"));
	CHECK(json_array_size(qps) == 1 && json_array_size(clients) == 1);
	CHECK(!strcmp(text(qp, "service"), "RC") && !strcmp(text(qp, "state"), "RTS") && !strcmp(text(qp, "peer_gid"), b->endpoint.gid.raw[15] == 1 ? "10.1.0.1" : "10.1.0.2"));
	CHECK(number(qp, "peer_qpn") == uroce_qp_num(b->qp) && number(qp, "path_mtu") == 1024 && number(qp, "sq_size") == SIDE_DEPTH && number(qp, "sq_used") == 0 && number(qp, "rq_used") == 0);
	CHECK(number(qp, "srtt_ns") > 0 && number(qp, "in_flight_packets") == 0 && json_is_null(json_object_get(qp, "last_error")));
	int n = uroce_qp_counters(a->qp, counter, 32);
	CHECK(n > 0 && n <= 32);
	for (int i = 0; i < n; i++)
		CHECK(number(qp, uroce_qp_counter_name((unsigned)i)) == counter[i] && number(client, uroce_qp_counter_name((unsigned)i)) == counter[i]);
	CHECK(counter[0] >= 200);
	CHECK(number(client, "pid") == (uint64_t)getpid() && number(client, "uid") == getuid() && !strcmp(text(client, "program"), program_invocation_short_name));
	CHECK(number(client, "qps") == 1 && number(client, "cqs") == 1 && number(client, "mrs") == 1 && number(client, "registered_bytes") == SIDE_BYTES && json_is_null(json_object_get(client, "max_qps")));
	CHECK(number(client, "age_ns") < 100000000000u);
	json_decref(qps);
	json_decref(clients);
}

static void check_rest(struct side *a)
{
	json_t *mrs = rows_of(a->engine, REPORT_MR), *cqs = rows_of(a->engine, REPORT_CQ), *gids = rows_of(a->engine, REPORT_GID), *device = rows_of(a->engine, REPORT_DEVICE);
	json_t *mr = row_with(mrs, "key", uroce_mr_rkey(a->mr) >> 8), *cq = json_array_get(cqs, 0), *gid = row_with(gids, "index", 0);
	CHECK(number(mr, "length") == SIDE_BYTES && !strcmp(text(mr, "kind"), "direct"));
	CHECK(number(cq, "entries") >= 4 * SIDE_DEPTH && number(cq, "used") == 0 && number(cq, "qps") == 2 && !strcmp(text(cq, "armed"), "no"));
	CHECK(!strcmp(text(gid, "kind"), "ip4") && json_is_null(json_object_get(gid, "vlan")));
	CHECK(json_array_size(device) == 1 && number(json_array_get(device, 0), "path_mtu") == 4096);
	json_decref(mrs);
	json_decref(cqs);
	json_decref(gids);
	json_decref(device);
}

/* Counters of the port, the sums over cores, by every name of the table. */
static void check_port(struct side *a)
{
	struct engine_look look;
	const char *name, *sentence;
	json_t *ports = rows_of(a->engine, REPORT_PORT), *drops = rows_of(a->engine, REPORT_DROPS), *cores = rows_of(a->engine, REPORT_CORES), *port = json_array_get(ports, 0), *core = json_array_get(cores, 0);
	engine_look(a->core, &look);
	CHECK(json_array_size(ports) == 1 && json_array_size(drops) == DROP_COUNT - 1 && json_array_size(cores) == 1);
	for (unsigned i = 0; counter_describe(i, &name, &sentence); i++)
		CHECK(number(port, name) == counter_value(i, &look) && number(core, name) == counter_value(i, &look));
	for (unsigned d = 1; d < DROP_COUNT; d++) {
		json_t *row = json_array_get(drops, d - 1);
		CHECK(!strcmp(text(row, "name"), drop_name((enum drop)d)) && number(row, "count") == look.drops.count[d] && number(row, "core0") == look.drops.count[d]);
	}
	CHECK(!strcmp(text(port, "state"), "up") && number(port, "tx_packets") >= 200);
	CHECK(number(core, "qps") == 1 && number(core, "clients") == 1 && number(core, "rounds") > number(core, "idle_rounds") && number(core, "mbufs_available") > 0);
	json_decref(ports);
	json_decref(drops);
	json_decref(cores);
}

static void report_all(void *arg)
{
	const char *mode = arg;
	struct side a, b;
	char device[2][100];
	snprintf(device[0], sizeof(device[0]), "%s:" SIDE0, mode);
	snprintf(device[1], sizeof(device[1]), "%s:" SIDE1, mode);
	side_open(&a, device[0]);
	side_open(&b, device[1]);
	connect_sides(&a, &b);
	work(&a, &b);
	check_qp(&a, &b);
	check_rest(&a);
	check_port(&a);
	json_t *neighbours = rows_of(a.engine, REPORT_NEIGH);
	CHECK(json_array_size(neighbours) == 1 && !strcmp(text(json_array_get(neighbours, 0), "gid"), "10.1.0.2") && !strcmp(text(json_array_get(neighbours, 0), "state"), "known"));
	json_decref(neighbours);
	CHECK(!report(a.engine, REPORT_NOUNS) && errno == EINVAL);
	side_close(&b);
	side_close(&a);
}

static void test_embedded(void **state)
{
	char mode[] = "embedded";
	assert_int_equal(side_child(report_all, mode), 0);
}

static void test_inline(void **state)
{
	char mode[] = "inline";
	assert_int_equal(side_child(report_all, mode), 0);
}

/* A QP in ERR says why. */
static void break_qp(void *arg)
{
	struct side a, b;
	struct uroce_wc wc;
	char why[256];
	side_open(&a, "inline:" SIDE0);
	side_open(&b, "inline:" SIDE1);
	connect_sides(&a, &b);
	struct side_card wrong = side_card(&b);
	wrong.rkey ^= 0xff;
	side_post_write(&a, 1, 0, 100, &wrong, 0);
	while (!uroce_cq_poll(a.cq, &wc, 1))
		side_poll(&a, &b);
	CHECK(wc.status == UROCE_WC_REM_ACCESS_ERR);
	uroce_qp_error_text(a.qp, why, sizeof(why));
	json_t *qps = rows_of(a.engine, REPORT_QP);
	CHECK(!strcmp(text(json_array_get(qps, 0), "state"), "ERR") && !strcmp(text(json_array_get(qps, 0), "last_error"), why) && strstr(why, "does not grant"));
	json_decref(qps);
	side_close(&b);
	side_close(&a);
}

static void test_last_error(void **state)
{
	assert_int_equal(side_child(break_qp, NULL), 0);
}

/* ---- many ---- */

#define MANY 300u

struct churn {
	struct side *side;
	_Atomic bool is_over;
	unsigned made;
};

static void *come_and_go(void *arg)
{
	struct churn *c = arg;
	struct uroce_qp_init init = { .send_cq = c->side->cq, .recv_cq = c->side->cq, .cap = { 2, 2, 1, 1, 0 } };
	struct uroce_qp *qp[70];
	while (!c->is_over) {
		for (unsigned i = 0; i < 70; i++)
			CHECK(!uroce_qp_create(c->side->pd, &init, &qp[i]));
		for (unsigned i = 0; i < 70; i++)
			CHECK(!uroce_qp_destroy(qp[i]));
		c->made += 70;
	}
	return NULL;
}

/* On two cores: those that stay are all there, each once, and a client's counters do not lose those of QPs that went. */
static void watch_churn(void *arg)
{
	struct side a, b, busy;
	static struct uroce_qp *qp[MANY];
	struct churn churn = { .side = &busy };
	struct uroce_qp_init init = { .cap = { 2, 2, 1, 1, 0 } };
	pthread_t thread;
	side_open(&a, "embedded:" SIDE0 ",cores=2");
	side_open(&busy, "embedded:" SIDE0 ",cores=2");
	side_open(&b, "embedded:" SIDE1 ",cores=2");
	connect_sides(&a, &b);
	work(&a, &b);
	init.send_cq = init.recv_cq = a.cq;
	for (unsigned i = 0; i < MANY; i++)
		CHECK(!uroce_qp_create(a.pd, &init, &qp[i]));
	CHECK(!pthread_create(&thread, NULL, come_and_go, &churn));
	for (unsigned round = 0; round < 20; round++) {
		json_t *qps = rows_of(a.engine, REPORT_QP), *clients = rows_of(a.engine, REPORT_CLIENT);
		CHECK(json_array_size(clients) == 2);
		for (unsigned i = 0; i < MANY; i++)
			CHECK(!strcmp(text(row_with(qps, "qpn", uroce_qp_num(qp[i])), "state"), "RESET"));
		json_t *client = row_with(clients, "id", number(row_with(qps, "qpn", uroce_qp_num(a.qp)), "client"));
		CHECK(number(client, "qps") == MANY + 1 && number(client, "tx_packets") >= 200);
		json_decref(qps);
		json_decref(clients);
	}
	churn.is_over = true;
	pthread_join(thread, NULL);
	CHECK(churn.made > 0);
	for (unsigned i = 0; i < MANY; i++)
		CHECK(!uroce_qp_destroy(qp[i]));
	side_close(&b);
	side_close(&busy);
	side_close(&a);
}

static void test_while_others_come_and_go(void **state)
{
	assert_int_equal(side_child(watch_churn, NULL), 0);
}

/* ---- clients of a daemon ---- */

static void *report_clients_of(void *arg)
{
	return rows_of(((struct daemon *)arg)->engine, REPORT_CLIENT);
}

/* Who they are, what they have and may have; by a thread that is neither the daemon's nor a poll core. */
static void serve(void *arg)
{
	struct daemon d;
	struct raw r;
	pthread_t thread;
	void *clients;
	daemon_prepare(&d);
	d.config.client.qps = 5;
	daemon_run(&d);
	CHECK(!d.err);
	raw_open(&r, d.path);
	uint32_t pd = raw_pd(&r), cq = raw_cq(&r, 16), qp = raw_qp(&r, pd, cq);
	CHECK(!pthread_create(&thread, NULL, report_clients_of, &d) && !pthread_join(thread, &clients));
	json_t *client = json_array_get(clients, 0), *qps = rows_of(d.engine, REPORT_QP);
	CHECK(json_array_size(clients) == 1 && number(client, "pid") == (uint64_t)getpid() && number(client, "uid") == getuid() && text(client, "program")[0]);
	CHECK(number(client, "pds") == 1 && number(client, "cqs") == 1 && number(client, "qps") == 1 && number(client, "max_qps") == 5 && number(client, "ring_bytes") > 0);
	CHECK(number(json_array_get(qps, 0), "client") == number(client, "id"));
	json_decref(clients);
	json_decref(qps);
	CHECK(!raw_destroy(&r, ABI_DESTROY_QP, qp));
	raw_close(&r);
	daemon_await_empty(&d);
	clients = rows_of(d.engine, REPORT_CLIENT);
	CHECK(json_array_size(clients) == 0);
	json_decref(clients);
	daemon_close(&d);
}

static void test_clients_of_a_daemon(void **state)
{
	assert_int_equal(side_child(serve, NULL), 0);
}

/* ---- telemetry ---- */

struct telemetry {
	char folder[32], path[108];
	int fd;
};

static void telemetry_prepare(struct telemetry *t)
{
	strcpy(t->folder, "/tmp/uroce-report-XXXXXX");
	CHECK(mkdtemp(t->folder));
	CHECK(!setenv("RUNTIME_DIRECTORY", t->folder, 1));
	snprintf(t->path, sizeof(t->path), "%s/dpdk/uroce/dpdk_telemetry.v2", t->folder);
}

static void telemetry_open(struct telemetry *t)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char hello[1024];
	t->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	memcpy(address.sun_path, t->path, strlen(t->path));
	CHECK(t->fd >= 0 && !connect(t->fd, (struct sockaddr *)&address, sizeof(address)));
	CHECK(recv(t->fd, hello, sizeof(hello), 0) > 0);
}

static void telemetry_close(struct telemetry *t)
{
	char command[80];
	close(t->fd);
	snprintf(command, sizeof(command), "rm -r %s", t->folder);
	CHECK(!system(command));
}

/* What it answers to a command, without the name that it answers under. */
static json_t *ask(struct telemetry *t, const char *command)
{
	static char answer[1 << 16];
	CHECK(send(t->fd, command, strlen(command), 0) == (ssize_t)strlen(command));
	ssize_t n = recv(t->fd, answer, sizeof(answer), 0);
	CHECK(n > 0);
	json_t *whole = json_loadb(answer, (size_t)n, 0, NULL);
	CHECK(json_object_size(whole) == 1);
	json_t *value = json_incref(json_object_iter_value(json_object_iter(whole)));
	json_decref(whole);
	return value;
}

/* Every value that the row has and telemetry can show is there, and nothing else. */
static void is_shown(struct telemetry *t, const char *command, json_t *row)
{
	json_t *shown = ask(t, command), *value;
	const char *key;
	size_t nulls = 0;
	CHECK(json_is_object(shown));
	json_object_foreach(row, key, value) {
		json_t *is = json_object_get(shown, key);
		nulls += json_is_null(value);
		if (json_is_boolean(value))
			CHECK(json_integer_value(is) == json_is_true(value));
		else if (!json_is_null(value) && strcmp(key, "age_ns"))
			CHECK(json_equal(is, value));
	}
	CHECK(json_object_size(shown) + nulls == json_object_size(row));
	json_decref(shown);
}

static void is_named(struct telemetry *t, const char *command, const char *names)
{
	json_t *shown = ask(t, command);
	char *is = json_dumps(shown, JSON_COMPACT | JSON_ENCODE_ANY);
	if (strcmp(is, names))
		printf("%s shows %s, not %s\n", command, is, names);
	CHECK(!strcmp(is, names));
	free(is);
	json_decref(shown);
}

/* What an engine that does not move any more reports, and what telemetry shows of it as number `i`. */
static void compare(struct telemetry *t, struct side *s, unsigned i)
{
	static const struct {
		enum report_noun noun;
		const char *path, *key;
	} rows[] = { { REPORT_DEVICE, "device", NULL }, { REPORT_PORT, "port", NULL }, { REPORT_CLIENT, "client", "id" }, { REPORT_QP, "qp", "qpn" }, { REPORT_MR, "mr", "key" } };
	char command[80], names[80];
	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		json_t *list = rows_of(s->engine, rows[k].noun), *row = json_array_get(list, 0);
		CHECK(json_array_size(list) == 1);
		if (rows[k].key)
			snprintf(command, sizeof(command), "/uroce/%s,%llu,%u", rows[k].path, (unsigned long long)number(row, rows[k].key), i);
		else
			snprintf(command, sizeof(command), "/uroce/%s,%u", rows[k].path, i);
		is_shown(t, command, row);
		if (rows[k].key) {
			snprintf(command, sizeof(command), "/uroce/%ss,%u", rows[k].path, i);
			snprintf(names, sizeof(names), "[%llu]", (unsigned long long)number(row, rows[k].key));
			is_named(t, command, names);
		}
		json_decref(list);
	}
	snprintf(command, sizeof(command), "/uroce/qp,0x%x,%u", uroce_qp_num(s->qp), i);
	json_t *hex = ask(t, command);
	CHECK(json_is_object(hex));
	json_decref(hex);
}

static void show(void *arg)
{
	struct telemetry t;
	struct side a, b;
	telemetry_prepare(&t);
	side_open(&a, "embedded:" SIDE0 ",telemetry=on,idle=sleep");
	side_open(&b, "inline:" SIDE1 ",telemetry=on");
	connect_sides(&a, &b);
	work(&a, &b);
	telemetry_open(&t);
	is_named(&t, "/uroce/list", "{\"0\":\"net_ring,link=t,side=0\",\"1\":\"net_ring,link=t,side=1\"}");
	compare(&t, &a, 0);
	compare(&t, &b, 1); /* the thread that asks drives it */
	is_named(&t, "/uroce/gids,1", "{\"0\":\"10.1.0.2\"}");
	is_named(&t, "/uroce/neighs", "[\"0:10.1.0.2\"]");
	is_named(&t, "/uroce/cores", "[0]");
	json_t *drops = ask(&t, "/uroce/drops");
	CHECK(json_object_size(drops) == DROP_COUNT - 1);
	json_decref(drops);
	static const char *const wrong[] = { "/uroce/qp", "/uroce/qp,1", "/uroce/qp,x", "/uroce/port,2", "/uroce/port,99999999999999999999", "/uroce/port,-1", "/uroce/port,x", "/uroce/qp,,", "/uroce/cq,1:", "/uroce/core,77" };
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		is_named(&t, wrong[i], "null");
	side_close(&a); /* what has ended is not shown, and asking for it does no harm */
	is_named(&t, "/uroce/list", "{\"1\":\"net_ring,link=t,side=1\"}");
	is_named(&t, "/uroce/port,0", "null");
	is_named(&t, "/uroce/gids", "{\"0\":\"10.1.0.2\"}");
	side_close(&b);
	is_named(&t, "/uroce/list", "{}");
	is_named(&t, "/uroce/qps", "null");
	telemetry_close(&t);
}

static void test_telemetry(void **state)
{
	assert_int_equal(side_child(show, NULL), 0);
}

struct asking {
	struct telemetry telemetry;
	_Atomic bool is_over;
};

static void *keep_asking(void *arg)
{
	static const char *const commands[] = { "/uroce/list", "/uroce/port", "/uroce/qps", "/uroce/clients", "/uroce/drops,1", "/uroce/port,1" };
	struct asking *a = arg;
	for (unsigned i = 0; !a->is_over; i++)
		json_decref(ask(&a->telemetry, commands[i % (sizeof(commands) / sizeof(commands[0]))]));
	return NULL;
}

/* Engines begin and end while somebody asks all the time. */
static void begin_and_end(void *arg)
{
	struct asking asking = { 0 };
	struct side a, b;
	pthread_t thread;
	telemetry_prepare(&asking.telemetry);
	side_open(&a, "embedded:" SIDE0 ",telemetry=on");
	telemetry_open(&asking.telemetry);
	CHECK(!pthread_create(&thread, NULL, keep_asking, &asking));
	for (unsigned i = 0; i < 10; i++) {
		side_open(&b, i % 2 ? "inline:" SIDE1 ",telemetry=on" : "embedded:" SIDE1 ",telemetry=on");
		connect_sides(&a, &b);
		work(&a, &b);
		side_close(&b);
		side_close(&a);
		side_open(&a, "embedded:" SIDE0 ",telemetry=on");
	}
	asking.is_over = true;
	pthread_join(thread, NULL);
	side_close(&a);
	telemetry_close(&asking.telemetry);
}

static void test_telemetry_while_engines_end(void **state)
{
	assert_int_equal(side_child(begin_and_end, NULL), 0);
}

/* Off is off; who comes later cannot have it, and is told; a folder that cannot be used costs the telemetry and not the engine. */
static void do_without(void *arg)
{
	struct telemetry t;
	struct side a, b;
	telemetry_prepare(&t);
	side_open(&a, "inline:" SIDE0);
	side_open(&b, "inline:" SIDE1 ",telemetry=on");
	CHECK(strstr(side_last_line(), "telemetry=on"));
	CHECK(access(t.path, F_OK) && errno == ENOENT);
	side_close(&b);
	side_close(&a);
	t.fd = -1;
	telemetry_close(&t);
}

static bool has_no_room_for_commands;

/* In the place of DPDK's, which refuses when it has no memory. */
int rte_telemetry_register_cmd(const char *name, telemetry_cb fn, const char *help)
{
	int (*dpdk)(const char *, telemetry_cb, const char *);
	*(void **)&dpdk = dlsym(RTLD_NEXT, "rte_telemetry_register_cmd");
	return has_no_room_for_commands ? -ENOMEM : dpdk(name, fn, help);
}

/* No engine is shown, neither the first nor a later one, and each says so. */
static void find_no_room_for_commands(void *arg)
{
	struct telemetry t;
	struct side a, b;
	telemetry_prepare(&t);
	has_no_room_for_commands = true;
	side_open(&a, "inline:" SIDE0 ",telemetry=on");
	CHECK(strstr(side_last_line(), "side=0: telemetry=on: cannot be shown"));
	side_open(&b, "inline:" SIDE1 ",telemetry=on");
	CHECK(strstr(side_last_line(), "side=1: telemetry=on: cannot be shown"));
	side_close(&b);
	side_close(&a);
	t.fd = -1;
	telemetry_close(&t);
}

static void test_no_room_for_commands(void **state)
{
	assert_int_equal(side_child(find_no_room_for_commands, NULL), 0);
}

static void open_without_folder(void *arg)
{
	struct side a;
	CHECK(!setenv("RUNTIME_DIRECTORY", arg, 1));
	side_open(&a, "inline:" SIDE0 ",telemetry=on");
	side_close(&a);
}

/* Another user's, or one that others may write to, as DPDK's in /tmp may be: no socket is put into it. */
static void refuse_folder(uid_t uid, mode_t mode)
{
	char root[] = "/tmp/uroce-report-XXXXXX", folder[64], of_eal[80];
	assert_non_null(mkdtemp(root));
	snprintf(folder, sizeof(folder), "%s/dpdk", root);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(chmod(folder, mode), 0);
	assert_int_equal(chown(folder, uid, (gid_t)-1), 0);
	assert_int_equal(side_child(open_without_folder, root), 0);
	snprintf(of_eal, sizeof(of_eal), "%s/rte", folder); /* the EAL makes it whatever it is told */
	assert_int_equal(rmdir(of_eal), 0);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(rmdir(root), 0);
}

static void test_no_telemetry(void **state)
{
	assert_int_equal(side_child(do_without, NULL), 0);
	char nowhere[] = "/nonexistent";
	assert_int_equal(side_child(open_without_folder, nowhere), 0);
	refuse_folder(getuid(), 0770);
	refuse_folder(getuid(), 0702);
	if (!getuid())
		refuse_folder(65534, 0700);
}

/* The tool that people use. */
static void run_tool(void *arg)
{
	struct telemetry t;
	struct side a;
	char line[4096];
	bool is_found = false;
	if (access("/usr/bin/dpdk-telemetry.py", X_OK))
		_exit(77);
	telemetry_prepare(&t);
	side_open(&a, "embedded:" SIDE0 ",telemetry=on");
	FILE *p = popen("(echo /; echo /uroce/port,0) | /usr/bin/dpdk-telemetry.py -f uroce", "r");
	CHECK(p);
	while (fgets(line, sizeof(line), p))
		is_found |= strstr(line, "/uroce/port") && strstr(line, "out_of_sequence");
	CHECK(!pclose(p));
	CHECK(is_found);
	side_close(&a);
	t.fd = -1;
	telemetry_close(&t);
}

static void test_telemetry_tool(void **state)
{
	int rc = side_child(run_tool, NULL);
	if (rc == 77) {
		print_message("needs dpdk-telemetry.py (package dpdk-dev)\n");
		skip();
	}
	assert_int_equal(rc, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_embedded), cmocka_unit_test(test_inline), cmocka_unit_test(test_last_error), cmocka_unit_test(test_while_others_come_and_go), cmocka_unit_test(test_clients_of_a_daemon), cmocka_unit_test(test_telemetry),
		cmocka_unit_test(test_no_room_for_commands),
		cmocka_unit_test(test_telemetry_while_engines_end), cmocka_unit_test(test_no_telemetry), cmocka_unit_test(test_telemetry_tool),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

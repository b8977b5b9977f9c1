/* SPDX-License-Identifier: BSD-3-Clause */
/* Operators of a daemon: who may be one, what each message does, that an operator takes no client's place and cannot hold anybody up, and that a capture ends with whoever started it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "server_fixture.h"

#define RUN(body) assert_int_equal(side_child(body, NULL), 0)
#define OPERATORS 8u /* at most */

static void start(struct daemon *d)
{
	daemon_prepare(d);
	daemon_run(d);
	CHECK(!d->err);
}

static const char *const nouns[] = { "device", "port", "gid", "neigh", "client", "qp", "cq", "mr", "drops", "cores" };

/* The rows; NULL: it was refused, answer says why. */
static json_t *show(struct raw *r, const char *noun, struct ctl_answer *answer)
{
	struct ctl_message m = { .show.noun = "" };
	json_error_t error;
	int fd;
	memcpy(m.show.noun, noun, strnlen(noun, sizeof(m.show.noun)));
	raw_say(r, CTL_SHOW, &m);
	int type = raw_hear(r, &m, &fd);
	CHECK(type == CTL_REPORT || type == CTL_ANSWER);
	*answer = m.answer;
	if (type == CTL_ANSWER)
		return NULL;
	char *text = mmap(NULL, m.report.bytes, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(text != MAP_FAILED);
	json_t *rows = json_loadb(text, m.report.bytes, 0, &error);
	CHECK(json_is_array(rows));
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	struct stat st;
	CHECK((fcntl(fd, F_GET_SEALS) & seals) == seals && !fstat(fd, &st) && (uint64_t)st.st_size == m.report.bytes);
	munmap(text, m.report.bytes);
	close(fd);
	return rows;
}

static json_int_t member(const json_t *rows, size_t i, const char *key)
{
	const json_t *value = json_object_get(json_array_get(rows, i), key);
	CHECK(json_is_integer(value));
	return json_integer_value(value);
}

/* ---- who may ---- */

static void body_stranger(const char *path, int fd)
{
	struct raw r;
	struct ctl_message m;
	struct ctl_answer answer;
	CHECK(!setgid(65534) && !setuid(65534));
	raw_connect(&r, path);
	for (int i = 0; i < 3; i++) { /* each time it asks */
		m.operator = (struct ctl_hello){ .magic = CTL_MAGIC, .version_min = CTL_VERSION_MIN, .version_max = CTL_VERSION_MAX };
		CHECK(raw_command(&r, CTL_OPERATOR, &m, -1, &answer) == -EPERM && strstr(answer.text, "root"));
	}
	raw_say_hello(&r); /* and may be a client all the same */
	raw_expect(&r, CTL_WELCOME, &m, &r.life_fd);
	client_stay(fd);
}

static void refuse_strangers(void *arg)
{
	struct daemon d;
	struct raw r;
	int fd;
	start(&d);
	pid_t pid = client_fork(body_stranger, d.path, &fd);
	CHECK(server_count(d.server, SERVER_REFUSED_OPERATOR) == 3);
	CHECK(server_count(d.server, SERVER_OPERATED) == 0);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	close(fd);
	/* whose daemon it is */
	raw_operate(&r, d.path);
	raw_close(&r);
	daemon_await_empty(&d);
	daemon_close(&d);
}

static void test_strangers(void **state)
{
	if (getuid())
		skip();
	RUN(refuse_strangers);
}

static void be_beside_clients(void *arg)
{
	struct daemon d;
	struct raw client, other, operator[OPERATORS + 1];
	struct ctl_message m = { .operator = { .magic = CTL_MAGIC, .version_min = CTL_VERSION_MIN, .version_max = CTL_VERSION_MAX } };
	struct ctl_answer answer;
	struct abi_rep rep;
	daemon_prepare(&d);
	d.config.max_clients = 1;
	daemon_run(&d);
	raw_open(&client, d.path);
	for (unsigned i = 0; i < OPERATORS; i++)
		raw_operate(&operator[i], d.path);
	/* there is no place left, for neither */
	raw_connect(&other, d.path);
	raw_expect_bye(&other, CTL_BYE_LIMIT, "1 clients");
	raw_close(&other);
	raw_close(&operator[0]);
	daemon_await(&d, SERVER_ENDED_BYE, 1);
	raw_connect(&other, d.path); /* comes in, but not as a client */
	raw_say_hello(&other);
	raw_expect_bye(&other, CTL_BYE_LIMIT, "1 clients");
	raw_close(&other);
	CHECK(!raw_call(&client, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	raw_connect(&other, d.path);
	daemon_await(&d, SERVER_ACCEPTED, OPERATORS + 3);
	raw_close(&client);
	daemon_await_clients(&d, 0);
	raw_say_hello(&other); /* by now there is room */
	raw_expect(&other, CTL_WELCOME, &m, &other.life_fd);
	raw_close(&other);
	daemon_await_clients(&d, 0);
	m.operator = (struct ctl_hello){ .magic = CTL_MAGIC, .version_min = CTL_VERSION_MIN, .version_max = CTL_VERSION_MAX };
	/* one operator too many, where there is room for clients */
	raw_operate(&operator[0], d.path);
	raw_connect(&operator[OPERATORS], d.path);
	CHECK(raw_command(&operator[OPERATORS], CTL_OPERATOR, &m, -1, &answer) == -EUSERS && strstr(answer.text, "8 operators"));
	for (unsigned i = 0; i <= OPERATORS; i++)
		raw_close(&operator[i]);
	daemon_await(&d, SERVER_ENDED_BYE, OPERATORS + 4);
	raw_open(&client, d.path);
	raw_close(&client);
	daemon_await_empty(&d);
	daemon_close(&d);
}

static void test_places(void **state)
{
	RUN(be_beside_clients);
}

static void speak_other_versions(void *arg)
{
	struct daemon d;
	struct raw r;
	struct ctl_message m = { .operator = { .magic = CTL_MAGIC, .version_min = CTL_VERSION_MAX + 1, .version_max = CTL_VERSION_MAX + 2 } };
	start(&d);
	raw_connect(&r, d.path);
	raw_say(&r, CTL_OPERATOR, &m);
	raw_expect_bye(&r, CTL_BYE_VERSION, "versions");
	raw_close(&r);
	m.operator = (struct ctl_hello){ .magic = 7, .version_min = CTL_VERSION_MIN, .version_max = CTL_VERSION_MAX };
	raw_connect(&r, d.path);
	raw_say(&r, CTL_OPERATOR, &m);
	raw_expect_bye(&r, CTL_BYE_PROTOCOL, "magic");
	raw_close(&r);
	daemon_close(&d);
}

static void test_versions(void **state)
{
	RUN(speak_other_versions);
}

/* ---- SHOW ---- */

static void show_all(void *arg)
{
	struct daemon d;
	struct raw r, client;
	struct ctl_answer answer;
	json_t *rows;
	start(&d);
	raw_open(&client, d.path);
	raw_qp(&client, raw_pd(&client), raw_cq(&client, 16));
	raw_operate(&r, d.path);
	for (unsigned i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++) {
		CHECK(rows = show(&r, nouns[i], &answer));
		json_decref(rows);
	}
	CHECK((rows = show(&r, "client", &answer)) && json_array_size(rows) == 1 && member(rows, 0, "pid") == getpid() && member(rows, 0, "qps") == 1);
	json_decref(rows);
	CHECK((rows = show(&r, "qp", &answer)) && json_array_size(rows) == 1);
	json_decref(rows);
	static const char *const wrong[] = { "", "qps", "QP", "qp ", "client\n", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" /* not terminated */ };
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(!show(&r, wrong[i], &answer) && answer.status == -EINVAL && strstr(answer.text, "expected device, port"));
	raw_close(&r);
	raw_close(&client);
	daemon_await_empty(&d);
	daemon_close(&d);
}

static void test_show(void **state)
{
	RUN(show_all);
}

/* One that asks without reading is sent away, one that leaves in mid report leaves nothing, and a client's calls take no longer meanwhile. */
static void flood(void *arg)
{
	struct daemon d;
	struct raw r, client;
	struct ctl_message m = { .show.noun = "qp" };
	struct abi_rep rep;
	double worst = 0;
	start(&d);
	raw_open(&client, d.path);
	uint32_t pd = raw_pd(&client), cq = raw_cq(&client, 16);
	for (unsigned i = 0; i < 500; i++)
		raw_qp(&client, pd, cq);
	unsigned fds = count_fds();
	for (unsigned round = 0; round < 20; round++) {
		raw_operate(&r, d.path);
		for (unsigned i = 0; i < 100 && !ctl_send(r.socket, CTL_SHOW, &m, -1); i++)
			;
		for (unsigned i = 0; i < 5; i++) {
			double from = now_ms();
			CHECK(!raw_call(&client, &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
			worst = now_ms() - from > worst ? now_ms() - from : worst;
		}
		if (round % 2)
			raw_expect_bye(&r, CTL_BYE_PROTOCOL, "before it has read");
		raw_close(&r);
	}
	printf("# a call meanwhile took at most %.1f ms\n", worst);
	CHECK(server_count(d.server, SERVER_ENDED_UNREAD) >= 10);
	for (double end = now_ms() + 20000; count_fds() != fds;)
		CHECK(now_ms() < end);
	raw_close(&client);
	daemon_await_empty(&d);
	daemon_close(&d);
}

static void test_flood(void **state)
{
	RUN(flood);
}

/* ---- GID_ADD, GID_DEL ---- */

static void change_gids(void *arg)
{
	static const uint8_t ip4[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 7, [14] = 0, [15] = 9 }, group[16] = { [10] = 0xff, [11] = 0xff, [12] = 224, [15] = 1 };
	static const struct {
		uint32_t vlan, prefix_len;
		int status;
	} rows[] = { { 0, 24, 0 }, { 0, 24, -EEXIST }, { 7, 24, 0 }, { 4095, 24, -EINVAL }, { UINT32_MAX, 24, -EINVAL }, { 9, 33, -EINVAL }, { 9, UINT32_MAX, -EINVAL } };
	struct daemon d;
	struct raw r, client;
	struct ctl_answer answer;
	struct abi_rep rep;
	uint32_t index[2], n = 0;
	start(&d);
	raw_open(&client, d.path);
	raw_operate(&r, d.path);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ctl_message m = { .gid_add = { .vlan = rows[i].vlan, .prefix_len = rows[i].prefix_len } };
		memcpy(m.gid_add.gid, ip4, 16);
		CHECK(raw_command(&r, CTL_GID_ADD, &m, -1, &answer) == rows[i].status);
		if (!answer.status)
			index[n++] = (uint32_t)answer.value;
	}
	struct ctl_message m = { .gid_add = { .prefix_len = 4 } };
	memcpy(m.gid_add.gid, group, 16);
	CHECK(raw_command(&r, CTL_GID_ADD, &m, -1, &answer) == -EINVAL);
	CHECK(!raw_call(&client, &(struct abi_req){ .type = ABI_QUERY_GID, .handle = index[1] }, &rep) && rep.gid.present && rep.gid.vlan == 7 && !memcmp(rep.gid.gid, ip4, 16));
	for (unsigned i = 0; i < 2; i++) {
		m.gid_del = (struct ctl_gid_del){ .index = index[i] };
		CHECK(!raw_command(&r, CTL_GID_DEL, &m, -1, &answer));
		CHECK(!raw_call(&client, &(struct abi_req){ .type = ABI_QUERY_GID, .handle = index[i] }, &rep) && !rep.gid.present);
		m.gid_del = (struct ctl_gid_del){ .index = i ? UINT32_MAX : index[i] };
		CHECK(raw_command(&r, CTL_GID_DEL, &m, -1, &answer) == -ENOENT);
	}
	CHECK(server_count(d.server, SERVER_OPERATED) == 4);
	raw_close(&r);
	raw_close(&client);
	daemon_await_empty(&d);
	daemon_close(&d);
}

static void test_gids(void **state)
{
	RUN(change_gids);
}

/* ---- CLIENT_KILL ---- */

static void kill_one(void *arg)
{
	struct daemon d;
	struct raw r, client[3];
	struct ctl_message m = { 0 };
	struct ctl_answer answer;
	struct abi_rep rep;
	json_t *rows;
	start(&d);
	for (unsigned i = 0; i < 3; i++) {
		raw_open(&client[i], d.path);
		for (unsigned j = 0; j <= i; j++) /* by which they can be told apart */
			raw_pd(&client[i]);
	}
	raw_operate(&r, d.path);
	for (unsigned i = 0; i < 2; i++) {
		m.client_kill.id = i ? UINT64_MAX : 0;
		CHECK(raw_command(&r, CTL_CLIENT_KILL, &m, -1, &answer) == -ENOENT);
	}
	CHECK((rows = show(&r, "client", &answer)) && json_array_size(rows) == 3);
	for (unsigned i = 0; i < 3; i++)
		if (member(rows, i, "pds") == 2)
			m.client_kill.id = (uint64_t)member(rows, i, "id");
	json_decref(rows);
	CHECK(!raw_command(&r, CTL_CLIENT_KILL, &m, -1, &answer));
	raw_expect_bye(&client[1], CTL_BYE_KILLED, "an operator (pid ");
	CHECK(((struct abi_engine_page *)client[1].arena[0].base)->dead);
	CHECK(server_count(d.server, SERVER_ENDED_KILLED) == 1);
	daemon_await_clients(&d, 2);
	for (unsigned i = 0; i < 3; i += 2)
		CHECK(!raw_call(&client[i], &(struct abi_req){ .type = ABI_QUERY_DEVICE }, &rep));
	CHECK(raw_command(&r, CTL_CLIENT_KILL, &m, -1, &answer) == -ENOENT); /* it is not there any more */
	for (unsigned i = 0; i < 3; i++)
		raw_close(&client[i]);
	raw_close(&r);
	daemon_await_empty(&d);
	daemon_close(&d);
}

static void test_kill(void **state)
{
	RUN(kill_one);
}

/* ---- CAPTURE_START, CAPTURE_STOP ---- */

static int start_capture(struct raw *r, int fd, struct ctl_answer *answer)
{
	struct ctl_message m = { 0 };
	return raw_command(r, CTL_CAPTURE_START, &m, fd, answer);
}

static int stop_capture(struct raw *r, struct ctl_answer *answer)
{
	struct ctl_message m = { 0 };
	return raw_command(r, CTL_CAPTURE_STOP, &m, -1, answer);
}

static int make_file(const struct daemon *d, int flags)
{
	char path[80];
	snprintf(path, sizeof(path), "%s/capture", d->folder);
	int fd = open(path, flags | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	unlink(path);
	return fd;
}

/* Blocks from the first byte to the last, each with its length at both ends. */
static unsigned count_packets(int fd)
{
	static uint8_t bytes[1 << 20];
	uint32_t head[2], again;
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	unsigned packets = 0;
	CHECK(n > 0);
	for (ssize_t at = 0; at < n; at += head[1]) {
		CHECK(n - at >= 12);
		memcpy(head, bytes + at, sizeof(head));
		CHECK(at || head[0] == 0x0a0d0d0a);
		CHECK(head[1] >= 12 && head[1] <= n - at);
		memcpy(&again, bytes + at + head[1] - 4, 4);
		CHECK(again == head[1]);
		packets += head[0] == 6;
	}
	return packets;
}

/* What leads to frames: an address that nobody has is asked for, each time another. */
static void cause_frames(struct raw *client)
{
	static unsigned times;
	char ip4[16];
	struct abi_rep rep;
	uint32_t pd = raw_pd(client), qp = raw_qp(client, pd, raw_cq(client, 16));
	snprintf(ip4, sizeof(ip4), "10.7.0.%u", 77 + times++);
	CHECK(!raw_connect_qp(client, qp, ip4, 9, &rep));
	usleep(250000);
}

static void capture(void *arg)
{
	struct daemon d;
	struct raw r, other, client;
	struct ctl_answer answer;
	int pipes[2];
	start(&d);
	raw_open(&client, d.path);
	raw_operate(&r, d.path);
	raw_operate(&other, d.path);
	unsigned fds = count_fds();
	/* files that a poll core must not be made to write to */
	CHECK(!pipe2(pipes, O_CLOEXEC));
	const int wrong[] = { pipes[1], r.socket, open("/dev/null", O_WRONLY | O_CLOEXEC), open("/", O_RDONLY | O_CLOEXEC), make_file(&d, O_RDONLY), open("/proc/self/comm", O_WRONLY | O_CLOEXEC) };
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK(start_capture(&r, wrong[i], &answer) == -EINVAL && strstr(answer.text, "expected"));
		if (wrong[i] != r.socket)
			close(wrong[i]);
	}
	close(pipes[0]);
	CHECK(stop_capture(&r, &answer) == -ENOENT);
	int fd = make_file(&d, O_RDWR);
	CHECK(!start_capture(&r, fd, &answer));
	CHECK(start_capture(&r, fd, &answer) == -EBUSY && start_capture(&other, fd, &answer) == -EBUSY && strstr(answer.text, "pid"));
	int kept = make_file(&d, O_RDWR);
	CHECK(!ftruncate(kept, 1 << 19) && start_capture(&other, kept, &answer) == -EBUSY && lseek(kept, 0, SEEK_END) == 1 << 19 && !lseek(kept, 0, SEEK_SET)); /* what is refused leaves its file as it was */
	CHECK(stop_capture(&other, &answer) == -ENOENT);
	cause_frames(&client);
	CHECK(!stop_capture(&r, &answer));
	CHECK(answer.value && count_packets(fd) == answer.value);
	CHECK(stop_capture(&r, &answer) == -ENOENT);
	close(fd);
	CHECK(count_fds() == fds + 1);
	/* a second one, of no QP that there is, begins at once */
	struct ctl_message m = { .capture_start.qpn = 0xfffff0 };
	CHECK(!raw_command(&other, CTL_CAPTURE_START, &m, kept, &answer));
	cause_frames(&client);
	CHECK(!stop_capture(&other, &answer) && !answer.value && count_packets(kept) == 0); /* what it had is gone */
	close(kept);
	raw_close(&r);
	raw_close(&other);
	raw_close(&client);
	daemon_await_empty(&d);
	daemon_close(&d);
}

static void test_capture(void **state)
{
	RUN(capture);
}

static int capture_fd; /* inherited */

static void body_capturer(const char *path, int fd)
{
	struct raw r;
	struct ctl_answer answer;
	raw_operate(&r, path);
	CHECK(!start_capture(&r, capture_fd, &answer));
	client_stay(fd);
}

static void kill_capturer(void *arg)
{
	struct daemon d;
	struct raw r, client;
	struct ctl_answer answer;
	int fd;
	start(&d);
	raw_open(&client, d.path);
	raw_operate(&r, d.path);
	for (unsigned round = 0; round < 3; round++) {
		uint64_t before = server_count(d.server, SERVER_ENDED_BYE) + server_count(d.server, SERVER_ENDED_DEATH);
		capture_fd = make_file(&d, O_RDWR);
		pid_t pid = client_fork(body_capturer, d.path, &fd);
		cause_frames(&client);
		CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
		for (double end = now_ms() + 20000; server_count(d.server, SERVER_ENDED_BYE) + server_count(d.server, SERVER_ENDED_DEATH) == before;)
			CHECK(now_ms() < end);
		CHECK(raw_command(&r, CTL_CAPTURE_STOP, &(struct ctl_message){ 0 }, -1, &answer) == -ENOENT); /* the control thread is through with it by then */
		CHECK(count_packets(capture_fd) > 0);
		CHECK(!ftruncate(capture_fd, 0) && lseek(capture_fd, 0, SEEK_SET) == 0);
		CHECK(!start_capture(&r, capture_fd, &answer) && !stop_capture(&r, &answer)); /* the next one may */
		close(capture_fd);
		close(fd);
	}
	raw_close(&r);
	raw_close(&client);
	daemon_await_empty(&d);
	daemon_close(&d);
}

static void test_killed_capturer(void **state)
{
	RUN(kill_capturer);
}

/* A capture that runs when the daemon ends has its file complete. */
static void stop_daemon(void *arg)
{
	struct daemon d;
	struct raw r, client;
	struct ctl_answer answer;
	start(&d);
	raw_open(&client, d.path);
	raw_operate(&r, d.path);
	int fd = make_file(&d, O_RDWR);
	CHECK(!start_capture(&r, fd, &answer));
	cause_frames(&client);
	daemon_close(&d);
	raw_expect_bye(&r, CTL_BYE_SHUTDOWN, "");
	CHECK(count_packets(fd) > 0);
	raw_close(&r);
	raw_close(&client);
}

static void test_end_of_daemon(void **state)
{
	RUN(stop_daemon);
}

/* A daemon that was started with capture= has its own. */
static void capture_beside_a_setting(void *arg)
{
	struct daemon d;
	struct raw r;
	struct ctl_answer answer;
	char path[64], keys[96];
	snprintf(path, sizeof(path), "/tmp/uroce-test-%ld.pcapng", (long)getpid());
	snprintf(keys, sizeof(keys), ",capture=%s", path);
	daemon_prepare_with(&d, keys);
	daemon_run(&d);
	raw_operate(&r, d.path);
	int fd = make_file(&d, O_RDWR);
	CHECK(start_capture(&r, fd, &answer) == -EBUSY && strstr(answer.text, "capture="));
	CHECK(stop_capture(&r, &answer) == -ENOENT);
	close(fd);
	raw_close(&r);
	daemon_close(&d);
	unlink(path);
}

static void test_capture_setting(void **state)
{
	RUN(capture_beside_a_setting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_show),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_gids),
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_killed_capturer),
		cmocka_unit_test(test_end_of_daemon),
		cmocka_unit_test(test_capture_setting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "server_fixture.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

#include "memfd.h"

#define DEVICE "served:net_ring,link=server,side=0,ip=10.7.0.1/24"
#define PATIENCE_MS 20000.0

double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void nap(void)
{
	struct timespec t = { 0, 200000 };
	nanosleep(&t, NULL);
}

unsigned count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;
	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- the daemon ---- */

static void take_line(void *arg, enum log_level level, const char *line)
{
	struct daemon *d = arg;
	snprintf(d->last_line, sizeof(d->last_line), "%s", line);
	d->lines++;
	fprintf(stderr, "# %s\n", line);
}

void daemon_prepare(struct daemon *d)
{
	daemon_prepare_with(d, "");
}

void daemon_prepare_with(struct daemon *d, const char *keys)
{
	char device[128];
	snprintf(device, sizeof(device), "%s%s", DEVICE, keys);
	daemon_prepare_device(d, device);
}

void daemon_prepare_device(struct daemon *d, const char *device)
{
	memset(d, 0, sizeof(*d));
	strcpy(d->folder, "/tmp/uroce-test-XXXXXX");
	CHECK(mkdtemp(d->folder));
	CHECK(!chmod(d->folder, 0755));
	snprintf(d->path, sizeof(d->path), "%s/sock", d->folder);
	sem_init(&d->started, 0, 0);
	sem_init(&d->reported, 0, 0);
	d->log = (struct log){ .sink = take_line, .arg = d, .level = LOG_INFO };
	CHECK(!engine_open(&d->engine, device, &d->log));
	server_defaults(&d->config);
	d->config.path = d->path;
	d->config.mode = 0666;
	d->config.log = &d->log;
}

static void *serve(void *arg)
{
	struct daemon *d = arg;
	d->err = server_start(&d->server, d->engine, &d->config);
	sem_post(&d->started);
	if (d->err)
		return NULL;
	while (!d->is_stopping) {
		server_run(d->server);
		if (!d->report)
			continue;
		server_report(d->server, d->report);
		fclose(d->report);
		d->report = NULL;
		sem_post(&d->reported);
	}
	server_stop(d->server, d->code, d->text);
	return NULL;
}

void daemon_run(struct daemon *d)
{
	CHECK(!pthread_create(&d->thread, NULL, serve, d));
	while (sem_wait(&d->started))
		;
}

void daemon_stop(struct daemon *d, enum ctl_bye_code code, const char *text)
{
	d->code = code;
	d->text = text;
	d->is_stopping = true;
	if (!d->err)
		server_quit(d->server);
	CHECK(!pthread_join(d->thread, NULL));
	d->is_stopping = false;
}

void daemon_close(struct daemon *d)
{
	daemon_stop(d, CTL_BYE_SHUTDOWN, "the test is over");
	engine_close(d->engine, &d->log);
	CHECK(!rmdir(d->folder)); /* nothing was left in it */
}

char *daemon_report(struct daemon *d)
{
	char *text;
	size_t len;
	d->report = open_memstream(&text, &len);
	CHECK(d->report);
	server_quit(d->server);
	while (sem_wait(&d->reported))
		;
	return text;
}

void daemon_await(struct daemon *d, enum server_count count, uint64_t at_least)
{
	double end = now_ms() + PATIENCE_MS;
	while (server_count(d->server, count) < at_least) {
		if (now_ms() > end) {
			printf("%s is %llu, awaited: %llu\n", server_count_name(count), (unsigned long long)server_count(d->server, count), (unsigned long long)at_least);
			fflush(stdout);
			_exit(1);
		}
		nap();
	}
}

/* Until the report says so. */
static double await_report(struct daemon *d, const char *first, const char *second)
{
	double start = now_ms();
	for (bool is_so = false; !is_so; nap()) {
		char *text = daemon_report(d);
		is_so = strstr(text, first) && strstr(text, second);
		CHECK(now_ms() < start + PATIENCE_MS);
		free(text);
	}
	return now_ms() - start;
}

void daemon_await_clients(struct daemon *d, unsigned clients)
{
	char line[32];
	snprintf(line, sizeof(line), " clients %u\n", clients);
	await_report(d, line, "");
}

double daemon_await_empty(struct daemon *d)
{
	return await_report(d, " clients 0\n", "core 0 clients 0 qps 0 cqs 0 mrs 0 ");
}

/* ---- the client ---- */

void raw_connect(struct raw *r, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = 20 };
	memset(r, 0, sizeof(*r));
	r->life_fd = r->wake_fd = r->async_fd = r->channel_fd = -1;
	strcpy(a.sun_path, path);
	r->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(r->socket >= 0);
	CHECK(!setsockopt(r->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	CHECK(!connect(r->socket, (const struct sockaddr *)&a, sizeof(a)));
}

void raw_say(struct raw *r, enum ctl_type type, struct ctl_message *m)
{
	CHECK(!ctl_send(r->socket, type, m, -1));
}

int raw_hear(struct raw *r, struct ctl_message *m, int *fd)
{
	enum ctl_refusal why;
	int got, err = ctl_recv(r->socket, false, m, &got, &why);
	if (fd)
		*fd = got;
	else
		CHECK(err || got < 0);
	if (err)
		CHECK(err == -ECONNRESET); /* above all: it came in time, and is a message */
	else if (m->header.type == CTL_BYE)
		r->bye = m->bye;
	return err ? -1 : (int)m->header.type;
}

void raw_expect(struct raw *r, enum ctl_type type, struct ctl_message *m, int *fd)
{
	int got = raw_hear(r, m, fd);
	if (got == (int)type)
		return;
	printf("%s expected, %s came%s%s\n", ctl_rows[type].name, got < 0 ? "the end" : ctl_rows[got].name, got == CTL_BYE ? ": " : "", got == CTL_BYE ? m->bye.text : "");
	fflush(stdout);
	_exit(1);
}

void raw_expect_bye(struct raw *r, enum ctl_bye_code code, const char *part_of_text)
{
	struct ctl_message m;
	int fd, type;
	while ((type = raw_hear(r, &m, &fd)) != CTL_BYE && type >= 0)
		if (fd >= 0)
			close(fd);
	CHECK(type == CTL_BYE);
	if (m.bye.code != code || !strstr(m.bye.text, part_of_text)) {
		printf("BYE %u \"%s\" came, expected: %u \"...%s...\"\n", m.bye.code, m.bye.text, code, part_of_text);
		fflush(stdout);
		_exit(1);
	}
	CHECK(raw_hear(r, &m, NULL) == -1);
}

void raw_say_hello(struct raw *r)
{
	struct ctl_message m = { .hello = { .magic = CTL_MAGIC, .version_min = CTL_VERSION_MIN, .version_max = CTL_VERSION_MAX, .program = "raw client" } };
	raw_say(r, CTL_HELLO, &m);
}

void raw_map(struct raw *r, const struct ctl_region *region, int fd)
{
	CHECK(region->arena == r->arenas && r->arenas < RAW_ARENAS);
	CHECK(!ctl_memfd_map(fd, region->bytes, true, &r->arena[r->arenas].base));
	CHECK(!ctl_memfd_seal(fd));
	r->arena[r->arenas++].bytes = region->bytes;
	close(fd);
}

void raw_meet(struct raw *r, const char *path)
{
	struct ctl_message m;
	void *life;
	int fd;
	raw_connect(r, path);
	raw_say_hello(r);
	raw_expect(r, CTL_WELCOME, &m, &r->life_fd);
	r->welcome = m.welcome;
	CHECK(!ctl_memfd_map(r->life_fd, CTL_LIFE_BYTES, false, &life));
	r->life = life;
	raw_expect(r, CTL_WAKE, &m, &r->wake_fd);
	raw_expect(r, CTL_ASYNC, &m, &r->async_fd);
	raw_expect(r, CTL_REGION, &m, &fd);
	raw_map(r, &m.region, fd);
}

void raw_say_mapped(struct raw *r, uint32_t arena)
{
	struct ctl_message m = { .mapped.arena = arena };
	raw_say(r, CTL_MAPPED, &m);
}

void raw_open(struct raw *r, const char *path)
{
	struct ctl_message m;
	raw_meet(r, path);
	raw_say_mapped(r, 0);
	raw_expect(r, CTL_READY, &m, NULL);
}

int raw_call(struct raw *r, const struct abi_req *req, struct abi_rep *rep)
{
	struct ctl_message m = { .request = *req };
	int fd, type;
	m.request.sequence = ++r->sequence;
	raw_say(r, CTL_REQUEST, &m);
	while ((type = raw_hear(r, &m, &fd)) != CTL_REPLY) {
		CHECK(type == CTL_REGION || type == CTL_CHANNEL);
		if (type == CTL_REGION) {
			raw_map(r, &m.region, fd);
			raw_say_mapped(r, m.region.arena);
		} else {
			CHECK(req->type == ABI_CREATE_CHANNEL);
			r->channel_fd = fd;
		}
	}
	CHECK(fd < 0 && m.reply.type == req->type && m.reply.sequence == r->sequence);
	*rep = m.reply;
	return rep->status;
}

int raw_command(struct raw *r, enum ctl_type type, struct ctl_message *m, int fd, struct ctl_answer *answer)
{
	CHECK(!ctl_send(r->socket, type, m, fd));
	raw_expect(r, CTL_ANSWER, m, NULL);
	*answer = m->answer;
	CHECK((answer->status < 0) == (answer->text[0] != 0));
	return answer->status;
}

void raw_operate(struct raw *r, const char *path)
{
	struct ctl_message m = { .operator = { .magic = CTL_MAGIC, .version_min = CTL_VERSION_MIN, .version_max = CTL_VERSION_MAX, .program = "raw operator" } };
	struct ctl_answer answer;
	raw_connect(r, path);
	CHECK(!raw_command(r, CTL_OPERATOR, &m, -1, &answer));
	CHECK(answer.value == CTL_VERSION_MAX);
}

void raw_close(struct raw *r)
{
	const int fds[] = { r->socket, r->life_fd, r->wake_fd, r->async_fd, r->channel_fd };
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (r->life)
		munmap((void *)(uintptr_t)r->life, CTL_LIFE_BYTES);
	for (uint32_t i = 0; i < r->arenas; i++)
		munmap(r->arena[i].base, r->arena[i].bytes);
	r->socket = -1;
}

/* ---- requests ---- */

static uint32_t make(struct raw *r, const struct abi_req *req)
{
	struct abi_rep rep;
	if (raw_call(r, req, &rep)) {
		printf("request %u: %d: %s\n", req->type, rep.status, rep.text);
		fflush(stdout);
		_exit(1);
	}
	return rep.handle;
}

uint32_t raw_pd(struct raw *r)
{
	return make(r, &(struct abi_req){ .type = ABI_CREATE_PD });
}

uint32_t raw_cq(struct raw *r, uint32_t entries)
{
	return make(r, &(struct abi_req){ .type = ABI_CREATE_CQ, .create_cq.entries = entries });
}

uint32_t raw_qp(struct raw *r, uint32_t pd, uint32_t cq)
{
	struct abi_req req = { .type = ABI_CREATE_QP, .create_qp = { .pd = pd, .send_cq = cq, .recv_cq = cq, .cap = { 16, 16, 1, 1, 0 } } };
	return make(r, &req);
}

int raw_modify(struct raw *r, uint32_t qp, uint32_t mask, const struct abi_qp_attr *attr, struct abi_rep *rep)
{
	struct abi_req req = { .type = ABI_MODIFY_QP, .modify_qp = { .qp = qp, .mask = mask, .attr = *attr } };
	return raw_call(r, &req, rep);
}

int raw_connect_qp(struct raw *r, uint32_t qp, const char *ip4, uint32_t dest_qpn, struct abi_rep *rep)
{
	struct abi_qp_attr init = { .state = ABI_QP_INIT, .port_num = 1 };
	struct abi_qp_attr rtr = { .state = ABI_QP_RTR, .path_mtu = ABI_MTU_1024, .dest_qpn = dest_qpn, .av = { .dgid = { [10] = 0xff, [11] = 0xff }, .hop_limit = 64 } };
	CHECK(inet_pton(AF_INET, ip4, rtr.av.dgid + 12) == 1);
	if (raw_modify(r, qp, ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS, &init, rep))
		return rep->status;
	return raw_modify(r, qp, ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN | ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER, &rtr, rep);
}

int raw_destroy(struct raw *r, enum abi_msg type, uint32_t handle)
{
	struct abi_rep rep;
	return raw_call(r, &(struct abi_req){ .type = type, .handle = handle }, &rep);
}

/* ---- clients in processes of their own ---- */

pid_t client_fork(void (*body)(const char *path, int fd), const char *path, int *fd)
{
	int pair[2];
	char byte;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	fflush(NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		body(path, pair[1]);
		_exit(0);
	}
	close(pair[1]);
	*fd = pair[0];
	CHECK(read(pair[0], &byte, 1) == 1);
	return pid;
}

void client_stay(int fd)
{
	CHECK(write(fd, "", 1) == 1);
	for (;;)
		pause();
}

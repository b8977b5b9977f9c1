/* SPDX-License-Identifier: BSD-3-Clause */
/* For the tests of the server: a daemon (engine over an in-process link, server on a thread of its own), and a client that speaks the control protocol by hand and can so also speak it wrongly. Any failure ends the
 * process with a line (CHECK of side.h), so both are used in a child process (side_child). */
#ifndef UROCE_TEST_SERVER_FIXTURE_H
#define UROCE_TEST_SERVER_FIXTURE_H

#include <pthread.h>
#include <semaphore.h>

#include "server.h"
#include "side.h"

struct daemon {
	struct engine *engine;
	struct server *server;
	struct server_config config; /* daemon_prepare fills it, a test changes it before daemon_run */
	struct log log;
	char folder[32], path[64];
	pthread_t thread;
	sem_t started;
	int err;                     /* of server_start */
	char last_line[512];
	unsigned lines;
	FILE *_Atomic report;        /* written to between two runs of the loop, then closed */
	sem_t reported;
	_Atomic bool is_stopping;
	enum ctl_bye_code code;
	const char *text;
};

/* Opens the engine and chooses a path in a folder of its own. */
void daemon_prepare(struct daemon *d);
/* The same, with more keys in the engine's device string: ",key=value". */
void daemon_prepare_with(struct daemon *d, const char *keys);
/* The same with a device string of the test's own, "served:...". */
void daemon_prepare_device(struct daemon *d, const char *device);
/* Starts the server on its thread; *d.err says how it went. */
void daemon_run(struct daemon *d);
void daemon_stop(struct daemon *d, enum ctl_bye_code code, const char *text);
void daemon_close(struct daemon *d);
/* A report as a string, to be freed. */
char *daemon_report(struct daemon *d);
/* Waits up to 20 s until the counter has reached the value. */
void daemon_await(struct daemon *d, enum server_count count, uint64_t at_least);
/* Waits until that many clients are left. */
void daemon_await_clients(struct daemon *d, unsigned clients);
/* Waits until no client is left, nor an object of one in the cores; how many milliseconds it took. */
double daemon_await_empty(struct daemon *d);
double now_ms(void);
unsigned count_fds(void);

#define RAW_ARENAS 64u
struct raw {
	int socket;
	int life_fd, wake_fd, async_fd, channel_fd; /* -1: none; channel_fd: the last one */
	const struct ctl_life *life;
	struct ctl_welcome welcome;
	struct {
		void *base;
		uint64_t bytes;
	} arena[RAW_ARENAS];
	uint32_t arenas;
	uint32_t sequence;
	struct ctl_bye bye; /* what raw_hear found last, when that was BYE */
};

void raw_connect(struct raw *r, const char *path);
void raw_say(struct raw *r, enum ctl_type type, struct ctl_message *m);
/* Type of the next message, or -1 at the end of the connection. *fd: -1: none; fd NULL: none may come. */
int raw_hear(struct raw *r, struct ctl_message *m, int *fd);
/* The next message must be this one. */
void raw_expect(struct raw *r, enum ctl_type type, struct ctl_message *m, int *fd);
/* BYE with that code must come, and then the end. */
void raw_expect_bye(struct raw *r, enum ctl_bye_code code, const char *part_of_text);
void raw_say_hello(struct raw *r);
/* HELLO up to and with REGION 0, which is mapped. */
void raw_meet(struct raw *r, const char *path);
void raw_say_mapped(struct raw *r, uint32_t arena);
/* raw_meet, then up to READY. */
void raw_open(struct raw *r, const char *path);
/* Connects as an operator. */
void raw_operate(struct raw *r, const char *path);
/* One message of an operator's, answered by ANSWER; the status. */
int raw_command(struct raw *r, enum ctl_type type, struct ctl_message *m, int fd, struct ctl_answer *answer);
/* A REGION that came: mapped and kept. */
void raw_map(struct raw *r, const struct ctl_region *region, int fd);
/* One request, with the regions that it needs. Returns its status. */
int raw_call(struct raw *r, const struct abi_req *req, struct abi_rep *rep);
void raw_close(struct raw *r);

/* Requests that must succeed; the handle. */
uint32_t raw_pd(struct raw *r);
uint32_t raw_cq(struct raw *r, uint32_t entries);
uint32_t raw_qp(struct raw *r, uint32_t pd, uint32_t cq);
/* Takes a QP to INIT and RTR; the status of the latter. */
int raw_connect_qp(struct raw *r, uint32_t qp, const char *ip4, uint32_t dest_qpn, struct abi_rep *rep);
int raw_modify(struct raw *r, uint32_t qp, uint32_t mask, const struct abi_qp_attr *attr, struct abi_rep *rep);
int raw_destroy(struct raw *r, enum abi_msg type, uint32_t handle);

/* A client in a process of its own, to be killed; fd is what body may use to say that it is where the test wants it (client_stay), for which this waits. */
pid_t client_fork(void (*body)(const char *path, int fd), const char *path, int *fd);
void client_stay(int fd);

#endif

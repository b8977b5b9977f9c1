/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines over net_memif: two processes, each role, full-size frames, either first, either killed, what is refused, and a peer that leaves in the middle of bursts. No root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memif_peer.h"
#include "operations.h"

static char folder[64]; /* for sockets and captures */

static int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/uroce-memif-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
	return rmdir(folder); /* so that what an engine leaves behind is a failure */
}

struct job {
	const char *keys[2]; /* more of each side's device string; [0] is the server */
	uint32_t path_mtu, most;
	unsigned late;       /* the side that comes later, 2: none */
	bool is_file, is_captured;
};

static void make_device(char *device, size_t room, const struct job *job, int side)
{
	int n = snprintf(device, room, "embedded:net_memif0,role=%s,socket=%s/s,socket-abstract=%s,ip=10.9.0.%d/24%s", side ? "client" : "server", folder, job->is_file ? "no" : "yes", side + 1, job->keys[side]);
	if (job->is_captured)
		snprintf(device + n, room - (size_t)n, ",capture=%s/capture%d", folder, side);
}

static void run_side(int side, int fd, void *arg)
{
	const struct job *job = arg;
	struct side s;
	char device[384];
	make_device(device, sizeof(device), job, side);
	if (job->late == (unsigned)side)
		usleep(700000);
	side_open(&s, device);
	operations_run(&s, fd, (unsigned)side, job->path_mtu, job->most);
	CHECK(!side_drops(&s, DROP_ICRC));
	side_close(&s);
}

static void run_server(int fd, void *arg)
{
	run_side(0, fd, arg);
}

static void run_client(int fd, void *arg)
{
	run_side(1, fd, arg);
}

/* A WRITE_WITH_IMM of one packet: Ethernet, IPv4, UDP, BTH, RETH, immediate, 4096 bytes, ICRC. */
#define LARGEST (14u + 20 + 8 + 12 + 16 + 4 + 4096 + 4)

static void check_capture(int side)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/capture%d", folder, side);
	uint32_t sent = operations_largest_frame(path, true), received = operations_largest_frame(path, false);
	unlink(path);
	assert_int_equal(sent, LARGEST);
	assert_int_equal(received, LARGEST);
}

/* known-bugs: 56 59 */
static void test_full_size_each_way(void **state)
{
	struct job job = { { ",mtu=4096", ",mtu=4096" }, 4096, 1 << 16, 2, false, true };
	assert_int_equal(side_children(run_server, run_client, &job), 0);
	check_capture(0);
	check_capture(1);
}

static void test_megabytes(void **state)
{
	struct job job = { { "", "" }, 4096, 1 << 20, 2, false, false };
	assert_int_equal(side_children(run_server, run_client, &job), 0);
}

/* What is sent before there is a peer waits or is lost: ARP asks again, packets are sent again. */
static void test_either_is_first(void **state)
{
	for (unsigned late = 0; late < 2; late++) {
		struct job job = { { "", "" }, 4096, 1 << 16, late, true, false };
		assert_int_equal(side_children(run_server, run_client, &job), 0);
	}
}

/* Rings of 16 slots under a window of 256 packets. */
/* known-bugs: 55 */
static void test_small_rings(void **state)
{
	struct job job = { { "", ",rsize=4,window=256" }, 4096, 1 << 20, 2, false, false };
	assert_int_equal(side_children(run_server, run_client, &job), 0);
}

/* A client's buffers decide what a server may send, too. */
static void test_small_buffers(void **state)
{
	struct job job = { { ",mtu=1024", ",bsize=2048" }, 1024, 1 << 16, 2, false, false };
	assert_int_equal(side_children(run_server, run_client, &job), 0);
}

/* ---- what is refused ---- */

struct refusal {
	const char *keys;
	int err;
	const char *word;
};

static void refuse(void *arg)
{
	const struct refusal *r = arg;
	char device[384];
	snprintf(device, sizeof(device), "embedded:net_memif0,ip=10.9.0.1/24%s", r->keys);
	side_is_refused(device, r->err, r->word);
}

static void test_refused(void **state)
{
	static struct refusal rows[] = {
		{ ",role=server,socket=uroce-refused,mtu=4096,bsize=2048", -EINVAL, "path MTU of 1024" },
		{ ",role=master", -EINVAL, "role" },
		{ ",role=server,socket=uroce-refused,rsize=20", -EINVAL, "rsize" },
		{ ",role=server,socket=uroce-refused,bsize=70000", -EINVAL, "bsize" },
		{ ",role=server,socket=/nonexistent/s,socket-abstract=no", -ENOENT, "/nonexistent/s" },
		{ ",socket=uroce-refused,zero-copy=yes", -EINVAL, "socket-abstract" },
		{ ",socket=uroce-refused,cores=2", -EINVAL, "cores" },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(side_child(refuse, &rows[i]), 0);
}

/* Two servers at one socket. */
static void serve_twice(void *arg)
{
	struct side s;
	struct refusal second = { (const char *)arg, -EADDRINUSE, "in use" };
	char device[384];
	snprintf(device, sizeof(device), "embedded:net_memif1,ip=10.9.0.9/24%s", second.keys);
	side_open(&s, device);
	refuse(&second);
	side_close(&s);
}

static void test_socket_in_use(void **state)
{
	char keys[160];
	for (int is_file = 0; is_file < 2; is_file++) {
		snprintf(keys, sizeof(keys), ",role=server,socket=%s/s,socket-abstract=%s", folder, is_file ? "no" : "yes");
		assert_int_equal(side_child(serve_twice, keys), 0);
	}
}

/* The server asks for more than the client's buffers hold. */
static void serve_too_small(int fd, void *arg)
{
	struct side s;
	char device[384], byte = 0;
	make_device(device, sizeof(device), arg, 0);
	side_open(&s, device);
	for (int i = 0; i < 200 && !strstr(side_last_line(), "too small"); i++)
		usleep(10000);
	CHECK(strstr(side_last_line(), "too small"));
	side_exchange(fd, &byte, &byte, 1);
	side_close(&s);
}

static void be_too_small(int fd, void *arg)
{
	struct side s;
	char device[384], byte = 0;
	make_device(device, sizeof(device), arg, 1);
	side_open(&s, device);
	side_exchange(fd, &byte, &byte, 1);
	side_close(&s);
}

/* known-bugs: 56 */
static void test_too_small_a_client_is_turned_away(void **state)
{
	struct job job = { { "", ",bsize=2048" }, 0, 0, 2, false, false };
	assert_int_equal(side_children(serve_too_small, be_too_small, &job), 0);
}

/* ---- the end of a peer ---- */

#define LIVES 4

/* Stays, whatever becomes of the other one: a new QP for each of its lives. */
static void outlive(int side, int fd, void *arg)
{
	const struct job *job = arg;
	struct side s;
	struct uroce_wc wc;
	char device[384];
	make_device(device, sizeof(device), job, side);
	side_open(&s, device);
	for (int life = 0; life < LIVES; life++) {
		struct side_card dead = operations_run(&s, fd, (unsigned)side, job->path_mtu, job->most);
		side_post_write(&s, 7, 0, 1 << 20, &dead, SIDE_BYTES / 2); /* under way when it dies, or not */
		operations_renew(&s);
		side_connect(&s, &dead, job->path_mtu);
		side_post_write(&s, 8, 0, 1 << 20, &dead, 0);
		while (!uroce_cq_poll(s.cq, &wc, 1))
			usleep(1000);
		CHECK(wc.status == UROCE_WC_RETRY_EXC_ERR || wc.status == UROCE_WC_REM_ACCESS_ERR);
		operations_renew(&s);
	}
	side_close(&s);
}

/* Dies by SIGKILL with traffic under way, again and again. */
static void die_often(int side, int fd, void *arg)
{
	const struct job *job = arg;
	char device[384];
	int status;
	make_device(device, sizeof(device), job, side);
	for (int life = 0; life < LIVES; life++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			struct side s;
			side_open(&s, device);
			operations_run(&s, fd, (unsigned)side, job->path_mtu, job->most);
			for (uint32_t i = 0; i < 50; i++)
				side_post_write(&s, i, 0, 1 << 20, &(struct side_card){ .rkey = 0x123456 }, 0);
			kill(getpid(), SIGKILL);
		}
		CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

static void outlive_as_server(int fd, void *arg)
{
	outlive(0, fd, arg);
}

static void outlive_as_client(int fd, void *arg)
{
	outlive(1, fd, arg);
}

static void die_as_server(int fd, void *arg)
{
	die_often(0, fd, arg);
	char path[96];
	snprintf(path, sizeof(path), "%s/s", folder);
	CHECK(!access(path, F_OK)); /* left behind, and every life but the first has found one */
	unlink(path);
	snprintf(path, sizeof(path), "%s/s.driver", folder);
	unlink(path);
}

static void die_as_client(int fd, void *arg)
{
	die_often(1, fd, arg);
}

static void test_killed_client(void **state)
{
	struct job job = { { "", "" }, 4096, 1 << 16, 2, true, false };
	assert_int_equal(side_children(outlive_as_server, die_as_client, &job), 0);
}

static void test_killed_server_leaves_its_socket(void **state)
{
	struct job job = { { "", "" }, 4096, 1 << 16, 2, true, false };
	assert_int_equal(side_children(die_as_server, outlive_as_client, &job), 0);
}

/* ---- a peer that leaves under a burst ---- */

#define FLOODS 60

static void serve_after_floods(int fd, void *arg)
{
	struct side s;
	char device[384], byte = 0;
	make_device(device, sizeof(device), arg, 0);
	side_open(&s, device);
	side_exchange(fd, &byte, &byte, 1); /* it may begin */
	side_exchange(fd, &byte, &byte, 1); /* it has ended */
	CHECK(side_drops(&s, DROP_ETHERTYPE) > FLOODS);
	operations_run(&s, fd, 0, 4096, 1 << 16);
	side_close(&s);
}

static void flood_then_behave(int fd, void *arg)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char byte = 0;
	snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s/s", folder);
	side_exchange(fd, &byte, &byte, 1);
	for (unsigned i = 0; i < FLOODS; i++)
		memif_peer_flood(&un, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(un.sun_path + 1)), 2 + i % 7);
	side_exchange(fd, &byte, &byte, 1);
	run_side(1, fd, arg);
}

/* The driver's own way to hear of an end unmaps the rings while they are read. */
static void test_peer_leaves_under_bursts(void **state)
{
	struct job job = { { ",idle=spin", "" }, 4096, 1 << 16, 2, false, false };
	assert_int_equal(side_children(serve_after_floods, flood_then_behave, &job), 0);
}

/* A stranger who connects and says nothing, or nonsense, keeps nobody out for long. */
static void talk_nonsense(int fd, void *arg)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char noise[200], byte = 0;
	memset(noise, 7, sizeof(noise));
	snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s/s", folder);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(un.sun_path + 1));
	side_exchange(fd, &byte, &byte, 1);
	for (size_t n = 1; n <= sizeof(noise); n += 1 + n / 16) {
		int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		CHECK(s >= 0 && !connect(s, (struct sockaddr *)&un, len));
		CHECK(send(s, noise, n, MSG_NOSIGNAL) == (ssize_t)n);
		struct pollfd p = { .fd = s, .events = POLLRDHUP };
		CHECK(poll(&p, 1, 5000) == 1);
		close(s);
	}
	int silent = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(silent >= 0 && !connect(silent, (struct sockaddr *)&un, len));
	run_side(1, fd, arg);
	close(silent);
}

static void serve_after_nonsense(int fd, void *arg)
{
	struct side s;
	char device[384], byte = 0;
	make_device(device, sizeof(device), arg, 0);
	side_open(&s, device);
	side_exchange(fd, &byte, &byte, 1);
	usleep(3000000); /* the silent one holds the place for two seconds */
	operations_run(&s, fd, 0, 4096, 1 << 16);
	side_close(&s);
}

static void test_nonsense(void **state)
{
	struct job job = { { "", "" }, 4096, 1 << 16, 2, false, false };
	assert_int_equal(side_children(serve_after_nonsense, talk_nonsense, &job), 0);
}

/* ---- descriptors ---- */

#define STRANGERS 20u

/* What a stranger sends: so many descriptors with a message of this type and length. */
static const struct parcel {
	uint8_t type;
	size_t len;
	unsigned fds;
} parcels[] = { { 4, 128, 2 }, { 4, 128, 10 }, { 1, 128, 1 }, { 4, 64, 1 }, { 1, 0, 1 } };

static void send_parcel(int s, const struct parcel *p)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(10 * sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(p->fds * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	uint8_t message[128] = { p->type };
	int fd[10];
	struct iovec iov = { message, p->len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(p->fds * sizeof(int)) };
	for (unsigned i = 0; i < p->fds; i++)
		fd[i] = 0;
	memcpy(CMSG_DATA(&control.header), fd, p->fds * sizeof(int));
	CHECK(sendmsg(s, &m, MSG_NOSIGNAL) == (ssize_t)p->len);
}

/* Returns once it is turned away. */
static void be_stranger(const struct parcel *p)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s/s", folder);
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(s >= 0 && !connect(s, (struct sockaddr *)&un, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(un.sun_path + 1))));
	if (p)
		send_parcel(s, p);
	CHECK(poll(&(struct pollfd){ .fd = s, .events = POLLRDHUP }, 1, 5000) == 1);
	close(s);
}

static void send_descriptors(int fd, void *arg)
{
	char byte = 0;
	side_exchange(fd, &byte, &byte, 1);
	for (unsigned i = 0; i < STRANGERS * sizeof(parcels) / sizeof(parcels[0]); i++)
		be_stranger(&parcels[i / STRANGERS]);
	side_exchange(fd, &byte, &byte, 1);
}

static unsigned count_fds(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void keep_no_descriptor(int fd, void *arg)
{
	struct side s;
	char device[384], byte = 0;
	make_device(device, sizeof(device), arg, 0);
	side_open(&s, device);
	unsigned had = count_fds();
	side_exchange(fd, &byte, &byte, 1);
	side_exchange(fd, &byte, &byte, 1);
	for (unsigned i = 0; i < 200 && count_fds() > had; i++)
		usleep(10000);
	CHECK(count_fds() <= had);
	side_close(&s);
}

static void test_descriptors_do_not_stay(void **state)
{
	struct job job = { { "", "" }, 0, 0, 2, false, false };
	assert_int_equal(side_children(keep_no_descriptor, send_descriptors, &job), 0);
}

/* ---- who may connect ---- */

static void be_another_user(int fd, void *arg)
{
	char byte = 0;
	side_exchange(fd, &byte, &byte, 1);
	CHECK(!setresuid(65534, 65534, 65534));
	be_stranger(NULL);
	side_exchange(fd, &byte, &byte, 1);
}

static void serve_no_other_user(int fd, void *arg)
{
	struct side s;
	char device[384], byte = 0;
	make_device(device, sizeof(device), arg, 0);
	side_open(&s, device);
	side_exchange(fd, &byte, &byte, 1);
	side_exchange(fd, &byte, &byte, 1);
	CHECK(strstr(side_last_line(), "of user 65534, is turned away"));
	side_close(&s);
}

static void test_other_users_are_turned_away(void **state)
{
	struct job job = { { "", "" }, 0, 0, 2, false, false };
	if (geteuid())
		skip();
	assert_int_equal(side_children(serve_no_other_user, be_another_user, &job), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_size_each_way),
		cmocka_unit_test(test_megabytes),
		cmocka_unit_test(test_either_is_first),
		cmocka_unit_test(test_small_rings),
		cmocka_unit_test(test_small_buffers),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_socket_in_use),
		cmocka_unit_test(test_too_small_a_client_is_turned_away),
		cmocka_unit_test(test_killed_client),
		cmocka_unit_test(test_killed_server_leaves_its_socket),
		cmocka_unit_test(test_peer_leaves_under_bursts),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_descriptors_do_not_stay),
		cmocka_unit_test(test_other_users_are_turned_away),
	};
	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The memif protocol, version 2, as a client speaks it: hello, init, one region with both rings, connect. Frames are of an Ethernet type that nobody takes. */
#include "memif_peer.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "side.h"

#define LOG2_SLOTS 10u
#define SLOTS (1u << LOG2_SLOTS)
#define BUFFER 4352u
#define COOKIE 0x3e31f20u
#define FRAME 64u

enum { ACK = 1, HELLO = 2, INIT = 3, ADD_REGION = 4, ADD_RING = 5, CONNECT = 6, CONNECTED = 7 };

struct descriptor {
	uint16_t flags, region;
	uint32_t length, offset, metadata;
};

struct ring {
	uint32_t cookie;
	uint16_t flags;
	_Atomic uint16_t head;
	uint8_t fill0[56];
	_Atomic uint16_t tail;
	uint8_t fill1[62];
	struct descriptor desc[SLOTS];
};

struct region {
	struct ring ring[2]; /* to the server, from the server */
	uint8_t buffer[2][SLOTS][BUFFER];
};

/* Sends a message with an fd (-1: none) and takes the answer, which has to be of that type. */
static void say(int s, unsigned type, const void *body, size_t len, int fd, unsigned answer)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	uint8_t message[128] = { (uint8_t)type };
	struct iovec iov = { message, sizeof(message) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	memcpy(message + 2, body, len);
	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
	}
	CHECK(sendmsg(s, &m, MSG_NOSIGNAL) == sizeof(message));
	CHECK(recv(s, message, sizeof(message), 0) == sizeof(message) && message[0] == answer);
}

static struct region *make_region(int *fd)
{
	*fd = memfd_create("memif", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	CHECK(*fd >= 0 && !ftruncate(*fd, sizeof(struct region)) && !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK));
	struct region *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	CHECK(r != MAP_FAILED);
	for (unsigned i = 0; i < 2; i++) {
		r->ring[i].cookie = COOKIE;
		for (unsigned j = 0; j < SLOTS; j++) {
			r->ring[i].desc[j] = (struct descriptor){ .length = i ? BUFFER : FRAME, .offset = (uint32_t)(offsetof(struct region, buffer) + (i * SLOTS + j) * BUFFER) };
			memset(r->buffer[i][j], 0xff, 6);
			r->buffer[i][j][12] = 0x88;
			r->buffer[i][j][13] = 0xb5;
		}
	}
	return r;
}

static void shake_hands(int s, int fd)
{
	uint8_t hello[128], init[61] = { 0, 2 }, connect[32] = "flood";
	struct __attribute__((packed)) {
		uint16_t index;
		uint64_t size;
	} add_region = { 0, sizeof(struct region) };
	struct __attribute__((packed)) {
		uint16_t flags, index, region;
		uint32_t offset;
		uint8_t log2_slots;
		uint16_t private_len;
	} add_ring = { 1, 0, 0, 0, LOG2_SLOTS, 0 };
	CHECK(recv(s, hello, sizeof(hello), 0) == sizeof(hello) && hello[0] == HELLO);
	say(s, INIT, init, sizeof(init), -1, ACK);
	say(s, ADD_REGION, &add_region, sizeof(add_region), fd, ACK);
	for (unsigned i = 0; i < 2; i++) {
		int event = eventfd(0, EFD_CLOEXEC);
		add_ring.flags = !i;
		add_ring.offset = (uint32_t)(i * sizeof(struct ring));
		say(s, ADD_RING, &add_ring, sizeof(add_ring), event, ACK);
		close(event);
	}
	say(s, CONNECT, connect, sizeof(connect), -1, CONNECTED);
}

static _Atomic bool is_over;

/* The ring to the server is always full. */
static void *pour(void *arg)
{
	struct ring *ring = arg;
	while (!atomic_load_explicit(&is_over, memory_order_relaxed))
		atomic_store_explicit(&ring->head, (uint16_t)(atomic_load_explicit(&ring->tail, memory_order_acquire) + SLOTS), memory_order_release);
	return NULL;
}

void memif_peer_flood(const struct sockaddr_un *server, socklen_t len, unsigned ms)
{
	pthread_t thread;
	int fd, s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(s >= 0 && !connect(s, (const struct sockaddr *)server, len));
	struct region *r = make_region(&fd);
	shake_hands(s, fd);
	is_over = false;
	CHECK(!pthread_create(&thread, NULL, pour, &r->ring[0]));
	usleep(ms * 1000);
	close(s);
	usleep(3000); /* it is read from for a while after that */
	is_over = true;
	pthread_join(thread, NULL);
	munmap(r, sizeof(*r));
	close(fd);
}

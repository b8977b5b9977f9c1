/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket: what client and daemon say to each other over SOCK_SEQPACKET, one message a record. Every message is a fixed header and a body of exactly the
 * length that its row in the table says, and carries one file descriptor or none, as the row says. Byte order and layout are the machine's: both ends run on it.
 *
 *     client                                   daemon
 *       HELLO (versions, features)      ->
 *                                       <-     WELCOME (version, features) + fd: the life page, read-only
 *                                       <-     WAKE + fd: an eventfd, written to by the client to wake its engine core
 *                                       <-     ASYNC + fd: reading end of the asynchronous events, a SOCK_SEQPACKET socket
 *                                       <-     REGION (arena 0) + fd
 *       MAPPED (arena 0)                ->
 *                                       <-     READY
 *       REQUEST (struct abi_req)        ->
 *                                       <-     REGION + fd        only if the request needs memory that no arena has
 *       MAPPED                          ->
 *                                       <-     CHANNEL + fd       only before the reply to CREATE_CHANNEL; as ASYNC
 *                                       <-     REPLY (struct abi_rep)
 *       BYE or just close               ->
 *                                       <-     BYE (code, text), at any time: the daemon ends the session
 *
 * One request is under way at a time. A client maps a region read-write and seals it (no new writable mapping, no hole, no change of size) before it says MAPPED; the
 * daemon looks whether it did, and uses it.
 *
 * An operator is not a client: it looks at the daemon and changes it. Who may be one: root, and the user that the daemon runs as; others are answered -EPERM.
 *
 *     operator                                 daemon
 *       OPERATOR (as HELLO)             ->
 *                                       <-     ANSWER (status, the version)
 *       SHOW (noun)                     ->
 *                                       <-     REPORT (bytes) + fd: a memfd that nobody can change any more, with JSON; or ANSWER with an error
 *       GID_ADD, GID_DEL, CLIENT_KILL, CAPTURE_START + fd: the file, CAPTURE_STOP  ->
 *                                       <-     ANSWER (status, a value, text)
 *
 * One message is under way at a time here too. A capture ends with the operator that started it. */
#ifndef UROCE_CTL_H
#define UROCE_CTL_H

#include <stdbool.h>
#include <stdint.h>

#include "msg.h"

#define CTL_MAGIC 0x65636f7275ull /* "uroce" */
#define CTL_VERSION_MIN 1u        /* what this library speaks */
#define CTL_VERSION_MAX 1u
#define CTL_FEATURES 0ull         /* bits of optional parts; none yet */
#define CTL_TEXT_MAX 160u
#define CTL_PROGRAM_MAX 32u
#define CTL_NOUN_MAX 32u

enum ctl_type {
	CTL_HELLO,
	CTL_WELCOME,
	CTL_WAKE,
	CTL_ASYNC,
	CTL_REGION,
	CTL_MAPPED,
	CTL_READY,
	CTL_REQUEST,
	CTL_CHANNEL,
	CTL_REPLY,
	CTL_BYE,
	CTL_OPERATOR,
	CTL_SHOW,
	CTL_GID_ADD,
	CTL_GID_DEL,
	CTL_CLIENT_KILL,
	CTL_CAPTURE_START,
	CTL_CAPTURE_STOP,
	CTL_ANSWER,
	CTL_REPORT,
	CTL_TYPE_COUNT
};

struct ctl_header {
	uint32_t type;   /* enum ctl_type */
	uint32_t length; /* of the body, bytes */
};

struct ctl_hello {
	uint64_t magic;
	uint32_t version_min, version_max;
	uint64_t features;
	char program[CTL_PROGRAM_MAX]; /* for log lines; zero terminated */
};

struct ctl_welcome {
	uint32_t version;
	uint32_t core;     /* which engine core serves this client */
	uint64_t features; /* those that both have */
};

struct ctl_region {
	uint32_t arena;
	uint32_t reserved;
	uint64_t bytes;
};

struct ctl_mapped {
	uint32_t arena;
	uint32_t reserved;
};

/* Why a session ends. */
enum ctl_bye_code {
	CTL_BYE_DONE,      /* the client has finished */
	CTL_BYE_SHUTDOWN,  /* the daemon is going down */
	CTL_BYE_VERSION,   /* no version that both speak */
	CTL_BYE_PROTOCOL,  /* a message that the other side may not send now, or not so */
	CTL_BYE_LIMIT,     /* no room for another client */
	CTL_BYE_KILLED,    /* an operator ended it */
	CTL_BYE_FAILED,    /* the daemon could not, see the text */
	CTL_BYE_CODE_COUNT
};

struct ctl_bye {
	uint32_t code;
	uint32_t reserved;
	char text[CTL_TEXT_MAX]; /* one sentence, zero terminated */
};

struct ctl_show {
	char noun[CTL_NOUN_MAX]; /* "device", "qp" and so on; zero terminated */
};

struct ctl_gid_add {
	uint8_t gid[16];
	uint32_t vlan;       /* 1..4094, 0: untagged */
	uint32_t prefix_len; /* bits of the on-link network: of IPv4 0..32, of IPv6 0..128 */
};

struct ctl_gid_del {
	uint32_t index;
	uint32_t reserved;
};

struct ctl_client_kill {
	uint64_t id; /* as in "show client" */
};

struct ctl_capture_start {
	uint32_t qpn; /* frames of this QP only; 0: of all */
	uint32_t reserved;
};

struct ctl_answer {
	int32_t status; /* 0 or a negative errno */
	uint32_t reserved;
	uint64_t value; /* OPERATOR: the version; GID_ADD: the index; CAPTURE_STOP: how many frames are in the file; else 0 */
	char text[CTL_TEXT_MAX]; /* when status is negative: one sentence, zero terminated */
};

struct ctl_report {
	uint64_t bytes; /* of the memfd; no zero at the end */
};

/* Any message. */
struct ctl_message {
	struct ctl_header header;
	union {
		struct ctl_hello hello;
		struct ctl_welcome welcome;
		struct ctl_region region;
		struct ctl_mapped mapped;
		struct abi_req request;
		struct abi_rep reply;
		struct ctl_bye bye;
		struct ctl_hello operator;
		struct ctl_show show;
		struct ctl_gid_add gid_add;
		struct ctl_gid_del gid_del;
		struct ctl_client_kill client_kill;
		struct ctl_capture_start capture_start;
		struct ctl_answer answer;
		struct ctl_report report;
	};
};

/* One row a message. */
struct ctl_row {
	const char *name;
	uint32_t length;       /* of the body: exact */
	bool has_fd;
	bool is_from_client, is_from_daemon; /* client: an operator too */
};
extern const struct ctl_row ctl_rows[CTL_TYPE_COUNT];

/* The page that tells every client whether the daemon lives: written by the kernel when the daemon's thread that holds the robust mutex in it ends, however it ends
 * (set_robust_list(2)). A memfd of CTL_LIFE_BYTES, sealed against shrinking before it is sent; clients map it read-only and read one word. */
struct ctl_life {
	_Atomic uint32_t word;
	uint32_t reserved[15];
};
#define CTL_LIFE_DEAD 0x40000000u /* FUTEX_OWNER_DIED */
#define CTL_LIFE_BYTES 4096u

#endif

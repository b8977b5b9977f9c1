/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce: RDMA over Converged Ethernet v2 in user space. The public API.
 *
 * Conventions. A fallible call returns 0 or a negative errno and gives its object through the last argument; the reason goes to the log as one line. A burst call (post, poll)
 * returns a count. destroy calls accept NULL. Words are those of the InfiniBand Architecture specification, values of enums those of <infiniband/verbs.h> where it has them.
 *
 * Threads. Control calls (open, create, modify, query, destroy) of one context may be made from any thread, one at a time per context (the library serialises them with a lock of its own).
 * Posting to one queue of one QP, and polling one CQ, are each single-threaded: the caller serialises. Different queues and CQs are independent. */
#ifndef UROCE_H
#define UROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct uroce_context;
struct uroce_pd;
struct uroce_mr;
struct uroce_channel;
struct uroce_cq;
struct uroce_qp;

struct uroce_gid {
	uint8_t raw[16]; /* wire order */
};

/* ---- device ---- */
struct uroce_open_attr {
	void (*log)(void *arg, int level, const char *line); /* NULL: standard error; level 0 error .. 3 debug */
	void *log_arg;
	int log_level; /* 0: from environment UROCE_LOG ("error", "warn", "info", "debug"), else warn; 1 + level else */
};

struct uroce_device_attr {
	char name[32];
	uint8_t mac[6];
	uint8_t mode; /* 0 embedded, 1 inline, 2 served */
	bool port_up;
	uint32_t active_mtu; /* bytes: largest path MTU the port carries */
	uint32_t gid_slots;
	uint32_t max_qp, max_cq, max_mr, max_pd;
	uint32_t max_qp_wr, max_cqe, max_sge, max_inline, max_rd_atomic;
	uint64_t max_msg_bytes;
};

int uroce_open(const char *device, const struct uroce_open_attr *attr, struct uroce_context **out);
void uroce_close(struct uroce_context *ctx);
int uroce_query_device(struct uroce_context *ctx, struct uroce_device_attr *attr);
int uroce_query_gid(struct uroce_context *ctx, uint32_t index, struct uroce_gid *gid, uint16_t *vlan);
/* Inline mode only: runs the engine once. Number of frames and WQEs handled; -EBUSY: another thread is in it; -EOPNOTSUPP. */
int uroce_engine_poll(struct uroce_context *ctx);

/* ---- memory ---- */
enum uroce_access {
	UROCE_ACCESS_LOCAL_WRITE = 1 << 0,
	UROCE_ACCESS_REMOTE_WRITE = 1 << 1,
	UROCE_ACCESS_REMOTE_READ = 1 << 2,
	UROCE_ACCESS_REMOTE_ATOMIC = 1 << 3,
};
int uroce_pd_create(struct uroce_context *ctx, struct uroce_pd **out);
int uroce_pd_destroy(struct uroce_pd *pd);
/* Pool memory: page aligned, shared with the engine, usable in every mode. */
int uroce_alloc(struct uroce_context *ctx, size_t bytes, void **out);
int uroce_free(struct uroce_context *ctx, void *p);
int uroce_mr_register(struct uroce_pd *pd, void *addr, size_t len, uint32_t access, struct uroce_mr **out);
int uroce_mr_register_iova(struct uroce_pd *pd, void *addr, size_t len, uint64_t iova, uint32_t access, struct uroce_mr **out);
int uroce_mr_deregister(struct uroce_mr *mr);
uint32_t uroce_mr_lkey(const struct uroce_mr *mr);
uint32_t uroce_mr_rkey(const struct uroce_mr *mr);

/* ---- completion ---- */
enum uroce_wc_status {
	UROCE_WC_SUCCESS = 0,
	UROCE_WC_LOC_LEN_ERR = 1,
	UROCE_WC_LOC_QP_OP_ERR = 2,
	UROCE_WC_LOC_PROT_ERR = 4,
	UROCE_WC_WR_FLUSH_ERR = 5,
	UROCE_WC_MW_BIND_ERR = 6,
	UROCE_WC_BAD_RESP_ERR = 7,
	UROCE_WC_LOC_ACCESS_ERR = 8,
	UROCE_WC_REM_INV_REQ_ERR = 9,
	UROCE_WC_REM_ACCESS_ERR = 10,
	UROCE_WC_REM_OP_ERR = 11,
	UROCE_WC_RETRY_EXC_ERR = 12,
	UROCE_WC_RNR_RETRY_EXC_ERR = 13,
	UROCE_WC_FATAL_ERR = 19,
	UROCE_WC_GENERAL_ERR = 21,
};
enum uroce_wc_opcode {
	UROCE_WC_SEND,
	UROCE_WC_WRITE,
	UROCE_WC_READ,
	UROCE_WC_COMPARE_SWAP,
	UROCE_WC_FETCH_ADD,
	UROCE_WC_RECV,
	UROCE_WC_RECV_WRITE_WITH_IMM,
};
enum uroce_wc_flag {
	UROCE_WC_HAS_GRH = 1 << 0,
	UROCE_WC_HAS_IMM = 1 << 1,
};
struct uroce_wc {
	uint64_t wr_id;
	enum uroce_wc_status status;
	enum uroce_wc_opcode opcode; /* on success */
	uint32_t byte_len;
	uint32_t qpn;
	uint32_t src_qpn;
	uint32_t imm;          /* the four bytes the sender gave */
	uint32_t flags;        /* enum uroce_wc_flag */
	uint32_t vendor_error; /* finer cause; uroce_wc_cause_str */
};
const char *uroce_wc_status_str(enum uroce_wc_status status);
const char *uroce_wc_cause_str(uint32_t vendor_error);

int uroce_channel_create(struct uroce_context *ctx, struct uroce_channel **out);
int uroce_channel_destroy(struct uroce_channel *ch);
int uroce_channel_fd(const struct uroce_channel *ch);
/* Takes one event: blocks unless the fd is O_NONBLOCK (-EAGAIN). *cq is the CQ that fired. Each event taken must be acknowledged before the CQ can be destroyed. */
int uroce_channel_get_event(struct uroce_channel *ch, struct uroce_cq **cq);
void uroce_cq_ack_events(struct uroce_cq *cq, unsigned n);

int uroce_cq_create(struct uroce_context *ctx, uint32_t entries, struct uroce_channel *ch, void *user, struct uroce_cq **out);
int uroce_cq_destroy(struct uroce_cq *cq);
void *uroce_cq_user(const struct uroce_cq *cq);
int uroce_cq_poll(struct uroce_cq *cq, struct uroce_wc *wc, unsigned n);
/* One event for the next completion (or the next solicited one or error). Completions already there do not fire: poll after arming. */
int uroce_cq_arm(struct uroce_cq *cq, bool solicited_only);

/* ---- queue pairs ---- */
enum uroce_service { UROCE_RC };
enum uroce_qp_state { UROCE_QP_RESET, UROCE_QP_INIT, UROCE_QP_RTR, UROCE_QP_RTS, UROCE_QP_SQD, UROCE_QP_SQE, UROCE_QP_ERR };
enum uroce_qp_attr_mask {
	UROCE_QP_STATE = 1 << 0,
	UROCE_QP_CUR_STATE = 1 << 1,
	UROCE_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	UROCE_QP_ACCESS_FLAGS = 1 << 3,
	UROCE_QP_PKEY_INDEX = 1 << 4,
	UROCE_QP_PORT = 1 << 5,
	UROCE_QP_AV = 1 << 7,
	UROCE_QP_PATH_MTU = 1 << 8,
	UROCE_QP_TIMEOUT = 1 << 9,
	UROCE_QP_RETRY_CNT = 1 << 10,
	UROCE_QP_RNR_RETRY = 1 << 11,
	UROCE_QP_RQ_PSN = 1 << 12,
	UROCE_QP_MAX_RD_ATOMIC = 1 << 13,
	UROCE_QP_MIN_RNR_TIMER = 1 << 15,
	UROCE_QP_SQ_PSN = 1 << 16,
	UROCE_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	UROCE_QP_DEST_QPN = 1 << 20,
};
struct uroce_av {
	struct uroce_gid dgid;
	uint32_t sgid_index;
	uint32_t flow_label;
	uint8_t traffic_class;
	uint8_t hop_limit; /* 0: 64 */
	uint8_t sl;
};
struct uroce_qp_attr {
	enum uroce_qp_state state;
	enum uroce_qp_state cur_state;
	uint32_t path_mtu; /* bytes: 256, 512, 1024, 2048 or 4096 */
	uint8_t timeout;   /* 0: none; else 4.096 us * 2^timeout, to 31 */
	uint8_t retry_cnt; /* 0..7 */
	uint8_t rnr_retry; /* 0..6; 7: for ever */
	uint8_t min_rnr_timer; /* code 0..31 */
	uint8_t max_rd_atomic, max_dest_rd_atomic; /* 0..128 */
	uint8_t port_num;
	bool sqd_async_notify;
	uint16_t pkey_index;
	uint32_t access;
	uint32_t dest_qpn, rq_psn, sq_psn;
	struct uroce_av av;
};
struct uroce_qp_cap {
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
};
struct uroce_qp_init {
	enum uroce_service service;
	struct uroce_cq *send_cq, *recv_cq;
	struct uroce_qp_cap cap; /* 0 means 1, and 0 bytes inline */
	bool signal_all;         /* every send WR is signaled */
	void *user;
};
int uroce_qp_create(struct uroce_pd *pd, const struct uroce_qp_init *init, struct uroce_qp **out);
int uroce_qp_destroy(struct uroce_qp *qp);
uint32_t uroce_qp_num(const struct uroce_qp *qp);
void *uroce_qp_user(const struct uroce_qp *qp);
void uroce_qp_cap(const struct uroce_qp *qp, struct uroce_qp_cap *cap);
int uroce_qp_modify(struct uroce_qp *qp, const struct uroce_qp_attr *attr, uint32_t mask);
int uroce_qp_query(struct uroce_qp *qp, struct uroce_qp_attr *attr);
/* What two programs have to tell each other to connect, and the usual way through INIT, RTR and RTS with it. */
struct uroce_endpoint {
	struct uroce_gid gid;
	uint32_t qpn;
	uint32_t psn;
	uint32_t mtu;          /* bytes, what this side's port carries */
	uint32_t rd_atomic;    /* READs and atomics this side serves at a time */
};
int uroce_qp_endpoint(struct uroce_qp *qp, uint32_t gid_index, struct uroce_endpoint *local); /* chooses a random PSN */
/* attr: NULL, or fields to differ from the defaults (path MTU, timeout 14, retry_cnt 7, rnr_retry 7, min_rnr_timer 12, all remote access), as named by mask. */
int uroce_qp_connect(struct uroce_qp *qp, const struct uroce_endpoint *local, const struct uroce_endpoint *remote, const struct uroce_qp_attr *attr, uint32_t mask);
/* One sentence: why the QP is in ERR, with peer, PSNs, retries and cause. Returns what snprintf would; an empty string when it is not. */
int uroce_qp_error_text(struct uroce_qp *qp, char *text, size_t len);

enum uroce_opcode {
	UROCE_OP_SEND,
	UROCE_OP_SEND_WITH_IMM,
	UROCE_OP_WRITE,
	UROCE_OP_WRITE_WITH_IMM,
	UROCE_OP_READ,
	UROCE_OP_COMPARE_SWAP,
	UROCE_OP_FETCH_ADD,
};
enum uroce_send_flag {
	UROCE_SEND_SIGNALED = 1 << 0,
	UROCE_SEND_SOLICITED = 1 << 1,
	UROCE_SEND_INLINE = 1 << 2,
	UROCE_SEND_FENCE = 1 << 3,
};
struct uroce_sge {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};
struct uroce_send_wr {
	uint64_t wr_id;
	const struct uroce_sge *sg_list;
	uint32_t num_sge;
	enum uroce_opcode opcode;
	uint32_t flags; /* enum uroce_send_flag */
	uint32_t imm;   /* four bytes, sent as they are */
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t compare_add; /* FETCH_ADD: the addend; COMPARE_SWAP: compared */
	uint64_t swap;
};
struct uroce_recv_wr {
	uint64_t wr_id;
	const struct uroce_sge *sg_list;
	uint32_t num_sge;
};
/* How many of the n were posted, in order; a negative errno when the first was not: -EINVAL (state, opcode, SGE count, inline length), -ENOMEM (queue full), -ENODEV. */
int uroce_post_send(struct uroce_qp *qp, const struct uroce_send_wr *wr, unsigned n);
int uroce_post_recv(struct uroce_qp *qp, const struct uroce_recv_wr *wr, unsigned n);

/* ---- events and counters ---- */
enum uroce_event_type {
	UROCE_EVENT_CQ_ERR = 0,
	UROCE_EVENT_QP_FATAL = 1,
	UROCE_EVENT_QP_REQ_ERR = 2,
	UROCE_EVENT_QP_ACCESS_ERR = 3,
	UROCE_EVENT_COMM_EST = 4,
	UROCE_EVENT_SQ_DRAINED = 5,
};
struct uroce_async_event {
	enum uroce_event_type type;
	struct uroce_qp *qp; /* or NULL */
	struct uroce_cq *cq; /* or NULL */
};
int uroce_async_fd(const struct uroce_context *ctx);
int uroce_async_get_event(struct uroce_context *ctx, struct uroce_async_event *event);

int uroce_qp_counters(struct uroce_qp *qp, uint64_t *value, unsigned n); /* returns how many there are */
const char *uroce_qp_counter_name(unsigned i);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

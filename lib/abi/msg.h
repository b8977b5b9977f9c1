/* SPDX-License-Identifier: BSD-3-Clause */
/* The control contract: one request and one reply struct per call of the slow path (create, modify, query, destroy). In embedded and inline mode they are
 * handed over by a function call; through uroced they travel over a unix socket unchanged. Handles are the engine's and mean something only in the client that got them.
 * A reply with a negative status carries a text that says what was wrong and what would be right. */
#ifndef UROCE_ABI_MSG_H
#define UROCE_ABI_MSG_H

#include <stdint.h>

#include "ring.h"

enum abi_msg {
	ABI_QUERY_DEVICE,
	ABI_QUERY_GID,
	ABI_CREATE_PD,
	ABI_DESTROY_PD,
	ABI_ALLOC_MEMORY,
	ABI_FREE_MEMORY,
	ABI_REG_MR,
	ABI_DEREG_MR,
	ABI_CREATE_CHANNEL,
	ABI_DESTROY_CHANNEL,
	ABI_CREATE_CQ,
	ABI_DESTROY_CQ,
	ABI_CREATE_QP,
	ABI_MODIFY_QP,
	ABI_QUERY_QP,
	ABI_DESTROY_QP,
	ABI_QUERY_COUNTERS,
	ABI_CREATE_SRQ,
	ABI_MODIFY_SRQ,
	ABI_QUERY_SRQ,
	ABI_DESTROY_SRQ,
	ABI_CREATE_AH,
	ABI_DESTROY_AH,
	ABI_REREG_MR,
	ABI_ALLOC_MR,   /* for REG_MR: a key without memory */
	ABI_CREATE_MW,
	ABI_DESTROY_MW,
	ABI_MODIFY_CQ,
	ABI_ATTACH_MULTICAST,
	ABI_DETACH_MULTICAST,
	ABI_MSG_COUNT
};

#define ABI_TEXT_MAX 192u
#define ABI_NAME_MAX 32u

/* Values are those of enum service of wire/opcode.h. */
enum abi_service { ABI_SERVICE_RC, ABI_SERVICE_UC, ABI_SERVICE_UD, ABI_SERVICES };

/* Values are those of enum ibv_qp_state, enum ibv_mtu and enum ibv_qp_attr_mask. */
enum abi_qp_state { ABI_QP_RESET, ABI_QP_INIT, ABI_QP_RTR, ABI_QP_RTS, ABI_QP_SQD, ABI_QP_SQE, ABI_QP_ERR, ABI_QP_STATES };
enum abi_mtu { ABI_MTU_256 = 1, ABI_MTU_512, ABI_MTU_1024, ABI_MTU_2048, ABI_MTU_4096 };
enum abi_qp_attr_mask {
	ABI_QP_STATE = 1 << 0,
	ABI_QP_CUR_STATE = 1 << 1,
	ABI_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	ABI_QP_ACCESS_FLAGS = 1 << 3,
	ABI_QP_PKEY_INDEX = 1 << 4,
	ABI_QP_PORT = 1 << 5,
	ABI_QP_QKEY = 1 << 6,
	ABI_QP_AV = 1 << 7,
	ABI_QP_PATH_MTU = 1 << 8,
	ABI_QP_TIMEOUT = 1 << 9,
	ABI_QP_RETRY_CNT = 1 << 10,
	ABI_QP_RNR_RETRY = 1 << 11,
	ABI_QP_RQ_PSN = 1 << 12,
	ABI_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	ABI_QP_ALT_PATH = 1 << 14,
	ABI_QP_MIN_RNR_TIMER = 1 << 15,
	ABI_QP_SQ_PSN = 1 << 16,
	ABI_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	ABI_QP_PATH_MIG_STATE = 1 << 18,
	ABI_QP_CAP = 1 << 19,
	ABI_QP_DEST_QPN = 1 << 20,
};

/* The first two are those of enum ibv_srq_attr_mask. A resize is two requests: MAX_WR answers the place of a new ring; the client copies the WQEs that it has posted and whose slots are not free again to
 * the places of the same indices there, sets the ring's tail, and SWITCH makes the engine go on in it. */
enum abi_srq_attr_mask { ABI_SRQ_MAX_WR = 1 << 0, ABI_SRQ_LIMIT = 1 << 1, ABI_SRQ_SWITCH = 1 << 2 };

/* Values are those of enum ibv_mw_type and of enum ibv_rereg_mr_flags. */
enum abi_mw_type { ABI_MW_TYPE_1 = 1, ABI_MW_TYPE_2 = 2 };
enum abi_rereg_mask { ABI_REREG_MEMORY = 1 << 0, ABI_REREG_PD = 1 << 1, ABI_REREG_ACCESS = 1 << 2 };

/* A CQ is resized in two requests. ENTRIES answers the place of new slots, which the client makes empty for the indices from its head on; SWITCH makes the engine go on in them, and the client then moves the CQEs that it
 * has not taken to the places of the same indices. Its control block stays where it is. MODERATION: count and period. */
enum abi_cq_attr_mask { ABI_CQ_ENTRIES = 1 << 0, ABI_CQ_SWITCH = 1 << 1, ABI_CQ_MODERATION = 1 << 2 };
#define ABI_CQ_COUNT_MAX 65535u
#define ABI_CQ_PERIOD_MAX_US 65535u

struct abi_av {
	uint8_t dgid[16];
	uint32_t sgid_index;
	uint32_t flow_label;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t reserved[5];
};
_Static_assert(sizeof(struct abi_av) == 32, "layout");

struct abi_qp_attr {
	uint8_t state;     /* enum abi_qp_state */
	uint8_t cur_state;
	uint8_t path_mtu;  /* enum abi_mtu */
	uint8_t timeout;       /* 0: none; else 4.096 us * 2^timeout, up to 31 */
	uint8_t retry_cnt;     /* 0..7 */
	uint8_t rnr_retry;     /* 0..7, 7: for ever */
	uint8_t min_rnr_timer; /* 0..31, IBA vol. 1 table 46 */
	uint8_t max_rd_atomic;      /* as requester, 0..128 */
	uint8_t max_dest_rd_atomic; /* as responder, 0..128 */
	uint8_t sqd_async_notify;
	uint8_t port_num; /* 1 */
	uint8_t path_mig_state; /* 0: migrated; nothing else exists on RoCE */
	uint16_t pkey_index;
	uint16_t reserved;
	uint32_t access; /* MR access bits for remote operations */
	uint32_t qkey;
	uint32_t dest_qpn;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t reserved2;
	struct abi_av av;
};
_Static_assert(sizeof(struct abi_qp_attr) == 72, "layout");

/* Values are those of enum ibv_qp_create_flags. */
enum abi_qp_flag { ABI_QP_BLOCK_SELF_MCAST_LB = 1 << 1 };

struct abi_qp_cap {
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
};

/* Why a QP went to ERR: enough for one sentence to a person. */
struct abi_qp_error {
	uint32_t cause;         /* enum wc_cause of cause.h; 0: no error */
	uint32_t status;        /* enum abi_status of the completion */
	uint64_t wr_id;
	uint8_t peer[16];       /* GID */
	uint32_t peer_qpn;
	uint32_t last_psn_sent;
	uint32_t last_psn_acked;
	uint32_t retries;       /* used when it gave up */
	uint32_t rnr_retries;
	uint32_t reserved;
};

/* What not every device has. */
enum abi_device_cap { ABI_CAP_ATOMIC_WRITE = 1 << 0, ABI_CAP_FLUSH_GLOBAL = 1 << 1, ABI_CAP_FLUSH_PERSISTENT = 1 << 2 };

struct abi_device {
	char name[ABI_NAME_MAX];
	uint8_t mac[6];
	uint8_t mode;      /* 0 embedded, 1 inline, 2 served */
	uint8_t port_up;
	uint32_t active_mtu; /* enum abi_mtu: largest path MTU that the port carries */
	uint32_t gid_slots;
	uint32_t max_qp, max_cq, max_mr, max_pd;
	uint32_t max_qp_wr, max_cqe, max_sge, max_inline;
	uint32_t max_rd_atomic;
	uint32_t max_srq;
	uint64_t max_msg_bytes;
	uint32_t max_ah;
	uint32_t caps; /* enum abi_device_cap */
	uint32_t max_mw;
	uint32_t max_mcast_grp;       /* of a core */
	uint32_t max_mcast_qp_attach; /* QPs of a core in one of them */
	uint32_t reserved;
};

/* Counters of one QP, in this order; names in counters.h. */
#define ABI_QP_COUNTERS 24u

struct abi_req {
	uint32_t type;     /* enum abi_msg */
	uint32_t sequence; /* echoed */
	union {
		uint32_t handle; /* DESTROY_*, DEREG_MR, FREE_MEMORY, ALLOC_MR (PD), QUERY_QP, QUERY_SRQ, QUERY_COUNTERS, QUERY_GID (index) */
		struct {
			uint64_t bytes;
		} alloc_memory;
		struct {
			uint32_t pd;
			uint32_t access; /* enum mem_access bits */
			uint64_t addr;   /* client's address: direct memory; or offset into `memory` */
			uint64_t len;
			uint64_t iova;
			uint32_t memory; /* handle of ALLOC_MEMORY, 0: direct memory */
			uint32_t mask;   /* REREG_MR: enum abi_rereg_mask */
			uint32_t mr;     /* REREG_MR: which */
			uint32_t reserved;
		} reg_mr;
		struct {
			uint32_t pd;
			uint32_t type; /* enum abi_mw_type */
		} create_mw;
		struct {
			uint32_t entries;
			uint32_t channel; /* handle or 0 */
			uint64_t cookie;  /* given back in events */
		} create_cq;
		struct {
			uint32_t pd, send_cq, recv_cq;
			uint32_t service; /* enum abi_service */
			struct abi_qp_cap cap;
			uint32_t signal_all;
			uint32_t srq; /* handle; 0: an RQ of its own */
			uint32_t flags; /* enum abi_qp_flag */
			uint64_t cookie;
		} create_qp;
		struct {
			uint32_t qp;
			uint32_t mask; /* enum abi_qp_attr_mask */
			struct abi_qp_attr attr;
		} modify_qp;
		struct {
			uint32_t pd; /* of the QPs that send with it */
			uint32_t reserved;
			struct abi_av av;
		} create_ah;
		struct {
			uint32_t qp;
			uint32_t reserved;
			uint8_t gid[16];
		} group; /* ATTACH_MULTICAST, DETACH_MULTICAST */
		struct {
			uint32_t pd; /* whose keys its SGEs are */
			uint32_t max_wr, max_sge;
			uint32_t limit;
			uint64_t cookie;
		} create_srq;
		struct {
			uint32_t srq;
			uint32_t mask; /* enum abi_srq_attr_mask */
			uint32_t max_wr;
			uint32_t limit; /* 0: no event */
		} modify_srq;
		struct {
			uint32_t cq;
			uint32_t mask; /* enum abi_cq_attr_mask */
			uint32_t entries;
			uint32_t count;     /* an armed CQ's event waits for so many CQEs, 0 and 1: for none; */
			uint32_t period_us; /* but no longer than this */
			uint32_t reserved;
		} modify_cq;
	};
};

struct abi_rep {
	uint32_t type;
	uint32_t sequence;
	int32_t status; /* 0 or a negative errno */
	uint32_t handle; /* CREATE_*, REG_MR, ALLOC_MR, ALLOC_MEMORY */
	union {
		struct abi_device device;
		struct {
			uint8_t gid[16];
			uint32_t vlan;
			uint32_t present;
		} gid;
		struct {
			uint32_t arena;
			uint32_t reserved;
			uint64_t offset;
			uint64_t bytes;
		} memory;
		struct {
			uint32_t lkey, rkey;
		} mr; /* CREATE_MW, ALLOC_MR: the key before the first bind, which opens nothing */
		struct {
			int32_t fd; /* embedded: the reading end in this process; served: -1 and the fd comes along */
		} channel;
		struct {
			struct abi_ring_place ring; /* MODIFY_CQ: the slots, those in use or with ENTRIES the new ones; it tells of no control block */
			uint32_t entries;
			uint32_t reserved;
		} cq;
		struct {
			struct abi_ring_place sq, rq;
			struct abi_qp_cap cap; /* what was granted, at least what was asked */
			uint32_t qpn;
			uint32_t doorbell; /* its number among the client's doorbells */
			uint32_t reserved;
		} qp; /* of an SRQ: rq.slots, max_recv_wr and max_recv_sge are 0 */
		struct {
			struct abi_qp_attr attr;
			struct abi_qp_cap cap;
			uint32_t sq_draining;
			struct abi_qp_error error;
		} query_qp;
		struct {
			struct abi_ring_place ring; /* QUERY_SRQ, and MODIFY_SRQ without MAX_WR: the one in use */
			uint32_t max_wr, max_sge;   /* granted, at least what was asked */
			uint32_t limit;             /* 0: not armed, or the event has been raised */
			uint32_t posted;            /* WQEs that no message has taken */
		} srq;
		struct {
			uint64_t value[ABI_QP_COUNTERS];
		} counters;
		char text[ABI_TEXT_MAX]; /* when status is negative */
	};
};

/* Records in the event channels; each is one read. One CQ event: its cookie (8 bytes). One async event: */
struct abi_async_event {
	uint64_t cookie; /* of the QP, CQ or SRQ */
	uint32_t type;   /* enum abi_event */
	uint32_t reserved;
};
_Static_assert(sizeof(struct abi_async_event) == 16, "layout");

/* Values are those of enum ibv_event_type. */
enum abi_event {
	ABI_EVENT_CQ_ERR = 0,
	ABI_EVENT_QP_FATAL = 1,
	ABI_EVENT_QP_REQ_ERR = 2,
	ABI_EVENT_QP_ACCESS_ERR = 3,
	ABI_EVENT_COMM_EST = 4,
	ABI_EVENT_SQ_DRAINED = 5,
	ABI_EVENT_DEVICE_FATAL = 8,
	ABI_EVENT_PORT_ACTIVE = 9,
	ABI_EVENT_PORT_ERR = 10,
	ABI_EVENT_SRQ_ERR = 14,
	ABI_EVENT_SRQ_LIMIT_REACHED = 15,
	ABI_EVENT_QP_LAST_WQE_REACHED = 16,
	ABI_EVENT_GID_CHANGE = 18,
	ABI_EVENT_TYPES
};

#endif

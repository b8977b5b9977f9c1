/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * uroce: RDMA over Converged Ethernet v2 in user space. The public API.
 *
 * Conventions. A fallible call returns 0 or a negative errno and gives its object through the last argument, which is left
 * alone on failure; the reason goes to the log as one line. A burst call (post, poll) returns a count. destroy calls accept
 * NULL. Words are those of the InfiniBand Architecture specification ("IBA" below: volume 1; a name in quotes is the verb of
 * its chapter 11), values of enums those of <infiniband/verbs.h> where it has them.
 *
 * Threads. Control calls (open, create, modify, query, destroy) of one context may be made from any thread; the library
 * serialises them with a lock of the context's own. Posting to one queue of one QP or to one SRQ, and polling one CQ, are
 * each single-threaded: the caller serialises. Different queues and CQs are independent. Some calls take part in polling:
 * destroying a QP, and modifying it to RESET, remove its completions from both its CQs, and resizing a CQ moves them; nobody
 * else may poll these meanwhile. One takes part in posting: nobody may post to an SRQ that is being resized.
 *
 * Errors of every control call, not repeated below: -ENODEV, the engine is gone; -EPROTO, its answer makes no sense (another
 * version?); -ENOMEM, also when the device has no more of what is asked for; with a daemon -EDQUOT, more than it allows this
 * client or its user.
 *
 * Death of the engine. A daemon can end, be killed, or throw a client out. Nothing hangs then: control calls, posts and arming
 * return -ENODEV, also those that are waiting; polls return first what was completed, then UROCE_WC_WR_FLUSH_ERR for every WR
 * still outstanding in a queue of the CQ (those of one queue in post order; what is in an SRQ is in no CQ's), then -ENODEV;
 * event calls return what waits in the fd, then one of them UROCE_EVENT_DEVICE_FATAL, then all -ENODEV. One line of the log
 * says why, with the next control call or uroce_close at the latest. A daemon that hangs is found out by a control call, which
 * gives it 30 s to answer, and has then ended for all threads, those that wait for an event too. Destroy calls succeed; pool
 * memory stays mapped until uroce_close. To go on, close the context and open another.
 *
 * Ownership. An object belongs to its creator until it is destroyed; what it was created from has to stay until then
 * (-EBUSY). A child made by fork must not use any of them: it inherits no shared memory, and fds are closed on exec. */
#ifndef UROCE_H
#define UROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct uroce_context; /* one session with one engine */
struct uroce_pd;      /* protection domain, IBA 10.2.3 */
struct uroce_mr;      /* memory region, IBA 10.6 */
struct uroce_mw;      /* memory window, IBA 10.6.7 */
struct uroce_channel; /* where events of CQs arrive */
struct uroce_cq;      /* completion queue, IBA 10.2.6 */
struct uroce_srq;     /* shared receive queue, IBA 10.2.9 */
struct uroce_ah;      /* address handle, IBA 10.2.2.3 */
struct uroce_qp;      /* queue pair, IBA 10.2.4 */

/** A global identifier as it is on the wire: an IPv6 address, or an IPv4 address behind ten bytes of 0 and two of 0xff (IBA
 * annex A17). */
struct uroce_gid {
	uint8_t raw[16]; /**< wire order */
};

/** @defgroup device Devices
 * @{ */

/** How to open; all zeroes is a good choice. Copied by uroce_open, except that log_arg is passed on as it is. */
struct uroce_open_attr {
	/** Takes one line without a newline; NULL: standard error. level: 0 error, 1 warn, 2 info, 3 debug. Called by
	 * whatever thread has something to say, the engine's too, until uroce_close returned; must not call back into the
	 * context. */
	void (*log)(void *arg, int level, const char *line);
	void *log_arg; /**< first argument of log */
	int log_level; /**< 0: from environment UROCE_LOG ("error", "warn", "info", "debug"), else warn; 1 + level else */
};

/** What a device is and how much it takes; counts are limits of the device, not what is left of it. */
struct uroce_device_attr {
	char name[32];       /**< for people; ends with a 0 */
	uint8_t mac[6];      /**< of the port, wire order */
	uint8_t mode;        /**< 0 embedded, 1 inline, 2 served */
	bool port_up;        /**< whether the port has a link */
	uint32_t active_mtu; /**< bytes: largest path MTU the port carries */
	uint32_t gid_slots;  /**< GID indices are below it */
	uint32_t max_qp;     /**< QPs */
	uint32_t max_cq;     /**< CQs */
	uint32_t max_srq;    /**< SRQs */
	uint32_t max_ah;     /**< AHs */
	uint32_t max_mr;     /**< MRs */
	uint32_t max_mw;     /**< memory windows */
	uint32_t max_pd;     /**< PDs */
	uint32_t max_mcast_grp;       /**< multicast groups with members */
	uint32_t max_mcast_qp_attach; /**< QPs in one group; with a daemon, of one program */
	uint32_t max_qp_wr;  /**< WRs of one queue */
	uint32_t max_cqe;    /**< CQEs of one CQ */
	uint32_t max_sge;    /**< SGEs of one WR */
	uint32_t max_inline; /**< bytes of one WR */
	uint32_t max_rd_atomic; /**< READs, atomics, ATOMIC WRITEs and FLUSHes of one QP outstanding, as requester and as responder */
	uint64_t max_msg_bytes; /**< bytes of one message */
	uint32_t caps;       /**< enum uroce_device_cap */
};
/** What not every device has. */
enum uroce_device_cap {
	UROCE_CAP_ATOMIC_WRITE = 1 << 0,     /**< UROCE_OP_ATOMIC_WRITE */
	UROCE_CAP_FLUSH_GLOBAL = 1 << 1,     /**< UROCE_OP_FLUSH for UROCE_FLUSH_GLOBAL */
	UROCE_CAP_FLUSH_PERSISTENT = 1 << 2, /**< some memory can be registered with UROCE_ACCESS_FLUSH_PERSISTENT */
};

/** Opens a device. The engine is found in the program, else loaded: the file named by environment UROCE_ENGINE_LIBRARY, else
 * liburoce-engine.so.0 beside liburoce, else by the loader's path. Any thread.
 * @param device  "embedded:VDEV[,key=value...]": an engine in this process, on a poll core of its own;
 *                "inline:VDEV[,key=value...]": the same without a core: the program calls uroce_engine_poll;
 *                "unix:PATH": a daemon, uroced, by its socket, as in unix:/run/uroce/uroce0.sock: WRs reach pool memory only,
 *                no wait for it is longer than half a minute; NULL or "": taken from environment UROCE_DEVICE
 * @param attr  NULL for the defaults
 * @param[out] out  the caller's; uroce_close
 * @return 0; -EINVAL: no device or one that does not begin as above (and what the engine makes of its keys); -ENOENT: no
 * engine or no socket at PATH; and those of bringing up the port. unix: -ECONNREFUSED: nobody serves the socket; -EACCES: no
 * permission; -ENAMETOOLONG; -ETIMEDOUT: no answer; -EPROTONOSUPPORT: no common version; -EUSERS: too many clients; -ENODEV:
 * the daemon is going down. Each with a line in the log that says what would help */
int uroce_open(const char *device, const struct uroce_open_attr *attr, struct uroce_context **out);

/** Ends the session and frees the context with every object still in it: none of its handles, fds or pool memory may be used
 * any more. Peers of QPs that were connected find out by their own retries. Any thread, when no other is in a call of this
 * context.
 * @param ctx  or NULL */
void uroce_close(struct uroce_context *ctx);

/** The device as it is now. Any thread. IBA "Query HCA"
 * @param ctx  the session
 * @param[out] attr  filled
 * @return 0, or an error of every control call */
int uroce_query_device(struct uroce_context *ctx, struct uroce_device_attr *attr);

/** The GID at an index. An index does not move while its GID is there. Any thread. IBA annex A17
 * @param ctx  the session
 * @param index  from 0
 * @param[out] gid  what is there
 * @param[out] vlan  the VLAN it is on, 0xffff: untagged; may be NULL
 * @return 0; -EINVAL: beyond gid_slots; -ENOENT: the slot is empty */
int uroce_query_gid(struct uroce_context *ctx, uint32_t index, struct uroce_gid *gid, uint16_t *vlan);

/** Inline mode only: runs the engine once, and so receives, sends and completes. Does not wait. To be called all the time:
 * time and timers of the engine move with these calls (it looks at the clock once in up to four). Any thread.
 * @param ctx  any context of the engine
 * @return how many frames and WQEs it handled, 0 when there was nothing to do; -EBUSY: another thread is in it; -EOPNOTSUPP:
 * another mode */
int uroce_engine_poll(struct uroce_context *ctx);

/** @}
 * @defgroup memory Memory
 * @{ */

/** What others may do with an MR; the program itself may always let WRs read it. Remote write and atomic need local write as
 * well (IBA 10.6.3.1). */
enum uroce_access {
	UROCE_ACCESS_LOCAL_WRITE = 1 << 0,   /**< WRs of this side: receives, READs, results of atomics */
	UROCE_ACCESS_REMOTE_WRITE = 1 << 1,  /**< WRITE and ATOMIC WRITE of a peer */
	UROCE_ACCESS_REMOTE_READ = 1 << 2,   /**< READ of a peer */
	UROCE_ACCESS_REMOTE_ATOMIC = 1 << 3, /**< COMPARE_SWAP and FETCH_ADD of a peer */
	/** FLUSH (IBA A19): peers may ask for what they wrote to be seen by everybody, */
	UROCE_ACCESS_FLUSH_GLOBAL = 1 << 8,
	/** or to outlast a power cut. This only memory can grant that does, see UROCE_CAP_FLUSH_PERSISTENT. */
	UROCE_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	UROCE_ACCESS_MW_BIND = 1 << 4,    /**< memory windows may be bound to it */
	UROCE_ACCESS_ZERO_BASED = 1 << 5, /**< of a bind of a window of type 2: peers address its first byte as 0 */
};

/** Makes a protection domain: a QP reaches only MRs of its own. Any thread. IBA "Allocate Protection Domain"
 * @param ctx  the session
 * @param[out] out  the caller's; uroce_pd_destroy
 * @return 0, or an error of every control call */
int uroce_pd_create(struct uroce_context *ctx, struct uroce_pd **out);
/** Any thread. IBA "Deallocate Protection Domain"
 * @param pd  or NULL
 * @return 0; -EBUSY: MRs, MWs, SRQs, AHs or QPs are still in it */
int uroce_pd_destroy(struct uroce_pd *pd);

/** Pool memory: zeroed, page aligned, shared with the engine, usable in every mode. To be used by WRs it still has to be
 * registered. It stays mapped until uroce_free or uroce_close. Any thread.
 * @param ctx  the session
 * @param bytes  how many at least
 * @param[out] out  the first of them; uroce_free
 * @return 0; -EINVAL: 0 bytes */
int uroce_alloc(struct uroce_context *ctx, size_t bytes, void **out);
/** Gives pool memory back. Any thread.
 * @param ctx  the session
 * @param p  what uroce_alloc returned, or NULL
 * @return 0; -EINVAL: it did not return that; -EBUSY: MRs are still in it */
int uroce_free(struct uroce_context *ctx, void *p);

/** Registers [addr, addr + len), so that WRs can name it by key. Pool memory in every mode, any other memory in embedded and
 * inline mode; it is the program's and has to stay mapped until the MR is deregistered. Peers and WRs address its first byte as
 * addr. Any thread. IBA "Register Memory Region"
 * @param pd  whose QPs can reach it
 * @param addr  the first byte
 * @param len  bytes; may be 0
 * @param access  enum uroce_access
 * @param[out] out  the caller's; uroce_mr_deregister
 * @return 0; -EINVAL: rights that there are not or that need local write, a range that wraps, or one that begins in pool
 * memory and runs out of it; -EOPNOTSUPP: memory this mode cannot reach (a daemon: all but pool memory), or FLUSH_PERSISTENT of
 * memory that is not persistent; -ENOSPC: too many MRs */
int uroce_mr_register(struct uroce_pd *pd, void *addr, size_t len, uint32_t access, struct uroce_mr **out);
/** The same, but WRs and peers address the first byte as iova, which may be 0. Any thread.
 * @param pd  as above
 * @param addr  as above
 * @param len  as above
 * @param iova  address of the first byte
 * @param access  as above
 * @param[out] out  as above
 * @return as uroce_mr_register */
int uroce_mr_register_iova(struct uroce_pd *pd, void *addr, size_t len, uint64_t iova, uint32_t access, struct uroce_mr **out);
/** Its keys are dead on return: WRs that still need them end in a protection error, requests of peers in an access error. Any
 * thread. IBA "Deregister Memory Region", 10.6.7.2.6
 * @param mr  or NULL
 * @return 0; -EBUSY: memory windows or MRs of uroce_mr_alloc are bound to it */
int uroce_mr_deregister(struct uroce_mr *mr);
/** What uroce_mr_reregister changes: memory, PD, rights. */
enum uroce_mr_mask {
	UROCE_MR_MEMORY = 1 << 0, /**< addr, len and iova */
	UROCE_MR_PD = 1 << 1,     /**< pd */
	UROCE_MR_ACCESS = 1 << 2, /**< access */
};
/** And to what. */
struct uroce_mr_attr {
	struct uroce_pd *pd; /**< of the same context */
	void *addr;          /**< UROCE_MR_MEMORY: these three, */
	size_t len;          /**< bytes, */
	uint64_t iova;       /**< WRs and peers address the first byte so */
	uint32_t access;     /**< enum uroce_access */
};
/** Changes an MR. Packets that come before are served by what it was, those after by what it is. With other memory its keys
 * change, so ask for them again; else they stay. On failure it is as it was. Any thread. IBA "Reregister Memory Region"
 * @param mr  to be changed
 * @param to  what it shall be
 * @param mask  enum uroce_mr_mask: which members of to are meant
 * @return 0; -EINVAL: mask, PD, or as uroce_mr_register; an MR of uroce_mr_alloc; -EBUSY: something is bound to it;
 * -EOPNOTSUPP: as uroce_mr_register */
int uroce_mr_reregister(struct uroce_mr *mr, const struct uroce_mr_attr *to, uint32_t mask);
/** An MR without memory, for UROCE_OP_REG_MR. Its keys are no keys yet, but say what it is called: a REG_MR gives it one whose
 * upper 24 bits are these and whose lower 8 are the program's own. Any thread. IBA "Allocate L_Key", 10.6.7.1
 * @param pd  whose QPs can name it
 * @param[out] out  the caller's; uroce_mr_deregister
 * @return 0; -ENOSPC: too many MRs */
int uroce_mr_alloc(struct uroce_pd *pd, struct uroce_mr **out);
/** Any thread.
 * @param mr  the MR
 * @return the key for SGEs of this side */
uint32_t uroce_mr_lkey(const struct uroce_mr *mr);
/** Any thread.
 * @param mr  the MR
 * @return the key for a peer's remote_addr */
uint32_t uroce_mr_rkey(const struct uroce_mr *mr);

/** A memory window gives peers a part of an MR, with rights of its own, by a key of its own, and takes it away again, all in
 * the order of the WRs of a QP. IBA 10.6.7.2 */
enum uroce_mw_type {
	UROCE_MW_TYPE_1 = 1, /**< bound by uroce_mw_bind, as often as one likes; open to all QPs of its PD */
	/** 2B: bound by UROCE_OP_BIND_MW while it is not bound, and then open only through the QP it was bound on. Ends by
	 * UROCE_OP_LOCAL_INV there, by UROCE_OP_SEND_WITH_INV of that QP's peer, and with that QP's RESET or end. */
	UROCE_MW_TYPE_2 = 2,
};
/** Makes a window, bound to nothing. Any thread. IBA "Allocate Memory Window"
 * @param pd  of the QPs and MRs that it is for
 * @param type  how it is bound
 * @param[out] out  the caller's; uroce_mw_destroy
 * @return 0; -EINVAL: type; -ENOSPC: too many */
int uroce_mw_create(struct uroce_pd *pd, enum uroce_mw_type type, struct uroce_mw **out);
/** Bound or not, its key is dead on return. Any thread. IBA "Deallocate Memory Window"
 * @param mw  or NULL
 * @return 0, or an error of every control call */
int uroce_mw_destroy(struct uroce_mw *mw);
/** Any thread.
 * @param mw  the window
 * @return type 1: its key as the last uroce_mw_bind made it. Type 2: the key it began with, which opens nothing; of those that a
 * bind gives it, the upper 24 bits are the same and the lower 8 are the program's own */
uint32_t uroce_mw_rkey(const struct uroce_mw *mw);
/** The next key of a window of type 2, or of an MR of uroce_mr_alloc. Any thread.
 * @param rkey  the one before
 * @return the same with the next number in its lower 8 bits */
uint32_t uroce_inc_rkey(uint32_t rkey);
/** What BIND_MW and REG_MR bind: len bytes at addr of the MR of lkey, which has to be of the QP's PD and stays as it is until
 * the binding ends. A window needs that MR's UROCE_ACCESS_MW_BIND, and its local write for remote write and atomic. */
struct uroce_bind {
	uint64_t addr;   /**< in the MR's own addresses */
	uint64_t len;    /**< bytes */
	uint32_t lkey;   /**< of the MR */
	uint32_t access; /**< enum uroce_access; windows: remote ones, type 2 also UROCE_ACCESS_ZERO_BASED */
	uint64_t iova;   /**< REG_MR: its first byte is addressed so. A window's is at addr */
};

/** @}
 * @defgroup completion Completions and their events
 * @{ */

/** How a WR ended (IBA 11.6.2). All but the first of a send queue take the QP to ERR (UC and UD: SQE). */
enum uroce_wc_status {
	UROCE_WC_SUCCESS = 0,            /**< it did what it should */
	UROCE_WC_LOC_LEN_ERR = 1,        /**< a receive too short for its message, or a length that a send's operation does not take */
	UROCE_WC_LOC_QP_OP_ERR = 2,      /**< the WR itself is none that can be carried out */
	UROCE_WC_LOC_PROT_ERR = 4,       /**< an SGE whose MR does not grant it */
	UROCE_WC_WR_FLUSH_ERR = 5,       /**< not begun, or not answered, when the QP left: what became of it at the peer is not known */
	UROCE_WC_MW_BIND_ERR = 6,        /**< a bind, registration or invalidation that is not granted */
	UROCE_WC_BAD_RESP_ERR = 7,       /**< the peer's response is of the wrong kind or length */
	UROCE_WC_LOC_ACCESS_ERR = 8,     /**< not used by this engine */
	UROCE_WC_REM_INV_REQ_ERR = 9,    /**< the peer answered: invalid request; of a receive: its message was invalid */
	UROCE_WC_REM_ACCESS_ERR = 10,    /**< the peer does not grant that rkey, address, length or right */
	UROCE_WC_REM_OP_ERR = 11,        /**< the peer could not carry it out */
	UROCE_WC_RETRY_EXC_ERR = 12,     /**< no answer within retry_cnt retries */
	UROCE_WC_RNR_RETRY_EXC_ERR = 13, /**< the peer had no receive posted within rnr_retry retries */
	UROCE_WC_FATAL_ERR = 19,         /**< not in a WC: what uroce_qp_error_text says of a QP whose CQ overran */
	UROCE_WC_GENERAL_ERR = 21,       /**< not used by this engine */
};
/** What it was: a send WR by its operation, a receive WR by what used it up. */
enum uroce_wc_opcode {
	UROCE_WC_SEND,         /**< UROCE_OP_SEND, _SEND_WITH_IMM, _SEND_WITH_INV */
	UROCE_WC_WRITE,        /**< UROCE_OP_WRITE, _WRITE_WITH_IMM */
	UROCE_WC_READ,         /**< UROCE_OP_READ */
	UROCE_WC_COMPARE_SWAP, /**< UROCE_OP_COMPARE_SWAP */
	UROCE_WC_FETCH_ADD,    /**< UROCE_OP_FETCH_ADD */
	UROCE_WC_ATOMIC_WRITE, /**< UROCE_OP_ATOMIC_WRITE */
	UROCE_WC_FLUSH,        /**< UROCE_OP_FLUSH */
	UROCE_WC_BIND_MW,      /**< UROCE_OP_BIND_MW, uroce_mw_bind */
	UROCE_WC_LOCAL_INV,    /**< UROCE_OP_LOCAL_INV */
	UROCE_WC_REG_MR,       /**< UROCE_OP_REG_MR */
	UROCE_WC_RECV,         /**< a receive, by a SEND of the peer's */
	UROCE_WC_RECV_WRITE_WITH_IMM, /**< a receive, by a WRITE_WITH_IMM of the peer's */
};
/** What else a WC says. */
enum uroce_wc_flag {
	UROCE_WC_HAS_GRH = 1 << 0, /**< UD: the receive begins with 40 bytes of headers, see uroce_av_from_wc */
	UROCE_WC_HAS_IMM = 1 << 1, /**< imm is valid */
	UROCE_WC_HAS_INVALIDATED = 1 << 2, /**< the sender has invalidated invalidated_rkey, which was dead before this WC came */
};
/** One completed WR (IBA 11.4.2.1). In error only wr_id, status, qpn and vendor_error are valid. */
struct uroce_wc {
	uint64_t wr_id;              /**< the WR's */
	enum uroce_wc_status status; /**< how it ended */
	enum uroce_wc_opcode opcode; /**< on success */
	uint32_t byte_len;     /**< receives: bytes that came, with UD the headers too; READs, atomics: bytes that were placed */
	uint32_t qpn;          /**< of this side's QP */
	uint32_t src_qpn;      /**< of the peer's; UD: the sender's */
	/** One of them, by flags. */
	union {
		uint32_t imm;              /**< the four bytes the sender gave */
		uint32_t invalidated_rkey; /**< of this side */
	};
	uint32_t flags;        /**< enum uroce_wc_flag */
	uint32_t vendor_error; /**< finer cause; uroce_wc_cause_str */
	uint16_t pkey_index;   /**< 0 */
	uint16_t vlan;         /**< received datagrams: 0xffff, untagged */
	uint8_t sl;            /**< and its priority */
};
/** A few words for people. Any thread.
 * @param status  any value
 * @return never NULL, not to be freed */
const char *uroce_wc_status_str(enum uroce_wc_status status);
/** A few words for people. Any thread.
 * @param vendor_error  of a WC; any value
 * @return never NULL, not to be freed */
const char *uroce_wc_cause_str(uint32_t vendor_error);

/** Makes a place where events of CQs arrive. Any thread.
 * @param ctx  the session
 * @param[out] out  the caller's; uroce_channel_destroy
 * @return 0, or an error of every control call */
int uroce_channel_create(struct uroce_context *ctx, struct uroce_channel **out);
/** Closes the fd. No thread may be in uroce_channel_get_event.
 * @param ch  or NULL
 * @return 0; -EBUSY: CQs still use it */
int uroce_channel_destroy(struct uroce_channel *ch);
/** Any thread.
 * @param ch  the channel
 * @return an fd (a socket) that is readable when an event waits, for poll and epoll. It is the channel's: do not read, shut or
 * close it; O_NONBLOCK may be set */
int uroce_channel_fd(const struct uroce_channel *ch);
/** Takes one event: blocks unless the fd is O_NONBLOCK. Each event taken must be acknowledged before the CQ can be destroyed.
 * Events of CQs that were destroyed meanwhile are passed over, so that a readable fd does not promise one: set O_NONBLOCK when
 * that matters. In inline mode some other thread has to run the engine while this one blocks. Any thread; several may wait,
 * one gets it.
 * @param ch  the channel
 * @param[out] cq  the one that fired
 * @return 0; -EAGAIN: none waits; -EINTR: a signal; -ENODEV: the engine is gone; -EIO: what came is no event */
int uroce_channel_get_event(struct uroce_channel *ch, struct uroce_cq **cq);
/** Acknowledges events taken for this CQ. Takes a lock: cheaper for many at a time. Any thread.
 * @param cq  the CQ
 * @param n  how many */
void uroce_cq_ack_events(struct uroce_cq *cq, unsigned n);

/** Makes a CQ. It must have room for all completions that can be there unpolled: a CQ that overruns takes its QPs to ERR and
 * raises UROCE_EVENT_CQ_ERR. Any thread. IBA "Create Completion Queue"
 * @param ctx  the session
 * @param entries  CQEs that it holds at least
 * @param ch  where its events go; NULL: it cannot be armed
 * @param user  the program's own, see uroce_cq_user
 * @param[out] out  the caller's; uroce_cq_destroy
 * @return 0; -EINVAL: 0 entries, more than max_cqe, or a channel of another context */
int uroce_cq_create(struct uroce_context *ctx, uint32_t entries, struct uroce_channel *ch, void *user, struct uroce_cq **out);
/** Makes it larger or smaller while its QPs work: no completion is lost or repeated, or comes in another order, and what was
 * armed stays armed. On failure it is as it was. Any thread, but see Threads. IBA "Resize Completion Queue"
 * @param cq  the CQ
 * @param entries  CQEs that it shall hold at least
 * @return 0; -EINVAL: 0 entries, more than max_cqe, fewer than completions are in it, or it has overrun */
int uroce_cq_resize(struct uroce_cq *cq, uint32_t entries);
/** Any thread, but not while it is being resized.
 * @param cq  the CQ
 * @return CQEs that it holds: what was granted, never less than asked */
uint32_t uroce_cq_entries(const struct uroce_cq *cq);
/** Holds events of an armed CQ back until `count` completions have come (solicited or not) since the one that was armed for,
 * but never longer than period_us from that one on: a reader wakes less often, and is always woken. Any thread.
 * @param cq  the CQ
 * @param count  up to 65535; 0 or 1: events come at once again, and one that is held back does
 * @param period_us  microseconds, 1 to 65535
 * @return 0; -EINVAL: beyond that, or the CQ has no channel or has overrun */
int uroce_cq_moderate(struct uroce_cq *cq, uint32_t count, uint32_t period_us);
/** Waits until every event that uroce_channel_get_event or uroce_async_get_event returned for it is acknowledged; those that
 * were not taken are dropped. Any thread but one that holds unacknowledged events. IBA "Destroy Completion Queue"
 * @param cq  or NULL
 * @return 0; -EBUSY: QPs still use it */
int uroce_cq_destroy(struct uroce_cq *cq);
/** Any thread.
 * @param cq  the CQ
 * @return what was given as user at creation */
void *uroce_cq_user(const struct uroce_cq *cq);
/** Takes completions, in the order in which they were made: those of one queue of a QP are in post order. Never waits, takes no
 * lock while the engine lives, makes no system call. One thread at a time per CQ. IBA 11.4.2.1
 * @param cq  the CQ
 * @param[out] wc  room for n
 * @param n  how many at most
 * @return how many, 0 when there is none now; -ENODEV: there is none, and none will come, since the engine is gone (see Death
 * of the engine) */
int uroce_cq_poll(struct uroce_cq *cq, struct uroce_wc *wc, unsigned n);
/** Asks for one event for the next completion. Completions already there do not fire: poll after arming. Armed again before it
 * fired, "any" outranks "solicited only". No lock, no system call. One thread at a time per CQ. IBA 11.4.2.2
 * @param cq  the CQ
 * @param solicited_only  not for any completion, only for a solicited one or an error
 * @return 0; -EINVAL: the CQ has no channel; -ENODEV: the engine is gone */
int uroce_cq_arm(struct uroce_cq *cq, bool solicited_only);

/** @}
 * @defgroup srq Shared receive queues
 * @{ */

/** Size and limit of an SRQ. */
struct uroce_srq_attr {
	uint32_t max_wr;  /**< WRs it holds */
	uint32_t max_sge; /**< SGEs of one WR */
	uint32_t limit;   /**< UROCE_EVENT_SRQ_LIMIT_REACHED is raised once when fewer WRs are left; 0: not armed */
};
/** Which of them uroce_srq_modify is about. */
enum uroce_srq_attr_mask {
	UROCE_SRQ_MAX_WR = 1 << 0, /**< max_wr */
	UROCE_SRQ_LIMIT = 1 << 1,  /**< limit */
};
/** What an SRQ is made of. */
struct uroce_srq_init {
	struct uroce_srq_attr attr; /**< 0 means 1, but for the limit */
	void *user;                 /**< the program's own, see uroce_srq_user */
};

/** Makes a queue of receives that any number of QPs, of whatever service, take from. The lkeys in it are those of pd, whichever
 * PD a QP is in. What was granted, never less than asked, says uroce_srq_query. Any thread. IBA "Create Shared Receive Queue"
 * @param pd  of the lkeys
 * @param init  not needed afterwards
 * @param[out] out  the caller's; uroce_srq_destroy
 * @return 0; -EINVAL: more than max_qp_wr or max_sge, or a limit over max_wr */
int uroce_srq_create(struct uroce_pd *pd, const struct uroce_srq_init *init, struct uroce_srq **out);
/** What is still in it does not complete. Waits for events of it that were taken and not acknowledged, as uroce_cq_destroy. Any
 * thread but one that holds such. IBA "Destroy Shared Receive Queue"
 * @param srq  or NULL
 * @return 0; -EBUSY: QPs still use it */
int uroce_srq_destroy(struct uroce_srq *srq);
/** Changes its size, its limit, or both, in this order. WRs in it stay. The limit's event comes at once when fewer are in it
 * already. Any thread, but see Threads. IBA "Modify Shared Receive Queue"
 * @param srq  the SRQ
 * @param attr  what it shall be
 * @param mask  enum uroce_srq_attr_mask
 * @return 0; -EINVAL: as for creation, 0 WRs, or smaller than what is in it: the SRQ is then as it was */
int uroce_srq_modify(struct uroce_srq *srq, const struct uroce_srq_attr *attr, uint32_t mask);
/** Any thread. IBA "Query Shared Receive Queue"
 * @param srq  the SRQ
 * @param[out] attr  as it is now; the limit is 0 when its event has been raised
 * @return 0, or an error of every control call */
int uroce_srq_query(struct uroce_srq *srq, struct uroce_srq_attr *attr);
/** Any thread.
 * @param srq  the SRQ
 * @return what was given as user at creation */
void *uroce_srq_user(const struct uroce_srq *srq);

/** @}
 * @defgroup qp Queue pairs
 * @{ */

/** What a QP does for messages. IBA 9.7 to 9.8. */
enum uroce_service {
	UROCE_RC, /**< reliable connection: every message arrives whole, once and in order, or the QP goes to ERR */
	/** Unreliable connection: SEND and WRITE. Nothing is acknowledged; a WR completes when it was handed to the port. A message
	 * is delivered whole, once at most and in order, or not at all (of a WRITE then part may be there). */
	UROCE_UC,
	/** Unreliable datagram: SENDs of one packet, up to the port's MTU, each to an address handle and a QP there. They are lost,
	 * repeated and out of order as the network likes. Receives begin with 40 bytes of headers. A datagram whose Q_Key is not
	 * the receiver's, that finds no receive, or one too short, is dropped, and neither QP is told. */
	UROCE_UD,
};
/** IBA 10.3.1. Sends are taken from RTS on, receives from INIT on; in ERR both complete as flushed. */
enum uroce_qp_state {
	UROCE_QP_RESET, /**< as it was made: nothing is taken */
	UROCE_QP_INIT,  /**< receives can be posted */
	UROCE_QP_RTR,   /**< receives messages */
	UROCE_QP_RTS,   /**< and sends them */
	UROCE_QP_SQD,   /**< the message under way is sent to its end and answered; what was not begun waits for RTS */
	/** UC and UD: a send could not be made (a key that is not granted, an AH that is gone): sends complete as flushed, receives
	 * go on, and UROCE_QP_RTS is the way back. */
	UROCE_QP_SQE,
	UROCE_QP_ERR,   /**< nothing more is sent or received; UROCE_QP_RESET is the way back */
};
/** Which members of struct uroce_qp_attr are meant. */
enum uroce_qp_attr_mask {
	UROCE_QP_STATE = 1 << 0,               /**< state */
	UROCE_QP_CUR_STATE = 1 << 1,           /**< cur_state */
	UROCE_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2, /**< sqd_async_notify */
	UROCE_QP_ACCESS_FLAGS = 1 << 3,        /**< access */
	UROCE_QP_PKEY_INDEX = 1 << 4,          /**< pkey_index */
	UROCE_QP_PORT = 1 << 5,                /**< port_num */
	UROCE_QP_QKEY = 1 << 6,                /**< qkey */
	UROCE_QP_AV = 1 << 7,                  /**< av */
	UROCE_QP_PATH_MTU = 1 << 8,            /**< path_mtu */
	UROCE_QP_TIMEOUT = 1 << 9,             /**< timeout */
	UROCE_QP_RETRY_CNT = 1 << 10,          /**< retry_cnt */
	UROCE_QP_RNR_RETRY = 1 << 11,          /**< rnr_retry */
	UROCE_QP_RQ_PSN = 1 << 12,             /**< rq_psn */
	UROCE_QP_MAX_RD_ATOMIC = 1 << 13,      /**< max_rd_atomic */
	UROCE_QP_MIN_RNR_TIMER = 1 << 15,      /**< min_rnr_timer */
	UROCE_QP_SQ_PSN = 1 << 16,             /**< sq_psn */
	UROCE_QP_MAX_DEST_RD_ATOMIC = 1 << 17, /**< max_dest_rd_atomic */
	UROCE_QP_DEST_QPN = 1 << 20,           /**< dest_qpn */
};
/** Address vector: the way to the peer (IBA annex A17). */
struct uroce_av {
	struct uroce_gid dgid; /**< the peer's address */
	uint32_t sgid_index;   /**< whose GID and VLAN packets come from */
	uint32_t flow_label;   /**< 20 bits */
	uint8_t traffic_class; /**< DSCP and ECN bits of the IP header */
	uint8_t hop_limit;     /**< 0: 64 */
	uint8_t sl;            /**< 0..7: priority in the VLAN tag */
};
/** Attributes of a QP; which ones a transition needs and takes is IBA table 91. */
struct uroce_qp_attr {
	enum uroce_qp_state state;     /**< to go to */
	enum uroce_qp_state cur_state; /**< what the caller believes it to be now */
	uint32_t path_mtu;      /**< bytes: 256, 512, 1024, 2048 or 4096 */
	uint8_t timeout;        /**< 0: none; else 4.096 us * 2^timeout, to 31 */
	uint8_t retry_cnt;      /**< 0..7 */
	uint8_t rnr_retry;      /**< 0..6; 7: for ever */
	uint8_t min_rnr_timer;  /**< code 0..31, IBA table 46 */
	uint8_t max_rd_atomic;  /**< 0..128: READs, atomics, ATOMIC WRITEs and FLUSHes outstanding, as requester */
	uint8_t max_dest_rd_atomic; /**< and as responder */
	uint8_t port_num;       /**< 1 */
	bool sqd_async_notify;  /**< raise UROCE_EVENT_SQ_DRAINED */
	uint16_t pkey_index;    /**< 0 */
	uint32_t access;        /**< enum uroce_access: what the peer may do; the MR must allow it too */
	uint32_t dest_qpn;      /**< of the peer, 24 bits */
	uint32_t rq_psn;        /**< the first that comes, 24 bits */
	uint32_t sq_psn;        /**< the first that goes, 24 bits */
	struct uroce_av av;     /**< the way to the peer */
	uint32_t qkey;          /**< UD. With the highest bit set: only with an engine in this process, -EPERM with a daemon */
};
/** How much the queues of a QP take. */
struct uroce_qp_cap {
	uint32_t max_send_wr;  /**< send WRs that can be outstanding */
	uint32_t max_recv_wr;  /**< receive WRs */
	uint32_t max_send_sge; /**< SGEs of one send WR */
	uint32_t max_recv_sge; /**< of one receive WR */
	uint32_t max_inline;   /**< bytes of one WR sent inline */
};
/** What a QP is made of. Not needed after uroce_qp_create, but the CQs have to stay. */
struct uroce_qp_init {
	enum uroce_service service; /**< for good */
	struct uroce_cq *send_cq;   /**< where send WRs complete, */
	struct uroce_cq *recv_cq;   /**< and receive WRs; may be the same */
	struct uroce_qp_cap cap;    /**< 0 means 1, and 0 bytes inline */
	bool signal_all;            /**< every send WR is signaled */
	bool block_own_multicast;   /**< UD: what it sends to a group that it is in itself does not come back to it */
	void *user;                 /**< the program's own, see uroce_qp_user */
	struct uroce_srq *srq;      /**< where its receives come from; NULL: a queue of its own. It has to stay, too */
};

/** Makes a QP, in RESET. With an SRQ, max_recv_wr and max_recv_sge say nothing and are granted as 0. Any thread. IBA "Create
 * Queue Pair"
 * @param pd  of the MRs that it reaches
 * @param init  not needed afterwards; what was granted, never less than asked, says uroce_qp_cap
 * @param[out] out  the caller's; uroce_qp_destroy
 * @return 0; -EINVAL: no CQs, PD, CQs or SRQ of different contexts, a service that there is not, or more than the device takes;
 * -ENOSPC: no QP number left */
int uroce_qp_create(struct uroce_pd *pd, const struct uroce_qp_init *init, struct uroce_qp **out);
/** Its WRs end without completions, and completions that were not polled yet are removed from its CQs. The peer is not told.
 * Does not wait for anything on the network, but until every event that uroce_async_get_event returned for it is
 * acknowledged; those that were not taken are dropped. Nobody may be posting to it or polling its CQs (see Threads). Any
 * thread but one that holds unacknowledged events. IBA "Destroy Queue Pair"
 * @param qp  or NULL
 * @return 0, or an error of every control call */
int uroce_qp_destroy(struct uroce_qp *qp);
/** Any thread.
 * @param qp  the QP
 * @return its number */
uint32_t uroce_qp_num(const struct uroce_qp *qp);
/** Any thread.
 * @param qp  the QP
 * @return what was given as user at creation */
void *uroce_qp_user(const struct uroce_qp *qp);
/** Any thread.
 * @param qp  the QP
 * @param[out] cap  what it was granted */
void uroce_qp_cap(const struct uroce_qp *qp, struct uroce_qp_cap *cap);

/** Changes state and attributes: either all of it or nothing. To RESET: WRs and unpolled completions are dropped (see
 * Threads). To ERR: WRs complete as flushed. Any thread. IBA "Modify Queue Pair", table 91
 * @param qp  the QP
 * @param attr  what it shall be
 * @param mask  enum uroce_qp_attr_mask
 * @return 0; -EINVAL: no such transition, an attribute missing, not allowed there or out of range, cur_state wrong, no such
 * GID; -EPERM: a Q_Key that is not for this program; -EACCES: another user's QP is connected to dest_qpn there;
 * -ENETUNREACH: no route to dgid; -ENOBUFS: too many peers being resolved; -EBUSY: the SQ still drains, or READs are being
 * answered */
int uroce_qp_modify(struct uroce_qp *qp, const struct uroce_qp_attr *attr, uint32_t mask);
/** Any thread. IBA "Query Queue Pair"
 * @param qp  the QP
 * @param[out] attr  all of them as they are now, sq_psn and rq_psn being the next ones
 * @return 0, or an error of every control call */
int uroce_qp_query(struct uroce_qp *qp, struct uroce_qp_attr *attr);

/** Remote QP of every WR to a multicast group, and of no other (IBA 9.6.1.2.4). */
#define UROCE_QPN_MULTICAST 0xffffffu

/** The QP, of service UD, gets its own copy of each datagram to the group whose Q_Key is its own, from programs of this engine
 * too; a copy that finds no receive is dropped, and the other QPs of the group do not notice. In what state the QP is does not
 * matter. The first member makes the port let the group in, and tells routers and switches (IGMPv3, MLDv2), as the kernel does
 * where it shares the interface. A QP that is attached already is attached once. Any thread. IBA "Attach QP to Multicast Group"
 * @param qp  the QP
 * @param group  of 224.0.0.0/4, as IPv4 addresses are, or of ff00::/8
 * @return 0; -EINVAL: another service, or no group; -ENOSPC: max_mcast_grp or max_mcast_qp_attach; with a daemon -EDQUOT: its
 * quota of attachments, or max_mcast_qp_attach QPs of this program in the group */
int uroce_qp_attach_multicast(struct uroce_qp *qp, const struct uroce_gid *group);
/** No datagram of the group comes afterwards; those that did stay. Destroying the QP detaches it from all its groups. Any
 * thread. IBA "Detach QP from Multicast Group"
 * @param qp  the QP
 * @param group  as attached
 * @return 0; -EINVAL: it was not attached */
int uroce_qp_detach_multicast(struct uroce_qp *qp, const struct uroce_gid *group);

/** Makes an address handle: the way to one host or multicast group, for WRs of UD QPs of the same PD. A group needs no
 * resolving, nor has the sender to be in it; datagrams leave by the wire and reach QPs of this engine that are in it, the
 * sender's own among them (unless block_own_multicast).
 *
 * The rest is of hosts. Its next hop is asked for if need be; until that answers, WRs to it wait, and hold back those posted
 * after them; if it does not answer (within a second or so), datagrams are lost here as they would be further on, and the QP's
 * counter tx_unreachable counts them. It follows changes of routes and neighbours by itself. Any thread. IBA "Create Address
 * Handle"
 * @param pd  of the QPs
 * @param av  the way; not needed afterwards
 * @param[out] out  the caller's; uroce_ah_destroy
 * @return 0; -EINVAL: no such GID index, the address families differ, or dgid is neither a host's nor a group's;
 * -ENETUNREACH: no route; -ENOBUFS: too many hosts are being asked for */
int uroce_ah_create(struct uroce_pd *pd, const struct uroce_av *av, struct uroce_ah **out);
/** WRs that name it and were not sent yet end in an error. Nobody may be posting with it. Any thread. IBA "Destroy Address
 * Handle"
 * @param ah  or NULL
 * @return 0, or an error of every control call */
int uroce_ah_destroy(struct uroce_ah *ah);
/** The way back to the sender of a datagram. Asks the engine: not for the hot path, keep the AH. Any thread. IBA 11.2.2.5
 * @param ctx  the session
 * @param wc  its completion; src_qpn is the QP to answer to
 * @param grh  the first 40 bytes of its receive: the IPv6 header, or 20 zero bytes and the IPv4 header
 * @param[out] av  for uroce_ah_create
 * @return 0; -EINVAL: no datagram's WC, or no such headers; -EADDRNOTAVAIL: the address it was sent to is not this port's any
 * more */
int uroce_av_from_wc(struct uroce_context *ctx, const struct uroce_wc *wc, const void *grh, struct uroce_av *av);

/** What two programs have to tell each other to connect. Plain numbers: how they travel is the programs' business. */
struct uroce_endpoint {
	struct uroce_gid gid; /**< this side's address */
	uint32_t qpn;       /**< and QP there */
	uint32_t psn;       /**< first one this side will send */
	uint32_t mtu;       /**< bytes, what this side's port carries */
	uint32_t rd_atomic; /**< READs, atomics, ATOMIC WRITEs and FLUSHes this side serves at a time */
};
/** This side's endpoint, with a random PSN: a new one each time. Any thread.
 * @param qp  the QP
 * @param gid_index  which of the port's addresses
 * @param[out] local  for the peer's uroce_qp_connect, and for this side's
 * @return 0; -EINVAL, -ENOENT: as uroce_query_gid */
int uroce_qp_endpoint(struct uroce_qp *qp, uint32_t gid_index, struct uroce_endpoint *local);
/** Takes the QP from RESET or INIT through INIT and RTR to RTS, the usual way. Receives that the peer's first messages will
 * need are to be posted before: go to INIT by uroce_qp_modify, post, then connect. The peer is not contacted. When it is
 * refused the QP is in INIT, or as it was, and the call may be repeated. Any thread.
 * @param qp  the QP
 * @param local  this side's endpoint
 * @param remote  the peer's; the lesser MTU is taken. UD: not looked at
 * @param attr  NULL, or members to differ from the defaults (path MTU as above, timeout 14, retry_cnt 7, rnr_retry 7,
 *              min_rnr_timer 12, all remote access, max_rd_atomic what the peer serves); UC has no timeout, retries, RNR timer
 *              and READs. UD: only port, P_Key index and Q_Key (0)
 * @param mask  which members; not the state, PSNs or QPN, which are the endpoints'. UROCE_QP_AV: all of av, a dgid of zeroes
 *              meaning remote's
 * @return 0; -EINVAL: endpoints or mask make no sense; -EADDRNOTAVAIL: local's GID is not in the table; else as
 * uroce_qp_modify */
int uroce_qp_connect(struct uroce_qp *qp, const struct uroce_endpoint *local, const struct uroce_endpoint *remote,
	const struct uroce_qp_attr *attr, uint32_t mask);
/** One sentence: why the QP is in ERR (or SQE), with peer, PSNs, transmissions and cause. Any thread.
 * @param qp  the QP
 * @param[out] text  at most len bytes, always with an end; may be NULL when len is 0
 * @param len  bytes
 * @return the length the whole needs without its end, as snprintf does; 0 and an empty string when the QP is in no such
 * state; an error of every control call, and an empty string */
int uroce_qp_error_text(struct uroce_qp *qp, char *text, size_t len);

/** @}
 * @defgroup post Work requests
 * @{ */

/** What a send WR does (IBA 9.4). */
enum uroce_opcode {
	UROCE_OP_SEND,           /**< a message into a receive of the peer's */
	UROCE_OP_SEND_WITH_IMM,  /**< with four bytes in the peer's WC */
	UROCE_OP_WRITE,          /**< into the peer's memory */
	UROCE_OP_WRITE_WITH_IMM, /**< that takes a receive as well, for a WC with four bytes */
	UROCE_OP_READ,           /**< RC: from the peer's memory */
	UROCE_OP_COMPARE_SWAP,   /**< RC: 8 bytes of the peer's are replaced by swap if they are compare_add; what was there comes back */
	UROCE_OP_FETCH_ADD,      /**< RC: compare_add is added to 8 bytes of the peer's; what was there comes back */
	UROCE_OP_ATOMIC_WRITE,   /**< RC: 8 bytes, all of them at once (IBA A19) */
	UROCE_OP_FLUSH,          /**< RC: completes when what this QP wrote before is placed as asked (IBA A19) */
	/** RC: SEND, and then invalidates a key of the peer's: of a window of type 2 bound on its QP, or an MR of uroce_mr_alloc. Any
	 * other key is a remote access error, and stays. */
	UROCE_OP_SEND_WITH_INV,
	/** A window of type 2; its upper 24 bits in rkey say which. At most 4096 bound on one QP.
	 *
	 * This and what follows send nothing. They are carried out in their turn, once all WRs before them have been sent; what
	 * follows them sees what they did. One that cannot be carried out completes with UROCE_WC_MW_BIND_ERR and takes the QP to
	 * ERR. Not of UD. IBA 10.6.5, 10.6.7 */
	UROCE_OP_BIND_MW,
	UROCE_OP_LOCAL_INV, /**< what SEND_WITH_INV can, of this side, after all WRs before it have completed */
	UROCE_OP_REG_MR,    /**< gives an MR of uroce_mr_alloc, which rkey names likewise, a part of another MR as its memory */
};
/** How a send WR is carried out. */
enum uroce_send_flag {
	UROCE_SEND_SIGNALED = 1 << 0,  /**< completes with a WC also on success */
	UROCE_SEND_SOLICITED = 1 << 1, /**< fires the peer's CQ if it is armed for solicited only */
	UROCE_SEND_INLINE = 1 << 2,    /**< SEND, WRITE and ATOMIC WRITE: the bytes are taken while posting; lkeys are not looked at */
	UROCE_SEND_FENCE = 1 << 3,     /**< waits until READs, atomics, ATOMIC WRITEs and FLUSHes posted before have completed */
};
/** What a FLUSH waits for. */
enum uroce_flush_placement {
	UROCE_FLUSH_GLOBAL = 1 << 0,     /**< seen by everybody on the peer's side */
	UROCE_FLUSH_PERSISTENT = 1 << 1, /**< and there after a power cut */
};
/** Of how much. */
enum uroce_flush_level {
	UROCE_FLUSH_RANGE, /**< of some bytes */
	UROCE_FLUSH_MR,    /**< of a whole MR */
};
/** What a FLUSH is for. The peer's QP and MR must both grant it. */
struct uroce_flush {
	uint32_t len;            /**< RANGE: of so many bytes at remote_addr, at most 2^31; MR: all of rkey's, whatever is given */
	uint32_t placement;      /**< enum uroce_flush_placement, at least one */
	enum uroce_flush_level level; /**< range or MR */
};
/** A piece of this side's memory. */
struct uroce_sge {
	uint64_t addr; /**< where it begins, in the MR's own addresses */
	uint32_t len;  /**< bytes; 0: none */
	uint32_t lkey; /**< of the MR */
};
/** One operation for the peer (IBA 11.4.1.1). */
struct uroce_send_wr {
	uint64_t wr_id;                  /**< the program's, given back in the WC */
	const struct uroce_sge *sg_list; /**< READ, atomics: where the result goes. Not needed after the post. */
	uint32_t num_sge;                /**< how many are in it */
	enum uroce_opcode opcode;        /**< what it does */
	uint32_t flags;                  /**< enum uroce_send_flag */
	/** By opcode: */
	union {
		uint32_t imm;             /**< four bytes, sent as they are */
		uint32_t invalidate_rkey; /**< SEND_WITH_INV: of the peer's; LOCAL_INV */
	};
	uint64_t remote_addr; /**< atomics, ATOMIC WRITE: a multiple of 8 */
	uint32_t rkey;        /**< the peer's; BIND_MW, REG_MR: the new key, see uroce_inc_rkey */
	uint64_t compare_add; /**< FETCH_ADD: the addend; COMPARE_SWAP: compared */
	uint64_t swap;        /**< COMPARE_SWAP: what it becomes */
	struct uroce_flush flush; /**< FLUSH */
	/** By service and opcode: */
	union {
		const struct uroce_ah *ah;     /**< UD: where to, */
		const struct uroce_bind *bind; /**< BIND_MW, REG_MR. Not needed after the post. */
	};
	uint32_t remote_qpn;  /**< to which QP there, UROCE_QPN_MULTICAST for a group, */
	uint32_t remote_qkey; /**< and that one's Q_Key; with the highest bit set the sending QP's own is taken */
};
/** Where a message may land: as many bytes as its SGEs have, none for WRITE_WITH_IMM. */
struct uroce_recv_wr {
	uint64_t wr_id;                  /**< the program's, given back in the WC */
	const struct uroce_sge *sg_list; /**< not needed after the post */
	uint32_t num_sge;                /**< how many are in it */
};
/** Posts WRs, in order. Keys, ranges and rights are not looked at here: what is wrong with them ends as a WC in error. WRs are
 * the caller's again on return; the memory they name belongs to the WR until it has completed (inline: on return). No lock; no
 * system call except to wake an engine that sleeps. One thread at a time per queue: sends and receives of one QP may be posted
 * by two. IBA 11.4.1
 * @param qp  in RTS, SQD, SQE or ERR
 * @param wr  n of them
 * @param n  how many
 * @return how many were posted; less than n when the next one was not, and then nothing after it was. When the first was not:
 * -EINVAL: the QP's state does not take it, or the WR cannot be right: opcode (or none of the service), flags, number of SGEs,
 * inline bytes, message over max_msg_bytes (UD: over the port's MTU; no AH or QPN, or one of a group with one of none), atomic
 * or ATOMIC WRITE not of one SGE of 8 bytes or at an address that is not a multiple of 8, FLUSH with SGEs or for what there is
 * not; one line in the log says which, for so many a second; -ENOMEM: the queue is full: slots come back as WRs complete, those
 * of unsignaled ones too; -ENODEV: the engine is gone */
int uroce_post_send(struct uroce_qp *qp, const struct uroce_send_wr *wr, unsigned n);
/** The same for receives.
 * @param qp  in any state but RESET, without an SRQ
 * @param wr  n of them
 * @param n  how many
 * @return as uroce_post_send; -EINVAL: the state, a QP with an SRQ, too many SGEs; -ENOMEM: the queue is full; -ENODEV: the
 * engine is gone */
int uroce_post_recv(struct uroce_qp *qp, const struct uroce_recv_wr *wr, unsigned n);
/** The same for an SRQ, in whatever states its QPs are; a WR completes in the CQ of the QP that takes it, and its slot is free
 * when it was taken. A QP that goes to ERR gives the receive that it holds back as flushed and then raises
 * UROCE_EVENT_QP_LAST_WQE_REACHED; one that is reset or destroyed leaves it to the others. One thread at a time per SRQ.
 * @param srq  the SRQ
 * @param wr  n of them
 * @param n  how many
 * @return as uroce_post_send; -EINVAL: too many SGEs; -ENOMEM: the queue is full; -ENODEV: the engine is gone */
int uroce_post_srq_recv(struct uroce_srq *srq, const struct uroce_recv_wr *wr, unsigned n);
/** Posts the bind of a window of type 1: a WR of the QP that gives it memory and a new key, which uroce_mw_rkey says from now
 * on and which opens it once the WR has completed; the old one is dead then. Threads as uroce_post_send. IBA "Bind Memory
 * Window"
 * @param qp  of the window's PD
 * @param mw  of type 1
 * @param to  the memory; len 0: it is bound to nothing
 * @param wr_id  of the WR
 * @param flags  UROCE_SEND_SIGNALED, UROCE_SEND_FENCE
 * @return 0; -EINVAL: a window of type 2 or another context's; else as uroce_post_send, of which it is one */
int uroce_mw_bind(struct uroce_qp *qp, struct uroce_mw *mw, const struct uroce_bind *to, uint64_t wr_id, uint32_t flags);

/** @}
 * @defgroup events Asynchronous events and counters
 * @{ */

/** What happened outside of any WR (IBA 11.6.3), each once. A program that does not read them loses those that find no room in
 * the fd (some 4,000), with a line in the log; nothing else waits for it. */
enum uroce_event_type {
	UROCE_EVENT_CQ_ERR = 0,        /**< the CQ overran; its QPs go to ERR */
	/** The QP is in ERR: its CQ overran, a receive was too short or names memory that it may not have, or its ring was overwritten. */
	UROCE_EVENT_QP_FATAL = 1,
	UROCE_EVENT_QP_REQ_ERR = 2,    /**< the QP is in ERR: the peer sent an invalid request */
	UROCE_EVENT_QP_ACCESS_ERR = 3, /**< the QP is in ERR: the peer asked for what it may not have */
	UROCE_EVENT_COMM_EST = 4,      /**< the first packet came while in RTR; not of UD */
	UROCE_EVENT_SQ_DRAINED = 5,    /**< in SQD, asked for by sqd_async_notify: what was begun has completed */
	UROCE_EVENT_DEVICE_FATAL = 8,  /**< of the device: the engine is gone, see Death of the engine */
	UROCE_EVENT_PORT_ACTIVE = 9,   /**< of the device: the port has a link again, */
	UROCE_EVENT_PORT_ERR = 10,     /**< or none any more; QPs retry meanwhile as they would for any loss */
	UROCE_EVENT_SRQ_ERR = 14,      /**< of an SRQ: its ring was overwritten; its QPs go to ERR when they need a receive */
	UROCE_EVENT_SRQ_LIMIT_REACHED = 15, /**< of an SRQ: fewer WRs than its limit are left */
	UROCE_EVENT_QP_LAST_WQE_REACHED = 16, /**< of a QP that is in ERR: it takes nothing more from its SRQ */
	UROCE_EVENT_GID_CHANGE = 18,   /**< of the device: a GID was added or removed */
};
/** One of them. */
struct uroce_async_event {
	enum uroce_event_type type; /**< what happened */
	struct uroce_qp *qp;   /**< to which QP, or NULL */
	struct uroce_cq *cq;   /**< to which CQ, or NULL */
	struct uroce_srq *srq; /**< to which SRQ, or NULL */
};
/** Any thread.
 * @param ctx  the session
 * @return an fd that is readable when an asynchronous event waits; the context's, as uroce_channel_fd */
int uroce_async_fd(const struct uroce_context *ctx);
/** Takes one; blocks unless the fd is O_NONBLOCK. Events of objects that were destroyed meanwhile are passed over. Each event
 * taken of a QP, CQ or SRQ must be acknowledged before that can be destroyed. Any thread.
 * @param ctx  the session
 * @param[out] event  what happened
 * @return as uroce_channel_get_event */
int uroce_async_get_event(struct uroce_context *ctx, struct uroce_async_event *event);
/** Acknowledges an event taken, once: from then on its object may be gone. Events of the device need none, but may have one. Any
 * thread.
 * @param event  as it was taken */
void uroce_async_ack_event(const struct uroce_async_event *event);

/** The counters of a QP, since it was created. Any thread.
 * @param qp  the QP
 * @param[out] value  the first n; may be NULL when n is 0
 * @param n  how many
 * @return how many there are, which may be more than n */
int uroce_qp_counters(struct uroce_qp *qp, uint64_t *value, unsigned n);
/** For people and scripts: names stay, new ones come at the end. Any thread.
 * @param i  from 0
 * @return the name of counter i; NULL beyond the last */
const char *uroce_qp_counter_name(unsigned i);

/** @} */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

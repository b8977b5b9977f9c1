/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenarios of the roce-sim suite, as a scripted peer plays them in the language of the traces: what the peer does wrong, or suffers, and then all that can be seen of it: our packets, completions, the
 * QP's state and its counters. A trace next door is one rule; a scenario is a connection from its first packet to its end. Each comes twice where it can: against our requester, and against our responder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "play.h"

#define SCRIPT_BYTES 4096u

/* Its lines, up to NULL. */
static void run(const char *name, const char *const *lines)
{
	static char text[SCRIPT_BYTES];
	size_t len = 0;
	for (; *lines; lines++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\n", *lines);
	assert_true(len < sizeof(text));
	FILE *script = fmemopen(text, len, "r");
	assert_non_null(script);
	assert_true(play_apart(script, name));
}
#define PLAY(...) run(__func__, (const char *const[]){ __VA_ARGS__, NULL })

/* ---- nothing goes wrong ---- */

static void test_every_operation_as_requester(void **state)
{
	PLAY("qp rq_psn=500 sq_psn=0xfffffc",
		"post SEND len=100 wr=1",
		"post SEND_IMM len=2000 wr=2 imm=0x11223344",
		"post WRITE len=1024 wr=3 va=0x70000 rkey=7",
		"post WRITE_IMM len=1025 wr=4 va=0x71000 rkey=7 imm=5",
		"post READ len=2000 at=0x1000 wr=5 va=0x72000 rkey=7",
		"post COMPARE_SWAP len=8 at=0x2000 wr=6 va=0x73000 rkey=7 compare=1 swap=2",
		"post FETCH_ADD len=8 at=0x2008 wr=7 va=0x73008 rkey=7 add=3",
		"post ATOMIC_WRITE len=8 wr=8 va=0x73010 rkey=7",
		"post FLUSH wr=9 va=0x70000 rkey=7 dlen=4096",
		"> SEND_ONLY psn=0xfffffc len=100 ack=1",
		"> SEND_FIRST psn=0xfffffd len=1024",
		"> SEND_LAST_IMM psn=0xfffffe len=976 imm=0x11223344 ack=1",
		"> WRITE_ONLY psn=0xffffff dlen=1024 va=0x70000 rkey=7 ack=1",
		"> WRITE_FIRST psn=0 dlen=1025 va=0x71000",
		"> WRITE_LAST_IMM psn=1 len=1 imm=5 ack=1",
		"> READ_REQUEST psn=2 dlen=2000 va=0x72000 rkey=7 ack=1",
		"> COMPARE_SWAP psn=4 va=0x73000 compare=1 swap=2 ack=1",
		"> FETCH_ADD psn=5 va=0x73008 add=3 ack=1",
		"> ATOMIC_WRITE psn=6 va=0x73010 len=8 ack=1",
		"nothing", /* four answers are outstanding, and no more are allowed */
		"< ACK psn=1 msn=4",
		"wc wr=1 op=SEND", "wc wr=2 op=SEND", "wc wr=3 op=WRITE", "wc wr=4 op=WRITE",
		"< READ_RESPONSE_FIRST psn=2 len=1024 msn=5 data=0x51",
		"< READ_RESPONSE_LAST psn=3 len=976 msn=5 data=0x52",
		"wc wr=5 op=READ len=2000",
		"> FLUSH psn=7 va=0x70000 dlen=4096 ack=1",
		"< ATOMIC_ACK psn=4 msn=6 orig=9",
		"wc wr=6 op=COMPARE_SWAP len=8",
		"< ATOMIC_ACK psn=5 msn=7 orig=10",
		"wc wr=7 op=FETCH_ADD len=8",
		"< READ_RESPONSE_ONLY psn=6 len=0 msn=8",
		"wc wr=8 op=ATOMIC_WRITE",
		"< READ_RESPONSE_ONLY psn=7 len=0 msn=9",
		"wc wr=9 op=FLUSH",
		"mem at=0x1000 len=1024 is=0x51", "mem at=0x1400 len=976 is=0x52", "mem at=0x2000 word=9", "mem at=0x2008 word=10",
		"state RTS",
		"counter tx_packets=11 retransmitted_packets=0 completed_requests=9 acks_received=1 dropped_packets=0 local_ack_timeout_err=0");
}

static void test_every_operation_as_responder(void **state)
{
	PLAY("qp rq_psn=0xfffffc",
		"recv at=0x1000 len=4096 wr=1 n=3",
		"mem at=0x8000 setword=40",
		"< SEND_ONLY psn=0xfffffc len=100 ack=1 data=1 se",
		"> ACK psn=0xfffffc msn=1",
		"rwc wr=1 op=RECV len=100",
		"mem at=0x1000 len=100 is=1",
		"< SEND_FIRST psn=0xfffffd len=1024 data=2",
		"<& SEND_LAST_IMM psn=0xfffffe len=976 data=3 imm=0x11223344 ack=1",
		"> ACK psn=0xfffffe msn=2",
		"rwc wr=2 op=RECV len=2000 imm=0x11223344",
		"< WRITE_ONLY psn=0xffffff len=1024 va=@0x3000 data=4 ack=1",
		"> ACK psn=0xffffff msn=3",
		"< WRITE_FIRST psn=0 len=1024 dlen=1025 va=@0x4000 data=5",
		"<& WRITE_LAST_IMM psn=1 len=1 data=6 imm=5 ack=1",
		"> ACK psn=1 msn=4",
		"rwc wr=3 op=RECV_WRITE_WITH_IMM len=1025 imm=5",
		"< READ_REQUEST psn=2 va=@0x3000 dlen=2000 ack=1",
		"> READ_RESPONSE_FIRST psn=2 len=1024 msn=5 from=0x3000",
		"> READ_RESPONSE_LAST psn=3 len=976 msn=5 from=0x3400",
		"< COMPARE_SWAP psn=4 va=@0x8000 compare=40 swap=50 ack=1",
		"> ATOMIC_ACK psn=4 msn=6 orig=40",
		"< FETCH_ADD psn=5 va=@0x8000 add=3 ack=1",
		"> ATOMIC_ACK psn=5 msn=7 orig=50",
		"< ATOMIC_WRITE psn=6 len=8 va=@0x8008 data=7 ack=1",
		"> READ_RESPONSE_ONLY psn=6 len=0 msn=8",
		"< FLUSH psn=7 va=@0x3000 dlen=4096 ack=1",
		"> READ_RESPONSE_ONLY psn=7 len=0 msn=9",
		"mem at=0x3000 len=1024 is=4", "mem at=0x4000 len=1024 is=5", "mem at=0x4400 len=1 is=6", "mem at=0x8000 word=53", "mem at=0x8008 len=8 is=7",
		"state RTS rq_psn=8",
		"counter rx_packets=11 acks_sent=4 naks_sent=0 completed_receives=3 out_of_sequence=0 duplicate_request=0 dropped_packets=0");
}

/* ---- answers to what was not asked ---- */

static void test_ghost_ack(void **state)
{
	PLAY("qp",
		"< ACK psn=99 msn=0", "drop ack_old", /* before anything was sent */
		"< ACK psn=100 msn=1", "drop ack_of_unsent",
		"< NAK_ACC psn=100 msn=0", "drop ack_of_unsent",
		"post SEND len=8 wr=1", "> SEND_ONLY psn=100",
		"< ACK psn=101 msn=2", "drop ack_of_unsent",
		"< RNR psn=101 code=1", "drop ack_of_unsent",
		"< READ_RESPONSE_ONLY psn=101 len=8 msn=2", "drop response_unexpected",
		"< ATOMIC_ACK psn=100 msn=1 orig=5", "drop response_unexpected",
		"nowc", "nothing",
		"< ACK psn=100 msn=1", "wc wr=1",
		"< ACK psn=100 msn=1", "drop ack_old", /* once more: nothing completes twice */
		"nowc", "state RTS",
		"counter acks_received=1 completed_requests=1 dropped_packets=8 rnr_nak_retry_err=0 retransmitted_packets=0");
}

/* known-bugs: 48 */
static void test_wrong_response_to_a_read(void **state)
{
	PLAY("qp",
		"post READ len=2048 at=0x1000 wr=1", "post WRITE len=8 wr=2",
		"> READ_REQUEST psn=100", "> WRITE_ONLY psn=102",
		"< READ_RESPONSE_FIRST psn=100 len=1024 msn=1 data=9",
		"< ATOMIC_ACK psn=101 msn=1 orig=1", "drop req_bad_response",
		"wc wr=1 status=BAD_RESP_ERR", "wc wr=2 status=WR_FLUSH_ERR",
		"mem at=0x1400 len=1024 same", "state ERR",
		"< READ_RESPONSE_LAST psn=101 len=1024 msn=1", "drop rx_qp_state_errors",
		"mem at=0x1400 len=1024 same", "nothing 1s");
}

static void test_wrong_response_to_an_atomic(void **state)
{
	PLAY("qp",
		"post FETCH_ADD len=8 at=0x1000 wr=1 add=1", "post FETCH_ADD len=8 at=0x1008 wr=2 add=1",
		"> FETCH_ADD psn=100", "> FETCH_ADD psn=101",
		"< READ_RESPONSE_ONLY psn=100 len=8 msn=1", "drop req_bad_response",
		"wc wr=1 status=BAD_RESP_ERR", "wc wr=2 status=WR_FLUSH_ERR",
		"mem at=0x1000 len=16 same", "state ERR", "nothing 1s");
}

static void test_wrong_response_to_a_write(void **state)
{
	PLAY("qp",
		"post WRITE len=8 wr=1", "> WRITE_ONLY psn=100",
		"< READ_RESPONSE_ONLY psn=100 len=8 msn=1", "drop response_unexpected",
		"< ATOMIC_ACK psn=100 msn=1 orig=1", "drop response_unexpected",
		"nowc", "state RTS",
		"< ACK psn=100 msn=1", "wc wr=1",
		"counter dropped_packets=2");
}

/* ---- implied NAK ---- */

/* known-bugs: L7 */
static void test_implied_nak(void **state)
{
	PLAY("qp retry_cnt=1",
		"post READ len=2048 at=0x1000 wr=1", "post FETCH_ADD len=8 at=0x3000 wr=2 add=1", "post SEND len=8 wr=3",
		"> READ_REQUEST psn=100", "> FETCH_ADD psn=102", "> SEND_ONLY psn=103",
		"+10us < READ_RESPONSE_FIRST psn=100 len=1024 msn=1 data=1",
		"+10us < ATOMIC_ACK psn=102 msn=2 orig=5", "drop response_out_of_sequence", /* the LAST before it is missing */
		"nowc",
		"> READ_REQUEST psn=101 va=0x7400 dlen=1024", "> FETCH_ADD psn=102", "> SEND_ONLY psn=103",
		"+10us < READ_RESPONSE_ONLY psn=101 len=1024 msn=1 data=2", "wc wr=1",
		/* progress: the count begins anew, and the same may happen once more */
		"+10us < ACK psn=103 msn=3", "nowc",
		"> FETCH_ADD psn=102", "> SEND_ONLY psn=103",
		"+10us < ATOMIC_ACK psn=102 msn=2 orig=5", "wc wr=2",
		"< ACK psn=103 msn=3", "wc wr=3",
		"mem at=0x1000 len=1024 is=1", "mem at=0x1400 len=1024 is=2", "mem at=0x3000 word=5", "state RTS",
		"counter implied_nak_seq_err=2 packet_seq_err=0 local_ack_timeout_err=0 retransmitted_packets=5 completed_requests=3");
}

static void test_implied_nak_limit_exceeded(void **state)
{
	PLAY("qp retry_cnt=2 timeout=10",
		"post READ len=8 at=0x1000 wr=1", "post SEND len=8 wr=2",
		"> READ_REQUEST psn=100", "> SEND_ONLY psn=101",
		"+10us < ACK psn=101 msn=2", "> READ_REQUEST psn=100", "> SEND_ONLY psn=101", "nowc",
		"+4ms < ACK psn=101 msn=2",
		"+0..5ms > READ_REQUEST psn=100", "> SEND_ONLY psn=101", "nowc", /* by the implied NAK or by the timeout, whichever is believed first */
		"+4194304ns..20ms wc wr=1 status=RETRY_EXC_ERR", "wc wr=2 status=WR_FLUSH_ERR",
		"mem at=0x1000 len=8 same", "state ERR", "nothing 1s",
		"counter completed_requests=2 retransmitted_packets=4");
}

/* ---- ACK timeout ---- */

static void test_ack_timeout_of_a_request(void **state)
{
	PLAY("qp timeout=10 retry_cnt=2",
		"post SEND len=8 wr=1", "post READ len=8 at=0x1000 wr=2", "post FETCH_ADD len=8 at=0x1008 wr=3 add=1",
		"> SEND_ONLY psn=100", "> READ_REQUEST psn=101", "> FETCH_ADD psn=102",
		"+4194304ns..4.3ms > SEND_ONLY psn=100 ack=1", "> READ_REQUEST psn=101", "> FETCH_ADD psn=102",
		"< ACK psn=100 msn=1", "wc wr=1",
		"+4194304ns..9ms > READ_REQUEST psn=101", "> FETCH_ADD psn=102",
		"< READ_RESPONSE_ONLY psn=101 len=8 msn=2 data=1", "wc wr=2",
		"+4194304ns..9ms > FETCH_ADD psn=102",
		"< ATOMIC_ACK psn=102 msn=3 orig=7", "wc wr=3",
		"mem at=0x1000 len=8 is=1", "mem at=0x1008 word=7", "state RTS", "nothing 1s",
		"counter local_ack_timeout_err=3 retransmitted_packets=6 packet_seq_err=0 implied_nak_seq_err=0");
}

/* known-bugs: L2 48 */
static void test_ack_timeout_limit_exceeded(void **state)
{
	PLAY("qp timeout=10 retry_cnt=1",
		"post WRITE len=3000 wr=1", "post SEND len=8 wr=2",
		"> WRITE_FIRST psn=100", "> WRITE_MIDDLE psn=101", "> WRITE_LAST psn=102", "> SEND_ONLY psn=103",
		"+4194304ns..4.3ms > WRITE_FIRST psn=100 dlen=3000", "> WRITE_MIDDLE psn=101", "> WRITE_LAST psn=102", "> SEND_ONLY psn=103",
		"nowc",
		"+4194304ns..9ms wc wr=1 status=RETRY_EXC_ERR", "wc wr=2 status=WR_FLUSH_ERR",
		"state ERR", "< ACK psn=103 msn=2", "nowc", "nothing 1s",
		"counter local_ack_timeout_err=2 retransmitted_packets=4 completed_requests=2");
}

/* Our answers are lost: the peer asks again, and gets the same once more, executed once. */
/* known-bugs: 4 9 */
static void test_ack_timeout_of_the_peer(void **state)
{
	PLAY("qp",
		"recv at=0x1000 len=64 wr=1 n=2", "mem at=0x8000 setword=1",
		"< SEND_ONLY psn=500 len=8 data=1 ack=1", "<& WRITE_ONLY psn=501 len=8 va=@0x2000 data=2 ack=1",
		"> ACK psn=501 msn=2", "rwc wr=1 len=8",
		"< SEND_ONLY psn=500 len=8 data=9 ack=1", "<& WRITE_ONLY psn=501 len=8 va=@0x2000 data=9 ack=1",
		"> ACK psn=501 msn=2",
		"< READ_REQUEST psn=502 va=@0x2000 dlen=8", "> READ_RESPONSE_ONLY psn=502 msn=3 len=8 data=2",
		"< READ_REQUEST psn=502 va=@0x2000 dlen=8", "> READ_RESPONSE_ONLY psn=502 msn=3 len=8 data=2",
		"< FETCH_ADD psn=503 va=@0x8000 add=1", "> ATOMIC_ACK psn=503 msn=4 orig=1",
		"< FETCH_ADD psn=503 va=@0x8000 add=1", "> ATOMIC_ACK psn=503 msn=4 orig=1",
		"nowc", "mem at=0x1000 len=8 is=1", "mem at=0x2000 len=8 is=2", "mem at=0x8000 word=2", "state RTS rq_psn=504",
		"counter duplicate_request=4 completed_receives=1 naks_sent=0 out_of_sequence=0");
}

/* ---- PSN error ---- */

/* known-bugs: 8 */
static void test_psn_error_of_the_requester(void **state)
{
	PLAY("qp",
		"post SEND len=8 wr=1 n=4", "> SEND_ONLY psn=100", "> SEND_ONLY psn=101", "> SEND_ONLY psn=102", "> SEND_ONLY psn=103",
		"+10us < NAK_SEQ psn=101 msn=1", "wc wr=1",
		"> SEND_ONLY psn=101", "> SEND_ONLY psn=102", "> SEND_ONLY psn=103", "nothing",
		"< ACK psn=103 msn=4", "wc wr=2", "wc wr=3", "wc wr=4", "state RTS",
		"counter packet_seq_err=1 retransmitted_packets=3 local_ack_timeout_err=0");
}

static void test_psn_error_limit_exceeded(void **state)
{
	PLAY("qp retry_cnt=1",
		"post SEND len=8 wr=1", "> SEND_ONLY psn=100", "+20us < ACK psn=100 msn=1", "wc wr=1",
		"post SEND len=8 wr=2 n=2", "> SEND_ONLY psn=101", "> SEND_ONLY psn=102",
		"+10us < NAK_SEQ psn=101 msn=1", "> SEND_ONLY psn=101", "> SEND_ONLY psn=102", "nowc",
		"+125us < NAK_SEQ psn=101 msn=1",
		"wc wr=2 status=RETRY_EXC_ERR", "wc wr=3 status=WR_FLUSH_ERR", "state ERR", "nothing 1s",
		"counter packet_seq_err=2 retransmitted_packets=2 local_ack_timeout_err=0");
}

static void test_psn_error_seen_by_the_responder(void **state)
{
	PLAY("qp",
		"recv at=0x1000 len=2048 wr=1 n=2",
		"< SEND_FIRST psn=500 len=1024 data=1", "<& SEND_LAST psn=502 len=8 data=9 ack=1", /* 501 is missing */
		"> NAK_SEQ psn=501 msn=0",
		"< READ_REQUEST psn=503 dlen=8", "drop out_of_sequence", "nothing", "nowc",
		"< SEND_MIDDLE psn=501 len=1016", "> NAK_INV psn=501 msn=0", /* and now it is no MIDDLE */
		"rwc wr=1 status=REM_INV_REQ_ERR", "rwc wr=2 status=WR_FLUSH_ERR", "event QP_REQ_ERR", "state ERR",
		"counter naks_sent=2 out_of_sequence=2");
}

/* ---- RNR ---- */

static void test_rnr_of_the_peer(void **state)
{
	PLAY("qp rnr_retry=1",
		"post SEND len=2000 wr=1", "post WRITE len=8 wr=2",
		"> SEND_FIRST psn=100", "> SEND_LAST psn=101", "> WRITE_ONLY psn=102",
		"< RNR psn=100 code=7 msn=0", "nothing",
		"+120us..125us > SEND_FIRST psn=100", "> SEND_LAST psn=101", "> WRITE_ONLY psn=102",
		"< ACK psn=102 msn=2", "wc wr=1", "wc wr=2", "state RTS",
		"counter rnr_nak_retry_err=1 retransmitted_packets=3 local_ack_timeout_err=0 packet_seq_err=0");
}

/* known-bugs: 6 48 */
static void test_rnr_limit_exceeded(void **state)
{
	PLAY("qp rnr_retry=1",
		"post SEND len=8 wr=1", "post SEND len=8 wr=2 unsignaled", "> SEND_ONLY psn=100", "> SEND_ONLY psn=101",
		"< RNR psn=100 code=1 msn=0", "+10us..14us > SEND_ONLY psn=100", "> SEND_ONLY psn=101",
		"< RNR psn=100 code=1 msn=0",
		"wc wr=1 status=RNR_RETRY_EXC_ERR", "wc wr=2 status=WR_FLUSH_ERR", "state ERR", "nothing 1s",
		"counter rnr_nak_retry_err=2 retransmitted_packets=2 local_ack_timeout_err=0");
}

/* known-bugs: 16 */
static void test_rnr_of_ours(void **state)
{
	PLAY("qp rnr_timer=14",
		"< SEND_ONLY psn=500 len=8 ack=1", "<& WRITE_ONLY psn=501 len=8 va=@0x2000 ack=1",
		"> RNR psn=500 code=14 msn=0", "nothing", "nowc", "mem at=0x2000 len=8 same",
		"recv at=0x1000 len=64 wr=1",
		"+1ms < SEND_ONLY psn=500 len=8 data=3 ack=1", "<& WRITE_ONLY psn=501 len=8 va=@0x2000 data=4 ack=1",
		"> ACK psn=501 msn=2", "rwc wr=1 len=8", "mem at=0x1000 len=8 is=3", "mem at=0x2000 len=8 is=4", "state RTS",
		"counter rnr_nak_sent=1 naks_sent=0 completed_receives=1");
}

/* ---- errors that end the QP ---- */

static void test_rkey_violation_of_ours(void **state)
{
	PLAY("qp",
		"recv at=0x1000 len=64 wr=11", "post SEND len=8 wr=1", "post WRITE len=8 wr=2", "post READ len=8 wr=3",
		"> SEND_ONLY psn=100", "> WRITE_ONLY psn=101", "> READ_REQUEST psn=102",
		"< NAK_ACC psn=101 msn=1",
		"wc wr=1", "wc wr=2 status=REM_ACCESS_ERR", "wc wr=3 status=WR_FLUSH_ERR", "rwc wr=11 status=WR_FLUSH_ERR",
		"state ERR", "nothing 1s",
		"counter completed_requests=3 completed_receives=1 retransmitted_packets=0");
}

static void violate(const char *name, const char *request)
{
	run(name, (const char *const[]){ "qp", "recv at=0x1000 len=64 wr=11", "post SEND len=8 wr=1", "> SEND_ONLY psn=100",
		"< WRITE_ONLY psn=500 len=8 va=@0x2000 data=1 ack=1", "> ACK psn=500 msn=1",
		request, "> NAK_ACC psn=501 msn=1",
		"wc wr=1 status=WR_FLUSH_ERR", "rwc wr=11 status=WR_FLUSH_ERR", "event QP_ACCESS_ERR", "state ERR", "mem at=0x3000 len=64 same",
		"< WRITE_ONLY psn=501 len=8 va=@0x2000 data=2 ack=1", "drop rx_qp_state_errors", "mem at=0x2000 len=8 is=1", "nothing 1s",
		"counter naks_sent=1 acks_sent=1 completed_receives=1", NULL });
}

/* known-bugs: 12 48 */
static void test_rkey_violation_of_the_peer(void **state)
{
	static const char *const requests[] = { "< WRITE_ONLY psn=501 len=64 va=@0x3000 rkey=0x777 ack=1", "< WRITE_FIRST psn=501 len=1024 dlen=0x100000 va=@0x3000", "< READ_REQUEST psn=501 dlen=64 rkey=local",
		"< FETCH_ADD psn=501 va=@0x3000 add=1 rkey=readonly", "< COMPARE_SWAP psn=501 va=@0x3000 rkey=foreign", "< ATOMIC_WRITE psn=501 len=8 va=@0x3000 rkey=0x777", "< FLUSH psn=501 dlen=8 rkey=0x777" };
	for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		violate(__func__, requests[i]);
}

/* known-bugs: 48 */
static void test_remote_operational_error(void **state)
{
	PLAY("qp",
		"post SEND len=8 wr=1 n=3", "> SEND_ONLY psn=100", "> SEND_ONLY psn=101", "> SEND_ONLY psn=102",
		"< NAK_OP psn=101 msn=1", "wc wr=1", "wc wr=2 status=REM_OP_ERR", "wc wr=3 status=WR_FLUSH_ERR",
		"state ERR", "nothing 1s", "counter completed_requests=3 retransmitted_packets=0");
}

static void test_operational_error_of_ours(void **state)
{
	PLAY("qp",
		"recv at=0x1000 len=64 wr=1", "recv at=0x2000 len=64 wr=2 lkey=readonly", "recv at=0x3000 len=64 wr=3",
		"< SEND_ONLY psn=500 len=8 ack=1 data=1", "<& SEND_ONLY psn=501 len=8 ack=1 data=2", "<& SEND_ONLY psn=502 len=8 ack=1 data=3",
		"> NAK_OP psn=501 msn=1",
		"rwc wr=1 len=8", "rwc wr=2 status=LOC_PROT_ERR", "rwc wr=3 status=WR_FLUSH_ERR", "event QP_FATAL", "state ERR",
		"mem at=0x1000 len=8 is=1", "mem at=0x2000 len=8 same", "mem at=0x3000 len=8 same", "nothing 1s",
		"counter naks_sent=1 acks_sent=0 completed_receives=3");
}

static void surprise(const char *name, const char *request, const char *answer)
{
	run(name, (const char *const[]){ "qp", "recv at=0x1000 len=4096 wr=11", "< WRITE_FIRST psn=500 len=1024 dlen=3072 va=@0x3000 data=1", request, answer,
		"rwc wr=11 status=WR_FLUSH_ERR", "event QP_REQ_ERR", "state ERR", "mem at=0x3400 len=2048 same", "nothing 1s", "counter naks_sent=1 completed_receives=1", NULL });
}

static void test_unexpected_opcode_of_the_peer(void **state)
{
	static const char *const requests[] = { "< SEND_ONLY psn=501 len=8 ack=1", "< SEND_MIDDLE psn=501 len=1024", "< SEND_LAST psn=501 len=8", "< WRITE_FIRST psn=501 len=1024 dlen=2048 va=@0x3000", "< WRITE_ONLY psn=501 len=8 va=@0x3400",
		"< READ_REQUEST psn=501 dlen=8", "< FETCH_ADD psn=501 add=1", "< COMPARE_SWAP psn=501", "< ATOMIC_WRITE psn=501 len=8 va=@0x3400", "< FLUSH psn=501 dlen=8" };
	for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		surprise(__func__, requests[i], "> NAK_INV psn=501 msn=0");
}

static void test_unexpected_opcode_of_ours(void **state)
{
	PLAY("qp",
		"post WRITE len=8 wr=1", "post FETCH_ADD len=8 at=0x1000 wr=2 add=1", "post SEND len=8 wr=3",
		"> WRITE_ONLY psn=100", "> FETCH_ADD psn=101", "> SEND_ONLY psn=102",
		"< NAK_INV psn=101 msn=1", "wc wr=1", "wc wr=2 status=REM_INV_REQ_ERR", "wc wr=3 status=WR_FLUSH_ERR",
		"mem at=0x1000 len=8 same", "state ERR", "nothing 1s", "counter completed_requests=3");
}

/* Of other services, and what only a requester may get: no answer, no change. */
static void test_opcode_of_another_service(void **state)
{
	PLAY("qp",
		"recv at=0x1000 len=64 wr=1",
		"< UD_SEND_ONLY psn=500 len=8", "drop rx_qp_service_errors",
		"< UC_WRITE_ONLY psn=500 len=8 va=@0x2000", "drop rx_qp_service_errors",
		"< XSEND_ONLY psn=500 len=8", "drop rx_qp_service_errors",
		"< CNP psn=0", "drop rp_cnp_ignored",
		"nothing", "mem at=0x2000 len=8 same",
		"< SEND_ONLY psn=500 len=8 ack=1", "> ACK psn=500 msn=1", "rwc wr=1", "state RTS",
		"counter dropped_packets=4 naks_sent=0");
}

/* ---- partial retries ---- */

/* known-bugs: 3 */
static void test_partial_retry_of_a_write(void **state)
{
	PLAY("qp mtu=1024 timeout=10",
		"post WRITE len=5000 at=0x1000 wr=1 va=0x70000",
		"> WRITE_FIRST psn=100 va=0x70000 dlen=5000", "> WRITE_MIDDLE psn=101", "> WRITE_MIDDLE psn=102", "> WRITE_MIDDLE psn=103", "> WRITE_LAST psn=104 len=904 ack=1",
		"+10us < NAK_SEQ psn=102 msn=0", /* 100 and 101 are there */
		"> WRITE_MIDDLE psn=102 from=0x1800", "> WRITE_MIDDLE psn=103 from=0x1c00", "> WRITE_LAST psn=104 from=0x2000 ack=1", "nothing",
		"< ACK psn=103 msn=0", "nowc", /* all but the LAST */
		"+4194304ns..9ms > WRITE_LAST psn=104 from=0x2000 len=904 ack=1",
		"< ACK psn=104 msn=1", "wc wr=1 op=WRITE", "state RTS",
		"counter packet_seq_err=1 local_ack_timeout_err=1 retransmitted_packets=4 tx_packets=9");
}

/* known-bugs: L1 */
static void test_partial_retry_of_a_read(void **state)
{
	PLAY("qp mtu=1024 timeout=10",
		"post READ len=5000 at=0x1000 wr=1 va=0x70000 rkey=7",
		"> READ_REQUEST psn=100 va=0x70000 dlen=5000",
		"+10us < READ_RESPONSE_FIRST psn=100 len=1024 msn=1 data=1", "< READ_RESPONSE_MIDDLE psn=101 len=1024 data=2",
		"< READ_RESPONSE_MIDDLE psn=103 len=1024 data=9", "drop response_out_of_sequence",
		"> READ_REQUEST psn=102 va=0x70800 dlen=2952 rkey=7",
		"< READ_RESPONSE_FIRST psn=102 len=1024 msn=1 data=3",
		"+4194304ns..9ms > READ_REQUEST psn=103 va=0x70c00 dlen=1928", /* and then nothing more came */
		"< READ_RESPONSE_MIDDLE psn=103 len=1024 data=4", /* no FIRST: so does rxe */
		"< READ_RESPONSE_LAST psn=104 len=904 msn=1 data=5",
		"wc wr=1 op=READ len=5000",
		"mem at=0x1000 len=1024 is=1", "mem at=0x1400 len=1024 is=2", "mem at=0x1800 len=1024 is=3", "mem at=0x1c00 len=1024 is=4", "mem at=0x2000 len=904 is=5", "mem at=0x2388 len=64 same",
		"state RTS", "counter implied_nak_seq_err=1 local_ack_timeout_err=1 retransmitted_packets=2");
}

static void test_partial_retry_of_the_peers_read(void **state)
{
	PLAY("qp",
		"< READ_REQUEST psn=500 va=@0x1000 dlen=5000",
		"> READ_RESPONSE_FIRST psn=500 msn=1 from=0x1000", "> READ_RESPONSE_MIDDLE psn=501 from=0x1400", "> READ_RESPONSE_MIDDLE psn=502", "> READ_RESPONSE_MIDDLE psn=503", "> READ_RESPONSE_LAST psn=504 len=904 msn=1",
		"< READ_REQUEST psn=502 va=@0x1800 dlen=2952", "drop duplicate_request",
		"> READ_RESPONSE_FIRST psn=502 msn=1 from=0x1800", "> READ_RESPONSE_MIDDLE psn=503 from=0x1c00", "> READ_RESPONSE_LAST psn=504 len=904 msn=1 from=0x2000", "nothing",
		"< READ_REQUEST psn=502 va=@0x1800 dlen=8", "drop duplicate_unknown", "nothing", /* not to its end */
		"< WRITE_ONLY psn=505 len=8 va=@0x4000 ack=1", "> ACK psn=505 msn=2", "state RTS",
		"counter duplicate_request=2 naks_sent=0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_operation_as_requester),
		cmocka_unit_test(test_every_operation_as_responder),
		cmocka_unit_test(test_ghost_ack),
		cmocka_unit_test(test_wrong_response_to_a_read),
		cmocka_unit_test(test_wrong_response_to_an_atomic),
		cmocka_unit_test(test_wrong_response_to_a_write),
		cmocka_unit_test(test_implied_nak),
		cmocka_unit_test(test_implied_nak_limit_exceeded),
		cmocka_unit_test(test_ack_timeout_of_a_request),
		cmocka_unit_test(test_ack_timeout_limit_exceeded),
		cmocka_unit_test(test_ack_timeout_of_the_peer),
		cmocka_unit_test(test_psn_error_of_the_requester),
		cmocka_unit_test(test_psn_error_limit_exceeded),
		cmocka_unit_test(test_psn_error_seen_by_the_responder),
		cmocka_unit_test(test_rnr_of_the_peer),
		cmocka_unit_test(test_rnr_limit_exceeded),
		cmocka_unit_test(test_rnr_of_ours),
		cmocka_unit_test(test_rkey_violation_of_ours),
		cmocka_unit_test(test_rkey_violation_of_the_peer),
		cmocka_unit_test(test_remote_operational_error),
		cmocka_unit_test(test_operational_error_of_ours),
		cmocka_unit_test(test_unexpected_opcode_of_the_peer),
		cmocka_unit_test(test_unexpected_opcode_of_ours),
		cmocka_unit_test(test_opcode_of_another_service),
		cmocka_unit_test(test_partial_retry_of_a_write),
		cmocka_unit_test(test_partial_retry_of_a_read),
		cmocka_unit_test(test_partial_retry_of_the_peers_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

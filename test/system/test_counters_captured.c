/* SPDX-License-Identifier: BSD-3-Clause */
/* In every loss test the counters equal what a capture taken at the same port shows. Two engines on one thread over a link that loses, repeats, reorders, marks and corrupts; then each file is read frame by frame, and what a QP of
 * that port must have counted is found from PSNs, opcodes, ECN bits and ICRCs alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "counters.h"
#include "engine_change.h"
#include "packet.h"
#include "pcap_file.h"
#include "report.h"
#include "side.h"

#define SIDE0 "inline:net_ring,link=t,side=0,ip=10.1.0.1/24"
#define SIDE1 "inline:net_ring,link=t,side=1,ip=10.1.0.2/24"
#define MTU 1024u
#define DEPTH 16u

/* ---- what a file shows ---- */

struct seen {
	/* names are those of the counters */
	uint64_t retransmitted_packets, packet_seq_err, rnr_nak_retry_err, out_of_sequence, duplicate_request, rnr_nak_sent, np_ecn_marked_roce_packets, rx_icrc_errors;
	uint64_t reads_again; /* READ requests sent again: by implied NAKs and timeouts */
	uint64_t frames;
};

struct model {
	struct seen seen;
	uint32_t qpn;                    /* ours */
	struct psn first, expected;      /* of the peer's requests */
	struct psn frontier;             /* beyond what we have sent */
};

static bool is_tx(const struct pcap_frame *f)
{
	CHECK(f->comment && f->comment_len >= 2);
	return !memcmp(f->comment, "tx", 2);
}

static bool was_dropped_for(const struct pcap_frame *f, const char *reason)
{
	char comment[256];
	CHECK(f->comment_len < sizeof(comment));
	memcpy(comment, f->comment, f->comment_len);
	comment[f->comment_len] = 0;
	return strstr(comment, reason) != NULL;
}

static uint32_t psns_of(const struct packet *p)
{
	return p->op->message == MESSAGE_READ_REQUEST && p->reth.len > MTU ? (p->reth.len + MTU - 1) / MTU : 1;
}

static void take_sent(struct model *m, const struct packet *p)
{
	if (p->op->flags & OPCODE_REQUEST) {
		struct psn end = psn_add(p->psn, psns_of(p));
		if (psn_distance(p->psn, m->frontier) < 0) {
			m->seen.retransmitted_packets++;
			m->seen.reads_again += p->op->message == MESSAGE_READ_REQUEST;
		}
		if (psn_distance(end, m->frontier) > 0)
			m->frontier = end;
	} else if (p->op->message == MESSAGE_ACKNOWLEDGE) {
		m->seen.rnr_nak_sent += p->aeth.syndrome >> 5 == 1;
	}
}

/* A NAK that came while its gap was being repaired is in the file as dropped and is none of news; RNR cannot be seen from the packet that meets it. */
static void take_received(struct model *m, const struct packet *p, const struct pcap_frame *f)
{
	m->seen.np_ecn_marked_roce_packets += (p->tos & 3) == 3;
	if (p->op->flags & OPCODE_REQUEST) {
		int32_t ahead = psn_distance(p->psn, m->expected);
		bool is_rnr = was_dropped_for(f, "out_of_buffer");
		m->seen.duplicate_request += ahead < 0;
		m->seen.out_of_sequence += ahead > 0 && !is_rnr;
		if (!ahead && !is_rnr)
			m->expected = psn_add(m->expected, psns_of(p));
	} else if (p->op->message == MESSAGE_ACKNOWLEDGE && !was_dropped_for(f, "dropped")) {
		m->seen.packet_seq_err += p->aeth.syndrome == 0x60;
		m->seen.rnr_nak_retry_err += p->aeth.syndrome >> 5 == 1;
	}
}

static void take_frame(struct model *m, const struct pcap_frame *f)
{
	struct packet p;
	if (packet_parse(&p, f->bytes, f->len, VLAN_NONE, NULL) != DROP_NONE || p.kind != PACKET_ROCE)
		return;
	m->seen.frames++;
	if (is_tx(f))
		take_sent(m, &p);
	else if (!packet_is_icrc_ok(&p))
		m->seen.rx_icrc_errors++;
	else if (p.dqpn == m->qpn)
		take_received(m, &p, f);
}

static struct seen read_capture(const char *path, const struct side *us, const struct side *peer)
{
	struct model m = { .qpn = uroce_qp_num(us->qp), .expected = psn_make(peer->endpoint.psn), .frontier = psn_make(us->endpoint.psn) };
	struct pcap_file file;
	struct pcap_frame frame;
	CHECK(!pcap_file_open(&file, path));
	while (pcap_file_next(&file, &frame))
		take_frame(&m, &frame);
	CHECK(pcap_file_is_at_end(&file));
	pcap_file_close(&file);
	return m.seen;
}

/* ---- what is counted ---- */

static json_t *only_row(struct engine *e, enum report_noun noun)
{
	json_t *rows = report(e, noun), *row = json_incref(json_array_get(rows, 0));
	CHECK(json_array_size(rows) == 1);
	json_decref(rows);
	return row;
}

static uint64_t number(json_t *row, const char *key)
{
	CHECK(json_is_integer(json_object_get(row, key)));
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

static void is_equal(const char *name, const char *where, uint64_t counted, uint64_t captured)
{
	if (counted != captured)
		printf("%s of the %s: %llu counted, the capture shows %llu\n", name, where, (unsigned long long)counted, (unsigned long long)captured);
	CHECK(counted == captured);
}

/* Port, client and QP agree with the file, and with each other. */
static void compare(const struct side *s, const struct seen *seen)
{
	const struct {
		const char *name;
		uint64_t captured;
	} rows[] = {
		{ "retransmitted_packets", seen->retransmitted_packets }, { "packet_seq_err", seen->packet_seq_err }, { "rnr_nak_retry_err", seen->rnr_nak_retry_err }, { "out_of_sequence", seen->out_of_sequence },
		{ "duplicate_request", seen->duplicate_request }, { "rnr_nak_sent", seen->rnr_nak_sent }, { "np_ecn_marked_roce_packets", seen->np_ecn_marked_roce_packets },
	};
	json_t *port = only_row(s->engine, REPORT_PORT), *client = only_row(s->engine, REPORT_CLIENT), *qp = only_row(s->engine, REPORT_QP);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		is_equal(rows[i].name, "QP", number(qp, rows[i].name), rows[i].captured);
		is_equal(rows[i].name, "client", number(client, rows[i].name), rows[i].captured);
		is_equal(rows[i].name, "port", number(port, rows[i].name), rows[i].captured);
	}
	is_equal("rx_icrc_errors", "port", number(port, "rx_icrc_errors"), seen->rx_icrc_errors);
	/* a READ is asked for again when a response is seen to be lost, or nothing comes */
	if (seen->reads_again)
		is_equal("implied_nak_seq_err and local_ack_timeout_err", "QP", number(qp, "implied_nak_seq_err") + number(qp, "local_ack_timeout_err"), seen->reads_again);
	json_decref(port);
	json_decref(client);
	json_decref(qp);
}

/* ---- traffic ---- */

struct run {
	const char *fault[2]; /* of what each side receives */
	enum uroce_opcode opcode;
	uint32_t messages, len, depth;
	bool is_late;         /* receives are posted when an RNR NAK has been met */
	uint64_t (*met)(const struct seen *near, const struct seen *far); /* what must not be 0, or the run shows nothing */
};

static void post(struct side *s, enum uroce_opcode opcode, uint64_t id, uint32_t len, const struct side_card *to)
{
	struct uroce_sge sge = { (uintptr_t)s->buffer + (id % DEPTH) * len, len, uroce_mr_lkey(s->mr) };
	struct uroce_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .flags = UROCE_SEND_SIGNALED, .remote_addr = to->addr, .rkey = to->rkey };
	CHECK(uroce_post_send(s->qp, &wr, 1) == 1);
}

static uint64_t count_rnr(const struct side *s)
{
	uint64_t counter[QP_COUNTER_COUNT];
	CHECK(uroce_qp_counters(s->qp, counter, QP_COUNTER_COUNT) == QP_COUNTER_COUNT);
	return counter[QP_RNR_NAK_RETRY_ERR];
}

static void receive(const struct run *r, struct side *a, struct side *b, uint64_t id)
{
	uint64_t before = count_rnr(a);
	for (unsigned i = 0; r->is_late && i < 100000 && count_rnr(a) == before; i++)
		side_poll(a, b);
	side_post_recv(b, id, 0, r->len);
}

static void run_traffic(const struct run *r, struct side *a, struct side *b)
{
	struct side_card to = side_card(b);
	for (uint64_t i = 0; i < r->messages + r->depth; i++) {
		if (i >= r->depth)
			side_wait(a, b, i - r->depth);
		if (i >= r->messages)
			continue;
		post(a, r->opcode, i, r->len, &to);
		if (r->opcode == UROCE_OP_SEND)
			receive(r, a, b, i);
	}
	for (uint64_t i = 0; r->opcode == UROCE_OP_SEND && i < r->messages; i++)
		side_wait(b, a, i);
}

/* Until what was sent and is still under way has come, or will not. */
static void settle(struct side *a, struct side *b)
{
	for (unsigned i = 0; i < 20000; i++)
		side_poll(a, b);
}

static void run_and_compare(void *arg)
{
	const struct run *r = arg;
	struct side side[2];
	struct seen seen[2];
	char device[2][300], path[2][64];
	uint64_t frames[2];
	for (unsigned i = 0; i < 2; i++) {
		snprintf(device[i], sizeof(device[i]), "%s%s%s", i ? SIDE1 : SIDE0, r->fault[i] ? ",fault=" : "", r->fault[i] ? r->fault[i] : "");
		side_open(&side[i], device[i]);
		snprintf(path[i], sizeof(path[i]), "/tmp/uroce-counters-%d-%u.pcapng", (int)getpid(), i);
		CHECK(!engine_capture_start(side[i].engine, path[i], 0));
	}
	for (unsigned i = 0; i < 2; i++) {
		struct side_card peer = side_card(&side[!i]);
		side_connect(&side[i], &peer, MTU);
	}
	run_traffic(r, &side[0], &side[1]);
	settle(&side[0], &side[1]);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(!engine_capture_stop(side[i].engine, &frames[i]) && frames[i] > 0);
		seen[i] = read_capture(path[i], &side[i], &side[!i]);
		CHECK(!unlink(path[i]));
		compare(&side[i], &seen[i]);
	}
	CHECK(r->met(&seen[0], &seen[1]));
	side_close(&side[1]);
	side_close(&side[0]);
}

/* ---- runs ---- */

static uint64_t met_loss(const struct seen *near, const struct seen *far)
{
	return near->retransmitted_packets && near->packet_seq_err && far->out_of_sequence;
}

static uint64_t met_repeats(const struct seen *near, const struct seen *far)
{
	return far->duplicate_request;
}

static uint64_t met_order(const struct seen *near, const struct seen *far)
{
	return far->out_of_sequence;
}

static uint64_t met_marks(const struct seen *near, const struct seen *far)
{
	return near->np_ecn_marked_roce_packets && far->np_ecn_marked_roce_packets;
}

static uint64_t met_corruption(const struct seen *near, const struct seen *far)
{
	return near->rx_icrc_errors && far->rx_icrc_errors && near->retransmitted_packets;
}

static uint64_t met_rnr(const struct seen *near, const struct seen *far)
{
	return near->rnr_nak_retry_err >= 20 && far->rnr_nak_sent >= 20;
}

static uint64_t met_reads_again(const struct seen *near, const struct seen *far)
{
	return near->reads_again >= 5 && far->duplicate_request;
}

static uint64_t met_timeouts(const struct seen *near, const struct seen *far)
{
	return near->reads_again && !far->duplicate_request;
}

static uint64_t met_everything(const struct seen *near, const struct seen *far)
{
	return met_loss(near, far) && met_repeats(near, far) && met_marks(near, far) && near->rx_icrc_errors && far->rx_icrc_errors;
}

static void check(struct run r)
{
	assert_int_equal(side_child(run_and_compare, &r), 0);
}

static void test_drop(void **state)
{
	check((struct run){ { NULL, "drop:2%/seed:3" }, UROCE_OP_WRITE, 300, 8000, DEPTH, .met = met_loss });
}

static void test_dup(void **state)
{
	check((struct run){ { NULL, "dup:5%/seed:4" }, UROCE_OP_WRITE, 300, 8000, DEPTH, .met = met_repeats });
}

static void test_reorder(void **state)
{
	check((struct run){ { NULL, "reorder:2%/seed:5" }, UROCE_OP_WRITE, 300, 8000, DEPTH, .met = met_order });
}

static void test_marked(void **state)
{
	check((struct run){ { "ce:20%/seed:6", "ce:10%/seed:7" }, UROCE_OP_WRITE, 300, 8000, DEPTH, .met = met_marks });
}

static void test_corrupt(void **state)
{
	check((struct run){ { "corrupt:20%/seed:8", "corrupt:1%/seed:9" }, UROCE_OP_WRITE, 300, 8000, DEPTH, .met = met_corruption });
}

static void test_rnr(void **state)
{
	check((struct run){ { NULL, NULL }, UROCE_OP_SEND, 20, 3000, 1, .is_late = true, .met = met_rnr });
}

static void test_lost_responses(void **state)
{
	check((struct run){ { "rule:drop@5+40:RC_RDMA_READ_RESPONSE_MIDDLE", NULL }, UROCE_OP_READ, 100, 8000, 1, .met = met_reads_again });
}

static void test_lost_requests_of_reads(void **state)
{
	check((struct run){ { NULL, "rule:drop@3+50:RC_RDMA_READ_REQUEST" }, UROCE_OP_READ, 60, 8000, 1, .met = met_timeouts });
}

static void test_everything(void **state)
{
	static const char fault[] = "drop:1%/dup:1%/reorder:1%/corrupt:1%/ce:5%/seed:11";
	check((struct run){ { fault, fault }, UROCE_OP_WRITE, 300, 8000, DEPTH, .met = met_everything });
	check((struct run){ { fault, fault }, UROCE_OP_SEND, 300, 5000, 4, .met = met_everything });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drop), cmocka_unit_test(test_dup), cmocka_unit_test(test_reorder), cmocka_unit_test(test_marked), cmocka_unit_test(test_corrupt), cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_lost_responses), cmocka_unit_test(test_lost_requests_of_reads), cmocka_unit_test(test_everything),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

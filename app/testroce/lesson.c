/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the order of the steps and their words. A step does one thing, by one actor, on the stage; what is printed after it is what was found there (stage.c, lesson_show.c). */
#include "lesson.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gid.h"
#include "lesson_show.h"
#include "lesson_socket.h"
#include "stage.h"

#define MESSAGE "hello, RDMA"
#define BYTES (sizeof(MESSAGE) - 1) /* the memory that it comes to is zeroed */
#define FROM 0u   /* offsets in the players' memory */
#define INTO 256u

struct step {
	const char *title, *actor, *words;
	/* Whether it went as it should. */
	bool (*play)(struct stage *s);
	void (*show)(const struct stage *s); /* NULL: no more */
};

static struct player *side_a(struct stage *s)
{
	return &s->player[SIDE_A];
}

static struct player *side_b(struct stage *s)
{
	return &s->player[SIDE_B];
}

/* ---- what the programs do ---- */

static bool make_objects(struct stage *s)
{
	stage_begin(s);
	return !stage_make_objects(s);
}

static bool connect_both(struct stage *s)
{
	stage_begin(s);
	return !stage_connect(s);
}

static bool post_receive(struct stage *s)
{
	struct player *b = side_b(s);
	struct uroce_sge into = { (uintptr_t)b->memory + INTO, 64, uroce_mr_lkey(b->mr) };
	struct uroce_recv_wr wr = { .wr_id = 7, .sg_list = &into, .num_sge = 1 };
	stage_begin(s);
	return uroce_post_recv(b->qp, &wr, 1) == 1 && ++b->received;
}

static bool post(struct stage *s, enum uroce_opcode opcode, uint64_t wr_id, uint32_t offset)
{
	struct player *a = side_a(s), *b = side_b(s);
	struct uroce_sge sge = { (uintptr_t)a->memory + offset, BYTES, uroce_mr_lkey(a->mr) };
	struct uroce_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .flags = UROCE_SEND_SIGNALED };
	if (opcode != UROCE_OP_SEND) {
		wr.remote_addr = (uintptr_t)b->memory + INTO;
		wr.rkey = uroce_mr_rkey(b->mr);
	}
	stage_begin(s);
	return uroce_post_send(a->qp, &wr, 1) == 1 && ++a->sent;
}

static bool post_send(struct stage *s)
{
	strcpy((char *)side_a(s)->memory + FROM, MESSAGE);
	return post(s, UROCE_OP_SEND, 8, FROM);
}

static bool post_write(struct stage *s)
{
	strcpy((char *)side_a(s)->memory + FROM, "HELLO, rdma");
	return post(s, UROCE_OP_WRITE, 9, FROM);
}

static bool post_read(struct stage *s)
{
	return post(s, UROCE_OP_READ, 10, INTO);
}

/* ---- what the engines do ---- */

static bool run_a(struct stage *s)
{
	stage_begin(s);
	return stage_run_until_frame(s, SIDE_A, false);
}

static bool run_b_until_cqe(struct stage *s)
{
	stage_begin(s);
	return stage_run_until_cqe(s, SIDE_B);
}

static bool run_b_until_ack(struct stage *s)
{
	stage_begin(s);
	return stage_run_until_frame(s, SIDE_B, true);
}

static bool run_b_until_answer(struct stage *s)
{
	stage_begin(s);
	return stage_run_until_frame(s, SIDE_B, false);
}

static bool run_a_until_cqe(struct stage *s)
{
	stage_begin(s);
	return stage_run_until_cqe(s, SIDE_A);
}

static struct uroce_wc polled[SIDES];

static bool poll_a(struct stage *s)
{
	stage_begin(s);
	return uroce_cq_poll(side_a(s)->cq, &polled[SIDE_A], 1) == 1 && polled[SIDE_A].status == UROCE_WC_SUCCESS;
}

static bool poll_both(struct stage *s)
{
	stage_begin(s);
	bool is_there = uroce_cq_poll(side_b(s)->cq, &polled[SIDE_B], 1) == 1;
	return is_there && uroce_cq_poll(side_a(s)->cq, &polled[SIDE_A], 1) == 1;
}

/* ---- what is shown after a step, beside memory, packets and the kernel ---- */

static void show_objects(const struct stage *s)
{
	for (int i = 0; i < SIDES; i++) {
		const struct player *p = &s->player[i];
		printf("  %c has    QP 0x%x with an SQ and an RQ, a CQ, and %u bytes of memory at 0x%" PRIxPTR ": lkey 0x%x, rkey 0x%x\n", 'A' + i, uroce_qp_num(p->qp), STAGE_BYTES, (uintptr_t)p->memory, uroce_mr_lkey(p->mr),
			uroce_mr_rkey(p->mr));
	}
}

static void show_addresses(const struct stage *s)
{
	for (int i = 0; i < SIDES; i++) {
		const struct uroce_endpoint *e = &s->player[i].endpoint;
		struct gid gid;
		char text[GID_TEXT_MAX];
		memcpy(gid.b, e->gid.raw, sizeof(gid.b));
		printf("  %c says   \"GID %s, QPN 0x%x, my first PSN is 0x%06x, path MTU %u\"\n", 'A' + i, gid_format(&gid, text), e->qpn, e->psn, e->mtu);
	}
}

static void show_receive(const struct stage *s)
{
	show_recv_wqe(&s->player[SIDE_B]);
}

static void show_send(const struct stage *s)
{
	show_send_wqe(&s->player[SIDE_A]);
}

static void show_data(const struct stage *s)
{
	printf("  data     B's memory at offset %u: \"%s\"\n", INTO, (const char *)s->player[SIDE_B].memory + INTO);
}

static void show_answer(const struct stage *s)
{
	printf("  data     A's memory at offset %u: \"%s\"\n", INTO, (const char *)s->player[SIDE_A].memory + INTO);
	show_cqe(&s->player[SIDE_A]);
}

static void show_a_cqe(const struct stage *s)
{
	show_cqe(&s->player[SIDE_A]);
}

static void show_b_cqe(const struct stage *s)
{
	show_cqe(&s->player[SIDE_B]);
}

static void show_a_wc(const struct stage *s)
{
	show_wc(&polled[SIDE_A]);
}

static void show_both_wcs(const struct stage *s)
{
	show_wc(&polled[SIDE_B]);
	show_wc(&polled[SIDE_A]);
}

/* ---- the parts ---- */

static const struct step send_steps[] = {
	{ "1. Both programs create QPs and CQs and register memory", "the programs", "A queue pair (QP) is a send queue (SQ) and a receive queue (RQ): rings in memory that program and engine share. A completion queue (CQ) is a ring that goes the other way. Registered memory has two keys: the lkey for the program's own requests, the rkey for a peer. This is the control path: it may take system calls, and is done once, before any data moves.", make_objects, show_objects },
	{ "2. They tell each other their addresses, and connect", "programs and engines", "How is their own business: here they are one process; else a socket would do. The QPs go from RESET through INIT and RTR (ready to receive) to RTS (ready to send). An empty message goes first, so that what is asked for or allocated at first use is there.", connect_both, show_addresses },
	{ "3. B's program posts a receive WR", "program B", "The work request (WR) becomes an element (WQE) of B's RQ: where a message may land. It has to be there before the message comes; else B's engine would say \"not ready\", and A's would try again later.", post_receive, show_receive },
	{ "4. A's program posts a send WR", "program A", "It becomes a WQE in A's SQ that names the buffer by address, length and lkey. The message is not copied, and nobody is called: the engine finds the WQE when it looks at the queue's tail.", post_send, show_send },
	{ "5. A's engine takes the WQE, reads the memory it names, and sends a packet", "engine A", "It copies the WQE once, checks it, and reads A's buffer while it builds the packet: the only copy on this side.", run_a, NULL },
	{ "6. B's engine takes the WQE of the RQ, and places the data", "engine B", "It checks the packet (ICRC, QP, PSN), and copies the payload to where B's receive said: the only copy on this side.", run_b_until_cqe, show_data },
	{ "7. B's engine writes a CQE into B's CQ, and acknowledges", "engine B", "The completion queue element (CQE) was written in the same round as the data, after it; its phase says that it is new. The ACK leaves one round later, so that it can cover more.", run_b_until_ack, show_b_cqe },
	{ "8. The ACK comes back, and A's engine writes a CQE", "engine A", "The WQE is retired: its slot of the SQ, and A's buffer, are the program's again.", run_a_until_cqe, show_a_cqe },
	{ "9. Both programs poll their CQs", "the programs", "A CQE becomes a work completion (WC): which WR, and how it ended. Polling reads memory, and calls nobody.", poll_both, show_both_wcs },
};

static const struct step write_steps[] = {
	{ "WRITE 1. A's program posts a WRITE", "program A", "The WQE also says where the bytes go: an address of B's and the rkey that B gave away.", post_write, show_send },
	{ "WRITE 2. A's engine sends the packet", "engine A", "Address, rkey and length are in a header of it (RETH).", run_a, NULL },
	{ "WRITE 3. B's engine places the data, and acknowledges", "engine B", "No receive is taken and no CQE written: B's program takes no part, and does not notice.", run_b_until_ack, show_data },
	{ "WRITE 4. The ACK comes back, and A's engine writes a CQE", "engine A", "Only A learns that it is done.", run_a_until_cqe, show_a_cqe },
	{ "WRITE 5. A's program polls its CQ", "program A", "", poll_a, show_a_wc },
};

static const struct step read_steps[] = {
	{ "READ 1. A's program posts a READ", "program A", "The SGE says where the answer is to go; address and rkey say what is asked for.", post_read, show_send },
	{ "READ 2. A's engine sends the request", "engine A", "It has no payload.", run_a, NULL },
	{ "READ 3. B's engine answers", "engine B", "It reads B's memory; B's program takes no part.", run_b_until_answer, NULL },
	{ "READ 4. A's engine places the answer, and writes a CQE", "engine A", "The answer is the acknowledgement.", run_a_until_cqe, show_answer },
	{ "READ 5. A's program polls its CQ", "program A", "", poll_a, show_a_wc },
};

static bool wait_for_reader(bool is_stepwise)
{
	char c;
	if (!is_stepwise || !isatty(STDIN_FILENO))
		return true;
	printf("  -- Enter for the next step, q to end --\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) == 1 && c != 'q' && c != 3 && c != 4)
		if (c == '\n' || c == '\r')
			return true;
	return false;
}

/* What the data path's steps asked of the kernel, beside what a socket does. */
struct account {
	unsigned steps;
	uint64_t calls, socket_calls;
};

static int play(struct stage *s, const struct step *steps, unsigned n, unsigned control, bool is_stepwise, bool *goes_on, struct account *a)
{
	for (unsigned i = 0; i < n && *goes_on; i++) {
		printf("\n%s\n", steps[i].title);
		if (steps[i].words[0])
			printf("  %s\n", steps[i].words);
		fflush(stdout);
		if (!steps[i].play(s)) {
			fprintf(stderr, "this step did not come to its end: expected it to, whatever the machine does; please report it\n");
			return -EIO;
		}
		uint64_t calls = stage_end(s, steps[i].actor);
		a->steps += i >= control;
		a->calls += i >= control ? calls : 0;
		if (steps[i].show)
			steps[i].show(s);
		*goes_on = wait_for_reader(is_stepwise);
	}
	return 0;
}

static const struct {
	const struct step *steps;
	unsigned n, control; /* how many of them, at the beginning, are the control path */
} parts[] = {
	{ send_steps, sizeof(send_steps) / sizeof(send_steps[0]), 2 },
	{ write_steps, sizeof(write_steps) / sizeof(write_steps[0]), 0 },
	{ read_steps, sizeof(read_steps) / sizeof(read_steps[0]), 0 },
};

static void print_account(const struct account *a, bool is_counted)
{
	printf("\nBeside each other\n");
	if (is_counted)
		printf("  kernel   a SEND, a WRITE and a READ, the %u steps after the control path: %" PRIu64 " system calls; one message over a socket: %" PRIu64 "\n", a->steps, a->calls, a->socket_calls);
	printf("  copies   of each: one at the sender and one at the receiver. Here engines make them, a network adapter with RDMA makes none, and for a socket it is the kernel, in the programs' own time\n");
}

int lesson_run(bool is_stepwise)
{
	static struct stage s;
	struct account account = { .steps = 0 };
	bool goes_on = true;
	s = (struct stage){ .watches = 0 };
	printf("Two programs, A and B, each with an engine, joined by a link. A sends B a message; one step at a time, and after each what can be found in memory, on the link, and in the kernel's books.\n");
	int err = stage_open(&s);
	for (unsigned i = 0; !err && i < sizeof(parts) / sizeof(parts[0]); i++)
		err = play(&s, parts[i].steps, parts[i].n, parts[i].control, is_stepwise, &goes_on, &account);
	if (!err && goes_on) {
		printf("\nThe same %zu bytes over a TCP socket\n", BYTES);
		err = lesson_socket(s.tracer, MESSAGE, BYTES, &account.socket_calls);
	}
	if (!err && goes_on)
		print_account(&account, s.tracer != NULL);
	stage_close(&s);
	return err;
}

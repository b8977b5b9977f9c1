/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines over an in-process ring link: embedded and inline, shared by two contexts, without privileges, with and without huge pages. Each test is a process of its own (an EAL starts once). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "side.h"

#define SIDE0 "net_ring,link=t,side=0,ip=10.1.0.1/24"
#define SIDE1 "net_ring,link=t,side=1,ip=10.1.0.2/24"

static void connect_sides(struct side *a, struct side *b)
{
	struct side_card ca = side_card(a), cb = side_card(b);
	side_connect(a, &cb, 0);
	side_connect(b, &ca, 0);
}

static void send_one(struct side *a, struct side *b, uint32_t len, uint32_t seed)
{
	side_fill(a, 0, len, seed);
	memset(b->buffer, 0, len);
	side_post_recv(b, 7, 0, len);
	side_post_send(a, 8, 0, len);
	struct uroce_wc wc = side_wait(b, a, 7);
	CHECK(wc.byte_len == len);
	side_wait(a, b, 8);
	side_check(b, 0, len, seed);
}

struct pair {
	const char *device[2];
};

/* One SEND through every floor, both ways: a byte, one packet, many packets. */
static void exchange_sends(void *arg)
{
	static const uint32_t lens[] = { 1, 0, 4096, 4097, 100000 };
	const struct pair *p = arg;
	struct side a, b;
	side_open(&a, p->device[0]);
	side_open(&b, p->device[1]);
	connect_sides(&a, &b);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		send_one(&a, &b, lens[i], i + 1);
		send_one(&b, &a, lens[i], i + 100);
	}
	CHECK(!side_drops(&a, DROP_ICRC) && !side_drops(&b, DROP_ICRC));
	side_close(&a);
	side_close(&b);
}

static void test_embedded_send(void **state)
{
	struct pair p = { { "embedded:" SIDE0, "embedded:" SIDE1 } };
	assert_int_equal(side_child(exchange_sends, &p), 0);
}

static void test_inline_send(void **state)
{
	struct pair p = { { "inline:" SIDE0, "inline:" SIDE1 } };
	assert_int_equal(side_child(exchange_sends, &p), 0);
}

static void test_mixed_modes_and_order(void **state)
{
	struct pair p = { { "inline:" SIDE1, "embedded:" SIDE0 } };
	assert_int_equal(side_child(exchange_sends, &p), 0);
}

static void test_sleeping_engine_is_woken(void **state)
{
	struct pair p = { { "embedded:" SIDE0 ",idle=sleep:10000", "embedded:" SIDE1 ",idle=sleep" } };
	assert_int_equal(side_child(exchange_sends, &p), 0);
}

/* A ring of 8 slots under bursts of 32: what does not fit waits, in order; nothing is lost or changed, and nothing is sent twice. */
static void saturate(void *arg)
{
	struct side a, b;
	struct engine_stats stats;
	side_open(&a, "embedded:" SIDE0 ",ring=8,window=128");
	side_open(&b, "embedded:" SIDE1 ",ring=8");
	connect_sides(&a, &b);
	struct side_card cb = side_card(&b);
	for (uint32_t round = 0; round < 8; round++) {
		side_fill(&a, 0, 1 << 20, round);
		for (uint32_t i = 0; i < 64; i++)
			side_post_write(&a, i, i << 14, 1 << 14, &cb, i << 14);
		for (uint32_t i = 0; i < 64; i++)
			side_wait(&a, &b, i);
		side_check(&b, 0, 1 << 20, round);
	}
	engine_core_stats(a.core, &stats);
	CHECK(stats.tx_partial > 0);
	CHECK(!side_drops(&a, DROP_ICRC) && !side_drops(&b, DROP_ICRC));
	CHECK(!side_drops(&b, DROP_PSN_AHEAD));
	side_close(&a);
	side_close(&b);
}

/* known-bugs: 55 */
static void test_small_ring_saturated(void **state)
{
	assert_int_equal(side_child(saturate, NULL), 0);
}

static void share(void *arg)
{
	struct side a, b, c;
	struct uroce_context *none;
	struct engine *engine;
	side_open(&a, "embedded:" SIDE0);
	side_open(&b, "embedded:" SIDE1);
	side_open(&c, "embedded:" SIDE0);
	CHECK(c.engine == a.engine && b.engine != a.engine);
	CHECK(side_open_context("inline:" SIDE0, &none, &engine) == -EBUSY);
	CHECK(strstr(side_last_line(), "embedded"));
	connect_sides(&a, &b);
	send_one(&a, &b, 1000, 1);
	side_close(&a); /* the engine stays for c */
	struct side d;
	side_open(&d, "embedded:" SIDE1);
	CHECK(d.engine == b.engine);
	connect_sides(&c, &d);
	send_one(&c, &d, 5000, 2);
	side_close(&c);
	side_close(&d);
	side_close(&b);
	/* Everything is gone: the link can be made anew, with other settings. */
	side_open(&a, "inline:" SIDE0 ",ring=64");
	side_open(&b, "inline:" SIDE1);
	connect_sides(&a, &b);
	send_one(&a, &b, 3000, 3);
	side_close(&b);
	side_close(&a);
}

static void test_contexts_share_an_engine(void **state)
{
	assert_int_equal(side_child(share, NULL), 0);
}

static void refuse(void *arg)
{
	static const struct {
		const char *device;
		int err;
		const char *word;
	} rows[] = {
		{ "embedded:" SIDE0 ",frmsz=3", -EINVAL, "frmsz" },
		{ "embedded:" SIDE0 ",core=1023", -EINVAL, "core=1023" },
		{ "embedded:net_nonsense0,ip=10.1.0.1/24", -ENODEV, "net_nonsense0" },
		{ "embedded:port=9,ip=10.1.0.1/24", -ENODEV, "port=9" },
		{ "embedded:0000:ff:00.0,ip=10.1.0.1/24", -ENODEV, "PCI" },
		{ "embedded:" SIDE0 ",fault=nonsense", -EINVAL, "fault=nonsense" },
		{ "embedded:" SIDE0 ",capture=/nonexistent/x", -ENOENT, "capture" },
	};
	struct uroce_context *ctx;
	struct engine *engine;
	struct side a;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK(side_open_context(rows[i].device, &ctx, &engine) == rows[i].err);
		CHECK(strstr(side_last_line(), rows[i].word));
	}
	side_open(&a, "inline:" SIDE0);
	CHECK(side_open_context("inline:net_ring9,link=t,side=0,ip=10.1.0.9/24", &ctx, &engine) == -EBUSY);
	CHECK(strstr(side_last_line(), "side=1"));
	CHECK(side_open_context("inline:" SIDE1 ",ring=16", &ctx, &engine) == -EINVAL);
	CHECK(strstr(side_last_line(), "ring=1024"));
	side_close(&a);
}

static void test_refusals(void **state)
{
	assert_int_equal(side_child(refuse, NULL), 0);
}

/* The program's thread keeps its CPUs and its signal mask. */
static void look_at_caller(void *arg)
{
	cpu_set_t before, after;
	sigset_t signals;
	struct side a;
	CHECK(!sched_getaffinity(0, sizeof(before), &before));
	side_open(&a, "embedded:" SIDE0);
	CHECK(!sched_getaffinity(0, sizeof(after), &after));
	CHECK(CPU_EQUAL(&before, &after));
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &signals));
	CHECK(sigisemptyset(&signals));
	side_close(&a);
}

static void test_caller_is_left_alone(void **state)
{
	assert_int_equal(side_child(look_at_caller, NULL), 0);
}

/* Inline from two threads: one owner at a time, control calls get through. */
static void *poll_for_a_while(void *arg)
{
	struct side *s = arg;
	for (int i = 0; i < 20000; i++) {
		int n = uroce_engine_poll(s->ctx);
		CHECK(n >= 0 || n == -EBUSY);
		if (!(i % 64))
			sched_yield();
	}
	return NULL;
}

static void poll_from_two(void *arg)
{
	struct side a;
	pthread_t t[2];
	side_open(&a, "inline:" SIDE0);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&t[i], NULL, poll_for_a_while, &a));
	for (int i = 0; i < 50; i++) {
		struct uroce_pd *pd;
		CHECK(!uroce_pd_create(a.ctx, &pd));
		CHECK(!uroce_pd_destroy(pd));
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	side_close(&a);
	side_open(&a, "embedded:" SIDE0);
	CHECK(uroce_engine_poll(a.ctx) == -EOPNOTSUPP);
	side_close(&a);
}

static void test_inline_ownership(void **state)
{
	assert_int_equal(side_child(poll_from_two, NULL), 0);
}

/* Neither root nor a runtime directory. */
static void run_as_nobody(void *arg)
{
	struct pair p = { { "embedded:" SIDE0, "embedded:" SIDE1 } };
	if (!geteuid())
		CHECK(!setgroups(0, NULL) && !setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
	CHECK(!setenv("XDG_RUNTIME_DIR", "/nonexistent", 1));
	exchange_sends(&p);
}

static void test_unprivileged(void **state)
{
	assert_int_equal(side_child(run_as_nobody, NULL), 0);
}

/* Loss, duplicates, disorder and damage on both sides: everything arrives once and right. */
static void suffer(void *arg)
{
	struct side a, b;
	side_open(&a, "inline:" SIDE0 ",fault=drop:1%/dup:1%/reorder:1%:3/corrupt:1%/seed:5,window=64");
	side_open(&b, "inline:" SIDE1 ",fault=drop:1%/reorder:1%/delay:5us:5us/corrupt:1%/seed:6");
	connect_sides(&a, &b);
	struct side_card cb = side_card(&b);
	for (uint32_t round = 0; round < 4; round++) {
		side_fill(&a, 0, 1 << 20, round);
		for (uint32_t i = 0; i < 64; i++)
			side_post_write(&a, i, i << 14, 1 << 14, &cb, i << 14);
		for (uint32_t i = 0; i < 64; i++)
			side_wait(&a, &b, i);
		side_check(&b, 0, 1 << 20, round);
	}
	CHECK(side_drops(&b, DROP_ICRC) > 0 && side_drops(&b, DROP_PSN_AHEAD) > 0);
	CHECK(engine_core_fault(a.core) && engine_core_fault(b.core));
	side_close(&a);
	side_close(&b);
}

static void test_faults(void **state)
{
	assert_int_equal(side_child(suffer, NULL), 0);
}

static bool write_pages(long pages)
{
	char text[16];
	int fd = open("/proc/sys/vm/nr_hugepages", O_WRONLY);
	bool is_written = fd >= 0 && write(fd, text, (size_t)snprintf(text, sizeof(text), "%ld", pages)) > 0;
	if (fd >= 0)
		close(fd);
	return is_written;
}

static long read_pages(const char *name)
{
	char line[128], format[64];
	long pages = -1;
	FILE *f = fopen("/proc/meminfo", "r");
	snprintf(format, sizeof(format), "%s: %%ld", name);
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, format, &pages);
	if (f)
		fclose(f);
	return pages;
}

static void use_huge_pages(void *arg)
{
	struct pair p = { { "inline:" SIDE0, "inline:" SIDE1 } };
	struct side a;
	long before = read_pages("HugePages_Free");
	side_open(&a, "inline:" SIDE0);
	CHECK(read_pages("HugePages_Free") < before);
	side_close(&a);
	exchange_sends(&p);
}

static void test_huge_pages(void **state)
{
	long total = read_pages("HugePages_Total");
	if (total < 0 || (read_pages("HugePages_Free") < 64 && !write_pages(total + 64)) || read_pages("HugePages_Free") < 64) {
		write_pages(total);
		printf("no huge pages can be reserved here\n");
		skip();
	}
	int status = side_child(use_huge_pages, NULL);
	write_pages(total);
	assert_int_equal(status, 0);
	assert_int_equal(read_pages("HugePages_Total"), total);
}

/* Without huge pages: ordinary memory, and a line that says where to get them. */
static void use_ordinary_pages(void *arg)
{
	struct pair p = { { "inline:" SIDE0, "inline:" SIDE1 } };
	struct side a;
	side_open(&a, "inline:" SIDE0);
	CHECK(strstr(side_last_line(), "config/hugepages.sh 1024"));
	side_close(&a);
	exchange_sends(&p);
}

/* A pool that does not fit is refused, with the key that would help. */
static void use_little_memory(void *arg)
{
	struct uroce_context *ctx;
	struct engine *engine;
	CHECK(side_open_context("inline:" SIDE0 ",memory=32,ring=65536", &ctx, &engine) == -ENOMEM);
	CHECK(strstr(side_last_line(), "memory="));
}

static void test_no_huge_pages(void **state)
{
	if (read_pages("HugePages_Free") > 0) {
		printf("there are huge pages here\n");
		skip();
	}
	assert_int_equal(side_child(use_ordinary_pages, NULL), 0);
	assert_int_equal(side_child(use_little_memory, NULL), 0);
}

static void capture(void *arg)
{
	struct side a, b;
	struct stat st;
	side_open(&a, "inline:" SIDE0 ",capture=/tmp/uroce-test-capture.pcapng");
	side_open(&b, "inline:" SIDE1);
	connect_sides(&a, &b);
	send_one(&a, &b, 2000, 1);
	side_close(&a);
	side_close(&b);
	CHECK(!stat("/tmp/uroce-test-capture.pcapng", &st));
	unlink("/tmp/uroce-test-capture.pcapng");
	CHECK(st.st_size > 2000);
}

static void test_capture(void **state)
{
	assert_int_equal(side_child(capture, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_embedded_send),
		cmocka_unit_test(test_inline_send),
		cmocka_unit_test(test_mixed_modes_and_order),
		cmocka_unit_test(test_sleeping_engine_is_woken),
		cmocka_unit_test(test_small_ring_saturated),
		cmocka_unit_test(test_contexts_share_an_engine),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_caller_is_left_alone),
		cmocka_unit_test(test_inline_ownership),
		cmocka_unit_test(test_unprivileged),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_huge_pages),
		cmocka_unit_test(test_no_huge_pages),
		cmocka_unit_test(test_capture),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

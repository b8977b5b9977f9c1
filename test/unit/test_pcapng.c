/* SPDX-License-Identifier: BSD-3-Clause */
/* What pcapng.c writes, read back by the reader of these tests; test/system/test_scapy.py has other programs read it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "pcap_file.h"
#include "pcapng.h"

static char path[64];

static FILE *begin(const char *name)
{
	strcpy(path, "/tmp/test_pcapng.XXXXXX");
	FILE *file = fdopen(mkstemp(path), "wb");
	assert_non_null(file);
	assert_int_equal(pcapng_begin(file, name), 0);
	return file;
}

static void reopen(FILE *file, struct pcap_file *f)
{
	assert_int_equal(fclose(file), 0);
	assert_int_equal(pcap_file_open(f, path), 0);
	unlink(path);
}

static void test_no_packets(void **state)
{
	static const char *const names[] = { NULL, "", "a", "port0", "a name of some length" };
	for (size_t i = 0; i < 5; i++) {
		struct pcap_file f;
		struct pcap_frame r;
		reopen(begin(names[i]), &f);
		assert_true(f.is_ng && !f.is_swapped);
		assert_int_equal(f.len % 4, 0);
		assert_false(pcap_file_next(&f, &r));
		assert_true(pcap_file_is_at_end(&f));
		assert_int_equal(f.link_type, PCAP_ETHERNET);
		assert_int_equal(f.ns_per_unit, 1);
		pcap_file_close(&f);
	}
}

/* Every length of frame and comment modulo the word, and a time that needs both halves. */
static void test_packets(void **state)
{
	uint8_t bytes[80];
	char comment[20];
	struct pcap_file f;
	struct pcap_frame r;
	FILE *file = begin("port0");
	const uint64_t start = 1700000000123456789u;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i + 1);
	for (unsigned i = 0; i < 64; i++) {
		snprintf(comment, sizeof(comment), "%.*s", (int)(i % 9), "abcdefgh");
		assert_int_equal(pcapng_packet(file, start + i, bytes, i, i % 9 ? comment : NULL), 0);
	}
	reopen(file, &f);
	for (unsigned i = 0; i < 64; i++) {
		assert_true(pcap_file_next(&f, &r));
		assert_int_equal(r.len, i);
		assert_int_equal(r.wire_len, i);
		assert_true(r.time_ns == start + i);
		assert_memory_equal(r.bytes, bytes, i);
		assert_int_equal(r.comment_len, i % 9);
		if (i % 9)
			assert_memory_equal(r.comment, "abcdefgh", i % 9);
	}
	assert_false(pcap_file_next(&f, &r));
	assert_true(pcap_file_is_at_end(&f));
	pcap_file_close(&f);
}

static void test_comment_longer_than_an_option(void **state)
{
	char *comment = malloc(100001);
	struct pcap_file f;
	struct pcap_frame r;
	FILE *file = begin("port0");
	memset(comment, 'x', 100000);
	comment[100000] = 0;
	assert_int_equal(pcapng_packet(file, 1, (const uint8_t *)"abc", 3, comment), 0);
	assert_int_equal(pcapng_packet(file, 2, (const uint8_t *)"defg", 4, ""), 0);
	reopen(file, &f);
	assert_true(pcap_file_next(&f, &r));
	assert_in_range(r.comment_len, 65000, 65535);
	assert_true(pcap_file_next(&f, &r));
	assert_memory_equal(r.bytes, "defg", 4);
	assert_null(r.comment);
	assert_true(pcap_file_is_at_end(&f));
	pcap_file_close(&f);
	free(comment);
}

static void test_full_disk(void **state)
{
	static uint8_t frame[65536];
	FILE *file = fopen("/dev/full", "wb");
	int rc = 0;
	if (!file) {
		print_message("skipped: no /dev/full\n");
		skip();
	}
	pcapng_begin(file, "port0");
	for (int i = 0; i < 4 && !rc; i++)
		rc = pcapng_packet(file, 1, frame, sizeof(frame), NULL);
	assert_int_equal(rc, -EIO);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_packets),
		cmocka_unit_test(test_packets),
		cmocka_unit_test(test_comment_longer_than_an_option),
		cmocka_unit_test(test_full_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of a port: names are unique and those that users know, every drop reason that a RoCE packet can meet is among them, and each row reads its own number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "counter_table.h"

static unsigned find(const char *name)
{
	const char *n, *text;
	for (unsigned i = 0; counter_describe(i, &n, &text); i++)
		if (!strcmp(n, name))
			return i;
	fail_msg("there is no counter %s", name);
	return 0;
}

static void test_names(void **state)
{
	static const char *const known[] = { "out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "duplicate_request", "implied_nak_seq_err", "rx_icrc_errors", "out_of_buffer",
		"resp_local_length_error", "tx_packets", "rx_packets", "tx_bytes", "rx_bytes" };
	const char *name, *other, *text;
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		find(known[i]);
	for (unsigned i = 0; counter_describe(i, &name, &text); i++) {
		assert_true(strlen(text) > 10 && text[strlen(text) - 1] == '.');
		for (unsigned j = 0; j < i && counter_describe(j, &other, &text); j++)
			assert_string_not_equal(name, other);
	}
}

/* A look in which every number is another one: each row has its own, whatever the others are. */
static void test_values(void **state)
{
	struct engine_look look = { .core = { .tx_packets = 11, .rx_packets = 12, .cq_overruns = 13 } };
	for (unsigned i = 0; i < QP_COUNTER_COUNT; i++)
		look.qp[i] = 1000 + i;
	for (unsigned i = 0; i < DROP_COUNT; i++)
		look.drops.count[i] = 2000 + i;
	assert_int_equal(counter_value(find("tx_packets"), &look), 11);
	assert_int_equal(counter_value(find("rx_packets"), &look), 12);
	assert_int_equal(counter_value(find("cq_overruns"), &look), 13);
	assert_int_equal(counter_value(find("packet_seq_err"), &look), 1000 + QP_PACKET_SEQ_ERR);
	assert_int_equal(counter_value(find("out_of_sequence"), &look), 1000 + QP_OUT_OF_SEQUENCE);
	assert_int_equal(counter_value(find("rx_icrc_errors"), &look), 2000 + DROP_ICRC);
	assert_int_equal(counter_value(find("out_of_buffer"), &look), 2000 + DROP_RNR);
	assert_int_equal(counter_value(1000, &look), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names), cmocka_unit_test(test_values) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

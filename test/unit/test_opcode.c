/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "opcode.h"

/* Table 38 of the specification once more, written down apart: extension headers by letters, in the order of the wire: d
 * DETH, x XRCETH, F FETH, r RETH, a AETH, A AtomicETH, o AtomicAckETH, i immediate, v IETH, p payload; then f first, l last; then >
 * to the responder, < to the requester. */
static const char *const block[32] = {
	"pf>", "p>", "pl>", "ipl>", "pfl>", "ipfl>",                       /* SEND */
	"rpf>", "p>", "pl>", "ipl>", "rpfl>", "ripfl>",                    /* WRITE */
	"rfl>", "apf<", "p<", "apl<", "apfl<",                             /* READ */
	"afl<", "aofl<", "Afl>", "Afl>", NULL, "vpl>", "vpfl>",            /* ACK, atomics, (RESYNC), SEND with invalidate */
	NULL, NULL, NULL, NULL, "Frfl>", "rpfl>",                          /* FLUSH, ATOMIC WRITE */
};
static const uint8_t message_of[32] = {
	MESSAGE_SEND, MESSAGE_SEND, MESSAGE_SEND, MESSAGE_SEND, MESSAGE_SEND, MESSAGE_SEND,
	MESSAGE_WRITE, MESSAGE_WRITE, MESSAGE_WRITE, MESSAGE_WRITE, MESSAGE_WRITE, MESSAGE_WRITE, MESSAGE_READ_REQUEST,
	MESSAGE_READ_RESPONSE, MESSAGE_READ_RESPONSE, MESSAGE_READ_RESPONSE,
	MESSAGE_READ_RESPONSE, MESSAGE_ACKNOWLEDGE, MESSAGE_ATOMIC_ACKNOWLEDGE, MESSAGE_COMPARE_SWAP, MESSAGE_FETCH_ADD, 0, MESSAGE_SEND,
	MESSAGE_SEND, 0, 0, 0, 0, MESSAGE_FLUSH, MESSAGE_ATOMIC_WRITE,
};
static const struct letter {
	char c;
	uint16_t flag;
	uint8_t len;
} letters[] = {
	{ 'd', OPCODE_DETH, 8 }, { 'x', OPCODE_XRCETH, 4 }, { 'F', OPCODE_FETH, 4 }, { 'r', OPCODE_RETH, 16 }, { 'a', OPCODE_AETH, 4 }, { 'A', OPCODE_ATOMIC, 28 },
	{ 'o', OPCODE_ATOMIC_ACK, 8 }, { 'i', OPCODE_IMMEDIATE, 4 }, { 'v', OPCODE_INVALIDATE, 4 }, { 'p', OPCODE_PAYLOAD, 0 },
	{ 'f', OPCODE_FIRST, 0 }, { 'l', OPCODE_LAST, 0 }, { '>', OPCODE_REQUEST, 0 }, { '<', OPCODE_RESPONSE, 0 },
};

/* What the row of a byte must be: NULL for reserved. */
static const char *expect(unsigned byte, enum service *service, char text[16])
{
	unsigned low = byte & 31;
	const char *t = block[low];
	strcpy(text, "");
	switch (byte >> 5) {
	case 0:
		*service = SERVICE_RC;
		break;
	case 1:
		*service = SERVICE_UC;
		if (low > 0x0b)
			return NULL;
		break;
	case 3:
		*service = SERVICE_UD;
		if (low != 4 && low != 5)
			return NULL;
		strcpy(text, "d");
		break;
	case 4:
		*service = SERVICE_CNP;
		return low == 1 ? "fl" : NULL;
	case 5:
		*service = SERVICE_XRC;
		if (low > 0x17) /* with XRC */
			return NULL;
		if (t && strchr(t, '>'))
			strcpy(text, "x");
		break;
	default:
		return NULL;
	}
	return t ? strcat(text, t) : NULL;
}

static void test_every_byte(void **state)
{
	unsigned rows = 0;
	for (unsigned byte = 0; byte < 256; byte++) {
		const struct opcode *o = opcode_of((uint8_t)byte);
		enum service service = SERVICE_COUNT;
		char text[16];
		const char *want = expect(byte, &service, text);
		if (!want) {
			assert_null(o);
			continue;
		}
		assert_non_null(o);
		rows++;
		unsigned flags = 0, len = byte == 0x81 ? 12 + 16 : 12;
		for (const char *c = want; *c; c++)
			for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
				if (letters[i].c == *c) {
					flags |= letters[i].flag;
					len += letters[i].len;
				}
		assert_int_equal(o->byte, byte);
		assert_int_equal(o->service, service);
		assert_int_equal(o->flags, flags);
		assert_int_equal(o->header_len, len);
		assert_int_equal(o->message, byte == 0x81 ? MESSAGE_CNP : message_of[byte & 31]);
	}
	assert_int_equal(rows, 25 + 12 + 2 + 1 + 23);
}

/* The parts of a name say the same as the flags. */
static void test_names(void **state)
{
	static const char *const prefix[SERVICE_COUNT] = { "RC ", "UC ", "UD ", "XRC ", "CNP" };
	static const struct {
		const char *part;
		unsigned flag;
	} parts[] = { { " FIRST", OPCODE_FIRST }, { " LAST", OPCODE_LAST }, { " ONLY", OPCODE_FIRST | OPCODE_LAST },
		      { " IMMEDIATE", OPCODE_IMMEDIATE }, { " INVALIDATE", OPCODE_INVALIDATE } };
	for (unsigned byte = 0; byte < 256; byte++) {
		const struct opcode *o = opcode_of((uint8_t)byte);
		if (!o)
			continue;
		assert_int_equal(strncmp(o->name, prefix[o->service], strlen(prefix[o->service])), 0);
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			if (strstr(o->name, parts[i].part))
				assert_int_equal(o->flags & parts[i].flag, parts[i].flag);
		if (strstr(o->name, " MIDDLE"))
			assert_false(o->flags & (OPCODE_FIRST | OPCODE_LAST));
		for (unsigned other = byte + 1; other < 256; other++)
			if (opcode_of((uint8_t)other))
				assert_string_not_equal(o->name, opcode_of((uint8_t)other)->name);
	}
}

/* opcode_find is the inverse: what it finds is right, and every opcode is found. */
static void test_find(void **state)
{
	const unsigned place_flags = OPCODE_FIRST | OPCODE_LAST | OPCODE_IMMEDIATE | OPCODE_INVALIDATE;
	bool found[256] = { false };
	for (unsigned s = 0; s < SERVICE_COUNT; s++)
		for (unsigned m = 0; m < MESSAGE_COUNT; m++)
			for (unsigned f = 0; f < 16; f++) {
				unsigned flags = (f & 1 ? OPCODE_FIRST : 0) | (f & 2 ? OPCODE_LAST : 0) | (f & 4 ? OPCODE_IMMEDIATE : 0) |
						 (f & 8 ? OPCODE_INVALIDATE : 0);
				const struct opcode *o = opcode_find(s, m, flags);
				if (!o)
					continue;
				assert_int_equal(o->service, s);
				assert_int_equal(o->message, m);
				/* A message that is always one packet may be asked for without saying so. */
				if (flags || m == MESSAGE_SEND || m == MESSAGE_WRITE || m == MESSAGE_READ_RESPONSE)
					assert_int_equal(o->flags & place_flags, flags);
				found[o->byte] = true;
			}
	for (unsigned byte = 0; byte < 256; byte++)
		assert_int_equal(found[byte], opcode_of((uint8_t)byte) != NULL);
}

static void test_find_nothing(void **state)
{
	assert_null(opcode_find(SERVICE_UC, MESSAGE_READ_REQUEST, 0));
	assert_null(opcode_find(SERVICE_UC, MESSAGE_ACKNOWLEDGE, 0));
	assert_null(opcode_find(SERVICE_UC, MESSAGE_SEND, OPCODE_FIRST | OPCODE_LAST | OPCODE_INVALIDATE));
	assert_null(opcode_find(SERVICE_UD, MESSAGE_SEND, OPCODE_FIRST));
	assert_null(opcode_find(SERVICE_UD, MESSAGE_WRITE, OPCODE_FIRST | OPCODE_LAST));
	assert_null(opcode_find(SERVICE_RC, MESSAGE_SEND, OPCODE_FIRST | OPCODE_IMMEDIATE));
	assert_null(opcode_find(SERVICE_RC, MESSAGE_SEND, OPCODE_LAST | OPCODE_IMMEDIATE | OPCODE_INVALIDATE));
	assert_null(opcode_find(SERVICE_RC, MESSAGE_WRITE, OPCODE_LAST | OPCODE_INVALIDATE));
	assert_null(opcode_find(SERVICE_RC, MESSAGE_CNP, 0));
	assert_null(opcode_find(SERVICE_CNP, MESSAGE_SEND, 0));
	assert_int_equal(opcode_find(SERVICE_CNP, MESSAGE_CNP, OPCODE_FIRST | OPCODE_LAST)->byte, 0x81);
	assert_int_equal(opcode_find(SERVICE_RC, MESSAGE_SEND, OPCODE_LAST | OPCODE_INVALIDATE)->byte, 0x16);
	assert_int_equal(opcode_find(SERVICE_RC, MESSAGE_SEND, OPCODE_FIRST | OPCODE_LAST | OPCODE_INVALIDATE)->byte, 0x17);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_find_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

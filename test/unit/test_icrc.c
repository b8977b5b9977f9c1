/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "icrc.h"

/* IP packets without their ICRC, and the ICRC as it stands on the wire; derived by hand from the fields and a CRC-32 of
 * another library. */
static const struct vector {
	const char *name;
	uint32_t len;
	uint8_t packet[96], icrc[4];
} vectors[] = {
	{ "RC ACKNOWLEDGE over IPv4: 44 bytes", 44, {
		0x45, 0x00, 0x00, 0x30, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb6, 0xb9, 0xc0, 0x00, 0x02, 0x01, 0xc0, 0x00, 0x02, 0x02,
		0xc0, 0x00, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00, 0x11, 0x40, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x22,
		0x1f, 0x00, 0x00, 0x01,
	}, { 0x4e, 0xa8, 0x15, 0xd1 } },
	{ "UC SEND ONLY of 0 bytes over IPv4: the shortest", 40, {
		0x45, 0x00, 0x00, 0x2c, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb6, 0xbd, 0xc0, 0x00, 0x02, 0x01, 0xc0, 0x00, 0x02, 0x02,
		0xc0, 0x00, 0x12, 0xb7, 0x00, 0x18, 0x00, 0x00, 0x24, 0x40, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x22,
	}, { 0xea, 0xf9, 0x56, 0x1d } },
	{ "RC RDMA WRITE ONLY of 8 bytes over IPv4, TOS and BECN set", 64, {
		0x45, 0x03, 0x00, 0x44, 0x00, 0x00, 0x40, 0x00, 0x01, 0x11, 0xf5, 0xa2, 0xc0, 0x00, 0x02, 0x01, 0xc0, 0x00, 0x02, 0x02,
		0xc0, 0x00, 0x12, 0xb7, 0x00, 0x30, 0x00, 0x00, 0x0a, 0x40, 0xff, 0xff, 0x40, 0x00, 0x00, 0x11, 0x80, 0x00, 0x00, 0x22,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x12, 0x34, 0x56, 0x78, 0x00, 0x00, 0x00, 0x08, 0x00, 0x01, 0x02, 0x03,
		0x04, 0x05, 0x06, 0x07,
	}, { 0x4c, 0x01, 0x78, 0x75 } },
	{ "UD SEND ONLY of 1 byte, pad 3, over IPv6, traffic class and flow label set", 72, {
		0x6e, 0x2a, 0xbc, 0xde, 0x00, 0x24, 0x11, 0xff, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
		0xc0, 0x00, 0x12, 0xb7, 0x00, 0x24, 0x00, 0x00, 0x64, 0x70, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x22,
		0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x5a, 0x00, 0x00, 0x00,
	}, { 0xbf, 0xb0, 0x34, 0x12 } },
	{ "UC SEND ONLY of 0 bytes over IPv6, UDP checksum not 0", 60, {
		0x60, 0x00, 0x00, 0x00, 0x00, 0x18, 0x11, 0x40, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
		0xc0, 0x00, 0x12, 0xb7, 0x00, 0x18, 0xbe, 0xef, 0x24, 0x40, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x22,
	}, { 0xaf, 0x0c, 0xb1, 0x46 } },
};

/* Bit by bit, as the polynomial says. */
static uint32_t crc_add(uint32_t crc, uint8_t byte)
{
	crc ^= byte;
	for (int i = 0; i < 8; i++)
		crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	return crc;
}

/* The bits of byte i that the ICRC takes as ones (annex A17.3.3). */
static uint8_t variant_bits(unsigned version, uint32_t i)
{
	static const uint8_t ip4[] = { 1, 8, 10, 11, 26, 27, 32 }, ip6[] = { 1, 2, 3, 7, 46, 47, 52 };
	if (version == 6 && i == 0)
		return 0x0f;
	for (unsigned k = 0; k < 7; k++)
		if ((version == 4 ? ip4 : ip6)[k] == i)
			return 0xff;
	return 0;
}

static uint32_t reference(const uint8_t *l3, unsigned version, uint32_t len)
{
	uint32_t crc = 0xffffffff;
	for (int i = 0; i < 8; i++)
		crc = crc_add(crc, 0xff);
	for (uint32_t i = 0; i < len; i++)
		crc = crc_add(crc, l3[i] | variant_bits(version, i));
	return ~crc;
}

static uint8_t *random_bytes_of(uint32_t len)
{
	uint8_t *p = malloc(len);
	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)rand();
	return p;
}

/* known-bugs: 32 */
static void test_vectors(void **state)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *v = &vectors[i];
		uint8_t got[4];
		icrc_store(got, icrc_compute(v->packet, v->packet[0] >> 4, v->len));
		assert_memory_equal(got, v->icrc, 4);
		assert_int_equal(reference(v->packet, v->packet[0] >> 4, v->len), icrc_compute(v->packet, v->packet[0] >> 4, v->len));
	}
}

/* Every length up to well beyond those at which the computation changes its way, in a heap block that ends with the packet,
 * and none is written to. */
static void test_every_length(void **state)
{
	srand(1);
	for (unsigned version = 4; version <= 6; version += 2)
		for (uint32_t len = version == 4 ? 40 : 60; len < 900; len++) {
			uint8_t *p = random_bytes_of(len), *copy = malloc(len);
			memcpy(copy, p, len);
			assert_int_equal(icrc_compute(p, version, len), reference(p, version, len));
			assert_memory_equal(p, copy, len);
			free(p);
			free(copy);
		}
}

static void test_full_payloads(void **state)
{
	srand(2);
	for (uint32_t payload = 256; payload <= 8192; payload *= 2)
		for (uint32_t headers = 60; headers <= 112; headers += 4) {
			uint8_t *p = random_bytes_of(headers + payload);
			assert_int_equal(icrc_compute(p, 4, headers + payload), reference(p, 4, headers + payload));
			assert_int_equal(icrc_compute(p, 6, headers + payload), reference(p, 6, headers + payload));
			free(p);
		}
}

/* Each bit counts exactly when it is not variant, in a packet of each way of computing. */
static void test_every_bit(void **state)
{
	static const uint32_t lens[] = { 60, 64, 100, 300, 400, 600 };
	srand(3);
	for (unsigned version = 4; version <= 6; version += 2)
		for (unsigned l = 0; l < sizeof(lens) / sizeof(lens[0]); l++) {
			uint8_t *p = random_bytes_of(lens[l]);
			uint32_t before = icrc_compute(p, version, lens[l]);
			for (uint32_t bit = 0; bit < lens[l] * 8; bit++) {
				uint8_t mask = (uint8_t)(1 << bit % 8);
				p[bit / 8] ^= mask;
				bool is_variant = variant_bits(version, bit / 8) & mask;
				assert_int_equal(icrc_compute(p, version, lens[l]) == before, is_variant);
				p[bit / 8] ^= mask;
			}
			free(p);
		}
}

static void test_store_is_little_endian(void **state)
{
	uint8_t at[4];
	icrc_store(at, 0x11223344);
	assert_memory_equal(at, "\x44\x33\x22\x11", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_full_payloads),
		cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_store_is_little_endian),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

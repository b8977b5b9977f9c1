/* SPDX-License-Identifier: BSD-3-Clause */
/* The ICRC. Owns the masks of the variant fields and the way the bytes get to ISA-L's CRC; knows nothing of frames or drops.
 * It never writes to the packet and reads exactly len bytes of it.
 * IBA vol. 1, 7.8.1, with annex A17.3.3: eight bytes of ones in place of an LRH, then the IP packet with these fields as
 * ones: IPv4 TOS, TTL and checksum; IPv6 traffic class, flow label and hop limit; UDP checksum; the BTH byte with FECN, BECN
 * and reserved bits.
 *
 * A packet of few bytes costs what the call and its loads cost, not its length. So it is masked as a whole into a buffer and
 * given to the CRC in one call, and the buffer is filled by stores of 16 bytes, the size that the CRC loads, since a load
 * that spans two younger stores stalls. The tail is stored first for the same reason: the blocks that it overlaps are then
 * complete. */
#include "icrc.h"

#include <isa-l/crc.h>

enum {
	SHORT_MAX = 304, /* longest that is copied: measured, from here on two calls cost no more */
	WIDE = 256,      /* ISA-L folds whole pieces of this length at once, and takes many times as long a byte for the rest */
	BLOCK = 16,
	SEED = 0x2144df1c, /* CRC-32 of eight bytes of ones */
	IP4 = 0, IP6 = 1,
};

/* IP, UDP and BTH: least length of a packet and of its masked part. */
static const uint8_t head_min[2] = { [IP4] = 20 + 8 + 12, [IP6] = 40 + 8 + 12 };

static const uint8_t mask_of[2][SHORT_MAX] __attribute__((aligned(BLOCK))) = {
	[IP4] = { [1] = 0xff, [8] = 0xff, [10] = 0xff, [11] = 0xff, [20 + 6] = 0xff, [20 + 7] = 0xff, [20 + 8 + 4] = 0xff },
	[IP6] = { [0] = 0x0f, [1] = 0xff, [2] = 0xff, [3] = 0xff, [7] = 0xff, [40 + 6] = 0xff, [40 + 7] = 0xff, [40 + 8 + 4] = 0xff },
};

typedef uint64_t block __attribute__((vector_size(BLOCK)));

static inline void mask_block(uint8_t *to, const uint8_t *from, const uint8_t *mask)
{
	block v, m;
	memcpy(&v, from, BLOCK);
	memcpy(&m, mask, BLOCK);
	v |= m;
	memcpy(to, &v, BLOCK);
}

/* ISA-L's wide path leaves the upper halves of the vector registers dirty, and code built for SSE, DPDK's libraries among
 * it, is several times slower until they are cleared. The processor is asked because this file may be built for one without
 * AVX. */
static inline void clear_upper_halves(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
				 "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}

/* How much of a packet is copied and masked. The rest, of a long packet, is best a multiple of WIDE: with a full payload it
 * is the payload. */
static inline uint32_t choose_head(uint32_t len, unsigned version)
{
	if (len <= SHORT_MAX)
		return len;
	return len % WIDE >= head_min[version] ? len % WIDE : head_min[version];
}

uint32_t icrc_compute(const uint8_t *l3, unsigned ip_version, uint32_t len)
{
	uint8_t masked[SHORT_MAX] __attribute__((aligned(BLOCK)));
	unsigned version = ip_version == 6 ? IP6 : IP4;
	const uint8_t *mask = mask_of[version];
	uint32_t head = choose_head(len, version), crc;

	mask_block(masked + head - BLOCK, l3 + head - BLOCK, mask + head - BLOCK);
	for (uint32_t at = 0; at + BLOCK <= head; at += BLOCK)
		mask_block(masked + at, l3 + at, mask + at);
	crc = crc32_gzip_refl(SEED, masked, head);
	if (len < WIDE)
		return crc;
	if (head < len)
		crc = crc32_gzip_refl(crc, l3 + head, len - head);
	clear_upper_halves();
	return crc;
}

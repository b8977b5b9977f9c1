/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing pcapng (draft-ietf-opsawg-pcapng): one section, one Ethernet interface with nanosecond time stamps, and a comment
 * per packet. Bytes into a FILE of the caller's; needs no DPDK, so that the simulator can use it too. */
#ifndef UROCE_PCAPNG_H
#define UROCE_PCAPNG_H

#include <stdint.h>
#include <stdio.h>

/* Section and interface header. 0 or a negative errno. */
int pcapng_begin(FILE *file, const char *interface_name);
/* comment may be NULL. */
uint32_t pcapng_packet_bytes(uint32_t len, const char *comment);
int pcapng_packet(FILE *file, uint64_t time_ns, const uint8_t *frame, uint32_t len, const char *comment);

#endif

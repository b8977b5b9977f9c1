/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading captures in tests: classic pcap of either byte order, and the blocks of pcapng that our writer and the usual tools
 * use. The whole file is held in memory. */
#ifndef UROCE_TEST_PCAP_FILE_H
#define UROCE_TEST_PCAP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAP_ETHERNET 1u

struct pcap_frame {
	const uint8_t *bytes; /* inside the file's memory */
	uint32_t len;         /* captured */
	uint32_t wire_len;    /* longer when the capture cut the frame */
	uint64_t time_ns;
	const char *comment;  /* pcapng; not terminated, comment_len bytes; NULL without one */
	uint32_t comment_len;
};

struct pcap_file {
	uint8_t *data;
	size_t len, at;
	bool is_swapped, is_ng;
	uint32_t link_type;       /* of the last interface seen */
	uint64_t ns_per_unit;
};

/* 0, -errno of the file, or -EINVAL for another format. */
int pcap_file_open(struct pcap_file *f, const char *path);
/* false at the end and at the first thing that makes no sense. */
bool pcap_file_next(struct pcap_file *f, struct pcap_frame *out);
bool pcap_file_is_at_end(const struct pcap_file *f);
void pcap_file_close(struct pcap_file *f);

#endif

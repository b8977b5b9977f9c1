/* SPDX-License-Identifier: BSD-3-Clause */
/* See pcap_file.h. Every length is compared with what is left of the file before it is used. */
#include "pcap_file.h"

#include <byteswap.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAGIC_US = 0xa1b2c3d4, MAGIC_NS = 0xa1b23c4d, MAGIC_NG = 0x1a2b3c4d,
	BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_PACKET = 6,
	OPTION_COMMENT = 1, OPTION_TSRESOL = 9,
};

static uint32_t get32(const struct pcap_file *f, size_t at)
{
	uint32_t v;
	memcpy(&v, f->data + at, 4);
	return f->is_swapped ? bswap_32(v) : v;
}

static uint16_t get16(const struct pcap_file *f, size_t at)
{
	uint16_t v;
	memcpy(&v, f->data + at, 2);
	return f->is_swapped ? bswap_16(v) : v;
}

static int read_whole(struct pcap_file *f, const char *path)
{
	FILE *in = fopen(path, "rb");
	long len;
	if (!in)
		return -errno;
	if (fseek(in, 0, SEEK_END) || (len = ftell(in)) < 0 || fseek(in, 0, SEEK_SET) || !(f->data = malloc((size_t)len + 1))) {
		fclose(in);
		return -EIO;
	}
	f->len = fread(f->data, 1, (size_t)len, in);
	fclose(in);
	return f->len == (size_t)len ? 0 : -EIO;
}

int pcap_file_open(struct pcap_file *f, const char *path)
{
	memset(f, 0, sizeof(*f));
	int rc = read_whole(f, path);
	if (rc < 0)
		return rc;
	if (f->len < 24)
		goto bad;
	f->ns_per_unit = 1000;
	if (get32(f, 0) == BLOCK_SECTION) {
		f->is_ng = true;
		f->is_swapped = get32(f, 8) != MAGIC_NG;
		return get32(f, 8) == MAGIC_NG ? 0 : -EINVAL;
	}
	f->is_swapped = get32(f, 0) != MAGIC_US && get32(f, 0) != MAGIC_NS;
	if (get32(f, 0) != MAGIC_US && get32(f, 0) != MAGIC_NS)
		goto bad;
	if (get32(f, 0) == MAGIC_NS)
		f->ns_per_unit = 1;
	f->link_type = get32(f, 20) & 0xffff;
	f->at = 24;
	return 0;
bad:
	pcap_file_close(f);
	return -EINVAL;
}

static bool read_classic(struct pcap_file *f, struct pcap_frame *out)
{
	if (f->len - f->at < 16)
		return false;
	out->time_ns = get32(f, f->at) * 1000000000ull + get32(f, f->at + 4) * f->ns_per_unit;
	out->len = get32(f, f->at + 8);
	out->wire_len = get32(f, f->at + 12);
	if (out->len > f->len - f->at - 16)
		return false;
	out->bytes = f->data + f->at + 16;
	f->at += 16 + out->len;
	return true;
}

/* Calls for each option from at to end; keeps the two that are of use. */
static bool read_options(struct pcap_file *f, size_t at, size_t end, struct pcap_frame *out)
{
	while (end - at >= 4) {
		uint16_t code = get16(f, at), len = get16(f, at + 2);
		if (!code)
			return true;
		if (len > end - at - 4)
			return false;
		if (code == OPTION_COMMENT && out) {
			out->comment = (const char *)f->data + at + 4;
			out->comment_len = len;
		} else if (code == OPTION_TSRESOL && !out && len == 1) {
			f->ns_per_unit = 1000000000;
			for (unsigned i = 0; i < f->data[at + 4] && i < 9; i++)
				f->ns_per_unit /= 10;
		}
		at += 4 + ((len + 3u) & ~3u);
		if (at > end)
			return false;
	}
	return at == end;
}

static bool read_packet_block(struct pcap_file *f, size_t at, size_t end, struct pcap_frame *out)
{
	if (end - at < 20)
		return false;
	out->time_ns = ((uint64_t)get32(f, at + 4) << 32 | get32(f, at + 8)) * f->ns_per_unit;
	out->len = get32(f, at + 12);
	out->wire_len = get32(f, at + 16);
	if (out->len > end - at - 20)
		return false;
	out->bytes = f->data + at + 20;
	at += 20 + ((out->len + 3) & ~3u);
	return at <= end && read_options(f, at, end, out);
}

static bool read_ng(struct pcap_file *f, struct pcap_frame *out)
{
	while (f->len - f->at >= 12) {
		size_t start = f->at;
		uint32_t type = get32(f, start), len = get32(f, start + 4);
		if (len < 12 || len % 4 || len > f->len - start || get32(f, start + len - 4) != len)
			return false;
		size_t end = start + len - 4;
		if (type == BLOCK_PACKET && !read_packet_block(f, start + 8, end, out))
			return false;
		if (type == BLOCK_INTERFACE) {
			if (len < 20 || !read_options(f, start + 16, end, NULL))
				return false;
			f->link_type = get16(f, start + 8);
		}
		f->at = start + len;
		if (type == BLOCK_PACKET)
			return true;
	}
	return false;
}

bool pcap_file_next(struct pcap_file *f, struct pcap_frame *out)
{
	memset(out, 0, sizeof(*out));
	return f->is_ng ? read_ng(f, out) : read_classic(f, out);
}

bool pcap_file_is_at_end(const struct pcap_file *f)
{
	return f->at == f->len;
}

void pcap_file_close(struct pcap_file *f)
{
	free(f->data);
	f->data = NULL;
}

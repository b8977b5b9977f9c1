/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing pcapng. Owns the block layouts; the file, its buffering and its end are the caller's. Numbers are written in the
 * order of this machine, as the section header lets the reader find out. draft-ietf-opsawg-pcapng: 4.1 (section header), 4.2
 * (interface description), 4.3 (enhanced packet), 3.5 (options). */
#include "pcapng.h"

#include <errno.h>
#include <string.h>

enum {
	BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_PACKET = 6,
	BYTE_ORDER_MAGIC = 0x1a2b3c4d, LINK_ETHERNET = 1, NANOSECONDS = 9,
	OPTION_END = 0, OPTION_COMMENT = 1, OPTION_IF_NAME = 2, OPTION_IF_TSRESOL = 9,
	OPTION_MAX = 65535 - 3, /* a length of 16 bits, and room to pad it */
};

static uint32_t pad_to_word(uint32_t len)
{
	return (len + 3) & ~3u;
}

/* Text may be NULL: no option then. */
static uint32_t measure_text(const char *text)
{
	size_t len = text ? strlen(text) : 0;
	return len > OPTION_MAX ? OPTION_MAX : (uint32_t)len;
}

static uint32_t option_size(uint32_t len)
{
	return len ? 4 + pad_to_word(len) : 0;
}

static void write_padded(FILE *file, const void *bytes, uint32_t len)
{
	static const uint8_t zero[4];
	fwrite(bytes, 1, len, file);
	fwrite(zero, 1, pad_to_word(len) - len, file);
}

static void write_option(FILE *file, uint16_t code, const void *value, uint32_t len)
{
	uint16_t head[2] = { code, (uint16_t)len };
	if (!len && code != OPTION_END)
		return;
	fwrite(head, sizeof(head), 1, file);
	write_padded(file, value, len);
}

int pcapng_begin(FILE *file, const char *interface_name)
{
	uint32_t name_len = measure_text(interface_name);
	uint32_t len = 20 + option_size(name_len) + 8 + 4; /* name, resolution, end of options */
	const uint8_t resolution = NANOSECONDS;
	struct {
		uint32_t type, len, magic;
		uint16_t major, minor;
		int64_t section_len; /* -1: not known */
		uint32_t len_again;
	} __attribute__((packed)) section = { BLOCK_SECTION, sizeof(section), BYTE_ORDER_MAGIC, 1, 0, -1, sizeof(section) };
	struct {
		uint32_t type, len;
		uint16_t link_type, reserved;
		uint32_t snap_len; /* 0: no limit */
	} interface = { BLOCK_INTERFACE, len, LINK_ETHERNET, 0, 0 };

	fwrite(&section, sizeof(section), 1, file);
	fwrite(&interface, sizeof(interface), 1, file);
	write_option(file, OPTION_IF_NAME, interface_name, name_len);
	write_option(file, OPTION_IF_TSRESOL, &resolution, 1);
	write_option(file, OPTION_END, "", 0);
	fwrite(&len, sizeof(len), 1, file);
	return ferror(file) ? -EIO : 0;
}

uint32_t pcapng_packet_bytes(uint32_t len, const char *comment)
{
	uint32_t comment_len = measure_text(comment);
	return 32 + pad_to_word(len) + (comment_len ? option_size(comment_len) + 4 : 0);
}

int pcapng_packet(FILE *file, uint64_t time_ns, const uint8_t *frame, uint32_t len, const char *comment)
{
	uint32_t comment_len = measure_text(comment);
	uint32_t total = pcapng_packet_bytes(len, comment);
	uint32_t head[7] = { BLOCK_PACKET, total, 0, (uint32_t)(time_ns >> 32), (uint32_t)time_ns, len, len };

	fwrite(head, sizeof(head), 1, file);
	write_padded(file, frame, len);
	if (comment_len) {
		write_option(file, OPTION_COMMENT, comment, comment_len);
		write_option(file, OPTION_END, "", 0);
	}
	fwrite(&total, sizeof(total), 1, file);
	return ferror(file) ? -EIO : 0;
}

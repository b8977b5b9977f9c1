/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures of other stacks and NICs, against the counts that their index files state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "icrc.h"
#include "packet.h"
#include "pcap_file.h"

/* Frames of one file by what became of them. dc: the dynamically connected transport of one vendor, whose opcodes are not in
 * the specification; dropped by opcode, but the ICRC of those is looked at all the same. */
struct tally {
	unsigned frames, ok, bad, dc_ok, dc_bad, v1, cut, other;
};

static const struct expected {
	const char *file;
	struct tally t;
} captures[] = {
	{ "magnate3_linux-riscv-dev/nvme__document__host-echo.dump.pcap", { 69, .ok = 69 } },
	{ "magnate3_linux-riscv-dev/nvme__document__host_cat.dump.pcap", { 49, .ok = 49 } },
	{ "magnate3_linux-riscv-dev/nvme__document__nvme-discover.pcap", { 65, .ok = 61, .other = 4 } },
	{ "magnate3_linux-riscv-dev/nvme__document__nvme-discover2.pcap", { 31, .ok = 31 } },
	{ "magnate3_linux-riscv-dev/nvme__document__nvme-rdma-25echoTo27.pcap", { 45, .ok = 45 } },
	{ "magnate3_linux-riscv-dev/nvme__document__nvme-rdma-idle.pcap", { 4, .ok = 4 } },
	{ "magnate3_linux-riscv-dev/soft-roce__02-2-write__ibdump__write.pcap", { 17, .ok = 17 } },
	{ "magnate3_linux-riscv-dev/soft-roce__rdma-write-read__ibdump__read2.pcap", { 16, .ok = 13, .other = 3 } },
	{ "magnate3_linux-riscv-dev/soft-roce__send_recv-ibdump__send.pcap", { 9, .ok = 9 } },
	{ "magnate3_linux-riscv-dev/soft-roce__rdma.dump.pcap", { 19, .ok = 19 } },
	{ "magnate3_linux-riscv-dev/soft-roce__mellanox__doc__ib_send_bw_over_roce.pcap", { 45, .ok = 10, .other = 35 } },
	{ "magnate3_linux-riscv-dev/soft-roce__mellanox__doc__rocev1.pcap", { 2468, .v1 = 2468 } },
	{ "magnate3_linux-riscv-dev/soft-roce__mellanox__doc__rocev1_test.pcap", { 624, .ok = 301, .v1 = 323 } },
	{ "magnate3_linux-riscv-dev/soft-roce__mellanox__doc__rocev2-2_test.pcap", { 641, .ok = 641 } },
	{ "magnate3_linux-riscv-dev/soft-roce__mellanox__doc__rocev2_test.pcap", { 708, .ok = 708 } },
	{ "magnate3_linux-riscv-dev/soft-roce__rdma-ping__dc__rc-small.pcap", { 21, .bad = 21 } },
	{ "magnate3_linux-riscv-dev/soft-roce__rdma-ping__dc__dc-small.pcap", { 19, .dc_bad = 19 } },
	{ "magnate3_linux-riscv-dev/soft-roce__rdma-ping__dc__dc-small2.pcap", { 29, .dc_bad = 29 } },
	{ "magnate3_linux-riscv-dev/soft-roce__rdma-ping__uc__uc_sg_send__uc-sg.pcap", { 17, .bad = 17 } },
	{ "magnate3_linux-riscv-dev/soft-roce__rdma-ping__uccl__uccl-mini__p2p-test2__rdma-nccl2.pcap",
	  { 520, .bad = 20, .cut = 489, .other = 11 } },
	{ "magnate3_linux-riscv-dev/soft-roce__ib_rdma_ping__ib2.pcap", { 127, .other = 127 } },
	{ "montybeatnik_rdma-roce-lab/test.pcap", { 16, .ok = 12, .other = 4 } },
	{ "montybeatnik_rdma-roce-lab/roce_capture_read-write-ecn.pcap", { 12, .ok = 12 } },
	{ "oferby_proxy/roce.pcap", { 123, .ok = 105, .other = 18 } },
	{ "srinivaskoritala/infiniband.pcap", { 43, .other = 43 } },
	{ "vectors/published_icrc_vectors.pcap", { 7, .ok = 5, .v1 = 2 } },
	{ "vectors/bad_icrc_fpga_ack.pcap", { 1, .bad = 1 } },
	{ "derived/rc-small.sportfix.pcap", { 21, .ok = 21 } },
	{ "derived/uc-sg.sportfix.pcap", { 17, .ok = 17 } },
	{ "derived/dc-small.sportfix.pcap", { 19, .dc_ok = 19 } },
	{ "derived/dc-small2.sportfix.pcap", { 29, .dc_ok = 29 } },
};

/* Where the shared data of the workplace is; the tests skip without it. */
static const char *shared(void)
{
	const char *dir = getenv("UROCE_SHARED");
	return dir ? dir : SOURCE_ROOT "/../shared";
}

static bool is_there(const char *what)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", shared(), what);
	DIR *d = opendir(path);
	if (!d) {
		print_message("skipped: no %s (set UROCE_SHARED)\n", path);
		return false;
	}
	closedir(d);
	return true;
}

/* Parses a copy in a block of its own, for the sanitizers. */
static void count_frame(struct tally *t, const struct pcap_file *f, const struct pcap_frame *frame)
{
	struct packet p;
	uint8_t *copy = malloc(frame->len + 1);
	memcpy(copy + 1, frame->bytes, frame->len);
	enum drop d = packet_parse(&p, copy + 1, frame->len, VLAN_NONE, NULL);
	t->frames++;
	if (f->link_type != PCAP_ETHERNET)
		t->other++;
	else if (d == DROP_NONE && p.kind == PACKET_ROCE)
		(*(packet_is_icrc_ok(&p) ? &t->ok : &t->bad))++;
	else if (d == DROP_OPCODE)
		(*(packet_is_icrc_ok(&p) ? &t->dc_ok : &t->dc_bad))++;
	else if (d == DROP_ETHERTYPE && frame->len >= 14 && frame->bytes[12] == 0x89 && frame->bytes[13] == 0x15)
		t->v1++;
	else if (d == DROP_IP_LENGTH)
		t->cut++;
	else
		t->other++;
	free(copy);
}

static struct tally count_file(const char *relative)
{
	char path[4096];
	struct tally t = { 0 };
	struct pcap_file f;
	struct pcap_frame frame;
	snprintf(path, sizeof(path), "%s/%s", shared(), relative);
	if (pcap_file_open(&f, path))
		fail_msg("cannot read %s", path);
	while (pcap_file_next(&f, &frame))
		count_frame(&t, &f, &frame);
	assert_true(pcap_file_is_at_end(&f));
	pcap_file_close(&f);
	return t;
}

/* known-bugs: 29 32 */
static void test_captures(void **state)
{
	unsigned ok = 0, bad = 0;
	if (!is_there("captures"))
		skip();
	for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++) {
		char name[512];
		snprintf(name, sizeof(name), "captures/%s", captures[i].file);
		struct tally t = count_file(name);
		if (memcmp(&t, &captures[i].t, sizeof(t)))
			print_message("%s: frames %u ok %u bad %u dc %u/%u v1 %u cut %u other %u\n", name, t.frames, t.ok, t.bad,
				      t.dc_ok, t.dc_bad, t.v1, t.cut, t.other);
		assert_memory_equal(&t, &captures[i].t, sizeof(t));
		ok += t.ok;
		bad += t.bad;
	}
	print_message("%u good and %u bad frames in %zu files\n", ok, bad, sizeof(captures) / sizeof(captures[0]));
}

static void count_directory(const char *dir, unsigned want_files, unsigned want_ok)
{
	char path[4096];
	unsigned files = 0, ok = 0;
	struct dirent *e;
	if (!is_there(dir))
		skip();
	snprintf(path, sizeof(path), "%s/%s", shared(), dir);
	DIR *d = opendir(path);
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name);
		if (len < 5 || strcmp(e->d_name + len - 5, ".pcap"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		struct tally t = count_file(path);
		files++;
		ok += t.ok;
		assert_int_equal(t.bad + t.dc_ok + t.dc_bad + t.v1 + t.cut, 0);
	}
	closedir(d);
	assert_int_equal(files, want_files);
	assert_int_equal(ok, want_ok);
}

static void test_linux_6_1(void **state)
{
	count_directory("rxe-peer/pcaps", 82, 1338);
}

static void test_linux_6_12(void **state)
{
	count_directory("rxe-peer/pcaps-6.12", 82, 1335);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_captures),
		cmocka_unit_test(test_linux_6_1),
		cmocka_unit_test(test_linux_6_12),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared regions. Invariant: once region_keep returned 0, every page of the region is there and stays. All work on pages is done in pieces: meanwhile the kernel holds a lock that every other mmap of the process,
 * a poll core's malloc among them, waits for. */
#include "region.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <numa.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memfd.h"

#define HUGE_PAGE (2u << 20)
#define PAGE 4096u
#define PIECE (4ull << 20) /* about 4 ms in ordinary pages */

typedef int piece_fn(void *base, size_t bytes);

static int in_pieces(piece_fn *f, void *base, uint64_t bytes, const _Atomic bool *is_cancelled)
{
	for (uint64_t at = 0; at < bytes; at += PIECE) {
		if (is_cancelled && atomic_load_explicit(is_cancelled, memory_order_relaxed))
			return -ECANCELED;
		int err = f((uint8_t *)base + at, bytes - at < PIECE ? bytes - at : PIECE);
		if (err)
			return err;
	}
	return 0;
}

/* Every page now, for writing: one that cannot be had must be an error here and not a SIGBUS in a poll core. */
static int fault_in(void *base, size_t bytes)
{
	if (!madvise(base, bytes, MADV_POPULATE_WRITE))
		return 0;
	return errno == EFAULT ? -ENOMEM : -errno; /* EFAULT: no huge page left */
}

/* A client can ask for its pages to be swapped out, a lock refuses it; without the right to lock it costs time, no more. */
static int lock_in(void *base, size_t bytes)
{
	return mlock(base, bytes) ? -errno : 0;
}

static int unmap(void *base, size_t bytes)
{
	return munmap(base, bytes);
}

static int map_new(int fd, uint64_t bytes, int node, const _Atomic bool *is_cancelled, void **base)
{
	if (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return -errno;
	*base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (*base == MAP_FAILED)
		return -errno;
	if (node >= 0 && numa_available() >= 0)
		numa_tonode_memory(*base, bytes, node);
	int err = in_pieces(fault_in, *base, bytes, is_cancelled);
	if (err)
		in_pieces(unmap, *base, bytes, NULL);
	return err;
}

static int make(uint64_t bytes, int node, unsigned flags, const _Atomic bool *is_cancelled, void **base, int *fd)
{
	*fd = memfd_create("uroce", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
	if (*fd < 0)
		return -errno;
	int err = map_new(*fd, bytes, node, is_cancelled, base);
	if (err)
		close(*fd);
	return err;
}

int region_make(struct region_source *source, uint64_t bytes, const _Atomic bool *is_cancelled, void **base, int *fd)
{
	if (!bytes || bytes % PAGE)
		return -EINVAL;
	if (bytes % HUGE_PAGE == 0 && !make(bytes, source->node, MFD_HUGETLB | MFD_HUGE_2MB, is_cancelled, base, fd))
		return 0;
	int err = make(bytes, source->node, 0, is_cancelled, base, fd);
	if (!err && !atomic_exchange_explicit(&source->is_told, true, memory_order_relaxed))
		log_write(source->log, LOG_INFO, "clients get ordinary memory: no huge pages are free (sudo config/hugepages.sh 1024 reserves 1 GiB)");
	return err;
}

int region_keep(void *base, uint64_t bytes, int fd, const _Atomic bool *is_cancelled)
{
	if (!ctl_memfd_is_sealed(fd))
		return -EPERM;
	int err = in_pieces(fault_in, base, bytes, is_cancelled);
	if (!err)
		in_pieces(lock_in, base, bytes, is_cancelled);
	return err;
}

void region_free(void *base, uint64_t bytes, int fd)
{
	in_pieces(unmap, base, bytes, NULL);
	if (fd >= 0)
		close(fd);
}

static int hook_new(void *arg, uint64_t bytes, void **base, int *fd)
{
	return region_make(arg, bytes, NULL, base, fd);
}

static void hook_free(void *arg, void *base, uint64_t bytes, int fd)
{
	region_free(base, bytes, fd);
}

struct core_hooks region_hooks(struct region_source *source)
{
	struct core_hooks h = core_host_hooks;
	h.region_new = hook_new;
	h.region_free = hook_free;
	h.arg = source;
	return h;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared regions. Invariant: once region_seal returned 0, every page of the region is there and stays. */
#include "region.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <numa.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HUGE_PAGE (2u << 20)
#define PAGE 4096u
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

/* Every page now, for writing: one that cannot be had must be an error here and not a SIGBUS in a poll core. */
static int fault_in(void *base, uint64_t bytes)
{
	if (!madvise(base, bytes, MADV_POPULATE_WRITE))
		return 0;
	return errno == EFAULT ? -ENOMEM : -errno; /* EFAULT: no huge page left */
}

static int map_new(int fd, uint64_t bytes, int node, void **base)
{
	if (ftruncate(fd, (off_t)bytes))
		return -errno;
	*base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (*base == MAP_FAILED)
		return -errno;
	if (node >= 0 && numa_available() >= 0)
		numa_tonode_memory(*base, bytes, node);
	int err = fault_in(*base, bytes);
	if (err)
		munmap(*base, bytes);
	return err;
}

static int make(uint64_t bytes, int node, unsigned flags, void **base, int *fd)
{
	*fd = memfd_create("uroce", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
	if (*fd < 0)
		return -errno;
	int err = map_new(*fd, bytes, node, base);
	if (err)
		close(*fd);
	return err;
}

int region_make(uint64_t bytes, int node, void **base, int *fd, bool *is_huge)
{
	if (!bytes || bytes % PAGE)
		return -EINVAL;
	*is_huge = bytes % HUGE_PAGE == 0 && !make(bytes, node, MFD_HUGETLB | MFD_HUGE_2MB, base, fd);
	return *is_huge ? 0 : make(bytes, node, 0, base, fd);
}

int region_seal(void *base, uint64_t bytes, int fd)
{
	struct stat st;
	if (fcntl(fd, F_ADD_SEALS, SEALS) || fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size != bytes)
		return -EPROTO;
	int err = fault_in(base, bytes);
	if (!err && mlock(base, bytes)) /* a client can ask for its pages to be swapped out, a lock refuses it; without the right to lock it costs time, no more */
		return 0;
	return err;
}

static int region_new(void *arg, uint64_t bytes, void **base, int *fd)
{
	struct region_source *source = arg;
	bool is_huge;
	int err = region_make(bytes, source->node, base, fd, &is_huge);
	if (!err && !is_huge && !atomic_exchange_explicit(&source->is_told, true, memory_order_relaxed))
		log_write(source->log, LOG_INFO, "clients get ordinary memory: no huge pages are free (config/hugepages.sh reserves some)");
	return err;
}

static void region_free(void *arg, void *base, uint64_t bytes, int fd)
{
	munmap(base, bytes);
	if (fd >= 0)
		close(fd);
}

struct core_hooks region_hooks(struct region_source *source)
{
	struct core_hooks h = core_host_hooks;
	h.region_new = region_new;
	h.region_free = region_free;
	h.arg = source;
	return h;
}

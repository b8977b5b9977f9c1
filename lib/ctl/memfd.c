/* SPDX-License-Identifier: BSD-3-Clause */
/* Mapping what a daemon sent. Nothing is mapped that is not a memfd of the size that was told: another kind of file could block or fault whoever touches it. */
#include "memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

int ctl_memfd_map(int fd, uint64_t bytes, bool is_writable, void **base)
{
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	/* Only files in memory have seals, and a memfd is in no directory. */
	if (fcntl(fd, F_GET_SEALS) < 0 || st.st_nlink || !bytes || (uint64_t)st.st_size != bytes)
		return -EPROTO;
	*base = mmap(NULL, bytes, PROT_READ | (is_writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	if (*base == MAP_FAILED)
		return -errno;
	madvise(*base, bytes, MADV_DONTFORK);
	return 0;
}

int ctl_memfd_seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, SEALS) ? -errno : 0;
}

bool ctl_memfd_is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & SEALS) == SEALS;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's side of memory that the daemon shares (the daemon's is engine/region.h). */
#ifndef UROCE_CTL_MEMFD_H
#define UROCE_CTL_MEMFD_H

#include <stdbool.h>
#include <stdint.h>

/* Checks that fd is a memfd of exactly `bytes` bytes (-EPROTO otherwise) and maps it, read-write if is_writable, not inherited by a fork. fd stays the caller's, who may close it at once; munmap undoes it. Any thread. 0 or a negative errno. */
int ctl_memfd_map(int fd, uint64_t bytes, bool is_writable, void **base);
/* Seals it for good, after it has been mapped: no further writable mapping, no hole, no change of size. It is the client that does so, since the kernel holds a lock for it that a `write` to the file holds too, for as long as the writer's memory
 * makes it wait; that they are there can be seen without. Any thread. 0 or a negative errno. */
int ctl_memfd_seal(int fd);
/* Whether all of that is so. Any thread, waits for nobody. */
bool ctl_memfd_is_sealed(int fd);

#endif

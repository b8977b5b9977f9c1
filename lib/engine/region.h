/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of an engine that a client maps too: memfds, in huge pages where there are some, on the port's NUMA node. Made by the engine's side, its size sealed; mapped by both; then sealed for good by the client. System calls that fault memory in: never on a poll core. */
#ifndef UROCE_REGION_H
#define UROCE_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "core.h"

struct region_source {
	int node; /* NUMA node, -1: any */
	const struct log *log;
	_Atomic bool is_told; /* that there are no huge pages: one line */
};

/* Makes a memfd of `bytes` (a multiple of 4096; in huge pages if it is a multiple of theirs and enough are free), maps it read-write, and allocates every page, zeroed. Takes about a millisecond a MiB; ends early when
 * another thread sets *is_cancelled (NULL: nobody can). 0, -EINVAL, -ENOMEM, -ECANCELED or another negative errno. */
int region_make(struct region_source *source, uint64_t bytes, const _Atomic bool *is_cancelled, void **base, int *fd);
/* After the client has mapped and sealed it (ctl/memfd.h): every page is faulted in again, since until then the client could take some away. Its size was sealed before it had it. 0; -EPERM: it has not sealed it; -ENOMEM, -ECANCELED. */
int region_keep(void *base, uint64_t bytes, int fd, const _Atomic bool *is_cancelled);
/* fd: -1 when it has been closed. */
void region_free(void *base, uint64_t bytes, int fd);

/* The hooks of an engine's cores: regions as above, the rest as core_host_hooks. */
struct core_hooks region_hooks(struct region_source *source);

#endif

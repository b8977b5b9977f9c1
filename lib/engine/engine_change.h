/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be changed at an engine while it runs, on all its cores alike: addresses, neighbours, faults, captures. Each change is made by the thread that drives the core, between two rounds. Any thread but those; one at a time for an engine. */
#ifndef UROCE_ENGINE_CHANGE_H
#define UROCE_ENGINE_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "gid.h"

/* 0 and *index, the same on all cores; -EEXIST, -ENOSPC, -EINVAL as addr_gid_add; -ENOMEM; -EPERM: the addresses are the kernel interface's. The port then lets in the group in which neighbours look for it, and core 0 reports it. */
int engine_gid_add(struct engine *e, const struct gid *gid, uint16_t vlan, unsigned prefix_len, uint32_t *index);
/* -ENOENT: there is none; -EPERM. QPs and AHs that use it go on until they are destroyed: they keep the way that they have, and neighbours are answered. Until the last has gone the slot is nobody else's. */
int engine_gid_remove(struct engine *e, uint32_t index);
/* A neighbour that is never asked for. -EINVAL, -ENOBUFS. */
int engine_neighbour_add(struct engine *e, const struct gid *gid, uint16_t vlan, const uint8_t mac[6]);

/* Receives through these faults (fault_spec.h) instead of those of before, with counters that begin at 0; spec NULL: without any. Frames that wait in the old ones are lost. 0; -EINVAL, -ENOMEM with one line in why. */
int engine_fault_set(struct engine *e, const char *spec, char *why, uint32_t len);
/* Off: frames pass as they are, until it is on again. -ENOENT: there are none. */
int engine_fault_switch(struct engine *e, bool is_on);

/* Every frame of a QP (0: of all) from now on, into this file: of all cores, which write whole blocks, each in the order of its own frames. -EBUSY: a capture runs; -ENOENT, -EACCES and the like: no such file can be made. */
int engine_capture_start(struct engine *e, const char *path, uint32_t qpn);
/* The same into an open file, which stays the caller's to close. */
int engine_capture_start_fd(struct engine *e, int fd, uint32_t qpn);
/* *frames: how many there are in the files. -ENOENT: none runs; -EIO: writing had failed before, and the rest is missing. */
int engine_capture_stop(struct engine *e, uint64_t *frames);

#endif

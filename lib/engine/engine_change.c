/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. What takes system calls (files) is done by the caller's thread, what touches a core by the one that drives it. */
#include "engine_change.h"

#include <errno.h>
#include <unistd.h>

#include "addr.h"
#include "capture.h"
#include "core.h"
#include "engine_core.h"
#include "fault_dpdk.h"
#include "port.h"

struct change {
	struct mail mail;
	struct engine_core *ec;
	const struct gid *gid;
	uint16_t vlan;
	unsigned prefix_len;
	uint32_t index;
	const uint8_t *mac;
	const char *spec;
	char *why;
	uint32_t why_len;
	struct capture *capture;
	int err;
};

/* One core after the other, until one refuses, or before `end`. */
static int change_until(struct engine *e, struct change *c, const struct engine_core *end, void (*run)(struct mail *, uint64_t))
{
	for (unsigned i = 0; i < engine_cores(e) && !c->err && engine_core_at(e, i) != end; i++) {
		c->mail = (struct mail){ .run = run };
		c->ec = engine_core_at(e, i);
		engine_carry_out(c->ec, &c->mail);
	}
	return c->err;
}

static int change_all(struct engine *e, struct change *c, void (*run)(struct mail *, uint64_t))
{
	return change_until(e, c, NULL, run);
}

static struct addr *addr_of(const struct change *c)
{
	return core_addr(engine_core_stack(c->ec));
}

/* ---- addresses ---- */

static void run_gid_choose(struct mail *mail, uint64_t now_ns)
{
	struct change *c = (struct change *)mail;
	c->err = addr_gid_choose(addr_of(c), c->gid, c->vlan, &c->index);
}

static void run_gid_add(struct mail *mail, uint64_t now_ns)
{
	struct change *c = (struct change *)mail;
	c->err = addr_gid_add_at(addr_of(c), c->index, c->gid, c->vlan, c->prefix_len);
}

static void run_gid_remove(struct mail *mail, uint64_t now_ns)
{
	struct change *c = (struct change *)mail;
	c->err = addr_gid_remove(addr_of(c), c->index);
}

static void run_neighbour_add(struct mail *mail, uint64_t now_ns)
{
	struct change *c = (struct change *)mail;
	c->err = addr_learn(addr_of(c), c->gid, c->vlan, c->mac, true, now_ns);
}

int engine_gid_add(struct engine *e, const struct gid *gid, uint16_t vlan, unsigned prefix_len, uint32_t *index)
{
	struct change c = { .gid = gid, .vlan = vlan, .prefix_len = prefix_len };
	uint32_t was;
	if (engine_has_kernel_addresses(e))
		return -EPERM;
	do { /* a core with AHs of a removed GID has its slot still, others may not */
		was = c.index;
		change_all(e, &c, run_gid_choose);
	} while (!c.err && c.index != was);
	if (!c.err && change_all(e, &c, run_gid_add)) { /* by one that has no memory for it */
		struct change undo = { .index = c.index };
		change_until(e, &undo, c.ec, run_gid_remove);
	}
	*index = c.index;
	return c.err;
}

int engine_gid_remove(struct engine *e, uint32_t index)
{
	struct change c = { .index = index };
	return engine_has_kernel_addresses(e) ? -EPERM : change_all(e, &c, run_gid_remove);
}

int engine_neighbour_add(struct engine *e, const struct gid *gid, uint16_t vlan, const uint8_t mac[6])
{
	struct change c = { .gid = gid, .vlan = vlan, .mac = mac };
	return change_all(e, &c, run_neighbour_add);
}

/* ---- faults ---- */

static void run_fault_set(struct mail *mail, uint64_t now_ns)
{
	struct change *c = (struct change *)mail;
	c->err = engine_core_set_fault(c->ec, c->spec, c->why, c->why_len);
}

int engine_fault_set(struct engine *e, const char *spec, char *why, uint32_t len)
{
	struct change c = { .spec = spec, .why = why, .why_len = len };
	if (len)
		why[0] = 0;
	return change_all(e, &c, run_fault_set);
}

int engine_fault_switch(struct engine *e, bool is_on)
{
	for (unsigned i = 0; i < engine_cores(e); i++) {
		struct fault_port *f = engine_core_fault(engine_core_at(e, i));
		if (!f)
			return -ENOENT;
		fault_port_switch(f, is_on);
	}
	return 0;
}

/* ---- captures ---- */

static void run_capture(struct mail *mail, uint64_t now_ns)
{
	struct change *c = (struct change *)mail;
	c->capture = engine_core_swap_capture(c->ec, c->capture, now_ns);
}

/* Puts a capture, or NULL, in the place of the core's; returns that one. */
static struct capture *swap(struct engine_core *ec, struct capture *with)
{
	struct change c = { .mail.run = run_capture, .ec = ec, .capture = with };
	engine_carry_out(ec, &c.mail);
	return c.capture;
}

int engine_capture_stop(struct engine *e, uint64_t *frames)
{
	int err = 0;
	*frames = 0;
	for (unsigned i = 0; i < engine_cores(e); i++) {
		struct capture *c = swap(engine_core_at(e, i), NULL);
		if (!c) {
			err = -ENOENT;
			continue;
		}
		*frames += capture_frames(c);
		capture_flush(c);
		if (capture_has_failed(c))
			err = -EIO;
		capture_close(c);
	}
	return err;
}

int engine_capture_start_fd(struct engine *e, int fd, uint32_t qpn)
{
	struct capture *capture;
	uint64_t frames;
	if (engine_core_has_capture(engine_core_at(e, 0)))
		return -EBUSY;
	for (unsigned i = 0; i < engine_cores(e); i++) {
		int err = capture_open(&capture, fd, i ? NULL : engine_port(e)->text, qpn, engine_log(e));
		if (err) {
			engine_capture_stop(e, &frames);
			return err;
		}
		capture_close(swap(engine_core_at(e, i), capture));
	}
	return 0;
}

int engine_capture_start(struct engine *e, const char *path, uint32_t qpn)
{
	if (engine_core_has_capture(engine_core_at(e, 0)))
		return -EBUSY; /* before the file is made, or truncated */
	int fd = capture_create(path);
	if (fd < 0)
		return fd;
	int err = engine_capture_start_fd(e, fd, qpn);
	close(fd);
	return err;
}

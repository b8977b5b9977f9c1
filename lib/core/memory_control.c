/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests for memory: pool memory, MRs, MRs for fast registration, memory windows (IBA vol. 1, 11.2.8). Owns which memory a client can name, and that nothing goes while something else stands on it; keys and
 * access are mem's, binding is done by WRs. */
#include <errno.h>
#include <stdlib.h>

#include "machine.h"

/* ---- pool memory ---- */

int memory_alloc(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	uint64_t bytes = (req->alloc_memory.bytes + 4095) & ~4095ull;
	int rc = client_check_quota(k, &(struct core_usage){ .pool_bytes = bytes }, rep);
	if (rc)
		return rc;
	struct memory *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->bytes = bytes;
	rc = arenas_take(&k->arenas, m->bytes, 4096, &m->arena, &m->offset);
	if (!rc && !(rep->handle = handles_add(&k->memories, m))) {
		arenas_give(&k->arenas, m->arena, m->offset, m->bytes);
		rc = -ENOMEM;
	}
	if (rc) {
		free(m);
		return client_refuse(rep, rc, "%llu bytes of pool memory cannot be had", (unsigned long long)req->alloc_memory.bytes);
	}
	k->usage.pool_bytes += m->bytes;
	rep->memory.arena = m->arena;
	rep->memory.offset = m->offset;
	rep->memory.bytes = m->bytes;
	return 0;
}

/* Where the core finds the range that a client wants to register. */
static int locate(struct core_client *k, const struct abi_req *req, struct memory **memory, void **host, struct abi_rep *rep)
{
	*memory = NULL;
	*host = (void *)(uintptr_t)req->reg_mr.addr;
	if (!req->reg_mr.memory)
		return k->core->config.mode <= 1 ? 0 : client_refuse(rep, -EOPNOTSUPP, "only memory from uroce_alloc can be registered here; embedded or inline mode takes any address");
	struct memory *m = handles_get(&k->memories, req->reg_mr.memory);
	if (!m)
		return client_refuse(rep, -ENOENT, "no memory has the handle 0x%x", req->reg_mr.memory);
	if (req->reg_mr.addr > m->bytes || req->reg_mr.len > m->bytes - req->reg_mr.addr)
		return client_refuse(rep, -EINVAL, "bytes %llu to %llu are not within the %llu of this memory", (unsigned long long)req->reg_mr.addr,
			(unsigned long long)(req->reg_mr.addr + req->reg_mr.len), (unsigned long long)m->bytes);
	*memory = m;
	*host = arenas_at(&k->arenas, m->arena, m->offset + req->reg_mr.addr);
	return 0;
}

/* ---- MRs ---- */

static struct pd *find_pd(struct core_client *k, uint32_t handle, struct abi_rep *rep)
{
	struct pd *pd = handles_get(&k->pds, handle);
	if (!pd)
		client_refuse(rep, -ENOENT, "no PD has the handle 0x%x", handle);
	return pd;
}

static int check_mrs(struct core_client *k, uint64_t bytes, struct abi_rep *rep)
{
	const struct core *c = k->core;
	if (mr_table_count(c->env.mrs) - c->n_mws >= c->config.max_mr)
		return client_refuse(rep, -ENOSPC, "the table of MRs is full: the device has no more than %u", c->config.max_mr);
	return client_check_quota(k, &(struct core_usage){ .mrs = 1, .registered_bytes = bytes }, rep);
}

static int refuse_range(const struct abi_req *req, int rc, struct abi_rep *rep)
{
	const char *why = rc == -ENOSPC ? "the table of keys is full" : rc == -EOPNOTSUPP ? "none of this memory keeps its bytes without power, so FLUSH_PERSISTENT cannot be granted; FLUSH_GLOBAL can" : rc == -EINVAL ? "remote write and remote atomic need local write, and the range must not wrap around 2^64" : "out of memory";
	return client_refuse(rep, rc, "an MR of %llu bytes with access 0x%x: %s", (unsigned long long)req->reg_mr.len, req->reg_mr.access, why);
}

/* Takes mr, which ends if this fails. */
static int add_region(struct core_client *k, struct mr *mr, struct memory *m, struct abi_rep *rep)
{
	struct region *r = calloc(1, sizeof(*r));
	if (r && (rep->handle = handles_add(&k->regions, r))) {
		*r = (struct region){ .mr = mr, .memory = m };
		if (m)
			m->refs++;
		return 0;
	}
	free(r);
	mr_deregister(k->core->env.mrs, mr);
	return client_refuse(rep, -ENOMEM, "an MR cannot be made: out of memory");
}

int mr_create(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct pd *pd = find_pd(k, req->reg_mr.pd, rep);
	struct memory *m;
	struct mr *mr;
	void *host;
	if (!pd)
		return -ENOENT;
	int rc = check_mrs(k, req->reg_mr.len, rep);
	if (!rc)
		rc = locate(k, req, &m, &host, rep);
	if (rc)
		return rc;
	rc = mr_register(k->core->env.mrs, pd, host, req->reg_mr.iova, req->reg_mr.len, req->reg_mr.access, m ? MR_POOL : MR_DIRECT, &mr);
	if (rc)
		return refuse_range(req, rc, rep);
	rep->mr.lkey = rep->mr.rkey = mr->key;
	rc = add_region(k, mr, m, rep);
	if (!rc)
		k->usage.registered_bytes += mr->len;
	return rc;
}

/* Of memory that other MRs name already: no byte more is registered. */
int mr_alloc(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct pd *pd = find_pd(k, req->handle, rep);
	struct mr *mr;
	uint32_t key;
	if (!pd)
		return -ENOENT;
	int rc = check_mrs(k, 0, rep);
	if (rc)
		return rc;
	rc = mw_allocate(k->core->env.mrs, pd, MR_FAST, &key, &mr);
	if (rc)
		return client_refuse(rep, rc, "an MR for fast registration cannot be made: %s", rc == -ENOSPC ? "the table of keys is full" : "out of memory");
	rep->mr.lkey = rep->mr.rkey = key;
	return add_region(k, mr, NULL, rep);
}

/* ---- changing one ---- */

/* IBA vol. 1, 10.6.7.2.6: a region with windows stays as it is, rather than leave them without memory. */
static int check_unbound(const struct region *r, struct abi_rep *rep)
{
	return r->mr->bound ? client_refuse(rep, -EBUSY, "%u windows or MRs for fast registration are bound to the MR; take them away first", r->mr->bound) : 0;
}

/* The region that is to be changed, when it can be. */
static int find_changeable(struct core_client *k, const struct abi_req *req, struct region **out, struct abi_rep *rep)
{
	struct region *r = handles_get(&k->regions, req->reg_mr.mr);
	uint32_t mask = req->reg_mr.mask;
	if (!r)
		return client_refuse(rep, -ENOENT, "no MR has the handle 0x%x", req->reg_mr.mr);
	if (!mask || mask & ~(uint32_t)(ABI_REREG_MEMORY | ABI_REREG_PD | ABI_REREG_ACCESS))
		return client_refuse(rep, -EINVAL, "an MR is changed in memory (1), PD (2), access (4) or several of these, and mask 0x%x is none", mask);
	if (r->mr->kind == MR_FAST)
		return client_refuse(rep, -EINVAL, "an MR for fast registration is changed by REG_MR work requests");
	*out = r;
	return check_unbound(r, rep);
}

/* What it holds moves from one block of pool memory to another, and its bytes are counted anew. */
static void move_region(struct core_client *k, struct region *r, struct memory *m, uint64_t bytes_before)
{
	if (m)
		m->refs++;
	if (r->memory)
		r->memory->refs--;
	r->memory = m;
	k->usage.registered_bytes += r->mr->len - bytes_before;
}

int mr_modify(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	uint32_t mask = req->reg_mr.mask;
	struct mr_change to = { .has_access = mask & ABI_REREG_ACCESS, .access = req->reg_mr.access, .has_memory = mask & ABI_REREG_MEMORY, .iova = req->reg_mr.iova, .len = req->reg_mr.len };
	struct memory *m = NULL;
	struct region *r = NULL;
	int rc = find_changeable(k, req, &r, rep);
	if (rc)
		return rc;
	if ((mask & ABI_REREG_PD) && !(to.pd = find_pd(k, req->reg_mr.pd, rep)))
		return -ENOENT;
	uint64_t before = r->mr->len;
	if (to.has_memory && to.len > before)
		rc = client_check_quota(k, &(struct core_usage){ .registered_bytes = to.len - before }, rep);
	if (!rc && to.has_memory)
		rc = locate(k, req, &m, &to.host, rep);
	if (rc)
		return rc;
	to.kind = m ? MR_POOL : MR_DIRECT;
	rc = mr_change(k->core->env.mrs, r->mr, &to);
	if (rc)
		return refuse_range(req, rc, rep);
	if (to.has_memory)
		move_region(k, r, m, before);
	rep->mr.lkey = rep->mr.rkey = r->mr->key;
	return 0;
}

int mr_end(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	const struct region *r = handles_get(&k->regions, req->handle);
	int rc = r ? check_unbound(r, rep) : 0;
	return rc ? rc : client_destroy(k, req, rep);
}

void mr_unbind(struct core_client *k, struct region *r)
{
	mw_unbind(k->core->env.mrs, r->mr);
}

void mr_destroy(struct core_client *k, uint32_t handle, struct region *r)
{
	handles_remove(&k->regions, handle);
	if (r->mr->kind != MR_FAST)
		k->usage.registered_bytes -= r->mr->len;
	mr_deregister(k->core->env.mrs, r->mr);
	if (r->memory)
		r->memory->refs--;
	free(r);
}

/* ---- memory windows ---- */

int mw_create(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct core *c = k->core;
	struct pd *pd = find_pd(k, req->create_mw.pd, rep);
	struct mr *mr;
	uint32_t key;
	if (!pd)
		return -ENOENT;
	if (req->create_mw.type != ABI_MW_TYPE_1 && req->create_mw.type != ABI_MW_TYPE_2)
		return client_refuse(rep, -EINVAL, "memory windows are of type 1 or 2 (2B), not %u", req->create_mw.type);
	if (c->n_mws >= c->config.max_mw)
		return client_refuse(rep, -ENOSPC, "the device has no more than %u memory windows", c->config.max_mw);
	int rc = client_check_quota(k, &(struct core_usage){ .mws = 1 }, rep);
	if (rc)
		return rc;
	rc = mw_allocate(c->env.mrs, pd, req->create_mw.type == ABI_MW_TYPE_1 ? MW_TYPE_1 : MW_TYPE_2, &key, &mr);
	if (!rc && !(rep->handle = handles_add(&k->mws, mr))) {
		mr_deregister(c->env.mrs, mr);
		rc = -ENOMEM;
	}
	if (rc)
		return client_refuse(rep, rc, "a memory window cannot be made: %s", rc == -ENOSPC ? "the table of keys is full" : "out of memory");
	c->n_mws++;
	rep->mr.lkey = rep->mr.rkey = key;
	return 0;
}

void mw_destroy(struct core_client *k, uint32_t handle, struct mr *mr)
{
	handles_remove(&k->mws, handle);
	k->core->n_mws--;
	mr_deregister(k->core->env.mrs, mr);
}

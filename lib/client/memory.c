/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, pool memory and memory regions, as the program sees them (IBA vol. 1, 10.2.3 and 10.6). Which accesses
 * a region grants is checked in the engine; this file only knows which memory is pool memory, names it to the engine by
 * offset, and keeps the order of destruction.
 * Invariant: pool blocks are disjoint, so that the tree of them may compare any two ranges that overlap as equal. */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

/* ---- protection domains ---- */

int uroce_pd_create(struct uroce_context *ctx, struct uroce_pd **out)
{
	struct abi_req req = { .type = ABI_CREATE_PD };
	struct abi_rep rep;
	struct uroce_pd *pd = object_new(ctx, OBJECT_PD, sizeof(*pd));
	int err;
	if (!pd)
		return -ENOMEM;
	context_lock(ctx);
	err = context_call(ctx, &req, &rep);
	context_unlock(ctx);
	if (err) {
		object_free(&pd->o);
		return err;
	}
	pd->o.handle = rep.handle;
	*out = pd;
	return 0;
}

int uroce_pd_destroy(struct uroce_pd *pd)
{
	struct uroce_context *ctx;
	int err;
	if (!pd)
		return 0;
	ctx = pd->o.ctx;
	context_lock(ctx);
	if (pd->refs) {
		log_write(context_log(ctx), LOG_WARN, "PD still used by %u other objects: destroy them first", pd->refs);
		err = -EBUSY;
	} else {
		err = context_call_handle(ctx, ABI_DESTROY_PD, pd->o.handle);
	}
	context_unlock(ctx);
	if (!err)
		object_free(&pd->o);
	return err;
}

/* ---- pool memory ---- */

static int compare_blocks(const void *va, const void *vb)
{
	const struct memory_block *a = va, *b = vb;
	if (a->base + a->bytes <= b->base)
		return -1;
	return b->base + b->bytes <= a->base;
}

static struct memory_block *find_block(const struct uroce_context *ctx, void *addr)
{
	struct memory_block key = { .base = addr, .bytes = 1 };
	struct memory_block **node = tfind(&key, &ctx->blocks, compare_blocks);
	return node ? *node : NULL;
}

static int map_block(struct uroce_context *ctx, size_t bytes, struct memory_block *block)
{
	struct abi_req req = { .type = ABI_ALLOC_MEMORY, .alloc_memory.bytes = bytes };
	struct abi_rep rep;
	void *base;
	int err = context_call(ctx, &req, &rep);
	if (err)
		return err;
	block->handle = rep.handle;
	block->bytes = rep.memory.bytes;
	err = rep.memory.bytes < bytes ? -EPROTO
				       : context_region(ctx, rep.memory.arena, rep.memory.offset, rep.memory.bytes, &base);
	if (!err) {
		block->base = base;
		err = tsearch(block, &ctx->blocks, compare_blocks) ? 0 : -ENOMEM;
	}
	if (err)
		context_call_handle(ctx, ABI_FREE_MEMORY, rep.handle);
	return err;
}

int uroce_alloc(struct uroce_context *ctx, size_t bytes, void **out)
{
	struct memory_block *block;
	int err;
	if (!bytes)
		return -EINVAL;
	block = calloc(1, sizeof(*block));
	if (!block)
		return -ENOMEM;
	context_lock(ctx);
	err = map_block(ctx, bytes, block);
	context_unlock(ctx);
	if (err) {
		free(block);
		return err;
	}
	memset(block->base, 0, block->bytes); /* it may have been ours before */
	*out = block->base;
	return 0;
}

static int free_block(struct uroce_context *ctx, void *p)
{
	struct memory_block *block = find_block(ctx, p);
	int err;
	if (!block || block->base != p) {
		log_write(context_log(ctx), LOG_WARN, "%p is not what uroce_alloc returned", p);
		return -EINVAL;
	}
	if (block->refs) {
		log_write(context_log(ctx), LOG_WARN, "memory at %p still used by %u MRs: deregister them first", p, block->refs);
		return -EBUSY;
	}
	err = context_call_handle(ctx, ABI_FREE_MEMORY, block->handle);
	if (err)
		return err;
	tdelete(block, &ctx->blocks, compare_blocks);
	free(block);
	return 0;
}

int uroce_free(struct uroce_context *ctx, void *p)
{
	int err;
	if (!p)
		return 0;
	context_lock(ctx);
	err = free_block(ctx, p);
	context_unlock(ctx);
	return err;
}

void memory_free_all(struct uroce_context *ctx)
{
	tdestroy(ctx->blocks, free);
	ctx->blocks = NULL;
}

/* ---- memory regions ---- */

/* The byte behind it may be the end of the address space. */
static bool is_wrapping(uint64_t from, size_t len)
{
	return len && from > UINT64_MAX - (len - 1);
}

static int check_range(struct uroce_context *ctx, const void *addr, size_t len, uint64_t iova)
{
	if (!is_wrapping((uintptr_t)addr, len) && !is_wrapping(iova, len))
		return 0;
	log_write(context_log(ctx), LOG_WARN, "range %p, iova 0x%llx, %zu bytes, runs over the end of the address space", addr,
		(unsigned long long)iova, len);
	return -EINVAL;
}

/* What a request says of the range, and the block of pool memory that it lies in. */
static int name_range(struct uroce_context *ctx, void *addr, size_t len, uint64_t iova, struct abi_req *req, struct memory_block **block)
{
	*block = find_block(ctx, addr);
	if (*block && len > (*block)->bytes - (uint64_t)((uint8_t *)addr - (*block)->base)) {
		log_write(context_log(ctx), LOG_WARN,
			"range %p, %zu bytes, runs out of the pool memory that it begins in: %p, %llu bytes", addr, len,
			(void *)(*block)->base, (unsigned long long)(*block)->bytes);
		return -EINVAL;
	}
	req->reg_mr.memory = *block ? (*block)->handle : 0;
	req->reg_mr.addr = *block ? (uint64_t)((uint8_t *)addr - (*block)->base) : (uint64_t)(uintptr_t)addr;
	req->reg_mr.len = len;
	req->reg_mr.iova = iova;
	return 0;
}

static int create_locked(struct uroce_mr *mr, struct abi_req *req)
{
	struct abi_rep rep;
	int err = context_call(mr->o.ctx, req, &rep);
	if (err)
		return err;
	mr->o.handle = rep.handle;
	mr->lkey = rep.mr.lkey;
	mr->rkey = rep.mr.rkey;
	mr->pd->refs++;
	if (mr->block)
		mr->block->refs++;
	return 0;
}

static int register_locked(struct uroce_mr *mr, void *addr, size_t len, uint64_t iova, uint32_t access)
{
	struct abi_req req = { .type = ABI_REG_MR };
	int err = name_range(mr->o.ctx, addr, len, iova, &req, &mr->block);
	req.reg_mr.pd = mr->pd->o.handle;
	req.reg_mr.access = access;
	return err ? err : create_locked(mr, &req);
}

int uroce_mr_register_iova(struct uroce_pd *pd, void *addr, size_t len, uint64_t iova, uint32_t access, struct uroce_mr **out)
{
	struct uroce_context *ctx = pd->o.ctx;
	struct uroce_mr *mr;
	int err = check_range(ctx, addr, len, iova);
	if (err)
		return err;
	mr = object_new(ctx, OBJECT_MR, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->pd = pd;
	context_lock(ctx);
	err = register_locked(mr, addr, len, iova, access);
	context_unlock(ctx);
	if (err) {
		object_free(&mr->o);
		return err;
	}
	*out = mr;
	return 0;
}

int uroce_mr_register(struct uroce_pd *pd, void *addr, size_t len, uint32_t access, struct uroce_mr **out)
{
	return uroce_mr_register_iova(pd, addr, len, (uint64_t)(uintptr_t)addr, access, out);
}

int uroce_mr_alloc(struct uroce_pd *pd, struct uroce_mr **out)
{
	struct uroce_context *ctx = pd->o.ctx;
	struct uroce_mr *mr = object_new(ctx, OBJECT_MR, sizeof(*mr));
	struct abi_req req = { .type = ABI_ALLOC_MR, .handle = pd->o.handle };
	int err;
	if (!mr)
		return -ENOMEM;
	mr->pd = pd;
	context_lock(ctx);
	err = create_locked(mr, &req);
	context_unlock(ctx);
	if (err) {
		object_free(&mr->o);
		return err;
	}
	*out = mr;
	return 0;
}

static int change_locked(struct uroce_mr *mr, const struct uroce_mr_attr *to, uint32_t mask)
{
	struct abi_req req = { .type = ABI_REREG_MR };
	struct abi_rep rep;
	struct memory_block *block = mr->block;
	int err = mask & UROCE_MR_MEMORY ? name_range(mr->o.ctx, to->addr, to->len, to->iova, &req, &block) : 0;
	if (err)
		return err;
	req.reg_mr.mr = mr->o.handle;
	req.reg_mr.mask = mask;
	req.reg_mr.pd = mask & UROCE_MR_PD ? to->pd->o.handle : 0;
	req.reg_mr.access = to->access;
	err = context_call(mr->o.ctx, &req, &rep);
	if (err)
		return err;
	mr->lkey = rep.mr.lkey;
	mr->rkey = rep.mr.rkey;
	if (block)
		block->refs++;
	if (mr->block)
		mr->block->refs--;
	mr->block = block;
	if (mask & UROCE_MR_PD) {
		mr->pd->refs--;
		mr->pd = to->pd;
		mr->pd->refs++;
	}
	return 0;
}

int uroce_mr_reregister(struct uroce_mr *mr, const struct uroce_mr_attr *to, uint32_t mask)
{
	struct uroce_context *ctx = mr->o.ctx;
	int err = mask & UROCE_MR_MEMORY ? check_range(ctx, to->addr, to->len, to->iova) : 0;
	if (err)
		return err;
	if (mask & UROCE_MR_PD && (!to->pd || to->pd->o.ctx != ctx)) {
		log_write(context_log(ctx), LOG_WARN, "MR not changed: the PD is %s", to->pd ? "of another context" : "missing");
		return -EINVAL;
	}
	context_lock(ctx);
	err = change_locked(mr, to, mask);
	context_unlock(ctx);
	return err;
}

int uroce_mr_deregister(struct uroce_mr *mr)
{
	struct uroce_context *ctx;
	int err;
	if (!mr)
		return 0;
	ctx = mr->o.ctx;
	context_lock(ctx);
	err = context_call_handle(ctx, ABI_DEREG_MR, mr->o.handle);
	if (!err) {
		mr->pd->refs--;
		if (mr->block)
			mr->block->refs--;
	}
	context_unlock(ctx);
	if (!err)
		object_free(&mr->o);
	return err;
}

uint32_t uroce_mr_lkey(const struct uroce_mr *mr)
{
	return mr->lkey;
}

uint32_t uroce_mr_rkey(const struct uroce_mr *mr)
{
	return mr->rkey;
}

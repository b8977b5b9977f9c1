/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching QPs to multicast groups (IBA vol. 1, 11.3). Who is in which group is the engine's to remember: nothing is kept here. */
#include <string.h>

#include "client.h"

static int ask(struct uroce_qp *qp, enum abi_msg type, const struct uroce_gid *group)
{
	struct uroce_context *ctx = qp->o.ctx;
	struct abi_req req = { .type = type };
	struct abi_rep rep;
	int err;
	req.group.qp = qp->o.handle;
	memcpy(req.group.gid, group->raw, sizeof(req.group.gid));
	context_lock(ctx);
	err = context_call(ctx, &req, &rep);
	context_unlock(ctx);
	return err;
}

int uroce_qp_attach_multicast(struct uroce_qp *qp, const struct uroce_gid *group)
{
	return ask(qp, ABI_ATTACH_MULTICAST, group);
}

int uroce_qp_detach_multicast(struct uroce_qp *qp, const struct uroce_gid *group)
{
	return ask(qp, ABI_DETACH_MULTICAST, group);
}

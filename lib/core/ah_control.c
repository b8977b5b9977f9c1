/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests for address handles (IBA vol. 1, 11.2.2.1). The handle is what a WQE names; what is behind it is ud.c's. */
#include <errno.h>
#include <stdlib.h>

#include "machine.h"

static const char *why_not_opened(int rc)
{
	return rc == -EINVAL ? "no such GID index, the address families differ, or it is no host's address" : rc == -ENETUNREACH ? "no route" : "too many addresses are being resolved";
}

int ah_create(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct core *c = k->core;
	struct pd *pd = handles_get(&k->pds, req->create_ah.pd);
	if (!pd)
		return client_refuse(rep, -ENOENT, "no PD has the handle 0x%x", req->create_ah.pd);
	if (k->ahs.count >= c->config.max_ah)
		return client_refuse(rep, -ENOMEM, "the device has no more than %u AHs", c->config.max_ah);
	int rc = client_check_quota(k, &(struct core_usage){ .ahs = 1 }, rep);
	if (rc)
		return rc;
	struct ud_ah *a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	rc = ud_ah_open(a, c->env.addr, &req->create_ah.av, pd, c->env.now_ns);
	if (rc) {
		char text[GID_TEXT_MAX];
		struct gid peer;
		memcpy(peer.b, req->create_ah.av.dgid, sizeof(peer.b));
		free(a);
		return client_refuse(rep, rc, "no path from GID index %u to %s: %s", req->create_ah.av.sgid_index, gid_format(&peer, text), why_not_opened(rc));
	}
	rep->handle = handles_add(&k->ahs, a);
	if (rep->handle)
		return 0;
	ud_ah_close(a);
	free(a);
	return -ENOMEM;
}

void ah_destroy(struct core_client *k, uint32_t handle, struct ud_ah *a)
{
	handles_remove(&k->ahs, handle); /* before those who wait for it look again */
	ud_ah_close(a);
	free(a);
}

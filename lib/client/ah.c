/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's handle of an address handle (IBA vol. 1, 11.2.2.1), and the way from a datagram that came to the address
 * vector of its sender (11.2.2.5, annex A17.4.5). Posting with it is post.c's. */
#include <errno.h>
#include <string.h>

#include "client.h"

static struct uroce_gid map_ip4(const uint8_t *ip)
{
	struct uroce_gid g = { .raw = { [10] = 0xff, [11] = 0xff } };
	memcpy(g.raw + 12, ip, 4);
	return g;
}

static bool is_ip4(const struct uroce_gid *g)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	return !memcmp(g->raw, mapped, sizeof(mapped));
}

static bool is_group(const struct uroce_gid *g)
{
	return g->raw[0] == 0xff || (is_ip4(g) && (g->raw[12] & 0xf0) == 0xe0);
}

int uroce_ah_create(struct uroce_pd *pd, const struct uroce_av *av, struct uroce_ah **out)
{
	struct uroce_context *ctx = pd->o.ctx;
	struct uroce_ah *ah = object_new(ctx, OBJECT_AH, sizeof(*ah));
	struct abi_req req = { .type = ABI_CREATE_AH };
	struct abi_rep rep;
	int err;
	if (!ah)
		return -ENOMEM;
	ah->pd = pd;
	ah->is_group = is_group(&av->dgid);
	req.create_ah.pd = pd->o.handle;
	qp_client_pack_av(&req.create_ah.av, av);
	context_lock(ctx);
	err = context_call(ctx, &req, &rep);
	if (!err) {
		ah->o.handle = rep.handle;
		pd->refs++;
	}
	context_unlock(ctx);
	if (err) {
		object_free(&ah->o);
		return err;
	}
	*out = ah;
	return 0;
}

int uroce_ah_destroy(struct uroce_ah *ah)
{
	struct uroce_context *ctx;
	int err;
	if (!ah)
		return 0;
	ctx = ah->o.ctx;
	context_lock(ctx);
	err = context_call_handle(ctx, ABI_DESTROY_AH, ah->o.handle);
	if (!err)
		ah->pd->refs--;
	context_unlock(ctx);
	if (!err)
		object_free(&ah->o);
	return err;
}

/* ---- from a datagram ---- */

enum { IP4_AT = 20, IP4_TOS = 21, IP4_SRC = 32, IP4_DST = 36, IP6_SRC = 8, IP6_DST = 24 };

/* The GID that the datagram was sent to; of one to a group the first that the answer can come from. */
static int find_own(struct uroce_context *ctx, const struct uroce_gid *dst, uint16_t vlan, uint32_t *index)
{
	struct uroce_device_attr device;
	struct uroce_gid g;
	uint16_t on;
	int err = uroce_query_device(ctx, &device);
	for (uint32_t i = 0; !err && i < device.gid_slots; i++) {
		if (uroce_query_gid(ctx, i, &g, &on) || on != vlan)
			continue;
		if (is_group(dst) ? is_ip4(&g) != is_ip4(dst) : memcmp(&g, dst, sizeof(g)) != 0)
			continue;
		*index = i;
		return 0;
	}
	return err ? err : -EADDRNOTAVAIL;
}

int uroce_av_from_wc(struct uroce_context *ctx, const struct uroce_wc *wc, const void *grh, struct uroce_av *av)
{
	static const uint8_t nothing[IP4_AT];
	const uint8_t *b = grh;
	struct uroce_gid dst;
	struct uroce_av to = { .sl = wc->sl };
	uint8_t traffic_class;
	int err;
	if (!(wc->flags & UROCE_WC_HAS_GRH))
		return -EINVAL;
	if (!memcmp(b, nothing, sizeof(nothing)) && b[IP4_AT] == 0x45) {
		to.dgid = map_ip4(b + IP4_SRC);
		dst = map_ip4(b + IP4_DST);
		traffic_class = b[IP4_TOS];
	} else if (b[0] >> 4 == 6) {
		memcpy(to.dgid.raw, b + IP6_SRC, 16);
		memcpy(dst.raw, b + IP6_DST, 16);
		to.flow_label = (uint32_t)(b[1] & 0xf) << 16 | (uint32_t)b[2] << 8 | b[3];
		traffic_class = (uint8_t)(b[0] << 4 | b[1] >> 4);
	} else {
		return -EINVAL;
	}
	to.traffic_class = traffic_class & 0xfc; /* congestion on the way here says nothing of the way back */
	err = find_own(ctx, &dst, wc->vlan, &to.sgid_index);
	if (!err)
		*av = to;
	return err;
}

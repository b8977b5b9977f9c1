/* SPDX-License-Identifier: BSD-3-Clause */
/* BTH and extension headers, pad and payload. Owns every length check behind the UDP header; whether opcode, sizes and PSN
 * suit a QP is the QP's business. Invariant: nothing is read before the length that covers it was compared.
 * IBA vol. 1, 9.2 (BTH), 9.3 (extension headers), 9.2.3 (PadCnt), 7.8.1 (ICRC); annexes A14 (XRC), A17, A19. MigReq, FECN, BECN
 * and reserved bits are not looked at, except that MigReq is told to the reader. */
#include "bth.h"

#include "build.h"
#include "bytes.h"

/* In the order in which the specification stacks the headers; the caller has checked op->header_len. */
static void read_extensions(struct packet *p, const uint8_t *at)
{
	unsigned flags = p->op->flags;
	if (flags & OPCODE_DETH) {
		p->deth = (struct deth){ get_be32(at), get_be32(at + 4) & 0xffffff };
		at += 8;
	}
	if (flags & OPCODE_XRCETH)
		at += 4;
	if (flags & OPCODE_FETH) {
		uint32_t v = get_be32(at);
		p->feth = (struct feth){ v & 0xf, v >> 4 & 3 };
		at += 4;
	}
	if (flags & OPCODE_RETH) {
		p->reth = (struct reth){ get_be64(at), get_be32(at + 8), get_be32(at + 12) };
		at += 16;
	}
	if (flags & OPCODE_AETH) {
		uint32_t v = get_be32(at);
		p->aeth = (struct aeth){ (uint8_t)(v >> 24), v & 0xffffff };
		at += 4;
	}
	if (flags & (OPCODE_ATOMIC | OPCODE_ATOMIC_ACK)) {
		if (flags & OPCODE_ATOMIC)
			p->atomic = (struct atomic_eth){ get_be64(at), get_be32(at + 8), get_be64(at + 12), get_be64(at + 20) };
		else
			p->atomic_original = get_be64(at);
	}
	/* No opcode has both, nor either with an atomic. */
	if (flags & OPCODE_IMMEDIATE)
		memcpy(&p->immediate, at, 4);
	else if (flags & OPCODE_INVALIDATE)
		p->invalidate_rkey = get_be32(at);
}

enum drop bth_parse(struct packet *p, const uint8_t *udp_payload, uint32_t len)
{
	const uint8_t *bth = udp_payload;
	uint32_t body, word;

	p->bth = bth;
	if (len < BTH_LEN + ICRC_LEN)
		return DROP_BTH_RUNT;
	if (bth[1] & 0x0f)
		return DROP_BTH_VERSION;
	const struct opcode *op = opcode_of(bth[0]);
	if (!op)
		return DROP_OPCODE;
	if (len < op->header_len + ICRC_LEN)
		return DROP_HEADERS_RUNT;

	p->op = op;
	p->solicited = bth[1] >> 7;
	p->mig_request = bth[1] >> 6 & 1;
	p->pad = bth[1] >> 4 & 3;
	p->pkey = get_be16(bth + 2);
	p->dqpn = get_be32(bth + 4) & 0xffffff;
	word = get_be32(bth + 8);
	p->ack_request = word >> 31;
	p->psn = psn_make(word);
	read_extensions(p, bth + BTH_LEN);

	/* Payload and pad together are whole words (9.2.3); what cannot carry payload has neither. */
	body = len - op->header_len - ICRC_LEN;
	if (op->flags & OPCODE_PAYLOAD ? body & 3 : body | p->pad)
		return DROP_PAD;
	if (body < p->pad)
		return DROP_HEADERS_RUNT;
	p->payload = bth + op->header_len;
	p->payload_len = body - p->pad;
	return DROP_NONE;
}

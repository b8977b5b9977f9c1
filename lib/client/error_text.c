/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce_qp_error_text: asks the engine for its record of a QP. The sentence is error_sentence.c's. */
#include "client.h"
#include "error_sentence.h"

int uroce_qp_error_text(struct uroce_qp *qp, char *text, size_t len)
{
	struct abi_req req = { .type = ABI_QUERY_QP, .handle = qp->o.handle };
	struct abi_rep rep;
	int err;
	if (len)
		text[0] = '\0';
	context_lock(qp->o.ctx);
	err = context_call(qp->o.ctx, &req, &rep);
	context_unlock(qp->o.ctx);
	if (err)
		return err;
	if (rep.query_qp.attr.state != ABI_QP_ERR && rep.query_qp.attr.state != ABI_QP_SQE)
		return 0;
	return error_sentence(text, len, qp->qpn, &rep.query_qp.error);
}

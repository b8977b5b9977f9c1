/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a QP is in ERR or SQE, in words: for programs (uroce_qp_error_text) and for operators of an engine alike. */
#ifndef UROCE_ERROR_SENTENCE_H
#define UROCE_ERROR_SENTENCE_H

#include <stddef.h>
#include <stdint.h>

#include "msg.h"

/* Writes what fits of one sentence, terminated unless len is 0. Returns its whole length. Any thread. */
int error_sentence(char *text, size_t len, uint32_t qpn, const struct abi_qp_error *e);

#endif

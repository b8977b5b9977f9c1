/* SPDX-License-Identifier: BSD-3-Clause */
/* What must hold of a core and its QPs between any two calls into it, whatever the peer and the program did. */
#ifndef UROCE_FUZZ_QP_CHECK_H
#define UROCE_FUZZ_QP_CHECK_H

#include "machine.h"

/* Prints and aborts when it is not so. */
void check_true(bool is_true, const char *what);
void check_core(const struct core *c);
void check_qp(const struct qp *q);

#endif

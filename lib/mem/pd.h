/* SPDX-License-Identifier: BSD-3-Clause */
/* A protection domain (IBA vol. 1, 10.2.3): what ties QPs, MRs and (later) MWs, AHs and SRQs together. It counts what refers to it and cannot go before them. */
#ifndef UROCE_PD_H
#define UROCE_PD_H

#include <stdint.h>

struct pd {
	uint32_t id;   /* for logs */
	uint32_t refs; /* MRs and QPs */
};

#endif

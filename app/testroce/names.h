/* SPDX-License-Identifier: BSD-3-Clause */
/* InfiniBand's words for the values of uroce.h. Never NULL, for any number. */
#ifndef TESTROCE_NAMES_H
#define TESTROCE_NAMES_H

const char *name_opcode(unsigned opcode);       /* enum uroce_opcode */
const char *name_wc_opcode(unsigned opcode);    /* enum uroce_wc_opcode */
const char *name_service(unsigned service);     /* enum uroce_service */
const char *name_qp_state(unsigned state);      /* enum uroce_qp_state */
const char *name_event(unsigned type);          /* enum uroce_event_type */
const char *name_event_text(unsigned type);     /* and what it says */

#endif

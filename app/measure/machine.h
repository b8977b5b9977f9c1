/* SPDX-License-Identifier: BSD-3-Clause */
/* What tells whether two processes are on one machine. */
#ifndef APP_MACHINE_H
#define APP_MACHINE_H

/* The same text in every process of this running kernel, in all its containers and namespaces. */
void machine_read(char text[64]);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The results for people: on a terminal, and as a page. Both show the document that result_document made. */
#ifndef COMPARE_TABLE_H
#define COMPARE_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

void table_print(json_t *document);
/* Writes the page, complete in one file. false: there is no memory, said on standard error; whether all could be written is known when the file is closed. */
bool page_write(FILE *f, json_t *document);

#endif

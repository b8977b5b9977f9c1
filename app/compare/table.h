/* SPDX-License-Identifier: BSD-3-Clause */
/* The results for people: on a terminal, and as a page. Both show the document that result_document made. */
#ifndef COMPARE_TABLE_H
#define COMPARE_TABLE_H

#include <jansson.h>
#include <stdbool.h>

void table_print(json_t *document);
/* Writes the page, complete in one file. false: it could not be written, said on standard error. */
bool page_write(const char *path, json_t *document);

#endif

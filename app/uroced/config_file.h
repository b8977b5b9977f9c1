/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of [section] and key = value, # for comments, read by librte_cfgfile, which passes over lines that it cannot read: their shape is checked before. */
#ifndef UROCED_CONFIG_FILE_H
#define UROCED_CONFIG_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* Calls take for each key, in order, until it returns false; for a section without any, once with key NULL. true: all were read and taken. false: after one line to err, by this or by take. */
bool config_file_read(const char *path, bool (*take)(void *arg, const char *section, const char *key, const char *value), void *arg, FILE *err);

#endif

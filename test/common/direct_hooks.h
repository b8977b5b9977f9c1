/* SPDX-License-Identifier: BSD-3-Clause */
/* Hooks of a core whose ring memory comes straight from malloc, so that a sanitizer sees where a region ends; channels as the default. */
#ifndef UROCE_TEST_DIRECT_HOOKS_H
#define UROCE_TEST_DIRECT_HOOKS_H

#include "core.h"

extern const struct core_hooks direct_hooks;

#endif

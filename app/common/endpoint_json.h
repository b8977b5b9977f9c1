/* SPDX-License-Identifier: BSD-3-Clause */
/* What two programs tell each other to connect their QPs, as JSON. */
#ifndef APP_ENDPOINT_JSON_H
#define APP_ENDPOINT_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "uroce.h"

/* A new array; NULL: no memory. */
json_t *endpoint_pack(const struct uroce_endpoint *p);
/* false: it is none. */
bool endpoint_unpack(json_t *item, struct uroce_endpoint *p);

#endif

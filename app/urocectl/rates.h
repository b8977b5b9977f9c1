/* SPDX-License-Identifier: BSD-3-Clause */
/* From two reports of the same noun, a moment apart, to what happened in between. */
#ifndef UROCECTL_RATES_H
#define UROCECTL_RATES_H

#include <jansson.h>

struct rate_field {
	const char *key;  /* NULL: the end */
	const char *as;   /* what it is called then, with its unit; NULL: it is taken over as it is */
	double factor;    /* of the difference, for each second */
};

/* For each row of `now` one with these fields, in the order of the sum of the first two rates, the largest first. `id` names a row; one that was not there before began at 0. The caller's to json_decref. */
json_t *rates_between(const json_t *before, const json_t *now, const char *id, const struct rate_field *fields, double seconds);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a daemon that does nothing but be there: says "attached", then asks for the device again and again until that fails, and says with what. For test_uroced.py.
 *   uroced_client DEVICE */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "uroce.h"

int main(int argc, char **argv)
{
	struct uroce_context *ctx;
	struct uroce_device_attr attr;
	const struct timespec pause = { .tv_nsec = 5000000 };
	int err = argc == 2 ? uroce_open(argv[1], NULL, &ctx) : -EINVAL;
	if (err) {
		printf("refused: %s\n", strerrorname_np(-err));
		return 1;
	}
	printf("attached\n");
	fflush(stdout);
	while (!(err = uroce_query_device(ctx, &attr)))
		nanosleep(&pause, NULL);
	printf("ended: %s\n", strerrorname_np(-err));
	uroce_close(ctx);
	return 0;
}

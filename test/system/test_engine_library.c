/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that links liburoce and knows nothing of DPDK: uroce_open loads the engine (UROCE_ENGINE_LIBRARY names the one just built). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "uroce.h"

static char last_line[512];

static void take_line(void *arg, int level, const char *line)
{
	snprintf(last_line, sizeof(last_line), "%s", line);
}

static const struct uroce_open_attr quiet = { .log = take_line };

static void test_engine_is_loaded_on_demand(void **state)
{
	struct uroce_context *ctx;
	struct uroce_device_attr attr;
	struct uroce_gid gid;
	static const uint8_t mapped[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 4, 0, 1 };
	assert_null(dlsym(RTLD_DEFAULT, "rte_eal_init"));
	assert_int_equal(uroce_open("inline:net_ring,link=l,side=0,ip=10.4.0.1/24", &quiet, &ctx), 0);
	assert_int_equal(uroce_query_device(ctx, &attr), 0);
	assert_int_equal(attr.mode, 1);
	assert_int_equal(attr.active_mtu, 4096);
	assert_int_equal(uroce_query_gid(ctx, 0, &gid, NULL), 0);
	assert_memory_equal(gid.raw, mapped, 16);
	assert_int_equal(uroce_engine_poll(ctx), 0);
	/* What lies under the engine stays out of the program's sight. */
	assert_null(dlsym(RTLD_DEFAULT, "rte_eal_init"));
	assert_null(dlsym(RTLD_DEFAULT, "core_new"));
	uroce_close(ctx);
}

static void test_library_exports_only_its_own(void **state)
{
	static const char *const hidden[] = { "core_new", "engine_open", "log_write", "uroce_open", "uroce_cq_poll", "context_open", "port_open" };
	void *lib = dlopen(getenv("UROCE_ENGINE_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
	assert_non_null(lib);
	assert_non_null(dlsym(lib, "uroce_engine_session_open"));
	for (unsigned i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (dlsym(lib, hidden[i]))
			fail_msg("%s is exported", hidden[i]);
	assert_int_equal(dlclose(lib), 0);
}

/* The reason reaches the program's log in one line, with the errno that says the kind. */
static void test_refusal_reaches_the_program(void **state)
{
	struct uroce_context *ctx;
	assert_int_equal(uroce_open("embedded:net_ring,link=l,side=3,ip=10.4.0.1/24", &quiet, &ctx), -EINVAL);
	assert_non_null(strstr(last_line, "side=3"));
	assert_non_null(strstr(last_line, "0 or 1"));
}

static void test_again_and_embedded(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct uroce_context *ctx;
		struct uroce_device_attr attr;
		assert_int_equal(uroce_open("embedded:net_ring,link=l,side=1,ip=10.4.0.2/24", &quiet, &ctx), 0);
		assert_int_equal(uroce_query_device(ctx, &attr), 0);
		assert_int_equal(attr.mode, 0);
		uroce_close(ctx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_engine_is_loaded_on_demand),
		cmocka_unit_test(test_library_exports_only_its_own),
		cmocka_unit_test(test_refusal_reaches_the_program),
		cmocka_unit_test(test_again_and_embedded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

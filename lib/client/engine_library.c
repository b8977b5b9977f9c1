/* SPDX-License-Identifier: BSD-3-Clause */
/* A session with an engine in this process. Owns the finding of its code; what the device string says is the engine's to
 * read.
 * The engine is found in this order: linked into the program, loaded by somebody already, liburoce-engine.so.0 loaded here.
 * Once loaded it stays: DPDK cannot be unloaded. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

#define ENGINE_LIBRARY "liburoce-engine.so.0"

/* A program that links the engine statically need not export its symbols: this reference finds it all the same, and is NULL
 * where it is not. */
extern uroce_engine_session_open_fn uroce_engine_session_open __attribute__((weak));

/* The engine's library beside the file that this code is in. */
static bool get_neighbour(char path[PATH_MAX])
{
	Dl_info here;
	const char *slash;
	int len;
	if (!dladdr((void *)&engine_library_open, &here) || !here.dli_fname)
		return false;
	slash = strrchr(here.dli_fname, '/');
	if (!slash)
		return false;
	len = snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - here.dli_fname), here.dli_fname, ENGINE_LIBRARY);
	return len > 0 && len < PATH_MAX;
}

static void *load(const struct log *log)
{
	char path[PATH_MAX];
	const char *chosen = secure_getenv("UROCE_ENGINE_LIBRARY");
	const int mode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
	void *lib = NULL;
	if (chosen && *chosen) {
		lib = dlopen(chosen, mode);
	} else {
		if (get_neighbour(path))
			lib = dlopen(path, mode);
		if (!lib)
			lib = dlopen(ENGINE_LIBRARY, mode);
	}
	if (!lib)
		log_write(log, LOG_ERROR, "no engine: %s; install it beside liburoce, or name its file in UROCE_ENGINE_LIBRARY",
			dlerror());
	return lib;
}

static uroce_engine_session_open_fn *find_engine(const struct log *log)
{
	void *lib, *symbol;
	if (uroce_engine_session_open)
		return uroce_engine_session_open;
	symbol = dlsym(RTLD_DEFAULT, UROCE_ENGINE_SESSION_OPEN);
	if (!symbol) {
		lib = load(log);
		if (!lib)
			return NULL;
		symbol = dlsym(lib, UROCE_ENGINE_SESSION_OPEN);
		if (!symbol)
			log_write(log, LOG_ERROR,
				"the engine library has no " UROCE_ENGINE_SESSION_OPEN
				": it is not an engine, or of another version (%s)",
				dlerror());
	}
	return (uroce_engine_session_open_fn *)symbol;
}

int engine_library_open(const struct client_log *log, const char *device, const struct uroce_open_attr *attr,
	const struct session_ops **ops, void **session)
{
	uroce_engine_session_open_fn *open = find_engine(&log->log);
	return open ? open(device, attr, ops, session) : -ENOENT;
}

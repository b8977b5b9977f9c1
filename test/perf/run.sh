#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Measures the figures of uroce beside the physical limit of this machine: test/perf/run.sh --help
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build-perf}
[ -f "$build/build.ninja" ] || meson setup "$build" --buildtype=release >"${TMPDIR:-/tmp}/uroce-perf-setup.log"
ninja -C "$build" test/perf/limits test/perf/bench test/perf/tcp test/perf/qp_memory test/perf/application test/perf/round_cost app/uroced/uroced lib/liburoce-engine.so.0 >/dev/null
exec /usr/bin/python3 test/perf/run.py --build "$build" "$@"

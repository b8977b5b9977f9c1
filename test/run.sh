#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs what is missing (root), builds with warnings as errors, runs the tests and counts them.
#   test/run.sh             every suite that this machine can run
#   test/run.sh SUITE...    only these: unit trace sim abi fuzz system interop
#   test/run.sh --list      every test with its suite and the rows of the list of known bugs that it covers
#   test/run.sh --list --rows   the same by row
# The last line is `N passed, N failed`, with `, N skipped` when some were. A test that several builds run counts once, and fails when it failed in one.
# Environment: FUZZ_SECONDS, how long each fuzz target runs (60); UROCE_SHARED, where captures of other stacks are; TMPDIR, for builds when the checkout is read-only.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
all_suites="unit trace sim abi fuzz system interop"

usage() {
	sed -n '3,9s/^# \{0,1\}//p' "$0"
	exit "$1"
}

suites=()
while [ $# -gt 0 ]; do
	case $1 in
	--list)
		shift
		exec python3 "$top/test/list.py" "$top" "$@"
		;;
	-h | --help) usage 0 ;;
	*)
		if [[ " $all_suites " != *" $1 "* ]]; then
			echo "no suite $1; there are: $all_suites" >&2
			exit 2
		fi
		suites+=("$1")
		;;
	esac
	shift
done
[ ${#suites[@]} -gt 0 ] || read -ra suites <<<"$all_suites"

wants() {
	[[ " ${suites[*]} " == *" $1 "* ]]
}

# Those of the arguments that were asked for.
wanted_of() {
	local s
	for s in "$@"; do
		if wants "$s"; then echo "$s"; fi
	done
}

say() {
	echo "== $*"
}

# shellcheck source=config/packages.sh disable=SC1091
. "$top/config/packages.sh"
wants interop || INTEROP_PACKAGES=
# shellcheck disable=SC2086 # lists of words
install_missing $BUILD_PACKAGES $TEST_PACKAGES $INTEROP_PACKAGES || echo "going on with what there is" >&2

[ "$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)" -gt 0 ] 2>/dev/null ||
	echo "warning: no huge pages free; the tests run without (sudo config/hugepages.sh 1024 reserves 1 GiB)"

root=$top
for d in "$top" "$top/build" "$top/build-asan" "$top/build-fuzz"; do
	if [ -e "$d" ] && [ ! -w "$d" ]; then
		root=${TMPDIR:-/tmp}/uroce-build-$(id -u)
		mkdir -p "$root"
		echo "$d cannot be written: building in $root"
		break
	fi
done
trap 'give_to_owner "$root"/build{,-asan,-fuzz} || true' EXIT

# configure FOLDER OPTION...: a build folder with these options, whether it is there or not.
configure() {
	local folder=$root/$1 log=$root/$1/run.sh.log
	shift
	mkdir -p "$folder"
	if [ -f "$folder/build.ninja" ]; then
		meson configure "$folder" "$@" >"$log" 2>&1
	else
		meson setup "$folder" "$top" "$@" >"$log" 2>&1
	fi || {
		tail -n 20 "$log"
		return 1
	}
}

# compile FOLDER TARGET...: says only what went wrong.
compile() {
	local folder=$root/$1 log=$root/$1/run.sh.log
	shift
	ninja -C "$folder" "$@" >"$log" 2>&1 || {
		grep -A 12 -E '^FAILED|error:' "$log" | head -n 60
		return 1
	}
}

results=()   # pairs of a build's name and its meson log
broken=()    # what could not be built, counted as a failure each

# run_suites FOLDER SUITE...
run_suites() {
	local name=$1 folder=$root/$1 s
	shift
	local args=()
	for s in "$@"; do args+=(--suite "$s"); done
	rm -f "$folder/meson-logs/run.json"
	# cmocka then counts its tests one by one, and so do ours; what failed is printed by count.py
	CMOCKA_MESSAGE_OUTPUT=tap ASAN_OPTIONS=${ASAN_OPTIONS:-abort_on_error=0:detect_leaks=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1} \
		meson test -C "$folder" --no-rebuild --logbase run --quiet "${args[@]}" >"$folder/run.sh.log" 2>&1 || true
	results+=("$name" "$folder/meson-logs/run.json")
}

# build_and_run FOLDER "TARGETS" "SUITES" OPTION...
build_and_run() {
	local folder=$1 targets=$2 list=$3
	shift 3
	[ -n "$list" ] || return 0
	say "$folder: $(echo "$list" | xargs)"
	# shellcheck disable=SC2086 # lists of words
	if configure "$folder" "$@" && compile "$folder" $targets; then
		run_suites "$folder" $list
	else
		broken+=("$folder")
	fi
}

build_and_run build "" "$(wanted_of unit trace sim abi fuzz system interop)" -Dwerror=true -Dbuildtype=release -Db_ndebug=if-release
build_and_run build-asan "" "$(wanted_of unit trace sim abi fuzz)" -Dwerror=true -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false
if wants fuzz; then
	if command -v clang >/dev/null; then
		CC=clang build_and_run build-fuzz fuzz_targets fuzz -Dwerror=true -Dbuildtype=debugoptimized -Dfuzz=true -Dengine=disabled -Db_lundef=false \
			-Dfuzz_seconds="${FUZZ_SECONDS:-60}"
	else
		echo "skipped: the fuzzers, since there is no clang"
	fi
fi

if wants interop && [ -s "$root/build/test/interop/matrix.md" ]; then
	say "interop: sizes that passed of those tried"
	cat "$root/build/test/interop/matrix.md"
fi
python3 "$top/test/count.py" "${results[@]}" -- "${broken[@]}"

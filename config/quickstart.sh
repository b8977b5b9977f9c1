#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# From nothing to two hosts talking RDMA: installs what is missing (root), builds, moves and checks data with every operation, and prints what it measured beside kernel TCP over the same path.
#   sudo config/quickstart.sh    two network namespaces joined by a veth pair, an engine on each with net_af_packet; both are removed again
#   config/quickstart.sh         not root: two engines in one process over a ring pair
# Exit code 0 only if all data was right. Environment: QUICKSTART_MTU, of the veth pair (4200, for a path MTU of 4096).
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build
[ -w "$top" ] || build=${TMPDIR:-/tmp}/uroce-build-$(id -u)/build
mtu=${QUICKSTART_MTU:-4200}
port=7471
a=uroce-a-$$
b=uroce-b-$$
server=

say() {
	printf '\n== %s\n' "$*"
}

clean_up() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	ip netns del "$a" 2>/dev/null || true
	ip netns del "$b" 2>/dev/null || true
}

# shellcheck source=config/packages.sh disable=SC1091
. "$top/config/packages.sh"
# shellcheck disable=SC2086 # a list of words
install_missing $BUILD_PACKAGES iproute2 || echo "going on with what there is" >&2

say "building in $build"
[ -f "$build/build.ninja" ] || meson setup "$build" "$top" --buildtype=release >"${TMPDIR:-/tmp}/uroce-setup-$$.log" || {
	cat "${TMPDIR:-/tmp}/uroce-setup-$$.log"
	exit 1
}
rm -f "${TMPDIR:-/tmp}/uroce-setup-$$.log"
ninja -C "$build" -v app/perf/uroce-perf lib/liburoce-engine.so.0 >"$build/quickstart.log" 2>&1 || {
	grep -A 12 -E '^FAILED|error:' "$build/quickstart.log" | head -n 40
	exit 1
}
perf=$build/app/perf/uroce-perf
[ "$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)" -gt 0 ] || echo "warning: no huge pages free; going on without, somewhat slower (sudo config/hugepages.sh reserves some)"

# Everything but the size of the report is the same in both layouts.
check="--op all --sizes 0,1,1023,4096,4097,65536,1M,64M --verify --iters 20"
figures="--op all --sizes 8,4096,65536,1M --test all --seconds 0.3"
tcp="--tcp --sizes 8,4096,65536,1M --test all --seconds 0.3"

make_hosts() {
	trap clean_up EXIT
	trap 'exit 130' INT TERM
	ip netns add "$a"
	ip netns add "$b"
	ip -n "$a" link add v0 type veth peer name v0 netns "$b"
	local n i=1
	for n in "$a" "$b"; do
		ip -n "$n" link set lo up
		ip -n "$n" link set v0 mtu "$mtu" up
		ip -n "$n" addr add "10.77.0.$i/24" dev v0
		i=$((i + 1))
	done
}

# run_pair SERVER-OPTIONS -- CLIENT-OPTIONS: both ends of one uroce-perf, each on its host and CPU. The server's errors and exit code count too.
run_pair() {
	local device=$1 log=$build/quickstart-server.log rc=0 served=0
	shift
	# shellcheck disable=SC2086 # a list of options, or nothing
	ip netns exec "$b" "$perf" --listen "10.77.0.2:$port" $device --cores 1 >"$log" 2>&1 &
	server=$!
	for _ in $(seq 100); do
		[ -z "$(ip netns exec "$b" ss -Hltn "sport = :$port")" ] || break
		sleep 0.1
	done
	# shellcheck disable=SC2086
	ip netns exec "$a" "$perf" --connect "10.77.0.2:$port" $device --cores 0 "$@" || rc=$?
	[ "$rc" -eq 0 ] || kill "$server" 2>/dev/null || true
	wait "$server" || served=$?
	server=
	if [ "$rc" -ne 0 ] || [ "$served" -ne 0 ]; then
		echo "the other host said:"
		tail -n 20 "$log"
		return 1
	fi
}

failed=0
if [ "$(id -u)" -eq 0 ]; then
	say "two hosts: namespaces $a (10.77.0.1, CPU 0) and $b (10.77.0.2, CPU 1), veth with MTU $mtu, an engine on each with net_af_packet"
	make_hosts
	device="--device inline:net_af_packet0,iface=v0"
	say "every operation, 0 bytes to 64 MiB, every byte checked"
	# shellcheck disable=SC2086
	run_pair "$device" $check || failed=1
	say "what it does, in the same run: uroce"
	# shellcheck disable=SC2086
	run_pair "$device" $figures || failed=1
	say "and kernel TCP over the same veth"
	# shellcheck disable=SC2086
	run_pair "--tcp" $tcp || failed=1
else
	say "not root: two engines in one process, joined by a ring pair (as root: two hosts over veth)"
	say "every operation, 0 bytes to 64 MiB, every byte checked"
	# shellcheck disable=SC2086
	"$perf" $check || failed=1
	say "what it does, in the same run: uroce"
	# shellcheck disable=SC2086
	"$perf" $figures || failed=1
	say "and kernel TCP over loopback"
	# shellcheck disable=SC2086
	"$perf" $tcp || failed=1
fi

if [ "$failed" -ne 0 ]; then
	say "FAILED: see above"
	exit 1
fi
say "all data was right"

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
client=

say() {
	printf '\n== %s\n' "$*"
}

clean_up() {
	local pid
	for pid in $server $client; do
		kill "$pid" 2>/dev/null || continue
		wait "$pid" || true
	done
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
[ "$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)" -gt 0 ] || {
	echo "warning: no huge pages free; going on without, somewhat slower (sudo config/hugepages.sh reserves some)"
	export UROCE_LOG=${UROCE_LOG:-error} # each engine would say so again
}

# The same work in both layouts.
check="--test verify --sizes 0,1,1023,4096,4097,64K,1M,64M --iters 16 --bytes 256M"
figures="--sizes 8,4K,64K,1M --seconds 0.3"
tcp="--tcp --sizes 8,4K,64K,1M --seconds 0.3"

make_hosts() {
	local n i=1
	trap clean_up EXIT
	trap 'exit 130' INT TERM HUP
	ip netns add "$a" && ip netns add "$b" && ip -n "$a" link add v0 type veth peer name v0 netns "$b" || return 1
	for n in "$a" "$b"; do
		ip -n "$n" link set lo up && ip -n "$n" link set v0 mtu "$mtu" up && ip -n "$n" addr add "10.77.0.$i/24" dev v0 || return 1
		i=$((i + 1))
	done
}

# run_pair DEVICE CLIENT-OPTION...: both ends of one uroce-perf, each on its host and CPU. The server's errors and exit code count too.
run_pair() {
	local device=$1 log=$build/quickstart-server.log rc=0 served=0
	shift
	# shellcheck disable=SC2086 # a list of options, or nothing
	ip netns exec "$b" "$perf" --listen "10.77.0.2:$port" $device --cores "$cpu_b" >"$log" 2>&1 &
	server=$!
	# shellcheck disable=SC2086
	ip netns exec "$a" "$perf" --connect "10.77.0.2:$port" $device --cores "$cpu_a" "$@" &
	client=$! # waited for, and not run in the foreground: so a signal is acted on at once
	wait "$client" || rc=$?
	client=
	[ "$rc" -eq 0 ] || kill "$server" 2>/dev/null || true
	wait "$server" || served=$?
	server=
	if [ "$rc" -ne 0 ] || [ "$served" -ne 0 ]; then
		echo "the other host said:"
		tail -n 20 "$log"
		return 1
	fi
}

# The first two CPUs that this script may use (or the only one).
mapfile -t cpus < <(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }')
cpu_a=${cpus[0]}
cpu_b=${cpus[1]:-$cpu_a}

failed=0
where="two engines in one process, joined by a ring pair"
if [ "$(id -u)" -ne 0 ]; then
	say "not root: $where (as root: two hosts over veth)"
elif make_hosts; then
	where="two hosts over veth"
	say "two hosts: namespaces $a (10.77.0.1, CPU $cpu_a) and $b (10.77.0.2, CPU $cpu_b), veth with MTU $mtu, an engine on each with net_af_packet"
else
	clean_up
	say "no network namespaces here, though root: $where"
fi
if [ "$where" = "two hosts over veth" ]; then
	run() { run_pair "--device inline:net_af_packet0,iface=v0" "$@"; }
	run_tcp() { run_pair --tcp "$@"; }
	wire="the same veth"
else
	run() { "$perf" "$@"; }
	run_tcp() { "$perf" "$@"; }
	wire=loopback
fi

say "every operation, 0 bytes to 64 MiB, every byte checked at both ends"
# shellcheck disable=SC2086
run $check || failed=1
say "what it does: RC QPs of uroce, one spinning thread on each host"
# shellcheck disable=SC2086
run $figures || failed=1
say "beside it, in the same run: kernel TCP over $wire"
# shellcheck disable=SC2086
run_tcp $tcp || failed=1

if [ "$failed" -ne 0 ]; then
	say "FAILED: see above"
	exit 1
fi
say "all data was right ($where)"

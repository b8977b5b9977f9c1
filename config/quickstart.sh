#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# From nothing to two hosts talking RDMA: installs what is missing (root), builds every program (the tests: ninja -C build), runs a daemon on each host and several client processes at once, checks every byte of every operation, prints what it measured, and
# compares it with kernel TCP and UDP between the same hosts, in a table and in a page with plots.
#   sudo config/quickstart.sh    two network namespaces joined by a veth pair, a uroced on each with net_af_packet; both are removed again
#   config/quickstart.sh         not root: two uroced joined by shared memory (net_memif)
# Exit code 0 only if all data was right. Environment: QUICKSTART_MTU, of the veth pair (4200, for a path MTU of 4096).
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build
[ -w "$top" ] || build=${TMPDIR:-/tmp}/uroce-build-$(id -u)/build
mtu=${QUICKSTART_MTU:-4200}
port=7471
a=uroce-a-$$
b=uroce-b-$$
tmp=$(mktemp -d)
pids=() # of everything that was started and not waited for

say() {
	printf '\n== %s\n' "$*"
}

clean_up() {
	local pid
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	for pid in "${pids[@]}"; do wait "$pid" || true; done
	ip netns del "$a" 2>/dev/null || true
	ip netns del "$b" 2>/dev/null || true
	rm -rf "$tmp"
	give_to_owner "$build" || true
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

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
ninja -C "$build" -v programs >"$build/quickstart.log" 2>&1 || {
	grep -A 12 -E '^FAILED|error:' "$build/quickstart.log" | head -n 40
	exit 1
}
perf=$build/app/perf/uroce-perf
compare=$build/app/compare/uroce-compare
page=$build/compare.html
uroced=$build/app/uroced/uroced
[ "$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)" -gt 0 ] || echo "warning: no huge pages free; going on without, somewhat slower (sudo config/hugepages.sh 1024 reserves 1 GiB)"

# What is run: four pairs of programs at once, every operation among them and every byte checked; then figures of one pair; then the same work over kernel TCP, kernel UDP and uroce.
checks=(
	"--op send,send-imm --test verify --sizes 0,1,1023,4096,4097,64K,1M --iters 16"
	"--op write,write-imm --verify --test rate --sizes 1,4097,64K,1M --iters 16 --seconds 0.2"
	"--op read --verify --test rate --sizes 1,4097,64K,1M --iters 16 --seconds 0.2"
	"--op write,cas,fadd --test verify --sizes 8,64M --iters 4 --bytes 256M"
)
figures="--sizes 8,4K,64K,1M --seconds 0.3"
side_by_side="--seconds 0.2 --html $page"

# The first two CPUs that this script may use (or the only one).
mapfile -t cpus < <(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }')
cpu_a=${cpus[0]}
cpu_b=${cpus[1]:-$cpu_a}
# Two daemons and ten programs on few CPUs: poll cores that sleep when they have nothing to do are given a CPU at once when they have.
if [ ${#cpus[@]} -ge 8 ]; then idle="pause"; else idle="sleep"; fi

make_hosts() {
	local n i=1
	ip netns add "$a" && ip netns add "$b" && ip -n "$a" link add v0 type veth peer name v0 netns "$b" || return 1
	for n in "$a" "$b"; do
		ip -n "$n" link set lo up && ip -n "$n" link set v0 mtu "$mtu" up && ip -n "$n" addr add "10.77.0.$i/24" dev v0 || return 1
		i=$((i + 1))
	done
}

# Where things run, as words in front of a command, and how the hosts reach each other.
on_a=() on_b=()
address=127.0.0.1
if [ "$(id -u)" -eq 0 ] && make_hosts; then
	where="two hosts over veth"
	say "two hosts: namespaces $a (10.77.0.1, CPU $cpu_a) and $b (10.77.0.2, CPU $cpu_b), veth with MTU $mtu, a uroced on each with net_af_packet"
	on_a=(ip netns exec "$a") on_b=(ip netns exec "$b")
	address=10.77.0.2
	vdev_a=net_af_packet0,iface=v0
	vdev_b=$vdev_a
else
	if [ "$(id -u)" -eq 0 ]; then why="no network namespaces here, though root"; else why="not root (as root: two hosts over veth)"; fi
	where="two hosts over shared memory"
	say "$why: two uroced on this machine, joined by net_memif"
	vdev_a=net_memif0,role=server,socket=$tmp/memif,socket-abstract=no,bsize=8192,ip=10.77.0.1/24
	vdev_b=net_memif0,role=client,socket=$tmp/memif,socket-abstract=no,bsize=8192,ip=10.77.0.2/24
fi

# start_daemon HOST VDEV CPU WORD-BEFORE...: a uroced that shows what it has come to.
start_daemon() {
	local log=$tmp/uroced-$1 options=(--vdev "$2" --socket "$tmp/$1.sock" --cpu "$3" --idle "$idle" --log-level error)
	shift 3
	: >"$log"
	"$@" "$uroced" "${options[@]}" >"$log" 2>&1 &
	pids+=($!)
	for _ in $(seq 400); do
		if grep -q '^  memory ' "$log"; then break; fi
		if ! kill -0 "${pids[-1]}" 2>/dev/null; then break; fi
		sleep 0.05
	done
	cat "$log"
	grep -q '^  memory ' "$log"
}

# Waits for the last process started; its exit code.
wait_last() {
	local rc=0
	wait "${pids[-1]}" || rc=$?
	unset 'pids[-1]'
	return $rc
}

# run_pair PROGRAM PORT A-OPTIONS B-OPTIONS CLIENT-OPTION...: both ends of one uroce-perf or uroce-compare, each on its host. The server's errors and exit code count too.
run_pair() {
	local program=$1 at=$2 options_a=$3 options_b=$4 log=$tmp/server-$2 rc=0 served=0
	shift 4
	# shellcheck disable=SC2086 # a list of options, or nothing
	"${on_b[@]}" "$program" --listen "$address:$at" $options_b >"$log" 2>&1 &
	pids+=($!)
	# shellcheck disable=SC2086
	"${on_a[@]}" "$program" --connect "$address:$at" $options_a "$@" &
	pids+=($!) # waited for, and not run in the foreground: so a signal is acted on at once
	wait_last || rc=$?
	[ "$rc" -eq 0 ] || kill "${pids[-1]}" 2>/dev/null || true
	wait_last || served=$?
	if [ "$rc" -ne 0 ] || [ "$served" -ne 0 ]; then
		echo "the other host said:"
		tail -n 20 "$log"
		return 1
	fi
}

# All checks at once, each a pair in a shell of its own; what they said, one after the other.
run_checks() {
	local i rc=0 first=${#pids[@]}
	for i in "${!checks[@]}"; do
		# shellcheck disable=SC2086 # a list of options
		(
			pids=() # of this shell
			trap - EXIT
			trap 'kill "${pids[@]}"; exit 130' INT TERM HUP
			run_pair "$perf" $((port + 1 + i)) "-d unix:$tmp/a.sock" "-d unix:$tmp/b.sock" ${checks[i]}
		) >"$tmp/check-$i" 2>&1 &
		pids+=($!)
	done
	for i in "${!checks[@]}"; do
		wait "${pids[first + i]}" || rc=1
		echo "-- uroce-perf ${checks[i]}"
		grep -v -E '^(layout|messages):' "$tmp/check-$i"
	done
	pids=("${pids[@]:0:first}")
	return $rc
}

failed=0
if ! start_daemon a "$vdev_a" "$cpu_a" "${on_a[@]}" || ! start_daemon b "$vdev_b" "$cpu_b" "${on_b[@]}"; then
	say "FAILED: the daemons do not start"
	exit 1
fi
say "four pairs of programs at once, clients of these daemons: every operation, 0 bytes to 64 MiB, every byte checked at both ends"
run_checks || failed=1
say "what it does: RC QPs of one pair of programs, through the daemons"
# shellcheck disable=SC2086
run_pair "$perf" $port "-d unix:$tmp/a.sock" "-d unix:$tmp/b.sock" $figures || failed=1
say "the daemons end"
for i in 1 0; do
	kill "${pids[i]}"
	wait_last || failed=1
done
tail -qn 1 "$tmp/uroced-a" "$tmp/uroced-b"
say "the same work over kernel TCP, kernel UDP and uroce, one program at each end"
# shellcheck disable=SC2086
if [ ${#on_a[@]} -gt 0 ]; then
	run_pair "$compare" $port "-d inline:$vdev_a --cores $cpu_a" "-d inline:$vdev_b --cores $cpu_b" $side_by_side || failed=1
else
	"$compare" $side_by_side &
	pids+=($!)
	wait_last || failed=1
fi

if [ "$failed" -ne 0 ]; then
	say "FAILED: see above"
	exit 1
fi
say "all data was right ($where)"
echo "the programs are in $build/app; try $build/app/testroce/testroce -- -i"
echo "the comparison with plots, for a browser: $page"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# uroce-perf between two processes over net_memif (anyone) and over net_tap with net_af_packet on the kernel's end of the tap (root): every operation, every byte looked at. Writes TAP.
#   test_ports_perf.sh PATH-OF-UROCE-PERF
set -u
perf=$1
tmp=$(mktemp -d)
space=uroce-pp-$$
port=$((20000 + $$ % 20000))
server=
number=0
run= # what goes before a command

clean_up() {
	[ -z "$server" ] || kill "$server" 2>/dev/null
	ip netns del "$space" 2>/dev/null
	rm -rf "$tmp"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# verified FILE: whether every operation has a row without errors, all of it verified.
verified() {
	python3 - "$1" <<'PYTHON'
import json, sys
rows = json.load(open(sys.argv[1]))
assert {r['op'] for r in rows} == {'send', 'send-imm', 'write', 'write-imm', 'read', 'cas', 'fadd', 'atomic-write'}, rows
for r in rows:
    assert r['errors'] == 0 and r['verified'] > 0 and r['msgs_per_s'] > 0, r
PYTHON
}

# pair NAME SERVER-DEVICE CLIENT-DEVICE
pair() {
	local rc=0 served=0
	$run timeout -k 5 120 "$perf" --listen "127.0.0.1:$port" --device "$2" >"$tmp/server" 2>&1 &
	server=$!
	for _ in $(seq 100); do
		if $run cat /proc/net/tcp | grep -q ":$(printf %04X $port) .* 0A "; then break; fi # it listens
		sleep 0.1
	done
	$run timeout -k 5 120 "$perf" --connect "127.0.0.1:$port" --device "$3" --verify --seconds 0.05 --sizes 8,4K,256K --json "$tmp/json" >"$tmp/client" 2>&1 || rc=$?
	[ "$rc" -eq 0 ] || kill "$server" 2>/dev/null
	wait "$server" || served=$?
	server=
	number=$((number + 1))
	if [ "$rc" -eq 0 ] && [ "$served" -eq 0 ] && verified "$tmp/json" 2>>"$tmp/client"; then
		echo "ok $number - $1"
	else
		echo "# exit codes $rc and $served"
		sed 's/^/# /' "$tmp/server" "$tmp/client" | tail -n 40
		echo "not ok $number - $1"
	fi
}

memif=embedded:net_memif0,socket=$tmp/memif,socket-abstract=no,ip=10.79.0
pair "two processes over memif" "$memif.1/24,role=server" "$memif.2/24,role=client"

tap="two processes over tap and its kernel's end"
if [ "$(id -u)" -eq 0 ] && [ -w /dev/net/tun ] && ip netns add "$space" 2>/dev/null; then
	ip -n "$space" link set lo up
	ip -n "$space" tuntap add dev t0 mode tap multi_queue
	ip -n "$space" link set t0 mtu 4200 up
	ip -n "$space" addr add 10.79.1.2/24 dev t0
	run="ip netns exec $space"
	pair "$tap" embedded:net_tap0,iface=t0,ip=10.79.1.1/24 embedded:net_af_packet0,iface=t0
else
	number=$((number + 1))
	echo "ok $number - $tap # SKIP needs root, /dev/net/tun and network namespaces"
fi
echo "1..$number"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# uroce-perf as a user runs it: every operation, every mode, a link that loses, its JSON, wrong options, and two processes over a veth pair (root). Writes TAP.
#   test_perf.sh PATH-OF-UROCE-PERF
set -u
perf=$1
tmp=$(mktemp -d)
a=uroce-pa-$$
b=uroce-pb-$$
server=
number=0

clean_up() {
	[ -z "$server" ] || kill "$server" 2>/dev/null
	ip netns del "$a" 2>/dev/null
	ip netns del "$b" 2>/dev/null
	rm -rf "$tmp"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# report RC NAME: one line of TAP, what was said before it when it failed.
report() {
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
	else
		sed 's/^/# /' "$tmp/out" "$tmp/err" 2>/dev/null | tail -n 40
		echo "not ok $number - $2"
	fi
}

skip() {
	number=$((number + 1))
	echo "ok $number - $1 # SKIP $2"
}

# run ARG...: one process; 124 when it hangs.
run() {
	timeout -k 5 180 "$perf" "$@" >"$tmp/out" 2>"$tmp/err"
}

# rows FILE MODE OPS SERVICE: whether the rows are those of a whole run, with values that can be.
rows() {
	python3 - "$@" <<'PYTHON'
import json, sys
path, mode, ops, service = sys.argv[1:5]
rows = json.load(open(path))
assert isinstance(rows, list) and rows, 'no rows'
assert {r['op'] for r in rows} == set(ops.split(',')), sorted({r['op'] for r in rows})
for r in rows:
    what = '%s of %d bytes: %r' % (r['op'], r['size'], r)
    assert r['errors'] == 0, what
    assert r['qps'] >= 1, what
    assert r['service'] == service and (service != 'rc' or r['lost'] == 0), what
    assert 0 < r['msgs_per_s'] < 1e9, what
    assert 0 <= r['gbit_per_s'] < 10000, what
    assert abs(r['gbit_per_s'] - r['msgs_per_s'] * r['size'] * 8 / 1e9) <= 0.01 * r['gbit_per_s'] + 1e-6, what
    lat = r['lat_ns']
    assert not lat or 0 < lat['min'] <= lat['p50'] <= lat['p99'] <= lat['p999'] <= lat['max'] < 60e9 and 0.98 * lat['min'] <= lat['mean'] <= lat['max'], what
    assert r['verified'] > 0, what
    v = r['verify']
    assert v['messages'] == r['verified'] and v['bytes'] == r['verified'] * r['size'] and v['seconds'] > 0, what
    assert (r['inline'], r['mtu']) == (0, 0) if mode == 'tcp' else r['inline'] == 32 and r['mtu'] in (1024, 2048, 4096), what
    assert r['layout']['mode'] == mode and len(r['layout']['cores']) == 2 and r['layout']['port'], what
    assert r['layout']['spinning_threads'] == (4 if mode == 'embedded' else 2), what
PYTHON
}

every=send,send-imm,write,write-imm,read,cas,fadd,atomic-write
of_uc=send,send-imm,write,write-imm
of_ud=send,send-imm

# service_of ARG...: what --service says, else rc.
service_of() {
	local before=
	for word in "$@"; do
		[ "$before" != --service ] || { echo "$word"; return; }
		before=$word
	done
	echo rc
}

# check NAME MODE OPS ARG...: a run with --json whose rows are right.
check() {
	local name=$1 mode=$2 ops=$3 rc=0
	shift 3
	rm -f "$tmp/json"
	run "$@" --json "$tmp/json" || rc=$?
	[ "$rc" -eq 0 ] || echo "# exit code $rc"
	[ "$rc" -ne 0 ] || rows "$tmp/json" "$mode" "$ops" "$(service_of "$@")" 2>>"$tmp/err" || rc=1
	report "$rc" "$name"
}

# lost LEAST: whether the rows of the last check lost so many messages in all.
lost() {
	python3 -c "
import json, sys
sum = sum(r['lost'] for r in json.load(open(sys.argv[1])))
assert sum >= int(sys.argv[2]) if int(sys.argv[2]) else not sum, sum" "$tmp/json" "$1" 2>>"$tmp/err"
}

# refuses NAME ARG...: exit code 2 and one line on standard error, nothing else.
refuses() {
	local name=$1 rc=0
	shift
	run "$@" || rc=$?
	if [ "$rc" -eq 2 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && [ ! -s "$tmp/out" ]; then rc=0; else
		echo "# exit code $rc"
		rc=1
	fi
	report "$rc" "$name"
}

end0=net_ring,link=perf,side=0,ip=10.0.0.1/24
end1=net_ring,link=perf,side=1,ip=10.0.0.2/24

# Time goes into memory as well as into messages: few of the largest are enough.
check "every operation, inline" inline $every --verify --iters 32 --depth 32
check "every operation, embedded" embedded $every --verify --iters 64 --device "embedded:$end0" --device "embedded:$end1"
check "every operation over a link that loses" inline $every --verify --iters 128 --sizes 8,4K,64K --fault drop:1%
check "embedded over a link that loses" embedded $every --verify --iters 128 --sizes 8,4K,64K --fault drop:1% --device "embedded:$end0" --device "embedded:$end1"
check "sizes at the edges of packets" inline $every --verify --iters 20 --sizes 0,1,7,1023,4095,4096,4097,65536
check "64 MiB" inline send,write,read --verify --iters 2 --sizes 64M --op send,write,read
check "sixteen QPs" inline send,write,read,fadd --verify --iters 64 --qps 16 --op send,write,read,fadd
check "more QPs and bytes than there is memory for" inline write --verify --iters 1 --qps 64 --sizes 16M --op write --test rate,latency
check "one message at a time" inline send,write --verify --iters 100 --depth 1 --batch 1 --op send,write
check "IPv6 addresses" inline send,read --verify --iters 64 --op send,read --device inline:net_ring,link=v6,side=0,ip=fd00::1/64 \
	--device inline:net_ring,link=v6,side=1,ip=fd00::2/64
check "unreliable connections, edges of packets, none lost" inline $of_uc --service uc --verify --test rate --iters 256 --sizes 0,1,8,1023,4095,4096,4097,65536
lost 0
report $? "and none is said to be lost"
check "datagrams up to the path MTU, none lost" inline $of_ud --service ud --verify --test rate --iters 1024 --sizes 0,1,8,64,1023,4096
lost 0
report $? "and none is said to be lost"
check "unreliable connections over a link that loses, repeats and reorders" inline $of_uc --service uc --verify --test rate --iters 400 --sizes 8,20000 --fault drop:1%/dup:1%/reorder:1%/seed:3
lost 10
report $? "and how many were lost is told"
# each one that is lost is waited for
check "one at a time over that link" inline $of_uc --service uc --verify --iters 100 --sizes 8 --fault drop:1%/dup:1%/reorder:1%/seed:3
check "datagrams over a link that loses, repeats and reorders" inline $of_ud --service ud --verify --iters 400 --sizes 0,64 --fault drop:1%/dup:1%/reorder:1%/seed:3
lost 10
report $? "and how many were lost is told"
check "one SRQ for sixteen QPs" inline $every --srq --qps 16 --verify --iters 64 --sizes 8,4K,64K
check "one SRQ over a link that loses" inline send,write-imm --srq --qps 16 --verify --iters 64 --sizes 8,4K,64K --op send,write-imm --fault drop:1%
check "one SRQ, unreliable connections" inline $of_uc --service uc --srq --qps 16 --depth 32 --verify --test rate --iters 200 --sizes 0,8,9000 --fault drop:1%/seed:4
check "one SRQ, datagrams, embedded" embedded $of_ud --service ud --srq --qps 16 --depth 32 --verify --iters 200 --sizes 8,1K --device "embedded:$end0" --device "embedded:$end1"
check "datagrams over IPv6" inline send --service ud --verify --iters 200 --op send --device inline:net_ring,link=v6d,side=0,ip=fd00::1/64 --device inline:net_ring,link=v6d,side=1,ip=fd00::2/64
rc=0
run --service ud --sizes 4097 --iters 4 || rc=$?
[ "$rc" -eq 1 ] && grep -q 'a datagram carries at most' "$tmp/err"
report $? "a datagram larger than the port's MTU: exit code 1, and why"
rc=0
run --service ud --op send --sizes 8 --latency --fault drop:100% || rc=$?
[ "$rc" -eq 1 ] && grep -q 'nothing comes back' "$tmp/err"
report $? "datagrams over a link that carries nothing: exit code 1, and why"
rc=0
run --srq --qps 16384 --op send --sizes 8 --rate || rc=$?
[ "$rc" -eq 1 ] && grep -q 'fewer, please' "$tmp/err"
report $? "more receives than an SRQ holds: exit code 1, and why"
run --op write --sizes 1:64 --seconds 0.01 --test rate --json "$tmp/json" && python3 -c "
import json, sys
assert [r['size'] for r in json.load(open(sys.argv[1]))] == [1, 2, 4, 8, 16, 32, 64]" "$tmp/json" 2>>"$tmp/err"
report $? "a sweep is powers of two"
run --op write --sizes 8,64,64M --iters 2 --rate && [ "$(grep ^fitted: "$tmp/out")" = "$(printf 'fitted: QPs 1, depth %s, batch 2\n' 128 4)" ]
report $? "what was done instead of what was asked for is told"
run --op write --sizes 8,64 --seconds 0.01 && grep -q 'depth 128, batch 16' "$tmp/out" && ! grep -q ^fitted: "$tmp/out"
report $? "and not when it is the same"
run --op write --sizes 8 --iters 7 --latency && grep -q 'one at a time on one QP' "$tmp/out" && ! grep -q 'depth\|^fitted:' "$tmp/out"
report $? "one message at a time is said to be that"
check "one end of the two loses" inline send,read --verify --seconds 0.05 --sizes 8,4K,64K --op send,read --device "inline:$end0,fault=drop:3%/seed:5" --device "inline:$end1"
rc=0
run --op write --sizes 4096 --iters 4 --device "inline:$end0" --device "inline:$end1,fault=drop:100%" || rc=$?
[ "$rc" -eq 1 ] && grep -q '^uroce-perf: write of 4K bytes failed: ' "$tmp/err"
report $? "a link that carries nothing: exit code 1, and why"
check "kernel TCP over loopback" tcp tcp --tcp --verify --seconds 0.05

run --help && [ "$(grep -c -E '^ *--(op|sizes|test|iters|seconds|qps|depth|batch|inline|mtu|gid-index|device|listen|connect|cores|verify|fault|json|progress|tcp|service|srq|help)\b' "$tmp/out")" -ge 22 ]
report $? "--help names every option"
refuses "an operation that there is not" --op sned
refuses "a size that is none" --sizes 8,x
refuses "a size beyond 64 MiB" --sizes 65M
refuses "a test that there is not" --test speed
refuses "no QPs" --qps 0
refuses "seconds that are none" --seconds soon
refuses "an option that there is not" --fast
refuses "an option without its value" --op
refuses "an argument too many" send
refuses "both ends of a connection" --listen 1 --connect localhost:1
refuses "a peer that there is not" --peer pong
refuses "what ibv_rc_pingpong cannot do" --peer pingpong --listen --device "inline:$end0" --op write
refuses "a pingpong that there is not" --peer pingpong --listen --device "inline:$end0" --srq --service ud
refuses "a service that there is not" --service rd
refuses "an operation that the service has not" --service ud --op write

# fails NAME TEXT ARG...: exit code 1 and the text, without a word about the other end.
fails() {
	local name=$1 text=$2 rc=0
	shift 2
	run "$@" || rc=$?
	[ "$rc" -eq 1 ] && ! grep -q 'waiting\|nobody' "$tmp/err" && grep -q -- "$text" "$tmp/err"
	report $? "$name"
}

at_once() { # NAME FILE: nothing is measured for a file that cannot be written
	local rc=0
	run --op write --sizes 8 --seconds 0.01 --json "$2" || rc=$?
	[ "$rc" -eq 1 ] && [ ! -s "$tmp/out" ] && grep -q "^uroce-perf: cannot write $2: $3\$" "$tmp/err"
	report $? "$1"
}
at_once "a file in a folder that there is not" "$tmp/no/file.json" "No such file or directory"
at_once "a file that is a folder" "$tmp" "Is a directory"
for where in "" --json "--json=$tmp/json"; do
	rc=0
	# shellcheck disable=SC2086 # an option, or none
	timeout -k 5 60 "$perf" --op write --sizes 8 --seconds 0.01 $where >/dev/full 2>"$tmp/err" || rc=$?
	[ "$rc" -eq 1 ] && grep -q "^uroce-perf: cannot write to standard output: " "$tmp/err"
	report $? "a full disk under standard output is an error: ${where%%=*}"
done

at=127.0.0.1:$((20000 + $$ % 20000))
nowhere=inline:net_af_packet0,iface=nosuch0
fails "a server's device that there is not, before a client comes" "cannot use device $nowhere" --listen "$at" --device "$nowhere"
fails "a client's device that there is not, before a server is looked for" "cannot use device $nowhere" --connect "$at" --device "$nowhere"

# spoken_to TEXT: a server (TCP) to whom somebody says that; its exit code.
spoken_to() {
	timeout -k 5 60 "$perf" --listen "$at" --tcp >"$tmp/out" 2>"$tmp/err" &
	server=$!
	python3 -c '
import socket, sys, time
for _ in range(200):
    try:
        s = socket.create_connection((sys.argv[1].split(":")[0], int(sys.argv[1].split(":")[1])))
        break
    except OSError:
        time.sleep(0.05)
s.sendall(sys.argv[2].encode().decode("unicode_escape").encode())
s.shutdown(socket.SHUT_WR)
while s.recv(4096):
    pass' "$at" "$1"
	local rc=0
	wait "$server" || rc=$?
	server=
	return $rc
}

spoken_to 'GET / HTTP/1.1\r\n\r\n'
[ $? -eq 1 ] && grep -q "^uroce-perf: waiting for a client at $at\$" "$tmp/err" && grep -q "^uroce-perf: the peer speaks another language" "$tmp/err"
report $? "a server says where it waits, and that it was spoken to in another language"
spoken_to ''
[ $? -eq 1 ] && grep -q "^uroce-perf: the peer is gone" "$tmp/err"
report $? "or that nothing was said"

# Two processes, each in a namespace of its own.
make_hosts() {
	[ "$(id -u)" -eq 0 ] && ip netns add "$a" && ip netns add "$b" && ip -n "$a" link add v0 type veth peer name v0 netns "$b" || return 1
	local n i=1
	for n in "$a" "$b"; do
		ip -n "$n" link set lo up && ip -n "$n" link set v0 mtu 4200 up && ip -n "$n" addr add "10.78.0.$i/24" dev v0 || return 1
		i=$((i + 1))
	done
}

# pair NAME MODE OPS SERVER-ARGS -- CLIENT-ARGS
pair() {
	local name=$1 mode=$2 ops=$3 server_args=() rc=0 served=0
	shift 3
	while [ "$1" != -- ]; do
		server_args+=("$1")
		shift
	done
	shift
	rm -f "$tmp/json"
	ip netns exec "$b" timeout -k 5 120 "$perf" --listen 7471 "${server_args[@]}" >"$tmp/server" 2>&1 &
	server=$!
	ip netns exec "$a" timeout -k 5 120 "$perf" --connect 10.78.0.2:7471 "$@" --json "$tmp/json" >"$tmp/out" 2>"$tmp/err" || rc=$?
	[ "$rc" -eq 0 ] || kill "$server" 2>/dev/null
	wait "$server" || served=$?
	server=
	[ "$rc" -ne 0 ] || rows "$tmp/json" "$mode" "$ops" "$(service_of "$@")" 2>>"$tmp/err" || rc=1
	if [ "$rc" -ne 0 ] || [ "$served" -ne 0 ]; then
		echo "# exit codes $rc and $served"
		sed 's/^/# server: /' "$tmp/server"
		rc=1
	fi
	report "$rc" "$name"
}

# pingpong NAME WHAT ARG...: both ends as one of rdma-core's programs would have them, with its defaults. WHAT: a Python expression that is true of the row.
# (suite interop plays against the real ones)
pingpong() {
	local name=$1 what=$2 rc=0 served=0
	shift 2
	rm -f "$tmp/json"
	ip netns exec "$b" timeout -k 5 120 "$perf" --peer pingpong --listen "$@" --verify >"$tmp/server" 2>&1 &
	server=$!
	ip netns exec "$a" timeout -k 5 120 "$perf" --peer pingpong --connect 10.78.0.2 "$@" --verify --json "$tmp/json" >"$tmp/out" 2>"$tmp/err" || rc=$?
	[ "$rc" -eq 0 ] || kill "$server" 2>/dev/null
	wait "$server" || served=$?
	server=
	[ "$rc" -ne 0 ] || python3 -c "
import json, sys
row, = json.load(open(sys.argv[1]))
count = row['counters']
assert (row['op'], row['verified'], row['lat_ns']['samples']) == ('send', 1000, 1000), row
assert count['completed_requests'] == count['completed_receives'] == 1000, row
assert $what, row" "$tmp/json" 2>>"$tmp/err" || rc=1
	[ "$served" -eq 0 ] || rc=1
	[ "$rc" -eq 0 ] || sed 's/^/# server: /' "$tmp/server"
	report "$rc" "$name"
}

# mismatch NAME TEXT CLIENT-ARG...: ends that were told different things both say so, or end.
mismatch() {
	local name=$1 text=$2 rc=0
	shift 2
	ip netns exec "$b" timeout -k 5 60 "$perf" --peer pingpong --listen --device "inline:$port" --srq >"$tmp/server" 2>&1 &
	server=$!
	ip netns exec "$a" timeout -k 5 60 "$perf" --peer pingpong --connect 10.78.0.2 --device "inline:$port" "$@" >"$tmp/out" 2>"$tmp/err" || rc=$?
	wait "$server" && rc=0
	server=
	[ "$rc" -eq 1 ] && grep -q "$text" "$tmp/server"
	report $? "$name"
}

two="two processes over veth"
if make_hosts >/dev/null 2>&1; then
	port=net_af_packet0,iface=v0
	pair "$two, inline" inline $every --device "inline:$port" --cores 1 -- --device "inline:$port" --cores 0 --verify --iters 32 --depth 32
	pair "$two, embedded, losing" embedded $every --device "embedded:$port" --fault drop:1% -- --device "embedded:$port" --verify --iters 64 --sizes 8,4K,64K
	pair "$two, kernel TCP" tcp tcp --tcp -- --tcp --verify --seconds 0.05
	pair "$two, unreliable connections" inline $of_uc --device "inline:$port" -- --device "inline:$port" --service uc --verify --iters 200
	pair "$two, datagrams into an SRQ" inline $of_ud --device "inline:$port" -- --device "inline:$port" --service ud --srq --qps 4 --verify --iters 200
	pingpong "$two, ping-pong" "row['service'] == 'rc' and row['size'] == 4096" --device "inline:$port"
	pingpong "$two, ping-pong, losing" "row['size'] == 4096" --device "embedded:$port" --fault drop:1%
	pingpong "$two, ping-pong of unreliable connections" "row['service'] == 'uc' and row['size'] == 4096" --service uc --device "inline:$port"
	pingpong "$two, ping-pong of datagrams" "row['service'] == 'ud' and row['size'] == 1024" --service ud --device "inline:$port"
	pingpong "$two, ping-pong of many QPs with one SRQ" "row['srq'] and row['qps'] == 16 and row['size'] == 4096" --srq --device "inline:$port"
	pingpong "$two, ping-pong of many QPs with one SRQ, losing" "row['qps'] == 100 and row['size'] == 5000" --srq --qps 100 --sizes 5000 --device "embedded:$port" --fault drop:1%
	mismatch "$two, ping-pong of more QPs than the other has" "the peer has more than 16 QPs" --srq --qps 17
	mismatch "$two, ping-pong of fewer QPs than the other has" "the peer has fewer than 16 QPs" --srq --qps 15
else
	for what in inline "embedded, losing" "kernel TCP" "unreliable connections" "datagrams into an SRQ" "ping-pong" "ping-pong, losing" "ping-pong of unreliable connections" \
		"ping-pong of datagrams" "ping-pong of many QPs with one SRQ" "ping-pong of many QPs with one SRQ, losing" "ping-pong of more QPs than the other has" \
		"ping-pong of fewer QPs than the other has"; do skip "$two, $what" "needs root and network namespaces"; done
fi
echo "1..$number"

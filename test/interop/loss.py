# SPDX-License-Identifier: BSD-3-Clause
"""Links that lose, duplicate and reorder between the two stacks: the data has to be right, no QP may fail, and what uroce says it sent again has to be what was seen on the wire."""
import capture
from lab import GUEST_IP4, HOST_IP4, PeerError, gid_index
from pair import Pair

MTU = 1024
SIZE, COUNT, WINDOW = 6000, 200, 16  # six packets each
RXE_TIMEOUT = 15  # it repairs READs by nothing else, so often
OPS = ('send', 'write_imm', 'write', 'read', 'fadd')
GUEST_DROP = ("nft add table inet lossy; nft 'add chain inet lossy in { type filter hook input priority 0; }'; "
              "nft add rule inet lossy in udp dport 4791 numgen random mod 100 0 counter drop")
GUEST_DROP_END = 'nft list table inet lossy; nft delete table inet lossy'
# Everything for rxe goes through a queue of netem's on its way in. "reorder" is netem's share of packets that overtake the delay.
GUEST_NETEM = ('ip link show ifb0 >/dev/null 2>&1 || ip link add ifb0 type ifb; sysctl -qw net.ipv6.conf.ifb0.disable_ipv6=1; ip link set ifb0 up; tc qdisc add dev eth0 handle ffff: ingress; '
               'tc filter add dev eth0 parent ffff: protocol ip flower ip_proto udp dst_port 4791 action mirred egress redirect dev ifb0; '
               'tc qdisc add dev ifb0 root netem limit 10000 ')
GUEST_NETEM_END = 'tc -s qdisc show dev ifb0; tc qdisc del dev eth0 ingress; tc qdisc del dev ifb0 root'


class Scenario:
    def __init__(self, name, host_keys, guest_begin='', guest_end=''):
        self.name, self.host_keys, self.guest_begin, self.guest_end = name, host_keys, guest_begin, guest_end


SCENARIOS = (
    Scenario('1 % lost on the way to uroce', ',fault=drop:1%/seed:11'),
    Scenario('1 % lost on the way to rxe', '', GUEST_DROP, GUEST_DROP_END),
    Scenario('1 % lost each way', ',fault=drop:1%/seed:12', GUEST_DROP, GUEST_DROP_END),
    Scenario('2 % duplicated each way', ',fault=dup:2%/seed:13', GUEST_NETEM + 'duplicate 2%', GUEST_NETEM_END),
    Scenario('2 % reordered each way', ',fault=reorder:2%:4:1ms/seed:14', GUEST_NETEM + 'delay 200us reorder 2%', GUEST_NETEM_END),
    Scenario('2 % lost, 2 % duplicated and 2 % reordered each way', ',fault=drop:2%/dup:2%/reorder:2%:4:1ms/seed:15', GUEST_NETEM + 'delay 200us reorder 2% loss 2% duplicate 2%', GUEST_NETEM_END),
)


def check_counters(packets, counters, requester_is_uroce, cards, psns, is_lossless_inward):
    """cards and psns: of uroce's QP and the guest's."""
    sent = sum(p.source == HOST_IP4 and p.qpn == cards[1]['qpn'] for p in packets)
    again = capture.count_repeated(packets, HOST_IP4, cards[1]['qpn'], psns[0], MTU)
    asked_again = capture.count_repeated(packets, GUEST_IP4, cards[0]['qpn'], psns[1], MTU)
    pairs = [('tx_packets', sent), ('retransmitted_packets', again)]
    if is_lossless_inward:
        pairs.append(('duplicate_request', asked_again))
    for name, seen in pairs:
        if counters[name] != seen:
            raise PeerError('uroce counts %d %s, on the wire there were %d (%r)' % (counters[name], name, seen, counters))
    return again if requester_is_uroce else asked_again


def run(lab, scenario, requester_is_uroce):
    """How many requests were sent again. Raises PeerError."""
    host, guest = lab.packet_end(scenario.host_keys), lab.guest_end()
    ends = (host, guest) if requester_is_uroce else (guest, host)
    gids = (gid_index(host, HOST_IP4), gid_index(guest, GUEST_IP4))
    pair = tracer = None
    try:
        if scenario.guest_begin:
            lab.guest.must(scenario.guest_begin)
        pair = Pair(*ends, gids if requester_is_uroce else gids[::-1], MTU, 0xfffff0, COUNT * (SIZE + 128), 512, requester_keys='timeout=%d' % (18 if requester_is_uroce else RXE_TIMEOUT))
        tracer = lab.start_capture('loss')
        for op in OPS:
            pair.run_stream(op, SIZE, COUNT, WINDOW)
        pair.check_states()
        counters = host.ask('counters')
        packets, tracer = tracer.stop(), None
        uroce, rxe = (0, 1) if requester_is_uroce else (1, 0)
        return check_counters(packets, counters, requester_is_uroce, (pair.cards[uroce], pair.cards[rxe]), (pair.psns[uroce], pair.psns[rxe]), not scenario.host_keys)
    finally:
        if tracer:
            tracer.stop()
        if scenario.guest_end:
            lab.guest.run(scenario.guest_end)
        guest.close()
        host.close()

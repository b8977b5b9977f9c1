# SPDX-License-Identifier: BSD-3-Clause
"""Every operation in both directions at every path MTU and size: the cells, running them, and the table."""
import time

from guest import GuestError
from lab import HOST_IP4, HOST_IP6, GUEST_IP4, GUEST_IP6, TAP_IP4, TAP_IP6, PeerError, gid_index
from pair import OPS, SERVICES, Pair

MTUS = (256, 512, 1024, 2048, 4096)
FIRST_PSN = 0xfffff0  # so that PSNs wrap in each session
FAMILIES = ('IPv4', 'IPv6')
DIRECTIONS = ('uroce to rxe', 'rxe to uroce')
LARGE = {1 << 20: MTUS, 8 << 20: (1024, 4096)}  # under emulation they take long: at which path MTUs they are tried, and not into an SRQ
PORTS = {'net_af_packet': (HOST_IP4, HOST_IP6), 'net_tap': (TAP_IP4, TAP_IP6)}


def sizes_of(service, op, mtu):
    if OPS[op].is_atomic or OPS[op].is_newest:
        return (8,)
    sizes = (0, 1, mtu - 1, mtu)
    if not service.is_datagram:
        sizes += (mtu + 1, 8193)
        if not service.has_srq:
            sizes += tuple(size for size, mtus in LARGE.items() if mtu in mtus)
    return sizes


def find_lack(release, direction, op):
    """Why an operation cannot be tried against the guest, or ''."""
    if not OPS[op].is_newest:
        return ''
    if tuple(int(n) for n in release.split('.')[:2]) < (6, 2):
        return 'rdma_rxe of Linux %s has neither ATOMIC WRITE nor FLUSH, which came with 6.2' % '.'.join(release.split('.')[:2])
    if op == 'flush':
        return 'rdma_rxe takes the headers of a FLUSH into its ICRC twice, so that it and those who follow the specification drop each other\'s'
    return 'libibverbs of Debian 12 cannot post ATOMIC WRITE' if direction == DIRECTIONS[1] else ''


class Cell:
    """One operation at one size in one session. result: '' passed, else what was wrong; None: not run, reason says why."""

    def __init__(self, port, direction, family, mtu, service, op, size, reason):
        self.port, self.direction, self.family, self.mtu, self.service, self.op, self.size = port, direction, family, mtu, service, op, size
        self.result, self.reason = None, reason

    def __str__(self):
        return '%s, %s, %s, path MTU %d: %s %s of %d' % (self.port, self.direction, self.family, self.mtu, self.service.name, self.op, self.size)


class Matrix:
    def __init__(self, lab):
        self.lab = lab
        self.cells = [Cell(port, direction, family, mtu, service, op, size, find_lack(lab.guest.release, direction, op)) for port in PORTS for direction in DIRECTIONS for family in FAMILIES for mtu in MTUS
                      for service in SERVICES for op in service.ops for size in sizes_of(service, op, mtu)]
        self.seconds, self.lost = 0, 0

    def run(self, say):
        """say(text): told how far it is."""
        start = time.monotonic()
        for port in PORTS:
            cells = [c for c in self.cells if c.port == port]
            try:
                with_keys = self.lab.tap_end if port == 'net_tap' else self.lab.packet_end
                host = with_keys()
            except (PeerError, GuestError) as e:
                for c in cells:
                    c.reason = str(e)
                continue
            self.run_port(host, cells, say)
            host.close()
        self.seconds = time.monotonic() - start

    def run_port(self, host, cells, say):
        guest = self.lab.guest_end()
        ip4, ip6 = PORTS[cells[0].port]
        gids = {'IPv4': (gid_index(host, ip4), gid_index(guest, GUEST_IP4)), 'IPv6': (gid_index(host, ip6), gid_index(guest, GUEST_IP6))}
        for direction in DIRECTIONS:
            ends = (host, guest) if direction == DIRECTIONS[0] else (guest, host)
            for family in FAMILIES:
                pair = gids[family] if direction == DIRECTIONS[0] else tuple(reversed(gids[family]))
                for mtu in MTUS:
                    session = [c for c in cells if (c.direction, c.family, c.mtu) == (direction, family, mtu)]
                    for service in SERVICES:
                        self.run_session(ends, pair, mtu, service, [c for c in session if c.service is service])
                    bad, run = [c for c in session if c.result], [c for c in session if c.result is not None]
                    say('%s, %s, %s, path MTU %d: %d of %d%s' % (cells[0].port, direction, family, mtu, len(run) - len(bad), len(run), ', first: %s' % bad[0].result if bad else ''))
        guest.close()

    def run_session(self, ends, gids, mtu, service, cells):
        """All cells of a service over one pair of QPs; after one that failed, over a new one."""
        pair = None
        for c in cells:
            if c.reason:
                continue
            try:
                if not pair:
                    pair = Pair(*ends, gids, mtu, FIRST_PSN, max(x.size for x in cells), service=service)
                pair.run(c.op, c.size)
                c.result = ''
            except PeerError as e:
                c.result = str(e)
                if pair:
                    self.lost += pair.lost
                    pair.close()
                else:
                    for end in ends:
                        end.ask('destroy')
                pair = None
        if pair:
            self.lost += pair.lost
            pair.close()

    def sessions(self):
        """[(name, cells)], in the order in which they were run."""
        groups = {}
        for c in self.cells:
            groups.setdefault('%s, %s, %s, path MTU %d' % (c.port, c.direction, c.family, c.mtu), []).append(c)
        return list(groups.items())

    def count(self):
        passed = sum(c.result == '' for c in self.cells)
        failed = sum(bool(c.result) for c in self.cells)
        return passed, failed, len(self.cells) - passed - failed

    def table(self):
        """Markdown: a table for each port and direction, operations by path MTU and family; a cell says how many sizes passed of how many."""
        lines = []
        for port in PORTS:
            for direction in DIRECTIONS:
                lines += ['', '%s, %s:' % (port, direction), '', '| operation | ' + ' | '.join('%s %d' % (f, m) for f in FAMILIES for m in MTUS) + ' |',
                          '|---' * (1 + len(FAMILIES) * len(MTUS)) + '|']
                for service in SERVICES:
                    for op in service.ops:
                        cells = [c for c in self.cells if (c.port, c.direction, c.service, c.op) == (port, direction, service, op)]
                        row = [self.text_of([c for c in cells if (c.family, c.mtu) == (f, m)]) for f in FAMILIES for m in MTUS]
                        lines.append('| %s: %s | %s |' % (service.name, op, ' | '.join(row)))
        skipped = sorted({(c.port, c.reason) for c in self.cells if c.result is None})
        lines += [''] + ['Not run (-): %s: %s.' % pair for pair in skipped]
        return '\n'.join(lines).strip() + '\n'

    @staticmethod
    def text_of(cells):
        run = [c for c in cells if c.result is not None]
        return '%d/%d' % (sum(c.result == '' for c in run), len(run)) if run else '-'

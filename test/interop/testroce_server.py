#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The end that serves a testroce, over whatever stack the tests' peer was built for: so that testroce's traffic runs against libibverbs, and so against rdma_rxe or a NIC. Carries testroce's conversation (app/testroce/pair.c) to lines for
peer.c; decides nothing but what the server's side of each mode does. One QP, which is all that the peer has.

testroce_server.py PEER-PROGRAM DEVICE ADDRESS [PORT]: PEER-PROGRAM is peer.c, peer_memory.c, stack_verbs.c and app/common/pattern.c; ADDRESS is the one whose GID is used. Serves one testroce after the other."""
import ipaddress
import json
import os
import select
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import End, PeerError, gid_index  # noqa: E402

PORT, PSN = 7471, 0x4321
GUARD_BYTES, MEMORY_MAX, MODEL_BYTES = 64, 64 << 20, 65536  # as app/testroce/end.c and mode_mixed.c have them
TURN_MS = 50  # between two looks at what the client says


class Mode:
    """takes_recv: where a message lands; most_depth, size: unless they are free. What begins, and what is done with messages that have come, is the class's."""
    most_depth, size = 1 << 20, None

    def __init__(self, plan):
        self.plan = plan

    def begin(self, end):
        pass

    def take(self, end, first, count):
        """Messages first to first + count - 1 have come. How many were verified."""
        return 0

    takes_recv = False


class Send(Mode):
    """Message n lands in slot n modulo the number of receives, since these are used up in order."""
    takes_recv = True

    def at(self, n):
        return self.plan.stride * (n % self.plan.recv_depth)

    def begin(self, end):
        end.do(*(self.receive(n) for n in range(self.plan.recv_depth)))

    def receive(self, n):
        return 'recv at=%d len=%d' % (self.at(n), self.plan.size)

    def where(self, n):
        return self.at(n)

    def take(self, end, first, count):
        end.do(*('check at=%d len=%d seed=%d' % (self.where(n), self.plan.size, n) for n in range(first, first + count)), *(self.receive(n) for n in range(first, first + count)))
        return count


class WriteImm(Send):
    """The client says where it goes."""

    def receive(self, n):
        return 'recv at=0 len=0'

    def where(self, n):
        return self.plan.stride * (n % self.plan.slots_in)


class Echo(Send):
    most_depth = 1

    def take(self, end, first, count):
        for n in range(first, first + count):
            end.do('send op=send at=%d len=%d' % (self.at(n), self.plan.size), self.receive(n))
        return 0


class Read(Mode):
    def begin(self, end):
        end.ask('fill at=0 len=%d seed=0 n=%d stride=%d' % (self.plan.size, self.plan.slots_in, self.plan.stride))


class Atomic(Mode):
    most_depth, size = 128, 8

    def begin(self, end):
        end.ask('word at=0 set=0')


class Mixed(Send):
    """What receives bring is not looked at: that would take the client's random numbers."""
    most_depth = 32

    def at(self, n):
        return self.plan.stride * (self.plan.slots_in + n % self.plan.recv_depth)

    def begin(self, end):
        end.do(*('word at=%d set=0' % at for at in range(0, min(self.plan.slots_in * self.plan.stride, MODEL_BYTES) & ~7, 8)))
        super().begin(end)

    def take(self, end, first, count):
        end.do(*(self.receive(n) for n in range(first, first + count)))
        return 0


MODES = {'send': Send, 'send-imm': Send, 'write': Mode, 'write-imm': WriteImm, 'read': Read, 'atomic': Atomic, 'echo': Echo, 'mixed': Mixed}


class Plan:
    """What both ends compute from what the client asks for."""

    def __init__(self, asked):
        kind = MODES.get(asked['mode'])
        if not kind or asked['qps'] != 1:
            raise PeerError('this server has one QP, and the modes %s' % ', '.join(MODES))
        self.size, self.depth = asked['size'] if kind.size is None else kind.size, min(asked['depth'], kind.most_depth)
        self.stride = (self.size + 63) // 64 * 64 + GUARD_BYTES
        while self.depth > 1 and self.depth * 4 * self.stride > MEMORY_MAX:
            self.depth //= 2
        self.recv_depth = 2 * self.depth
        self.slots_in = self.recv_depth + 1
        self.bytes = (self.slots_in + self.recv_depth) * self.stride
        self.mtu = asked['mtu']
        self.mode = kind(self)


class Service:
    """One testroce that has connected."""

    def __init__(self, connection, end, address):
        self.connection, self.end, self.address = connection, end, address
        self.lines = connection.makefile('r', encoding='utf-8')
        self.plan, self.received, self.verified, self.error = None, 0, 0, ''

    def say(self, **message):
        self.connection.sendall(json.dumps(message).encode() + b'\n')

    def hear(self):
        line = self.lines.readline()
        return json.loads(line) if line else None

    def start(self, asked):
        self.plan, self.received, self.verified, self.error = Plan(asked), 0, 0, ''
        self.end.ask('destroy')
        card = self.end.ask('qp service=rc bytes=%d depth=%d gid=%d' % (self.plan.bytes, max(self.plan.recv_depth, 16), gid_index(self.end, self.address)))
        gid = ipaddress.ip_address(card['gid']).packed.hex()
        self.say(card={'caps': 0, 'addr': card['addr'], 'rkey': card['rkey'], 'stride': self.plan.stride, 'qps': [[gid, card['qpn'], PSN, 4096, 16]]})
        gid, qpn, psn, mtu, rd = self.hear()['card']['qps'][0]
        self.end.ask('connect qpn=%d psn=%d own_psn=%d gid=%s mtu=%d rd=%d dest_rd=%d' % (qpn, psn, PSN, ipaddress.ip_address(bytes.fromhex(gid)), min(m for m in (mtu, self.plan.mtu or mtu, 4096)), min(rd, 16), 16))
        self.plan.mode.begin(self.end)
        self.say(ready=True)

    def work(self):
        """Looks after the traffic for a moment."""
        if not self.plan or not self.plan.mode.takes_recv or self.error:
            return
        wc = self.end.ask('wait recvs=%d ms=%d' % (self.received + 1, TURN_MS))
        if wc['bad']:
            raise PeerError('a completion says %s' % wc['first'])
        self.verified += self.plan.mode.take(self.end, self.received, wc['recvs'] - self.received)
        self.received = wc['recvs']

    def answer(self, message):
        if 'testroce' in message:
            self.start(message)
        elif 'stop' in message:
            while self.plan and self.plan.mode.takes_recv and not self.error and self.end.ask('wait recvs=%d ms=%d' % (self.received + 1, TURN_MS))['recvs'] > self.received:
                self.work()
            self.say(done=True, messages=self.received, verified=self.verified, lost=0, error=self.error)

    def run(self):
        """Until the client is gone."""
        while True:
            is_said = select.select([self.connection], [], [], 0 if self.plan and self.plan.mode.takes_recv and not self.error else None)[0]
            try:
                if is_said:
                    message = self.hear()
                    if message is None:
                        return
                    self.answer(message)
                else:
                    self.work()
            except (PeerError, KeyError, ValueError, TypeError) as e:
                self.error = str(e)
                self.say(error=self.error)


class ProcessEnd(End):
    """The peer as a process of this host."""

    def __init__(self, program, device):
        super().__init__(device)
        self.process = subprocess.Popen([program, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.start()

    def write(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def read_line(self, seconds):
        return self.process.stdout.readline().rstrip('\n') or None


def main():
    if len(sys.argv) not in (4, 5):
        print(__doc__, file=sys.stderr)
        return 2
    program, device, address, *port = sys.argv[1:]
    end = ProcessEnd(program, device)
    with socket.create_server(('', int(port[0]) if port else PORT)) as server:
        while True:
            print('waiting for a testroce that connects', flush=True)
            with server.accept()[0] as connection:
                Service(connection, end, address).run()


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""Captures of the wire, and the few fields of RoCEv2 packets that tests count by. A decoder of our own, so that what uroce sends is not judged by what uroce reads."""
import os
import signal
import socket
import struct
import subprocess
import time

ROCE_PORT = 4791
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM = range(6)
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = range(6, 12)
READ_REQUEST, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY, ACK, ATOMIC_ACK, COMPARE_SWAP, FETCH_ADD = range(12, 21)
REQUESTS = set(range(READ_REQUEST + 1)) | {COMPARE_SWAP, FETCH_ADD}
FIRSTS, LASTS = {SEND_FIRST, SEND_ONLY, SEND_ONLY_IMM, WRITE_FIRST, WRITE_ONLY, WRITE_ONLY_IMM}, {SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM}
PSN_BITS = 24


class Packet:
    """time (seconds), service (of the opcode: 0 RC, 1 UC, 3 UD), opcode (the rest of it), qpn, psn, source (address), syndrome (of ACK; else None), length (RETH's, of READ REQUEST; else 0)"""

    def __init__(self, source, bth):
        self.time, self.source, self.service, self.opcode = 0, source, bth[0] >> 5, bth[0] & 31
        self.qpn, self.psn = int.from_bytes(bth[5:8], 'big'), int.from_bytes(bth[9:12], 'big')
        self.syndrome = bth[12] if self.opcode == ACK else None
        self.length = struct.unpack('>I', bth[24:28])[0] if self.opcode == READ_REQUEST else 0


def parse(frame):
    """None: no RoCEv2 packet."""
    if frame[12:14] == b'\x08\x00':
        udp = 14 + (frame[14] & 15) * 4
        protocol, source = frame[23], socket.inet_ntop(socket.AF_INET, frame[26:30])
    elif frame[12:14] == b'\x86\xdd':
        udp, protocol, source = 54, frame[20], socket.inet_ntop(socket.AF_INET6, frame[22:38])
    else:
        return None
    if protocol != 17 or len(frame) < udp + 24 or struct.unpack('>H', frame[udp + 2:udp + 4])[0] != ROCE_PORT:
        return None
    return Packet(source, frame[udp + 8:])


def read(path):
    """Packets of a classic little-endian pcap file, as tcpdump writes it here."""
    with open(path, 'rb') as f:
        data = f.read()
    if data[:4] != b'\xd4\xc3\xb2\xa1' or struct.unpack('<I', data[20:24])[0] != 1:
        raise ValueError('%s is no Ethernet capture of this machine' % path)
    at, packets = 24, []
    while at + 16 <= len(data):
        length = struct.unpack('<I', data[at + 8:at + 12])[0]
        packet = parse(data[at + 16:at + 16 + length])
        if packet:
            packet.time = struct.unpack('<I', data[at:at + 4])[0] + struct.unpack('<I', data[at + 4:at + 8])[0] / 1e6
            packets.append(packet)
        at += 16 + length
    return packets


class Capture:
    """tcpdump on an interface, from construction until stop()."""

    def __init__(self, space, interface, path):
        self.path = path
        self.process = subprocess.Popen(['ip', 'netns', 'exec', space, 'tcpdump', '--immediate-mode', '-B', '65536', '-s', '128', '-U', '-Z', 'root', '-i', interface, '-w', path,
                                         'udp port %d' % ROCE_PORT], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        while line and 'listening' not in line:
            line = self.process.stderr.readline()
        if not line:
            raise OSError('tcpdump does not start on %s' % interface)

    def stop(self):
        """The packets; raises OSError when some were lost."""
        time.sleep(0.3)
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=20)
        if '\n0 packets dropped by kernel' not in '\n' + said:
            raise OSError('tcpdump lost packets: ' + said.strip().replace('\n', '; '))
        packets = read(self.path)
        os.unlink(self.path)
        return packets


def psn_after(psn, base):
    """How far psn is behind base, in the order of serial numbers."""
    d = (psn - base) % (1 << PSN_BITS)
    return d - (1 << PSN_BITS) if d >= 1 << (PSN_BITS - 1) else d


class UcReceiver:
    """What a UC responder makes of packets as they come: numbers of the messages that arrive, packets out of sequence and packets dropped. epsn: the first PSN; all messages have message_psns packets."""

    def __init__(self, epsn, message_psns):
        self.first, self.epsn, self.message_psns = epsn, epsn, message_psns
        self.arrived, self.out_of_sequence, self.dropped, self.is_open = [], 0, 0, False

    def accept(self, p):
        self.epsn = (p.psn + 1) % (1 << PSN_BITS)
        self.is_open = p.opcode not in LASTS
        if not self.is_open:
            self.arrived.append((psn_after(p.psn, self.first) + 1) // self.message_psns - 1)


class UroceReceiver(UcReceiver):
    OLD_MAX = 4096

    def take(self, p):
        ahead, begins = psn_after(p.psn, self.epsn), p.opcode in FIRSTS
        if ahead < 0 and (not begins or ahead >= -self.OLD_MAX):
            self.dropped += 1
            return
        self.out_of_sequence += ahead != 0
        if begins or (self.is_open and not ahead):
            self.accept(p)
        else:
            self.epsn, self.is_open, self.dropped = (p.psn + 1) % (1 << PSN_BITS), False, self.dropped + 1


class RxeReceiver(UcReceiver):
    """After a message of which the end is missing it drops the next first packet, too, and with it that message."""

    def __init__(self, epsn, message_psns):
        super().__init__(epsn, message_psns)
        self.is_skipping = False

    def take(self, p):
        begins = p.opcode in FIRSTS
        self.is_skipping = not begins and (self.is_skipping or p.psn != self.epsn or not self.is_open)
        if begins and self.is_open:
            self.is_open = False
        elif not self.is_skipping:
            self.accept(p)


def count_repeated(packets, source, qpn, first_psn, mtu):
    """Request packets of a source to a QP that begin before the end of what it had sent already: what it sent again."""
    frontier, repeated = first_psn, 0
    for p in packets:
        if p.source != source or p.qpn != qpn or p.opcode not in REQUESTS:
            continue
        psns = max(1, (p.length + mtu - 1) // mtu)
        if psn_after(p.psn, frontier) < 0:
            repeated += 1
        if psn_after(p.psn + psns, frontier) > 0:
            frontier = (p.psn + psns) % (1 << PSN_BITS)
    return repeated

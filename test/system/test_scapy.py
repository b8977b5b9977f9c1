#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_scapy.py EMIT_FRAMES: what build.h writes, read by programs of others.

scapy (scapy.contrib.roce) dissects every IPv4 frame and computes IP checksum and ICRC anew; tshark dissects all of them,
IPv6 and VLAN too, and must find no malformed one. Each part is skipped where its program is not installed; exit code 77
when both are."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile

# As in test/unit/frames.h.
DQPN, PSN, PKEY, MSN, SYNDROME, SRC_QPN = 0xabcdef, 0x123456, 0x7ffe, 0x654321, 0x1f, 0xfedcba
RETH = struct.pack('>QII', 0x0102030405060708, 0x11223344, 0x55667788)
ATOMIC = struct.pack('>QIQQ', 0x1112131415161718, 0x99aabbcc, 0x2122232425262728, 0x3132333435363738)
ORIGINAL = struct.pack('>Q', 0x4142434445464748)
AETH = struct.pack('>I', SYNDROME << 24 | MSN)
DETH = struct.pack('>II', 0x80010000, SRC_QPN)
FETH = struct.pack('>I', 3 << 4 | 0xa)
IMM, IETH = bytes([0xd1, 0xd2, 0xd3, 0xd4]), bytes([0xe1, 0xe2, 0xe3, 0xe4])

# Extension headers by place in the block of 32 opcodes.
HEADERS = {3: IMM, 5: IMM, 6: RETH, 9: IMM, 10: RETH, 11: RETH + IMM, 12: RETH, 13: AETH, 15: AETH, 16: AETH, 17: AETH,
           18: AETH + ORIGINAL, 19: ATOMIC, 20: ATOMIC, 22: IETH, 23: IETH, 28: FETH + RETH, 29: RETH}


def expected_behind_bth(opcode, payload_len):
    """Everything between BTH and ICRC."""
    if opcode == 0x81:
        return bytes(16)
    payload = bytes((i * 7 + 0x80) & 0xff for i in range(payload_len))
    return (DETH if opcode >> 5 == 3 else b'') + HEADERS.get(opcode & 31, b'') + payload + bytes(-payload_len % 4)


def check(is_right, what):
    if not is_right:
        sys.exit('FAILED: ' + what)


def check_with_scapy(path):
    try:
        import logging
        logging.getLogger('scapy').setLevel(logging.ERROR)
        from scapy.layers.inet import IP, UDP
        from scapy.contrib.roce import AETH as AethLayer, BTH
        from scapy.utils import rdpcap
    except ImportError as e:
        print('skipped: scapy:', e)
        return False
    seen = set()
    for n, frame in enumerate(rdpcap(path), 1):
        comment = frame.comment.decode().split()
        if comment[0] == 'other' or IP not in frame:
            continue
        opcode, payload_len = int(comment[0], 16), int(comment[1])
        name = 'frame %d, opcode 0x%02x' % (n, opcode)
        bth = frame[BTH]
        want = {'opcode': opcode, 'solicited': 1, 'migreq': 1, 'padcount': -payload_len % 4, 'version': 0, 'pkey': PKEY, 'fecn': 0,
                'becn': 0, 'resv6': 0, 'dqpn': DQPN, 'ackreq': 1, 'resv7': 0, 'psn': PSN}
        for field, value in want.items():
            check(getattr(bth, field) == value, '%s: %s is %r' % (name, field, getattr(bth, field)))
        check((frame[IP].tos, frame[IP].ttl, frame[IP].id, str(frame[IP].flags), frame[IP].ihl) == (0x6a, 63, 0, 'DF', 5), name + ': IP')
        check((frame[UDP].sport, frame[UDP].dport, frame[UDP].chksum) == (0xd00d, 4791, 0), name + ': UDP')
        check(bytes(bth.payload) == expected_behind_bth(opcode, payload_len), name + ': behind the BTH')
        if AethLayer in frame:
            check((frame[AethLayer].syndrome, frame[AethLayer].msn) == (SYNDROME, MSN), name + ': AETH')
        before = bytes(frame)
        bth.icrc = frame[IP].chksum = frame[IP].len = frame[UDP].len = None
        check(bytes(frame) == before, name + ': ICRC, lengths or IP checksum differ from what scapy computes')
        seen.add(opcode)
    check(len(seen) == 25 + 12 + 2 + 1, '%d opcodes seen by scapy' % len(seen))
    print('scapy agrees on %d opcodes' % len(seen))
    return True


def run_tshark(path, *args):
    return subprocess.run(['tshark', '-r', path] + list(args), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout


def check_with_tshark(path):
    if not shutil.which('tshark'):
        print('skipped: no tshark')
        return False
    malformed = run_tshark(path, '-Y', '_ws.malformed')
    check(not malformed, 'malformed for tshark:\n' + malformed)
    # VA, atomic compare and payload are checked by scapy; here it is that the right headers are found in every framing.
    fields = ['frame.comment', 'infiniband.bth.opcode', 'infiniband.bth.destqp', 'infiniband.bth.psn', 'infiniband.bth.padcnt',
              'infiniband.reth.dmalen', 'infiniband.aeth.msn', 'infiniband.deth.srcqp', 'infiniband.immdt', 'infiniband.ieth',
              'infiniband.atomicacketh.origremdt', 'infiniband.atomiceth.cmpdt']
    args = [a for f in fields for a in ('-e', f)]
    rows = 0
    for n, line in enumerate(run_tshark(path, '-Y', 'infiniband', '-T', 'fields', '-E', 'occurrence=f', *args).replace('\\n', '').splitlines(), 1):
        v = line.split('\t')
        opcode, payload_len = (int(x, 0) for x in v[0].split())
        ext = expected_behind_bth(opcode, 0) if opcode != 0x81 else b''
        want = [opcode, DQPN, PSN, -payload_len % 4, 0x55667788 if RETH in ext else None, MSN if AETH in ext else None,
                SRC_QPN if DETH in ext else None, 0xd1d2d3d4 if IMM in ext else None, 0xe1e2e3e4 if IETH in ext else None,
                0x4142434445464748 if ORIGINAL in ext else None, 0x3132333435363738 if ATOMIC in ext else None]
        # tshark does not know which number base bytes are in.
        got = [(int(x, 16) if f in ('infiniband.immdt', 'infiniband.ieth') else int(x, 0)) if x else None for f, x in zip(fields[1:], v[1:])]
        if opcode in (0x1c, 0x1d):  # of IBA 1.5: an older tshark knows no headers of theirs
            got, want = got[:4], want[:4]
        check(got == want, 'tshark, row %d, opcode 0x%02x: %s, not %s' % (n, opcode, got, want))
        rows += 1
    per_framing = sum(1 if expected_is_bare(o) else 5 for o in all_opcodes())
    check(rows == 4 * per_framing, 'tshark saw %d rows, not %d' % (rows, 4 * per_framing))
    check(len(run_tshark(path, '-Y', 'arp').splitlines()) == 4, 'ARP for tshark')
    check(len(run_tshark(path, '-Y', 'icmpv6.checksum.status == 1').splitlines()) == 4, 'ND checksums for tshark')
    check(len(run_tshark(path, '-o', 'ip.check_checksum:TRUE', '-Y', 'ip.checksum.status == 1').splitlines()) == 2 * per_framing, 'IP checksums')
    print('tshark agrees on %d frames' % rows)
    return True


def all_opcodes():
    return [o for o in range(0x18) if o != 0x15] + [0x1c, 0x1d] + list(range(0x20, 0x2c)) + [0x64, 0x65, 0x81]


def expected_is_bare(opcode):
    """Whether emit_frames has one frame for it, without payload."""
    return opcode == 0x81 or (opcode & 31) in (12, 17, 18, 19, 20, 28)


def main():
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, 'frames.pcapng')
        subprocess.run([sys.argv[1], path], check=True)
        ran = [check_with_scapy(path), check_with_tshark(path)]
    sys.exit(0 if any(ran) else 77)


if __name__ == '__main__':
    main()

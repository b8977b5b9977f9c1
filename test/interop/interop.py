#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""interop.py PEER UROCE-PERF TESTROCE MATRIX-FILE [--guide FILE]: uroce against the kernel's rdma_rxe in a guest. Writes TAP, and the matrix of operations as a table.

PEER is peer.c over uroce. The table goes to MATRIX-FILE too, and with --guide into the guide, between its two marks. Environment: UROCE_INTEROP_KERNEL, Debian's package with the guest's kernel
(linux-image-amd64); TMPDIR, where the guest's image is kept between runs."""
import os
import shutil
import signal
import sys
import tempfile

sys.dont_write_bytecode = True  # the sources may be anywhere, and need not be written to

import errors
import guest
import loss
import matrix
import multicast
import pingpong
import rules
import testroce
import testroce_server
import unreliable
from lab import Lab, PeerError, find_lack

GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'doc', 'guide', 'interop.md')
MARKS = '<!-- matrix -->', '<!-- end of matrix -->'
WAYS = ((True, 'uroce to rxe'), (False, 'rxe to uroce'))
FAILURES = (PeerError, guest.GuestError, OSError, ValueError)


class Tap:
    def __init__(self):
        self.number = 0

    def line(self, text):
        self.number += 1
        print(text, flush=True)

    def say(self, text):
        for line in text.splitlines():
            print('# ' + line, flush=True)

    def check(self, name, run):
        """run() raises one of FAILURES, or returns something to be said, or None."""
        try:
            said = run()
        except FAILURES as e:
            self.say(str(e))
            self.line('not ok %d - %s' % (self.number + 1, name))
            return
        if said:
            self.say(str(said))
        self.line('ok %d - %s' % (self.number + 1, name))

    def skip(self, name, reason):
        self.line('ok %d - %s # SKIP %s' % (self.number + 1, name, reason))


def cache_folder():
    folder = os.path.join(os.environ.get('TMPDIR', '/tmp'), 'uroce-interop-%d' % os.getuid())
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.stat(folder).st_uid != os.getuid():
        raise OSError('%s belongs to somebody else' % folder)
    return folder


def test_matrix(tap, lab, path):
    cells = matrix.Matrix(lab)
    cells.run(tap.say)
    for name, group in cells.sessions():
        bad = ['%s: %s' % (c, c.result) for c in group if c.result]
        if all(c.result is None for c in group):
            tap.skip(name, group[0].reason)
        else:
            tap.say('\n'.join(bad))
            tap.line('%sok %d - %s' % ('not ' if bad else '', tap.number + 1, name))
    table = cells.table()
    tap.say('%d cells passed, %d failed, %d skipped, in %.0f s; %d messages of UC and UD were lost and sent again\n\n%s' % (*cells.count(), cells.seconds, cells.lost, table))
    with open(path, 'w', encoding='utf-8') as f:
        f.write(table)
    return cells


def read_guide(path):
    with open(path, encoding='utf-8') as f:
        text = f.read()
    before, rest = text.split(MARKS[0])
    table, after = rest.split(MARKS[1])
    return before, table, after


def check_guide(cells):
    """What the guide shows is what was found: written by --guide, so that nobody has to."""
    if read_guide(GUIDE)[1].strip() != cells.table().strip():
        raise ValueError('doc/guide/interop.md shows another table: run this with --guide doc/guide/interop.md')


def write_guide(path, cells):
    before, _, after = read_guide(path)
    with open(path, 'w', encoding='utf-8') as f:
        f.write('%s%s\n\n%s\n%s%s' % (before, MARKS[0], cells.table(), MARKS[1], after))


def test_all(tap, lab, perf, troce, matrix_path, guide):
    cells = test_matrix(tap, lab, matrix_path)
    if guide:
        write_guide(guide, cells)
    if 'UROCE_INTEROP_KERNEL' in os.environ:
        tap.skip('the guide shows this matrix', 'it shows that of Debian\'s own kernel')
    else:
        tap.check('the guide shows this matrix', lambda: check_guide(cells))
    for name, rule in rules.RULES:
        for is_uroce, way in WAYS:
            tap.check('%s, %s' % (name, way), lambda rule=rule, is_uroce=is_uroce: rule(lab, is_uroce))
    host, peer = lab.packet_end(), lab.guest_end()
    for case in errors.CASES:
        for is_uroce, way in WAYS:
            tap.check('error: %s, %s' % (case.name, way), lambda case=case, is_uroce=is_uroce: errors.run(host, peer, case, is_uroce))
    for case in errors.newest_cases(not matrix.find_lack(lab.guest.release, matrix.DIRECTIONS[0], 'atomic_write')):
        tap.check('error: %s, %s' % (case.name, WAYS[0][1]), lambda case=case: errors.run(host, peer, case, True))
    for case in unreliable.CASES:
        for is_uroce, way in WAYS:
            tap.check('%s, %s, %s, %s' % (case[0].name, case[1], case[2].name, way), lambda case=case, is_uroce=is_uroce: unreliable.run(lab, host, peer, case, is_uroce))
    for family in multicast.ADDRESSES:
        for is_uroce, way in WAYS:
            tap.check('multicast groups that are left, %s, %s' % (family, way), lambda family=family, is_uroce=is_uroce: multicast.run(host, peer, family, is_uroce))
    host.close()
    peer.close()
    for scenario in loss.SCENARIOS:
        for is_uroce, way in WAYS:
            tap.check('%s, %s' % (scenario.name, way), lambda scenario=scenario, is_uroce=is_uroce: loss.run(lab, scenario, is_uroce))
    for game in pingpong.GAMES:
        tap.check(str(game), lambda game=game: pingpong.run(lab, perf, game))
    for mode in testroce_server.MODES:
        tap.check('testroce, mode %s' % mode, lambda mode=mode: testroce.run(lab, troce, mode))


def run_lab(tap, args, folder, guide):
    kernel, cache = os.environ.get('UROCE_INTEROP_KERNEL', 'linux-image-amd64'), cache_folder()
    try:
        guest.build(cache, kernel)
    except guest.GuestError as e:
        tap.skip('everything', 'cannot build the guest: %s' % e)
        return
    lab = Lab(args[0], folder, cache, kernel)
    try:
        tap.check('the guest boots with rdma_rxe', lab.open)
        if lab.guest.release:
            tap.say('Linux %s, ready after %.1f s' % (lab.guest.release, lab.guest.boot_seconds))
            test_all(tap, lab, *args[1:], guide)
    finally:
        lab.close()


def main():
    args = [a for a in sys.argv[1:]]
    guide = None
    if '--guide' in args:
        at = args.index('--guide')
        guide = args[at + 1]
        del args[at:at + 2]
    if len(args) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of everything that has to be removed
    tap, lack = Tap(), find_lack()
    if os.path.exists(args[3]):
        os.unlink(args[3])  # of another run
    if lack:
        tap.skip('everything', lack)
    else:
        folder = tempfile.mkdtemp(prefix='uroce-interop-')
        try:
            run_lab(tap, args, folder, guide)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    print('1..%d' % tap.number)
    return 0


if __name__ == '__main__':
    sys.exit(main())

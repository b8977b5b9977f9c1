# SPDX-License-Identifier: BSD-3-Clause
"""`uroce-perf --peer pingpong` against the guest's ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong and ibv_srq_pingpong, as client and as server."""
import json
import os
import re
import subprocess
import time

from lab import GUEST_IP4, GUEST_IP6, HOST_IP4, HOST_IP6, PeerError, gid_index

ADDRESSES = {'IPv4': (HOST_IP4, GUEST_IP4), 'IPv6': (HOST_IP6, GUEST_IP6)}
PORT = 18600
SECONDS = 60


# Debian's programs: what they are to uroce-perf, and the defaults of both.
PROGRAMS = {'ibv_rc_pingpong': [], 'ibv_uc_pingpong': ['--service', 'uc'], 'ibv_ud_pingpong': ['--service', 'ud'], 'ibv_srq_pingpong': ['--srq']}
DEFAULTS = {'size': 4096, 'mtu': 1024, 'iters': 1000, 'qps': 1}
OWN_DEFAULTS = {'ibv_ud_pingpong': {'size': 1024, 'mtu': None}, 'ibv_srq_pingpong': {'qps': 16}}
OPTIONS = {'size': ('-s', '--sizes'), 'mtu': ('-m', '--mtu'), 'iters': ('-n', '--iters'), 'qps': ('-q', '--qps')}


class Game:
    """What is not told is left to the defaults of both programs; with nothing told not even the TCP port is."""

    def __init__(self, program, role, mode, family='IPv4', **told):
        self.program, self.role, self.mode, self.family, self.told = program, role, mode, family, told
        self.all = {**DEFAULTS, **OWN_DEFAULTS.get(program, {}), **told}

    def __str__(self):
        told = ', '.join('%s %s' % (k, v) for k, v in self.all.items() if v is not None)
        return '%s, uroce as %s, %s, %s, %s' % (self.program, self.role, self.mode, self.family, told)

    def options(self, side):
        """side 0: of the guest's program, 1: of uroce-perf."""
        return [word for name, value in self.told.items() for word in (OPTIONS[name][side], str(value))]


def both(program, mode, family='IPv4', **told):
    return [Game(program, role, mode, family, **told) for role in ('client', 'server')]


GAMES = (*both('ibv_rc_pingpong', 'embedded'), *both('ibv_rc_pingpong', 'inline', 'IPv6', size=100001, mtu=4096, iters=100),
         Game('ibv_rc_pingpong', 'client', 'inline', size=1, mtu=256, iters=300), Game('ibv_rc_pingpong', 'server', 'inline', size=2500, mtu=512, iters=300),
         *both('ibv_uc_pingpong', 'embedded'), *both('ibv_uc_pingpong', 'inline', 'IPv6', size=10001, mtu=4096, iters=100),
         *both('ibv_ud_pingpong', 'embedded'), *both('ibv_ud_pingpong', 'inline', 'IPv6', size=4096, iters=300), Game('ibv_ud_pingpong', 'client', 'inline', size=1, iters=300),
         *both('ibv_srq_pingpong', 'embedded'), *both('ibv_srq_pingpong', 'inline', 'IPv6', size=5001, mtu=2048, iters=300, qps=100))


def guest_command(game, index):
    port = ['-p', str(PORT)] if game.told else []
    return ' '.join([game.program, '-d rxe0 -g %d' % index, *game.options(0), *port, *([HOST_IP4] if game.role == 'server' else [])])


def host_command(lab, perf, game, index):
    device = '%s:net_af_packet0,iface=u0%s' % (game.mode, ',idle=sleep' if game.mode == 'embedded' else '')
    at = ':%d' % PORT if game.told else ''
    role = ['--connect', GUEST_IP4 + at] if game.role == 'client' else ['--listen', HOST_IP4 + at]
    return ['ip', 'netns', 'exec', lab.host, 'timeout', '-k', '5', str(SECONDS), perf, '--peer', 'pingpong', *PROGRAMS[game.program], '--verify', '--json', '-', '--device', device,
            '--gid-index', str(index), *role, *game.options(1)]


def find_gids(lab, family):
    host, guest = lab.packet_end(), lab.guest_end()
    try:
        return gid_index(host, ADDRESSES[family][0]), gid_index(guest, ADDRESSES[family][1])
    finally:
        host.close()
        guest.close()


def run(lab, perf, game):
    """Raises PeerError unless both programs end well and say that all messages went."""
    indices = find_gids(lab, game.family)
    env = dict(os.environ, UROCE_LOG='error')
    commands = (guest_command(game, indices[1]), host_command(lab, perf, game, indices[0]))
    guest = lab.guest.command('exec 2>&1; ' + commands[0]) if game.role == 'client' else None
    with subprocess.Popen(commands[1], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) as host:
        try:
            if not guest:
                wait_for_listener(lab, host)
                guest = lab.guest.command('exec 2>&1; ' + commands[0])
            said, _ = host.communicate(timeout=SECONDS + 10)
            code = guest.wait(20)
        finally:
            if host.poll() is None:
                host.kill()
            if guest:
                guest.close()
    heard = guest.out.decode(errors='replace')
    if host.returncode or code or not is_right(game, said, heard):
        raise PeerError('uroce-perf ended with %s: %s; %s ended with %s: %s' % (host.returncode, said.strip()[-800:], game.program, code, heard.strip()[-400:]))


def is_right(game, said, heard):
    try:
        row, = json.loads(re.sub(r'^uroce-perf: waiting for a client at .*\n', '', said))
    except ValueError:
        return False
    # of several QPs some messages more may come
    return row['verified'] >= game.all['iters'] and row['size'] == game.all['size'] and row['qps'] == game.all['qps'] and '%d iters in' % game.all['iters'] in heard


def wait_for_listener(lab, host):
    for _ in range(100):
        if 'LISTEN' in subprocess.run(['ip', 'netns', 'exec', lab.host, 'ss', '-Hltn'], capture_output=True, text=True, timeout=10).stdout:
            return
        if host.poll() is not None:
            raise PeerError('uroce-perf ended with %d: %s' % (host.returncode, host.stdout.read().strip()[-400:]))
        time.sleep(0.1)
    raise PeerError('uroce-perf does not listen')

# SPDX-License-Identifier: BSD-3-Clause
"""`uroce-perf --peer pingpong` against the guest's ibv_rc_pingpong, as client and as server."""
import os
import subprocess
import time

from lab import GUEST_IP4, GUEST_IP6, HOST_IP4, HOST_IP6, PeerError, gid_index

ADDRESSES = {'IPv4': (HOST_IP4, GUEST_IP4), 'IPv6': (HOST_IP6, GUEST_IP6)}
PORT = 18600
SECONDS = 60


class Game:
    def __init__(self, role, mode, family='IPv4', size=4096, mtu=1024, iters=1000):
        self.role, self.mode, self.family, self.size, self.mtu, self.iters = role, mode, family, size, mtu, iters

    def __str__(self):
        return 'uroce as %s, %s, %s, %d bytes, path MTU %d, %d times' % (self.role, self.mode, self.family, self.size, self.mtu, self.iters)


GAMES = (Game('client', 'embedded'), Game('server', 'embedded'), Game('client', 'inline', 'IPv6', 100001, 4096, 100), Game('server', 'inline', 'IPv6', 100001, 4096, 100),
         Game('client', 'inline', size=1, mtu=256, iters=300), Game('server', 'inline', size=2500, mtu=512, iters=300))


def is_default(game):
    """With the defaults of both programs, no options at all."""
    return (game.size, game.mtu, game.iters) == (4096, 1024, 1000)


def guest_command(game, index):
    options = '' if is_default(game) else '-m %d -n %d -s %d -p %d' % (game.mtu, game.iters, game.size, PORT)
    return 'ibv_rc_pingpong -d rxe0 -g %d %s%s' % (index, options, ' ' + HOST_IP4 if game.role == 'server' else '')


def host_command(lab, perf, game, index):
    device = '%s:net_af_packet0,iface=u0%s' % (game.mode, ',idle=sleep' if game.mode == 'embedded' else '')
    at = '' if is_default(game) else ':%d' % PORT
    role = ['--connect', GUEST_IP4 + at] if game.role == 'client' else ['--listen', HOST_IP4 + at]
    options = [] if is_default(game) else ['--mtu', str(game.mtu), '--iters', str(game.iters), '--sizes', str(game.size)]
    return ['ip', 'netns', 'exec', lab.host, 'timeout', '-k', '5', str(SECONDS), perf, '--peer', 'pingpong', '--verify', '--device', device, '--gid-index', str(index)] + role + options


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
    row = [line for line in said.splitlines() if line.startswith('send ')]
    if host.returncode or code or not row or row[0].split()[-1] != str(game.iters) or '%d iters in' % game.iters not in heard:
        raise PeerError('uroce-perf ended with %s: %s; ibv_rc_pingpong ended with %s: %s' % (host.returncode, said.strip()[-400:], code, heard.strip()[-400:]))


def wait_for_listener(lab, host):
    for _ in range(100):
        if 'LISTEN' in subprocess.run(['ip', 'netns', 'exec', lab.host, 'ss', '-Hltn'], capture_output=True, text=True, timeout=10).stdout:
            return
        if host.poll() is not None:
            raise PeerError('uroce-perf ended with %d: %s' % (host.returncode, host.stdout.read().strip()[-400:]))
        time.sleep(0.1)
    raise PeerError('uroce-perf does not listen')

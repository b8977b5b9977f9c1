# SPDX-License-Identifier: BSD-3-Clause
"""Where uroce and the guest meet: two network namespaces, and in them everything a test needs of the network.

    namespace wire:  bridge br0 (10.10.0.100) with the guest's tap t0 (guest: 10.10.0.1, fd10::1), veth end u1, and the tap device that net_tap makes
    namespace host:  veth end u0 (10.10.0.2, fd10::2), which an engine over net_af_packet shares with the kernel

Everything is removed again by close(), also after a start that failed half-way."""
import os
import re
import shutil
import subprocess
import time

from guest import Guest, GuestError
import capture

MTU = 4200
GUEST_MAC = '52:54:00:00:00:01'
GUEST_IP4, HOST_IP4, BRIDGE_IP4, TAP_IP4 = '10.10.0.1', '10.10.0.2', '10.10.0.100', '10.10.0.3'
GUEST_IP6, HOST_IP6, TAP_IP6 = 'fd10::1', 'fd10::2', 'fd10::3'
TAP, TAP_MAC = 'utap0', '52:54:00:00:00:03'
QUEUE_FRAMES = 20000  # UC has no flow control: a message of 8 MiB has to fit into the queues on its way


def find_lack():
    """What this machine lacks for the suite, as a sentence; '' when nothing."""
    if os.geteuid():
        return 'needs root'
    for program in ('qemu-system-x86_64', 'ip', 'ss', 'setpriv', 'tcpdump', 'nft', 'apt-get', 'dpkg-deb', 'gcc', 'cpio', 'xz', 'zstd', 'readelf', 'depmod'):
        if not shutil.which(program, path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin'):
            return 'needs %s' % program
    if not os.path.exists('/usr/include/infiniband/verbs.h'):
        return 'needs libibverbs-dev'
    if not os.path.exists('/dev/net/tun'):
        return 'needs /dev/net/tun'
    return ''


class PeerError(Exception):
    pass


class End:
    """test/interop/peer.c, here or in the guest, by its lines."""

    def __init__(self, name):
        self.name = name

    def start(self):
        first = self.read_line(30)
        if first is None or not first.startswith('ok '):
            raise PeerError('%s: %s' % (self.name, first or 'the peer did not start'))

    def do(self, *commands, seconds=30):
        """Answers of all the commands, which are sent at once, as dictionaries; raises PeerError at the first that is an error."""
        self.begin(*commands)
        return self.collect(*commands, seconds=seconds)

    def begin(self, *commands):
        self.write(''.join(c + '\n' for c in commands))

    def collect(self, *commands, seconds=30):
        answers, error = [], ''
        for command in commands:
            line = self.read_line(seconds)
            if line is None:
                raise PeerError('%s: no answer to "%s"' % (self.name, command))
            if not line.startswith('ok'):
                error = error or '%s: %s: %s' % (self.name, command, line)
            answers.append({k: int(v) if v.isdigit() else v for k, _, v in (w.partition('=') for w in line.split()[1:])})
            answers[-1]['text'] = line[3:]
        if error:
            raise PeerError(error)
        return answers

    def ask(self, command, seconds=30):
        return self.do(command, seconds=seconds)[0]


def ask_together(*work, seconds=30):
    """work: (end, [command, ...]) for each end, which work at the same time. Their answers; raises PeerError with the first thing that went wrong, when all have answered."""
    answers, error = [], None
    for end, commands in work:
        end.begin(*commands)
    for end, commands in work:
        try:
            answers.append(end.collect(*commands, seconds=seconds))
        except PeerError as e:
            error = error or e
    if error:
        raise error
    return answers


class HostEnd(End):
    def __init__(self, lab, device, space, log):
        super().__init__('uroce')
        self.log = log
        env = dict(os.environ, UROCE_LOG='error')
        self.process = subprocess.Popen(['ip', 'netns', 'exec', space, lab.peer, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(log, 'wb'), env=env)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.out = b''
        try:
            self.start()
        except PeerError:
            self.close()
            with open(log, encoding='utf-8', errors='replace') as f:
                said = [line for line in f.read().splitlines() if line.strip()]
            raise PeerError('%s does not open: %s' % (device, said[-1] if said else 'it said nothing')) from None

    def write(self, text):
        try:
            self.process.stdin.write(text.encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def read_line(self, seconds):
        end = time.monotonic() + seconds
        while b'\n' not in self.out:
            data = self.process.stdout.read()
            if data == b'' or (data is None and time.monotonic() > end):
                return None
            if data is None:
                time.sleep(0.0005)
            self.out += data or b''
        line, self.out = self.out.split(b'\n', 1)
        return line.decode(errors='replace')

    def close(self):
        if self.process.poll() is None:
            self.write('quit\n')
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class GuestEnd(End):
    def __init__(self, lab):
        super().__init__('rxe')
        self.command = lab.guest.command('peer rxe0')
        try:
            self.start()
        except PeerError:
            self.close()
            raise

    def write(self, text):
        self.command.write(text)

    def read_line(self, seconds):
        return self.command.read_line(seconds)

    def close(self):
        self.command.close()


def remove_stale_spaces():
    """Those of runs that were killed."""
    names = subprocess.run(['ip', 'netns', 'list'], capture_output=True, text=True, timeout=20).stdout.split()
    for name in names:
        if name.startswith(('uroce-iw-', 'uroce-ih-')) and not os.path.exists('/proc/' + name[9:]):
            subprocess.run(['ip', 'netns', 'del', name], capture_output=True, timeout=20)


class Lab:
    def __init__(self, peer, folder, cache, kernel):
        """peer: the program over uroce. folder: for logs and sockets of this run."""
        self.peer, self.folder = peer, folder
        self.wire, self.host = 'uroce-iw-%d' % os.getpid(), 'uroce-ih-%d' % os.getpid()
        self.guest = Guest(os.path.join(folder, 'guest'), cache, kernel)
        self.ends = 0

    def ip(self, space, *words):
        done = subprocess.run(['ip', '-n', space] + ' '.join(words).split(), capture_output=True, text=True, timeout=20)
        if done.returncode:
            raise GuestError('ip -n %s %s: %s' % (space, ' '.join(words), done.stderr.strip()))

    def set(self, space, name, value):
        subprocess.run(['ip', 'netns', 'exec', space, 'sysctl', '-qw', '%s=%s' % (name, value)], capture_output=True, timeout=20)

    def open(self):
        remove_stale_spaces()
        for space in (self.wire, self.host):
            subprocess.run(['ip', 'netns', 'add', space], check=True, capture_output=True, timeout=20)
            self.ip(space, 'link set lo up')
        self.set(self.wire, 'net.ipv6.conf.default.disable_ipv6', 1)
        self.ip(self.wire, 'link add br0 type bridge mcast_snooping 0')
        self.ip(self.wire, 'tuntap add t0 mode tap')
        self.ip(self.wire, 'link add u1 mtu %d type veth peer name u0 netns %s mtu %d' % (MTU, self.host, MTU))
        for name in ('t0', 'u1'):
            self.ip(self.wire, 'link set %s mtu %d txqueuelen %d master br0 up' % (name, MTU, QUEUE_FRAMES))
        self.ip(self.wire, 'link set br0 mtu %d up' % MTU)
        self.ip(self.wire, 'addr add %s/24 dev br0' % BRIDGE_IP4)
        self.ip(self.host, 'link set u0 up')
        self.ip(self.host, 'addr add %s/24 dev u0' % HOST_IP4)
        self.ip(self.host, '-6 addr add %s/64 dev u0 nodad' % HOST_IP6)
        self.guest.start(self.wire, 't0', GUEST_MAC, [GUEST_IP4 + '/24', GUEST_IP6 + '/64'], MTU)
        # a link that has just come up solicits no neighbours for a second
        for address in (HOST_IP4, HOST_IP6):
            self.guest.must('i=0; until ping -c 1 -W 1 %s; do i=$((i + 1)); [ $i -lt 10 ] || exit 1; done' % address, 30)

    def close(self):
        self.guest.stop()
        for space in (self.wire, self.host):
            subprocess.run(['ip', 'netns', 'del', space], capture_output=True, timeout=20)

    def log_name(self):
        self.ends += 1
        return os.path.join(self.folder, 'peer-%d.log' % self.ends)

    def packet_end(self, keys=''):
        return HostEnd(self, 'embedded:net_af_packet0,iface=u0,idle=sleep' + keys, self.host, self.log_name())

    def tap_end(self, keys=''):
        """Its port has the same address each time, so that the guest's neighbour table stays right."""
        device = 'embedded:net_tap0,iface=%s,mac=%s,mtu=4096,ip=%s/24,ip=%s/64,idle=sleep' % (TAP, TAP_MAC, TAP_IP4, TAP_IP6)
        end = HostEnd(self, device + keys, self.wire, self.log_name())
        try:
            self.ip(self.wire, 'link set %s txqueuelen %d master br0 up' % (TAP, QUEUE_FRAMES))
            self.wait_for_bridge(TAP)
        except GuestError:
            end.close()
            raise
        return end

    def wait_for_bridge(self, name):
        """The bridge hears up to a second late that a port of its has a carrier."""
        for _ in range(50):
            done = subprocess.run(['ip', '-n', self.wire, '-d', 'link', 'show', name], capture_output=True, text=True, timeout=20)
            if 'bridge_slave state forwarding' in done.stdout:
                return
            time.sleep(0.1)
        raise GuestError('%s: the bridge does not forward' % name)

    def guest_end(self):
        return GuestEnd(self)

    def start_capture(self, name):
        """Of what passes between bridge and guest."""
        return capture.Capture(self.wire, 't0', os.path.join(self.folder, name + '.pcap'))

    def drop_before_capture(self, rule):
        """Loses those frames that come from uroce's veth end and match a rule of nft's, until end_drops(), which says how many."""
        self.nft('add table netdev lossy; add chain netdev lossy in { type filter hook ingress device u1 priority 0; }; add rule netdev lossy in %s counter drop' % rule)

    def end_drops(self):
        said = self.nft('list table netdev lossy')
        self.nft('delete table netdev lossy')
        return int(re.search(r'counter packets (\d+)', said).group(1))

    def nft(self, text):
        done = subprocess.run(['ip', 'netns', 'exec', self.wire, 'nft', text], capture_output=True, text=True, timeout=20)
        if done.returncode:
            raise GuestError('nft %s: %s' % (text, done.stderr.strip()))
        return done.stdout


def gid_index(end, address):
    """Index of the end's GID for an address."""
    wanted = address if ':' in address else '::ffff:' + address
    for index, gid in end.ask('gids').items():
        if gid == wanted:
            return int(index)
    raise PeerError('%s has no GID %s' % (end.name, wanted))

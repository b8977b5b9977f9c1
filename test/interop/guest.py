# SPDX-License-Identifier: BSD-3-Clause
"""A guest with the kernel's rdma_rxe under QEMU: building its image, starting and ending it, running commands in it.

Commands go over virtio-serial ports, one command on one port at a time (guest/agent.c has the frames), so they reach the guest whatever its network does."""
import os
import random
import select
import signal
import socket
import struct
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PORTS = 6
HEAD = struct.Struct('>4scII')
# Whole Ethernet frames with final checksums on the tap.
NO_OFFLOAD = ','.join('%s=off' % k for k in 'csum gso guest_csum guest_tso4 guest_tso6 guest_ecn guest_ufo host_tso4 host_tso6 host_ecn host_ufo'.split())
# What makes an emulated boot short.
KERNEL_ARGS = ('console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check nokaslr rcupdate.rcu_expedited=1 cryptomgr.notests '
               'initcall_blacklist=crypto_kdf108_init,init_encrypted,init_kprobe_trace audit=0 net.ifnames=0')


class GuestError(Exception):
    pass


def build(cache, kernel):
    """Makes the image unless it is there; raises GuestError with the last line of what went wrong."""
    done = subprocess.run([os.path.join(HERE, 'guest', 'build.sh'), cache, kernel], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400)
    if done.returncode:
        raise GuestError((done.stderr.strip() or done.stdout.strip() or 'it ended with %d' % done.returncode).splitlines()[-1])


class Command:
    """A command that runs in the guest; its standard input and output are a stream of lines."""

    def __init__(self, guest, text):
        self.guest, self.number, self.code = guest, random.getrandbits(32), None
        self.port = guest.take_port()
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(guest.path('vp%d' % self.port))
        self.pending, self.out = b'', b''
        self.send(b'C', text.encode())

    def send(self, kind, payload=b''):
        self.sock.sendall(HEAD.pack(b'RXF1', kind, self.number, len(payload)) + payload)

    def write(self, data):
        self.send(b'I', data.encode())

    def receive(self, seconds):
        """Waits for something; what the command wrote is added to self.out, its end sets self.code."""
        if not select.select([self.sock], [], [], max(0, seconds))[0]:
            return
        data = self.sock.recv(65536)
        if not data:
            raise GuestError('the guest is gone')
        self.pending += data
        while len(self.pending) >= HEAD.size:
            at = self.pending.find(b'RXF1')
            if at:
                self.pending = self.pending[at if at > 0 else len(self.pending) - 3:]
                continue
            _, kind, number, length = HEAD.unpack_from(self.pending)
            if len(self.pending) < HEAD.size + length:
                return
            payload, self.pending = self.pending[HEAD.size:HEAD.size + length], self.pending[HEAD.size + length:]
            if number != self.number:
                continue
            if kind in b'OR':
                self.out += payload
            elif kind == b'X':
                self.code = struct.unpack('>I', payload)[0]

    def read_line(self, seconds):
        """The next line without its end; None when none comes in time or the command has ended."""
        end = time.monotonic() + seconds
        while b'\n' not in self.out:
            left = end - time.monotonic()
            if self.code is not None or left <= 0:
                return None
            self.receive(left)
        line, self.out = self.out.split(b'\n', 1)
        return line.decode(errors='replace')

    def wait(self, seconds):
        """Exit code, or None: it runs still."""
        end = time.monotonic() + seconds
        while self.code is None and time.monotonic() < end:
            self.receive(end - time.monotonic())
        return self.code

    def close(self):
        """Kills the command if it runs still. Its end is waited for: the port takes no other one before."""
        if self.sock and self.code is None:
            self.send(b'K')
            self.wait(5)
        if self.sock:
            self.sock.close()
            self.guest.give_port(self.port)
        self.sock = None


class Guest:
    def __init__(self, folder, cache, kernel):
        self.folder, self.cache, self.kernel = folder, cache, kernel
        self.process, self.tap, self.busy, self.boot_seconds, self.release = None, None, set(), 0, ''
        os.makedirs(folder)
        if len(self.path('vp0')) > 100:
            raise GuestError('%s is too long a path for a socket: set TMPDIR' % folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def take_port(self):
        for port in range(PORTS):
            if port not in self.busy:
                self.busy.add(port)
                return port
        raise GuestError('all ports to the guest are in use')

    def give_port(self, port):
        self.busy.discard(port)

    def start(self, space, tap, mac, addresses, mtu, seconds=240):
        """tap: a tap device in network namespace `space`, up. On a busy machine an emulated CPU is off for a second and more, and its peers give up: it goes before others."""
        args = ['ip', 'netns', 'exec', space, 'nice', '-n', '-10', 'setpriv', '--pdeathsig', 'KILL', 'qemu-system-x86_64', '-name', 'uroce-interop', '-no-user-config', '-nodefaults', '-display', 'none', '-no-reboot',
                '-accel', 'tcg,thread=multi,tb-size=256', '-cpu', 'max', '-smp', '1', '-m', '512',
                '-kernel', '%s/vmlinux-%s' % (self.cache, self.kernel), '-initrd', '%s/initrd-%s' % (self.cache, self.kernel),
                '-chardev', 'file,id=ser,path=' + self.path('serial.log'), '-serial', 'chardev:ser',
                '-netdev', 'tap,id=n0,ifname=%s,script=no,downscript=no,vhost=off' % tap,
                '-device', 'virtio-net-pci,netdev=n0,mac=%s,host_mtu=%d,%s,romfile=' % (mac, mtu, NO_OFFLOAD),
                '-device', 'virtio-serial-pci,max_ports=%d' % (PORTS + 2)]
        for i in range(PORTS):
            args += ['-chardev', 'socket,id=vp%d,path=%s,server=on,wait=off' % (i, self.path('vp%d' % i)), '-device', 'virtserialport,chardev=vp%d,name=rxe.%d' % (i, i)]
        args += ['-append', '%s rxe.host=guest rxe.mtu=%d rxe.ip=%s' % (KERNEL_ARGS, mtu, ','.join(addresses))]
        start = time.monotonic()
        with open(self.path('qemu.log'), 'wb') as log:
            self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while b'GUEST-READY' not in self.read('serial.log'):
            if self.process.poll() is not None:
                raise GuestError('qemu ended: ' + (self.read('qemu.log').decode(errors='replace').strip() or 'it said nothing').splitlines()[-1])
            if time.monotonic() - start > seconds:
                raise GuestError('the guest was not ready after %d s: %s' % (seconds, (self.read('serial.log')[-200:] or b'it said nothing').decode(errors='replace').strip()))
            time.sleep(0.05)
        self.boot_seconds = time.monotonic() - start
        ready = [line.split() for line in self.read('serial.log').decode(errors='replace').splitlines() if line.startswith('GUEST-READY')][0]
        self.release = ready[1]
        if 'ACTIVE' not in ready:
            raise GuestError('rxe0 is not up: ' + ' '.join(ready))

    def read(self, name):
        try:
            with open(self.path(name), 'rb') as f:
                return f.read()
        except FileNotFoundError:
            return b''

    def command(self, text):
        return Command(self, text)

    def run(self, text, seconds=20):
        """(exit code, output) of a command; None as code: it took too long and was killed."""
        command = Command(self, 'exec 2>&1; ' + text)
        try:
            command.send(b'E')
            return command.wait(seconds), command.out.decode(errors='replace')
        finally:
            command.close()

    def must(self, text, seconds=20):
        code, out = self.run(text, seconds)
        if code != 0:
            raise GuestError('in the guest "%s" ended with %s: %s' % (text, code, out.strip()[-300:]))
        return out

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

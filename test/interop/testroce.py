# SPDX-License-Identifier: BSD-3-Clause
"""testroce's traffic against rdma_rxe: testroce in its namespace over af_packet, and in the guest the tests' peer, which testroce_server.py has serve it."""
import ctypes
import os
import re
import socket
import subprocess
import tempfile
import threading

from lab import GUEST_IP4, HOST_IP4, PeerError
from testroce_server import PORT, Service

CLONE_NEWNET = 0x40000000
SECONDS = 60
SIZES = {'mixed': 256}  # its memory is cleared word by word
DEVICE = 'inline:net_af_packet0,iface=u0'


def listen_in(space):
    """A socket of a network namespace: what a thread opens is of its own one."""
    made = []

    def make():
        with open('/run/netns/' + space, encoding='ascii') as f:
            if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), 'setns')
            made.append(socket.create_server((HOST_IP4, PORT)))
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if not made:
        raise PeerError('no socket in the namespace %s' % space)
    return made[0]


def run(lab, testroce, mode):
    """Raises PeerError unless testroce moved something, verified it, and both ends ended well."""
    end = lab.guest_end()
    with tempfile.NamedTemporaryFile('w', suffix='.testroce') as script, listen_in(lab.host) as server:
        script.write('\n'.join(['set fwd ' + mode, 'set depth 4', 'set size %d' % SIZES.get(mode, 2048), 'start', 'wait 1', 'stop']) + '\n')
        script.flush()
        words = ['ip', 'netns', 'exec', lab.host, 'timeout', '-k', '5', str(SECONDS), testroce, '--', '--connect', HOST_IP4, '--device', DEVICE, '--cmdline-file', script.name]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, UROCE_LOG='error')) as process:
            server.settimeout(SECONDS)
            try:
                with server.accept()[0] as connection:
                    Service(connection, end, GUEST_IP4).run()
                said, _ = process.communicate(timeout=SECONDS)
            finally:
                if process.poll() is None:
                    process.kill()
                end.close()
    client, peer = re.search(r'^  client +(\d+) +\d+ +(\d+) ', said, re.M), re.search(r'^  peer +(\d+) messages, (\d+) verified', said, re.M)
    if process.returncode or not client or not peer or not int(client[1]) or not int(client[2]) + int(peer[2]):
        raise PeerError('testroce ended with %s: %s' % (process.returncode, said.strip()[-800:]))
    return '%s: %s messages in %s' % (mode, client[1], re.search(r', ([0-9.]+ s):', said)[1])

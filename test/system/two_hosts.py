# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts made of network namespaces and joined by a veth pair: eth0 in each, 10.79.0.1 and 10.79.0.2."""
import os
import subprocess


def make_hosts(names):
    """Why there are none; '': there are."""
    if os.getuid():
        return 'needs root and network namespaces'
    try:
        for h in names:
            subprocess.run(['ip', 'netns', 'add', h], check=True, capture_output=True)
        subprocess.run(['ip', '-n', names[0], 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', names[1]], check=True, capture_output=True)
        for i, h in enumerate(names):
            for words in (['link', 'set', 'lo', 'up'], ['link', 'set', 'eth0', 'mtu', '4200', 'up'], ['addr', 'add', '10.79.0.%d/24' % (i + 1), 'dev', 'eth0']):
                subprocess.run(['ip', '-n', h, *words], check=True, capture_output=True)
    except (subprocess.CalledProcessError, FileNotFoundError):
        return 'needs network namespaces'
    return ''


def remove_hosts(names):
    for h in names:
        subprocess.run(['ip', 'netns', 'del', h], capture_output=True)

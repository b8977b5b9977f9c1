#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What README, the guides and the scripts of config/ promise: that containers have what they run, and commands what they take. Writes TAP.
test_config.py ROOT BUILD"""
import glob
import json
import os
import re
import sys

ROOT, BUILD = (os.path.abspath(a) for a in sys.argv[1:3])
count = failed = 0


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        return f.read()


def tell(name, wrong, skip=''):
    """A line of TAP; wrong: what is not as it should be, a line each."""
    global count, failed
    count += 1
    failed += bool(wrong)
    print('\n'.join('# ' + line for line in wrong), end='\n' if wrong else '')
    print(f"{'not ok' if wrong else 'ok'} {count} - {name}{' # SKIP ' + skip if skip else ''}", flush=True)


def check_containers():
    with open(os.path.join(BUILD, 'meson-info', 'intro-installed.json'), encoding='utf-8') as f:
        installed = {os.path.basename(p) for p in json.load(f).values()}
    runs = re.findall(r'^(?:podman|docker) run .* uroce ([\w-]+)', read('doc/guide/getting-started.md'), re.M)
    tell('containers run what is installed', [p for p in runs if p not in installed] if runs else ['nothing?'])
    pages = ['README.md'] + [os.path.relpath(p, ROOT) for p in glob.glob(os.path.join(ROOT, 'doc', 'guide', '*.md'))]
    tell('packages are named in config/packages.sh alone', [p for p in pages if 'libdpdk-dev' in read(p)])


def check_huge_pages():
    paths = ['README.md', 'test/run.sh', *(os.path.relpath(p, ROOT) for f in ('config/*.sh', 'doc/guide/*.md', 'lib/*/*.c', 'app/*/*.c') for p in glob.glob(os.path.join(ROOT, f)))]
    said = [(p, line) for p in paths for line in read(p).splitlines() if re.search(r'config/hugepages\.sh', line)]
    tell('hugepages.sh is told how much', [f'{p}: {line}' for p, line in said if not re.search(r'config/hugepages\.sh \d+', line)] if said else ['nothing?'])


check_containers()
check_huge_pages()
print(f'1..{count}')
sys.exit(failed != 0)

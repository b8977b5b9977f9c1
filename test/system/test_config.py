#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What README, the guides and the scripts of config/ promise of a build folder: that the programs they name are there after the quick start and on the PATH, that containers have what they run, that what root built is the user's. Writes TAP.
test_config.py ROOT BUILD PROGRAM..."""
import glob
import json
import os
import pwd
import re
import subprocess
import sys
import tempfile

from tap import finish, tell

ROOT, BUILD = (os.path.abspath(a) for a in sys.argv[1:3])
PROGRAMS = [os.path.relpath(os.path.abspath(p), BUILD) for p in sys.argv[3:]]
NAMES = {os.path.basename(p) for p in PROGRAMS}


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        return f.read()


def commands(page):
    return [line for block in re.findall(r'^```sh\n(.*?)^```', read(page), re.M | re.S) for line in block.splitlines()]


def check_programs():
    made = subprocess.run(['ninja', '-C', BUILD, '-t', 'query', 'programs'], capture_output=True, text=True, check=False).stdout
    wrong = [p for p in PROGRAMS if not re.search(rf'^ .* {re.escape(p)}$', made, re.M)]
    if 'ninja -C "$build" -v programs' not in read('config/quickstart.sh'):
        wrong.append('quickstart.sh does not build target programs')
    tell('the quick start builds every program', wrong)
    named = {w for line in commands('README.md') for w in re.findall(r'build/(app/[\w/-]+)', line)}
    tell('README runs what is built', sorted(named - set(PROGRAMS)) if named else ['nothing?'])
    tell('README runs it from the build folder', [line for line in commands('README.md') if re.match(rf"(sudo )?(\w+=\S+ )?({'|'.join(NAMES)}) ", line)])
    line = next(line for line in commands('doc/guide/getting-started.md') if 'PATH=' in line)
    path = subprocess.run(['bash', '-c', line + '; echo "$PATH"'], cwd=os.path.dirname(BUILD), capture_output=True, text=True, check=False).stdout.replace(os.path.join(os.path.dirname(BUILD), 'build/'), BUILD + '/')
    tell('every program is on the PATH of the guides', [p for p in PROGRAMS if os.path.dirname(os.path.join(BUILD, p)) not in path.strip().split(':')])


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


def check_owner():
    name = 'what root has built is the user\'s'
    if os.geteuid():
        return tell(name, [], 'needs root')
    user = pwd.getpwnam('nobody')
    with tempfile.TemporaryDirectory() as source:
        os.makedirs(os.path.join(source, 'build', 'app'))
        outside = os.path.join(source, 'outside')
        with open(outside, 'w', encoding='utf-8') as f:
            f.write('')
        os.symlink(outside, os.path.join(source, 'build', 'app', 'link'))
        os.chown(source, user.pw_uid, user.pw_gid)
        p = subprocess.run(['bash', '-c', '. config/packages.sh; give_to_owner "$1"/build "$1"/none', '-', source], cwd=ROOT, capture_output=True, text=True, check=False)
        owners = {name: os.lstat(os.path.join(source, name)).st_uid for name in ('build', 'build/app', 'build/app/link', 'outside')}
        wrong = [f'{n} is of user {u}' for n, u in owners.items() if u != (0 if n == 'outside' else user.pw_uid)]
        tell(name, wrong + ([p.stderr] if p.returncode or p.stderr else []))


check_programs()
check_containers()
check_huge_pages()
check_owner()
sys.exit(finish())

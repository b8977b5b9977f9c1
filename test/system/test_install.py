#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program outside of the tree, built against an installed uroce: by pkg-config, by CMake as doc/guide/embedding.md has it, and as C++; each is run. Installs into a folder of its own. Writes TAP.

test_install.py ROOT BUILD MESON"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT, BUILD, MESON = (os.path.abspath(a) if os.path.exists(a) else a for a in sys.argv[1:4])
HELLO = os.path.join(ROOT, 'app/examples/hello.c')


def run(*words, **options):
    p = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False, **options)
    assert p.returncode == 0, f"{' '.join(words)}: exit code {p.returncode}: {p.stdout}"
    return p.stdout


class Installed:
    def __init__(self, folder):
        self.folder = folder
        self.root = os.path.join(folder, 'root')
        run(MESON, 'install', '-C', BUILD, '--no-rebuild', '--destdir', self.root)
        self.pc = glob.glob(self.root + '/**/pkgconfig/uroce.pc', recursive=True)
        self.library = glob.glob(self.root + '/**/liburoce.so', recursive=True)
        assert self.pc and self.library, 'no uroce.pc or liburoce.so was installed'
        self.environment = {**os.environ, 'PKG_CONFIG_SYSROOT_DIR': self.root, 'PKG_CONFIG_LIBDIR': os.path.dirname(self.pc[0]), 'LD_LIBRARY_PATH': os.path.dirname(self.library[0]), 'UROCE_LOG': 'error'}

    def flags(self):
        return run('pkg-config', '--cflags', '--libs', 'uroce', env=self.environment).split()

    def says_hello(self, program):
        text = run(program, env=self.environment)
        assert 'received 6 bytes: "hello"' in text and '"hello again"' in text, text


def test_what_is_installed(i):
    names = {os.path.basename(n) for n in glob.glob(i.root + '/**', recursive=True)}
    for name in ('liburoce.so.0', 'liburoce-engine.so.0', 'uroce.h', 'uroced', 'testroce', 'uroce-perf', 'uroce.pc'):
        assert name in names, f'{name} is not installed'
    assert 'dpdk' not in open(i.pc[0], encoding='utf-8').read().lower(), 'a program would have to know of DPDK'


def test_pkg_config(i):
    program = os.path.join(i.folder, 'hello')
    run('cc', '-Wall', '-Wextra', '-Werror', HELLO, *i.flags(), '-o', program)
    i.says_hello(program)
    needed = run('readelf', '-d', program)
    assert 'liburoce.so.0' in needed and 'rte_' not in needed, needed


def test_service(i):
    folder = os.path.join(ROOT, 'app/examples/service')
    for program, sources in (('kv-server', 'server connection request store greeting'), ('kv-client', 'client kv greeting')):
        run('cc', '-D_GNU_SOURCE', '-Wall', '-Werror', *(f'{folder}/{s}.c' for s in sources.split()), *i.flags(), '-o', os.path.join(i.folder, program))


def test_cplusplus(i):
    if not shutil.which('g++'):
        return 'no g++'
    source = os.path.join(i.folder, 'a.cc')
    with open(source, 'w', encoding='utf-8') as f:
        f.write('#include <uroce.h>\nint main() { uroce_context *c; return uroce_open("no such device", nullptr, &c) == 0; }\n')
    run('g++', '-Wall', '-Wextra', '-Werror', source, *i.flags(), '-o', os.path.join(i.folder, 'a'))
    run(os.path.join(i.folder, 'a'), env={**i.environment, 'UROCE_LOG': 'error'})
    return None


def test_cmake(i):
    if not shutil.which('cmake'):
        return 'no cmake'
    folder = os.path.join(i.folder, 'cmake')
    os.mkdir(folder)
    with open(os.path.join(ROOT, 'doc/guide/embedding.md'), encoding='utf-8') as f:
        lists = re.search(r'```cmake\n(.*?)```', f.read(), re.S).group(1)
    with open(os.path.join(folder, 'CMakeLists.txt'), 'w', encoding='utf-8') as f:
        f.write(lists)
    shutil.copy(HELLO, folder)
    run('cmake', '-S', folder, '-B', folder + '/b', env=i.environment)
    run('cmake', '--build', folder + '/b', env=i.environment)
    i.says_hello(folder + '/b/hello')
    return None


def main():
    tests = [(n, f) for n, f in globals().items() if n.startswith('test_')]
    failed = 0
    folder = tempfile.mkdtemp(prefix='uroce-install-')
    print(f'1..{len(tests)}')
    try:
        installed = Installed(folder)
        for number, (name, test) in enumerate(tests, 1):
            try:
                skip = test(installed)
                print(f"ok {number} - {name}{' # SKIP ' + skip if skip else ''}")
            except (AssertionError, OSError, subprocess.SubprocessError) as e:
                failed += 1
                print('\n'.join('# ' + line for line in str(e).splitlines()))
                print(f'not ok {number} - {name}')
    finally:
        shutil.rmtree(folder)
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()

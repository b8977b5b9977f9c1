#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pages of doc/man say what there is: every call and program has one, synopses are the header's, errors, options, keys, settings and variables are all named, examples compile and run (doc/man/README.md). Writes TAP.
test_man.py ROOT LIBUROCE COMPILER... -- PROGRAM..."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from tap import finish, tell

PATIENCE = 60
cut = sys.argv.index('--')
root, library, compiler = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:cut]
programs = {os.path.basename(p): os.path.abspath(p) for p in sys.argv[cut + 1:]}


def read(path):
    with open(os.path.join(root, path), encoding='utf-8') as f:
        return f.read()


def differ(what, here, there, here_is, there_is):
    """Lines about what is in only one of two sets."""
    return [f'{what} {i} is in {here_is}, not in {there_is}' for i in sorted(here - there)] + [f'{what} {i} is in {there_is}, not in {here_is}' for i in sorted(there - here)]


def squeeze(declaration):
    return re.sub(r'\s*\*\s*', ' *', re.sub(r'\s+', ' ', declaration)).replace('* *', '**').strip()


class Page:
    def __init__(self, path):
        self.name, self.section = os.path.basename(path).rsplit('.', 1)
        self.path = path
        self.lines = read(path).splitlines()

    def part(self, title):
        """The lines of one section."""
        inside = False
        for line in self.lines:
            if line.startswith('.Sh '):
                inside = line == '.Sh ' + title
            elif inside:
                yield line

    def names(self):
        return [line.split()[1] for line in self.part('NAME') if line.startswith('.Nm ')]

    def prototypes(self):
        """name: declaration, of the synopsis."""
        found, kind, name, arguments = {}, '', '', []
        for line in self.part('SYNOPSIS'):
            macro, _, rest = line.partition(' ')
            if macro == '.Ft':
                kind = rest.strip('"')
            elif macro == '.Fo':
                name, arguments = rest, []
            elif macro == '.Fa':
                arguments.append(rest.strip('"'))
            elif macro == '.Fc':
                found[name] = squeeze(f"{kind} {name}({', '.join(arguments)})")
        return found

    def items(self, macro):
        """Names of `.It MACRO name` and `.It MACRO name , name`, anywhere."""
        return {name.replace('\\', '') for line in self.lines if line.startswith(f'.It {macro} ') for name in re.sub(r'( ,)? [A-Z][a-z]? .*', '', line[5 + len(macro):]).split(' , ')}

    def options(self):
        return {f'-{name}' for name in self.items('Fl') if name.startswith('-')}

    def examples(self):
        """(kind, text) of each display in EXAMPLES; kind '' when nothing says it."""
        kind, block = '', None
        for line in self.part('EXAMPLES'):
            if line.startswith('.\\" example: '):
                kind = line.rsplit(' ', 1)[1]
            elif line.startswith('.Bd '):
                block = []
            elif line == '.Ed':
                yield kind, '\n'.join(block) + '\n'
                kind, block = '', None
            elif block is not None:
                block.append(re.sub(r'^\\&', '', line).replace('\\e', '\\'))


# ---- what there is ----

def header_calls():
    """name: (declaration, errors that the comment above names) of every call of uroce.h."""
    text = read('lib/client/uroce.h')
    calls, end = {}, 0
    for m in re.finditer(r'^((?:const )?\w+(?: \w+)*[ *]+)(uroce_\w+)\(([^;{]*)\);', text, re.M):
        above = text[end:m.start()]
        comment = above.rsplit('/**', 1)[1] if '/**' in above else ''
        calls[m.group(2)] = (squeeze(m.group(1) + m.group(2) + '(' + m.group(3) + ')'), set(re.findall(r'-(E[A-Z0-9]{2,})\b', comment)))
        end = m.end()
    return calls


def installed_programs():
    """By meson's record of the build that liburoce is of."""
    with open(os.path.join(os.path.dirname(library), '..', 'meson-info', 'intro-installed.json'), encoding='utf-8') as f:
        return {os.path.basename(to) for to in json.load(f).values() if os.path.basename(os.path.dirname(to)) in ('bin', 'sbin')}


def help_of(program):
    return subprocess.run([programs[program], *(['--'] if program == 'testroce' else []), '--help'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=PATIENCE, check=False).stdout


# ---- tests ----

def check_calls(pages):
    calls = header_calls()
    own = [p for p in pages if p.section == '3']
    named = [n for p in own for n in p.names()]
    wrong = differ('call', set(calls), set(named), 'uroce.h', 'doc/man') + [f'{n} is in two pages' for n in sorted(set(named)) if named.count(n) > 1]
    tell('every call has a page', wrong if calls else ['uroce.h has no calls?'])
    for p in own:
        shown = p.prototypes()
        wrong = differ('synopsis of', set(p.names()), set(shown), 'NAME', 'SYNOPSIS')
        wrong += [f'{shown[n]} here, {calls[n][0]} in uroce.h' for n in shown if n in calls and shown[n] != calls[n][0]]
        errors = set().union(*(calls[n][1] for n in shown if n in calls))
        said = set(re.findall(r'\\-(E[A-Z0-9]{2,})\b', '\n'.join(p.lines)))
        wrong += [f'error -{e} is in uroce.h, not here' for e in sorted(errors - said)]
        if p.names()[:1] != [p.name]:
            wrong.append(f'the page is named {p.name}, its first call is another')
        tell(f'{p.name}({p.section}): synopsis and errors', wrong)


def check_programs(pages):
    by_name = {p.name: p for p in pages if p.section in '18'}
    tell('every program has a page', differ('program', installed_programs(), set(by_name), 'what is installed', 'doc/man'))
    tell('every program is looked at', differ('program', installed_programs(), set(programs), 'what is installed', 'the arguments of this test'))
    for name in sorted(set(programs) & set(by_name)):
        there = set(re.findall(r'^ +(?:-\w, )?(--[a-z][a-z-]*)', help_of(name), re.M))
        tell(f'{name}: options', differ('option', there, by_name[name].options(), '--help', 'the page') if there else ['--help lists none'])


def check_tables(pages):
    by_name = {p.name: p for p in pages}
    keys = set(re.findall(r'^\t\{ "([a-z]+)", take_', read('lib/engine/device_string.c'), re.M))
    tell('uroce(7): keys of device strings', differ('key', keys, by_name['uroce'].items('Cm'), 'device_string.c', 'the page'))
    variables = set()
    for path in glob.glob(os.path.join(root, 'lib', '*', '*.c')) + glob.glob(os.path.join(root, 'app', '*', '*.c')):
        variables |= set(re.findall(r'getenv\("(UROCE_\w+)"\)', read(path)))
    tell('uroce(7): environment', differ('variable', variables, by_name['uroce'].items('Ev'), 'the sources', 'the page') if variables else ['no variables?'])
    counters = set(re.findall(r'\[QP_\w+\] = "(\w+)"', read('lib/client/strings.c')))
    tell('uroce_qp_counters(3): counters', differ('counter', counters, by_name['uroce_qp_counters'].items('Li'), 'strings.c', 'the page') if counters else ['no counters?'])
    if 'uroced' in programs:
        settings = set(re.findall(r'\[([a-z.]+)\] ([a-z-]+):', help_of('uroced')))
        said, section = set(), ''
        for line in by_name['uroced.conf'].lines:
            section = line.split()[2].strip('[]') if line.startswith('.Ss Section [') else section
            said |= {(section, line.split()[2].replace('\\', ''))} if line.startswith('.It Ic ') else set()
        renamed = [(k, d) for k, d in re.findall(r'\{ "port", "(\w+)", [^,]+, take_key, "(\w+)"', read('app/uroced/settings.c')) if k != d]
        text = '\n'.join(by_name['uroced.conf'].lines)
        wrong = [f'nothing says that {k} is {d} in a device string' for k, d in renamed if not re.search(rf'\.Ic {k}\nis( its key)?\n\.Cm {d}\b', text)]
        tell('uroced.conf(5): settings that have another name in a device string', wrong if renamed else ['none?'])
        tell('uroced.conf(5): settings', differ('setting', settings, said, '--help', 'the page') if settings else ['--help lists none'])


def check_lint(pages):
    if not shutil.which('mandoc'):
        tell('mandoc -T lint', [], 'mandoc is not installed')
        return
    p = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning', *[os.path.join(root, p.path) for p in pages]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
    tell('mandoc -T lint', p.stdout.splitlines())


def check_references(pages):
    """What a page of ours refers to exists: a page, or one of the system's."""
    own = {(n, p.section) for p in pages for n in p.names()}
    wrong = []
    for p in pages:
        for m in re.finditer(r'\bXr (\S+) (\d)', '\n'.join(p.lines)):
            if re.match(r'uroce|testroce', m.group(1)) and m.groups() not in own:
                wrong.append(f'{p.path}: there is no {m.group(1)}({m.group(2)})')
    tell('references', wrong)


def run(command, folder, environment):
    """Lines about what went wrong, or none. What it has started ends with it."""
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True) as p:
        try:
            said = p.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            said = f'did not end within {PATIENCE} s\n'
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.wait()
    return [*said.splitlines(), f'{command[0]}: exit code {p.returncode}'] if p.returncode else []


def try_example(kind, text, folder, environment):
    if kind == 'sh':
        lines = text.splitlines()
        odd = [line for i, line in enumerate(lines) if not line.startswith('$ ') and not (i and lines[i - 1].endswith('\\'))]
        return [f'no command: {line}' for line in odd] or run(['sh', '-eu', '-c', '\n'.join(re.sub(r'^\$ ', '', line) for line in lines)], folder, environment)
    if kind not in ('run', 'compile'):
        return ['a block of EXAMPLES without a comment that says what it is (README.md)']
    source, program = os.path.join(folder, 'example.c'), os.path.join(folder, 'example')
    with open(source, 'w', encoding='utf-8') as f:
        f.write(text)
    command = [*compiler, '-Wall', '-Wextra', '-Werror', '-I', os.path.join(root, 'lib', 'client'), source, '-pthread']
    where = os.path.dirname(library)
    if kind == 'run':
        return run([*command, '-o', program, library, f'-Wl,-rpath,{where}'], folder, environment) or run([program], folder, environment)
    return run([*command, '-shared', '-fPIC', '-o', program, library, f'-Wl,-rpath,{where}', '-Wl,--no-undefined'], folder, environment)


def check_examples(pages):
    folders = [os.path.dirname(p) for p in programs.values()]
    environment = {**{k: v for k, v in os.environ.items() if k != 'UROCE_DEVICE'}, 'UROCE_LOG': 'error', 'PATH': os.pathsep.join([*folders, os.environ['PATH']])}
    for p in pages:
        blocks = list(p.examples())
        wrong = [] if blocks else ['no examples']
        for kind, text in blocks:
            with tempfile.TemporaryDirectory(prefix='uroce-man-') as folder:
                wrong += try_example(kind, text, folder, environment)
        tell(f'{p.name}({p.section}): examples', wrong)


def main():
    pages = [Page(os.path.relpath(p, root)) for p in sorted(glob.glob(os.path.join(root, 'doc', 'man', '*.[1-9]')))]
    check_calls(pages)
    check_programs(pages)
    check_tables(pages)
    check_lint(pages)
    check_references(pages)
    check_examples(pages)
    return finish()


sys.exit(main())

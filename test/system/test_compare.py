#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""uroce-compare as a user runs it: on one machine, between two hosts over a veth pair (root), as clients of a daemon; its JSON, its page in a browser, wrong options. Writes TAP.
test_compare.py PATH-OF-UROCE-COMPARE PATH-OF-UROCED"""
import html.parser
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

from daemon import Daemon

compare, uroced = sys.argv[1:3]
tmp = tempfile.mkdtemp()
number = failed = 0
PATIENCE = 120
SIZES = [8, 4096, 65536]
QUICK = ['--sizes', '8,4K,64K', '--seconds', '0.05']
# what is not said is all of them
WORKS = {'pingpong': (8, 16 << 20), 'stream': (4096, 16 << 20), 'small': (8, 4095)}
TRANSPORTS = {'tcp': set(WORKS), 'tcp-spin': {'pingpong'}, 'udp': set(WORKS), 'uroce': set(WORKS)}


def report(is_fine, name, said=''):
    global number, failed
    number += 1
    failed += not is_fine
    if not is_fine:
        print('\n'.join('# ' + line for line in str(said).splitlines()[-40:]))
    print(f"{'ok' if is_fine else 'not ok'} {number} - {name}", flush=True)


def skip(name, why):
    global number
    number += 1
    print(f'ok {number} - {name} # SKIP {why}', flush=True)


def run(*args, before=(), environment=None):
    return subprocess.run([*before, compare, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, env=environment, check=False)


def check(name, test, *args):
    """Runs a test that raises AssertionError when something is wrong."""
    try:
        test(*args)
        report(True, name)
    except (AssertionError, subprocess.SubprocessError, OSError, ValueError, KeyError, TypeError) as e:
        report(False, name, f'{type(e).__name__}: {e}')


def expect(condition, *what):
    if not condition:
        raise AssertionError(' '.join(str(w) for w in what))


# ---- what a document must be ----

def near(a, b, share=1e-3):
    return math.isclose(a, b, rel_tol=share, abs_tol=1e-6)


def check_row(r):
    """That its figures follow from its counts, and can be."""
    expect(not r.get('error'), r)
    expect(r['sent'] >= r['messages'] >= 0 and r['seconds'] > 0, r)
    expect(r['bytes'] == r['messages'] * r['size'], r)
    expect(near(r['msgs_per_s'], r['messages'] / r['seconds']), r)
    expect(near(r['gbit_per_s'], r['msgs_per_s'] * r['size'] * 8e-9), r)
    expect(r['transport'].startswith('udp') or (r['lost'] == 0 and r['sent'] == r['messages']), r)
    lost = r['sent'] - r['messages']
    expect(r['lost'] == (lost // 2 if r['work'] == 'pingpong' else lost), r)
    if r['messages']:
        expect(near(r['cpu_s_per_gib'], sum(r['cpu_s']) / (r['bytes'] / 2**30)), r)
        expect(near(r['cpu_us_per_message'], sum(r['cpu_s']) * 1e6 / r['messages']), r)
    expect(near(r['context_switches_per_message'], sum(r['switches']) / r['sent']), r)
    if r['work'] == 'pingpong' and r['messages']:
        lat = r['latency_ns']
        expect(0 < lat['p50'] <= lat['p99'] <= lat['p999'] <= lat['max'] < 60e9, r)
    counted = r['counted']
    if counted:
        expect(near(r['system_calls_per_message'], sum(counted['system_calls']) / counted['messages']), r)
        expect(near(sum(counted['system_calls_per_message'].values()), r['system_calls_per_message']), r)
        copied = sum(counted['bytes_copied_by_system_calls'] + counted['bytes_copied_by_the_stack'])
        expect(near(r['copies_per_message'], copied / counted['messages'] / r['size']), r)


def check_document(d, uroce_copies):
    """uroce_copies: of a message, when nothing is sent twice; the sockets' are two, out of one program and into the other."""
    wanted = {(w, s, t) for t, works in TRANSPORTS.items() for w in works for s in SIZES if WORKS[w][0] <= s <= WORKS[w][1]}
    found = [(r['work'], r['size'], r['transport']) for r in d['results']]
    expect(len(found) == len(set(found)) and set(found) == wanted, 'rows', sorted(found))
    expect({t['name'] for t in d['transports']} == set(TRANSPORTS) and {w['name'] for w in d['works']} == set(WORKS), d['transports'], d['works'])
    for r in d['results']:
        check_row(r)
        if not d['counted']:
            continue
        if r['transport'] == 'tcp':
            expect(near(r['copies_per_message'], 2, 0.01), 'TCP copies twice:', r)
            expect(r['system_calls_per_message'] > (1.9 if r['work'] == 'pingpong' else 0.9), r)
            expect('sendto' in r['counted']['system_calls_per_message'], r)
        if r['transport'] == 'uroce':
            expect(uroce_copies * 0.99 < r['copies_per_message'] < uroce_copies * 1.5, f'uroce copies {uroce_copies} times:', r)
            # the engine looks now and then what the kernel says of links and neighbours
            expect(sum(r['counted']['bytes_copied_by_system_calls']) < 0.1 * r['counted']['messages'] * r['size'], 'no system call copies messages of uroce:', r)
    ahead = {(v['work'], v['size'], v['by']) for v in d['ahead']}
    expect({(w, s) for w, s, t in wanted if t == 'uroce'} == {(w, s) for w, s, by in ahead if by == 'CPU time'}, ahead)
    for v in d['ahead']:
        expect(v['factor'] >= 1 and (v['winner'] == 'uroce') != (v['over'] == 'uroce'), v)


def check_table(text, d):
    """Every row of the document is a line of the table."""
    for w in d['works']:
        expect(w['text'] in text, 'no section', w['text'])
    rows = [line for line in text.splitlines() if line.split()[1:2] and line.split()[1] in TRANSPORTS and line[2:7].strip()[:1].isdigit()]
    expect(len(rows) == len(d['results']), len(rows), 'lines instead of', len(d['results']))


# ---- the page ----

class Page(html.parser.HTMLParser):
    """Cells of tables by (row, column), how many lines plots have, and what would be loaded from elsewhere."""
    def __init__(self, text):
        super().__init__()
        self.key, self.cells, self.lines, self.marks, self.outside, self.legend = '', {}, 0, 0, [], ''
        self.in_legend = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag == 'tr':
            self.key = a.get('data-key', '')
        if 'data-value' in a:
            self.cells[self.key, a['data-of']] = a['data-value']
        self.lines += tag == 'polyline'
        self.marks += tag in ('circle', 'path', 'rect')
        self.outside += [v for k, v in attrs if k in ('src', 'href') and v]
        self.in_legend = self.in_legend or a.get('id') == 'legend'
        if tag == 'h2':
            self.in_legend = False

    def handle_data(self, data):
        if self.in_legend:
            self.legend += data


def value(text):
    return None if text in ('null', 'undefined') else float(text)


def check_page(path, d):
    browser = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')
    p = subprocess.run([browser, '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', f'--user-data-dir={tmp}/browser', '--dump-dom', 'file://' + path], capture_output=True, text=True, timeout=PATIENCE,
                       check=False)
    page = Page(p.stdout)
    expect(p.returncode == 0 and page.cells, p.stdout[-500:], p.stderr[-1000:])
    expect(not page.outside, 'loads', page.outside)
    for t in d['transports']:
        expect(t['name'] in page.legend, t['name'], 'is not in the legend', page.legend)
    for r in d['results']:
        key = f"{r['work']} {r['size']} {r['transport']}"
        lat = r['latency_ns'] or {}
        for column, here in {'messages/s': r['msgs_per_s'], 'Gbit/s': r['gbit_per_s'], 'CPU s/GiB': r['cpu_s_per_gib'], 'system calls': r['system_calls_per_message'], 'context switches': r['context_switches_per_message'],
                             'copies': r['copies_per_message'], 'sent': r['sent'], 'p50 µs': lat.get('p50') and lat['p50'] / 1000, 'p99.9 µs': lat.get('p999') and lat['p999'] / 1000}.items():
            there = value(page.cells[key, column])
            expect(there == here or (here is not None and there is not None and near(there, here)), key, column, ':', there, 'is not', here)
    expect(page.lines >= len(d['transports']) * 4, page.lines, 'lines in the plots')
    expect(page.marks > len(d['results']) * 2, page.marks, 'marks in the plots')


# ---- runs ----

def one_machine():
    files = [os.path.join(tmp, n) for n in ('local.json', 'local.html')]
    p = run(*QUICK, '--json', files[0], '--html', files[1])
    expect(p.returncode == 0 and not p.stderr, p.stdout, p.stderr)
    d = json.load(open(files[0], encoding='utf-8'))
    check_document(d, 4)
    expect(d['one_machine'] and d['counted'], 'one machine, counted')
    check_table(p.stdout, d)
    for r in d['results']:
        if r['transport'] == 'uroce' and (os.cpu_count() or 1) > 1:
            expect(set(r['counted']['system_calls_per_message']) <= {'recvmsg'}, 'over shared memory uroce makes no system calls for messages; it looks at links a thousand times a second:', r)


def page_of_one_machine():
    check_page(os.path.join(tmp, 'local.html'), json.load(open(os.path.join(tmp, 'local.json'), encoding='utf-8')))


def json_to_standard_output():
    p = run('--works', 'small', '--sizes', '8', '--transports', 'udp,uroce', '--seconds', '0.02', '--no-count', '--json', '-')
    d = json.loads(p.stdout)
    expect(p.returncode == 0 and not p.stderr and [r['transport'] for r in d['results']] == ['udp', 'uroce'], p.stdout, p.stderr)
    expect(not d['counted'] and all(r['counted'] is None and r['system_calls_per_message'] is None and r['copies_per_message'] is None for r in d['results']), p.stdout)


def largest_messages():
    p = run('--works', 'pingpong,stream', '--sizes', '16M', '--seconds', '0.05', '--json', '-')
    rows = json.loads(p.stdout)['results']
    expect(p.returncode == 0 and not p.stderr and len(rows) == 7, p.stdout, p.stderr)
    for r in rows:
        check_row(r)
        expect(r['transport'] != 'udp' or 'datagrams of up to' in r['note'], 'UDP says in what pieces it sends:', r)
        expect(r['transport'] == 'udp' or r['messages'] > 0, r)


def through_a_daemon():
    with Daemon(uroced) as d:
        p = run('--works', 'pingpong,small', '--sizes', '64', '--transports', 'tcp,uroce', '--seconds', '0.1', '--json', '-', environment=d.environment())
        expect(p.returncode == 0 and not p.stderr, p.stdout, p.stderr)
        document = json.loads(p.stdout)
        expect([h['daemon'] for h in document['hosts']] == [d.process.pid] * 2, document['hosts'])
        for r in document['results']:
            check_row(r)
            expect(r['transport'] != 'uroce' or 'daemon' in r['note'], r)
            expect(r['transport'] != 'uroce' or 1.9 < r['copies_per_message'] < 3, 'within one engine there is no driver:', r)
        expect(d.clients() == 0, 'clients are left')


def pair(listen, connect, before_a=(), before_b=()):
    """Server and client of their own; the exit codes and what both said."""
    server = subprocess.Popen([*before_b, compare, '--listen', *listen], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        p = run('--connect', *connect, before=before_a)
        said, _ = server.communicate(timeout=20)
    finally:
        server.kill()
        server.wait()
    return p, server.returncode, said


def two_hosts(a, b):
    device = 'inline:net_af_packet0,iface=v0'
    files = [os.path.join(tmp, n) for n in ('hosts.json', 'hosts.html')]
    p, code, said = pair(['10.79.4.2:7471', '--device', device], ['10.79.4.2', '--device', device, *QUICK, '--json', files[0], '--html', files[1]], ('ip', 'netns', 'exec', a), ('ip', 'netns', 'exec', b))
    expect(p.returncode == 0 and code == 0 and not p.stderr and said == 'uroce-compare: waiting for a client at 10.79.4.2:7471\n', p.stdout, p.stderr, said)
    d = json.load(open(files[0], encoding='utf-8'))
    check_document(d, 5)
    for r in d['results']:
        if r['transport'] == 'uroce' and d['counted']:
            expect(0 < r['counted']['system_calls_per_message'].get('sendto', 0) < 8, 'af_packet sends by system calls:', r)
        if r['transport'] == 'udp' and r['size'] == 65536:
            expect('datagrams of up to 4172 bytes' in r['note'], r)


def make_hosts(a, b):
    commands = [f'netns add {a}', f'netns add {b}', f'-n {a} link add v0 type veth peer name v0 netns {b}']
    for i, n in enumerate((a, b), 1):
        commands += [f'-n {n} link set lo up', f'-n {n} link set v0 mtu 4200 up', f'-n {n} addr add 10.79.4.{i}/24 dev v0']
    return os.getuid() == 0 and all(subprocess.run(['ip', *c.split()], capture_output=True, check=False).returncode == 0 for c in commands)


def in_namespaces():
    a, b = f'uroce-ca-{os.getpid()}', f'uroce-cb-{os.getpid()}'
    try:
        if shutil.which('ip') and make_hosts(a, b):
            check('two hosts over veth', two_hosts, a, b)
        else:
            skip('two hosts over veth', 'needs root and network namespaces')
    finally:
        for n in (a, b):
            if shutil.which('ip'):
                subprocess.run(['ip', 'netns', 'del', n], capture_output=True, check=False)


# ---- what goes wrong ----

def refused(*args):
    p = run(*args)
    expect(p.returncode == 2 and not p.stdout and len(p.stderr.splitlines()) == 1 and 'expected' in p.stderr, p.returncode, p.stdout, p.stderr)


WRONG = {
    'a transport that there is not': ['--transports', 'tcp,sctp'],
    'a work that there is not': ['--works', 'ping'],
    'a size that is none': ['--sizes', '8,x'],
    'a size of less than 8': ['--sizes', '4'],
    'a size beyond 16 MiB': ['--sizes', '17M'],
    'sizes that no work has': ['--works', 'small', '--sizes', '1M'],
    'seconds that are none': ['--seconds', 'soon'],
    'CPUs that are none': ['--cores', '0,'],
    'an option that there is not': ['--fast'],
    'an option without its value': ['--html'],
    'an argument too many': ['tcp'],
    'both ends of a connection': ['--listen', '1', '--connect', 'localhost'],
    'a server without a device': ['--listen'],
    'a server that would write the page': ['--listen', '--device', 'inline:net_ring', '--html', 'x'],
    'a server that would choose the work': ['--listen', '--device', 'inline:net_ring', '--works', 'small'],
    'two devices at one end': ['--connect', 'localhost', '--device', 'a', '--device', 'b'],
}


def device_that_fails():
    p = run('--device', 'inline:net_af_packet0,iface=nosuch0', *QUICK)
    expect(p.returncode == 1 and 'nosuch0' in p.stderr and not p.stdout, p.returncode, p.stdout, p.stderr)


def page_that_cannot_be_written():
    p = run('--transports', 'tcp', '--works', 'small', '--sizes', '8', '--seconds', '0.01', '--html', os.path.join(tmp, 'no', 'page.html'))
    expect(p.returncode == 1 and p.stderr.startswith('uroce-compare: cannot write ') and p.stderr.endswith(': No such file or directory\n') and len(p.stderr.splitlines()) == 1 and not p.stdout, p.stdout, p.stderr)
    with open('/dev/full', 'w', encoding='utf-8') as full:
        for more in ([], ['--json', '-']):
            p = subprocess.run([compare, '--transports', 'tcp', '--works', 'small', '--sizes', '8', '--seconds', '0.01', '--no-count', *more], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
            expect(p.returncode == 1 and p.stderr.startswith('uroce-compare: cannot write to standard output: '), p.returncode, p.stderr)


def server_that_cannot():
    p, code, said = pair(['127.0.0.1:7479', '--transports', 'tcp', '--device', 'inline:net_af_packet0,iface=nosuch0'],
                         ['127.0.0.1:7479', '--device', 'inline:net_memif0,role=server,socket=uroce-test-compare,ip=10.0.0.1/24', '--transports', 'uroce', '--works', 'small', '--sizes', '8', '--seconds', '0.01'])
    expect(p.returncode == 1 and code == 1 and 'the other end: it cannot use its device' in p.stderr, p.returncode, code, p.stderr, said)


def devices_before_the_other_end():
    for role in ('--listen', '--connect'):
        p = run(role, '127.0.0.1:7478', '--device', 'inline:net_af_packet0,iface=nosuch0')
        expect(p.returncode == 1 and 'cannot use device' in p.stderr and 'nobody answers' not in p.stderr and 'waiting' not in p.stderr, p.returncode, p.stderr)


def help_names_all():
    p = run('--help')
    names = [line.split()[0] for line in p.stdout.splitlines() if line.startswith('  --')]
    expect(p.returncode == 0 and not p.stderr, p)
    for name in 'listen connect device transports works sizes seconds cores gid-index no-count json html help'.split():
        expect('--' + name in names, name)


os.environ.pop('UROCE_DEVICE', None)
os.environ['UROCE_LOG'] = 'error'
try:
    check('two programs on one machine', one_machine)
    if shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome'):
        check('the page shows what the JSON says', page_of_one_machine)
    else:
        skip('the page shows what the JSON says', 'needs chromium')
    in_namespaces()
    check('as clients of a daemon', through_a_daemon)
    check('messages of 16 MiB', largest_messages)
    check('JSON to standard output, nothing counted', json_to_standard_output)
    for title, arguments in WRONG.items():
        check(title, refused, *arguments)
    check('a device that there is not', device_that_fails)
    check('a page that cannot be written', page_that_cannot_be_written)
    check('a server whose device there is not', server_that_cannot)
    check('a device that there is not, before the other end is met', devices_before_the_other_end)
    check('--help names every option', help_names_all)
finally:
    shutil.rmtree(tmp, ignore_errors=True)
print(f'1..{number}')
sys.exit(failed != 0)

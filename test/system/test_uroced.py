#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""uroced as its operator runs it: start, settings, permissions, signals, its end and what is left of it, two of them, a service manager, and every command of doc/guide/uroced.md. Two network namespaces with an
eth0 each, made and removed here; so it needs root. Writes TAP.

test_uroced.py ROOT UROCED UROCE_PERF HELLO CLIENT LIBUROCE"""
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from two_hosts import make_hosts, remove_hosts  # noqa: E402

ROOT, UROCED, PERF, HELLO, CLIENT, LIBRARY = (os.path.abspath(a) for a in sys.argv[1:7])
HOSTS = ['uroce-ua-%d' % os.getpid(), 'uroce-ub-%d' % os.getpid()]
VDEV = 'net_af_packet0,iface=eth0'
NOBODY = pwd.getpwnam('nobody')
LEFTOVERS = ['/dev/hugepages', '/var/run/dpdk', '/run/uroce']
base = tmp = ''  # of all tests, of this one
running = []


class Skip(Exception):
    pass


def on(host, *words):
    return ['ip', 'netns', 'exec', HOSTS[host], *words]


def wait_for(what, is_there, seconds=20):
    end = time.monotonic() + seconds
    while not is_there():
        assert time.monotonic() < end, 'waited %d s for %s' % (seconds, what)
        time.sleep(0.01)


class Program:
    """A process with its output in files, ended when the test is."""

    def __init__(self, words, env=None, user=None):
        self.names = [tempfile.mktemp(dir=tmp) for _ in range(2)]
        files = [open(n, 'wb') for n in self.names]
        ids = {'user': user.pw_uid, 'group': user.pw_gid, 'extra_groups': []} if user else {}
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=files[0], stderr=files[1], env={**os.environ, **(env or {})}, **ids)
        for f in files:
            f.close()
        running.append(self)

    def text(self, which):
        with open(self.names[which], errors='replace') as f:
            return f.read()

    out = property(lambda self: self.text(0))
    err = property(lambda self: self.text(1))

    def wait(self, seconds=20):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError('still there after %d s: %s%s' % (seconds, self.out, self.err))

    def until(self, pattern, which=0, seconds=20):
        def look():
            assert self.process.poll() is None or re.search(pattern, self.text(which)), 'ended (%s) without "%s": %s%s' % (self.process.returncode, pattern, self.out, self.err)
            return re.search(pattern, self.text(which))
        wait_for('"%s" in: %s%s' % (pattern, self.out, self.err), look, seconds)
        return re.search(pattern, self.text(which))

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)

    def clean_up(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def path(name):
    return os.path.join(tmp, name)


class Daemon(Program):
    """A uroced that is up, unless is_awaited is false."""

    def __init__(self, *options, host=0, name='d.sock', vdev=VDEV, env=None, is_awaited=True):
        self.socket = path(name)
        vdevs = ['--vdev', vdev] if vdev else []
        super().__init__(on(host, UROCED, *vdevs, '--socket', self.socket, *options), env)
        if is_awaited:
            self.until(r'  memory ')

    device = property(lambda self: 'unix:' + self.socket)

    def client(self, user=None):
        """A copy of the program where everybody can read it."""
        return Program([os.path.join(base, 'client'), self.device], {'LD_LIBRARY_PATH': base}, user)

    def end(self, number=signal.SIGTERM, rc=0):
        self.kill(number)
        assert self.wait() == rc, 'exit code %d: %s%s' % (self.process.returncode, self.out, self.err)


def run(words, env=None, seconds=60):
    p = Program(words, env)
    p.wait(seconds)
    return p


def expect_refusal(program, rc, *words):
    """One line that is no note of what went well before; of settings that make no sense, one line and nothing else."""
    assert program.wait() == rc, 'exit code %d: %s%s' % (program.process.returncode, program.out, program.err)
    lines = [line for line in program.err.splitlines() if rc == 2 or line.startswith('uroced: error: ')]
    assert len(lines) == 1 and not program.out, 'not one line: %s%s' % (program.out, program.err)
    for word in words:
        assert word in lines[0], '"%s" is not in: %s' % (word, lines[0])


def list_leftovers():
    return {f: sorted(n for n in os.listdir(f)) for f in LEFTOVERS if os.path.isdir(f)}


# ---- tests: each a function, its name the test's ----

def start_and_what_it_prints():
    d = Daemon()
    mac = subprocess.run(on(0, 'cat', '/sys/class/net/eth0/address'), capture_output=True, text=True).stdout.strip()
    for line in (r'uroced \S+, process %d' % d.process.pid, r'  device    net_af_packet0,iface=eth0', r'  MAC       ' + mac, r'  GID 0     10\.79\.0\.1', r'  path MTU  4096, largest frame 42\d\d bytes',
                 r'  cores     1, on any CPU, idle: pause', r'  socket    %s, mode 0660.*' % d.socket, r'  memory    (huge|ordinary) pages.*'):
        assert re.search('^' + line + '$', d.out, re.M), '"%s" is not in: %s' % (line, d.out)
    assert os.stat(d.socket).st_mode & 0o7777 == 0o660
    d.end()
    assert not any('error' in line for line in d.err.splitlines()), d.err


def hello_and_perf_are_clients():
    d = Daemon()
    hello = run([HELLO], {'UROCE_DEVICE': d.device})
    assert hello.process.returncode == 0 and 'says "hello again"' in hello.out, hello.out + hello.err
    perf = run([PERF, '--test', 'verify', '--sizes', '0,1,4096,4097,64K', '--iters', '8', '-d', d.device])
    assert perf.process.returncode == 0 and 'served' in perf.out, perf.out + perf.err
    perf = run([PERF, '--op', 'write', '--test', 'verify', '--sizes', '8', '--iters', '8'], {'UROCE_DEVICE': d.device})
    assert perf.process.returncode == 0 and 'served' in perf.out, perf.out + perf.err
    expect_refusal(run([PERF, '-d', d.device, '--fault', 'drop:1%']), 2, 'expected fault= among the settings of uroced')
    d.end()


def two_hosts_and_several_clients_at_once():
    daemons = [Daemon(host=h, name='h%d.sock' % h, vdev='net_af_packet0,iface=eth0') for h in (0, 1)]
    pairs = []
    for i, ops in enumerate(('send,send-imm', 'write,write-imm', 'read', 'cas,fadd')):
        port = str(7481 + i)
        serving = Program(on(1, PERF, '--listen', port, '-d', daemons[1].device))
        pairs.append((serving, Program(on(0, PERF, '--connect', '10.79.0.2:' + port, '-d', daemons[0].device, '--op', ops, '--test', 'verify', '--sizes', '1,4096,64K', '--iters', '32'))))
    for serving, asking in pairs:
        assert asking.wait(90) == 0 and serving.wait(20) == 0, asking.out + asking.err + serving.out + serving.err
    for d in daemons:
        d.end()


def several_cores():
    cpus = sorted(os.sched_getaffinity(0))[:2]
    for options, where in [((), 'on any CPU')] + ([(('--cpu', '%d+%d' % tuple(cpus)), r'on CPU %d\+%d' % tuple(cpus))] if len(cpus) == 2 else []):
        d = Daemon('--cores', '2', '--idle', 'sleep:50', *options)
        assert re.search(r'^  cores     2, %s, idle: sleep$' % where, d.out, re.M), d.out
        hello = run([HELLO], {'UROCE_DEVICE': d.device})  # two contexts: one on each core
        assert hello.process.returncode == 0, hello.out + hello.err
        d.end()
    expect_refusal(run([UROCED, '--vdev', VDEV, '--cores', '2', '--cpu', '0']), 2, 'core=')


def mode_and_group_say_who_may_be_a_client():
    for options, is_permitted in (((), False), (('--mode', '0666'), True), (('--group', str(NOBODY.pw_gid)), True), (('--group', str(NOBODY.pw_gid), '--mode', '0600'), False)):
        d = Daemon(*(options if '--group' in options else ('--group', '0', *options)))
        own, other = d.client(), d.client(NOBODY)
        own.until('attached')
        if is_permitted:
            other.until('attached')
        else:
            assert other.wait() == 1 and 'refused: EACCES' in other.out, '%s: %s%s' % (options, other.out, other.err)
        d.end()
        assert own.wait() == 0


def sigterm_tells_clients_and_leaves_nothing():
    before = list_leftovers()
    folder = path('made/here')
    os.mkdir(path('made'))
    d = Daemon(name='made/here/d.sock')
    assert os.stat(folder).st_mode & 0o7777 == 0o755
    clients = [d.client() for _ in range(3)]
    for c in clients:
        c.until('attached')
    d.end()
    for c in clients:
        assert c.wait() == 0 and 'ended: ENODEV' in c.out, c.out + c.err
        assert 'uroced is going down (SIGTERM)' in c.err, c.err
    assert re.search(r'^uroced: ended by SIGTERM after \d+ s: 3 clients served, 3 of them until now$', d.out.splitlines()[-1]), d.out
    assert os.listdir(path('made')) == [], os.listdir(path('made'))
    new = {f: set(names) - set(before.get(f, [])) for f, names in list_leftovers().items()}
    assert not any(new.values()), new


def sigint_ends_it_too():
    d = Daemon()
    d.end(signal.SIGINT)
    assert 'ended by SIGINT' in d.out, d.out
    assert not os.path.exists(d.socket) and not os.path.exists(d.socket + '.lock')


def sigterm_while_it_comes_up():
    d = Daemon(is_awaited=False)
    wait_for('the name of the port', lambda: b'@uroce/port/eth0' in subprocess.run(on(0, 'cat', '/proc/net/unix'), capture_output=True).stdout)
    d.end()
    assert not os.path.exists(d.socket) and not os.path.exists(d.socket + '.lock')


def sigusr1_reports_and_sighup_is_said():
    d = Daemon()
    c = d.client()
    c.until('attached')
    length = len(d.out)
    d.kill(signal.SIGUSR1)
    wait_for('a report', lambda: str(c.process.pid) in d.out[length:])
    report = d.out[length:]
    for word in ('mbufs', 'accepted', str(c.process.pid)):
        assert word in report, '"%s" is not in: %s' % (word, report)
    d.kill(signal.SIGHUP)
    d.until('SIGHUP is ignored', 1)
    assert c.process.poll() is None
    d.end()


def a_second_daemon_on_the_socket_is_refused():
    d = Daemon()
    expect_refusal(Daemon(host=1, is_awaited=False), 1, d.socket, 'another daemon serves it')
    d.client().until('attached')
    d.end()


def a_second_daemon_on_the_port_is_refused():
    d = Daemon()
    expect_refusal(Daemon(name='e.sock', is_awaited=False), 1, 'eth0 is served by another uroced (pid %d)' % d.process.pid)
    assert not os.path.exists(path('e.sock'))
    d.client().until('attached')
    d.end()
    Daemon(name='e.sock').end()


def hold_the_name(then):
    hold = "import socket, time; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind('\\0uroce/port/eth0'); %s; print('held', flush=True); time.sleep(60)" % then
    holder = Program(on(0, 'setpriv', '--reuid', str(NOBODY.pw_uid), '--clear-groups', sys.executable, '-c', hold))
    holder.until('held')
    return holder


FILL = "s.listen(0); c = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(4)]; [(x.setblocking(False), x.connect_ex('\\0uroce/port/eth0')) for x in c]"


def a_user_cannot_keep_the_port_from_the_daemon():
    for then, why in (('s.listen()', 'user %d, who runs no daemon' % NOBODY.pw_uid), ('pass', 'does not listen'), (FILL, 'user %d, who runs no daemon' % NOBODY.pw_uid)):
        holder = hold_the_name(then)
        d = Daemon()
        assert why in d.err and 'going on' in d.err, d.err
        d.end()
        holder.clean_up()


def kill_9_and_a_new_one_at_once():
    d = Daemon()
    c = d.client()
    c.until('attached')
    d.kill()
    d.wait()
    assert os.path.exists(d.socket)
    e = Daemon()
    assert c.wait() == 0 and 'ended: ENODEV' in c.out, c.out + c.err
    e.client().until('attached')
    e.end()
    assert not os.path.exists(e.socket) and not os.path.exists(e.socket + '.lock')


def settings_that_make_no_sense():
    def with_file(text, *options):
        name = path('bad.conf')
        with open(name, 'w') as f:
            f.write(text)
        return run(on(0, UROCED, '--config', name, *options))
    expect_refusal(with_file('[port]\nvdev = %s\nmtu = 1500\n' % VDEV), 2, path('bad.conf'), '[port] mtu = 1500', 'expected 256, 512')
    expect_refusal(with_file('[port]\nvdev = %s\nmtuu = 256\n' % VDEV), 2, path('bad.conf'), '[port] mtuu: no such key', 'expected one of vdev')
    expect_refusal(with_file('[prot]\n'), 2, path('bad.conf'), '[prot]: no such section')
    expect_refusal(with_file('[port]\nmtu 256\n'), 2, path('bad.conf'), 'line 2 has no "="')
    expect_refusal(run([UROCED, '--vdev', VDEV, '--mode', 'all']), 2, '--mode all: expected an octal mode')
    expect_refusal(run([UROCED, '--fast']), 2, '--fast: no such option')
    expect_refusal(run([UROCED]), 2, 'no port: expected --vdev')
    expect_refusal(run([UROCED, '--config', path('none.conf')]), 2, path('none.conf'), 'No such file')


def a_port_or_socket_that_cannot_be_had():
    expect_refusal(Daemon(vdev='net_af_packet0,iface=eth7', is_awaited=False), 1, 'eth7')
    expect_refusal(Daemon(name='no/such/folder.sock', is_awaited=False), 1, path('no/such'))
    with open(path('d.sock'), 'w'):
        pass
    expect_refusal(Daemon(is_awaited=False), 1, path('d.sock'), 'no socket')


def a_file_of_settings():
    name = path('uroced.conf')
    with open(name, 'w') as f:
        f.write('[port]\nvdev = %s\nmtu = 1024\n[socket]\npath = %s\nmode = 0600\n[limits]\nclients = 1\n[quota.client]\nqps = 1\n[log]\nlevel = error\n' % (VDEV, path('f.sock')))
    d = Daemon('--config', name, '--mode', '0666', vdev=None, name='f.sock', is_awaited=False)
    # --socket is the same path; the command line wins with the mode
    d.until('  memory ')
    assert 'path MTU  1024' in d.out and 'mode 0666' in d.out, d.out
    c = d.client()
    c.until('attached')
    other = d.client()
    assert other.wait() == 1, other.out
    c.kill()
    c.wait()
    d.end()


def ask_telemetry(folder, command):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(os.path.join(folder, 'dpdk/uroce/dpdk_telemetry.v2'))
    s.recv(1024)
    s.send(command.encode())
    answer = json.loads(s.recv(1 << 16))
    s.close()
    return list(answer.values())[0]


def telemetry_shows_it_unless_it_is_off():
    folder = path('run')
    os.mkdir(folder)
    d = Daemon(env={'RUNTIME_DIRECTORY': folder})
    assert ask_telemetry(folder, '/uroce/list') == {'0': VDEV.split(',')[0]}, ask_telemetry(folder, '/uroce/list')
    c = d.client()
    c.until('attached')
    client = ask_telemetry(folder, '/uroce/client,%d' % ask_telemetry(folder, '/uroce/clients')[0])
    assert client['pid'] == c.process.pid and client['program'] == 'client' and client['max_qps'] == 16384, client
    d.end()
    assert os.listdir(folder) == [], os.listdir(folder)
    with open(path('uroced.conf'), 'w') as f:
        f.write('[port]\nvdev = %s\ntelemetry = off\n' % VDEV)
    d = Daemon('--config', path('uroced.conf'), vdev=None, env={'RUNTIME_DIRECTORY': folder})
    assert not os.path.exists(os.path.join(folder, 'dpdk/uroce')), os.listdir(folder)
    d.end()


def a_service_manager_is_told():
    if 'tells systemd' not in run([UROCED, '--version']).out:
        raise Skip('built without libsystemd')
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(path('notify'))
    s.settimeout(20)
    d = Daemon(env={'NOTIFY_SOCKET': path('notify')}, is_awaited=False)
    said = s.recv(4096).decode()
    assert 'READY=1' in said.split('\n'), said
    assert os.path.exists(d.socket)
    d.end()
    said = s.recv(4096).decode()
    assert 'STOPPING=1' in said.split('\n'), said
    wrapper = 'export WATCHDOG_PID=$$; exec "$0" "$@"'
    d = Program(on(0, 'sh', '-c', wrapper, UROCED, '--vdev', VDEV, '--socket', path('d.sock')), {'NOTIFY_SOCKET': path('notify'), 'WATCHDOG_USEC': '200000'})
    assert 'READY=1' in s.recv(4096).decode()
    for _ in range(3):
        start = time.monotonic()
        assert s.recv(4096).decode() == 'WATCHDOG=1'
        assert time.monotonic() - start < 5
    d.kill(signal.SIGTERM)
    assert d.wait() == 0
    s.close()


def one_capability_is_enough():
    """As config/uroced.service runs it: no root, CAP_NET_RAW and nothing else."""
    os.mkdir(path('run'))
    os.chown(path('run'), NOBODY.pw_uid, NOBODY.pw_gid)
    few = ['setpriv', '--reuid', str(NOBODY.pw_uid), '--regid', str(NOBODY.pw_gid), '--clear-groups', '--inh-caps=-all,+net_raw', '--ambient-caps=-all,+net_raw', '--bounding-set=-all,+net_raw',
           '--no-new-privs']
    d = Program(on(0, *few, UROCED, '--vdev', VDEV, '--socket', path('run/d.sock'), '--cpu', '0'))
    d.until('  memory ')
    hello = run([HELLO], {'UROCE_DEVICE': 'unix:' + path('run/d.sock')})
    assert hello.process.returncode == 0, hello.out + hello.err
    d.kill(signal.SIGTERM)
    assert d.wait() == 0 and os.listdir(path('run')) == [], d.out + d.err


def the_unit_is_right():
    if not shutil.which('systemd-analyze'):
        raise Skip('needs systemd-analyze')
    with open(os.path.join(ROOT, 'config/uroced.service')) as f:
        text = f.read()
    with open(path('uroced.service'), 'w') as f:
        f.write(text.replace('ExecStart=uroced', 'ExecStart=' + UROCED))
    p = run(['systemd-analyze', 'verify', '--man=no', path('uroced.service')])
    assert p.process.returncode == 0 and not p.err, p.out + p.err


def the_commands_of_the_guide():
    """Each ```sh line, as it stands, on a host that is as the guide has it: eth0, uroced on the PATH, /run and /etc of its own. The other host of a pair is this one. Those of systemd and users are only looked at."""
    with open(os.path.join(ROOT, 'doc/guide/uroced.md')) as f:
        guide = f.read()
    lines = [line for block in re.findall(r'^```sh\n(.*?)^```', guide, re.M | re.S) for line in block.splitlines()]
    assert lines
    left_out = re.compile(r'systemctl|systemd-sysusers|sudoedit|meson install|usermod|hugepages\.sh')
    script = ['set -e', 'mount -t tmpfs none /run', 'export PATH=%s:$PATH' % os.path.dirname(UROCED), 'cd %s' % tmp]
    daemon = None
    done = 0
    for line in lines:
        if left_out.search(line):
            continue
        done += 1
        line = re.sub('^sudo ', '', line)  # root we are
        if line.startswith('uroced '):
            name = (re.search(r'--socket (\S+)', line) or [None, '/run/uroce/uroce0.sock'])[1]
            if daemon:
                script.append('kill $pid; wait $pid')
            script += ['mkdir -p %s' % os.path.dirname(os.path.dirname(name)), line + ' & pid=$!',
                       'for i in $(seq 1000); do [ -S %s ] && break; kill -0 $pid; sleep 0.02; done; [ -S %s ]' % (name, name)]
            daemon = name
        elif '--listen' in line:
            script.append(line.split('#')[0] + '& server=$!')
        elif '--connect HOST' in line:  # this one, and for less long
            script += [line.split('#')[0].replace('HOST', '127.0.0.1') + ' --seconds 0.02', 'wait $server']
        else:
            script.append(line)
    script.append('kill $pid; wait $pid')
    os.makedirs(path('build/app/examples'))
    os.makedirs(path('build/app/perf'))
    for program, name in ((HELLO, 'build/app/examples/hello'), (PERF, 'build/app/perf/uroce-perf')):
        os.symlink(program, path(name))
    p = run(on(0, 'unshare', '-mpf', '--mount-proc', '--kill-child', 'bash', '-c', '\n'.join(script)), seconds=120)
    assert p.process.returncode == 0 and done >= 4, 'exit code %d\n%s\n%s%s' % (p.process.returncode, '\n'.join(script), p.out, p.err)
    shutil.rmtree('/tmp/lab', ignore_errors=True)


TESTS = [start_and_what_it_prints, hello_and_perf_are_clients, two_hosts_and_several_clients_at_once, several_cores, mode_and_group_say_who_may_be_a_client, sigterm_tells_clients_and_leaves_nothing, sigint_ends_it_too,
         sigterm_while_it_comes_up, sigusr1_reports_and_sighup_is_said, a_second_daemon_on_the_socket_is_refused, a_second_daemon_on_the_port_is_refused, a_user_cannot_keep_the_port_from_the_daemon,
         kill_9_and_a_new_one_at_once, settings_that_make_no_sense, a_port_or_socket_that_cannot_be_had, a_file_of_settings, telemetry_shows_it_unless_it_is_off, a_service_manager_is_told, one_capability_is_enough, the_unit_is_right, the_commands_of_the_guide]


def run_test(number, test):
    global tmp
    name = test.__name__.replace('_', ' ')
    tmp = os.path.join(base, str(number))
    os.mkdir(tmp)
    try:
        test()
        print('ok %d - %s' % (number, name), flush=True)
    except Skip as e:
        print('ok %d - %s # SKIP %s' % (number, name, e), flush=True)
    except (AssertionError, OSError) as e:
        sys.stdout.write(''.join('# %s\n' % line for line in str(e).splitlines()[-40:]))
        print('not ok %d - %s' % (number, name), flush=True)
        return False
    finally:
        for p in running:
            p.clean_up()
        running.clear()
    return True


def main():
    global base
    base = tempfile.mkdtemp()
    os.chmod(base, 0o755)
    shutil.copy(CLIENT, os.path.join(base, 'client'))
    shutil.copy(LIBRARY, os.path.join(base, 'liburoce.so.0'))
    wanted = [t for t in TESTS if not sys.argv[7:] or t.__name__ in sys.argv[7:]]
    lacking = make_hosts(HOSTS)
    all_right = True
    try:
        print('1..%d' % len(wanted))
        for i, test in enumerate(wanted):
            if lacking:
                print('ok %d - %s # SKIP %s' % (i + 1, test.__name__.replace('_', ' '), lacking))
            else:
                all_right &= run_test(i + 1, test)
    finally:
        remove_hosts(HOSTS)
        shutil.rmtree(base, ignore_errors=True)
    return 0 if all_right else 1


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The figures of uroce, each a ratio taken beside its yardstick.

A figure is the median of the ratios of pairs: yardstick, product, yardstick, product ... Programs that take turns (limits, bench) stay and sleep while the other runs, so that
a pair is over within a second or two: where a virtual machine's two CPUs are placed changes within seconds, by a factor of four for a ping-pong, and two runs
far apart compare two machines. Absolute numbers of this machine or that mean nothing; the ratio does.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PAIRS = 30
TAKE_TURNS = {"limits", "bench"}

# Figures. product and yardstick: (program, arguments, name of the line it prints); the figure is product / yardstick, or product alone.
# better: which way is good. target None: reported only. A program called served or embedded is application with a daemon behind it or an engine in it, on the other CPU.
# pairs: of one that takes long.
FIGURES = [
    dict(name="write_rate", text="8-byte WRITE rate, one QP / limits' write_rate", unit="ratio", target=0.45, better="more",
         product=("bench", [], "write_rate"), yardstick=("limits", [], "write_rate")),
    dict(name="write_goodput", text="1 MiB WRITE goodput, path MTU 4096 / limits' stream_4k", unit="ratio", target=0.60, better="more",
         product=("bench", [], "write_stream"), yardstick=("limits", [], "stream_4k")),
    dict(name="read_goodput", text="1 MiB READ goodput, path MTU 4096 / limits' stream_4k", unit="ratio", target=0.60, better="more",
         product=("bench", [], "read_stream"), yardstick=("limits", [], "stream_4k")),
    dict(name="write_pingpong", text="8-byte WRITE ping-pong half round trip, inline mode / limits' write_pingpong", unit="ratio", target=2.0, better="less",
         product=("bench", [], "write_pingpong"), yardstick=("limits", [], "write_pingpong")),
    dict(name="qp_memory", text="idle QP in RTS, engine-side memory without its rings", unit="bytes", target=2048, better="less", pairs=1,
         product=("qp_memory", [], "qp_memory"), yardstick=None),
    dict(name="ud_rate", text="64-byte UD SEND rate / 8-byte RC WRITE rate, same run", unit="ratio", target=0.80, better="more",
         product=("bench", [], "ud_send"), yardstick=("bench", [], "write_rate")),
    dict(name="srq_rate", text="SEND over 1,000 QPs into one SRQ / over 1,000 QPs each with its own RQ", unit="ratio", target=0.90, better="more",
         product=("bench", ["-q", "1000"], "send_srq"), yardstick=("bench", ["-q", "1000"], "send_rq")),
    dict(name="qps_4096", text="8-byte WRITE rate, 4,096 QPs, 16 WRs a post on each / one QP, 16 WRs a post", unit="ratio", target=0.60, better="more",
         product=("bench", ["-q", "4096"], "write_rate"), yardstick=("bench", [], "write_rate")),
    dict(name="qps_4096_random", text="the same with one WR a post, QPs in random order / one QP, 16 WRs a post", unit="ratio", target=None, better="more",
         product=("bench", ["-q", "4096", "-b", "1", "-r"], "write_rate"), yardstick=("bench", [], "write_rate")),
    dict(name="tcp_goodput", text="1 MiB WRITE goodput / kernel TCP on loopback, Gbit/s", unit="ratio", target=None, better="more", pairs=15,
         product=("bench", [], "write_stream"), yardstick=("tcp", [], "tcp_stream")),
    dict(name="tcp_pingpong", text="8-byte ping-pong half round trip / kernel TCP on loopback, both ends spinning, ns", unit="ratio", target=None, better="less", pairs=15,
         product=("bench", [], "write_pingpong"), yardstick=("tcp", [], "tcp_pingpong")),
    dict(name="tcp_cpu", text="CPU s/GiB, 1 MiB WRITE (both cores spin all the time) / kernel TCP", unit="ratio", target=None, better="less", pairs=15,
         product=("bench", [], "write_stream_cpu"), yardstick=("tcp", [], "tcp_cpu")),
    dict(name="served_write_rate", text="8-byte WRITE rate of a client of a daemon / embedded", unit="ratio", target=0.85, better="more", pairs=15,
         product=("served", ["write_rate"], "write_rate"), yardstick=("embedded", ["write_rate"], "write_rate")),
    dict(name="served_write_goodput", text="1 MiB WRITE goodput from pool memory through a daemon / embedded", unit="ratio", target=0.90, better="more", pairs=15,
         product=("served", ["write_stream"], "write_stream"), yardstick=("embedded", ["write_stream"], "write_stream")),
    dict(name="served_pingpong", text="8-byte ping-pong of two client processes of one daemon / embedded, both on one CPU", unit="ratio", target=None, better="less", pairs=15,
         product=("served", ["pingpong"], "pingpong"), yardstick=("embedded", ["pingpong"], "pingpong")),
    dict(name="embedded_rate_limit", text="8-byte WRITE rate, program and engine on a CPU each, embedded / limits' write_rate", unit="ratio", target=None, better="more", pairs=15,
         product=("embedded", ["write_rate"], "write_rate"), yardstick=("limits", [], "write_rate")),
    dict(name="served_rate_limit", text="the same through a daemon / limits' write_rate", unit="ratio", target=None, better="more", pairs=15,
         product=("served", ["write_rate"], "write_rate"), yardstick=("limits", [], "write_rate")),
    dict(name="served_goodput_limit", text="1 MiB WRITE goodput through a daemon / limits' stream_4k", unit="ratio", target=None, better="more", pairs=15,
         product=("served", ["write_stream"], "write_stream"), yardstick=("limits", [], "stream_4k")),
    dict(name="round_cost", text="engine's round, 10,000 QPs idle after one send each and 256 idle clients / 10 QPs and 1 client", unit="ratio", target=1.2, better="less", pairs=3,
         product=("round_cost", [], "round_cost_many"), yardstick=("round_cost", [], "round_cost_few")),
    dict(name="fairness", text="least share of eight contexts of a daemon, one with 64 QPs of 64 KiB, seven with one of 4 KiB, times eight", unit="ratio", target=0.9, better="more", pairs=3,
         product=("served", ["fairness"], "fairness"), yardstick=None),
]


def free_huge_pages():
    with open("/proc/meminfo") as f:
        return int(re.search(r"HugePages_Free:\s+(\d+)", f.read()).group(1))


class Runner:
    """Runs the programs and reads the figures they print."""

    def __init__(self, build):
        self.dir = os.path.join(build, "test", "perf")
        self.uroced = os.path.join(build, "app", "uroced", "uroced")
        memory = ["--in-memory"] if free_huge_pages() >= 256 else ["--no-huge", "--no-shconf"]
        self.extra = {"limits": ["-l", "0-1", "--no-pci", *memory, "-m", "256", "--no-telemetry"]}
        self.kept = {}  # programs that take turns, by their command

    def command(self, program, args):
        return [os.path.join(self.dir, program), *self.extra.get(program, []), *args]

    def turn(self, program, args, loop):
        """One loop of a program that reads names of loops and answers each with a line; it sleeps meanwhile."""
        command = self.command(program, args)
        kept = self.kept.get(tuple(command))
        if not kept:
            errors = tempfile.TemporaryFile(mode="w+")
            kept = self.kept[tuple(command)] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
            kept.errors = errors
        try:
            kept.stdin.write(loop + "\n")
            kept.stdin.flush()
        except BrokenPipeError:
            pass
        watchdog = threading.Timer(120, kept.kill)
        watchdog.start()
        try:
            while line := kept.stdout.readline():
                if line.startswith(loop + " "):  # EAL says things, too
                    return line
        finally:
            watchdog.cancel()
        kept.wait()
        kept.errors.seek(0)
        sys.exit(f"{' '.join(command)} ended with {kept.returncode}:\n{kept.errors.read()}")

    def close(self):
        for kept in self.kept.values():
            kept.stdin.close()
            kept.wait()

    def run(self, program, args):
        command = self.command(program, args)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
        return done.stdout

    def run_served(self, args):
        """application as a client of a daemon that lives only as long: it spins, and would disturb what comes after."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "perf.sock")
            command = [self.uroced, "--vdev", "net_ring0,link=perf,side=0", "--ip", "10.0.0.1/24", "--cpu", "1", "--idle", "spin", "--socket", path]
            daemon = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                for _ in range(500):
                    if os.path.exists(path) or daemon.poll() is not None:
                        break
                    time.sleep(0.01)
                if not os.path.exists(path):
                    sys.exit(f"{' '.join(command)} does not serve:\n{daemon.stderr.read() if daemon.poll() is not None else ''}")
                return self.run("application", ["unix:" + path, *args])
            finally:
                daemon.terminate()
                daemon.wait()

    def once(self, program, args):
        if program == "served":
            return self.run_served(args)
        if program == "embedded":
            return self.run("application", ["embedded:net_ring,link=perf,side=0,ip=10.0.0.1/24,core=1,idle=spin", *args])
        return self.run(program, args)

    def value(self, source, seen):
        """One value of a source (program, arguments, line). seen: what programs that do not take turns have printed in this pair."""
        program, args, line = source
        if program in TAKE_TURNS:
            text = self.turn(program, args, line)
        else:
            key = (program, *args)
            if key not in seen:
                seen[key] = self.once(program, args)
            text = seen[key]
        match = re.search(re.escape(line) + r"\s+([0-9.]+)", text)
        if not match:
            sys.exit(f"{program} printed no line '{line}':\n{text}")
        return float(match.group(1))


def measure(f, runner, pairs):
    """Pairs (ratio, product, yardstick) of a figure."""
    samples = []
    for _ in range(pairs):
        seen = {}
        limit = runner.value(f["yardstick"], seen) if f["yardstick"] else None
        product = runner.value(f["product"], seen)
        samples.append((product / limit if limit else product, product, limit))
    return samples


def judge(f, samples):
    value = statistics.median(s[0] for s in samples)
    good = None
    if f["target"] is not None:
        good = value >= f["target"] if f["better"] == "more" else value <= f["target"]
    limits = [s[2] for s in samples if s[2] is not None]
    return dict(name=f["name"], text=f["text"], value=round(value, 3), unit=f["unit"], target=f["target"], better=f["better"], **{"pass": good},
                product=round(statistics.median(s[1] for s in samples), 3), limit=round(statistics.median(limits), 3) if limits else None,
                low=round(min(s[0] for s in samples), 3), high=round(max(s[0] for s in samples), 3), pairs=len(samples))


WIDTH = max(len(f["text"]) for f in FIGURES)


def print_head():
    print(f"{'figure':<{WIDTH}} {'value':>8} {'target':>8}  {'':4} {'low..high':>14} {'product':>10} {'yardstick':>10} {'pairs':>5}")


def print_row(r):
    target = "report" if r["target"] is None else ("" if r["better"] == "more" else "<") + f"{r['target']:g}"
    verdict = {True: "ok", False: "FAIL", None: ""}[r["pass"]]
    limit = "" if r["limit"] is None else f"{r['limit']:.2f}"
    print(f"{r['text']:<{WIDTH}} {r['value']:>8g} {target:>8}  {verdict:4} {r['low']:>6g}..{r['high']:<6g} {r['product']:>10.2f} {limit:>10} {r['pairs']:>5}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build-perf", help=argparse.SUPPRESS)
    p.add_argument("--json", metavar="FILE", help="write the figures as an array of objects")
    p.add_argument("--check", action="store_true", help="exit 1 when a figure misses its target")
    p.add_argument("--only", metavar="NAME", help="one figure: " + ", ".join(f["name"] for f in FIGURES))
    p.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs of runs, {PAIRS} if not given, fewer of what takes long; fewer is for trying out")
    args = p.parse_args()
    figures = [f for f in FIGURES if args.only in (None, f["name"])]
    if not figures:
        p.error(f"no figure is called {args.only}; there are {', '.join(f['name'] for f in FIGURES)}")
    if os.cpu_count() < 2 or args.pairs < 1:
        p.error("two CPUs and at least one pair are needed")
    runner = Runner(args.build)
    print(f"layout: side 0 on CPU 0, side 1 on CPU 1, two spinning threads in all; embedded and served: program on CPU 0, engine on CPU 1; net_ring; {'huge pages' if '--in-memory' in runner.extra['limits'] else 'no huge pages'}; "
          f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}; medians of alternating pairs")
    print_head()
    rows = []
    for f in figures:
        rows.append(judge(f, measure(f, runner, min(args.pairs, f.get("pairs", args.pairs)))))
        print_row(rows[-1])
    runner.close()
    if args.json:
        with open(args.json, "w") as out:
            json.dump(rows, out, indent=1)
    return 1 if args.check and any(r["pass"] is False for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

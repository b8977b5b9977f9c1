#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""count.py [BUILD LOG]... -- [BROKEN]...: counts single tests in the logs of meson test, and says what failed or was skipped.

A program that writes TAP (cmocka, the trace driver) counts by its lines, any other as one test. A program that ends badly
without a line that says so, or writes fewer lines than it planned, has one more failure: it crashed. The same test in several
builds counts once: it fails when it failed in one, and is skipped when no build ran it. BROKEN are builds that failed, a failure each."""
import json
import os
import re
import sys

LINE = re.compile(r'^(not )?ok (\d+)\b[ -]*(.*?)\s*(?:#\s*(SKIP|TODO)\b\s*(.*))?$', re.I)
SKIPPED, PASSED, FAILED = range(3)  # what counts of several builds is the largest


def tap_cases(text):
    """[(name, result, what was printed before)], planned."""
    cases, before, planned = [], [], None
    for line in text.splitlines():
        plan = re.match(r'^1\.\.(\d+)\s*$', line)
        match = LINE.match(line)
        if plan:
            planned = int(plan.group(1))
        elif match:
            bad, number, name, directive, reason = match.groups()
            skipped = bool(directive) and directive.upper() == 'SKIP'
            # cmocka: "ok 3 # SKIP name"
            name = name or reason or number
            notes = [reason] if reason and reason != name else before
            cases.append((name, SKIPPED if skipped else FAILED if bad else PASSED, notes))
            before = []
        elif line.strip():
            before.append(line.strip())
    if cases and before and cases[-1][1] == FAILED:  # cmocka explains behind its line
        cases[-1] = (cases[-1][0], FAILED, cases[-1][2] + before)
    return cases, planned


def cases_of(test):
    """What one program of meson's came to."""
    out, err = test.get('stdout', ''), test.get('stderr', '')
    result = test['result']
    cases, planned = tap_cases(out)
    trouble = []
    if not cases:
        value = PASSED if result in ('OK', 'EXPECTEDFAIL') else SKIPPED if result == 'SKIP' else FAILED
        return [('', value, (out + '\n' + err).strip().splitlines()[-30:])]
    if planned is not None and planned > len(cases):
        trouble.append('%d of %d tests reported' % (len(cases), planned))
    if result not in ('OK', 'SKIP') and not any(c[1] == FAILED for c in cases):
        trouble.append('%s, exit code %s' % (result, test.get('returncode')))
    if trouble:
        cases.append(('(crashed)', FAILED, trouble + (out + '\n' + err).strip().splitlines()[-30:]))
    if err.strip() and any(c[1] == FAILED for c in cases):
        cases = [(n, r, notes + err.strip().splitlines()[-40:]) if r == FAILED else (n, r, notes) for n, r, notes in cases]
    if err.strip():
        cases = [(n, r, notes or err.strip().splitlines()[-1:]) if r == SKIPPED else (n, r, notes) for n, r, notes in cases]
    reason = []
    for i, (name, value, notes) in enumerate(cases):  # a group says once what it lacks
        if value == SKIPPED:
            reason = notes or reason
            cases[i] = (name, value, reason)
    return cases


def read(path):
    if not os.path.exists(path):
        return
    with open(path, encoding='utf-8', errors='replace') as f:
        for line in f:
            test = json.loads(line)
            # "uroce:unit / test_psn"
            suite, _, name = test['name'].rpartition(' / ')
            yield suite.split(':')[-1] or '-', name, cases_of(test)


def main():
    args = sys.argv[1:]
    split = args.index('--')
    pairs, broken = args[:split], args[split + 1:]
    merged = {}  # (suite, program, case): (result, builds, notes)
    for build, path in zip(pairs[::2], pairs[1::2]):
        count = 0
        for suite, program, cases in read(path):
            for case, result, notes in cases:
                count += 1
                key = (suite, program, case)
                old = merged.get(key)
                if old is None or result > old[0]:
                    merged[key] = (result, build, notes)
        if not count:
            broken.append(build + ' ran no test')
    for suite in sorted({k[0] for k in merged}):
        values = [v[0] for k, v in merged.items() if k[0] == suite]
        print('%-8s %5d passed %3d failed %3d skipped' % (suite, values.count(PASSED), values.count(FAILED), values.count(SKIPPED)))
    for (suite, program, case), (result, build, notes) in sorted(merged.items()):
        name = ' '.join(x for x in (suite, program, case) if x)
        if result == SKIPPED:
            print('skipped: %s: %s' % (name, notes[-1].removeprefix('skipped: ') if notes else 'it gave no reason'))
    for (suite, program, case), (result, build, notes) in sorted(merged.items()):
        if result == FAILED:
            print('FAILED: %s (%s)' % (' '.join(x for x in (suite, program, case) if x), build))
            for line in notes[-40:]:
                print('    ' + line)
    for what in broken:
        print('FAILED: build %s' % what)
    values = [v[0] for v in merged.values()]
    passed, failed, skipped = values.count(PASSED), values.count(FAILED) + len(broken), values.count(SKIPPED)
    print('%d passed, %d failed' % (passed, failed) + (', %d skipped' % skipped if skipped else ''))
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""TAP for a test whose checks are lists of what is wrong."""
count = failed = 0


def tell(name, wrong, skip=''):
    """A line of TAP; wrong: what is not as it should be, a line each."""
    global count, failed
    count += 1
    failed += bool(wrong)
    print('\n'.join('# ' + line for line in wrong), end='\n' if wrong else '')
    print(f"{'not ok' if wrong else 'ok'} {count} - {name}{' # SKIP ' + skip if skip else ''}", flush=True)


def finish():
    """The plan; the exit code."""
    print(f'1..{count}')
    return int(failed != 0)

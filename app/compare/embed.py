# SPDX-License-Identifier: BSD-3-Clause
"""embed.py FILE OUT: a file as two arrays of C, what stands before its one @DATA@ and what stands after it."""
import sys

text = open(sys.argv[1], encoding='utf-8').read()
parts = text.split('@DATA@')
assert len(parts) == 2, 'one @DATA@ is expected'


def literal(part):
    return '\n'.join('\t' + ', '.join(str(b) for b in chunk) + ',' for chunk in (part[i:i + 32] for i in range(0, len(part), 32)))


with open(sys.argv[2], 'w', encoding='utf-8') as out:
    for name, part in zip(('page_before', 'page_after'), parts):
        out.write(f'static const unsigned char {name}[] = {{\n{literal(part.encode())}\n}};\n')

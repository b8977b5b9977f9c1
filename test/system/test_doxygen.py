#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The API reference is made without a warning, and every call and value of an enum is in it with a text. Writes TAP. test_doxygen.py DOXYFILE"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

if not shutil.which('doxygen'):
    print('1..0 # SKIP doxygen is not installed')
    sys.exit(0)
with open(sys.argv[1], encoding='utf-8') as f:
    settings = f.read()
with tempfile.TemporaryDirectory(prefix='uroce-doxygen-') as folder:
    made = subprocess.run(['doxygen', '-'], input=f'{settings}\nOUTPUT_DIRECTORY = {folder}\n', stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    trees = [ET.parse(p) for p in glob.glob(os.path.join(folder, 'xml', '*.xml'))]


def has_text(element):
    return any(''.join(d.itertext()).strip() for d in (element.find('briefdescription'), element.find('detaileddescription')) if d is not None)


values = {v.find('name').text: has_text(v) for t in trees for v in t.iter('enumvalue')}
calls = {m.find('name').text for t in trees for m in t.iter('memberdef') if m.get('kind') == 'function'}
with open(re.search(r'^INPUT\s*=\s*(\S+)', settings, re.M).group(1), encoding='utf-8') as f:
    declared = set(re.findall(r'^(?:const )?\w+(?: \w+)*[ *]+(uroce_\w+)\(', f.read(), re.M))
results = [
    ('no warnings', made.stdout.splitlines() if made.stdout.strip() or made.returncode else []),
    ('every value of an enum has a text', [v for v, fine in values.items() if not fine] if values else ['there are none?']),
    ('every call is in it', sorted(declared ^ calls) if declared else ['there are none?']),
]
print(f'1..{len(results)}')
for number, (name, wrong) in enumerate(results, 1):
    print('\n'.join('# ' + line for line in wrong), end='\n' if wrong else '')
    print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
sys.exit(any(wrong for _, wrong in results))

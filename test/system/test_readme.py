#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""README.md shows app/examples/hello.c as it is, and every file and folder that it names exists. test_readme.py ROOT [--write]: with --write, puts the program into the README."""
import os
import re
import sys

root = sys.argv[1]
path = os.path.join(root, "README.md")
readme = open(path, encoding="utf-8").read()
hello = open(os.path.join(root, "app/examples/hello.c"), encoding="utf-8").read()
block = re.compile(r"(<!-- hello\.c -->\n\n```c\n)(.*?)(```\n)", re.S)

if "--write" in sys.argv:
    if not block.search(readme):
        readme = readme.replace("<!-- hello.c -->\n", "<!-- hello.c -->\n\n```c\n```\n", 1)
    readme = block.sub(lambda m: m.group(1) + hello + m.group(3), readme, count=1)
    open(path, "w", encoding="utf-8").write(readme)

print("1..2")
shown = block.search(readme)
print("ok 1 - the program shown is hello.c" if shown and shown.group(2) == hello else "not ok 1 - the program shown is not hello.c: test_readme.py ROOT --write")
named = re.findall(r"\]\(([a-zA-Z][^)#:]*)\)", readme) + re.findall(r"`((?:lib|app|config|test|doc|drivers)/[a-z_./]*)`", readme)
missing = [n for n in named if not os.path.exists(os.path.join(root, n))]
print("ok 2 - what is named exists" if named and not missing else f"not ok 2 - missing: {' '.join(missing)}")
sys.exit(0 if shown and shown.group(2) == hello and not missing else 1)

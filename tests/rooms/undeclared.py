#!/usr/bin/python3
"""Tries to include headers across the rooms of the house, by the very commands that compile them.

  tests/rooms/undeclared.py BUILD

Of a room that is above, beside or below but not named (cmake/module.cmake), the compiler must find no header; of a room
that is named it must."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# Room, header, and whether it may be had.
TRIES = [
    ("data", "base/result.h", True),
    ("data", "model/model.h", False),        # above
    ("fabric", "data/batch.h", False),       # beside
    ("optimize", "data/batch.h", False),
    ("model", "fabric/fabric.h", False),
    ("deploy", "fabric/fabric.h", False),    # below, and reached by what it names
    ("deploy", "strategy/strategy.h", False),
    ("serve", "strategy/strategy.h", False),
    ("serve", "deploy/deployment.h", True),
    ("train", "strategy/strategy.h", True),
]


def command_of(room, commands):
    """How a source of the room is compiled, without its output and name."""
    inside = re.compile(rf"/src/freshet/{room}/(?!.*_test\.cc$)[^/]*\.cc$")
    entry = next(entry for entry in commands if inside.search(entry["file"]))
    words = shlex.split(entry["command"])
    words = words[words.index(next(word for word in words if re.search(r"(\+\+|clang)[^/]*$", word))):]
    cut = [i for i, word in enumerate(words) if word in ("-o", "-c", "-MF", "-MT", "-MQ")]
    drop = {i for at in cut for i in (at, at + 1)} | {i for i, word in enumerate(words) if word in ("-MD", "-MMD")}
    return [word for i, word in enumerate(words) if i not in drop], entry["directory"]


def main():
    build = pathlib.Path(sys.argv[1])
    commands = json.loads((build / "compile_commands.json").read_text())
    wrong = []
    with tempfile.TemporaryDirectory() as scratch:
        source = os.path.join(scratch, "tries.cc")
        for room, header, may in TRIES:
            command, directory = command_of(room, commands)
            pathlib.Path(source).write_text(f'#include "{header}"\n')
            done = subprocess.run([*command, "-E", source, "-o", "/dev/null"], cwd=directory, capture_output=True, text=True)
            found = done.returncode == 0
            if not found and "No such file" not in done.stderr and "not found" not in done.stderr:
                sys.exit(f"{room} including {header}: {done.stderr}")
            if found != may:
                wrong.append(f"{room} {'finds' if found else 'does not find'} {header}")
            print(f"{room:10} {header:24} {'found' if found else 'not found'}")
    sys.exit("; ".join(wrong) if wrong else 0)


main()

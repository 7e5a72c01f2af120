#!/usr/bin/python3
"""Runs the benchmarks and puts their tables into docs/benchmarks.md, between the marks named after them. Arguments go
to peers.py.   bench/refresh.py [--rounds 5]"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def put(page, mark, text):
    begin, end = "<!-- begin %s -->" % mark, "<!-- end %s -->" % mark
    block = "\n".join((begin, "", text.strip("\n"), "", end))
    changed, count = re.subn(re.escape(begin) + ".*?" + re.escape(end), lambda _: block,
                             page, flags=re.DOTALL)
    if count != 1:
        sys.exit("refresh.py: found %s … %s %d times, expected once" % (begin, end, count))
    return changed


def output_of(command):
    """Runs a command, showing its output as it comes."""
    lines = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if child.returncode != 0:
        sys.exit("refresh.py: %s ended with %d" % (command[-1], child.returncode))
    return "".join(lines)


def main():
    path = ROOT / "docs/benchmarks.md"
    for mark, command in (("spine_bench", [ROOT / "build/release/bench/spine_bench"]),
                          ("peers", [sys.executable, ROOT / "bench/peers.py", *sys.argv[1:]])):
        text = output_of(command)
        path.write_text(put(path.read_text(), mark, text))


if __name__ == "__main__":
    main()

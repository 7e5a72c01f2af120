#!/usr/bin/env python3
"""Tables of experiments kept by common.sh.

    examples/paper/table.py out/paper/sea.json               for a terminal
    examples/paper/table.py --document docs/continuous.md    fills the tables between the markers of the document
"""
import json
import pathlib
import re
import statistics
import sys


def load(path):
    result = json.loads(pathlib.Path(path).read_text())
    methods = {m["method"]: m for m in result["methods"]}
    return result, methods


def spread(value):
    return f"{value['mean']:.4f} ± {value['sd']:.4f}"


def lines(path):
    result, methods = load(path)
    velox = methods.get("velox")
    by_seed = {(run["method"], run["seed"]): run["error"] for run in result["runs"]}
    rows = []
    for name, m in methods.items():
        against = fewer = ""
        if velox and name != "velox":  # seed by seed, since all methods of a seed see the same stream
            ratios = [100 * (error / by_seed["velox", seed] - 1) for (method, seed), error in by_seed.items() if method == name]
            sd = statistics.stdev(ratios) if len(ratios) > 1 else 0
            against = f"{statistics.mean(ratios):+.2f} ± {sd:.2f} %"
            fewer = f"{velox['steps'] / m['steps']:.1f}"
        rows.append((name, spread(m["error"]), spread(m["final_error"]), f"{m['steps']:,.0f}", f"{m['seconds']:.2f}",
                     f"{m['iterations']:.0f}", f"{1000 * m['longest_iteration_seconds']:.1f} ms", against, fewer))
    return rows


HEAD = ("method", "mean error", "at the end", "steps", "train s", "iterations", "longest", "against velox", "fewer steps")


def terminal(path):
    rows = [HEAD] + lines(path)
    widths = [max(len(row[c]) for row in rows) for c in range(len(HEAD))]
    for row in rows:
        print("  ".join(cell.ljust(w) if c == 0 else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths))))
    print()


def markdown(path):
    out = ["| " + " | ".join(HEAD) + " |", "|---|" + "---:|" * (len(HEAD) - 1)]
    out += ["| " + " | ".join(row) + " |" for row in lines(path)]
    return "\n".join(out)


def sweep(pattern):
    """One row an experiment: name, error, steps."""
    out = ["| | mean error | steps | train s |", "|---|---:|---:|---:|"]
    order = lambda p: [float(x) if re.fullmatch(r"[0-9.]+", x) else x for x in [p.stem.split("-", 1)[1]]]
    for path in sorted(pathlib.Path("out/paper").glob(pattern + "-*.json"), key=order):
        m = load(path)[0]["methods"][0]
        out.append(f"| {path.stem.split('-', 1)[1]} | {spread(m['error'])} | {m['steps']:,.0f} | {m['seconds']:.2f} |")
    return "\n".join(out)


def document(path):
    text = pathlib.Path(path).read_text()

    def fill(match):
        name = match.group(1)
        try:
            body = sweep(name[6:]) if name.startswith("sweep:") else markdown(f"out/paper/{name}.json")
        except FileNotFoundError:
            print(f"no result for {name}; its table stays as it is", file=sys.stderr)
            return match.group(0)
        return f"<!-- {name} -->\n{body}\n<!-- end -->"

    text = re.sub(r"<!-- ([a-z0-9:+-]+) -->\n.*?<!-- end -->", fill, text, flags=re.S)
    pathlib.Path(path).write_text(text)


if __name__ == "__main__":
    if sys.argv[1] == "--document":
        document(sys.argv[2])
    else:
        for one in sys.argv[1:]:
            terminal(one)

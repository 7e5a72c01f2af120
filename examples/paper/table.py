#!/usr/bin/env python3
"""Tables of the experiments that common.sh keeps under out/paper.

    examples/paper/table.py out/paper/sea.json               for a terminal
    examples/paper/table.py --document docs/continuous.md    fills the tables between the marks of the document
"""
import json
import pathlib
import re
import statistics
import sys

OUT = pathlib.Path("out/paper")
HEAD = ("method", "mean error", "at the end", "steps", "train s", "iterations", "longest", "against velox", "fewer steps")
SETS = (("movielens-100k", "MovieLens 100k"), ("movielens-1m", "MovieLens 1M, timestamped part"), ("adult", "Adult"),
        ("covtype", "Cover type, shuffled"), ("covtype-file-order", "Cover type, file order"), ("sea", "SEA"),
        ("higgs", "Higgs, 7,000 rows"), ("url-like", "URL-like, made up"), ("mnist", "MNIST, perceptron"),
        ("w8a", "w8a, shuffled"), ("ijcnn1", "ijcnn1, shuffled"), ("phishing", "Phishing, shuffled"),
        ("weather", "Weather, in order of time"), ("untouched", "KDD Cup 99"))


def load(name):
    return json.loads((OUT / f"{name}.json").read_text())


def errors(result, method):
    return {run["seed"]: run["error"] for run in result["runs"] if run["method"] == method}


def of(result, method):
    return next((m for m in result["methods"] if m["method"] == method), None)


def spread(value):
    return f"{value['mean']:.4f} ± {value['sd']:.4f}"


def ratio(ours, theirs):
    """How much larger our errors are, in percent, seed by seed where both have it: mean and standard error."""
    changes = [100 * (ours[seed] / theirs[seed] - 1) for seed in ours.keys() & theirs.keys()]
    return statistics.mean(changes), statistics.stdev(changes) / len(changes) ** 0.5 if len(changes) > 1 else 0


def change(ours, theirs):
    return "%+.2f ± %.2f %%" % ratio(ours, theirs)


def row(label, result, method, velox, velox_result):
    m = of(result, method)
    against = fewer = ""
    if velox and (method, result) != ("velox", velox_result):
        against = change(errors(result, method), errors(velox_result, "velox"))
        fewer = f"{velox['steps'] / m['steps']:.1f}"
    return (label, spread(m["error"]), spread(m["final_error"]), f"{m['steps']:,.0f}", f"{m['seconds']:.2f}",
            f"{m['iterations']:.0f}", f"{1000 * m['longest_iteration_seconds']:.1f} ms", against, fewer)


def best_velox(name):
    """Velox with the number of epochs that gave it the least error over all seeds."""
    results = [json.loads(path.read_text()) for path in OUT.glob(f"{name}.velox-*.json")]
    if not results:
        return None
    if (OUT / f"{name}.json").exists() and of(load(name), "velox"):
        results.append(load(name))
    seeds = set.intersection(*(set(errors(r, "velox")) for r in results))
    return min(results, key=lambda r: sum(errors(r, "velox")[seed] for seed in seeds))


def rows(name):
    result = load(name)
    velox = of(result, "velox")
    recipe = result["settings"]["recipe"].strip('"')
    label = lambda method: f"continuous, {recipe}" if method == "continuous" else method
    table = [row(label(m["method"]), result, m["method"], velox, result) for m in result["methods"]]
    hindsight = best_velox(name)
    if hindsight and hindsight != result:
        table.append(row(f"velox, best epochs in hindsight ({hindsight['settings']['retrain-epochs']})", hindsight, "velox",
                         velox, result))
    if (OUT / f"{name}.steady.json").exists() and recipe != "steady":
        table.append(row("continuous, steady", load(f"{name}.steady"), "continuous", velox, result))
    if (OUT / f"{name}.answers.json").exists():
        answers = load(f"{name}.answers")
        table += [row(f"{m}, answering drift", answers, m, velox, result) for m in ("baseline+", "velox")]
    return table


def settings(name):
    s = load(name)["settings"]
    seeds = len({run["seed"] for run in load(name)["runs"]})
    few = f" {seeds} seed{'' if seeds == 1 else 's'} instead of ten." if seeds != 10 else ""
    tuned = "Tuned on the first tenth" if s["tune"] == "true" else "Not tuned"
    return (f"{tuned}: rate {s['rate']}, l2 {s['l2']}, {s['initial-epochs']} initial epochs, retrainings of {s['retrain-epochs']}, "
            f"{s['recipe'].strip(chr(34))} iterations every {s['buffer']} rows.{few}")


def terminal(path):
    name = pathlib.Path(path).stem
    table = [HEAD] + rows(name)
    widths = [max(len(line[c]) for line in table) for c in range(len(HEAD))]
    for line in table:
        print("  ".join(cell.ljust(w) if c == 0 else cell.rjust(w) for c, (cell, w) in enumerate(zip(line, widths))))
    print(flush=True)


def markdown(head, table):
    return "\n".join(["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)] +
                     ["| " + " | ".join(line) + " |" for line in table])


def verdict(before):
    """One line a data set: is continuous below baseline+, and how does it stand to velox? Those that were not run again
    keep their line."""
    kept = {line.split(" | ")[0].strip("| "): tuple(line.strip("| ").split(" | ")) for line in before.split("\n")
            if line.startswith("| ")}
    table = []
    for name, title in SETS:
        if not (OUT / f"{name}.json").exists():
            table += [kept[title]] if title in kept else []
            continue
        result, hindsight = load(name), best_velox(name)
        ours, velox = errors(result, "continuous"), of(result, "velox")
        steps = of(result, "continuous")["steps"]
        plus, tuned = ratio(ours, errors(result, "baseline+")), ratio(ours, errors(result, "velox"))
        met = lambda change, times: "yes" if plus[0] < 0 and change[0] <= 0.2 and times >= 3 else "no"
        fewer = velox["steps"] / steps
        line = (title, "%+.2f ± %.2f %%" % plus, "%+.2f ± %.2f %%" % tuned, f"{fewer:.1f}", met(tuned, fewer))
        if hindsight:
            best, fewer = ratio(ours, errors(hindsight, "velox")), of(hindsight, "velox")["steps"] / steps
            line += ("%+.2f ± %.2f %%" % best, f"{fewer:.1f}", met(best, fewer))
        else:
            line += ("not run", "", "")
        table.append(line)
    return markdown(("data", "against baseline+", "against velox", "fewer steps", "bars met",
                     "against the best velox", "fewer steps", "bars met"), table)


def sweep(pattern):
    """One line an experiment: what was varied, error, steps, seconds."""
    number = lambda path: [float(x) if re.fullmatch(r"[0-9.]+", x) else x for x in path.stem.rsplit("-", 1)[1:]]
    table = []
    for path in sorted(OUT.glob(f"{pattern}-*.json"), key=number):
        m = json.loads(path.read_text())["methods"][0]
        table.append((path.stem.rsplit("-", 1)[1], spread(m["error"]), f"{m['steps']:,.0f}", f"{m['seconds']:.2f}"))
    if not table:
        raise FileNotFoundError(pattern)
    return markdown(("", "mean error", "steps", "train s"), table)


def document(path):
    text = pathlib.Path(path).read_text()

    def fill(match):
        name = match.group(1)
        try:
            if name == "verdict":
                body = verdict(match.group(0))
            elif name.startswith("sweep:"):
                body = sweep(name[6:])
            else:
                body = f"{settings(name)}\n\n{markdown(HEAD, rows(name))}"
        except FileNotFoundError:
            print(f"no result for {name}; its table stays as it is", file=sys.stderr)
            return match.group(0)
        return f"<!-- begin {name} -->\n\n{body}\n\n<!-- end {name} -->"

    text = re.sub(r"<!-- begin (\S+) -->.*?<!-- end \1 -->", fill, text, flags=re.S)
    pathlib.Path(path).write_text(text)


if __name__ == "__main__":
    if sys.argv[1] == "--document":
        document(sys.argv[2])
    else:
        for one in sys.argv[1:]:
            terminal(one)

#!/usr/bin/env python3
"""Fills the tables of docs/marenostrum.md from what sweep.py kept under out/marenostrum, and copies the curves beside it.

  examples/marenostrum/table.py [DOCUMENT]"""
import os
import pathlib
import re
import shutil
import sys

import figures

OUT = pathlib.Path("out/marenostrum")


def markdown(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)] +
                     ["| " + " | ".join(row) + " |" for row in rows])


def size(count):
    """Bytes for people."""
    return "%.2f MB" % (count / 1e6) if count < 1e7 else "%.0f MB" % (count / 1e6)


def ms(seconds):
    return "%.0f ms" % (1000 * seconds) if seconds >= 0.01 else "%.1f ms" % (1000 * seconds)


def split(result):
    rows = {}
    for row in result["rows"]:
        rows.setdefault(row["split"], {})[row["threads"]] = row["images_per_second"]
    return markdown(("b", "images/s on one core", "on two", "times one"),
                    [(str(b), "%.0f" % on[1], "%.0f" % on[2], "%.2f" % (on[2] / on[1])) for b, on in rows.items()])


def workers(result):
    alone = {row["batch"]: row["images_per_second"] for row in result["rows"] if row["workers"] == 1}
    rows = [("{:,}".format(row["batch"]), str(row["workers"]), str(row["batch"] // row["workers"]), row["way"],
             "%.0f" % row["images_per_second"], "%.2f" % (row["images_per_second"] / alone[row["batch"]]),
             ms(row["compute"]), ms(row["wait"] + row["exchange"]),
             size(row["busiest_bytes"]) if row["workers"] > 1 else "") for row in result["rows"]]
    return markdown(("B", "workers", "b", "way", "images/s", "times one", "compute", "wait and exchange",
                     "the busiest sends"), rows)


def agreement(result):
    found = result["agreement"]
    ways = list(next(iter(found.values())))
    return markdown(("four workers", *("after %s update%s" % (n, "" if n == "1" else "s") for n in found)),
                    [(way, *("%.1e" % differences[way] for differences in found.values())) for way in ways])


def links(result):
    """One line a way and rate: what the busiest sends and how long that takes, by the number of nodes."""
    lines, counts = {}, sorted({row["nodes"] for row in result["rows"]})
    for row in result["rows"]:
        line = lines.setdefault((row["mbit"], row["way"]), [])
        line.append("%s, %s" % (size(row["busiest_bytes"]), ms(figures.exchange_seconds(row))))
    return markdown(("Mbit/s", "way", *("%d nodes" % count for count in counts)),
                    [("{:,}".format(mbit), way, *cells) for (mbit, way), cells in lines.items()])


def speedup(_):
    lines = figures.speedup(OUT)
    counts = sorted({nodes for line in lines.values() for nodes, _ in line})
    rows = []
    for (way, batch, mbit), line in sorted(lines.items(), key=lambda item: (item[0][2], item[0][1])):
        at = dict(line)
        rows.append(("{:,}".format(mbit), "{:,}".format(batch), way, *("%.2f" % at[n] if n in at else "" for n in counts)))
    return markdown(("Mbit/s", "B", "way", *map(str, counts)), rows)


def frequency(result):
    rows = [(row["way"], str(row["every"]), ms(row["update_seconds"]), ms(row["wait"] + row["exchange"]),
             size(row["busiest_bytes"]), "%.3f" % row["test_loss"]) for row in result["rows"]]
    return markdown(("way", "every", "an update", "wait and exchange", "the busiest sends", "test loss"), rows)


def prefetch(result):
    rows = [("%d" % row["depth"] if row["depth"] else "none, one thread", "%.2f s" % row["waited_for_rows"],
             "%.2f s" % row["seconds"]) for row in result["rows"]]
    rows.append(("a file, 4", "%.2f s" % result["file"]["waited_for_rows"], "%.2f s" % result["file"]["seconds"]))
    return markdown(("blocks ahead", "waited for rows", "took"), rows)


def partitions(result):
    rows = [(row["form"], row["split"], "%d, %d" % (row["least_rows"], row["most_rows"]),
             ms(row["read"] * row["seconds"] / row["update_seconds"]), "%.0f" % row["images_per_second"])
            for row in result["rows"]]
    return markdown(("rows in", "split", "rows of the workers", "reading", "images/s"), rows)


def per_node(result):
    rows = [("%d × %d" % (row["nodes"], row["per_node"]), row["topology"], ms(row["update_seconds"]),
             size(row["busiest_link_bytes"])) for row in result["rows"]]
    return markdown(("nodes × workers", "topology", "an update", "through the busiest link, out"), rows)


def cores(result):
    rows = [("%d × %d" % (row["workers"], row["threads"]), "%.0f" % row["images_per_second"], ms(row["compute"]),
             ms(row["wait"] + row["exchange"])) for row in result["cores"]]
    return markdown(("workers × threads", "images/s", "compute", "wait and exchange"), rows)


def networks(result):
    """What a network computes for 32 images on a core beside what it sends; then both on 1 Gbit/s, by arithmetic."""
    rows, ways = [], {}
    for row in result["rows"]:
        ways.setdefault(row["model"], {})[row["way"]] = row
    for model, way in ways.items():
        alone, central, ring = way["alone"], way["central"], way["ring"]
        rows.append(("%s, %d × %d" % (model, *alone["shape"][1:]), "{:,}".format(int(alone["parameters"])),
                     ms(alone["compute"] + alone["apply"]), size(central["busiest_bytes"]), size(ring["busiest_bytes"]),
                     *("%.1f" % (bytes_sent * 8e-9 * both / (alone["compute"] + alone["apply"])) for bytes_sent, both in
                       ((central["busiest_bytes"], 2), (ring["busiest_bytes"], 1)))))
    return markdown(("network", "parameters", "compute, 32 images", "central sends", "ring sends",
                     "central at 1 Gbit/s, times compute", "ring"), rows)


TABLES = {"split": ("split", split), "workers": ("workers", workers), "agreement": ("workers", agreement),
          "links": ("links", links), "speedup": ("links", speedup), "frequency": ("frequency", frequency),
          "prefetch": ("prefetch", prefetch), "partitions": ("partitions", partitions), "per-node": ("per-node", per_node),
          "cores": ("per-node", cores), "networks": ("networks", networks)}


def fill(match):
    name = match.group(1)
    sweep, table = TABLES[name]
    result = figures.load(OUT, sweep)
    if result is None:
        print("no result of the sweep %s; the table %s stays as it is" % (sweep, name), file=sys.stderr)
        return match.group(0)
    return "<!-- begin %s -->\n\n%s\n\n<!-- end %s -->" % (name, table(result), name)


def main():
    os.chdir(pathlib.Path(__file__).resolve().parents[2])
    document = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/marenostrum.md")
    text = re.sub(r"<!-- begin (\S+) -->.*?<!-- end \1 -->", fill, document.read_text(), flags=re.S)
    document.write_text(text)
    curves = document.with_suffix("")
    curves.mkdir(exist_ok=True)
    for curve in sorted(OUT.glob("*.svg")):
        shutil.copy(curve, curves)


if __name__ == "__main__":
    main()

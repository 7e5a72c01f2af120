"""What the kept results amount to: the curves, and the speedup that parts measured apart would give together."""
import json

import plot


def load(out, name):
    """A sweep's result, or nothing when it was not made."""
    path = out / (name + ".json")
    return json.loads(path.read_text()) if path.exists() else None


def by(rows, name, x, y):
    """Lines: for each value of `name`, the points (x, y)."""
    series = {}
    for row in rows:
        series.setdefault(str(row[name]), []).append((row[x], row[y]))
    return series


def exchange_seconds(row):
    """What an update of the sweep `links` takes beside its few images."""
    return row["update_seconds"] - row["compute"] - row["apply"]


def speedup(out):
    """(way, B, Mbit/s) → [(n, speedup)] of n nodes of one core each: the time of B images on one, over that of B/n images
    and an exchange among n. Computing was measured on one core alone, exchanges among nodes that computed next to
    nothing."""
    split, links = load(out, "split"), load(out, "links")
    if not split or not links:
        return {}
    alone = [row for row in split["rows"] if row["threads"] == 1]
    seconds = {row["split"]: row["compute"] + row["apply"] for row in alone}
    result = {}
    for row in links["rows"]:
        for batch in (256, 1024):
            share = batch // row["nodes"]
            if share in seconds and batch in seconds:
                line = result.setdefault((row["way"], batch, row["mbit"]), [(1, 1.0)])
                line.append((row["nodes"], seconds[batch] / (seconds[share] + exchange_seconds(row))))
    return result


def draw_split(result, _):
    lines = {"on one core": [], "on two cores": []}
    for row in result["rows"]:
        name = "on one core" if row["threads"] == 1 else "on two cores"
        lines[name].append((row["split"], 1000 * row["update_seconds"] / row["split"]))
    return plot.lines("One image by the size of the split", "images of a worker and update (b)", "ms an image", lines,
                      powers_across=True)


def draw_links(result, _):
    first = result["rows"][0]["mbit"]
    lines = by([row for row in result["rows"] if row["mbit"] == first], "way", "nodes", "update_seconds")
    return plot.lines("An update of one image a node, %d Mbit/s" % first, "nodes", "ms",
                      {way: [(nodes, 1000 * seconds) for nodes, seconds in line] for way, line in lines.items()},
                      powers_across=True, powers_up=True)


def draw_speedup(_, out):
    lines = {"%s, %d Mbit/s" % (way.split(", ")[1], mbit): line for (way, batch, mbit), line in speedup(out).items()
             if batch == 1024 and way in ("average, central", "all-reduce, ring")}
    if not lines:
        return None
    most = max(x for line in lines.values() for x, _ in line)
    lines["ideal"] = [(2 ** power, 2 ** power) for power in range(most.bit_length())]
    return plot.lines("Speedup of nodes of one core, B = 1,024, from parts measured apart", "nodes", "times one node", lines,
                      powers_across=True, powers_up=True, dashed=("ideal",))


def draw_workers(result, _):
    alone = {row["batch"]: row["images_per_second"] for row in result["rows"] if row["workers"] == 1}
    lines = {}
    for row in result["rows"]:
        if row["way"] in ("average, central", "all-reduce, ring"):
            line = lines.setdefault("%s, B = %d" % (row["way"], row["batch"]), [(1, alone[row["batch"]])])
            line.append((row["workers"], row["images_per_second"]))
    return plot.lines("Images a second on two cores", "workers, one thread each", "images/s", lines, powers_across=True)


def draw_frequency(result, _):
    averages = [row for row in result["rows"] if row["way"].startswith("average")]
    return plot.lines("An update of four nodes, %d Mbit/s" % result["mbit"], "updates between two averages", "seconds",
                      by(averages, "way", "every", "update_seconds"))


def draw_prefetch(result, _):
    return plot.lines("A disk that pauses", "blocks read ahead", "seconds waited for rows",
                      {"waited": [(row["depth"], row["waited_for_rows"]) for row in result["rows"]]})


def draw_per_node(result, _):
    return plot.lines("An update of eight workers, %d Mbit/s" % result["mbit"], "workers of a node", "seconds",
                      by(result["rows"], "topology", "per_node", "update_seconds"), powers_across=True)


CURVES = {"split": ("split", draw_split), "links": ("links", draw_links), "speedup": ("links", draw_speedup),
          "workers": ("workers", draw_workers), "frequency": ("frequency", draw_frequency),
          "prefetch": ("prefetch", draw_prefetch), "per-node": ("per-node", draw_per_node)}


def draw(out):
    """All curves whose results are there."""
    for name, (sweep, curve) in CURVES.items():
        result = load(out, sweep)
        picture = curve(result, out) if result else None
        if picture:
            (out / (name + ".svg")).write_text(picture)


FARTHEST = 1e-6         # that models of equal settings may be apart after one update; then roundings grow:
FARTHEST_LATER = 1e-4   # a maximum that falls on another pixel changes what is learned


def agree(out):
    """Do models of equal settings agree, as far as that was looked at? Says which do not."""
    workers, agreed = load(out, "workers"), True
    for updates, differences in workers["agreement"].items() if workers else ():
        for way, far in differences.items():
            most = FARTHEST if updates == "1" else FARTHEST_LATER
            if not far <= most:
                print("FAIL: %s is %.1e away from one worker after %s updates, expected at most %.0e"
                      % (way, far, updates, most))
                agreed = False
    return agreed

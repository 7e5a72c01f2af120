#!/usr/bin/env python3
"""Sweeps of the knobs of "Distributed Training of Deep Neural Networks with Spark: The MareNostrum Experience", at the scale
of one machine with two cores. Every command is printed; results are kept as out/marenostrum/NAME.json and .svg, from which
table.py fills docs/marenostrum.md.

  examples/marenostrum/sweep.py [--only workers,frequency] [--quick] [--build build/release]

  split       images a worker computes at once (b = B/n)     prefetch    blocks that are read ahead
  workers     on this machine, B = 256 and 1,024             partitions  files that the rows are cut into
  links       what an exchange takes by the number of nodes  per-node    workers of a node
  frequency   updates between two averages; codecs, groups   networks    AlexNet and GoogLeNet for small images

All take about eleven minutes on two cores, which they must have for themselves; --quick, with fewer and smaller runs that
show nothing but that they work, about two. Links, frequency and per-node make nodes of namespaces, which needs root; they
are skipped, loudly, where that is not possible."""
import argparse
import os
import pathlib
import sys

import figures
from nodes import NodesError
from runs import Bench
from sweeps import NEED_NODES, SWEEPS


def nodes_missing(bench):
    """Why there can be no nodes here, or nothing."""
    try:
        with bench.nodes(1):
            return None
    except NodesError as error:
        return str(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="A,B", help="these sweeps alone [all]")
    parser.add_argument("--quick", action="store_true", help="small: to see that everything works")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"), help="binaries [build/release]")
    flags = parser.parse_args()
    chosen = flags.only.split(",") if flags.only else list(SWEEPS)
    if unknown := set(chosen) - set(SWEEPS):
        parser.error("no sweep is called %s; there are %s" % (", ".join(sorted(unknown)), ", ".join(SWEEPS)))
    os.chdir(pathlib.Path(__file__).resolve().parents[2])
    freshet = flags.build / "apps/freshet/freshet"
    if not freshet.exists():
        sys.exit("sweep: there is no %s; run make build first" % freshet)
    bench = Bench(freshet, pathlib.Path("out/marenostrum-quick" if flags.quick else "out/marenostrum"), flags.quick)
    missing = nodes_missing(bench) if set(chosen) & set(NEED_NODES) else None
    for name in chosen:
        if name in NEED_NODES and missing:
            print("\n**** SKIP SKIP SKIP %s: %s; NOTHING WAS MEASURED ****\n" % (name, missing))
            continue
        print("\n== %s" % name, flush=True)
        SWEEPS[name](bench)
    figures.draw(bench.out)
    return 0 if figures.agree(bench.out) else 1


if __name__ == "__main__":
    sys.exit(main())

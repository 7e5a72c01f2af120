#!/usr/bin/python3
"""Sums over workers of one machine beside Open MPI, MPICH and Gloo: time and bytes of the buffer over time, from 4 KB
to 244 MB, and the share of the memory's bandwidth. Prints Markdown; docs/benchmarks.md explains the tables.

  bench/fabric_bench.py [--rounds 5] [--seconds 0.2] [--build build/release] [--tiny]

Contestants take turns: in each round, for each size, every one of them is started, checks a sum of whole numbers, times
many and ends. Reported are medians over the rounds; of ratios, the median of the rounds' ratios, beside the peer whose
median is best. All run with the same preference of the scheduler, where that may be asked for. Peers are compiled here,
by their own compilers; what cannot be had is left out, and a line beginning with NOTE says so. --tiny: ours alone,
small sums, for the tests."""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from peers import print_table

HERE = pathlib.Path(__file__).resolve().parent
SIZES = [4 << 10, 256 << 10, 4 << 20, 64 << 20, 244 << 20]
CROWDED_SIZES = [4 << 10, 4 << 20]
MOST_SECONDS = 120  # for one run; what takes longer hangs
COMPILE = ["-std=gnu++20", "-O3", "-march=x86-64-v3", "-DOMPI_SKIP_MPICXX"]
MPIRUN = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]  # ranks pin themselves
OVER_TCP = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]
IN_MEMORY = ["--mca", "pml", "ob1", "--mca", "btl", "vader,self"]
OURS = {"threads": "freshet, threads", "memfd": "freshet, tcp through memfd",
        "sockets": "freshet, tcp over sockets", "unchecked": "freshet, the same without checksums"}
PEERS = {"openmpi": "Open MPI, shared memory", "mpich": "MPICH", "openmpi_tcp": "Open MPI, TCP",
         "gloo_ring": "Gloo, ring", "gloo_bcube": "Gloo, bcube", "gloo_halving_doubling": "Gloo, halving-doubling"}
NAMES = OURS | PEERS
MPI, NETWORK = ["openmpi", "mpich"], ["openmpi_tcp", "gloo_ring", "gloo_bcube", "gloo_halving_doubling"]


def verdict(met):
    return "met" if met else "MISSED"


def say(text):
    print(text, file=sys.stderr, flush=True)


def check(truth, text):
    if not truth:
        sys.exit("fabric_bench.py: " + text)


def prefer():
    """Other work on the machine should not decide who wins. Runs in the child, whose session is its own."""
    try:
        pathlib.Path("/proc/self/autogroup").write_text("-20")
        os.nice(-20)
    except OSError:
        pass  # only root may; all contestants are then treated alike too


def preferred():
    return os.geteuid() == 0 and os.access("/proc/self/autogroup", os.W_OK)


class Contestants:
    """What can be run here, and how."""

    def __init__(self, flags, directory):
        self.directory = pathlib.Path(directory)
        self.ours = shutil.copy(flags.build / "bench/fabric_bench", directory)  # ours: a build may go on meanwhile
        self.seconds, self.notes = flags.seconds, []
        self.commands = {name: (lambda ranks, name=name: [self.ours, name]) for name in OURS}
        if not flags.tiny:
            self.add_peers()

    def add_peers(self):
        if openmpi := self.compiled("peer_openmpi", "mpicxx.openmpi", "peer_mpi.cc", "openmpi-bin libopenmpi-dev"):
            self.commands["openmpi"] = lambda ranks: [*MPIRUN, *IN_MEMORY, "-n", ranks, openmpi, "openmpi"]
            self.commands["openmpi_tcp"] = lambda ranks: [*MPIRUN, *OVER_TCP, "-n", ranks, openmpi, "openmpi_tcp"]
        if mpich := self.compiled("peer_mpich", "mpicxx.mpich", "peer_mpi.cc", "mpich libmpich-dev"):
            self.commands["mpich"] = lambda ranks: ["mpirun.mpich", "-bind-to", "none", "-n", ranks, mpich, "mpich"]
        if gloo := self.compiled("peer_gloo", "g++", "peer_gloo.cc", "libgloo-dev", "-lgloo"):
            for name in ("ring", "bcube", "halving_doubling"):
                self.commands["gloo_" + name] = lambda ranks, name=name: [gloo, name, self.empty_directory()]

    def compiled(self, name, compiler, source, packages, *libraries):
        say("compiling %s" % name)
        program = self.directory / name
        command = [compiler, *COMPILE, HERE / "fabric" / source, "-o", program, *libraries]
        try:
            result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
            problem = result.stderr if result.returncode != 0 else ""
        except OSError as error:
            problem = str(error)
        if not problem:
            return program
        say(problem)
        self.notes.append("NOTE %s is NOT here (apt install %s): left out" % (name, packages))
        return None

    def empty_directory(self):
        return tempfile.mkdtemp(dir=self.directory)

    def run(self, name, ranks, size):
        """What it printed; None when it failed, which ends the benchmark if it is ours."""
        command = self.commands[name](ranks) if name in self.commands else [self.ours, name]
        command = [str(part) for part in [*command, ranks, self.seconds, size]]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True, preexec_fn=prefer)
        try:
            out, errors = child.communicate(timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            out, errors = child.communicate()
            errors += "\nit was still running after %d s" % MOST_SECONDS
        lines = [line for line in out.splitlines() if line.startswith("{")]
        if child.returncode == 0 and len(lines) == 1:
            return json.loads(lines[0])
        text = "%s ended with %d\n%s" % (" ".join(command), child.returncode, errors)
        check(name in PEERS, text)
        say(text)
        return None


def compete(contestants, rounds, ranks, sizes):
    """Seconds of one sum, by contestant and size, one for each round; a peer that failed once is out. And, in between,
    what two threads get of memory."""
    given = {size: [] for size in sizes}
    found = {name: {size: [] for size in sizes} for name in contestants.commands}
    for turn in range(rounds):
        for size in sizes:
            say("round %d of %d: %d workers, %s" % (turn + 1, rounds, ranks, shown_size(size)))
            for name in list(found):
                result = contestants.run(name, ranks, size)
                if result is None:
                    contestants.notes.append("NOTE %s FAILED with %d workers at %s: left out"
                                             % (NAMES[name], ranks, shown_size(size)))
                    del found[name]
                else:
                    found[name][size].append(result["seconds"])
            given[size].append(contestants.run("memory", 2, size))
    return found, given


# Tables.

def shown_size(size):
    return "%d MB" % (size >> 20) if size >= 1 << 20 else "%d KB" % (size >> 10)


def rate(value):
    return "%.0f GB/s" % (value / 1e9) if value >= 2e10 else "%.1f GB/s" % (value / 1e9) if value >= 1e9 \
        else "%.0f MB/s" % (value / 1e6)


def micros(seconds):
    return "%.2f µs" % (1e6 * seconds) if seconds < 1e-5 else "%.0f µs" % (1e6 * seconds)


def spread(values, shown):
    return "%s (%s – %s)" % (shown(statistics.median(values)), shown(min(values)), shown(max(values)))


def cells(found, name, sizes):
    """The time of short sums, bytes over time of the others."""
    for size in sizes:
        times = found[name][size]
        yield spread(times, micros) if size <= 4096 else spread([size / value for value in times], rate)


def sums_table(title, found, sizes):
    print_table(title, ["contestant", *map(shown_size, sizes)],
                [[NAMES[name], *cells(found, name, sizes)] for name in NAMES if name in found])


def best(found, names, size):
    """The name of the fastest of these; None when none of them is there."""
    there = [name for name in names if name in found]
    return min(there, key=lambda name: statistics.median(found[name][size])) if there else None


def bar(found, ours, peers, size, least):
    """How many times as fast as the best of the peers."""
    peer, what = best(found, peers, size), "%s, %s" % (NAMES[ours], shown_size(size))
    if peer is None:
        return [what, "no peer is there", "", "≥ %s ×" % least, ""]
    ratios = [their / our for our, their in zip(found[ours][size], found[peer][size])]
    met = statistics.median(ratios) >= least
    return ["%s, times %s" % (what, NAMES[peer]), "%.2f ×" % statistics.median(ratios),
            "%.2f – %.2f" % (min(ratios), max(ratios)), "≥ %s ×" % least, verdict(met)]


def most(what, times, limit):
    return [what, micros(statistics.median(times)), "%s – %s" % (micros(min(times)), micros(max(times))),
            "≤ " + micros(limit), verdict(statistics.median(times) <= limit)]


def bars(found, crowded):
    small, quarter, four, *large = SIZES
    yield from (bar(found, "threads", MPI, size, least)
                for size, least in [(small, 1.0), (four, 1.5), *((size, 2.5) for size in large)])
    yield most("%s, %s" % (NAMES["sockets"], shown_size(small)), found["sockets"][small], 40e-6)
    yield from (bar(found, "sockets", NETWORK, size, least)
                for size, least in [(quarter, 1.1), (four, 1.0), *((size, 1.1) for size in large)])
    yield from (bar(found, "memfd", ["openmpi"], size, 1.0) for size in SIZES)
    yield from (most("%s, %s, 4 workers on 2 cores" % (NAMES[name], shown_size(small)), crowded[name][small], 300e-6)
                for name in ("threads", "memfd", "sockets"))


def checksum_rows(found):
    for size in SIZES:
        costs = [with_it - without for with_it, without in zip(found["sockets"][size], found["unchecked"][size])]
        shares = [cost / with_it for cost, with_it in zip(costs, found["sockets"][size])]
        yield [shown_size(size), micros(statistics.median(costs)), "%.0f %%" % (100 * statistics.median(shares)),
               "%.0f – %.0f %%" % (100 * min(shares), 100 * max(shares))]


def memory_rows(found, given):
    """A sum of two reads both buffers and writes both: four times the bytes of one."""
    for size in SIZES:
        passes = {what: [result[what] for result in given[size]] for what in ("copy", "triad", "update")}
        limit = max(statistics.median(values) for values in passes.values())
        moved = [4 * size / value for value in found["threads"][size]]
        yield [shown_size(size), *(spread(values, rate) for values in passes.values()), spread(moved, rate),
               "%.0f %%" % (100 * statistics.median(moved) / limit),
               spread([result["line"] for result in given[size]], lambda value: "%.0f ns" % (1e9 * value))]


def print_machine(contestants, flags):
    machine = json.loads(subprocess.run([contestants.ours, "machine"], check=True, stdout=subprocess.PIPE).stdout)
    for name in ("cpu", "cores", "compiler", "flags", "commit", "warning"):
        if machine[name]:
            print("    %-9s %s" % (name, machine[name]))
    print("    %-9s %.1f before we began; %s" % ("load", os.getloadavg()[0],
                                                 "contestants are preferred by the scheduler" if preferred() else
                                                 "contestants are NOT preferred by the scheduler: run as root"))
    print("    %-9s %d\n" % ("rounds", flags.rounds), flush=True)


def tiny(contestants):
    found, given = compete(contestants, 1, 2, [4096, 100_000])
    check(len(found) == len(OURS) and given[100_000][0]["copy"] > 0, "something is missing: %s %s" % (found, given))
    sums_table("Two workers", found, [4096, 100_000])


def whole(contestants, flags):
    found, given = compete(contestants, flags.rounds, 2, SIZES)
    crowded, _ = compete(contestants, flags.rounds, 4, CROWDED_SIZES)
    for note in contestants.notes:
        print(note + "\n")
    sums_table("Two workers on two cores: time at 4 KB, bytes of the buffer over time", found, SIZES)
    sums_table("Four workers on two cores", crowded, CROWDED_SIZES)
    print_table("Targets", ["what", "median", "low – high", "target", ""], bars(found, crowded))
    print_table("What the checksum costs", ["size", "a sum takes longer by", "of its time", "low – high"],
                checksum_rows(found))
    print_table("Memory, read and written by two threads",
                ["size", "copy", "triad", "update", "sums of threads", "share", "a line between the cores"],
                memory_rows(found, given))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each measurement, about [0.2]")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build/release")
    parser.add_argument("--tiny", action="store_true")
    flags = parser.parse_args()
    if flags.tiny:
        flags.seconds = 0.01
    with tempfile.TemporaryDirectory() as directory:
        contestants = Contestants(flags, directory)
        if flags.tiny:
            tiny(contestants)
        else:
            print_machine(contestants, flags)
            whole(contestants, flags)


if __name__ == "__main__":
    main()

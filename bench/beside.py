#!/usr/bin/python3
"""Networks on a machine that is quiet, beside programs that keep its cores busy, and in a container with less time than
its cores have: how much the way threads wait for each other matters. Prints Markdown; docs/benchmarks.md explains it.

  bench/beside.py [--rounds 6] [--build build/release] [--tiny]

The same work is done by three processes that stay and take turns: waiting as the program does by itself, waiting
passively (OMP_WAIT_POLICY=passive), and as GCC's OpenMP would by default. All three must compute the same numbers. The
container is a control group with 1.5 cores, which needs root; without that it is left out. --tiny: few steps, for the
tests."""
import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

from network_bench import Worker, check, say
from peers import print_table, verdict

HERE = pathlib.Path(__file__).resolve().parent
OWN, PASSIVE, GCC = {}, {"OMP_WAIT_POLICY": "passive"}, {"GOMP_SPINCOUNT": "300000"}
QUOTA = 1.5


@contextlib.contextmanager
def quiet():
    yield lambda process: None


@contextlib.contextmanager
def busy(loops=2):
    """Beside programs that do nothing but use their cores."""
    loop = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"  # not for ever, whatever happens
    others = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(loops)]
    try:
        yield lambda process: None
    finally:
        for other in others:
            other.kill()
            other.wait()


def make_group():
    """A control group with a quota, or None with the reason. Of version 2 where that has the controller, else of 1."""
    period = 100_000
    kinds = [("/sys/fs/cgroup", {"cpu.max": "%d %d" % (QUOTA * period, period)}),
             ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": period, "cpu.cfs_quota_us": int(QUOTA * period)}),
             ("/sys/fs/cgroup/cpu,cpuacct", {"cpu.cfs_period_us": period, "cpu.cfs_quota_us": int(QUOTA * period)})]
    reason = "no control groups are mounted"
    for root, settings in kinds:
        group = pathlib.Path(root) / ("freshet-beside-%d" % os.getpid())
        try:
            group.mkdir()
        except OSError as error:
            reason = str(error)
            continue
        try:
            for name, value in settings.items():
                if not (group / name).exists():
                    raise OSError("%s has no %s" % (group, name))
                (group / name).write_text("%s\n" % value)
            return group, ""
        except OSError as error:
            reason = str(error)
            group.rmdir()
    return None, reason


@contextlib.contextmanager
def limited(group):
    yield lambda process: (group / "cgroup.procs").write_text("%d\n" % process.pid)


def take_turns(binary, situation, mode, net, threads, rounds, calls):
    """Seconds a call by round, for each way of waiting."""
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context(situation)
        workers = []
        for waiting in (OWN, PASSIVE, GCC):
            environment = {name: value for name, value in os.environ.items()
                           if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
            workers.append(stack.enter_context(
                Worker(binary, mode, net, 32, threads, environment=dict(environment, **waiting))))
            enter(workers[-1].process)
        for worker in workers:
            worker.ask(1)
        found = [[0.0] * len(workers) for _ in range(rounds)]
        for turn, values in enumerate(found):  # who comes after a worker that looks for long pays for it: all in turn
            for place in range(len(workers)):
                which = (place + turn // 2) % len(workers) if turn % 2 else (turn // 2 - place) % len(workers)
                values[which] = workers[which].ask(calls)
        check(len({worker.last for worker in workers}) == 1,
              "%s of %s: %s" % (mode, net, " and ".join(str(worker.last) for worker in workers)))
    return list(zip(*found))


def shown(seconds):
    return "%.0f µs" % (1e6 * seconds) if seconds < 2e-3 else "%.1f ms" % (1e3 * seconds)


def line(where, what, own, passive, gcc, bar):
    def ratio(others):
        return statistics.median(mine / other for mine, other in zip(own, others))
    return [where, what, *(shown(statistics.median(values)) for values in (own, passive, gcc)),
            "%.2f" % ratio(passive), "%.2f" % ratio(gcc), "≤ %.2f" % bar, verdict(ratio(passive) <= bar)]


def tables(binary, rounds, tiny):
    works = [("step", "mlp", 1, 10), ("step", "lenet5", 2, 2)] if tiny else \
            [("step", "mlp", 2, 300), ("predict", "mlp", 2, 300), ("step", "lenet5", 2, 10), ("step", "resnet20", 2, 2)]
    group, reason = make_group()
    situations = [("quiet", quiet, 1.1), ("beside two busy loops", busy, 1.25)]
    if group is None:
        print("NOTE NO CONTROL GROUP COULD BE MADE (%s): the container of %s cores is LEFT OUT\n" % (reason, QUOTA))
    else:
        situations.append(("in %s cores" % QUOTA, lambda: limited(group), 1.25))
    try:
        for where, situation, bar in situations:
            for mode, net, threads, calls in works:
                say("%s: %s of %s" % (where, mode, net))
                spent = take_turns(binary, situation(), mode, net, threads, rounds, calls)
                yield line(where, "%s %s" % (net, mode), *spent, bar)
    finally:
        if group is not None:
            group.rmdir()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="of everything that is timed; a multiple of 6 is fair [6]")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build/release",
                        help="binaries [build/release]")
    parser.add_argument("--tiny", action="store_true", help="few steps; times say nothing")
    flags = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that loops and group are gone afterwards
    with tempfile.TemporaryDirectory() as directory:
        binary = shutil.copy(flags.build / "bench/network_bench", directory)  # a build may go on meanwhile
        print("load before: %.1f of %d cores\n" % (os.getloadavg()[0], os.cpu_count()))
        print_table("Waiting, batch 32", ["where", "what", "as it is", "passive", "GCC's own", "times passive",
                                          "times GCC's own", "bar", ""],
                    list(tables(binary, 1 if flags.tiny else flags.rounds, flags.tiny)))


if __name__ == "__main__":
    main()

#!/usr/bin/python3 -B
"""Trains the same model under every launcher there is, and compares the bytes of what comes out with those of workers
that are threads: freshet launch, Open MPI, MPICH, Slurm (four nodes on this machine, started for it), and the variables
that torchrun sets. Launchers that are not installed are SKIPPED, loudly."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

import slurm
from cluster import Verdicts, arguments, digest, enter, last_line, run, scratch, sh

NETWORK = """input = "data"
layers = [{dense = 64, activation = "relu"}, {dense = 32, activation = "relu"}, {dense = "classes"}]
"""
TRAIN = ["train", "rows.csv", "--model", "net.toml", "--epochs", "2", "--batch", "60", "--topology", "ring", "--quiet"]
OPENMPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]
MPI = {"openmpi": OPENMPI, "mpich": ["mpirun.mpich"]}
TWO_WORLDS = "contradict each other: unset the variables of the one that did not start this process"


class Launchers:
    def __init__(self, program, directory, show):
        self.program, self.directory, self.show = program, directory, show
        self.verdicts = Verdicts()
        (directory / "net.toml").write_text(NETWORK)
        generate = run([program, "data", "generate", "--kind", "hyperplane", "--features", 20, "--rows", 6000, "-o",
                        "rows.csv"])
        if generate.code != 0:
            sys.exit("data generate: " + last_line(generate.err))
        sh("umask 077; head -c 32 /dev/urandom > token")
        threads = self.train("threads", [], ["--workers", 4])
        self.expected = digest("threads.model")
        self.verdicts.check("freshet train --workers 4, sha256 %s" % self.expected,
                            last_line(threads.err) if threads.code != 0 else "")

    def train(self, name, before, after, environment=None):
        done = run(before + [self.program] + TRAIN + ["-o", name + ".model"] + after, environment=environment)
        self.print(done)
        return done

    def print(self, done):
        if self.show:
            print("$ %s\n%s%s" % (" ".join(done.command), done.out, done.err))

    def compare(self, name, what, done):
        reason = ""
        if done.code != 0:
            reason = "exit code %d: %s" % (done.code, last_line(done.err))
        elif digest(name + ".model") != self.expected:
            reason = "another model: %s, not %s" % (digest(name + ".model"), self.expected)
        self.verdicts.check("%s (%.1f s)" % (what, done.seconds), reason)

    def launch(self):
        self.compare("launch", "freshet launch -n 4 -- train", self.launch_train("launch", []))

    def launch_train(self, name, before):
        done = run(before + [self.program, "launch", "-n", 4, "--"] + TRAIN + ["-o", name + ".model"])
        self.print(done)
        return done

    def mpi(self):
        for name, command in MPI.items():
            if shutil.which(command[0]) is None:
                self.verdicts.skip(command[0] + " -n 4", "it is not installed")
                continue
            self.compare(name, command[0] + " -n 4 freshet train", self.train(name, command + ["-n", "4"], []))
            # Its workers would each believe to be one of the three that somebody else has started.
            self.refused(command[0] + " where RANK and WORLD_SIZE are set", command + ["-n", "2"],
                         {"RANK": "0", "WORLD_SIZE": "3"})

    def refused(self, what, command, environment=None):
        done = self.train("refused", command, [], environment)
        said = [line for line in done.err.splitlines() if TWO_WORLDS in line]
        reason = "" if done.code == 2 and said else "exit code %d: %s" % (done.code, last_line(done.err))
        self.verdicts.check("%s is refused: %s" % (what, said[0] if said else "?"), reason)

    def torchrun_variables(self):
        processes = []
        for rank in range(4):
            place = {"RANK": rank, "WORLD_SIZE": 4, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 4,
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29500}
            processes.append(subprocess.Popen(
                [str(self.program)] + TRAIN + ["-o", "torchrun.model"], stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True, env={**os.environ, **{k: str(v) for k, v in place.items()}}))
        errors = [process.communicate(timeout=120)[1] for process in processes]
        reason = "".join("rank %d: exit code %d: %s" % (rank, process.returncode, last_line(errors[rank]))
                         for rank, process in enumerate(processes) if process.returncode != 0)
        if not reason and digest("torchrun.model") != self.expected:
            reason = "another model: " + digest("torchrun.model")
        self.verdicts.check("RANK, WORLD_SIZE, … as torchrun sets them", reason)

    def two_worlds(self):
        if None in [shutil.which(command[0]) for command in MPI.values()]:
            return self.verdicts.skip("one mpirun within the other", "not both are installed")
        self.refused("mpirun.mpich within mpirun.openmpi", OPENMPI + ["-n", "3", "mpirun.mpich", "-n", "2"])

    def slurm(self):
        if slurm.missing():
            return self.verdicts.skip("srun, srun --mpi=pmi2, sbatch", "not installed: " + " ".join(slurm.missing()))
        slurm.start(self.directory, 4)
        token = ["--token-file", self.directory / "token"]
        for flags in (["-N4", "-n4"], ["-N4", "-n4", "--mpi=pmi2"], ["-N2", "-n4"]):
            name = "srun" + "".join(flags)
            self.compare(name, "srun %s freshet train" % " ".join(flags), self.train(name, ["srun"] + flags, token))
        self.compare("within", "srun -n1 freshet launch -n 4 -- train", self.launch_train("within", ["srun", "-n1"]))
        for name, command in MPI.items():
            if shutil.which(command[0]) is None:
                self.verdicts.skip("sbatch with " + command[0], "it is not installed")
            else:
                self.batch(name, ["--nodes=2", "--ntasks=4"], command + ["-n", "4"])

    def batch(self, name, flags, command):
        words = command + [self.program] + TRAIN + ["-o", "batch-%s.model" % name, "--token-file",
                                                     self.directory / "token", "--rendezvous", "$(hostname):29600"]
        pathlib.Path("job").write_text("#!/bin/sh\n%s\n" % " ".join(str(word) for word in words))
        done = run(["sbatch", "--wait", "--output=job.out"] + flags + ["job"])
        with contextlib.suppress(FileNotFoundError):
            done.out = done.err = done.out + pathlib.Path("job.out").read_text()
        self.print(done)
        self.compare("batch-" + name, "sbatch %s with %s" % (" ".join(flags), command[0]), done)


def main():
    parser = arguments(__doc__, 300)
    parser.add_argument("--show", action="store_true", help="show what the programs print")
    options = parser.parse_args()
    program = enter(options)
    with scratch() as directory:
        launchers = Launchers(program, directory, options.show)
        launchers.launch()
        launchers.torchrun_variables()
        launchers.mpi()
        launchers.two_worlds()
        launchers.slurm()
    launchers.verdicts.end()


main()

#!/usr/bin/python3
"""Descent along the factors of ratings: how many updates of coordinates recent order (--strategy scheduled) takes beside
sweeps in random order and beside all users, all items in turn, to gain 90 and 99 % of what there is to gain; from nothing,
and from a model to which the ratings of one user in a hundred are new. Then what held-out ratings say of it and of sgd.
Prints Markdown tables; ends with 1 when recent order takes more than a third of the updates of sweeps to gain 90 % where
few users are new, when an objective rises, or when it is not the same for any number of workers.

  bench/scheduled_ratings.py [RATINGS] [--build build/release] [--factors 40] [--l2 0.09]

Without a file, of 100,000 generated ratings. Takes some minutes."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from peers import print_table, verdict

HERE = pathlib.Path(__file__).resolve().parent
WAYS = {"recent": (), "random sweeps": ("--order", "random"),
        "all users, all items": ("--order", "random", "--coordinates", 1 << 30)}
LEFT = (0.1, 0.01)


def freshet(flags, *arguments):
    command = [flags.build / "apps/freshet/freshet", *arguments]
    return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, check=True, timeout=600).stdout


def train(flags, path, *extra):
    return json.loads(freshet(flags, "train", path, "--format", "ratings", "--factors", flags.factors, "--json", "--quiet", *extra))


def descend(flags, path, *extra):
    report = train(flags, path, "--strategy", "scheduled", "--l2", flags.l2, "--epochs", flags.epochs, *extra)
    return report["descent"]


def updates_until_left(course, left, least):
    goal = least + left * (course[0][1] - least)
    return next(updates for updates, objective in course if objective <= goal)


def compare(flags, path, what, *extra):
    """The table, how often as many updates sweeps take, and whether no objective rose."""
    courses = {way: descend(flags, path, *how, *extra)["course"] for way, how in WAYS.items()}
    least = min(course[-1][1] for course in courses.values())
    needed = {way: [updates_until_left(course, left, least) for left in LEFT] for way, course in courses.items()}
    print_table(what, ["order"] + ["updates to gain %.0f %%" % (100 - 100 * left) for left in LEFT] + ["objective at the end"],
                [[way, *("{:,}".format(updates) for updates in needed[way]), "%.6f" % courses[way][-1][1]] for way in WAYS])
    falls = all(after[1] <= before[1] for course in courses.values() for before, after in zip(course, course[1:]))
    return needed["random sweeps"][0] / max(needed["recent"][0], 1), falls


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ratings", nargs="?", type=pathlib.Path, help="a file of user, item, rating [generated]")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build/release", help="binaries [build/release]")
    parser.add_argument("--factors", type=int, default=40)
    parser.add_argument("--l2", type=float, default=0.09)
    parser.add_argument("--epochs", type=int, default=100)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        everything = pathlib.Path(directory) / "ratings.dat"
        if flags.ratings:
            everything.write_bytes(flags.ratings.read_bytes())
        else:
            freshet(flags, "data", "generate", "--kind", "ratings", "--rows", 100000, "--users", 1000, "--items", 1700, "-o",
                    everything)
        old, model = pathlib.Path(directory) / "old.dat", pathlib.Path(directory) / "old.model"
        with open(everything) as all_of_them, open(old, "w") as file:
            file.writelines(line for line in all_of_them if int(line.replace("::", " ").split()[0]) % 100 != 7)
        cold, falls = compare(flags, everything, "%s, from nothing" % (flags.ratings or "generated"))
        train(flags, old, "--strategy", "scheduled", "--l2", flags.l2, "--epochs", 1000, "-o", model)  # to its end
        warm, falls_too = compare(flags, everything, "the same, where one user in a hundred is new", "--from", model)
        alone = descend(flags, everything)
        same = all(descend(flags, everything, "--workers", workers) == alone for workers in (2, 3, 4, 8))
        judged = {rule: train(flags, everything, "--holdout", 0.1, *how)["held_out"]["rmse"]
                  for rule, how in {"scheduled": ("--strategy", "scheduled"), "sgd": ()}.items()}
        print_table("a tenth held out, by defaults", ["rule", "RMSE"], [[rule, "%.4f" % rmse] for rule, rmse in judged.items()])
    few, never_rises = warm >= 3, falls and falls_too
    print("of the updates of sweeps to gain 90 %%: %.2f from nothing, %.2f where few users are new: %s; never rises: %s; the same "
          "course by 1, 2, 3, 4 and 8 workers, to the last bit: %s" %
          (1 / cold, 1 / warm, verdict(few), verdict(never_rises), verdict(same)))
    return 0 if few and never_rises and same else 1


if __name__ == "__main__":
    sys.exit(main())

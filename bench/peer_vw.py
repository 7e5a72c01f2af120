#!/usr/bin/env python3
"""Vowpal Wabbit's logistic regression in one pass over VW text:   peer_vw.py TRAIN MODEL TEST PREDICTIONS BITS

Prints the seconds of training, with saving the model, as JSON; writes a score for each row of TEST. Not timed, in its
favour: the interpreter's start and imports. Needs the vowpalwabbit package."""
import json
import sys
import time

import vowpalwabbit


def run(arguments):
    begun = time.perf_counter()
    vowpalwabbit.Workspace(arg_list=arguments + ["--quiet"]).finish()
    return time.perf_counter() - begun


def main(train, model, test, predictions, bits):
    seconds = run(["-d", train, "-f", model, "-b", bits, "--loss_function", "logistic"])
    run(["-t", "-d", test, "-i", model, "-p", predictions])
    print(json.dumps({"version": vowpalwabbit.__version__, "seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])

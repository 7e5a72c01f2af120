#!/usr/bin/env python3
"""Installs a build into a clean prefix, builds examples/cpp by find_package(freshet), runs it, and asks it for a
prediction, which must be the model's own.

    check.py --build build/release
"""
import argparse
import json
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
ROWS = [[8, 9, 1], [1, 2, 3], [4.5, 4.25, 9]]


def do(*command, **how):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **how)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def single(number):
    """As a float of four bytes, which models compute with: JSON may spell it out as one of eight."""
    return struct.unpack("f", struct.pack("f", number))[0]


def served_scores(address):
    body = {"inputs": [{"name": "x", "shape": [len(ROWS), 3], "datatype": "FP32", "data": sum(ROWS, [])}]}
    request = urllib.request.Request(address + "v2/models/sea/infer", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return [single(score) for score in json.load(answer)["outputs"][0]["data"]]


def predicted_scores(program, folder):
    rows = folder / "rows.csv"
    rows.write_text("x1,x2,x3,label\n" + "".join(",".join(map(str, row)) + ",0\n" for row in ROWS))
    lines = do(program, "predict", "-i", folder / "sea.model", "--json", rows).splitlines()
    return [single(json.loads(line)["score"]) for line in lines]


def run(example, program, folder):
    process = subprocess.Popen([example, folder], stdout=subprocess.PIPE, text=True)
    try:
        error, serving = process.stdout.readline().split(), process.stdout.readline().split()
        assert error[:1] == ["error"] and float(error[1]) < 0.2, error
        assert serving[:1] == ["serving"], serving
        served, predicted = served_scores(serving[1]), predicted_scores(program, folder)
        assert served == predicted, f"served {served}, predicted {predicted}"
        assert len(set(served)) == len(ROWS), served
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--generator", default="Ninja")
    parser.add_argument("--compiler", default="c++")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="freshet-install-"))
    try:
        prefix, build, data = folder / "prefix", folder / "build", folder / "data"
        data.mkdir()
        do("cmake", "--install", options.build.resolve(), "--prefix", prefix)
        do("cmake", "-S", SOURCE / "examples" / "cpp", "-B", build, "-G", options.generator,
           f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={options.compiler}",
           "-DCMAKE_FIND_PACKAGE_NO_PACKAGE_REGISTRY=ON")
        do("cmake", "--build", build)
        run(build / "train_and_serve", prefix / "bin" / "freshet", data)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("the example trains, evaluates, saves and serves; its predictions are the model's own")


main()

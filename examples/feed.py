#!/usr/bin/env python3
"""Streams the rows of a CSV file to models behind `freshet serve`: asks for a prediction, then sends the label.

    freshet serve sea.model &
    examples/feed.py sea.csv --to http://127.0.0.1:8080 --models sea --rate 2000

Plain Python, no packages: what a client of your own would do. Each batch of rows is predicted first and learned
after that, so the error told at the end is that of predictions on rows that the model had not seen.
"""
import argparse
import csv
import http.client
import json
import sys
import time
import urllib.parse


def tensor(name, datatype, shape, data):
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


class Client:
    """One connection, kept open."""

    def __init__(self, url, token):
        parts = urllib.parse.urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.connection = kind(parts.hostname, parts.port, timeout=30)
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = "Bearer " + token

    def call(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body), self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"{method} {path}: {answer.status} {text.decode(errors='replace')}")
        return json.loads(text)


def batches(path, label, size, most):
    with open(path, newline="") as file:
        rows = csv.DictReader(file)
        names = [name for name in rows.fieldnames if name != label]
        batch = []
        for number, row in enumerate(rows):
            if most and number >= most:
                break
            batch.append(([float(row[name]) for name in names], row[label]))
            if len(batch) == size:
                yield batch
                batch = []
        if batch:
            yield batch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", help="CSV file with a header; all columns but the label are numbers")
    parser.add_argument("--to", default="http://127.0.0.1:8080", help="the server")
    parser.add_argument("--models", required=True, help="names, comma-separated; each gets every row")
    parser.add_argument("--label", default="label", help="the column to predict")
    parser.add_argument("--batch", type=int, default=100, help="rows a request")
    parser.add_argument("--rate", type=float, default=0, help="rows a second (0: as fast as it goes)")
    parser.add_argument("--most", type=int, default=0, help="stop after so many rows")
    parser.add_argument("--token", default="", help="bearer token")
    options = parser.parse_args()

    client = Client(options.to, options.token)
    models = options.models.split(",")
    wrong = dict.fromkeys(models, 0)
    sent, started, shown = 0, time.monotonic(), 0.0
    for batch in batches(options.rows, options.label, options.batch, options.most):
        n, width = len(batch), len(batch[0][0])
        x = tensor("x", "FP32", [n, width], [value for row, _ in batch for value in row])
        labels = tensor("labels", "BYTES", [n], [label for _, label in batch])
        for model in models:
            path = "/v2/models/" + urllib.parse.quote(model, safe="+")
            answer = client.call("POST", path + "/infer", {"inputs": [x], "outputs": [{"name": "label"}]})
            said = answer["outputs"][0]["data"]
            wrong[model] += sum(guess != truth for guess, (_, truth) in zip(said, batch))
            client.call("POST", path + "/learn", {"inputs": [x, labels]})
        sent += n
        now = time.monotonic() - started
        if options.rate and sent / options.rate > now:
            time.sleep(sent / options.rate - now)
        if sys.stderr.isatty() and now - shown > 0.5:
            shown = now
            print(f"\r{sent:,} rows sent", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(f"\r{sent:,} rows sent in {time.monotonic() - started:.1f} s", file=sys.stderr)

    print(f"{'model':<14} {'method':<12} {'error %':>8} {'last 1000 %':>12} {'iterations':>10} {'steps':>12} {'drifts':>7} {'version':>9}")
    for model in models:
        stats = client.call("GET", "/v2/models/" + urllib.parse.quote(model, safe="+") + "/stats")
        print(f"{model:<14} {stats['method']:<12} {100 * wrong[model] / max(1, sent):>8.2f} "
              f"{100 * stats['quality']['last_thousand']:>12.2f} {stats['training']['iterations']:>10} "
              f"{stats['training']['steps']:>12,} {stats['training']['drifts']:>7} {stats['version']:>9}")


if __name__ == "__main__":
    main()

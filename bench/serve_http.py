#!/usr/bin/python3
"""Our HTTP server beside nginx: requests per second for a small constant answer, by wrk on the same machine.

  bench/serve_http.py [--rounds 7] [--seconds 3] [--connections 32] [--build build/release]

Both serve with as many threads or processes as wrk has threads (--threads 2). They are measured in turn, round after
round; what is reported is the median of each and of the rounds' ratios. The target is 70 % of nginx. Needs wrk and nginx.
Fails when an answer is not the one expected, and when wrk saw an error."""
import argparse
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ANSWER = '{"outputs":[0.123456789]}'
TARGET = 0.7
NGINX = """
worker_processes %(threads)d; daemon off; pid %(directory)s/pid; error_log %(directory)s/error.log;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000000; tcp_nodelay on; default_type application/json;
  server { listen 127.0.0.1:%(port)d; location / { return 200 '%(answer)s'; } }
}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def await_answer(port):
    """Waits until the server answers, and checks what it answers."""
    for _ in range(100):
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/" % port, timeout=5) as answer:
                found = answer.read().decode()
        except OSError:
            time.sleep(0.05)
            continue
        if found != ANSWER:
            sys.exit("port %d answers %r, not %r" % (port, found, ANSWER))
        return
    sys.exit("nobody answers on port %d" % port)


def requests_per_second(port, arguments):
    command = ["wrk", "-t%d" % arguments.threads, "-c%d" % arguments.connections, "-d%ds" % arguments.seconds,
               "http://127.0.0.1:%d/" % port]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    if "Non-2xx" in text or "Socket errors" in text:
        sys.exit("wrk saw errors:\n" + text)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    arguments = parser.parse_args()
    nginx = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if not nginx or not shutil.which("wrk"):
        sys.exit("wrk and nginx are needed; see scripts/install-deps")
    ours_port, nginx_port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as directory:
        settings = pathlib.Path(directory, "nginx.conf")
        settings.write_text(NGINX % dict(threads=arguments.threads, directory=directory, port=nginx_port, answer=ANSWER))
        ours = subprocess.Popen([str(arguments.build / "bench" / "http_echo"), str(ours_port), str(arguments.threads)],
                                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        theirs = subprocess.Popen([nginx, "-c", str(settings), "-e", directory + "/start.log"])
        try:
            await_answer(ours_port)
            await_answer(nginx_port)
            rounds = [(requests_per_second(ours_port, arguments), requests_per_second(nginx_port, arguments))
                      for _ in range(arguments.rounds)]
        finally:
            ours.stdin.close()
            theirs.terminate()
            ours.wait(timeout=10)
            theirs.wait(timeout=10)
    print("| server | requests/s, median | lowest | highest |\n|---|---:|---:|---:|")
    for name, values in zip(("freshet", "nginx"), zip(*rounds)):
        print("| %s | %.0f | %.0f | %.0f |" % (name, statistics.median(values), min(values), max(values)))
    ratio = statistics.median(ours / theirs for ours, theirs in rounds)
    print("\n%.0f %% of nginx (median of %d rounds; the target is %.0f %%)" % (ratio * 100, len(rounds), TARGET * 100))


if __name__ == "__main__":
    main()

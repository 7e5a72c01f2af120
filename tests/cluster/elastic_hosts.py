#!/usr/bin/python3 -B
"""Elastic training between hosts whose links go down and up: workers in network namespaces, each under freshet agent. More
than half of them go on within 5 s, to the model that nothing would have disturbed; who is cut off ends with exit code 4,
and can come back when its link is up. Of two halves neither goes on, and the checkpoint is good for another run. Strangers
who knock at the workers' doors change nothing. Parameter servers are cut off, too, at random moments, in every
synchrony, and come back."""
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time

from cluster import Hosts, Verdicts, arguments, enter, last_line, run, scratch, sh
from elastic import ROWS, SYNCHRONIES, Elastic, processes, signal_one

HOSTS = ["alpha", "beta", "gamma"]
FIVE = ["alpha", "alpha", "beta", "beta", "gamma"]
GAP_S = 5
CUT_OFF_S = 15  # who is cut off misses the others after 3 s, tries for 5 s more, and ends
JOIN_AT = re.compile(r"others may join at (\S+), job")
ALONE = re.compile(r"freshet: of \d workers, \d can be reached: that is not more than half")


def why_not():
    """Why hosts cannot be made here; nothing when they can."""
    for program in ("ip", "unshare", "setpriv"):
        if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is None:
            return program + " is not installed"
    trial = ["unshare", "--net", "--mount", "--pid", "--fork"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    done = run(trial + ["sh", "-c", "mount -t tmpfs none /run && ip netns add trial"], limit_s=20)
    return "" if done.code == 0 else "no network namespaces without root (%s)" % last_line(done.err)


class Strangers(threading.Thread):
    """Knock at doors until told to go: some say nothing, some say noise, some half a sentence."""

    def __init__(self, doors, seed):
        super().__init__(daemon=True)
        self.doors, self.random = doors, random.Random(seed)
        self.knocks, self.held, self.gone = 0, [], threading.Event()

    def knock(self, door):
        host, port = door.rsplit(":", 1)
        try:
            guest = socket.create_connection((host, int(port)), timeout=1)
            self.knocks += 1
            guest.sendall(self.random.choice([b"", b"GET / HTTP/1.1\r\n\r\n", self.random.randbytes(20),
                                              self.random.randbytes(self.random.randrange(1, 100000))]))
            self.held.append(guest)
        except OSError:
            pass  # nobody listens there, or it was shown out

    def run(self):
        while not self.gone.wait(0.01):
            self.knock(self.random.choice(self.doors))
            while len(self.held) > 20 * len(self.doors):
                self.held.pop(0).close()

    def go(self):
        self.gone.set()
        self.join()
        for guest in self.held:
            guest.close()


class Split(Elastic):
    def __init__(self, program, directory, options):
        super().__init__(program, directory, options)
        self.hosts, self.port = Hosts(directory, HOSTS), 23456
        self.worst = []
        self.how, self.most_apart = [], 1e-6  # flags of a job, and how far its model may be from the undisturbed one

    def on(self, host, command, err):
        """Starts a program on a host."""
        words = "cd %s && exec %s" % (shlex.quote(str(self.directory)), shlex.join(map(str, command)))
        return subprocess.Popen([self.hosts.ssh, host, words], stdin=subprocess.DEVNULL,
                                stdout=err.with_suffix(".out").open("w"), stderr=err.open("w"), process_group=0)

    def start(self, name, layout, least, restarts):
        """A worker for each of these hosts, under an agent; until they train."""
        self.name, self.layout, self.port = name, layout, self.port + 1
        for old in [*self.directory.glob(name + ".*.err"), *self.directory.glob(name + ".*.out")]:
            old.unlink()
        checkpoint = self.directory / (name + ".ck")
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        self.agents = [self.on(host, [self.program, "agent", "--restarts", restarts, "--"] + self.train(name) +
                               self.how + ["--elastic", "%d:%d" % (least, len(layout)), "--rank", rank, "--world", len(layout),
                                "--rendezvous", "10.77.0.%d:%d" % (1 + HOSTS.index(layout[0]), self.port), "--job", name,
                                "--token-file", "token"], self.err_of(rank)) for rank, host in enumerate(layout)]
        self.soon(lambda: checkpoint.exists() and checkpoint.stat().st_mtime_ns > before, 30)

    def err_of(self, who):
        return self.directory / ("%s.%s.err" % (self.name, who))

    def said(self):
        return [line for err in sorted(self.directory.glob(self.name + ".*.err")) for line in err.read_text().splitlines()]

    def changes(self):
        self.err = self.directory / (self.name + ".all")  # where the others look
        self.err.write_text("\n".join(self.said()))
        return super().changes()

    def soon(self, condition, limit_s):
        return self.until(self.agents[0], condition, limit_s) if self.agents[0].poll() is None else \
            self.until(self.agents[-1], condition, limit_s)

    def address(self):
        return next(found[1] for found in map(JOIN_AT.search, self.said()) if found)

    def ps(self, token="token"):
        return run([self.program, "ps", self.address(), "--job", self.name, "--token-file", token, "--json"], limit_s=30)

    def cut(self, host, left):
        """Takes a link down: how long it was until the others had gone on, on our clock. None: they did not."""
        began = time.monotonic()
        self.hosts.link(host, "down")
        went_on = self.soon(lambda: any(m[2] == str(left) and " is gone" in m[3] for m in self.changes()), 20)
        return time.monotonic() - began if went_on else None

    def codes(self, more=(), limit_s=240):
        """How all have ended."""
        end, codes = time.monotonic() + limit_s, []
        for process in [*self.agents, *more]:
            try:
                codes.append(process.wait(max(end - time.monotonic(), 0.1)))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                codes.append(None)
        return codes

    def expect(self, codes, expected):
        """What is wrong: with exit codes, then with the model, then with the time in which there was no step."""
        self.changes()
        if codes != expected:
            return "exit codes %s, not %s: %s" % (codes, expected, self.last_words(codes, expected))
        gaps = [float(m[4]) for m in self.changes() if " is gone" in m[3]]
        self.worst += gaps
        results = [out for out in self.directory.glob(self.name + ".*.out") if '"rows"' in out.read_text()]
        if len(results) != 1:
            return "%d workers wrote results" % len(results)
        self.out = results[0]
        return self.judge(self.name, 0, self.most_apart) or ("" if max(gaps, default=0) <= GAP_S else "no step for %.2f s" % max(gaps))

    def last_words(self, codes, expected):
        return "; ".join("rank %d: %s" % (rank, last_line(self.err_of(rank).read_text()))
                         for rank in range(len(self.layout)) if codes[rank] != expected[rank])

    def check(self, what, reason):
        if reason and self.options.show:
            for rank in range(len(self.layout)):
                print("rank %d on %s:\n%s" % (rank, self.layout[rank], self.err_of(rank).read_text()))
        self.verdicts.check(what, reason)

    # What can happen.

    def one_is_cut_off(self, name, layout, what):
        self.start(name, layout, 2, 0)
        seconds = self.cut("gamma", 4)
        lost = self.agents[layout.index("gamma")]
        began = time.monotonic()
        ended = self.until(lost, lambda: lost.poll() is not None, CUT_OFF_S)
        after = (seconds or 0) + time.monotonic() - began
        codes = self.codes()
        self.hosts.link("gamma", "up")
        reason = "" if seconds else "the others did not go on"
        reason = reason or ("" if ended else "who was cut off was there after %d s" % CUT_OFF_S)
        reason = reason or self.expect(codes, [4 if host == "gamma" else 0 for host in layout])
        self.check("%s: four went on after %.1f s, it ended after %.1f s" % (what, seconds or 0, after), reason)

    def cut_off_at_the_end(self):
        """The others are done while the first, who would have written the model, still tries to reach them."""
        layout = FIVE[::-1]
        for left_s in (1.5, 3, 6):  # on a busy machine they may be done before anybody misses the first
            self.start("end-%g" % left_s, layout, 2, 0)
            seconds = self.cut("gamma", 4) if self.soon(lambda: self.seconds_left() < left_s, 200) else None
            codes = self.codes()
            self.hosts.link("gamma", "up")
            if seconds or any(codes[layout.index(host)] != 0 for host in layout if host != "gamma"):
                break
        reason = "" if seconds else "the others did not go on"
        self.check("the first cut off shortly before the end: another writes the model",
                   reason or self.expect(codes, [4 if host == "gamma" else 0 for host in layout]))

    def seconds_left(self):
        workers = self.ps().json()["workers"]
        rate = max(worker.get("rows_per_second", 0) for worker in workers)
        return (ROWS * self.options.epochs - max(worker.get("rows", 0) for worker in workers)) / (rate or 1)

    def joins_later(self):
        """Two are cut off for longer than they try; then one joins from their host."""
        self.start("later", FIVE, 2, 0)
        seconds = self.cut("beta", 3)
        for rank in (2, 3):
            self.until(self.agents[rank], lambda: False, CUT_OFF_S)
        self.hosts.link("beta", "up")
        joined = self.on("beta", [self.program, "join", self.address(), "--job", self.name, "--token-file", "token", "--"] +
                         self.train(self.name), self.err_of("joined"))
        came = self.soon(lambda: any("a worker on beta has come" in m[3] for m in self.changes()), 30)
        members = len(self.ps().json()["workers"]) if came else 0
        codes = self.codes([joined])
        reason = "" if seconds else "the others did not go on"
        reason = reason or ("" if came else "who joined was not let in: " + last_line(self.err_of("joined").read_text()))
        reason = reason or ("" if members == 4 else "freshet ps shows %d workers" % members)
        reason = reason or self.expect(codes, [0, 0, 4, 4, 0, 0])
        self.check("two cut off: three went on after %.1f s; later one joined from there" % (seconds or 0), reason)

    def come_back(self):
        """Two are cut off for less: they hear that the others went on, and their agents start them again."""
        self.start("back", FIVE, 2, 3)
        seconds = self.cut("beta", 3)
        time.sleep(0.5)
        self.hosts.link("beta", "up")
        back = self.soon(lambda: self.changes()[-1][2] == "5" or len(self.came()) >= 2, 60)
        codes = self.codes()
        reason = "" if seconds else "the others did not go on"
        reason = reason or ("" if back else "they did not come back")
        self.check("two cut off, briefly: three went on after %.1f s, both came back" % (seconds or 0),
                   reason or self.expect(codes, [0] * 5))

    def came(self):
        return [who for m in self.changes() for who in re.findall(r"rank \d on beta has come", m[3])]

    def a_blink(self):
        """Shorter than silence is noticed."""
        self.start("blink", FIVE, 2, 0)
        for _ in range(3):
            self.hosts.link("beta", "down")
            time.sleep(0.7)
            self.hosts.link("beta", "up")
            time.sleep(1.5)
        codes = self.codes()
        reason = self.expect(codes, [0] * 5)
        lost = ["%s → %s: %s" % m.groups()[:3] for m in self.changes()]
        self.check("links down for 0.7 s, three times: nobody is lost", reason or "; ".join(lost))

    def servers(self, synchrony):
        """At random moments the worker on gamma, who has shards, is cut off until the others have gone on, and comes back."""
        self.how, self.most_apart = ["--strategy", "server", "--synchrony", synchrony], 0.01 * self.calm
        self.start("server-" + synchrony.split(":")[0], FIVE, 2, 1000)
        reason, cuts = "", 0
        while not reason and cuts < self.options.moments:
            time.sleep(self.random.uniform(0, 1))
            before = len(self.changes())
            if self.cut("gamma", 4) is None:
                reason = "the others did not go on"
            self.hosts.link("gamma", "up")
            cuts += 1
            back = lambda: any("on gamma has come" in m[3] for m in self.changes()[before:])
            if not reason and not self.soon(back, 40):
                reason = "it did not come back"
        done = all(agent.poll() is not None for agent in self.agents)
        reason = "it ended after %d cuts: give more --epochs" % cuts if reason and done else reason
        codes = self.codes()
        self.check("parameter servers by %s, one of five cut off %d times: the others went on, it came back" %
                   (synchrony, cuts), reason or self.expect(codes, [0] * 5))
        self.how, self.most_apart = [], 1e-6

    def halves(self, restarts):
        layout = ["alpha", "alpha", "beta", "beta"]
        name = "halves-%d" % restarts
        self.start(name, layout, 2, restarts)
        began = time.monotonic()
        self.hosts.link("beta", "down")
        codes = self.codes(limit_s=(CUT_OFF_S if restarts == 0 else 90) + 3 * len(layout))  # agents ask each of the others
        after = time.monotonic() - began
        self.hosts.link("beta", "up")
        silent = [rank for rank in range(4) if not ALONE.search(self.err_of(rank).read_text())]
        reason = "" if codes == [4] * 4 else "exit codes %s, not all 4" % codes
        reason = reason or ("" if not silent else "ranks %s do not say why" % silent) or \
            ("" if not self.changes() else "there was another generation") or self.left_behind()
        self.check("two and two (--restarts %d): all ended with exit code 4 after %.1f s" % (restarts, after), reason)
        for line in (line for line in self.said() if ALONE.search(line)):
            print("      " + line)
        self.start(name, layout, 2, 0)
        self.check("and the same commands go on from the checkpoint", self.expect(self.codes(), [0] * 4))

    def strangers(self):
        sh("umask 077; head -c 32 /dev/urandom > other")
        self.start("doors", FIVE, 2, 3)
        doors = [worker["address"] for worker in self.ps().json()["workers"]]
        strangers = Strangers(doors + ["10.77.0.1:%d" % self.port], self.options.seed)
        strangers.start()
        refused = [self.ps("other").code]
        join = self.on("gamma", [self.program, "join", self.address(), "--job", self.name, "--token-file", "other", "--"] +
                       self.train(self.name), self.err_of("stranger"))
        time.sleep(3)
        disturbed = self.changes()
        before, knocks = len(disturbed), strangers.knocks
        signal_one(self.random.choice(processes("train")), signal.SIGKILL)
        self.soon(lambda: any(" has come" in m[3] for m in self.changes()[before:]), 30)
        codes = self.codes()
        refused.append(join.wait(30))
        strangers.go()
        reason = "" if not disturbed else "membership changed: " + disturbed[0][3]
        reason = reason or ("" if 0 not in refused else "another token was good enough: %s" % refused)
        self.check("%d strangers, and two who have another token: nobody is lost" % knocks,
                   reason or self.expect(codes, [0] * 5))
        changes = self.changes()
        self.check("a worker killed meanwhile: %s" % "; ".join("%s → %s, %s s" % (m[1], m[2], m[4]) for m in changes),
                   "" if any(" has come" in m[3] for m in changes) else "it did not come back")


def main():
    parser = arguments(__doc__, 900)
    parser.add_argument("--epochs", type=int, default=40, help="how long a run is (%(default)s)")
    parser.add_argument("--moments", type=int, default=2, help="cuts of parameter servers in each synchrony (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="show what failed runs print")
    parser.add_argument("--only", metavar="CASE", help="one of: one, first, end, later, back, blink, servers, halves, strangers")
    options = parser.parse_args()
    reason = why_not()
    if reason:
        verdicts = Verdicts()
        verdicts.skip("elastic training between hosts", reason)
        verdicts.end()
    program = enter(options)
    with scratch() as directory:
        split = Split(program, directory, options)
        cases = {"one": lambda: split.one_is_cut_off("one", FIVE, "one host of one worker cut off"),
                 "first": lambda: split.one_is_cut_off("first", FIVE[::-1], "the one that was the first cut off"),
                 "end": split.cut_off_at_the_end,
                 "later": split.joins_later,
                 "back": split.come_back,
                 "blink": split.a_blink,
                 "servers": lambda: [split.servers(synchrony) for synchrony in SYNCHRONIES],
                 "halves": lambda: (split.halves(0), split.halves(1)),
                 "strangers": split.strangers}
        for name, case in cases.items():
            if options.only in (None, name):
                case()
        if split.worst:
            split.verdicts.check("no step for %.2f s at worst, in %d losses" % (max(split.worst), len(split.worst)),
                                 "" if max(split.worst) <= GAP_S else "expected at most %d s" % GAP_S)
    split.verdicts.end()


if __name__ == "__main__":
    main()

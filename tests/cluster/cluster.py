"""What the scripts of this folder share: a world of their own, hosts in it, programs that are waited for only so long.

Everything a script makes (processes, network namespaces, bridges, mounts, ports) is inside namespaces that end with its
first process, however it ends: nothing is left behind, and two runs do not see each other."""
import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
INSIDE = "FRESHET_CLUSTER_INSIDE"
PIDFD_GET_INFO, PIDFD_INFO_EXIT = 0xC048FF0B, 8  # linux/pidfd.h


def arguments(description, limit_s):
    """A parser with what all scripts take; bound() wants what it parsed."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/release/apps/freshet/freshet", help="freshet (%(default)s)")
    parser.add_argument("--limit", type=int, default=limit_s, metavar="S", help="give up after so long (%(default)s)")
    return parser


def go_inside():
    """Runs this script once more, in new namespaces, and gives its exit code. Whatever ends this process ends that."""
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--propagation", "private", "--pid",
               "--fork", "--kill-child=SIGTERM", "--mount-proc"]
    if os.geteuid() != 0:
        command.append("--map-root-user")
    inside = subprocess.Popen(command + [sys.executable, "-B"] + sys.argv, env={**os.environ, INSIDE: "1"})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is heard inside, too
    signal.signal(signal.SIGTERM, lambda *_: inside.kill())
    code = inside.wait()
    return code if code >= 0 else 128 - code


def stop(code):
    """Ends, with what is to be tidied up; without it should that take long."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, lambda *_: os._exit(1))
    signal.alarm(5)
    sys.exit(code)


def enter(options):
    """Goes on as the first process of new namespaces, in which this process has a machine for itself."""
    program = pathlib.Path(options.program).resolve()
    if not os.access(program, os.X_OK):
        sys.exit("%s: no program there; make build makes it, --program names another" % program)
    if os.environ.get(INSIDE) != str(os.getpid()):
        sys.exit(go_inside())
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: stop(128 + number))
    signal.signal(signal.SIGALRM, lambda *_: stop("FAIL: not done after %d s" % options.limit))
    signal.alarm(options.limit)
    # A machine with nothing but loopback resolves no names (AI_ADDRCONFIG); hosts are put on this bridge later.
    sh("ip link set lo up && ip link add bridge0 type bridge && ip addr add 10.77.0.254/24 dev bridge0")
    sh("ip link set bridge0 up")
    for name in list(os.environ):  # nobody else's word on who is which worker
        if name.startswith(("SLURM_", "OMPI_", "PMI_", "PMIX_", "FRESHET_")) or name in ("RANK", "WORLD_SIZE"):
            del os.environ[name]
    return program


@contextlib.contextmanager
def scratch():
    """A directory for everything that is written; the working directory, while it lasts."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="freshet-cluster-") as path:
        os.chdir(path)
        try:
            yield pathlib.Path(path)
        finally:
            os.chdir(before)


def sh(command):
    done = subprocess.run(["sh", "-ec", command], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError("%s: exit code %d\n%s" % (command, done.returncode, done.stderr))
    return done.stdout


class Done:
    """How a command ended."""

    def __init__(self, command, code, out, err, seconds):
        self.command, self.code, self.out, self.err, self.seconds = command, code, out, err, seconds

    def json(self):
        """What --json printed; launchers may have said something before it."""
        return json.loads(self.out[self.out.index("{"):])


def run(command, limit_s=120, environment=None):
    """Runs a command to its end, or ends it after limit_s with what it had started in its group."""
    command = [str(part) for part in command]
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env={**os.environ, **(environment or {})}, process_group=0)
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err += "\n(killed: not done after %d s)" % limit_s
    return Done(command, process.returncode, out, err, time.monotonic() - began)


class Verdicts:
    """Counts what was right, wrong and left out, and says so."""

    def __init__(self):
        self.good, self.bad, self.skipped = 0, [], []

    def check(self, what, reason):
        """`reason` is why it is wrong; nothing when it is right."""
        if reason:
            self.bad.append(what)
        else:
            self.good += 1
        print("%-5s %s%s" % ("FAIL" if reason else "ok", what, ": " + reason if reason else ""), flush=True)

    def skip(self, what, reason):
        self.skipped.append(what)
        print("SKIP  %s: %s; THIS WAS NOT TESTED" % (what, reason), flush=True)

    def end(self):
        print("%d ok, %d failed, %d SKIPPED" % (self.good, len(self.bad), len(self.skipped)), flush=True)
        sys.exit(1 if self.bad else 0)


def digest(path):
    """Of a file's bytes, short; of none when there is none."""
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:12]
    except FileNotFoundError:
        return "no file"


def last_line(text):
    return (text.strip().splitlines() or ["(nothing)"])[-1]


def named_ssh(path, enter_host, prepare="true"):
    """Makes a command that stands in for ssh: enters a host ("$1" is its name), prepares, runs what it is to run."""
    path.write_text("""#!/bin/sh
exec %s unshare --uts sh -c 'hostname "$0" && %s && exec sh -c "$1"' "$1" "$2"
""" % (enter_host, prepare))
    path.chmod(0o755)
    return path


class Hosts:
    """Network namespaces, each with a network card on a common bridge, that pass for hosts: each has a name, an address
    and a boot id of its own (the fabric takes processes with one boot id for near, and shares memory with them).
    `ssh` is a command that reaches them by name, as ssh would."""

    def __init__(self, directory, names):
        self.names = names
        sh("mkdir -p /run/netns && mount -t tmpfs none /run/netns")
        table = "127.0.0.1 localhost\n10.77.0.254 %s\n" % os.uname().nodename
        for number, name in enumerate(names, 1):
            sh("ip netns add {0} && ip link add to-{0} type veth peer name eth0 netns {0} &&"
               "ip link set to-{0} master bridge0 up && ip -n {0} addr add 10.77.0.{1}/24 dev eth0 &&"
               "ip -n {0} link set eth0 up && ip -n {0} link set lo up".format(name, number))
            table += "10.77.0.%d %s\n" % (number, name)
            (directory / ("boot." + name)).write_text("11111111-2222-3333-4444-%012d\n" % number)
        (directory / "hosts").write_text(table)
        sh("mount --bind %s/hosts /etc/hosts" % directory)
        # ip netns exec gives a command mounts of its own, too, so the boot id changes for nobody else.
        boot = "mount --bind %s/boot.$0 /proc/sys/kernel/random/boot_id" % directory
        self.ssh = named_ssh(directory / "ssh", 'ip netns exec "$1"', boot)

    def shape(self, rate, burst="32kbit"):
        """Lets no card send faster than `rate`."""
        for name in self.names:
            sh("ip netns exec %s tc qdisc replace dev eth0 root tbf rate %s burst %s latency 400ms" % (name, rate, burst))

    def link(self, name, state):
        """Takes a host's card up or down."""
        sh("ip -n %s link set eth0 %s" % (name, state))


class Worker:
    """A process that trains. Its launcher waits for it, so we see its end through a descriptor."""

    def __init__(self, pid, rank):
        self.pid, self.rank = pid, rank
        self.descriptor = os.pidfd_open(pid)

    def ended(self):
        return bool(select.select([self.descriptor], [], [], 0)[0])

    def exit_code(self):
        """Minus n for signal n; None where the kernel does not tell (before Linux 6.15)."""
        info = bytearray(struct.pack("=Q64x", PIDFD_INFO_EXIT))
        try:
            fcntl.ioctl(self.descriptor, PIDFD_GET_INFO, info)
        except OSError:
            return None
        status, = struct.unpack_from("=i", info, 60)
        return os.waitstatus_to_exitcode(status) if info[0] & PIDFD_INFO_EXIT else None

    def close(self):
        os.close(self.descriptor)


def together(found, count):
    """Whether a group of `count` workers stands: all are connected, and nobody listens any more."""
    for worker in found.values():
        try:
            lines = pathlib.Path("/proc/%d/net/tcp" % worker.pid).read_text().splitlines()[1:]
        except OSError:
            return False
        states = [line.split()[3] for line in lines]  # 01: established, 0A: listening
        if states.count("01") < count - 1 or "0A" in states:
            return False
    return len(found) == count


def workers():
    """The processes that train, by rank. There are none but ours: this is a world of its own."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if words[:2] != [b"freshet", b"train"]:
                continue
            for variable in (entry / "environ").read_bytes().split(b"\0"):
                if variable.startswith(b"FRESHET_RANK="):
                    found[int(variable[13:])] = Worker(int(entry.name), int(variable[13:]))
    return found

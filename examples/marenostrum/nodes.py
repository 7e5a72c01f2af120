"""Nodes on one machine: each has a network, a name and processes of its own, and a link of a given rate to a switch.

Made of Linux namespaces (as root; iproute2 and util-linux), which end with the processes that hold them: nothing is left
behind, whatever happens. Only the links are like those of a cluster: the cores are those of this machine."""
import os
import pathlib
import subprocess

BURST = "128kb"  # two of the largest pieces in which the system hands data to a link
QUEUE = "500ms"  # before a link drops


class NodesError(Exception):
    """This machine does not let us make nodes."""


def _do(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise NodesError("%s: %s" % (" ".join(map(str, command)), done.stdout.strip()))


class Nodes:
    """So many nodes, called n0, n1, …, as long as the `with` lasts. `directory` takes the script that reaches them."""

    def __init__(self, count, mbit, directory):
        self.count, self.mbit = count, mbit
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(exist_ok=True)
        self.holders = []

    def __enter__(self):
        if os.geteuid() != 0:
            raise NodesError("namespaces need root")
        try:
            switch = self._hold()
            self._in(switch, "ip", "link", "add", "switch", "type", "bridge")
            self._in(switch, "ip", "link", "set", "switch", "up")
            for number in range(self.count):
                self._plug(switch, number)
        except (NodesError, FileNotFoundError) as error:
            self.__exit__()
            raise NodesError(str(error)) from error
        return self

    def __exit__(self, *_):
        for holder in self.holders:
            holder.kill()
            holder.wait()
        self.holders = []

    def launch(self, workers):
        """Flags of `freshet launch` that put so many workers on each node."""
        hosts = ",".join("n%d:%d" % (number, workers) for number in range(self.count))
        return ["launch", "-H", hosts, "--ssh", str(self._script()), "--rendezvous", "10.43.0.1:25900"]

    def _hold(self):
        """A process in namespaces of its own, which live as long as it does: until its input ends, with us at the latest."""
        apart = ["unshare", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        holder = subprocess.Popen([*apart, "sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.holders.append(holder)
        if holder.stdout.readline().strip() != "ready":
            raise NodesError("unshare cannot make namespaces here")
        children = pathlib.Path("/proc/%d/task/%d/children" % (holder.pid, holder.pid)).read_text().split()
        return int(children[0])

    @staticmethod
    def _in(pid, *command):
        _do("nsenter", "--target", pid, "--net", "--uts", *command)

    def _plug(self, switch, number):
        node, port, name = self._hold(), "port%d" % number, "n%d" % number
        self._in(switch, "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", node)
        self._in(switch, "ip", "link", "set", port, "master", "switch", "up")
        self._in(node, "ip", "address", "add", "10.43.%d.%d/16" % (number // 250, number % 250 + 1), "dev", "eth0")
        for device in ("lo", "eth0"):
            self._in(node, "ip", "link", "set", device, "up")
        self._in(node, "hostname", name)
        for where, device in ((switch, port), (node, "eth0")):
            self._in(where, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", "%dmbit" % self.mbit, "burst", BURST,
                     "latency", QUEUE)
        (self.directory / name).write_text(str(node))

    def _script(self):
        """Reaches a node as ssh would: the node, then one string for its shell."""
        script = self.directory / "reach"
        script.write_text("#!/bin/sh\nexec nsenter --target \"$(cat '%s'/\"$1\")\" --net --uts --pid --mount sh -c \"$2\"\n"
                          % self.directory.resolve())
        script.chmod(0o755)
        return script

#!/usr/bin/python3 -B
"""Three network namespaces as three hosts, and freshet launch -H with an ssh that enters them: every topology has to
give the same bytes as workers that are threads, and what travels between hosts has to go through the network.

Whether two workers are on one host is asked twice. The fabric asks for shared memory: near is who has the same boot id
(/proc/sys/kernel/random/boot_id), whatever its name and network. The hierarchical topology asks whom to add up first:
it goes by the names of hosts. Threads are all on one host, so for that topology the bytes to compare with come from
workers of one machine that were given names of several hosts."""
import json
import struct
import sys

from cluster import Hosts, Verdicts, arguments, digest, enter, last_line, named_ssh, run, scratch

NAMES = ["alpha", "beta", "gamma"]
LAYOUTS = {"alpha:1,beta:1,gamma:1": 3, "alpha:2,beta:1,gamma:1": 4}
TOPOLOGIES = ["central", "ring", "tree", "halving", "direct", "hierarchical"]
NETWORK = """input = "data"
layers = [{dense = 256, activation = "relu"}, {dense = 256, activation = "relu"}, {dense = "classes"}]
"""
TRAIN = ["train", "rows.csv", "--model", "net.toml", "--epochs", "1", "--batch", "60", "--json", "--quiet",
         "--threads", "1"]  # each would take all cores, as the only worker of its host
SLACK = 1e-4  # of weights of size 1 after 50 updates whose sums were rounded in another order


def weights(path):
    """All numbers of a model file (safetensors: the length of a header, the header, the tensors)."""
    data = open(path, "rb").read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    values = []
    for name, tensor in sorted(json.loads(data[8:start]).items()):
        if name != "__metadata__" and tensor["dtype"] == "F32":
            begin, end = tensor["data_offsets"]
            values += struct.unpack("<%df" % ((end - begin) // 4), data[start + begin:start + end])
    return values


class Cluster:
    def __init__(self, program, directory):
        self.program, self.verdicts = program, Verdicts()
        (directory / "net.toml").write_text(NETWORK)
        made = run([program, "data", "generate", "--kind", "hyperplane", "--features", 50, "--rows", 3000, "-o",
                    "rows.csv"])
        if made.code != 0:
            sys.exit("data generate: " + last_line(made.err))
        self.hosts = Hosts(directory, NAMES)
        self.named = named_ssh(directory / "ssh-named", "")  # one network, one boot id
        self.near = named_ssh(directory / "ssh-near", 'ip netns exec "$1"')  # the machine's boot id

    def launch(self, ssh, layout, topology, name, flags=()):
        return run([self.program, "launch", "-H", layout, "--ssh", ssh, *flags, "--"] + TRAIN +
                   ["--topology", topology, "-o", name])

    def compare(self, layout, topology):
        what = "%s on %s" % (topology, layout)
        threads = run([self.program] + TRAIN + ["--workers", LAYOUTS[layout], "--topology", topology, "-o", "threads"])
        done = self.launch(self.hosts.ssh, layout, topology, "hosts")
        if threads.code != 0 or done.code != 0:
            return self.verdicts.check(what, last_line(threads.err + done.err))
        self.verdicts.check(what + ": " + digest("hosts"), self.difference(layout, topology))
        self.check_workers(what, layout, done.json()["workers"])

    def difference(self, layout, topology):
        if topology != "hierarchical":
            return "" if digest("hosts") == digest("threads") else "threads give " + digest("threads")
        # Everybody is dialled at rank 0's address, so workers of one machine meet at one of it.
        named = self.launch(self.named, layout, topology, "named", ["--rendezvous", "127.0.0.1:23456"])
        if named.code != 0:
            return last_line(named.err)
        if digest("hosts") != digest("named"):
            return "workers of one machine with names of several hosts give " + digest("named")
        apart = max(abs(a - b) for a, b in zip(weights("hosts"), weights("threads"), strict=True))
        print("      largest difference to threads, which add up in another order: %.1e" % apart)
        return "" if apart < SLACK else "and threads give weights that differ by %g" % apart

    def check_workers(self, what, layout, workers):
        expected = [part.split(":")[0] for part in layout.split(",") for _ in range(int(part.split(":")[1]))]
        found = [worker["host"] for worker in workers]
        self.verdicts.check("%s: workers on %s" % (what, " ".join(found)), "" if found == expected else "wrong hosts")

    def share(self, ssh, topology="ring"):
        """Bytes that went through sockets, of those that a ring without shared memory sends."""
        done = self.launch(ssh, "alpha:1,beta:1,gamma:1", topology, "share")
        if done.code != 0:
            return None, last_line(done.err)
        workers = done.json()["workers"]
        return sum(w["bytes_sent"] for w in workers) / sum(w["bytes_dense"] for w in workers), ""

    def memory(self):
        far, wrong = self.share(self.hosts.ssh)
        self.verdicts.check("other boot ids: %.0f %% of the bytes go through sockets" % (100 * (far or 0)),
                            wrong or ("" if far >= 1 else "the rest was in memory that hosts cannot share"))
        near, wrong = self.share(self.near)
        self.verdicts.check("one boot id, three networks: %.0f %%, the rest is in shared memory" % (100 * (near or 0)),
                            wrong or ("" if near < 0.5 else "expected less than half"))


def main():
    program = enter(options := arguments(__doc__, 300).parse_args())
    with scratch() as directory:
        cluster = Cluster(program, directory)
        for layout in LAYOUTS:
            for topology in TOPOLOGIES:
                cluster.compare(layout, topology)
        cluster.memory()
    cluster.verdicts.end()


main()

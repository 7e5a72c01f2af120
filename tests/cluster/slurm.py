"""A Slurm of several nodes on one machine, for as long as a test lasts."""
import os
import shutil
import time

from cluster import run, sh

PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "sbatch"]

CONFIGURATION = """ClusterName=local
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge/socket
SlurmctldPort=16817
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool.%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=node[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[17001-{last}] CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """The programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") is None]


def start(directory, nodes):
    """Starts one, and names it in the environment. It ends with this process, being in its namespaces."""
    os.environ["PATH"] += ":/usr/sbin"
    host = os.uname().nodename.split(".")[0]
    names = ["node%d" % number for number in range(1, nodes + 1)]
    (directory / "hosts").write_text("127.0.0.1 localhost %s %s\n" % (host, " ".join(names)))
    sh("mount --bind %s/hosts /etc/hosts" % directory)
    for name in ["munge", "state"] + ["spool." + name for name in names]:
        (directory / name).mkdir()
    sh("chmod 755 {0} && (umask 077; head -c 128 /dev/urandom > {0}/munge/key)".format(directory))
    sh("munged --force --key-file={0}/key --socket={0}/socket --pid-file={0}/pid --log-file={0}/log "
       "--seed-file={0}/seed".format(directory / "munge"))
    os.environ["SLURM_CONF"] = str(directory / "slurm.conf")
    (directory / "slurm.conf").write_text(
        CONFIGURATION.format(host=host, directory=directory, nodes=nodes, last=17000 + nodes))
    sh("slurmctld -c")
    for name in names:
        sh("slurmd -N " + name)
    await_nodes(nodes)


def await_nodes(nodes, limit_s=60):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        states = run(["sinfo", "--noheader", "--Node", "--format=%T"], limit_s=20).out.split()
        if states == ["idle"] * nodes:
            return
        time.sleep(0.2)
    raise RuntimeError("not all nodes of Slurm came up in %d s: %s" % (limit_s, states))

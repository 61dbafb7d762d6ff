"""Starts, stops and hurts it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.eventually import eventually

PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd", "mariadb-install-db")
NODES, GPUS = 4, 2
NAME = "lab"
SPENT = "spent"
"""An account whose hours tests limit."""
SHORT_S, GRACE_S = 420, 20
_CONF = """\
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
DebugFlags=NO_CONF_HASH
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
PriorityType=priority/multifactor
PriorityCalcPeriod=1
GresTypes=gpu
KillWait=30
MinJobAge=20
MpiDefault=none
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd}
AccountingStoragePass={folder}/munge/sock
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=limits
JobCompType=jobcomp/none
JobAcctGatherType=jobacct_gather/none
SlurmctldTimeout=10
SlurmdTimeout=20
MessageTimeout=10
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=8 \
RealMemory=8000 Gres=gpu:a100:{gpus} Feature=a100,ib State=UNKNOWN
PartitionName=gpu Nodes=n[1-{nodes}] Default=YES MaxTime=2:00:00 PriorityTier=10 PreemptMode=off \
TRESBillingWeights="CPU=1.0,Mem=0.25G,GRES/gpu=10.0"
PartitionName=scavenge Nodes=n[1-{nodes}] MaxTime=4:00:00 PriorityTier=1 PreemptMode=CANCEL \
GraceTime={grace}
PartitionName=short Nodes=n[1-{nodes}] MaxTime={short} PriorityTier=10 PreemptMode=off
PartitionName=brief Nodes=n[1-{nodes}] MaxTime=2 PriorityTier=10 PreemptMode=off
"""
_DBD = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={dbd}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={db}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct
"""


class Slurm:
    def __init__(self, folder: Path) -> None:
        """`folder`: short, since it holds sockets."""
        self.folder = folder
        host = socket.gethostname().partition(".")[0]
        ports = _ports(NODES + 3)
        self._words = {
            "name": NAME,
            "host": host,
            "folder": folder,
            "port": ports[0],
            "dbd": ports[1],
            "db": ports[2],
            "first": ports[3],
            "last": ports[3] + NODES - 1,
            "nodes": NODES,
            "gpus": GPUS,
            "grace": GRACE_S,
            "short": SHORT_S // 60,
        }
        self.env = {"SLURM_CONF": str(folder / "slurm.conf")}

    # -- its parts ---------------------------------------------------------------------------------

    def start(self) -> None:
        missing = [each for each in PROGRAMS if shutil.which(each, path=_path()) is None]
        assert not missing, f"{missing} missing: sh tools/install-system-packages.sh"
        for each in ("munge", "db", "state", "dev"):
            (self.folder / each).mkdir(parents=True)
        self._write()
        self._munge()
        self._database()
        self.start_accounting()
        self._run("sacctmgr", "-i", "add", "cluster", NAME)
        self.start_controller()
        self._run("sacctmgr", "-i", "add", "account", "physics")
        self._run("sacctmgr", "-i", "add", "user", "root", "account=physics")
        self._run("sacctmgr", "-i", "add", "account", SPENT)
        self._run("sacctmgr", "-i", "add", "user", "root", f"account={SPENT}")
        for number in range(1, NODES + 1):
            self.start_node(f"n{number}")
        eventually(
            lambda: (
                len(self.said("sinfo", "-h", "-N", "-p", "gpu", "-t", "idle", "-o", "%N").split())
                == NODES
            ),
            within_s=240,
        )

    def _write(self) -> None:
        (self.folder / "slurm.conf").write_text(_CONF.format(**self._words))
        dbd = self.folder / "slurmdbd.conf"
        dbd.write_text(_DBD.format(**self._words))
        dbd.chmod(0o600)
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.folder / "gres.conf").write_text(
            f"NodeName=n[1-{NODES}] Name=gpu Type=a100 File={self.folder}/dev/gpu[0-{GPUS - 1}]\n"
        )
        for number in range(GPUS):
            (self.folder / "dev" / f"gpu{number}").touch()

    def _munge(self) -> None:
        place = self.folder / "munge"
        place.chmod(0o700)
        (place / "key").write_bytes(os.urandom(1024))
        (place / "key").chmod(0o600)
        files = {
            "key-file": "key",
            "socket": "sock",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        self._run(
            "munged",
            "--force",
            "--num-threads=10",
            *(f"--{k}={place / v}" for k, v in files.items()),
        )

    def _database(self) -> None:
        data, sock = self.folder / "db", self.folder / "db.sock"
        usual = ("--no-defaults", f"--datadir={data}")
        self._run(
            "mariadb-install-db",
            *usual,
            "--auth-root-authentication-method=normal",
            "--user=root",
            "--skip-test-db",
        )
        with (self.folder / "db.log").open("wb") as log:
            self._db = subprocess.Popen(
                ["mariadbd", *usual, f"--socket={sock}", f"--port={self._words['db']}",
                 "--bind-address=127.0.0.1", "--user=root", "--innodb-buffer-pool-size=64M",
                 "--innodb-flush-log-at-trx-commit=0"],
                stdout=log, stderr=log, env=os.environ | {"PATH": _path()},
            )  # fmt: skip
        root = ("mariadb", "--no-defaults", "-S", str(sock), "-u", "root", "-e")
        eventually(lambda: self._tried(*root, "select 1"), within_s=240)
        self._run(*root, "create user slurm@'127.0.0.1' identified by 'slurm';"
                  " grant all on *.* to slurm@'127.0.0.1'; create database slurm_acct")  # fmt: skip

    def start_accounting(self) -> None:
        self._run("slurmdbd", SLURM_CONF=str(self.folder / "slurm.conf"))
        eventually(lambda: self._tried("sacctmgr", "-nP", "show", "cluster"), within_s=240)

    def start_controller(self) -> None:
        self._run("slurmctld")
        eventually(lambda: self._tried("sinfo", "-h"), within_s=240)

    def start_node(self, name: str) -> None:
        self._run("slurmd", "-N", name)

    def stop_controller(self, number: int = signal.SIGTERM) -> None:
        self._end("slurmctld.pid", number)

    def kill_node(self, name: str) -> None:
        """Its daemon, and all that it has started there."""
        for pid in (self._pid(f"slurmd-{name}.pid"), *self._started(name)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _started(self, name: str) -> set[int]:
        """Processes of steps there, and slurmstepd above them, which has left its daemon."""
        found = set()
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, IndexError):
                env = (place / "environ").read_bytes().split(b"\0")
                there = (f"SLURMD_NODENAME={name}", f"SLURM_CONF={self.env['SLURM_CONF']}")
                if not all(each.encode() in env for each in there):
                    continue
                found.add(int(place.name))
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                if b"slurmstepd" in Path(f"/proc/{parent}/cmdline").read_bytes():
                    found.add(parent)
        return found

    def stop(self) -> None:
        with suppress(Exception):
            self.clear()
        for each in (
            *(f"slurmd-n{n}.pid" for n in range(1, NODES + 1)),
            "slurmctld.pid",
            "slurmdbd.pid",
            "munge/pid",
        ):
            self._end(each, signal.SIGTERM)
        if hasattr(self, "_db"):
            self._db.terminate()
            self._db.wait(30)

    def _pid(self, name: str) -> int:
        with suppress(OSError, ValueError):
            return int((self.folder / name).read_text())
        return 0

    def _end(self, name: str, number: int) -> None:
        pid = self._pid(name)
        if not pid:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        until = time.monotonic() + 30
        while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    # -- asking it ---------------------------------------------------------------------------------

    def clear(self) -> None:
        """Of all jobs."""
        self._tried("scancel", "-u", "root")
        self._tried("scancel", "-s", "KILL", "-u", "root")
        eventually(lambda: not self.said("squeue", "-h", "-o", "%i").strip(), within_s=240)

    @contextmanager
    def hours(self, minutes: int) -> Iterator[None]:
        """So many minutes of GPUs are all that the account SPENT has."""
        self._limited(str(minutes))
        try:
            yield
        finally:
            self._limited("-1")

    def _limited(self, minutes: str) -> None:
        limit = f"GrpTRESMins=gres/gpu={minutes}"
        self._run("sacctmgr", "-i", "modify", "account", SPENT, "set", limit)
        shown = "" if minutes == "-1" else f"gres/gpu={minutes}"
        told = ("sshare", "-nP", "-A", SPENT, "-o", "GrpTRESMins")
        eventually(lambda: self.said(*told).splitlines()[:1] == [shown])  # slurmctld knows it

    def said(self, *command: str) -> str:
        done = self._done(command)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def _run(self, *command: str, **env: str) -> None:
        done = self._done(command, env)
        assert done.returncode == 0, (command, done.stdout[-1000:], done.stderr[-1000:])

    def _tried(self, *command: str) -> bool:
        return self._done(command).returncode == 0

    def _done(
        self, command: Sequence[str], env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=os.environ | self.env | {"PATH": _path()} | (env or {}),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _ports(many: int) -> list[int]:
    """The last of them begins a row of as many as there are nodes. None is one that the system
    gives to connections."""
    for _ in range(100):
        first = 10_000 + int.from_bytes(os.urandom(2)) % 20_000
        if all(_free(first + n) for n in range(many)):
            return [first, first + 1, first + 2, first + 3]
    raise AssertionError("no ports are free")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@contextmanager
def running(folder: Path) -> Iterator[Slurm]:
    made = Slurm(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()

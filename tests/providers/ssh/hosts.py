"""Hosts with real OpenSSH servers: a namespace each for network, processes, names and folders, a
cable to a bridge that this computer is on too, and users of their own.

Known lies: they share this computer's kernel (so a restarted host has the same boot id), clock,
processors and disk; their GPUs are a script that prints what a test has written; a store that is a
folder of this computer is "shared" with all of them, as NFS would.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cloud.bodies.slots import (
    NETNS,
    Slot,
    bridge,
    commands,
    inside,
    ip,
    remove,
    remove_namespace,
)
from tests.eventually import eventually

GPU = "NVIDIA A100-SXM4-80GB"
USERS = {"gpu": 12_701, "other": 12_702}
_SMI = """#!/bin/sh
case "$1" in
  --query-gpu=*) cat {folder}/gpus.csv ;;
  --query-compute-apps=*) cat {folder}/apps.csv ;;
  *) echo "unknown: $*" >&2; exit 1 ;;
esac
"""
_SSHD = """
ListenAddress {address}
HostKey {folder}/hostkey
AuthorizedKeysFile {keys}
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
MaxStartups 100
SetEnv PATH={folder}/bin:/usr/local/bin:/usr/bin:/bin {env}
"""
_INIT = """
mount --make-rprivate /
mount --bind {folder}/passwd /etc/passwd
mount --bind {folder}/group /etc/group
mount --bind {folder}/lock /run/lock
mount -t tmpfs nothing {laptop}
hostname {name}
mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e -f {folder}/sshd_config
"""


@dataclass
class Machine:
    """A host."""

    name: str
    address: str
    namespace: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def gpus(self, count: int, name: str = GPU, *, used_mb: int = 3) -> None:
        lines = [
            f"{n}, GPU-{self.name}-{n:04d}, {name}, 81920, {used_mb}, Disabled"
            for n in range(count)
        ]
        (self.folder / "gpus.csv").write_text("".join(f"{line}\n" for line in lines))

    def busy(self, *pids_by_gpu: tuple[int, int]) -> None:
        """Processes of other people: (GPU, pid)."""
        lines = [f"GPU-{self.name}-{gpu:04d}, {pid}" for gpu, pid in pids_by_gpu]
        (self.folder / "apps.csv").write_text("".join(f"{line}\n" for line in lines))

    def leases(self) -> list[str]:
        place = self.folder / "lock" / "tradewind"
        return sorted(each.name for each in place.iterdir()) if place.exists() else []

    def home(self, user: str) -> Path:
        return self.folder / "home" / user

    def processes(self) -> list[str]:
        """Whatever runs there but for the SSH server's."""
        servers = ("sshd:", "/usr/sbin/sshd", "unshare", "sh -c")
        return [said for _, said in commands(self.namespace) if not said.startswith(servers)]


@dataclass
class Hosts:
    folder: Path
    slot: Slot
    machines: dict[str, Machine] = field(default_factory=dict)
    env: str = ""
    """More variables of whoever logs in, as sshd takes them."""

    def __post_init__(self) -> None:
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.config = self.folder / "config"
        self.laptop = self.folder / "laptop"
        """A folder that no host sees."""
        self.laptop.mkdir()
        self._key = self.folder / "key"
        _keygen(self._key)
        ssh = self.bin / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.config} "$@"\n')
        ssh.chmod(0o755)
        self.write_config()
        name = bridge(self.slot.number)
        ip(
            batch=f"link add {name} type bridge\n"
            f"addr add {self._address(1)}/24 dev {name}\nlink set {name} up\n"
        )

    @property
    def path(self) -> str:
        """PATH, with an ssh that has this configuration as its user's own."""
        return f"{self.bin}:{os.environ['PATH']}"

    def _address(self, number: int) -> str:
        return f"10.79.{self.slot.number}.{number}"

    def write_config(self, user: str = "gpu") -> None:
        known = self.folder / "known_hosts"
        lines = [
            f"IdentityFile {self._key}",
            "IdentitiesOnly yes",
            f"UserKnownHostsFile {known}",
            "GlobalKnownHostsFile /dev/null",
            f"User {user}",
        ]
        for machine in self.machines.values():
            lines += [f"Host {machine.name}", f"  HostName {machine.address}"]
        # What holds for all hosts comes first, so it stands in a block of its own at the end.
        every = ["Host *", *(f"  {line}" for line in lines[:5])]
        self.config.write_text("\n".join([*lines[5:], *every]) + "\n")
        self.config.chmod(0o600)

    def know(self, machine: Machine) -> None:
        """Its key, as its user has compared it."""
        public = (machine.folder / "hostkey.pub").read_text().split()[:2]
        with (self.folder / "known_hosts").open("a") as stream:
            stream.write(f"{machine.address} {' '.join(public)}\n")

    def add(self, name: str, gpus: int = 2, *, root_home: bool = False) -> Machine:
        number = 10 + len(self.machines)
        folder = self.folder / name
        for each in ("bin", "lock", "home"):
            (folder / each).mkdir(parents=True)
        (folder / "lock").chmod(0o1777)
        machine = Machine(
            name, self._address(number), f"{bridge(self.slot.number)}-{number}", folder
        )
        self.machines[name] = machine
        _keygen(folder / "hostkey")
        keys = folder / "authorized_keys"
        shutil.copy(f"{self._key}.pub", keys)
        keys.chmod(0o644)
        users = {"root": 0, **USERS}
        for user, uid in users.items():
            home = folder / "home" / user
            home.mkdir()
            if user == "gpu":  # a disk of its own, whose size can be changed
                _mount("-t", "tmpfs", "-o", f"size=20g,mode=755,uid={uid},gid={uid}", "home", home)
            os.chown(home, uid, uid)
        own = "".join(
            f"{user}:*:{uid}:{uid}::{folder}/home/{user}:/bin/sh\n" for user, uid in users.items()
        )
        system = Path("/etc/passwd").read_text().splitlines(keepends=True)
        (folder / "passwd").write_text(own + "".join(e for e in system if ":0:0:" not in e))
        groups = "".join(f"{user}:x:{uid}:\n" for user, uid in USERS.items())
        (folder / "group").write_text(Path("/etc/group").read_text() + groups)
        smi = folder / "bin" / "nvidia-smi"
        smi.write_text(_SMI.format(folder=folder))
        smi.chmod(0o755)
        machine.gpus(gpus)
        machine.busy()
        (folder / "sshd_config").write_text(
            _SSHD.format(address=machine.address, folder=folder, keys=keys, env=self.env)
        )
        (folder / "init.sh").write_text(_INIT.format(folder=folder, name=name, laptop=self.laptop))
        self.know(machine)
        self.write_config()
        self.start(machine)
        return machine

    def start(self, machine: Machine) -> None:
        """Switches it on."""
        name = machine.namespace
        (NETNS / name).mkdir(parents=True, exist_ok=True)
        everyone = [f"{each.address} {each.name}" for each in self.machines.values()]
        (NETNS / name / "hosts").write_text("\n".join(["127.0.0.1 localhost", *everyone, ""]))
        ip(
            batch=f"netns add {name}\n"
            f"link add {name} type veth peer name eth0 netns {name}\n"
            f"link set {name} master {bridge(self.slot.number)} up\n"
        )
        ip(
            *("-n", name),
            batch=f"link set lo up\naddr add {machine.address}/24 dev eth0\nlink set eth0 up\n"
            f"route add default via {self._address(1)}\n",  # to what this computer serves
        )
        unshare = "unshare -u -i -p -f -m --mount-proc --kill-child".split()
        with (machine.folder / "sshd.log").open("ab") as log:
            machine.process = subprocess.Popen(
                ["ip", "netns", "exec", name, *unshare, "sh", str(machine.folder / "init.sh")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        eventually(lambda: b"Server listening" in (machine.folder / "sshd.log").read_bytes())
        eventually(lambda: self.answers(machine))

    def answers(self, machine: Machine) -> bool:
        done = subprocess.run(
            [str(self.bin / "ssh"), "-o", "BatchMode=yes", machine.name, "true"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        return done.returncode == 0

    def switch_off(self, machine: Machine) -> None:
        """As by its power switch."""
        assert machine.process is not None
        machine.process.kill()
        machine.process.wait()
        while pids := inside(machine.namespace):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        remove_namespace(machine.namespace)
        machine.process = None

    def unplug(self, machine: Machine) -> None:
        ip("link", "set", machine.namespace, "down")

    def plug_in(self, machine: Machine) -> None:
        ip("link", "set", machine.namespace, "up")

    def disk(self, machine: Machine, size: str) -> None:
        """How large the one is that the home of `gpu` is on."""
        _mount("-o", f"remount,size={size}", machine.home("gpu"))

    def close(self) -> None:
        for machine in self.machines.values():
            if machine.process is not None:
                self.switch_off(machine)
            subprocess.run(["umount", "-l", str(machine.home("gpu"))], check=False)
        remove(self.slot.number)
        self.slot.close()


def _mount(*arguments: object) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


def _keygen(path: Path) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
    )


@contextlib.contextmanager
def running(
    names: Sequence[str], gpus: int = 2, env: Mapping[str, str] | None = None
) -> Iterator[Hosts]:
    # Not in pytest's own folder, which other users may not enter.
    folder = Path(tempfile.mkdtemp(prefix="tradewind-hosts-"))
    folder.chmod(0o755)
    given = " ".join(f"{name}={value}" for name, value in (env or {}).items())
    hosts = Hosts(folder, Slot(), env=given)
    before = os.environ["PATH"]
    try:
        for name in names:
            hosts.add(name, gpus)
        os.environ["PATH"] = hosts.path
        yield hosts
    finally:
        os.environ["PATH"] = before
        hosts.close()
        shutil.rmtree(folder, ignore_errors=True)

"""A login node: a real sshd on loopback, before a real Slurm, and an `ssh` that finds it as that of
a user does, by a config, a key and known hosts."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.eventually import eventually
from tests.slurm.cluster import Slurm

HOST = "lab-login"
_SSHD = """\
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
PidFile {folder}/pid
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
SetEnv SLURM_CONF={conf}
"""
_CONFIG = """\
Host {host}
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/user
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
"""


class LoginNode:
    def __init__(self, folder: Path, slurm: Slurm) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        for name in ("host", "user"):
            self._made("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        words = {"folder": folder, "port": port, "conf": slurm.env["SLURM_CONF"], "host": HOST}
        (folder / "sshd_config").write_text(_SSHD.format(**words))
        (folder / "config").write_text(_CONFIG.format(**words))
        key = " ".join((folder / "host.pub").read_text().split()[:2])
        (folder / "known").write_text(f"[127.0.0.1]:{port} {key}\n")
        (folder / "bin").mkdir()
        program = folder / "bin" / "ssh"
        program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
        program.chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd's child without rights lives

    @property
    def path(self) -> str:
        """$PATH of whoever knows it."""
        return f"{self.folder / 'bin'}:{os.environ['PATH']}"

    def start(self) -> None:
        self._made("/usr/sbin/sshd", "-f", str(self.folder / "sshd_config"))
        eventually((self.folder / "pid").exists)

    def stop(self) -> None:
        """It does not answer any more."""
        pid = self.folder / "pid"
        if pid.exists():
            number = int(pid.read_text())
            os.kill(number, signal.SIGKILL)
            eventually(lambda: not Path(f"/proc/{number}").exists())
            pid.unlink()

    def become_another(self) -> None:
        """Its host key is not what it was."""
        for name in ("host", "host.pub"):
            (self.folder / name).unlink()
        host = str(self.folder / "host")
        self._made("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", host)

    def _made(self, *command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)


@contextmanager
def login_node(folder: Path, slurm: Slurm) -> Iterator[LoginNode]:
    folder.mkdir()
    made = LoginNode(folder, slurm)
    made.start()
    try:
        yield made
    finally:
        made.stop()

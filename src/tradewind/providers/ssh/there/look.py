"""What a host is and has. Nothing is changed by looking."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import os
import platform
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from tradewind.providers.ssh.there import drivers, gpus, relay

_GIB = 1 << 30
_SIOCGIFADDR = 0x8915
_CONNECT_S = 3.0


def look(root: Path, owned: Path, probe: str) -> dict[str, Any]:
    """`probe`: a file in the store's folder, if that is to be seen from here as well."""
    found: dict[str, Any] = {
        "user": getpass.getuser(),
        "hostname": socket.gethostname(),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "architecture": platform.machine(),
        "system": platform.system(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": _memory_gb(),
        "disk_gb": round(shutil.disk_usage(_there(root)).free / _GIB, 1),
        "folder": str(root),
        "folder_there": owned.is_dir(),
        "writable": os.access(_there(root), os.W_OK),
        "interfaces": interfaces(),
        "kills_processes": _kills_processes(),
        "gpus": [],
        "trouble": "",
    }
    try:
        found["gpus"] = [each.told() for each in gpus.look()]
    except (drivers.NoGpus, OSError) as error:
        found["trouble"] = str(error)
    if probe:
        found["store"] = _shared(Path(probe))
    return found


def _there(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def _memory_gb() -> float:
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _GIB, 1)


def interfaces() -> list[list[str]]:
    """Name and IPv4 address of each that is no loopback; the one towards the world first."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(asked, _SIOCGIFADDR, request)
                address = socket.inet_ntoa(answer[20:24])
                if not address.startswith("127."):
                    found.append([name, address])
        with contextlib.suppress(OSError):
            asked.connect(("192.0.2.1", 9))  # sends nothing; the system chooses its address for it
            chosen = asked.getsockname()[0]
            found.sort(key=lambda each: each[1] != chosen)
    return found


def _kills_processes() -> bool:
    """Whether what a user has started is killed when the last connection ends."""
    command = "busctl get-property org.freedesktop.login1 /org/freedesktop/login1"
    asked = [*command.split(), "org.freedesktop.login1.Manager", "KillUserProcesses"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False  # no systemd, say
    return done.stdout.strip() == "b true"


def _shared(probe: Path) -> str:
    """ "": the folder of this file is the store's, and can be written to; else what is wrong."""
    try:
        probe.read_bytes()
    except OSError as error:
        return f"{probe.parent} is another folder there, or none: {error.strerror}"
    beside = probe.with_name(f"{probe.name}.{socket.gethostname()}")
    try:
        beside.write_bytes(b"")
        beside.unlink()
    except OSError as error:
        return f"{probe.parent} cannot be written to there: {error.strerror}"
    return ""


def reached(addresses: list[list[Any]]) -> list[bool]:
    """Of some (address, port), which can be connected to from here."""
    found = []
    for address, port in addresses:
        try:
            socket.create_connection((address, port), timeout=_CONNECT_S).close()
        except OSError:
            found.append(False)
        else:
            found.append(True)
    return found


def made(owned: Path) -> bool:
    owned.mkdir(mode=0o700, parents=True, exist_ok=True)
    owned.parent.chmod(0o700)
    relay.made(owned)
    return True

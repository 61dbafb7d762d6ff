"""The first process of a body. It lays out the disk, runs user-data once as cloud-init does, and
then buries the dead until somebody kills it, and all others with it. It stands alone: only Python.

In a namespace, the private folders of the configuration are the body's own, and so is /dev/shm;
what of the test's own computer lies under them and is needed (Python, this checkout) is put back.
Everything else is the computer's.

Known lies: there is no systemd, no ssh; of user-data only scripts (`#!`) are run, also compressed
ones, and no cloud-config; HOME is not set, as on the real one.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys

_BIND, _REC = 4096, 16384
_SUBREAPER = 36
_HALTS = ("shutdown", "poweroff", "halt", "reboot", "systemctl")

libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, sort: str = "", flags: int = 0, data: str = "") -> None:
    given = [each.encode() for each in (source, target, sort)]
    if libc.mount(*given, ctypes.c_ulong(flags), data.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount {source} on {target}: {os.strerror(number)}")


def lay_out(config: dict[str, object]) -> None:
    private: list[str] = config["private"]  # type: ignore[assignment]
    keep: list[str] = config["keep"]  # type: ignore[assignment]
    disk = os.open(str(config["disk"]), os.O_PATH | os.O_DIRECTORY)
    kept = {each: os.open(each, os.O_PATH | os.O_DIRECTORY) for each in keep}
    for each in private:
        mount(f"/proc/self/fd/{disk}{each}", each, flags=_BIND)
    for path, handle in kept.items():
        if any(path.startswith(f"{each}/") for each in private):
            os.makedirs(path, exist_ok=True)  # noqa: PTH103
            mount(f"/proc/self/fd/{handle}", path, flags=_BIND | _REC)
    for handle in (disk, *kept.values()):
        os.close(handle)
    mount("tmpfs", "/dev/shm", "tmpfs", data="size=50%,mode=1777")
    covered = set()
    for folder in ("/usr/sbin", "/sbin", "/usr/bin", "/bin"):
        for name in _HALTS:
            real = os.path.realpath(f"{folder}/{name}")
            if os.path.exists(real) and real not in covered:  # noqa: PTH110
                covered.add(real)
                mount(f"{config['bin']}/{name}", real, flags=_BIND)
    socket.sethostname(str(config["hostname"]))


def run_user_data(script: str, log: str, env: dict[str, str]) -> None:
    with open(script, "rb") as stream:  # noqa: PTH123
        first = stream.read(2)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    if first != b"#!":
        if first:
            os.write(out, b"equipment: user-data is no script, and was not run\n")
        os.close(out)
        return
    if os.fork() == 0:
        os.setsid()
        nothing = os.open("/dev/null", os.O_RDONLY)
        for number, handle in ((0, nothing), (1, out), (2, out)):
            os.dup2(handle, number)
        try:
            os.execve(script, [script], env)
        except OSError as error:
            os.write(2, f"equipment: {error}\n".encode())
            os._exit(127)
    os.close(out)


def main(path: str) -> None:
    with open(path) as stream:  # noqa: PTH123
        config = json.load(stream)
    if config["namespace"]:
        lay_out(config)
    else:
        libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    os.chdir("/")
    run_user_data(config["script"], config["log"], config["env"])
    while True:
        try:
            os.wait()
        except ChildProcessError:
            libc.pause()


if __name__ == "__main__":
    main(sys.argv[1])

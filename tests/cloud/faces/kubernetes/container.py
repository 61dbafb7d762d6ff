"""One container: `container.py SPEC.json`. It stands alone: only Python.

With `root` (which only root can have) it has mounts, processes, a host name and shared memory of
its own: its root is a copy-on-write view of this computer's files, and its volumes are where they
belong. Without, it is a tree of processes whose volumes lie below $POD_ROOT.

SIGTERM is passed on to the first process; SIGUSR1 ends all of it. It ends by itself when whoever
started it has died. Its exit status is the container's, 128 + N for signal N; what could not be
started leaves its reason in the file `error`, with status 128.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
from typing import Any

_NEW_NS, _NEW_UTS, _NEW_IPC, _NEW_PID = 0x20000, 0x4000000, 0x8000000, 0x20000000
_RDONLY, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_DEATH_SIGNAL, _SUBREAPER, _NO_NEW_PRIVILEGES = 1, 36, 38
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, sort: str = "", flags: int = 0, data: str = "") -> None:
    given = [each.encode() for each in (source, target, sort)]
    if libc.mount(*given, ctypes.c_ulong(flags), data.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount {source} on {target}: {os.strerror(number)}")


def bind(source: str, target: str, read_only: bool) -> None:
    if os.path.isdir(source):  # noqa: PTH112
        os.makedirs(target, exist_ok=True)  # noqa: PTH103
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
        if not os.path.exists(target):  # noqa: PTH110
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT, 0o644))
    mount(source, target, flags=_BIND | _REC)
    if read_only:
        mount("", target, flags=_BIND | _REMOUNT | _RDONLY)


def lay_out(spec: dict[str, Any]) -> None:
    mount("", "/", flags=_REC | _PRIVATE)
    base = spec["root"]
    mount("tmpfs", base, "tmpfs", data="mode=755")
    upper, work, root = (f"{base}/{each}" for each in ("upper", "work", "root"))
    for each in (upper, work, root):
        os.mkdir(each)  # noqa: PTH102
    with open("/proc/self/mounts") as stream:  # noqa: PTH123
        mounted = [line.split()[1].replace("\\040", " ") for line in stream]
    data = f"lowerdir=/,upperdir={upper},workdir={work}"
    mount("overlay", root, "overlay", data=data)
    skipped = ("/proc", "/sys", "/dev", "/run", base)
    for each in mounted:
        if each != "/" and not any(each == one or each.startswith(f"{one}/") for one in skipped):
            with contextlib.suppress(OSError):
                mount(each, root + each, flags=_BIND)
                mount("", root + each, flags=_BIND | _REMOUNT | _RDONLY)
    mount("proc", f"{root}/proc", "proc")
    mount("/sys", f"{root}/sys", flags=_BIND | _REC)
    mount("tmpfs", f"{root}/dev", "tmpfs", data="mode=755")
    for name in _DEVICES:
        with contextlib.suppress(OSError):
            bind(f"/dev/{name}", f"{root}/dev/{name}", False)
    os.mkdir(f"{root}/dev/shm")  # noqa: PTH102
    mount("tmpfs", f"{root}/dev/shm", "tmpfs", data="mode=1777,size=64m")
    for name, to in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{to}", f"{root}/dev/{name}")  # noqa: PTH211
    for each in sorted(spec["mounts"], key=lambda one: str(one["to"]).count("/")):
        # /var/run is a link to /run: to be followed inside, not outside.
        target = os.path.normpath(each["to"])
        target = target[4:] if target.startswith("/var/run/") else target
        bind(each["from"], root + target, each["read_only"])
    for each in spec["reachable"]:  # whoever the container is: Python may be in /root
        if not os.path.isdir(root + each):  # noqa: PTH112
            bind(each, root + each, True)  # a volume at /tmp hides a checkout there
        path = root
        for part in str(each).strip("/").split("/")[:-1]:
            path = f"{path}/{part}"
            mode = os.stat(path).st_mode  # noqa: PTH116
            if mode & 0o111 != 0o111:
                os.chmod(path, mode | 0o111)  # noqa: PTH101
    if spec["read_only"]:
        mount("", root, flags=_BIND | _REMOUNT | _RDONLY)
    os.chroot(root)
    os.chdir("/")
    socket.sethostname(spec["hostname"])


def become(spec: dict[str, Any], error: int) -> None:
    """In the child: the container's own command."""
    try:
        os.setsid()
        if spec["root"]:
            lay_out(spec)
        cwd = spec["cwd"]
        if spec["root"] and cwd != "/" and not os.path.isdir(cwd):  # noqa: PTH112
            os.makedirs(cwd)  # noqa: PTH103
        os.chdir(cwd)
        if os.getuid() == 0:
            os.setgroups(spec["groups"])
            os.setgid(spec["gid"])
            os.setuid(spec["uid"])
        if spec["no_new_privileges"]:
            libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)  # a change of user has cleared it
        for each in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(each, signal.SIG_DFL)
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])
    except FileNotFoundError:
        words = f'exec: "{spec["argv"][0]}": executable file not found in $PATH'
    except BaseException as trouble:
        words = f'exec: "{spec["argv"][0]}": {getattr(trouble, "strerror", None) or trouble}'
        if isinstance(trouble, OSError) and str(trouble):
            words = str(trouble)
    told = "failed to create containerd task: OCI runtime create failed: unable to start container "
    os.write(error, f"{told}process: {words}".encode())
    os._exit(128)


def descended() -> set[int]:
    parents = {}
    for each in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        with contextlib.suppress(OSError), open(f"/proc/{each}/stat") as stream:  # noqa: PTH123
            state, parent = stream.read().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                parents[int(each)] = int(parent)
    found: set[int] = set()
    own = {os.getpid()}
    while more := {pid for pid, over in parents.items() if over in found | own} - found:
        found |= more
    return found


def main(path: str) -> int:
    with open(path) as stream:  # noqa: PTH123
        spec = json.load(stream)
    libc.prctl(_DEATH_SIGNAL, signal.SIGUSR1, 0, 0, 0)
    first = 0

    def pass_on(*_: object) -> None:
        if first:
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGTERM)

    def end(*_: object) -> None:
        if first:
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)
        else:
            os._exit(137)

    handlers: list[tuple[int, Any]] = [(signal.SIGTERM, pass_on), (signal.SIGUSR1, end)]
    for number, handler in handlers:
        signal.signal(number, handler)
    if os.getppid() != spec["starter"]:
        return 137
    error = os.open(spec["error"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    if spec["root"]:
        if libc.unshare(_NEW_NS | _NEW_PID | _NEW_UTS | _NEW_IPC) != 0:
            os.write(error, f"unshare: {os.strerror(ctypes.get_errno())}".encode())
            return 128
    else:
        libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    ours = signal.SIGTERM, signal.SIGUSR1
    signal.pthread_sigmask(signal.SIG_BLOCK, ours)
    pid = os.fork()
    if pid == 0:
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ours)
        become(spec, error)
    first = pid
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ours)
    while True:
        got, status = os.waitpid(-1, 0)
        if got == pid:
            break
    first = 0
    for number in ours:
        signal.signal(number, signal.SIG_IGN)
    if not spec["root"]:
        while pids := descended():
            for each in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


if __name__ == "__main__":
    os._exit(main(sys.argv[1]))

"""Containers that are processes of this computer; container.py is what runs each.

    folder/pods/UID/volumes/NAME/…     what is mounted
    folder/pods/UID/CONTAINER-N.log    what it says
    folder/claims/NAMESPACE/NAME/…     claims: folders that stay

`namespace` (root): volumes are at their paths, the root file system may be read-only, users are
real, and names of pods and services are in /etc/hosts. `process`: volumes are below $POD_ROOT,
which is also where a container starts, and names do not resolve.

Known lies: the image is this computer's own files, whatever it is called, and a container without a
command does not start; the network is this computer's: each pod has an address of its own (127.…),
but a server that listens on all addresses listens on everybody's. Memory and CPU limits do nothing;
a Service with a cluster IP resolves to its pods.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.cloud.faces.kubernetes.cluster import Cluster, is_true
from tests.cloud.faces.kubernetes.resources import PODS, SERVICES
from tests.cloud.faces.kubernetes.runtimes import Handle, Runtime
from tests.cloud.faces.kubernetes.store import Change, Obj
from tests.cloud.faces.kubernetes.volumes import TOKEN_PATH, NotYet, Sight, expanded, hostname

_PROGRAM = Path(__file__).parent / "container.py"
_OVER = ("Succeeded", "Failed")
_REACHABLE = sorted({sys.prefix, sys.base_prefix, str(Path(__file__).parents[4])})


class Process(Handle):
    def __init__(self, runtime: Processes, pod: Obj, base: Path, command: list[str]) -> None:
        self._runtime, self._base = runtime, base
        self._uid = pod["metadata"]["uid"]
        self.id = f"bodies://{base.parent.name}/{base.name}"
        self._code: int | None = None
        with base.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", env={}
            )
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        code = self._process.wait()
        with self._runtime.cluster.lock:
            if self._code is None:
                self._code = 128 - code if code < 0 else code
            self._runtime.woken(self._uid)

    def ended(self) -> int | None:
        return self._code

    def trouble(self) -> str:
        with contextlib.suppress(OSError):
            return self._base.with_suffix(".error").read_text()
        return ""

    def last_words(self) -> str:
        with contextlib.suppress(OSError):
            return self._base.with_suffix(".words").read_bytes()[:4096].decode(errors="replace")
        return ""

    def terminate(self, end_s: float) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)

    def finish(self, code: int) -> None:
        self._code = code if self._code is None else self._code
        self.kill()

    def pids(self) -> list[int]:
        from tests.cloud.bodies.processes import _descended

        return sorted(_descended(self._process.pid))


class Processes(Runtime):
    def __init__(self, cluster: Cluster, sight: Sight, folder: Path, root: bool) -> None:
        super().__init__(cluster, sight)
        self.sort = "namespace" if root else "process"
        self._folder, self._root = folder, root
        self._handles: dict[str, list[Process]] = {}
        self._stale: dict[str, None] = {}
        self._hosted: dict[str, Obj] = {}
        self._group = 80 + os.getpid() % 100

    def address(self) -> str:
        self._count += 1
        return f"127.{self._group}.{self._count // 256 % 256}.{self._count % 256}"

    def claim(self, namespace: str, name: str) -> Path:
        found = self._folder / "claims" / namespace / name
        if not found.exists():
            found.mkdir(parents=True)
            found.chmod(0o777)
        return found

    def _of(self, uid: str) -> Path:
        return self._folder / "pods" / uid

    # -- volumes -----------------------------------------------------------------------------------

    def prepare(self, pod: Obj, address: str) -> None:
        base = self._of(pod["metadata"]["uid"])
        group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
        base.mkdir(parents=True, exist_ok=True)
        for each in pod["spec"].get("volumes") or ():
            files = self.sight.files(pod, each, address)
            if "persistentVolumeClaim" in each or "hostPath" in each:
                continue
            self._filled(base / "volumes" / each["name"], files, group)
        token = self.sight.token_files(pod)
        if token:
            self._filled(base / "token", token, group)
        self._hosted[pod["metadata"]["uid"]] = pod
        self._names(pod, address)

    def _filled(
        self, folder: Path, files: dict[str, tuple[bytes, int]] | None, group: int | None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if files is None:
            folder.chmod(0o777)
            if group is not None and self._root:
                os.chown(folder, -1, group)
                folder.chmod(0o2777)
        for name, (data, mode) in (files or {}).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_bytes(data)
            path.chmod(mode | (0o440 if group is not None else 0))
            if group is not None and self._root:
                os.chown(path, -1, group)

    def _source(self, pod: Obj, mount: Obj, env: dict[str, str]) -> tuple[Path, bool]:
        """The folder (or file) that is mounted, and whether it may only be read."""
        volume = next(each for each in pod["spec"]["volumes"] if each["name"] == mount["name"])
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]
            found = self.claim(pod["metadata"]["namespace"], claim["claimName"])
            fixed = bool(claim.get("readOnly"))
        elif "hostPath" in volume:
            found, fixed = Path(volume["hostPath"]["path"]), False
            if not found.exists():
                raise NotYet("FailedMount", f"hostPath {found} does not exist", mount["name"])
        else:
            found = self._of(pod["metadata"]["uid"]) / "volumes" / mount["name"]
            fixed = "emptyDir" not in volume and "ephemeral" not in volume
        part = mount.get("subPath") or expanded(mount.get("subPathExpr") or "", env)
        if part:
            found = found / part
            if not found.exists():
                found.mkdir(parents=True)
                found.chmod(0o777)
        return found, fixed or bool(mount.get("readOnly"))

    # -- containers --------------------------------------------------------------------------------

    def start(self, pod: Obj, container: Obj, address: str, restart: int) -> Handle:
        uid = pod["metadata"]["uid"]
        base = self._of(uid) / f"{container['name']}-{restart}"
        env = self.environment(pod, container, address)
        user, group, groups = self.user(pod, container)
        mounts = []
        for each in container.get("volumeMounts") or ():
            source, fixed = self._source(pod, each, env)
            mounts.append({"from": str(source), "to": each["mountPath"], "read_only": fixed})
        token = self._of(uid) / "token"
        if token.exists():
            mounts.append({"from": str(token), "to": TOKEN_PATH, "read_only": True})
        words = base.with_suffix(".words")
        words.touch()
        words.chmod(0o666)
        at = container.get("terminationMessagePath", "/dev/termination-log")
        mounts.append({"from": str(words), "to": at, "read_only": False})
        mounts.append(
            {"from": str(self._of(uid) / "hosts"), "to": "/etc/hosts", "read_only": False}
        )
        argv = [*(container.get("command") or ()), *(container.get("args") or ())]
        context = container.get("securityContext") or {}
        spec = {
            "argv": [expanded(each, env) for each in argv] or [""],
            "env": env,
            "cwd": container.get("workingDir") or "/",
            "mounts": mounts,
            "uid": user,
            "gid": group,
            "groups": groups,
            "hostname": hostname(pod),
            "read_only": bool(context.get("readOnlyRootFilesystem")),
            "no_new_privileges": context.get("allowPrivilegeEscalation") is False,
            "error": str(base.with_suffix(".error")),
            "starter": os.getpid(),
            "reachable": _REACHABLE,
            "root": "",
        }
        if self._root:
            root = base.with_suffix(".root")
            root.mkdir(exist_ok=True)
            spec["root"] = str(root)
        else:
            self._plain(base, mounts, spec)
        path = base.with_suffix(".json")
        path.touch(0o600)
        path.write_text(json.dumps(spec))
        handle = Process(self, pod, base, [sys.executable, "-IS", str(_PROGRAM), str(path)])
        self._handles.setdefault(uid, []).append(handle)
        return handle

    def _plain(self, base: Path, mounts: list[Obj], spec: Obj) -> None:
        root = base.with_suffix(".root")
        root.mkdir(exist_ok=True)
        for each in mounts:
            link = root / str(each["to"]).lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                link.symlink_to(each["from"])
        spec["env"] = {**spec["env"], "POD_ROOT": str(root), "TMPDIR": str(root)}
        cwd = Path(str(spec["cwd"]))
        spec["cwd"] = str(cwd if cwd != Path("/") and cwd.is_dir() else root)

    def log(self, pod: Obj, container: str, restart: int) -> bytes:
        path = self._of(pod["metadata"]["uid"]) / f"{container}-{restart}.log"
        return path.read_bytes() if path.exists() else b""

    def forget(self, uid: str) -> None:
        self._hosted.pop(uid, None)
        for each in self._handles.pop(uid, ()):
            each.kill()
        self.cluster.after(1.0, lambda: shutil.rmtree(self._of(uid), ignore_errors=True))

    def close(self) -> None:
        for many in self._handles.values():
            for each in many:
                each.kill()
        for many in self._handles.values():
            for each in many:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    each._process.wait(5)
        shutil.rmtree(self._folder / "pods", ignore_errors=True)

    # -- names -------------------------------------------------------------------------------------

    def told(self, change: Change) -> None:
        if change.resource in (PODS, SERVICES):
            self._stale[change.object["metadata"]["namespace"]] = None

    def work(self) -> None:
        stale, self._stale = self._stale, {}
        for pod in list(self._hosted.values()):
            if pod["metadata"]["namespace"] in stale:
                self._names(pod, pod["status"].get("podIP", ""))

    def _names(self, pod: Obj, address: str) -> None:
        """In place, since it is mounted."""
        current = self.cluster.current(PODS, pod) or pod
        address = current["status"].get("podIP") or address
        lines = ["127.0.0.1 localhost", f"{address} {hostname(pod)}"]
        lines += self._services(pod["metadata"]["namespace"])
        text = ("\n".join(lines) + "\n").encode()
        path = self._of(pod["metadata"]["uid"]) / "hosts"
        if not path.parent.exists():
            return
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if os.pread(handle, len(text) + 1, 0) != text:
                os.pwrite(handle, text, 0)
                os.ftruncate(handle, len(text))
        finally:
            os.close(handle)

    def _services(self, namespace: str) -> list[str]:
        lines = []
        for service in self.cluster.store.all(SERVICES, namespace):
            spec, name = service["spec"], service["metadata"]["name"]
            wanted = spec.get("selector") or {}
            for pod in self.cluster.store.all(PODS, namespace) if wanted else ():
                labels = pod["metadata"].get("labels") or {}
                address = pod["status"].get("podIP")
                if any(labels.get(key) != value for key, value in wanted.items()) or not address:
                    continue
                if pod["status"].get("phase") in _OVER:
                    continue
                if not spec.get("publishNotReadyAddresses") and not is_true(pod, "Ready"):
                    continue
                lines.append(f"{address} {_forms(name, namespace)}")
                inner = pod["spec"]
                if inner.get("hostname") and inner.get("subdomain") == name:
                    own = f"{inner['hostname']}.{name}"
                    lines.append(f"{address} {_forms(own, namespace)}")
        return lines


def _forms(name: str, namespace: str) -> str:
    full = f"{name}.{namespace}"
    return f"{name} {full} {full}.svc {full}.svc.cluster.local"


def possible(folder: Path) -> bool:
    """Whether containers can have a root of their own here."""
    if os.geteuid() != 0:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    root = folder / "probe.root"
    root.mkdir(exist_ok=True)
    spec = {
        "argv": ["true"],
        "env": {"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
        "cwd": "/",
        "mounts": [],
        "uid": 65534,
        "gid": 65534,
        "groups": [],
        "hostname": "probe",
        "read_only": True,
        "no_new_privileges": True,
        "error": str(folder / "probe.error"),
        "starter": os.getpid(),
        "reachable": _REACHABLE,
        "root": str(root),
    }
    path = folder / "probe.json"
    path.write_text(json.dumps(spec))
    try:
        done = subprocess.run(
            [sys.executable, "-IS", str(_PROGRAM), str(path)], capture_output=True, timeout=20
        )
        return done.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False

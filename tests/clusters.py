"""Clusters to test on, behind one interface: the equipment's own (tests/cloud/faces/kubernetes),
or a real control plane that a program of yours starts.

`TRADEWIND_TEST_CLUSTER` names that program, as `make test-kubernetes` sets it
(tests/control_plane.py). It is called so:

    PROGRAM --dir DIR --until-eof [--node SPEC]…   prints a line of JSON with "kubeconfig" when the
                                    cluster is ready, and ends it when its standard input closes
    PROGRAM ctl --dir DIR vanish|silent|restore NODE
    PROGRAM ctl --dir DIR notice NODE --grace SECONDS
    PROGRAM ctl --dir DIR add SPEC  SPEC: name=…,cpu=…,memory=…,gpu=…,label:KEY=VALUE

Its nodes run pods as processes of this computer, whatever their images are called; images that end
in `:missing` cannot be pulled. It looks for the programs of a control plane where
`KUBEBUILDER_ASSETS` says, which it inherits.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests import reachable
from tests.cloud.faces.kubernetes.control import Control
from tests.cloud.faces.kubernetes.server import running
from tests.control_plane import PROGRAM
from tests.eventually import eventually

Obj = dict[str, Any]
_FOLDERS = {
    "jobs": "/apis/batch/v1",
    "roles": "/apis/rbac.authorization.k8s.io/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
}


class Shape(NamedTuple):
    """Of a node."""

    capacity: Mapping[str, str]
    labels: Mapping[str, str]


GPU_NODE = Shape(
    {"cpu": "16", "memory": "128Gi", "nvidia.com/gpu": "1"},
    {
        "node.kubernetes.io/instance-type": "h100-1x",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.memory": "81559",
    },
)


class Cluster:
    """A kubeconfig, its API by plain requests, and what happens to its nodes."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.folder, self._own = folder, kubeconfig
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url, self._token = str(cluster["server"]), str(user["token"])
        trusted = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._trust = ssl.create_default_context(cadata=trusted)
        self._count = 0
        self.programs = Path(sys.executable).parent
        """Where its pods find python and torchrun, with all that tests need."""

    # -- its API -----------------------------------------------------------------------------------

    def kubeconfig(self, token: str = "") -> Path:
        """The administrator's, or that of a token."""
        if not token:
            return self._own
        config = yaml.safe_load(self._own.read_text())
        config["users"][0]["user"] = {"token": token}
        self._count += 1
        path = self.folder / f"kubeconfig-of-a-user-{self._count}"
        path.write_text(yaml.safe_dump(config))
        path.chmod(0o600)
        return path

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        sort = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": sort}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60, context=self._trust) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")

    def objects(self, kind: str, namespace: str) -> list[Obj]:
        status, answer = self.ask("GET", _path(kind, namespace))
        assert status == 200, answer
        return list(answer["items"])

    def make(self, kind: str, namespace: str, body: Obj) -> Obj:
        status, answer = self.ask("POST", _path(kind, namespace), body)
        assert status == 201, answer
        return dict(answer)

    def has_namespace(self, name: str) -> bool:
        return self.ask("GET", f"/api/v1/namespaces/{name}")[0] == 200

    def namespace(self, name: str) -> None:
        """As strict as they can be."""
        meta = {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
        status, answer = self.ask("POST", "/api/v1/namespaces", made)
        assert status == 201, answer
        eventually(lambda: self.objects("serviceaccounts", name))

    def remove_namespace(self, name: str) -> None:
        status, answer = self.ask("DELETE", f"/api/v1/namespaces/{name}")
        assert status in (200, 202), answer

    def evict(self, namespace: str, pod: str) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        status, answer = self.ask("POST", f"{_path('pods', namespace)}/{pod}/eviction", body)
        assert status == 201, answer

    def account_token(self, namespace: str, name: str) -> str:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [], "expirationSeconds": 3600},
        }
        path = f"{_path('serviceaccounts', namespace)}/{name}/token"
        status, answer = self.ask("POST", path, body)
        assert status == 201, answer
        return str(answer["status"]["token"])

    # -- its nodes ---------------------------------------------------------------------------------

    def add(self, node: str, shape: Shape) -> None:
        raise NotImplementedError

    def vanish(self, node: str) -> None:
        """Its processes end at once, and its Node is removed."""
        raise NotImplementedError

    def notice(self, node: str, grace_s: int) -> None:
        """SIGTERM to all its pods; then it vanishes."""
        raise NotImplementedError

    def restore(self, node: str) -> None:
        """It is back, and empty."""
        raise NotImplementedError


def _path(kind: str, namespace: str) -> str:
    return f"{_FOLDERS.get(kind, '/api/v1')}/namespaces/{namespace}/{kind}"


class Equipment(Cluster):
    """Ours."""

    def __init__(self, control: Control) -> None:
        super().__init__(control.folder, control.kubeconfig())
        self.control = control
        self._shapes: dict[str, Shape] = {}

    def account_token(self, namespace: str, name: str) -> str:
        return self.control.account_token(namespace, name)

    def add(self, node: str, shape: Shape) -> None:
        self._shapes[node] = shape
        self.control.add(node, shape.capacity, shape.labels)

    def vanish(self, node: str) -> None:
        self.control.vanish(node)

    def notice(self, node: str, grace_s: int) -> None:
        self.control.notice(node, grace_s)

    def restore(self, node: str) -> None:
        self.add(node, self._shapes[node])


class Real(Cluster):
    """A control plane that a program has started."""

    def __init__(self, folder: Path, kubeconfig: Path, program: str) -> None:
        super().__init__(folder, kubeconfig)
        self._program = program

    def add(self, node: str, shape: Shape) -> None:
        parts = [f"name={node}"]
        for name, amount in shape.capacity.items():
            parts.append(f"{'gpu' if name == 'nvidia.com/gpu' else name}={amount}")
        parts += [f"label:{name}={value}" for name, value in shape.labels.items()]
        self._do("add", ",".join(parts))
        eventually(lambda: self._is_ready(node))

    def vanish(self, node: str) -> None:
        self._do("vanish", node)

    def notice(self, node: str, grace_s: int) -> None:
        # It answers when the node is gone; who is told meanwhile does not wait for that.
        subprocess.Popen(self._command("notice", node, "--grace", str(grace_s)))

    def restore(self, node: str) -> None:
        self._do("restore", node)
        eventually(lambda: self._is_ready(node))

    def _is_ready(self, node: str) -> bool:
        status, found = self.ask("GET", f"/api/v1/nodes/{node}")
        conditions = found["status"].get("conditions", ()) if status == 200 else ()
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _command(self, *words: str) -> list[str]:
        return [self._program, "ctl", "--dir", str(self.folder), *words]

    def _do(self, *words: str) -> None:
        subprocess.run(self._command(*words), check=True, timeout=120, capture_output=True)


@contextmanager
def a_cluster(folder: Path) -> Iterator[Cluster]:
    """With pods that run: the equipment's, or a real one where the environment names it."""
    program = os.environ.get(PROGRAM, "")
    if not program:
        with running(folder, bodies="namespace", nodes=False) as control:
            yield Equipment(control)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with reachable.programs() as programs, _begun(program, folder) as kubeconfig:
        made = Real(folder, kubeconfig, program)
        made.programs = programs
        yield made


@contextmanager
def _begun(program: str, folder: Path) -> Iterator[Path]:
    """A cluster, by its kubeconfig."""
    began = subprocess.Popen(
        [program, "--dir", str(folder), "--until-eof", "--node", "name=plain-0,cpu=8,memory=32Gi"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert began.stdin is not None
    assert began.stdout is not None
    try:
        line = began.stdout.readline()
        assert line, f"{program} (of {PROGRAM}) started no cluster; what it said stands above"
        yield Path(json.loads(line)["kubeconfig"])
    finally:
        began.stdin.close()
        began.wait(60)

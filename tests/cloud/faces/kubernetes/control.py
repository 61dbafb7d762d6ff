"""What a test holds of a cluster: kubeconfigs for its users, what happens to its nodes and pods,
and what is in it. controls.py is its other end."""

from __future__ import annotations

import base64
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.eventually import eventually

Obj = dict[str, Any]


class Control:
    def __init__(self, folder: Path, url: str, authority: str, admin: str) -> None:
        self.folder, self.url, self.authority, self.admin = folder, url, authority, admin
        self._trust = ssl.create_default_context(cadata=authority)
        self._count = 0

    # -- who asks ----------------------------------------------------------------------------------

    def token(self, name: str, groups: Sequence[str] = (), lives_s: float = 10**9) -> str:
        """Of a user; it may do what bindings say. `system:masters` as a group: all."""
        return str(self._do("user", name=name, groups=list(groups), lives_s=lives_s))

    def account_token(self, namespace: str, name: str, lives_s: float = 3600) -> str:
        return str(self._do("account", namespace=namespace, name=name, lives_s=lives_s))

    def expire(self, user: str) -> None:
        """Its tokens are not known any more."""
        self._do("expire", name=user)

    def kubeconfig(
        self,
        token: str = "",
        *,
        context: str = "test",
        namespace: str = "default",
        path: Path | None = None,
        user: Mapping[str, Any] | None = None,
        server: str = "",
    ) -> Path:
        """A file with one context; the administrator's where no token is given. `user` instead of a
        token is what kubeconfigs have there: exec, client-certificate-data."""
        self._count += 1
        path = path or self.folder / f"kubeconfig-{self._count}"
        who = dict(user) if user is not None else {"token": token or self.admin}
        cluster = {
            "server": server or self.url,
            "certificate-authority-data": base64.b64encode(self.authority.encode()).decode(),
        }
        config: Obj = {"apiVersion": "v1", "kind": "Config", "preferences": {}}
        if path.exists():
            config = yaml.safe_load(path.read_text())
        for part, one in (
            ("clusters", {"name": context, "cluster": cluster}),
            ("users", {"name": context, "user": who}),
            (
                "contexts",
                {
                    "name": context,
                    "context": {"cluster": context, "user": context, "namespace": namespace},
                },
            ),
        ):
            kept = [each for each in config.get(part, []) if each["name"] != context]
            config[part] = [*kept, one]
        config.setdefault("current-context", context)
        # Others read it meanwhile.
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_text(yaml.safe_dump(config))
        fresh.replace(path)
        path.chmod(0o600)
        return path

    def certificate(self, name: str, groups: Sequence[str] = ()) -> Obj:
        """For `kubeconfig(user=…)`: a client's certificate; one group at most."""
        made = self._do("certificate", name=name, groups=list(groups))
        return {
            "client-certificate-data": base64.b64encode(made["certificate"].encode()).decode(),
            "client-key-data": base64.b64encode(made["key"].encode()).decode(),
        }

    # -- plain requests ----------------------------------------------------------------------------

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str = "",
        sort: str = "application/json",
    ) -> tuple[int, Any, Any]:
        """Status, what was answered, and the headers."""
        headers = {"Authorization": f"Bearer {token or self.admin}", "Content-Type": sort}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60, context=self._trust) as answer:
                return answer.status, _read(answer.read()), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, _read(error.read()), error.headers

    def make(self, path: str, body: Any) -> Obj:
        status, answer, _ = self.ask("POST", path, body)
        assert status == 201, answer
        return dict(answer)

    def namespace(self, name: str, labels: Mapping[str, str] | None = None) -> str:
        made = {"apiVersion": "v1", "kind": "Namespace"}
        self.make(
            "/api/v1/namespaces", made | {"metadata": {"name": name, "labels": dict(labels or {})}}
        )
        eventually(lambda: "default" in self.names("serviceaccounts", name))
        return name

    def objects(self, resource: str, namespace: str = "") -> list[Obj]:
        """As they are kept: `pods`, `jobs.batch`."""
        return list(self._do("objects", resource=resource, namespace=namespace))

    def names(self, resource: str, namespace: str = "") -> list[str]:
        return [each["metadata"]["name"] for each in self.objects(resource, namespace)]

    def left(self, namespace: str) -> list[str]:
        return list(self._do("left", namespace=namespace))

    def reasons(self, namespace: str) -> list[tuple[str, str]]:
        """Of events: reason and message."""
        return [(each["reason"], each["message"]) for each in self.objects("events", namespace)]

    def pids(self, namespace: str, pod: str) -> list[int]:
        return list(self._do("pids", namespace=namespace, pod=pod))

    def claim(self, namespace: str, name: str) -> Path:
        """The folder that a claim is."""
        return Path(self._do("claim", namespace=namespace, name=name))

    def calls(self, action: str = "") -> list[Obj]:
        """What was asked, by whom: `create jobs`, `list pods`, `get pods/log`."""
        return [each for each in self._do("calls") if not action or each["action"] == action]

    def forget_calls(self) -> None:
        self._do("forget_calls")

    def status(self) -> Obj:
        return dict(self._do("status"))

    def now(self) -> float:
        return float(self.status()["now"])

    # -- dials -------------------------------------------------------------------------------------

    def dials(self, **settings: Any) -> None:
        """Of cluster.ClusterDials: jobset, kueue, volcano, pull_s, end_s, …"""
        self._do("dials", **settings)

    def fail(
        self,
        action: str,
        code: str = "InternalError",
        *,
        count: int = 1,
        message: str = "as the test has asked",
        status: int = 500,
        after: bool = False,
    ) -> None:
        """`after`: they are carried out first."""
        asked = {"action": action, "code": code, "count": count, "message": message}
        self._do("fail", **asked, status=status, after=after)

    def lose(self, action: str, count: int = 1) -> None:
        """The next answers: carried out, and the line is cut."""
        self._do("lose", action=action, count=count)

    def advance(self, seconds: float) -> None:
        self._do("advance", seconds=seconds)

    def hold(self) -> None:
        self._do("hold")

    def compact(self) -> None:
        """Pages and watches that were begun are answered by 410."""
        self._do("compact")

    def restart(self, away_s: float | None = None) -> None:
        """The API server: every connection is cut, and it is away for a while."""
        self._do("restart", away_s=away_s)

    # -- what happens ------------------------------------------------------------------------------

    def add(
        self,
        node: str,
        capacity: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Obj] = (),
    ) -> None:
        given = {"capacity": dict(capacity or {}), "labels": dict(labels or {})}
        self._do("add", name=node, **given, taints=list(taints))

    def fill(
        self,
        count: int,
        prefix: str,
        capacity: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Many nodes at once."""
        given = {"capacity": dict(capacity or {}), "labels": dict(labels or {})}
        self._do("fill", count=count, prefix=prefix, **given)

    def vanish(self, node: str) -> None:
        """Its processes end at once, and the cloud removes the Node. Pods follow later."""
        self._do("vanish", node=node)

    def silent(self, node: str) -> None:
        """It dies, and nobody says so."""
        self._do("silent", node=node)

    def restore(self, node: str) -> None:
        self._do("restore", node=node)

    def notice(self, node: str, grace_s: float = 30) -> None:
        """A spot notice: tainted and cordoned, SIGTERM to all, Failed with reason Terminated and
        DisruptionTarget; and then it vanishes."""
        self._do("notice", node=node, grace_s=grace_s)

    def cordon(self, node: str, on: bool = True) -> None:
        self._do("cordon", node=node, on=on)

    def drain(self, node: str) -> None:
        self._do("drain", node=node)

    def taint(self, node: str, key: str, value: str = "", effect: str = "NoSchedule") -> None:
        self._do("taint", node=node, key=key, value=value, effect=effect)

    def label(self, node: str, **labels: str) -> None:
        self._do("label", node=node, labels=labels)

    def evict(self, namespace: str, pod: str, *, by_api: bool = True) -> None:
        self._do("evict", namespace=namespace, pod=pod, by_api=by_api)

    def oom(self, namespace: str, pod: str, container: str = "") -> None:
        self._do("oom", namespace=namespace, pod=pod, container=container)

    def finish(self, namespace: str, pod: str, code: int = 0, container: str = "") -> None:
        """A container without a body has ended by itself."""
        self._do("finish", namespace=namespace, pod=pod, code=code, container=container)

    def queue(
        self,
        cluster_queue: str = "cluster-queue",
        *,
        namespace: str = "default",
        quota: Mapping[str, str] | None = None,
        local: str = "queue",
    ) -> None:
        """Kueue's queues, with one flavor that has the quota; again, to change the quota."""
        self._do(
            "queue", name=cluster_queue, namespace=namespace, quota=dict(quota or {}), local=local
        )

    def evict_workload(
        self, namespace: str, job: str, reason: str = "Preempted", words: str = ""
    ) -> None:
        self._do("evict_workload", namespace=namespace, job=job, reason=reason, words=words)

    def _do(self, control: str, /, **asked: Any) -> Any:
        body = json.dumps(asked).encode()
        request = urllib.request.Request(f"{self.url}/_control/{control}", body)
        try:
            with urllib.request.urlopen(request, timeout=120, context=self._trust) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error)["error"]) from None


def _read(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")

"""What a container is. Here: nothing at all, for tests of the API and of scale. Its pods run until
a test says that they have ended, and when they are asked to end they do so after `end_s`.
processes.py has those that are processes."""

from __future__ import annotations

from collections.abc import Callable

from tests.cloud.faces.kubernetes.cluster import Cluster
from tests.cloud.faces.kubernetes.store import Change, Obj
from tests.cloud.faces.kubernetes.volumes import NotYet, Sight

__all__ = ["Handle", "NotYet", "Runtime"]


class Handle:
    id = ""

    def ended(self) -> int | None:
        """Its exit code."""
        raise NotImplementedError

    def trouble(self) -> str:
        """Why it could not be started."""
        return ""

    def last_words(self) -> str:
        """Of its termination log."""
        return ""

    def terminate(self, end_s: float) -> None:
        """SIGTERM; `end_s` is for those that are no processes."""
        raise NotImplementedError

    def kill(self) -> None:
        raise NotImplementedError

    def finish(self, code: int) -> None:
        raise NotImplementedError

    def pids(self) -> list[int]:
        return []


class Nothing(Handle):
    def __init__(self, runtime: Runtime, uid: str, name: str) -> None:
        self._runtime, self._uid = runtime, uid
        self._code: int | None = None
        self.id = f"bodies://{uid}/{name}"

    def ended(self) -> int | None:
        return self._code

    def finish(self, code: int) -> None:
        if self._code is None:
            self._code = code
            self._runtime.woken(self._uid)

    def terminate(self, end_s: float) -> None:
        if end_s <= 0:
            self.finish(143)
        else:
            self._runtime.cluster.after(end_s, lambda: self.finish(143))

    def kill(self) -> None:
        self.finish(137)


class Runtime:
    sort = "none"
    host = "127.0.0.1"

    def __init__(self, cluster: Cluster, sight: Sight) -> None:
        self.cluster, self.sight = cluster, sight
        self.woken: Callable[[str], None] = lambda _: None
        self._count = 1

    def told(self, change: Change) -> None:
        pass

    def work(self) -> None:
        pass

    def address(self) -> str:
        self._count += 1
        return f"10.{244 + self._count // 65536}.{self._count // 256 % 256}.{self._count % 256}"

    def prepare(self, pod: Obj, address: str) -> None:
        """Its volumes; NotYet where something of them is not there."""
        for each in pod["spec"].get("volumes") or ():
            self.sight.files(pod, each, address)

    def environment(self, pod: Obj, container: Obj, address: str) -> dict[str, str]:
        return self.sight.environment(pod, container, address)

    def user(self, pod: Obj, container: Obj) -> tuple[int, int, list[int]]:
        return self.sight.user(pod, container)

    def start(self, pod: Obj, container: Obj, address: str, restart: int) -> Handle:
        return Nothing(self, pod["metadata"]["uid"], f"{container['name']}-{restart}")

    def log(self, pod: Obj, container: str, restart: int) -> bytes:
        return b""

    def forget(self, uid: str) -> None:
        pass

    def close(self) -> None:
        pass

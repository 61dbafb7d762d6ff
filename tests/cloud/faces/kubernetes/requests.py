"""What a request asks for, read from its path and query; listings, pages and watches of it are in
listing.py, and who may do it in rbac.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from tests.cloud.faces.kubernetes.cluster import ClusterDials
from tests.cloud.faces.kubernetes.rbac import Ask
from tests.cloud.faces.kubernetes.resources import RESOURCES, Resource

_NAMED = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
_MANY = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


@dataclass(frozen=True)
class Asked:
    verb: str
    path: str
    resource: Resource | None = None
    version: str = ""
    namespace: str = ""
    name: str = ""
    sub: str = ""
    query: Mapping[str, str] = field(default_factory=dict)

    def rights(self) -> Ask:
        if self.resource is None:
            return Ask(self.verb, path=self.path)
        full = f"{self.resource.plural}/{self.sub}" if self.sub else self.resource.plural
        namespace = self.namespace
        if self.resource.qualified == "namespaces":
            namespace = self.name  # who may read a namespace may have been told so in it
        return Ask(self.verb, self.resource.group, full, namespace, self.name)

    @property
    def action(self) -> str:
        """By which faults are set: `create jobs`, `list pods`, `get pods/log`."""
        if self.resource is None:
            return f"{self.verb} {self.path}"
        full = f"{self.resource.plural}/{self.sub}" if self.sub else self.resource.plural
        return f"{self.verb} {full}"

    @property
    def dry(self) -> bool:
        return self.query.get("dryRun") == "All"


def installed(dials: ClusterDials) -> list[Resource]:
    return [each for each in RESOURCES if not each.part_of or getattr(dials, each.part_of)]


def read(method: str, target: str, dials: ClusterDials) -> Asked:
    split = urlsplit(target)
    query = {name: values[-1] for name, values in parse_qs(split.query, True).items()}
    parts = [unquote(each) for each in split.path.strip("/").split("/")]
    plain = Asked(method.lower(), split.path, query=query)
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return plain
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    for each in installed(dials):
        if (each.group, each.plural) == (group, rest[0]) and version in (
            each.version,
            *each.others,
        ):
            break
    else:
        return plain
    if (namespace and not each.namespaced) or len(rest) > 3:
        return plain
    if each.namespaced and not namespace and (len(rest) > 1 or method not in ("GET", "DELETE")):
        return plain
    name, sub = (rest[1] if len(rest) > 1 else ""), (rest[2] if len(rest) > 2 else "")
    if sub and sub not in each.subresources:
        return plain
    verb = (_NAMED if name else _MANY).get(method, method.lower())
    if verb == "list" and query.get("watch", "").lower() in ("1", "true"):
        verb = "watch"
    return Asked(verb, split.path, each, version, namespace, name, sub, query)

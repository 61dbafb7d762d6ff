"""Listings with selectors and pages, and watches.

A listing in pages is of one moment: its rest is kept until its `continue` is asked for, and after
`pages_live_s` (or when a test compacts the store) that is answered by 410, as etcd does.

Known lies: `resourceVersion` of a listing chooses nothing: it is always the newest state.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.cloud.faces.kubernetes import selectors
from tests.cloud.faces.kubernetes.cluster import Cluster
from tests.cloud.faces.kubernetes.problems import Problem, bad_request
from tests.cloud.faces.kubernetes.requests import Asked
from tests.cloud.faces.kubernetes.resources import Resource
from tests.cloud.faces.kubernetes.store import Change, Obj

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


@dataclass
class Pages:
    """The rest of listings that were begun, by their tokens."""

    rests: dict[str, tuple[float, str, list[Obj]]] = field(default_factory=dict)
    count: int = 0

    def keep(self, version: str, rest: list[Obj], until: float) -> str:
        self.count += 1
        start = "/".join(
            filter(None, (rest[0]["metadata"].get("namespace"), rest[0]["metadata"]["name"]))
        )
        told = {"v": "meta.k8s.io/v1", "rv": int(version), "start": f"{start}\0", "n": self.count}
        token = base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")
        self.rests[token] = until, version, rest
        return token

    def take(self, token: str, now: float) -> tuple[str, list[Obj]]:
        for each in [each for each, (until, _, _) in self.rests.items() if until < now]:
            del self.rests[each]
        found = self.rests.get(token)
        if found is None:
            try:
                padded = token + "=" * (-len(token) % 4)
                json.loads(base64.urlsafe_b64decode(padded))
            except ValueError:
                raise bad_request("continue key is not valid: illegal base64 data") from None
            raise Problem(410, _TOO_OLD, "Expired")
        return found[1], found[2]


def chooser(asked: Asked, resource: Resource) -> Any:
    by_label = selectors.labels(asked.query.get("labelSelector", ""))
    by_field = selectors.fields(asked.query.get("fieldSelector", ""), resource)
    return lambda value: by_label(value["metadata"].get("labels") or {}) and by_field(value)


def listed(cluster: Cluster, pages: Pages, asked: Asked) -> bytes:
    resource = asked.resource
    assert resource is not None
    store, query = cluster.store, asked.query
    text = query.get("limit", "")
    limit = int(text) if text.isdigit() else 0
    wanted = query.get("resourceVersion", "")
    if wanted.isdigit() and int(wanted) > store.version:
        words = f"Too large resource version: {wanted}, current: {store.version}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        raise Problem(504, words, "Timeout", {"causes": [cause], "retryAfterSeconds": 1})
    if query.get("continue"):
        if wanted and wanted != "0":
            raise bad_request("specifying resource version is not allowed when using continue")
        version, values = pages.take(query["continue"], cluster.now())
    else:
        chooses = chooser(asked, resource)
        version = str(store.version)
        values = [
            each for _, each in store.shelf(resource).within(asked.namespace) if chooses(each)
        ]
    meta: Obj = {"resourceVersion": version}
    if limit and len(values) > limit:
        rest = values[limit:]
        meta["continue"] = pages.keep(version, rest, cluster.now() + cluster.dials.pages_live_s)
        if not query.get("labelSelector") and not query.get("fieldSelector"):
            meta["remainingItemCount"] = len(rest)
        values = values[:limit]
    head = msgspec.json.encode(
        {
            "kind": f"{resource.kind}List",
            "apiVersion": resource.at(asked.version),
            "metadata": meta,
        }
    )
    if asked.version == resource.version:
        items = b",".join(store.text(resource, each) for each in values)
    else:
        items = b",".join(
            msgspec.json.encode({**each, "apiVersion": resource.at(asked.version)})
            for each in values
        )
    return head[:-1] + b',"items":[' + items + b"]}"


def watched(cluster: Cluster, asked: Asked, over: Any) -> Iterator[bytes]:
    """Lines, until the time-out or until `over()`; called without the lock."""
    resource = asked.resource
    assert resource is not None
    chooses, store = chooser(asked, resource), cluster.store
    limit_s = float(asked.query.get("timeoutSeconds") or 300)
    until = time.monotonic() + limit_s
    since = asked.query.get("resourceVersion", "")
    with cluster.lock:
        seen = store.version
        first: list[Change] = []
        if since in ("", "0"):
            first = [
                Change(0, "ADDED", resource, None, each)
                for _, each in store.shelf(resource).within(asked.namespace)
            ]
        else:
            seen = int(since)
            oldest = store.history[0].version if store.history else store.version + 1
            if seen < oldest - 1 and seen < store.version:
                words = f"too old resource version: {since} ({oldest})"
                yield _line("ERROR", Problem(410, words, "Expired").status())
                return
    for change in first:
        if chooses(change.object):
            yield _line("ADDED", change.object)
    while time.monotonic() < until and not over():
        with cluster.lock:
            if store.version <= seen:
                cluster.changed.wait(min(0.5, max(0.01, until - time.monotonic())))
            fresh = []
            for each in reversed(store.history):
                if each.version <= seen:
                    break
                fresh.append(each)
            seen = store.version
        for change in reversed(fresh):
            if change.resource is resource:
                found = _told(change, chooses, asked.namespace)
                if found is not None:
                    yield _line(*found)
    if asked.query.get("allowWatchBookmarks", "").lower() in ("1", "true"):
        meta = {"resourceVersion": str(seen), "creationTimestamp": None}
        mark = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        yield _line("BOOKMARK", mark)


def _told(change: Change, chooses: Any, namespace: str) -> tuple[str, Obj] | None:
    value = change.object
    if namespace and value["metadata"].get("namespace") != namespace:
        return None
    was = change.old is not None and chooses(change.old)
    now = change.sort != "DELETED" and chooses(value)
    if now:
        return ("MODIFIED" if was else "ADDED"), value
    return ("DELETED", value) if was else None


def _line(sort: str, value: Obj) -> bytes:
    return msgspec.json.encode({"type": sort, "object": value}) + b"\n"

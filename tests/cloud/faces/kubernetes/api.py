"""The API server: who asks, whether they may, what they get. One request at a time, under the
cluster's lock; watches and logs that are followed give their answers as they come.

Known lies: no OpenAPI document, no tables (lists are lists), no protobuf, no aggregation, no
impersonation; exec, attach and port-forward are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml

from tests.cloud.faces.kubernetes import discovery, listing, patches, reviews
from tests.cloud.faces.kubernetes.cluster import Cluster
from tests.cloud.faces.kubernetes.problems import Problem, bad_request, not_found
from tests.cloud.faces.kubernetes.rbac import User
from tests.cloud.faces.kubernetes.registry import DeleteOptions, Outcome, Registry
from tests.cloud.faces.kubernetes.requests import Asked, read
from tests.cloud.faces.kubernetes.resources import BY_KIND, PODS, SERVICEACCOUNTS, Resource
from tests.cloud.faces.kubernetes.store import Obj
from tests.cloud.faces.kubernetes.tokens import Tokens

JSON = "application/json"


@dataclass
class Reply:
    status: int
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)
    stream: Iterator[bytes] | None = None
    sort: str = JSON
    lost: bool = False
    """It was carried out, but nobody is told."""


class Api:
    def __init__(self, cluster: Cluster, registry: Registry, tokens: Tokens, evict: Any) -> None:
        self.cluster, self.registry, self.tokens = cluster, registry, tokens
        self.pages = listing.Pages()
        self.over = False
        self.logs: Any = None
        """Of containers: kubelet.py's."""
        self._evict = evict

    def answer(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        certificate: User | None = None,
    ) -> Reply:
        dials = self.cluster.dials
        asked = read(method, target, dials)
        with self.cluster.lock:
            told = {"action": asked.action, "namespace": asked.namespace, "name": asked.name}
            fault = dials.fault(asked.action)
            try:
                user = certificate or self.tokens.user(headers)
                self.cluster.calls.append(told | {"user": user.name, "query": dict(asked.query)})
                if fault is not None and not fault.after:
                    raise Problem(fault.status, fault.message, fault.code, {}, _retry(fault.status))
                reply = self._done(asked, user, headers, body)
                if fault is not None:
                    raise Problem(fault.status, fault.message, fault.code, {}, _retry(fault.status))
            except Problem as problem:
                reply = Reply(problem.code, msgspec.json.encode(problem.status()))
                reply.headers += problem.headers
            reply.lost = dials.loses(asked.action)
            return reply

    def _done(self, asked: Asked, user: User, headers: Mapping[str, str], body: bytes) -> Reply:
        if not self.registry.rights.may(user, asked.rights()):
            raise self.registry.rights.refusal(user, asked.rights(), asked.resource)
        if asked.resource is None:
            return self._plain(asked)
        if asked.resource.review:
            if asked.verb != "create":
                raise Problem(
                    405, "the server does not allow this method on the requested resource"
                )
            value = reviews.answered(self.registry, asked.resource, user, _decoded(body, headers))
            return Reply(201, msgspec.json.encode(value))
        if asked.sub and asked.sub not in ("status", "finalize"):
            return self._part(asked, user, headers, body)
        act = getattr(self, f"_{asked.verb}", None)
        if act is None:
            raise Problem(405, "the server does not allow this method on the requested resource")
        found = act(asked, asked.resource, user, headers, body)
        assert isinstance(found, Reply)
        return found

    def _plain(self, asked: Asked) -> Reply:
        if asked.verb == "get":
            found = discovery.told(asked.path, self.cluster.dials)
            if isinstance(found, str):
                return Reply(200, found.encode(), sort="text/plain")
            if found is not None:
                return Reply(200, msgspec.json.encode(found))
        return Reply(404, b"404 page not found\n", sort="text/plain; charset=utf-8")

    # -- verbs -------------------------------------------------------------------------------------

    def _get(self, asked: Asked, resource: Resource, *_: Any) -> Reply:
        value = self.registry.found(resource, asked.namespace, asked.name)
        return Reply(200, self._text(asked, resource, value))

    def _list(self, asked: Asked, resource: Resource, *_: Any) -> Reply:
        return Reply(200, listing.listed(self.cluster, self.pages, asked))

    def _watch(self, asked: Asked, resource: Resource, *_: Any) -> Reply:
        listing.chooser(asked, resource)
        return Reply(200, stream=listing.watched(self.cluster, asked, lambda: self.over))

    def _create(
        self, asked: Asked, resource: Resource, user: User, headers: Any, body: bytes
    ) -> Reply:
        if asked.name:
            raise Problem(405, "the server does not allow this method on the requested resource")
        value = _decoded(body, headers)
        made = self.registry.create(
            resource, asked.namespace, value, user, asked.dry, asked.version
        )
        return self._outcome(asked, resource, made, 201)

    def _update(
        self, asked: Asked, resource: Resource, user: User, headers: Any, body: bytes
    ) -> Reply:
        value = _decoded(body, headers)
        if asked.sub == "finalize":
            return self._finalized(asked, resource, value)
        made = self.registry.update(
            resource, asked.namespace, asked.name, value, user, asked.sub, asked.dry, asked.version
        )
        return self._outcome(asked, resource, made)

    def _patch(
        self, asked: Asked, resource: Resource, user: User, headers: Any, body: bytes
    ) -> Reply:
        sort = headers.get("content-type", "").partition(";")[0].strip()
        known = [patches.JSON, patches.MERGE, patches.STRATEGIC, patches.APPLY]
        if resource.part_of:
            known.remove(patches.STRATEGIC)
        if sort not in known:
            words = (
                "the body of the request was in an unknown format - accepted media types include: "
                f"{', '.join(known)}"
            )
            raise Problem(415, words)
        patch = _decoded(body, headers)
        old = self.cluster.store.get(resource, asked.namespace, asked.name)
        if old is None and sort == patches.APPLY:
            if not asked.query.get("fieldManager"):
                words = "fieldManager: Required value: is required for apply patch"
                raise Problem(422, f'PatchOptions.meta.k8s.io "" is invalid: {words}')
            made = self.registry.create(
                resource, asked.namespace, patch, user, asked.dry, asked.version
            )
            return self._outcome(asked, resource, made, 201)
        if old is None:
            raise not_found(resource, asked.name)
        served = {**old, "apiVersion": resource.at(asked.version)}
        value = patches.patched(served, patch, sort, resource.schema)
        if not (isinstance(patch, dict) and (patch.get("metadata") or {}).get("resourceVersion")):
            value["metadata"] = {**value["metadata"]}
            value["metadata"].pop("resourceVersion", None)
        made = self.registry.update(
            resource, asked.namespace, asked.name, value, user, asked.sub, asked.dry, asked.version
        )
        return self._outcome(asked, resource, made)

    def _delete(
        self, asked: Asked, resource: Resource, user: User, headers: Any, body: bytes
    ) -> Reply:
        options = _options(asked, body, headers)
        made = self.registry.delete(resource, asked.namespace, asked.name, options)
        if made.gone and resource is not PODS:
            details = {"name": asked.name, "kind": resource.plural}
            if resource.group:
                details["group"] = resource.group
            details["uid"] = made.value["metadata"]["uid"]
            told = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            return Reply(
                200, msgspec.json.encode(told | {"details": details}), _warned(made.warnings)
            )
        return self._outcome(asked, resource, made)

    def _deletecollection(
        self, asked: Asked, resource: Resource, user: User, headers: Any, body: bytes
    ) -> Reply:
        if resource.namespaced and not asked.namespace:
            raise Problem(405, "the server does not allow this method on the requested resource")
        text = listing.listed(self.cluster, self.pages, asked)
        chooses = listing.chooser(asked, resource)
        options = _options(asked, body, headers)
        for each in self.cluster.store.all(resource, asked.namespace):
            if chooses(each):
                self.registry.delete(resource, asked.namespace, each["metadata"]["name"], options)
        return Reply(200, text)

    # -- parts of objects --------------------------------------------------------------------------

    def _part(self, asked: Asked, user: User, headers: Any, body: bytes) -> Reply:
        resource = asked.resource
        assert resource is not None
        value = self.registry.found(resource, asked.namespace, asked.name)
        if resource is PODS and asked.sub == "log" and asked.verb == "get":
            found = self.logs(value, asked.query)
            if isinstance(found, bytes):
                return Reply(200, found, sort="text/plain")
            return Reply(200, stream=found, sort="text/plain")
        if resource is PODS and asked.sub == "eviction" and asked.verb == "create":
            given = _decoded(body, headers) or {}
            self._evict(value, _delete_options(given.get("deleteOptions") or {}, asked))
            told = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            return Reply(201, msgspec.json.encode(told | {"code": 201}))
        if resource is PODS and asked.sub == "binding" and asked.verb == "create":
            node = ((_decoded(body, headers) or {}).get("target") or {}).get("name", "")
            self.cluster.change(PODS, value, lambda new: new["spec"].update(nodeName=node))
            told = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            return Reply(201, msgspec.json.encode(told | {"code": 201}))
        if resource is SERVICEACCOUNTS and asked.sub == "token" and asked.verb == "create":
            given = _decoded(body, headers) or {}
            spec = given.get("spec") or {}
            seconds = int(spec.get("expirationSeconds") or 3600)
            token = self.tokens.for_account(asked.namespace, asked.name, seconds)
            until = self.cluster.stamp(self.cluster.now() + seconds)
            given |= {"status": {"token": token, "expirationTimestamp": until}}
            return Reply(201, msgspec.json.encode(given))
        raise Problem(405, "the server does not allow this method on the requested resource")

    def _finalized(self, asked: Asked, resource: Resource, value: Obj) -> Reply:
        old = self.registry.found(resource, "", asked.name)
        wanted = (value.get("spec") or {}).get("finalizers") or []
        new = {**old, "spec": {**old["spec"], "finalizers": wanted}}
        new["metadata"] = dict(old["metadata"])
        kept = self.cluster.store.replace(resource, new)
        return Reply(200, msgspec.json.encode(self.registry.settled(resource, kept)))

    # ----------------------------------------------------------------------------------------------

    def _outcome(self, asked: Asked, resource: Resource, made: Outcome, status: int = 200) -> Reply:
        return Reply(status, self._text(asked, resource, made.value), _warned(made.warnings))

    def _text(self, asked: Asked, resource: Resource, value: Obj) -> bytes:
        if asked.version != resource.version:
            return msgspec.json.encode({**value, "apiVersion": resource.at(asked.version)})
        return self.cluster.store.text(resource, value)


def _warned(words: list[str]) -> list[tuple[str, str]]:
    return [("Warning", f'299 - "{each}"') for each in words]


def _retry(status: int) -> list[tuple[str, str]]:
    return [("Retry-After", "1")] if status == 429 else []


def _decoded(body: bytes, headers: Mapping[str, str]) -> Any:
    if not body:
        return None
    if "yaml" in headers.get("content-type", ""):
        return yaml.safe_load(body)
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def _options(asked: Asked, body: bytes, headers: Mapping[str, str]) -> DeleteOptions:
    given = _decoded(body, headers) or {}
    if not isinstance(given, dict):
        raise bad_request("expected DeleteOptions")
    kind = given.get("kind", "DeleteOptions")
    if kind != "DeleteOptions" and (given.get("apiVersion", ""), kind):
        known = any(name == kind for _, name in BY_KIND)
        raise bad_request(
            f"no kind {kind!r} is registered" if not known else f"{kind} is no DeleteOptions"
        )
    return _delete_options(given, asked)


def _delete_options(given: Obj, asked: Asked) -> DeleteOptions:
    known = {
        *("kind", "apiVersion", "gracePeriodSeconds", "preconditions", "orphanDependents"),
        *("propagationPolicy", "dryRun", "ignoreStoreReadErrorWithClusterBreakingPotential"),
    }
    unknown = sorted(set(given) - known)
    if unknown:
        raise bad_request(f'strict decoding error: unknown field "{unknown[0]}"')
    grace = given.get("gracePeriodSeconds")
    if grace is None and asked.query.get("gracePeriodSeconds", "").isdigit():
        grace = int(asked.query["gracePeriodSeconds"])
    conditions = given.get("preconditions") or {}
    policy = given.get("propagationPolicy") or asked.query.get("propagationPolicy", "")
    return DeleteOptions(
        grace,
        policy,
        conditions.get("uid", ""),
        conditions.get("resourceVersion", ""),
        asked.dry or "All" in (given.get("dryRun") or ()),
    )

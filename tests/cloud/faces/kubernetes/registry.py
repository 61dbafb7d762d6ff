"""Making, changing and deleting objects by the rules of the API server: for requests, and for
controllers that make objects as anybody does.

Known lies: no managedFields; generations count changes of spec only.
"""

from __future__ import annotations

import ipaddress
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.cloud.faces.kubernetes import checks, defaults, schemas
from tests.cloud.faces.kubernetes.admission import Admission
from tests.cloud.faces.kubernetes.cluster import Cluster
from tests.cloud.faces.kubernetes.problems import (
    Problem,
    bad_request,
    conflict,
    exists,
    invalid_object,
    not_found,
    required,
)
from tests.cloud.faces.kubernetes.rbac import SYSTEM, Rights, User
from tests.cloud.faces.kubernetes.resources import (
    JOBS,
    NAMESPACES,
    PODS,
    SERVICES,
    Resource,
)
from tests.cloud.faces.kubernetes.store import Obj, copied, key_of

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_KEPT = (
    *("name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp"),
    *("deletionGracePeriodSeconds", "resourceVersion"),
)
_POLICIES = ("Orphan", "Background", "Foreground")


@dataclass
class Outcome:
    value: Obj
    warnings: list[str] = field(default_factory=list)
    gone: bool = False


@dataclass(frozen=True)
class DeleteOptions:
    grace_s: int | None = None
    policy: str = ""
    uid: str = ""
    version: str = ""
    dry: bool = False


class Registry:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.store = cluster, cluster.store
        self.rights = Rights(cluster.store)
        self.admission = Admission(cluster)
        self._addresses = 0

    # -- making ------------------------------------------------------------------------------------

    def create(
        self,
        resource: Resource,
        namespace: str,
        body: Any,
        user: User = SYSTEM,
        dry: bool = False,
        version: str = "",
    ) -> Outcome:
        value = self._read(resource, namespace, body, version or resource.version)
        meta = value["metadata"]
        if resource.namespaced:
            self._space(resource, namespace, meta)
        self._named(resource, meta)
        missing = schemas.check(resource.schema, resource.kind, version or resource.version, value)
        if missing:
            raise invalid_object(resource, meta["name"], missing)
        if meta.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        for each in (
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "managedFields",
        ):
            meta.pop(each, None)
        meta["uid"] = str(uuid.UUID(int=self.cluster.random.getrandbits(128), version=4))
        meta["creationTimestamp"] = self.cluster.stamp()
        if "spec" in value:
            meta["generation"] = 1
        if resource.status and resource.qualified != "nodes":
            value.pop("status", None)
        if resource.namespaced:
            meta["namespace"] = namespace
        value["apiVersion"], value["kind"] = resource.api_version, resource.kind
        defaults.fill(resource, value)
        self.admission.fill(resource, value)
        if resource is SERVICES:
            self._address(value)
        wrong = checks.object_faults(resource, value)
        if wrong:
            raise invalid_object(resource, meta["name"], wrong)
        self.rights.check_grant(user, resource, value)
        warnings = self.admission.check(resource, value)
        if self.store.get(resource, meta.get("namespace", ""), meta["name"]) is not None:
            raise exists(resource, meta["name"])
        return Outcome(value if dry else self.store.add(resource, value), warnings)

    def _read(self, resource: Resource, namespace: str, body: Any, version: str) -> Obj:
        if not isinstance(body, dict):
            raise bad_request("the object provided is unrecognized (must be of type object)")
        value: Obj = dict(copied(body))
        told, kind = value.get("apiVersion"), value.get("kind")
        expected = resource.at(version)
        if told and told != expected:
            raise bad_request(
                f"the API version in the data ({told}) does not match the expected API version "
                f"({expected})"
            )
        if kind and kind != resource.kind:
            raise bad_request(
                f'{kind} in version "{version}" cannot be handled as a {resource.kind}: converting '
                f"({kind}) to ({resource.kind}): unknown conversion"
            )
        meta = value.get("metadata")
        value["metadata"] = meta = dict(meta) if isinstance(meta, dict) else {}
        if meta.get("namespace") and meta["namespace"] != namespace:
            if not resource.namespaced:
                meta.pop("namespace")
            else:
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on the "
                    "request"
                )
        if resource.qualified == "namespaces":
            meta.pop("namespace", None)
        return value

    def _space(self, resource: Resource, namespace: str, meta: Obj) -> None:
        space = self.store.get(NAMESPACES, "", namespace)
        if space is None:
            raise not_found(NAMESPACES, namespace)
        if space["metadata"].get("deletionTimestamp"):
            name = meta.get("name") or meta.get("generateName", "")
            words = (
                f'{resource.qualified} "{name}" is forbidden: unable to create new content in '
                f"namespace {namespace} because it is being terminated"
            )
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            details = {"name": name, "group": resource.group, "kind": resource.plural}
            raise Problem(403, words, details=details | {"causes": [cause]})

    def _named(self, resource: Resource, meta: Obj) -> None:
        if not meta.get("name"):
            if not meta.get("generateName"):
                words = "name or generateName is required"
                raise invalid_object(resource, "", [required("metadata.name", words)])
            meta["name"] = meta["generateName"][:58] + self.cluster.suffix()

    def _address(self, value: Obj) -> None:
        spec = value["spec"]
        if spec["type"] != "ExternalName" and not spec.get("clusterIP"):
            self._addresses += 1
            spec["clusterIP"] = str(ipaddress.IPv4Address("10.96.0.9") + self._addresses)
        if spec.get("clusterIP"):
            spec["clusterIPs"] = [spec["clusterIP"]]

    # -- changing ----------------------------------------------------------------------------------

    def found(self, resource: Resource, namespace: str, name: str) -> Obj:
        value = self.store.get(resource, namespace, name)
        if value is None:
            raise not_found(resource, name)
        return value

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Any,
        user: User = SYSTEM,
        sub: str = "",
        dry: bool = False,
        version: str = "",
    ) -> Outcome:
        old = self.found(resource, namespace, name)
        value = self._read(resource, namespace, body, version or resource.version)
        meta, before = value["metadata"], old["metadata"]
        if meta.get("name") != name:
            words = (
                f"the name of the object ({meta.get('name', '')}) does not match the name on the "
                f"URL ({name})"
            )
            raise bad_request(words)
        if meta.get("resourceVersion") and meta["resourceVersion"] != before["resourceVersion"]:
            raise conflict(resource, name)
        if meta.get("uid") and meta["uid"] != before["uid"]:
            words = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: "
            raise conflict(resource, name, words + before["uid"])
        missing = schemas.check(resource.schema, resource.kind, version or resource.version, value)
        if missing:
            raise invalid_object(resource, name, missing)
        value["apiVersion"], value["kind"] = resource.api_version, resource.kind
        for each in _KEPT:
            meta.pop(each, None)
            if each in before:
                meta[each] = before[each]
        meta.pop("managedFields", None)
        if sub == "status":
            value = {**old, "metadata": {**before}, "status": value.get("status") or {}}
        else:
            value = self._changed(resource, old, value)
        self.rights.check_grant(user, resource, value)
        if dry:
            return Outcome(value)
        kept = self.store.replace(resource, value)
        return Outcome(self.settled(resource, kept))

    def _changed(self, resource: Resource, old: Obj, value: Obj) -> Obj:
        name = value["metadata"]["name"]
        if resource.status:
            value.pop("status", None)
            if "status" in old:
                value["status"] = old["status"]
        if resource is PODS:  # what admission has added
            for each in ("nodeName", "priority", "preemptionPolicy", "serviceAccount"):
                if each in old["spec"]:
                    value["spec"].setdefault(each, old["spec"][each])
            value["spec"].setdefault("serviceAccountName", old["spec"].get("serviceAccountName"))
            value["spec"].setdefault("tolerations", old["spec"].get("tolerations"))
        if resource is SERVICES and old["spec"].get("clusterIP"):
            value["spec"].setdefault("clusterIP", old["spec"]["clusterIP"])
            value["spec"].setdefault("clusterIPs", old["spec"]["clusterIPs"])
        defaults.fill(resource, value)
        wrong = checks.object_faults(resource, value) + checks.change_faults(resource, old, value)
        if wrong:
            raise invalid_object(resource, name, wrong)
        if "spec" in value and value["spec"] != old.get("spec"):
            value["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        return value

    def settled(self, resource: Resource, value: Obj) -> Obj:
        """Removed, where it was only kept by what is gone now."""
        if not self._may_go(resource, value):
            return value
        if self.store.get(resource, *key_of(value)) is not value:
            return value
        return self.store.remove(resource, *key_of(value))

    def _may_go(self, resource: Resource, value: Obj) -> bool:
        meta = value["metadata"]
        if not meta.get("deletionTimestamp") or meta.get("finalizers"):
            return False
        if resource is PODS and meta.get("deletionGracePeriodSeconds", 0) > 0:
            return False
        return not (resource is NAMESPACES and value["spec"].get("finalizers"))

    # -- deleting ----------------------------------------------------------------------------------

    def delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> Outcome:
        options = options or DeleteOptions()
        old = self.found(resource, namespace, name)
        meta = old["metadata"]
        if options.uid and options.uid != meta["uid"]:
            words = (
                f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: "
                f"{meta['uid']}"
            )
            raise conflict(resource, name, words)
        if options.version and options.version != meta["resourceVersion"]:
            words = (
                f"Precondition failed: ResourceVersion in precondition: {options.version}, "
                f"ResourceVersion in object meta: {meta['resourceVersion']}"
            )
            raise conflict(resource, name, words)
        if options.policy and options.policy not in _POLICIES:
            raise bad_request(f"invalid propagationPolicy {options.policy!r}")
        warnings = []
        policy = options.policy
        if resource is JOBS and not policy:
            policy = "Orphan"  # for clients of old, says the real server's source
            warnings.append(
                "child pods are preserved by default when jobs are deleted; set "
                "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to "
                "suppress this warning"
            )
        new = copied(old)
        self._marked(resource, new, options.grace_s, policy)
        if options.dry:
            return Outcome(old, warnings)
        if self._may_go(resource, new):
            return Outcome(self.store.remove(resource, namespace, name), warnings, gone=True)
        return Outcome(self.store.replace(resource, new), warnings)

    def _marked(self, resource: Resource, new: Obj, grace_s: int | None, policy: str) -> None:
        meta, now = new["metadata"], self.cluster.now()
        grace = 0
        if resource.graceful:
            usual = new["spec"].get("terminationGracePeriodSeconds", 30)
            grace = usual if grace_s is None else max(0, grace_s)
            phase = (new.get("status") or {}).get("phase")
            if not new["spec"].get("nodeName") or phase in ("Succeeded", "Failed"):
                grace = 0
        held = meta.get("deletionGracePeriodSeconds")
        if not meta.get("deletionTimestamp"):
            meta["deletionTimestamp"] = self.cluster.stamp(now + grace)
            meta["deletionGracePeriodSeconds"] = grace
            if "generation" in meta:
                meta["generation"] += 1
        elif resource.graceful and held is not None and grace < held and grace_s is not None:
            meta["deletionTimestamp"] = self.cluster.stamp(now + grace)
            meta["deletionGracePeriodSeconds"] = grace
        elif resource.graceful and grace == 0:
            meta["deletionGracePeriodSeconds"] = 0
        finalizers = [
            each for each in meta.get("finalizers") or () if each not in (ORPHAN, FOREGROUND)
        ]
        if policy == "Orphan":
            finalizers.append(ORPHAN)
        elif policy == "Foreground":
            finalizers.append(FOREGROUND)
        elif not policy:
            finalizers = list(meta.get("finalizers") or ())
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        if resource is NAMESPACES:
            new["status"]["phase"] = "Terminating"

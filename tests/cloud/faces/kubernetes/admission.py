"""What is added to objects, and what is refused, between reading them and keeping them: service
accounts, priorities, tolerations, limit ranges, pod security, quotas.

Known lies: quotas count pods, Jobs, Secrets, Services, ConfigMaps, claims, and what pods ask for;
their scopes are not known. A pod's token is not mounted by a projected volume of its spec, but the
kubelet puts it where it belongs (kubelet.py).
"""

from __future__ import annotations

from fractions import Fraction

from tests.cloud.faces.kubernetes import security
from tests.cloud.faces.kubernetes.cluster import Cluster
from tests.cloud.faces.kubernetes.problems import Problem, forbidden
from tests.cloud.faces.kubernetes.quantities import Amounts, add, amount, amounts, asked, written
from tests.cloud.faces.kubernetes.resources import (
    BY_NAME,
    JOBS,
    JOBSETS,
    NAMESPACES,
    PODS,
    PRIORITIES,
    QUOTAS,
    SERVICEACCOUNTS,
    Resource,
)
from tests.cloud.faces.kubernetes.store import Obj

QUEUE = "kueue.x-k8s.io/queue-name"
_LEVEL = "pod-security.kubernetes.io/"
_COUNTED = {
    "pods": "pods",
    "secrets": "secrets",
    "configmaps": "configmaps",
    "services": "services",
    "persistentvolumeclaims": "persistentvolumeclaims",
    "resourcequotas": "resourcequotas",
}
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Admission:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._store = cluster, cluster.store

    def fill(self, resource: Resource, value: Obj) -> None:
        if resource is PODS:
            self._account(value)
            self._priority(value)
            self._tolerations(value)
            self._limits(value)
        queued = QUEUE in (value["metadata"].get("labels") or {})
        if resource in (JOBS, JOBSETS) and queued and self._cluster.dials.kueue:
            owners = value["metadata"].get("ownerReferences") or ()
            if not any(each.get("kind") == "JobSet" for each in owners):
                value["spec"]["suspend"] = True

    def check(self, resource: Resource, value: Obj) -> list[str]:
        """Refuses, or tells what is warned of."""
        warned: list[str] = []
        space = self._store.get(NAMESPACES, "", value["metadata"].get("namespace", ""))
        labels = (space or {"metadata": {}})["metadata"].get("labels") or {}
        if resource is PODS:
            self._secured(value, labels)
        elif resource is JOBS and (level := labels.get(f"{_LEVEL}warn")):
            found = security.violations(value["spec"]["template"].get("spec") or {}, level)
            if found:
                warned.append(f'would violate PodSecurity "{level}:latest": {", ".join(found)}')
        self._quota(resource, value)
        return warned

    # ----------------------------------------------------------------------------------------------

    def _account(self, pod: Obj) -> None:
        spec, meta = pod["spec"], pod["metadata"]
        name = spec.get("serviceAccountName") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        if self._store.get(SERVICEACCOUNTS, meta["namespace"], name) is None:
            raise forbidden(
                PODS,
                meta["name"],
                f"error looking up service account {meta['namespace']}/{name}: serviceaccount "
                f'"{name}" not found',
            )

    def _priority(self, pod: Obj) -> None:
        spec = pod["spec"]
        name = spec.get("priorityClassName") or ""
        if name in _SYSTEM:
            spec["priority"] = _SYSTEM[name]
        elif name:
            found = self._store.get(PRIORITIES, "", name)
            if found is None:
                raise forbidden(
                    PODS, pod["metadata"]["name"], f"no PriorityClass with name {name} was found"
                )
            spec["priority"] = found["value"]
            spec.setdefault(
                "preemptionPolicy", found.get("preemptionPolicy", "PreemptLowerPriority")
            )
        else:
            every = [each for each in self._store.all(PRIORITIES) if each.get("globalDefault")]
            spec["priority"] = every[0]["value"] if every else 0
            if every:
                spec["priorityClassName"] = every[0]["metadata"]["name"]
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def _tolerations(self, pod: Obj) -> None:
        found = pod["spec"].setdefault("tolerations", [])
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
            if not any(
                each.get("key", key) in (key, "") and each.get("effect", "NoExecute") == "NoExecute"
                for each in found
            ):
                found.append(
                    {
                        "key": key,
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": self._cluster.dials.toleration_s,
                    }
                )

    def _limits(self, pod: Obj) -> None:
        """A LimitRange's defaults, and its most."""
        for each in self._store.all(BY_NAME["limitranges"], pod["metadata"]["namespace"]):
            for limit in each["spec"].get("limits") or ():
                if limit.get("type") != "Container":
                    continue
                for container in pod["spec"]["containers"]:
                    self._limit(pod, container, limit)

    def _limit(self, pod: Obj, container: Obj, limit: Obj) -> None:
        table = container.setdefault("resources", {})
        for part, field in (("limits", "default"), ("requests", "defaultRequest")):
            for name, value in (limit.get(field) or {}).items():
                table.setdefault(part, {}).setdefault(name, value)
        for name, most in (limit.get("max") or {}).items():
            given = (table.get("limits") or {}).get(name)
            if given is not None and amount(given) > amount(most):
                raise forbidden(
                    PODS,
                    pod["metadata"]["name"],
                    f"maximum {name} usage per Container is {most}, but limit is {given}",
                )

    def _secured(self, pod: Obj, labels: Obj) -> None:
        level = labels.get(f"{_LEVEL}enforce", "")
        found = security.violations(pod["spec"], level)
        if found:
            version = labels.get(f"{_LEVEL}enforce-version", "latest")
            words = f'violates PodSecurity "{level}:{version}": {", ".join(found)}'
            raise forbidden(PODS, pod["metadata"]["name"], words)

    # -- quotas ------------------------------------------------------------------------------------

    def _quota(self, resource: Resource, value: Obj) -> None:
        namespace = value["metadata"].get("namespace", "")
        quotas = self._store.all(QUOTAS, namespace) if namespace else []
        if not quotas:
            return
        wanted = used_by(resource, value)
        for each in quotas:
            hard = amounts(each["spec"].get("hard"))
            name = each["metadata"]["name"]
            if resource is PODS:
                self._must_ask(name, hard, value)
            used = usage(self._cluster, namespace, hard)
            over = {
                key: wanted[key]
                for key in hard
                if wanted.get(key, Fraction(0)) and used[key] + wanted[key] > hard[key]
            }
            if over:
                raise self._exceeded(resource, value, name, over, used, hard)

    def _exceeded(
        self, resource: Resource, value: Obj, name: str, over: Amounts, used: Amounts, hard: Amounts
    ) -> Problem:
        def listed(table: Amounts) -> str:
            return ",".join(f"{key}={written(table[key])}" for key in sorted(over))

        return forbidden(
            resource,
            value["metadata"]["name"],
            f"exceeded quota: {name}, requested: {listed(over)}, used: {listed(used)}, "
            f"limited: {listed(hard)}",
        )

    def _must_ask(self, name: str, hard: Amounts, pod: Obj) -> None:
        for key in sorted(hard):
            part, _, of = key.rpartition(".")
            if key in ("cpu", "memory"):
                part, of = "requests", key
            if part not in ("requests", "limits") or of not in ("cpu", "memory"):
                continue
            without = [
                each["name"]
                for each in pod["spec"]["containers"]
                if of not in ((each.get("resources") or {}).get(part) or {})
            ]
            if without:
                raise forbidden(
                    PODS,
                    pod["metadata"]["name"],
                    f"failed quota: {name}: must specify {key} for: {','.join(without)}",
                )


def used_by(resource: Resource, value: Obj) -> Amounts:
    """What an object uses, by the names that quotas have for it."""
    used: Amounts = {f"count/{resource.qualified}": Fraction(1)}
    if resource.qualified in _COUNTED:
        used[_COUNTED[resource.qualified]] = Fraction(1)
    if resource is PODS:
        if (value.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return {"count/pods": Fraction(1)}
        for name, most in asked(value["spec"]).items():
            used[f"requests.{name}"] = most
            if name in ("cpu", "memory", "ephemeral-storage"):
                used[name] = most
        for name, most in asked(value["spec"], "limits").items():
            used[f"limits.{name}"] = most
    return used


def usage(cluster: Cluster, namespace: str, keys: Amounts) -> Amounts:
    total: Amounts = {key: Fraction(0) for key in keys}
    kinds = {"pods"} if any(key != "secrets" for key in keys) else set()
    for key in keys:
        kinds.add(key.removeprefix("count/")) if key.startswith("count/") else None
        kinds.add(key) if key in _COUNTED else None
    for kind in kinds & set(BY_NAME):
        for each in cluster.store.all(BY_NAME[kind], namespace):
            more = used_by(BY_NAME[kind], each)
            add(total, {key: more[key] for key in more if key in total})
    return total

"""What a container sees of its pod: variables, and the files of its volumes. What is not there yet
keeps it from starting, with the kubelet's words for it."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.cloud.faces.kubernetes.cluster import Cluster
from tests.cloud.faces.kubernetes.quantities import amount
from tests.cloud.faces.kubernetes.resources import CLAIMS, CONFIGMAPS, SECRETS, Resource
from tests.cloud.faces.kubernetes.store import Obj

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_WRITTEN = ("secret", "configMap", "downwardAPI", "projected")


class NotYet(Exception):
    def __init__(self, reason: str, words: str, volume: str = "") -> None:
        super().__init__(words)
        self.reason, self.words, self.volume = reason, words, volume


class Sight:
    """`token` makes one for a service account."""

    def __init__(self, cluster: Cluster, token: Callable[[str, str], str]) -> None:
        self._cluster, self._store, self._token = cluster, cluster.store, token
        self.host, self.port = "127.0.0.1", 0
        self.authority = ""

    # -- variables ---------------------------------------------------------------------------------

    def environment(self, pod: Obj, container: Obj, address: str) -> dict[str, str]:
        meta = pod["metadata"]
        env = {
            "PATH": PATH,
            "HOSTNAME": hostname(pod),
            "HOME": "/",
            "KUBERNETES_SERVICE_HOST": self.host,
            "KUBERNETES_SERVICE_PORT": str(self.port),
            "KUBERNETES_SERVICE_PORT_HTTPS": str(self.port),
        }
        gpus = (container.get("resources") or {}).get("limits") or {}
        if "nvidia.com/gpu" in gpus:
            ids = [
                f"GPU-{meta['uid'][:8]}-{at}" for at in range(int(amount(gpus["nvidia.com/gpu"])))
            ]
            env["NVIDIA_VISIBLE_DEVICES"] = ",".join(ids)
        env |= self._cluster.dials.body_env
        for source in container.get("envFrom") or ():
            resource = SECRETS if "secretRef" in source else CONFIGMAPS
            ref = source.get("secretRef") or source.get("configMapRef") or {}
            found = self._named(resource, meta["namespace"], ref["name"], ref.get("optional"))
            for name, data in _data(found, resource).items():
                env[source.get("prefix", "") + name] = data.decode()
        for each in container.get("env") or ():
            value = self._variable(pod, container, each, env, address)
            if value is not None:
                env[each["name"]] = value
        return env

    def _variable(
        self, pod: Obj, container: Obj, each: Obj, env: Mapping[str, str], address: str
    ) -> str | None:
        source = each.get("valueFrom") or {}
        if "fieldRef" in source:
            return field(pod, source["fieldRef"]["fieldPath"], address)
        if "resourceFieldRef" in source:
            return _resource(source["resourceFieldRef"], container)
        for name, resource in (("secretKeyRef", SECRETS), ("configMapKeyRef", CONFIGMAPS)):
            if name in source:
                ref = source[name]
                namespace = pod["metadata"]["namespace"]
                found = self._named(resource, namespace, ref["name"], ref.get("optional"))
                data = _data(found, resource)
                if ref["key"] in data:
                    return data[ref["key"]].decode()
                if ref.get("optional"):
                    return None
                raise NotYet(
                    "CreateContainerConfigError",
                    f"couldn't find key {ref['key']} in {resource.kind} {namespace}/{ref['name']}",
                )
        return expanded(each.get("value") or "", env)

    def _named(self, resource: Resource, namespace: str, name: str, optional: Any) -> Obj | None:
        found = self._store.get(resource, namespace, name)
        if found is None and not optional:
            words = f'{resource.kind.lower()} "{name}" not found'
            raise NotYet("CreateContainerConfigError", words)
        return found

    # -- volumes -----------------------------------------------------------------------------------

    def files(self, pod: Obj, volume: Obj, address: str) -> dict[str, tuple[bytes, int]] | None:
        """What is written into a volume, with its mode; None for a volume that is empty."""
        sort = next((each for each in _WRITTEN if each in volume), None)
        if sort is None:
            claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            namespace = pod["metadata"]["namespace"]
            if claim and self._store.get(CLAIMS, namespace, claim) is None:
                words = f'persistentvolumeclaim "{claim}" not found'
                raise NotYet("FailedMount", words, volume["name"])
            return None
        source = volume[sort]
        mode = source.get("defaultMode", 0o644)
        if sort == "projected":
            found: dict[str, tuple[bytes, int]] = {}
            for each in source.get("sources") or ():
                inner = next(iter(each))
                found |= self._source(pod, inner, each[inner], mode, volume["name"], address)
            return found
        return self._source(pod, sort, source, mode, volume["name"], address)

    def _source(
        self, pod: Obj, sort: str, source: Obj, mode: int, volume: str, address: str
    ) -> dict[str, tuple[bytes, int]]:
        namespace = pod["metadata"]["namespace"]
        if sort == "downwardAPI":
            return {
                each["path"]: (self._downward(pod, each, address).encode(), each.get("mode", mode))
                for each in source.get("items") or ()
            }
        if sort == "serviceAccountToken":
            token = self._token(namespace, pod["spec"].get("serviceAccountName", "default"))
            return {source["path"]: (token.encode(), mode)}
        resource = SECRETS if sort == "secret" else CONFIGMAPS
        name = str(source.get("secretName") or source.get("name"))
        found = self._store.get(resource, namespace, name)
        if found is None:
            if source.get("optional"):
                return {}
            words = f'{resource.kind.lower()} "{name}" not found'
            raise NotYet("FailedMount", words, volume)
        data, items = _data(found, resource), source.get("items")
        if not items:
            return {each: (value, mode) for each, value in data.items()}
        for each in items:
            if each["key"] not in data and not source.get("optional"):
                words = f"references non-existent {resource.kind.lower()} key: {each['key']}"
                raise NotYet("FailedMount", words, volume)
        return {
            each["path"]: (data[each["key"]], each.get("mode", mode))
            for each in items
            if each["key"] in data
        }

    def _downward(self, pod: Obj, item: Obj, address: str) -> str:
        if "fieldRef" in item:
            return field(pod, item["fieldRef"]["fieldPath"], address)
        ref = item["resourceFieldRef"]
        of = next(
            each for each in pod["spec"]["containers"] if each["name"] == ref["containerName"]
        )
        return _resource(ref, of)

    def token_files(self, pod: Obj) -> dict[str, tuple[bytes, int]]:
        """Of its service account, where it is not told to do without."""
        spec, namespace = pod["spec"], pod["metadata"]["namespace"]
        name = spec.get("serviceAccountName", "default")
        wanted = spec.get("automountServiceAccountToken")
        if wanted is None:
            from tests.cloud.faces.kubernetes.resources import SERVICEACCOUNTS

            account = self._store.get(SERVICEACCOUNTS, namespace, name) or {}
            wanted = account.get("automountServiceAccountToken", True)
        if not wanted:
            return {}
        return {
            "token": (self._token(namespace, name).encode(), 0o644),
            "ca.crt": (self.authority.encode(), 0o644),
            "namespace": (namespace.encode(), 0o644),
        }

    def user(self, pod: Obj, container: Obj) -> tuple[int, int, list[int]]:
        """Who it runs as: user, group, further groups."""
        outer = pod["spec"].get("securityContext") or {}
        inner = container.get("securityContext") or {}
        uid = inner.get("runAsUser", outer.get("runAsUser"))
        if uid is None:
            users = self._cluster.dials.image_users
            uid = next((each for part, each in users.items() if part in container["image"]), 0)
        if uid == 0 and inner.get("runAsNonRoot", outer.get("runAsNonRoot")):
            words = "container has runAsNonRoot and image will run as root"
            raise NotYet("CreateContainerConfigError", words)
        gid = inner.get("runAsGroup", outer.get("runAsGroup"))
        groups = list(outer.get("supplementalGroups") or ())
        if outer.get("fsGroup") is not None:
            groups.append(outer["fsGroup"])
        return int(uid), int(gid or 0), groups


def hostname(pod: Obj) -> str:
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63]


def _data(value: Obj | None, resource: Resource) -> dict[str, bytes]:
    if value is None:
        return {}
    found = {}
    for name, text in (value.get("data") or {}).items():
        found[name] = base64.b64decode(text) if resource is SECRETS else str(text).encode()
    for name, text in (value.get("binaryData") or {}).items():
        found[name] = base64.b64decode(text)
    return found


def field(pod: Obj, path: str, address: str) -> str:
    meta = pod["metadata"]
    found = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if found:
        return str((meta.get(found[1]) or {}).get(found[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        table = meta.get(path.partition(".")[2]) or {}
        return "\n".join(f'{name}="{value}"' for name, value in sorted(table.items()))
    return str(
        {
            "metadata.name": meta["name"],
            "metadata.namespace": meta["namespace"],
            "metadata.uid": meta["uid"],
            "spec.nodeName": pod["spec"].get("nodeName", ""),
            "spec.serviceAccountName": pod["spec"].get("serviceAccountName", ""),
            "status.podIP": address,
            "status.podIPs": address,
            "status.hostIP": "127.0.0.1",
            "status.hostIPs": "127.0.0.1",
        }[path]
    )


def _resource(ref: Obj, container: Obj) -> str:
    part, _, name = ref["resource"].partition(".")
    value = ((container.get("resources") or {}).get(part) or {}).get(name, "0")
    divisor = amount(ref.get("divisor") or "1") or amount("1")
    return str(-(-amount(value) // divisor))


def expanded(text: str, env: Mapping[str, str]) -> str:
    """$(NAME); $$(NAME) is meant as it stands, and so are names that nobody knows."""
    return re.sub(
        r"\$(\$)?\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)",
        lambda found: found[0][1:] if found[1] else env.get(found[2], found[0]),
        text,
    )

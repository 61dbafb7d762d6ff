"""The objects that setup makes in a cluster. Pure: what is shown, made and printed is the same."""

from __future__ import annotations

from typing import Any, NamedTuple

from tradewind.providers.kubernetes import labels, rights
from tradewind.providers.kubernetes.footprint import Cluster
from tradewind.providers.kubernetes.wish import Wish

Object = dict[str, Any]
CONTROLLER = "tradewind-controller"


class Thing(NamedTuple):
    what: str
    """For people."""
    object: Object
    folder: str
    """Where objects of its kind lie."""
    group: str
    resource: str
    needed: bool = True
    """Nothing can be run without it; else its lack is said."""
    why: str = ""
    with_role: bool = False
    """It is made where a Role is, and only there."""

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}"


def things(wish: Wish, cluster: Cluster, owner: str) -> list[Thing]:
    """In the order in which they are made."""
    space = cluster.namespace
    core = f"/api/v1/namespaces/{space}"
    found = [
        Thing("namespace", _namespace(cluster, owner), "/api/v1/namespaces", "", "namespaces"),
        Thing(
            "service account",
            _service_account(
                cluster.service_account,
                space,
                owner,
                {**wish.annotations, labels.used_by(owner): "runs"},
            ),
            f"{core}/serviceaccounts",
            "",
            "serviceaccounts",
            why="whom pods run as; it has no rights in the cluster",
        ),
        Thing(
            "network policy",
            _network_policy(space, owner),
            f"/apis/networking.k8s.io/v1/namespaces/{space}/networkpolicies",
            "networking.k8s.io",
            "networkpolicies",
            needed=False,
            why="others of the cluster can reach what pods listen on",
        ),
    ]
    found += _for_controllers(wish, cluster, owner)
    if wish.hard:
        quota = _meta("ResourceQuota", "v1", "tradewind", space, owner)
        found.append(
            Thing(
                "quota",
                quota | {"spec": {"hard": wish.hard}},
                f"{core}/resourcequotas",
                "",
                "resourcequotas",
            )
        )
    return found


def _for_controllers(wish: Wish, cluster: Cluster, owner: str) -> list[Thing]:
    """A Role with what controllers ask for, for whoever is to have no more: a service account for
    one that runs in the cluster. Whoever sets up has these rights already."""
    space = cluster.namespace
    rbac = f"/apis/{rights.RBAC}/v1"
    why = "only for controllers that run in the cluster, or as others than you"
    account = _service_account(CONTROLLER, space, owner, {})
    account["automountServiceAccountToken"] = True
    role = _meta("Role", f"{rights.RBAC}/v1", CONTROLLER, space, owner)
    role["rules"] = rules(cluster)
    binding = _binding("RoleBinding", "Role", CONTROLLER, space, owner)
    binding["metadata"]["namespace"] = space
    inside = f"{rbac}/namespaces/{space}"
    accounts = f"/api/v1/namespaces/{space}/serviceaccounts"
    found = [
        Thing("controllers' account", account, accounts, "", "serviceaccounts", False, why, True),
        Thing("role", role, f"{inside}/roles", rights.RBAC, "roles", False, why),
        Thing(
            "role binding",
            binding,
            f"{inside}/rolebindings",
            rights.RBAC,
            "rolebindings",
            False,
            why,
        ),
    ]
    if wish.read_nodes:
        named = f"{CONTROLLER}-{owner[:8]}"
        whole = _meta("ClusterRole", f"{rights.RBAC}/v1", named, "", owner)
        whole["rules"] = rights.rules(rights.CLUSTER)
        bound = _binding("ClusterRoleBinding", "ClusterRole", named, space, owner)
        why = "nodes cannot be read by controllers in the cluster"
        found += [
            Thing(
                "cluster role",
                whole,
                f"{rbac}/clusterroles",
                rights.RBAC,
                "clusterroles",
                False,
                why,
            ),
            Thing(
                "cluster role binding",
                bound,
                f"{rbac}/clusterrolebindings",
                rights.RBAC,
                "clusterrolebindings",
                False,
                why,
            ),
        ]
    return found


def rules(cluster: Cluster) -> list[Object]:
    return rights.rules((*rights.of(cluster), *rights.SEEN))


def _meta(kind: str, version: str, name: str, namespace: str, owner: str) -> Object:
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = {labels.MANAGED: labels.OURS, labels.OWNER: owner}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _namespace(cluster: Cluster, owner: str) -> Object:
    """What is in it must be as harmless as our pods are."""
    made = _meta("Namespace", "v1", cluster.namespace, "", owner)
    if not cluster.host_network:
        made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    return made


def _service_account(name: str, namespace: str, owner: str, annotations: Object) -> Object:
    made = _meta("ServiceAccount", "v1", name, namespace, owner)
    if annotations:
        made["metadata"]["annotations"] = annotations
    made["automountServiceAccountToken"] = False
    return made


def _network_policy(namespace: str, owner: str) -> Object:
    """Pods of the store's runs let each other in, and nobody else; they may go anywhere."""

    def ours() -> Object:
        return {"matchLabels": {labels.OWNER: owner}}

    made = _meta(
        "NetworkPolicy", "networking.k8s.io/v1", f"tradewind-{owner[:8]}", namespace, owner
    )
    return made | {
        "spec": {
            "podSelector": ours(),
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [{"podSelector": ours()}]}],
            "egress": [{}],
        }
    }


def _binding(kind: str, role: str, name: str, namespace: str, owner: str) -> Object:
    made = _meta(kind, f"{rights.RBAC}/v1", name, "", owner)
    return made | {
        "roleRef": {"apiGroup": rights.RBAC, "kind": role, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": namespace}],
    }


def printed(several: list[Thing]) -> str:
    """For `kubectl apply -f -`."""
    import yaml

    for each in several:
        if each.what == "namespace":  # it may be there, and then is nobody's to remove
            del each.object["metadata"]["labels"][labels.OWNER]
    parts = [yaml.safe_dump(each.object, sort_keys=False, width=100) for each in several]
    return "---\n".join(parts)

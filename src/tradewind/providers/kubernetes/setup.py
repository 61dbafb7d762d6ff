"""`tradewind setup kubernetes` and `teardown`: for each context a namespace's objects, looked at,
shown, and made as they were shown. Rights in one namespace are enough; what is optional and may not
be made is said, with what its lack means."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from tradewind.base.errors import InvalidValue, NoAccess, NotFound
from tradewind.base.units import format_names
from tradewind.model import buckets
from tradewind.providers.changes import Line, Prepared
from tradewind.providers.kubernetes import asking, labels, login, rights, things
from tradewind.providers.kubernetes.client import Client, paths, selector
from tradewind.providers.kubernetes.footprint import Cluster, Footprint, setup_command
from tradewind.providers.kubernetes.offers import look
from tradewind.providers.kubernetes.offers.quantities import amount
from tradewind.providers.kubernetes.things import Object, Thing
from tradewind.providers.kubernetes.troubles import Exists
from tradewind.providers.kubernetes.wish import (
    NAMESPACE,
    SERVICE_ACCOUNT,
    Wish,
    gbps,
    grace_s,
    named,
)


class Look:
    """At clusters."""

    store_env: Mapping[str, str] | None = {}
    """The store is opened as anywhere else; it must be there."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._owner = labels.owner_of(wish.store_url)

    def prepared(self, known: Footprint | None) -> Prepared[Footprint]:
        clusters = dict(known.clusters) if known else {}
        lines: list[Line] = []
        for context in self._contexts(clusters):
            name = named(context, clusters)
            client = Client(context)
            cluster = self._cluster(client, context, clusters.get(name))
            clusters[name] = cluster
            lines += self._lines(client, name, cluster)
        home = buckets.home(self._wish.store_url) or ""
        region = self._wish.bucket_region or (known.bucket_region if known else "")
        record = Footprint(clusters=clusters, bucket_provider=_home(home), bucket_region=region)
        return Prepared(lines, record.account, lambda: record)

    def _contexts(self, clusters: Mapping[str, Cluster]) -> list[str]:
        """Those that are asked for; else those that are set up; else the kubeconfig's own."""
        if self._wish.contexts:
            return ["" if c == login.IN_CLUSTER else c for c in self._wish.contexts]
        if clusters:
            return [each.context for each in clusters.values()]
        contexts, current = login.contexts()
        if current:
            return [current]
        if login.in_cluster():
            return [""]
        raise NotFound(
            "no cluster is named"
            + ("" if contexts else f", and there is no kubeconfig at {login.path()}"),
            hint=f"{setup_command(self._wish.store_url)};"
            + (f" contexts: {format_names(contexts, 8)}" if contexts else " KUBECONFIG names one"),
        )

    # -- one cluster -------------------------------------------------------------------------------

    def _cluster(self, client: Client, context: str, before: Cluster | None) -> Cluster:
        wish = self._wish
        old = before or Cluster(
            context=context,
            server=client.server,
            namespace=NAMESPACE,
            service_account=SERVICE_ACCOUNT,
        )
        whose, _, _ = wish.identity.partition(":")
        claim, _, path = wish.volume.partition(":")
        made = replace(
            old,
            server=client.server,
            namespace=wish.namespace or old.namespace,
            service_account=wish.service_account or old.service_account,
            jobset=wish.jobset or old.jobset,
            queue=wish.queue or old.queue,
            priority=wish.priority or old.priority,
            volcano=wish.volcano or old.volcano,
            gates=wish.gates or old.gates,
            image=wish.image or old.image,
            python_image=wish.python_image or old.python_image,
            identity_of=whose or ("" if wish.store_secret or wish.volume else old.identity_of),
            store_secret=wish.store_secret or ("" if wish.identity else old.store_secret),
            volume=claim or old.volume,
            volume_path=path or old.volume_path,
            grace_s=grace_s(wish.grace) or old.grace_s,
            host_network=wish.host_network or old.host_network,
            rdma=wish.rdma or old.rdma,
            topology=wish.topology or old.topology,
            interfaces=wish.interfaces or old.interfaces,
            accelerators=wish.accelerator or old.accelerators,
            tolerate=wish.tolerate or old.tolerate,
            network_gbps=gbps(wish.network) or old.network_gbps,
        )
        for other in ("queue", "volcano"):
            if made.gates and getattr(made, other):
                raise InvalidValue(
                    f"--gates and --{other}: either holds a run's pods back until all of them fit",
                    hint="leave --gates out; or start anew: tradewind teardown kubernetes --store"
                    f" {wish.store_url}",
                )
        made = replace(made, identity=self._identity(made))
        return self._seen(client, made)

    def _identity(self, made: Cluster) -> str:
        folder = self._wish.store_url.startswith("file:")
        if folder and not made.volume:
            raise InvalidValue(
                f"pods cannot reach {self._wish.store_url}: no volume that has it is named",
                hint="--volume CLAIM:/PATH mounts a PersistentVolumeClaim of all nodes there; or"
                " keep runs in a bucket",
            )
        if folder:
            return "volume"
        if made.store_secret:
            return "secret"
        return "workload" if made.identity_of else ""

    def _seen(self, client: Client, made: Cluster) -> Cluster:
        """With what its nodes tell of whose it is."""
        nodes = look.look(client, "", made).nodes
        if nodes is None:
            return replace(made, nodes=False)
        kinds = [node for node in nodes if node.kind]
        places = [node.region for node in nodes if node.region]
        return replace(
            made,
            nodes=True,
            kind=kinds[0].kind if kinds else made.kind,
            provider=kinds[0].provider if kinds else made.provider,
            region=places[0] if places else made.region,
        )

    def _lines(self, client: Client, name: str, cluster: Cluster) -> list[Line]:
        space = cluster.namespace
        there = asking.read(client, f"/api/v1/namespaces/{space}", "looking for the namespace")
        if there and (there.get("metadata") or {}).get("deletionTimestamp"):
            raise InvalidValue(
                f"namespace {space} of {name} is being deleted", hint="try again when it is gone"
            )
        lines = []
        for thing in things.things(self._wish, cluster, self._owner):
            if thing.what == "namespace":
                line = self._namespace(client, name, thing, there)
            else:
                line = self._line(client, name, thing, space)
            lines.append(line)
        self._check_rights(client, name, cluster)
        return [*lines, *self._remarks(client, name, cluster)]

    def _namespace(self, client: Client, name: str, thing: Thing, there: Object | None) -> Line:
        if there is not None:
            return Line("namespace", thing.name, name, there=True, remark="it is left as it is")
        if asking.may(client, "create", "", "namespaces"):
            line = Line("namespace", thing.name, name, there=False)
            line.add("make it", partial(_make, client, thing))
            return line
        # It may be there all the same: who has rights in one namespace need not see it.
        if not asking.may(client, "create", "batch", "jobs", thing.name):
            raise self._no_access(
                name, thing.name, f"{client.shown} may not use namespace {thing.name}"
            )
        return Line("namespace", thing.name, name, there=True, remark="as far as we may see")

    def _line(self, client: Client, name: str, thing: Thing, space: str) -> Line:
        inside = "" if thing.resource.startswith("cluster") else space
        there = asking.read(client, thing.path, f"looking for the {thing.what}")
        line = Line(thing.what, thing.name, name, there=there is not None)
        if there is not None:
            differs = _differs(thing, there)
            if not differs:
                return line
            if not asking.may(client, "patch", thing.group, thing.resource, inside, thing.name):
                line.remark = f"it differs, and may not be changed: {differs}"
                return line
            line.add(f"change {differs}", partial(_change, client, thing))
            return line
        # An account for controllers is of no use without its Role.
        group, kind = (rights.RBAC, "roles") if thing.with_role else (thing.group, thing.resource)
        if asking.may(client, "create", group, kind, inside):
            line.add(_words(thing), partial(_make, client, thing))
            return line
        if thing.needed:
            raise self._no_access(
                name, space, f"{client.shown} may not create {thing.resource} in {space}"
            )
        line.remark = f"not made, since it may not be: {thing.why}"
        return line

    def _check_rights(self, client: Client, name: str, cluster: Cluster) -> None:
        lacking = asking.lacking(client, rights.of(cluster), cluster.namespace)
        if lacking:
            raise self._no_access(
                name,
                cluster.namespace,
                f"{client.shown} may not {format_names(lacking, 4)} in namespace"
                f" {cluster.namespace}",
            )

    def _no_access(self, name: str, space: str, words: str) -> NoAccess:
        wish = self._wish
        contexts = wish.contexts or (name,)
        return NoAccess(
            words,
            hint="whoever runs the cluster makes what is needed by `"
            f"{setup_command(wish.store_url, *contexts)} --namespace {space} --print yaml |"
            " kubectl apply -f -`; --namespace names another",
        )

    # -- what else there is ------------------------------------------------------------------------

    def _remarks(self, client: Client, name: str, cluster: Cluster) -> list[Line]:
        lines = [self._nodes(client, name, cluster)]
        if cluster.gates:
            self._check_gates(client, name)
        there = asking.installed(client)
        for wanted, what, flag in (
            (bool(cluster.queue), "kueue", "--queue"),
            (cluster.jobset, "jobset", "--jobset"),
            (cluster.volcano, "volcano", "--volcano"),
        ):
            if wanted and what not in there:
                raise NotFound(
                    f"{flag}: {what} is not installed in {name}",
                    hint=f"install it there, or leave {flag} out",
                )
            if not wanted and what in there:
                line = Line(what, "", name, there=True, remark=f"not used: {flag} does")
                if what == "kueue" and (queues := asking.queues(client, cluster.namespace)):
                    line.remark = f"not used: --queue {' or '.join(queues)} does"
                lines.append(line)
        if cluster.queue:
            queues = asking.queues(client, cluster.namespace)
            if cluster.queue not in queues:
                raise NotFound(
                    f"namespace {cluster.namespace} of {name} has no LocalQueue {cluster.queue}",
                    hint=f"there: {format_names(queues, 8)}" if queues else "it has none",
                    choices=queues,
                )
            lines.append(Line("queue", cluster.queue, name, there=True))
        lines += self._named(client, name, cluster)
        return lines

    def _check_gates(self, client: Client, name: str) -> None:
        """Whoever opens gates must know what is free."""
        if lacking := asking.lacking(client, rights.CLUSTER[:2]):
            raise NoAccess(
                f"--gates: {client.shown} may not {format_names(lacking, 2)} in all of {name}, and"
                " so cannot know when all pods of a run fit",
                hint="leave --gates out: pods that have no room give back what they hold; or ask"
                " whoever runs the cluster for these rights",
            )

    def _nodes(self, client: Client, name: str, cluster: Cluster) -> Line:
        sight = look.look(client, name, cluster)
        if sight.nodes is None:
            told = ", ".join(cluster.accelerators)
            return Line(
                "nodes",
                told,
                name,
                there=bool(told),
                remark="they may not be read; runs are planned by what --accelerator has told"
                if told
                else "they may not be read: --accelerator NAME:COUNT tells what they have",
            )
        whole = sorted({each.name for each in sight.shapes if each.asked == each.chip.number})
        remark = "; ".join(sight.warnings)
        if not whole:
            remark = remark or "none has an accelerator that pods can ask for"
        return Line("nodes", format_names(whole, 3), name, there=bool(whole), remark=remark)

    def _named(self, client: Client, name: str, cluster: Cluster) -> list[Line]:
        """What setup was told of and does not make."""
        core = f"/api/v1/namespaces/{cluster.namespace}"
        lines = []
        if cluster.identity == "secret":
            path = f"{core}/secrets/{cluster.store_secret}"
            lines.append(
                self._must_be(
                    client,
                    name,
                    "secret",
                    cluster.store_secret,
                    path,
                    ("secrets", cluster.namespace),
                    f"kubectl -n {cluster.namespace} create secret generic {cluster.store_secret}"
                    " --from-literal=AWS_ACCESS_KEY_ID=… --from-literal=AWS_SECRET_ACCESS_KEY=…",
                )
            )
        if cluster.volume:
            path = f"{core}/persistentvolumeclaims/{cluster.volume}"
            lines.append(
                self._must_be(
                    client,
                    name,
                    "volume claim",
                    cluster.volume,
                    path,
                    ("persistentvolumeclaims", cluster.namespace),
                    "make one that all nodes can mount at once (ReadWriteMany)",
                )
            )
        return lines

    def _must_be(
        self,
        client: Client,
        cluster: str,
        what: str,
        name: str,
        path: str,
        kind: tuple[str, str],
        hint: str,
    ) -> Line:
        if asking.read(client, path, f"looking for the {what}") is not None:
            return Line(what, name, cluster, there=True)
        if asking.may(client, "get", "", *kind, name):
            raise NotFound(f"namespace {kind[1]} of {cluster} has no {what} {name}", hint=hint)
        return Line(what, name, cluster, there=True, remark="taken for granted: it may not be read")

    # -- teardown ----------------------------------------------------------------------------------

    def removed(self, known: Footprint | None, *, delete_store: bool) -> list[Line]:
        if delete_store:
            raise InvalidValue(
                "the store is not the cluster's", hint="teardown of its own cloud deletes a bucket"
            )
        lines: list[Line] = []
        for name, cluster in (known.clusters if known else {}).items():
            client = Client(cluster.context, server=cluster.server)
            self._refuse_while_up(client, name, cluster)
            lines += self._remaining(client, name, cluster)
        return lines

    def _refuse_while_up(self, client: Client, name: str, cluster: Cluster) -> None:
        ours = selector(labels.of_owner(self._owner))
        jobs = client.all(
            paths(cluster.namespace)["jobs"], Object, "listing Jobs of this store", labels=ours
        )
        up = [str(job["metadata"]["name"]) for job in jobs if not _is_over(job)]
        if up:
            raise InvalidValue(
                f"Jobs of {self._wish.store_url} are up in {name}: {format_names(up, 4)}",
                hint=f"tradewind sweep --store {self._wish.store_url} ends what no run claims",
            )

    def _remaining(self, client: Client, name: str, cluster: Cluster) -> list[Line]:
        """By their labels, whatever they are called; those with rights in them first."""
        wish = replace(self._wish, read_nodes=True, quota=("pods=1",))
        lines = []
        for thing in reversed(things.things(wish, cluster, self._owner)):
            there = asking.read(client, thing.path, f"looking for the {thing.what}")
            if there is None or not self._is_ours(there):
                continue
            line = Line(thing.what, thing.name, name, there=True)
            if thing.what == "namespace":
                if others := _others(client, cluster.namespace, self._owner):
                    line.remark = f"it stays: there are {format_names(others, 4)} in it"
                else:
                    line.add("remove it", partial(_remove, client, thing))
            else:
                line.add("remove it", partial(_remove, client, thing))
            lines.append(line)
        return lines

    def _is_ours(self, there: Object) -> bool:
        bears = (there.get("metadata") or {}).get("labels") or {}
        return bool(
            bears.get(labels.MANAGED) == labels.OURS and bears.get(labels.OWNER) == self._owner
        )


def _home(home: str) -> str:
    """Whose the bucket is; "" for one of a server like S3: it has its own prices, or none."""
    import os

    from tradewind.store.handles import endpoint_of

    schemes = {each.home: scheme for scheme, each in buckets.STORES.items()}
    return "" if home and endpoint_of(schemes[home], os.environ) else home


def _words(thing: Thing) -> str:
    if thing.what == "network policy":
        return "let pods of this store's runs in, and nobody else; out, anywhere"
    if thing.what == "service account" and (notes := thing.object["metadata"].get("annotations")):
        return "make it, known as " + ", ".join(notes.values())
    if thing.what == "quota":
        hard = thing.object["spec"]["hard"]
        return "limit the namespace to " + ", ".join(f"{v} of {k}" for k, v in hard.items())
    if thing.what in ("role", "cluster role"):
        return "allow " + ", ".join(
            f"{'/'.join(rule['verbs'])} {rule['resources'][0]}" for rule in thing.object["rules"]
        )
    return "make it"


def _differs(thing: Thing, there: Object) -> str:
    """In words, what it has not of what it should have; "": nothing."""
    notes = (there.get("metadata") or {}).get("annotations") or {}
    wanted = thing.object["metadata"].get("annotations") or {}
    lacks = {name: value for name, value in wanted.items() if notes.get(name) != value}
    if identity := [value for name, value in lacks.items() if not labels.is_used_by(name)]:
        return "its identity to " + ", ".join(identity)
    if lacks:
        return "its notes, to say that pods of this store run as it"
    if "rules" in thing.object and there.get("rules") != thing.object["rules"]:
        return "its rules to what is used"
    if thing.what == "quota":
        hard = (there.get("spec") or {}).get("hard") or {}
        # The API server writes amounts its own way: 1024Gi is 1Ti to it.
        same = _amounts(hard) == _amounts(thing.object["spec"]["hard"])
        return "" if same else "its limits"
    return ""


def _amounts(hard: Mapping[str, str]) -> dict[str, float]:
    return {name: amount(text) for name, text in hard.items()}


def _make(client: Client, thing: Thing) -> None:
    with suppress(Exists):  # somebody else has just made it, or we could not see it
        client.create(thing.folder, thing.object, Object, f"making the {thing.what} {thing.name}")


def _change(client: Client, thing: Thing) -> None:
    changed: Object = {"metadata": {"annotations": thing.object["metadata"].get("annotations")}}
    if not changed["metadata"]["annotations"]:
        changed = {}
    for name in ("rules", "spec"):
        if name in thing.object:
            changed[name] = thing.object[name]
    client.patch(thing.path, changed, Object, f"changing the {thing.what} {thing.name}")


def _remove(client: Client, thing: Thing) -> None:
    client.delete(thing.path, f"removing the {thing.what} {thing.name}")


def _is_over(job: Object) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(
        each.get("type") in ("Complete", "Failed") and each.get("status") == "True"
        for each in conditions
    )


def _others(client: Client, namespace: str, owner: str) -> list[str]:
    """What is in a namespace besides, that somebody would miss."""
    core = f"/api/v1/namespaces/{namespace}"
    found = []
    for kind in ("pods", "persistentvolumeclaims", "secrets", "configmaps", "services"):
        there: list[Any] = asking.listed(client, f"{core}/{kind}", f"listing {kind}") or []
        for each in there:
            metadata = each.get("metadata") or {}
            if (metadata.get("labels") or {}).get(labels.OWNER) == owner:
                continue
            if metadata.get("name") != "kube-root-ca.crt":  # in every namespace
                found.append(f"{kind.removesuffix('s')} {metadata.get('name')}")
    return found


def printed(wish: Wish) -> str:
    """Without asking any cluster: whoever prints it need not be who applies it."""
    cluster = Cluster(
        context="",
        server="",
        namespace=wish.namespace or NAMESPACE,
        service_account=wish.service_account or SERVICE_ACCOUNT,
        jobset=wish.jobset,
        queue=wish.queue,
        volcano=wish.volcano,
        gates=wish.gates,
        host_network=wish.host_network,
    )
    return things.printed(things.things(wish, cluster, labels.owner_of(wish.store_url)))

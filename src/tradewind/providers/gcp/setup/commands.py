"""The same things as a script of gcloud commands, for those who would rather read them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from tradewind.providers.gcp.setup.bucket import spelled
from tradewind.providers.gcp.setup.nets import Network
from tradewind.providers.gcp.setup.things import Bucket, Things


def rendered(things: Things) -> str:
    return (
        "#!/bin/sh\n"
        f"# What machines of {things.store_url} need, made once: a command whose thing is there\n"
        "# already fails. `tradewind setup gcp` finds it afterwards, adds what is missing, and\n"
        "# writes down that it is there.\n"
        "set -eu\n"
        "folder=$(mktemp -d)\n\n" + "\n".join(_lines(things)) + "\n"
    )


def _lines(things: Things) -> Iterator[str]:
    project = f"--project={things.project}"
    yield _command("gcloud services enable", *things.services, project)
    yield ""
    bucket = ""
    if things.bucket is not None:
        bucket = f"gs://{things.bucket.name}"
        yield from _bucket(things.bucket, project)
        yield ""
    yield _command(
        f"gcloud iam service-accounts create {things.account.id}",
        project,
        f"--display-name={things.account.display}",
        f"--description={things.account.description}",
    )
    for role in things.roles:
        yield _command(
            f"gcloud iam roles create {role.id}",
            project,
            f"--title={role.title}",
            f"--description={role.description}",
            f"--permissions={','.join(role.permissions)}",
            "--stage=GA",
        )
    for grant in things.grants:
        yield _file(grant.role, {"title": grant.title, "expression": grant.condition})
        where = (
            f"storage buckets add-iam-policy-binding {bucket}"
            if grant.on == "bucket"
            else f"projects add-iam-policy-binding {things.project}"
        )
        yield _command(
            f"gcloud {where}",
            f"--member=serviceAccount:{things.account.email}",
            f"--role=projects/{things.project}/roles/{grant.role}",
        ) + _from("--condition-from-file", grant.role)
    yield ""
    for network in things.networks:
        yield from _network(network, project)


def _bucket(wanted: Bucket, project: str) -> Iterator[str]:
    called = f"gs://{wanted.name}"
    yield _command(
        f"gcloud storage buckets create {called}",
        project,
        f"--location={wanted.location}",
        "--uniform-bucket-level-access",
        "--public-access-prevention",
    )
    yield _file("lifecycle", {"rule": [spelled(rule) for rule in wanted.rules]})
    labels = ",".join(f"{key}={value}" for key, value in wanted.labels.items())
    yield _command(
        f"gcloud storage buckets update {called}",
        "--versioning",
        "--clear-soft-delete",
        f"--update-labels={labels}",
    ) + _from("--lifecycle-file", "lifecycle")


def _network(wanted: Network, project: str) -> Iterator[str]:
    kind = [
        f"--network-profile={wanted.profile}" if wanted.profile else "--bgp-routing-mode=regional"
    ]
    if wanted.mtu:
        kind.append(f"--mtu={wanted.mtu}")
    yield _command(
        f"gcloud compute networks create {wanted.name}",
        project,
        "--subnet-mode=custom",
        *kind,
        f"--description={wanted.description}",
    )
    for subnet in wanted.subnets:
        yield _command(
            f"gcloud compute networks subnets create {subnet.name}",
            project,
            f"--network={wanted.name}",
            f"--region={subnet.region}",
            f"--range={subnet.range}",
            *(["--enable-private-ip-google-access"] if subnet.private_access else []),
            f"--description={subnet.description}",
        )
    for rule in wanted.firewalls:
        allowed = f"{rule.protocol}:{','.join(rule.ports)}" if rule.ports else rule.protocol
        yield _command(
            f"gcloud compute firewall-rules create {rule.name}",
            project,
            f"--network={wanted.name}",
            "--direction=INGRESS",
            f"--source-ranges={','.join(rule.sources)}",
            f"--allow={allowed}",
            f"--description={rule.description}",
        )


def _command(first: str, *words: str) -> str:
    return " \\\n  ".join([first, *map(shlex.quote, words)])


def _from(flag: str, file: str) -> str:
    return f' \\\n  {flag}="$folder/{file}.json"'


def _file(name: str, content: object) -> str:
    text = json.dumps(content, indent=2)
    return f"cat > \"$folder/{name}.json\" <<'END'\n{text}\nEND"

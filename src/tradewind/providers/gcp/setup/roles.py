"""Who may do what: custom roles with exactly the permissions that are used, and where each is
granted. Plain data.

IAM knows the service account of machines, not the run that a machine is of. So machines of one
store can read each other's runs, and write where machines write; no machine can touch a journal, a
mark of a live run, a bundle, a kit or the record of what is set up. Who must not trust each other
take a store each. Overwriting an object of Cloud Storage needs the right to delete it, so whatever
machines write they can delete; older versions are kept for a while (things.py).

Conditions are on names of objects. `extract("a/{x}/b/")` takes what stands between the first `a/`
and the next `/b/`, slashes among it, and is "" where there is no such part. IAM takes twelve
operators in a condition.
"""

from __future__ import annotations

from msgspec import Struct

from tradewind.model.places import WRITTEN_BY_MACHINES
from tradewind.providers.gcp.footprint import PREFIX, bucket_of, digest, is_home, name

NEVER_WRITTEN = ("journal", "volumes", "job")
"""Of runs: `runs/x/journal/logs/y` is no log."""

MOST_OPERATORS = 12


class Role(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    description: str
    permissions: tuple[str, ...]
    words: str = ""
    """What it is for, in a few."""


class Grant(Struct, frozen=True, kw_only=True):
    """Of a role to the machines' service account."""

    role: str
    """Its id."""
    on: str
    """`bucket` or `project`."""
    title: str
    condition: str


READ = ("storage.objects.get", "storage.objects.list")
WRITE = (
    "storage.multipartUploads.abort",
    "storage.multipartUploads.create",
    "storage.objects.create",
    "storage.objects.delete",
)
SECRETS = ("secretmanager.versions.access",)

TPU = (
    "tpu.acceleratortypes.list",
    "tpu.nodes.create",
    "tpu.nodes.delete",
    "tpu.nodes.get",
    "tpu.nodes.list",
    "tpu.operations.get",
    "tpu.operations.list",
)
"""Queued resources have none of their own: roles/tpu.admin has no more than these for them."""
RUNNER = (
    "cloudquotas.quotas.get",
    "compute.acceleratorTypes.list",
    "compute.disks.create",
    "compute.disks.setLabels",
    "compute.firewalls.list",
    "compute.globalOperations.list",
    "compute.images.getFromFamily",
    "compute.images.useReadOnly",
    "compute.instances.create",
    "compute.instances.delete",
    "compute.instances.get",
    "compute.instances.list",
    "compute.instances.setLabels",
    "compute.instances.setMetadata",
    "compute.instances.setServiceAccount",
    "compute.machineTypes.list",
    "compute.networks.get",
    "compute.projects.get",
    "compute.regionOperations.get",
    "compute.regionOperations.list",
    "compute.regions.list",
    "compute.reservations.list",
    "compute.resourcePolicies.create",
    "compute.resourcePolicies.delete",
    "compute.resourcePolicies.list",
    "compute.resourcePolicies.use",
    "compute.subnetworks.get",
    "compute.subnetworks.use",
    "compute.subnetworks.useExternalIp",
    "compute.zoneOperations.get",
    "compute.zoneOperations.list",
    "compute.zones.list",
    "resourcemanager.projects.get",
    "serviceusage.quotas.get",
    "serviceusage.services.get",
    "serviceusage.services.use",
    *TPU,
)
"""Of the project, for whoever looks after runs: `run`, `watch`, `sweep`, `doctor`."""
STORE = (
    "storage.multipartUploads.abort",
    "storage.multipartUploads.create",
    "storage.objects.create",
    "storage.objects.delete",
    "storage.objects.get",
    "storage.objects.list",
)
"""Of the bucket, for the same."""
ACT = ("iam.serviceAccounts.actAs", "iam.serviceAccounts.get", "iam.serviceAccounts.signBlob")
"""Of the machines' service account, for the same: machines are given it, and links are signed by
it. Not getAccessToken: who runs jobs need not be a machine."""
SHELL = ("compute.instances.get", "compute.projects.get", "iap.tunnelInstances.accessViaIAP")

SETTER = (
    "compute.firewalls.create",
    "compute.firewalls.delete",
    "compute.firewalls.get",
    "compute.firewalls.list",
    "compute.firewalls.update",
    "compute.globalOperations.get",
    "compute.images.getFromFamily",
    "compute.instances.list",
    "compute.networkProfiles.list",
    "compute.networks.create",
    "compute.networks.delete",
    "compute.networks.list",
    "compute.networks.updatePolicy",
    "compute.regionOperations.get",
    "compute.regions.list",
    "compute.subnetworks.create",
    "compute.subnetworks.delete",
    "compute.subnetworks.list",
    "compute.subnetworks.setPrivateIpGoogleAccess",
    "iam.roles.create",
    "iam.roles.delete",
    "iam.roles.get",
    "iam.roles.undelete",
    "iam.roles.update",
    "iam.serviceAccounts.create",
    "iam.serviceAccounts.delete",
    "iam.serviceAccounts.get",
    "resourcemanager.projects.get",
    "resourcemanager.projects.getIamPolicy",
    "resourcemanager.projects.setIamPolicy",
    "serviceusage.operations.get",
    "serviceusage.services.enable",
    "serviceusage.services.get",
    "storage.buckets.create",
    "storage.buckets.delete",
    "storage.buckets.get",
    "storage.buckets.getIamPolicy",
    "storage.buckets.setIamPolicy",
    "storage.buckets.update",
    "storage.objects.create",
    "storage.objects.delete",
    "storage.objects.get",
    "storage.objects.list",
    "tpu.nodes.list",
)
"""Of the project, for whoever runs `setup gcp` and `teardown gcp`. Whoever may set the project's
policy may have everything in it."""


def base(store_url: str) -> str:
    """What the ids of all roles of a store begin with: they take no hyphen."""
    return name(store_url).replace("-", "_")


def machines(store_url: str) -> tuple[Role, ...]:
    """What machines may: each is granted for itself, since a condition is of a grant. In another
    cloud's bucket, what their passes allow."""
    secrets = _role(store_url, "secrets", "secrets of jobs", SECRETS)
    if not is_home(store_url):
        return (secrets,)
    return (
        _role(store_url, "read", "what machines read", READ),
        _role(store_url, "write", "what machines write", WRITE),
        secrets,
    )


def users(store_url: str) -> tuple[Role, ...]:
    """What whoever looks after runs may: on the project, the bucket, the service account."""
    whole = (
        _role(store_url, "", "to run Tradewind, of the project", RUNNER),
        _role(store_url, "store", "to run Tradewind, of the bucket", STORE),
        _role(store_url, "act", "to run Tradewind, of the service account", ACT),
    )
    return whole if is_home(store_url) else (whole[0], whole[2])


def _role(store_url: str, last: str, words: str, permissions: tuple[str, ...]) -> Role:
    return Role(
        id=base(store_url) + (f"_{last}" if last else ""),
        title=f"Tradewind {digest(store_url, 10)} {last or 'run'}",
        description=f"{store_url}: {words}",
        permissions=permissions,
        words=words,
    )


def grants(store_url: str) -> tuple[Grant, ...]:
    secrets = Grant(
        role=f"{base(store_url)}_secrets",
        on="project",
        title=f"{PREFIX}secrets-{digest(store_url, 10)}",
        condition=f'resource.name.extract("/secrets/{secrets_prefix(store_url)}{{rest}}") != ""',
    )
    return (*_of_bucket(store_url), secrets) if is_home(store_url) else (secrets,)


def _of_bucket(store_url: str) -> tuple[Grant, ...]:
    bucket, prefix = bucket_of(store_url)
    whole, inside = f"projects/_/buckets/{bucket}", f"projects/_/buckets/{bucket}/objects/{prefix}"
    read = [f'resource.name.startsWith("{inside}{each}/")' for each in ("runs", "kits")]
    write = [_below(prefix, each) + ' != ""' for each in WRITTEN_BY_MACHINES]
    never = [_below(prefix, each) + ' == ""' for each in NEVER_WRITTEN]
    here = f'resource.name.startsWith("{inside}runs/")'
    role = base(store_url)
    return (
        Grant(
            role=f"{role}_read",
            on="bucket",
            title=f"{PREFIX}read",
            # Of a listing the name is the bucket's: IAM does not learn below which prefix.
            condition=" || ".join([f'resource.name == "{whole}"', *read]),
        ),
        Grant(
            role=f"{role}_write",
            on="bucket",
            title=f"{PREFIX}write",
            condition=" && ".join([here, *never, f"({' || '.join(write)})"]),
        ),
    )


def _below(prefix: str, folder: str) -> str:
    return f'resource.name.extract("/objects/{prefix}runs/{{run}}/{folder}/")'


def secrets_prefix(store_url: str) -> str:
    """What the names of secrets begin with that machines of a store may read."""
    return f"{name(store_url)}-"

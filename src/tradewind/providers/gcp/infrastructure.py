"""A group of machines at Google Cloud that runs a job and ends, with all it needs: network, bucket,
identity, budget. It stands alone: nothing here is of a store of ours."""

from __future__ import annotations

from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.model import secrets
from tradewind.providers.base import Refused
from tradewind.providers.gcp.facts import IMAGES, TPU
from tradewind.providers.gcp.machines.types import Kind, kind
from tradewind.providers.infrastructure import (
    FileHash,
    Filled,
    Infrastructure,
    Map,
    Of,
    Script,
    Thing,
    Underscored,
    Var,
    Variable,
    Wanted,
)

_BUCKET = Of("google_storage_bucket.job", "name")
_MEMBER = Of("google_service_account.job", "member")
_LABELS = Map({"job": Var("name")})
_SERVICES = ("compute", "storage", "iam", "billingbudgets", "monitoring")
_CIDR = "10.78.0.0/20"

FUNCTIONS = """\
tools() { command -v gcloud > /dev/null || snap install google-cloud-cli --classic; }
there() { gcloud storage ls "gs://$BUCKET/$1" > /dev/null 2>&1; }
fetch() { gcloud storage cat "gs://$BUCKET/$1"; }
pull() { if there "$1"; then gcloud storage rsync --recursive "gs://$BUCKET/$1" "$1"; fi; }
push() { gcloud storage rsync --recursive "$1" "gs://$BUCKET/$1"; }
mark() { printf '%s\\n' "$2" | gcloud storage cp - "gs://$BUCKET/$1"; }
about() { # of this machine: as Google tells it
  curl -sf -H 'Metadata-Flavor: Google' \\
    "http://metadata.google.internal/computeMetadata/v1/instance/$1"
}
noticed() { [ "$(about preempted)" = TRUE ]; } # half a minute before a spot machine is reclaimed
address() { about network-interfaces/0/ip; }
members() { # addresses of all machines of the group
  gcloud compute instances list --filter "labels.job=$GROUP AND status=RUNNING" \\
    --format 'value(networkInterfaces[0].networkIP)' | sort
}
end_group() { # nothing is paid any longer but for the bucket
  gcloud compute instance-groups managed resize "$GROUP" --zone "$ZONE" --size 0 --quiet
}
"""

CLASSES = {
    "google_project_service": "projects.Service",
    "google_compute_network": "compute.Network",
    "google_compute_subnetwork": "compute.Subnetwork",
    "google_compute_firewall": "compute.Firewall",
    "google_storage_bucket": "storage.Bucket",
    "google_storage_bucket_object": "storage.BucketObject",
    "google_storage_bucket_iam_member": "storage.BucketIAMMember",
    "google_service_account": "serviceaccount.Account",
    "google_project_iam_custom_role": "projects.IAMCustomRole",
    "google_project_iam_member": "projects.IAMMember",
    "google_secret_manager_secret_iam_member": "secretmanager.SecretIamMember",
    "google_compute_instance_template": "compute.InstanceTemplate",
    "google_compute_instance_group_manager": "compute.InstanceGroupManager",
    "google_monitoring_notification_channel": "monitoring.NotificationChannel",
    "google_billing_budget": "billing.Budget",
}


def described(wanted: Wanted) -> Infrastructure:
    if wanted.instance_type.startswith(TPU):
        raise InvalidValue(
            f"{wanted.instance_type} is a slice of TPUs, and groups of machines have none",
            hint="tradewind run, which buys slices; or --accelerator with a GPU",
        )
    for variable, text in wanted.secrets.items():
        if secrets.parse(text).scheme != secrets.GCP_SECRET_MANAGER:
            raise InvalidValue(
                f"machines at Google Cloud cannot read {variable} ({text})",
                hint=f"keep it where they can: {variable}: gcp-secretmanager:name",
            )
    try:
        made = kind(wanted.instance_type)
    except Refused as error:
        raise InvalidValue(error.message, hint="--provider with another cloud") from None
    image = IMAGES.get((made.architecture, made.gpus), "")
    if not image or wanted.vendor != "NVIDIA":
        raise InvalidValue(
            f"no image is known whose driver is for {wanted.chip} on {made.architecture}",
            hint="--accelerator with another GPU",
        )
    if not wanted.zone:
        raise InvalidValue(
            f"the plan does not say in which zone of {wanted.region} its machines are",
            hint="kubernetes, which asks for no zone",
        )
    return Infrastructure(
        provider="google",
        source="hashicorp/google",
        version="~> 6.50",
        settings={"project": Var("project"), "region": Var("region"),
                  "billing_project": Var("project"), "user_project_override": True},
        variables=(
            Variable(name="project", words="Whose it is."),
            Variable(name="name", words="Of all that is made.", default=wanted.name),
            Variable(name="region", words="As planned.", default=wanted.region),
            Variable(name="zone", words="As planned.", default=wanted.zone),
            Variable(name="machine_type", words="As planned.", default=made.machine_type),
            Variable(name="machines", words="As planned; 0 ends them.", kind="number",
                     default=wanted.nodes),
            Variable(name="disk_gb", words=wanted.disk_why, kind="number", default=wanted.disk_gb),
            Variable(name="image", default=image,
                     words="The newest of a family, with NVIDIA's driver; or one of your own."),
            Variable(name="job", words="The job's folder as an archive.", default="job.tar.gz"),
            Variable(name="budget", words=wanted.budget_why, default=str(wanted.budget)),
            Variable(name="billing_account", words="That the project is charged to."),
            Variable(name="alert_email", words="Who is told when most of the budget is spent."),
        ),
        things=(*_services(), *_network(wanted), *_bucket(), *_identity(wanted),
                *_machines(wanted, made)),
        outputs={
            "bucket": (_BUCKET, "Where checkpoints, logs and the job's outputs are."),
            "group": (Of("google_compute_instance_group_manager.job", "name"),
                      "The group of machines."),
        },
        functions=FUNCTIONS,
        classes=CLASSES,
        pulumi=("pulumi_gcp", "10"),
        notes=("the budget is of the whole project: a project of its own tells the job's costs"
               " apart",
               "the budget is in the billing account's currency: where that is not dollars, give"
               " the variable budget another amount"),
    )  # fmt: skip


def secret(reference: secrets.Reference) -> str:
    """A command that prints it, on a machine."""
    name, version = _secret(reference)
    return f"gcloud secrets versions access '{version}' --secret '{name}'"


def _secret(reference: secrets.Reference) -> tuple[str, str]:
    name, _, version = reference.name.partition("/versions/")
    return name, version or "latest"


def _services() -> list[Thing]:
    return [
        Thing(kind="google_project_service", name=each, fields={
            "service": f"{each}.googleapis.com", "disable_on_destroy": False})
        for each in _SERVICES
    ]  # fmt: skip


def _service(name: str) -> tuple[str, ...]:
    return (f"google_project_service.{name}",)


def _network(wanted: Wanted) -> list[Thing]:
    inside = {"network": Of("google_compute_network.job", "id")}
    found = [
        Thing(kind="google_compute_network", name="job",
              why="Nobody comes in" + (", but machines of the group." if wanted.nodes > 1
                                       else ": it has no rule for it."),
              needs=_service("compute"),
              fields={"name": Var("name"), "auto_create_subnetworks": False}),
        Thing(kind="google_compute_subnetwork", name="job", fields={
            "name": Var("name"), **inside, "region": Var("region"), "ip_cidr_range": _CIDR,
            "private_ip_google_access": True}),
    ]  # fmt: skip
    if wanted.nodes > 1:
        found.append(
            Thing(kind="google_compute_firewall", name="among", fields={
                "name": Filled("%s-among", (Var("name"),)), **inside, "direction": "INGRESS",
                "source_service_accounts": [Of("google_service_account.job", "email")],
                "target_service_accounts": [Of("google_service_account.job", "email")],
                "allow": [{"protocol": "all"}]})
        )  # fmt: skip
    return found


def _bucket() -> list[Thing]:
    return [
        Thing(kind="google_storage_bucket", name="job",
              why="Checkpoints and outputs: it is not destroyed while there is something in it."
              " What was replaced goes after a week, uploads that were never finished too.",
              needs=_service("storage"),
              fields={
                  "name": Filled("%s-%s", (Var("project"), Var("name"))),
                  "location": Var("region"), "uniform_bucket_level_access": True,
                  "public_access_prevention": "enforced", "labels": _LABELS,
                  "versioning": {"enabled": True},
                  "lifecycle_rule": [
                      {"action": {"type": "Delete"},
                       "condition": {"days_since_noncurrent_time": 7}},
                      {"action": {"type": "AbortIncompleteMultipartUpload"},
                       "condition": {"age": 7}}]}),
        Thing(kind="google_storage_bucket_object", name="job", fields={
            "name": "job.tar.gz", "bucket": _BUCKET, "source": Var("job"),
            "source_md5hash": FileHash(Var("job"))}),
    ]  # fmt: skip


def _identity(wanted: Wanted) -> list[Thing]:
    project = {"project": Var("project")}
    found = [
        Thing(kind="google_service_account", name="job", needs=_service("iam"),
              fields={"account_id": Var("name"), "display_name": "Machines of a job"}),
        Thing(kind="google_storage_bucket_iam_member", name="job", fields={
            "bucket": _BUCKET, "role": "roles/storage.objectUser", "member": _MEMBER}),
        Thing(kind="google_project_iam_custom_role", name="job",
              why="What machines may besides their bucket: see each other, and end their group.",
              needs=_service("iam"),
              fields={
                  "role_id": Underscored(Var("name")), "title": "Machines of a job",
                  "permissions": ["compute.instanceGroupManagers.get",
                                  "compute.instanceGroupManagers.update",
                                  "compute.instances.list", "compute.zoneOperations.get"]}),
        Thing(kind="google_project_iam_member", name="job", fields=project | {
            "role": Of("google_project_iam_custom_role.job", "name"), "member": _MEMBER}),
    ]  # fmt: skip
    for number, text in enumerate(wanted.secrets.values()):
        name, _ = _secret(secrets.parse(text))
        found.append(
            Thing(kind="google_secret_manager_secret_iam_member", name=f"secret_{number}", fields={
                "secret_id": name, "role": "roles/secretmanager.secretAccessor",
                "member": _MEMBER})
        )  # fmt: skip
    return found


def _machines(wanted: Wanted, made: Kind) -> list[Thing]:
    card: dict[str, Any] = {"subnetwork": Of("google_compute_subnetwork.job", "id")}
    if made.gvnic:
        card["nic_type"] = "GVNIC"
    scheduling: dict[str, Any] = {
        "automatic_restart": not wanted.spot, "on_host_maintenance": "TERMINATE",
        "provisioning_model": "SPOT" if wanted.spot else "STANDARD",
        "preemptible": wanted.spot,
    }  # fmt: skip
    if wanted.spot:
        scheduling["instance_termination_action"] = "STOP"
    attached = (
        {"guest_accelerator": [{"type": made.accelerator, "count": made.count}]}
        if made.accelerator
        else {}
    )
    project = Filled("projects/%s", (Var("project"),))
    start = Script({"BUCKET": _BUCKET, "REGION": Var("region"), "GROUP": Var("name"),
                    "ZONE": Var("zone")})  # fmt: skip
    return [
        Thing(kind="google_compute_instance_template", name="job", new_first=True, fields={
            "name_prefix": Filled("%s-", (Var("name"),)), "machine_type": Var("machine_type"),
            "labels": _LABELS,
            "disk": [{"source_image": Var("image"), "disk_size_gb": Var("disk_gb"),
                      "disk_type": made.disk_type, "boot": True, "auto_delete": True}],
            **attached,
            "network_interface": [card | {"access_config": [{"network_tier": "PREMIUM"}]}],
            "scheduling": scheduling,
            "service_account": {"email": Of("google_service_account.job", "email"),
                                "scopes": ["https://www.googleapis.com/auth/cloud-platform"]},
            "metadata": Map({"block-project-ssh-keys": "true", "enable-oslogin": "TRUE",
                             "startup-script": start})}),
        Thing(kind="google_compute_instance_group_manager", name="job",
              why="What is taken is begun again, and resumes; the job's end sets it to none. A"
              " machine begins at once, and has to find all that it needs.",
              needs=("google_storage_bucket_object.job", "google_storage_bucket_iam_member.job",
                     "google_project_iam_member.job",
                     *(f"google_secret_manager_secret_iam_member.secret_{number}"
                       for number in range(len(wanted.secrets))),
                     *(("google_compute_firewall.among",) if wanted.nodes > 1 else ())),
              fields={
                  "name": Var("name"), "base_instance_name": Var("name"), "zone": Var("zone"),
                  "target_size": Var("machines"),
                  "version": [{"instance_template":
                               Of("google_compute_instance_template.job", "self_link_unique")}]}),
        Thing(kind="google_monitoring_notification_channel", name="job",
              needs=_service("monitoring"), fields={
            "display_name": Var("name"), "type": "email",
            "labels": Map({"email_address": Var("alert_email")})}),
        Thing(kind="google_billing_budget", name="job", needs=_service("billingbudgets"), fields={
            "billing_account": Var("billing_account"), "display_name": Var("name"),
            "budget_filter": {"projects": [project]},
            "amount": {"specified_amount": {"units": Var("budget")}},
            "threshold_rules": [{"threshold_percent": 0.8},
                                {"threshold_percent": 1, "spend_basis": "FORECASTED_SPEND"}],
            "all_updates_rule": {"monitoring_notification_channels":
                                 [Of("google_monitoring_notification_channel.job", "id")]}}),
    ]  # fmt: skip

"""Lambda's Cloud API v1, as its OpenAPI document (1.8.3) has it: a table, and nothing else.

No spot, no notice, no client token; a name of at most 64 characters, which need not be unique, and
tags are what a machine can be found again by. Nothing tells when one was launched. A shutdown from
inside does not end the bill: only terminating does (docs.lambda.ai, "Billing": by the minute, from
when it passes its health checks until it is terminated). 1.10 has the same calls; its host is
cloud.lambda.ai, and it knows the status `preempted` too.

Known lies: `quantity` is read, as older versions of the API did (1.8.3 has no such field); a
machine that shut itself down stays `active`; one that ended is left out of the list at once and is
told by its id for ever; the code for too many requests is a guess (it is not documented); a key
pair is not generated, so `public_key` must be given; file systems cost nothing; there are three
types, at prices of some day in 2025; `image` is not looked at, so that no family is wrong; `Date`
is the equipment's own, and on every answer; nothing is listed as `preempted`; a list of machines
has no pages.
"""

from __future__ import annotations

from tests.cloud.face import Billing
from tests.cloud.faces.rest.face import Rest
from tests.cloud.faces.rest.shapes import Each, Keyed, One
from tests.cloud.faces.rest.table import Error, Field, Kind, Route, Shelf, Table

_KIND = {
    "name": "$name",
    "description": "$description",
    "gpu_description": "$gpu_description",
    "price_cents_per_hour": "$cents_hour",
    "specs": {
        "vcpus": "$cpus",
        "memory_gib": "$memory_gib",
        "storage_gib": "$storage_gib",
        "gpus": "$gpus",
    },
}
_REGION = {"name": "$region", "description": "$region_words"}
_MACHINE = {
    "id": "$id",
    "name": "$name?",
    "ip": "$address?",
    "private_ip": "$address?",
    "status": "$state",
    "ssh_key_names": "$keys",
    "file_system_names": "$disks",
    "region": _REGION,
    "instance_type": One("kind", _KIND),
    "hostname": "$hostname?",
    "tags": "$tags?",
    "actions": {
        name: {"available": name == "terminate"}
        for name in ("migrate", "rebuild", "restart", "cold_reboot", "terminate")
    },
}
_KEY = {"id": "$id", "name": "$name", "public_key": "$public_key"}
_FILE_SYSTEM = {
    "id": "$id",
    "name": "$name",
    "mount_point": "/lambda/nfs",
    "created": "$made",
    "created_by": {"id": "0" * 32, "email": "nobody@example.com", "status": "active"},
    "is_in_use": "$in_use",
    "region": _REGION,
}
_RULES = {"data": "$raw"}


def _kind(cpus: int, gpus: int, cents: int, gpu: str, memory_gib: int, storage_gib: int) -> Kind:
    words = {"description": f"{gpus}x {gpu}", "gpu_description": gpu}
    sizes = {"memory_gib": memory_gib, "storage_gib": storage_gib}
    return Kind(cpus, gpus, cents / 100, {**words, **sizes})


_API = "/api/v1"

TABLE = Table(
    name="lambda",
    auth=(("Authorization", "bearer"), ("Authorization", "basic")),
    routes=(
        Route(
            "instance-types",
            "GET",
            f"{_API}/instance-types",
            "kinds",
            {
                "data": Keyed(
                    "kinds",
                    "name",
                    {
                        "instance_type": _KIND,
                        "regions_with_capacity_available": Each(
                            "regions", {"name": "$name", "description": "$words"}
                        ),
                    },
                )
            },
        ),
        Route(
            "launch",
            "POST",
            f"{_API}/instance-operations/launch",
            "launch",
            {"data": {"instance_ids": "$ids"}},
            {
                "region": Field("region_name", needed=True),
                "kind": Field("instance_type_name", needed=True),
                "keys": Field("ssh_key_names", list, needed=True, most=1),
                "disks": Field("file_system_names", list, default=[]),
                "count": Field("quantity", int, default=1),
                "name": Field("name", most=64),
                "user_data": Field("user_data", most=1_000_000),
                "tags": Field("tags", list, default=[]),
            },
        ),
        Route(
            "terminate",
            "POST",
            f"{_API}/instance-operations/terminate",
            "end",
            {"data": {"terminated_instances": Each("machines", _MACHINE)}},
            {"ids": Field("instance_ids", list, needed=True)},
        ),
        Route(
            "instances",
            "GET",
            f"{_API}/instances",
            "machines",
            {"data": Each("machines", _MACHINE)},
        ),
        Route(
            "instance",
            "GET",
            f"{_API}/instances/{{id}}",
            "machine",
            {"data": One("machine", _MACHINE)},
        ),
        Route(
            "ssh-keys", "GET", f"{_API}/ssh-keys", "list", {"data": Each("things", _KEY)}, of="keys"
        ),
        Route(
            "add-ssh-key",
            "POST",
            f"{_API}/ssh-keys",
            "make",
            {"data": One("thing", _KEY)},
            {
                "name": Field("name", needed=True, most=64),
                "public_key": Field("public_key", needed=True, most=4096),
            },
            of="keys",
        ),
        Route(
            "delete-ssh-key", "DELETE", f"{_API}/ssh-keys/{{id}}", "remove", {"data": {}}, of="keys"
        ),
        Route(
            "file-systems",
            "GET",
            f"{_API}/file-systems",
            "list",
            {"data": Each("things", _FILE_SYSTEM)},
            of="disks",
        ),
        Route(
            "create-file-system",
            "POST",
            f"{_API}/filesystems",
            "make",
            {"data": One("thing", _FILE_SYSTEM)},
            {"name": Field("name", needed=True, most=60), "region": Field("region", needed=True)},
            of="disks",
        ),
        Route(
            "delete-file-system",
            "DELETE",
            f"{_API}/filesystems/{{id}}",
            "remove",
            {"data": {"deleted_ids": "$ids"}},
            of="disks",
        ),
        Route("firewall-rules", "GET", f"{_API}/firewall-rules", "list", _RULES, of="rules"),
        Route(
            "put-firewall-rules",
            "PUT",
            f"{_API}/firewall-rules",
            "replace",
            _RULES,
            {"things": Field("data", list, needed=True)},
            of="rules",
        ),
    ),
    states={
        "pending": "booting",
        "running": "active",
        "stopping": "unhealthy",
        "stopped": "unhealthy",
        "ending": "terminating",
        "ended": "terminated",
    },
    kinds={
        "gpu_1x_a10": _kind(30, 1, 75, "A10 (24 GB PCIe)", 200, 1400),
        "gpu_1x_h100_pcie": _kind(26, 1, 249, "H100 (80 GB PCIe)", 200, 1000),
        "gpu_8x_a100_80gb_sxm4": _kind(240, 8, 1432, "A100 (80 GB SXM4)", 1800, 19968),
    },
    regions={
        "us-east-1": "Virginia, USA",
        "us-west-1": "California, USA",
        "us-south-1": "Texas, USA",
        "europe-central-1": "Germany",
    },
    errors={
        "unauthorized": Error(
            401,
            "global/invalid-api-key",
            "API key was invalid, expired, or deleted.",
            "Check your API key or create a new one, then try again.",
        ),
        "invalid": Error(400, "global/invalid-parameters", "Invalid request data."),
        "unknown": Error(404, "global/object-does-not-exist", "Specified instance does not exist."),
        "duplicate": Error(400, "global/duplicate", "The name is taken."),
        "in_use": Error(400, "filesystems/filesystem-in-use", "The filesystem is in use."),
        "elsewhere": Error(
            400, "instance-operations/launch/file-system-in-wrong-region", "Wrong region."
        ),
        "quota": Error(
            400,
            "global/quota-exceeded",
            "Quota exceeded.",
            "Contact Support to increase your quota.",
        ),
        "capacity": Error(
            400,
            "instance-operations/launch/insufficient-capacity",
            "Not enough capacity to fulfill launch request.",
            "Choose an instance type with more availability, or try again later.",
        ),
        "pace": Error(429, "global/too-many-requests", "Too many requests."),
    },
    error_shape={"error": {"code": "$code", "message": "$message", "suggestion": "$more?"}},
    shelves={
        "keys": Shelf(asked_as="keys"),
        "disks": Shelf(asked_as="disks", held=True, regional=True, costs=True),
        "rules": Shelf(),
    },
    pace_s={"*": 1.0, "launch": 12.0},
    after_shutdown="billed",
    billing=Billing(step_s=60.0, from_running=True),
    quotas={"instances": "running instances"},
)

FACE = Rest(TABLE)

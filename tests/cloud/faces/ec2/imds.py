"""The instance metadata service of one machine, version 2: a token first, by PUT with a lifetime,
then everything by GET with that token; without one, 401.

Known lies: tokens do not expire; of the many paths only those are there that programs of this
project and boto3 read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.cloud.clock import iso
from tests.cloud.face import Answer
from tests.cloud.faces.ec2.account import Account
from tests.cloud.world import Machine

_LIFE = "x-aws-ec2-metadata-token-ttl-seconds"
_TOKEN = "x-aws-ec2-metadata-token"


class Imds:
    def __init__(self, account: Account) -> None:
        self._account = account
        self._tokens: dict[str, set[str]] = {}

    def answer(
        self, machine: Machine, method: str, path: str, headers: Mapping[str, str]
    ) -> Answer | None:
        given = {name.lower(): value for name, value in headers.items()}
        tokens = self._tokens.setdefault(machine.id, set())
        if method == "PUT":
            life = given.get(_LIFE, "")
            if path != "/latest/api/token":
                return None
            if not life.isdigit() or not 1 <= int(life) <= 21600:
                return Answer(400, [], b"")
            token = f"token-{machine.id}-{len(tokens)}"
            tokens.add(token)
            return Answer(200, [(_LIFE, life)], token.encode())
        if method != "GET":
            return None
        if given.get(_TOKEN) not in tokens:
            return Answer(401, [], b"")
        told = look(self._account, machine, path)
        return None if told is None else Answer(200, [], told)


def look(account: Account, machine: Machine, path: str) -> bytes | None:
    told = machine.record
    if path == "/latest/user-data":
        return machine.user_data or None
    if path == "/latest/dynamic/instance-identity/document":
        return json.dumps(_document(machine)).encode()
    if not path.startswith("/latest/meta-data"):
        return None
    path = path.removeprefix("/latest/meta-data").strip("/")
    tree = {
        "ami-id": told.image_id,
        "ami-launch-index": str(told.ami_launch_index),
        "hostname": told.private_dns_name,
        "instance-id": machine.id,
        "instance-life-cycle": machine.market,
        "instance-type": machine.kind,
        "local-hostname": told.private_dns_name,
        "local-ipv4": told.private_ip,
        "mac": told.nics[0].mac_address,
        "placement/availability-zone": machine.zones[0],
        "placement/availability-zone-id": machine.zones[1],
        "placement/region": machine.region,
        "services/domain": "amazonaws.com",
        **_notices(machine),
        **_role(account, machine),
    }
    if told.placement.group_name:
        tree["placement/group-name"] = told.placement.group_name
    if told.metadata_options.instance_metadata_tags == "enabled":
        tree |= {f"tags/instance/{tag['key']}": tag["value"] for tag in told.get_tags()}
    if path in tree:
        return str(tree[path]).encode()
    under = f"{path}/" if path else ""
    names = {each.removeprefix(under) for each in tree if each.startswith(under)}
    listed = sorted({n if "/" not in n else n.split("/")[0] + "/" for n in names})
    return "\n".join(listed).encode() if listed else None


def _notices(machine: Machine) -> dict[str, str]:
    told = {}
    if machine.taken_at is not None:
        time = iso(machine.taken_at)
        told["spot/instance-action"] = json.dumps({"action": "terminate", "time": time})
        told["spot/termination-time"] = time
    if machine.warned_at is not None:
        said = {"noticeTime": iso(machine.warned_at)}
        told["events/recommendations/rebalance"] = json.dumps(said)
    return told


def _role(account: Account, machine: Machine) -> dict[str, str]:
    associations = machine.record.ec2_backend.iam_instance_profile_associations
    if machine.id not in associations:
        return {}
    profile = associations[machine.id].iam_instance_profile
    keys, now = account.dials.credentials, account.world.now()
    info = {"Code": "Success", "LastUpdated": iso(now), "InstanceProfileArn": profile.arn}
    told = {"iam/info": json.dumps({**info, "InstanceProfileId": profile.id})}
    for role in profile.roles:
        given = {
            "Code": "Success",
            "LastUpdated": iso(now),
            "Type": "AWS-HMAC",
            "AccessKeyId": keys.get("access_key", f"ASIA{machine.id[2:].upper()}"),
            "SecretAccessKey": keys.get("secret_key", "of-nobody"),
            "Token": keys.get("token", ""),
            "Expiration": iso(now + 6 * 3600),
        }
        told[f"iam/security-credentials/{role.name}"] = json.dumps(given)
    return told


def _document(machine: Machine) -> dict[str, Any]:
    return {
        "accountId": machine.record.owner_id,
        "architecture": machine.record.architecture,
        "availabilityZone": machine.zones[0],
        "imageId": machine.record.image_id,
        "instanceId": machine.id,
        "instanceType": machine.kind,
        "pendingTime": iso(machine.launched),
        "privateIp": machine.record.private_ip,
        "region": machine.region,
        "version": "2017-09-30",
    }

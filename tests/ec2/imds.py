"""The instance metadata service of one machine, version 2: a token first, by PUT with a lifetime,
then everything by GET with that token; without one, 401.

Known lies: tokens do not expire; of the many paths only those are there that programs of this
project and boto3 read; /equipment/… is no part of AWS (bodies say there that they shut down).
"""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.ec2.bodies import user_data
from tests.ec2.clock import iso
from tests.ec2.world import Machine, World
from tests.local_http import QuietServer

_LIFE = "x-aws-ec2-metadata-token-ttl-seconds"
_TOKEN = "x-aws-ec2-metadata-token"


class Metadata:
    """Serves on a socket that listens already."""

    def __init__(self, world: World, machine: Machine, door: socket.socket) -> None:
        self._world, self._machine = world, machine
        self._server = QuietServer(("", 0), self._handler(), bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = door
        self._server.server_address = door.getsockname()
        threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True).start()

    def close(self) -> None:
        threading.Thread(target=self._close, daemon=True).start()

    def _close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        world, machine = self._world, self._machine
        tokens: set[str] = set()

        class Handler(BaseHTTPRequestHandler):
            server_version = "EC2ws"

            def answer(self, status: int, body: bytes = b"") -> None:
                self.send_response(status)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_PUT(self) -> None:
                life = self.headers.get(_LIFE, "")
                if self.path != "/latest/api/token":
                    self.answer(404)
                elif not life.isdigit() or not 1 <= int(life) <= 21600:
                    self.answer(400)
                else:
                    tokens.add(f"token-{machine.id}-{len(tokens)}")
                    self.send_response(200)
                    body = f"token-{machine.id}-{len(tokens) - 1}".encode()
                    self.send_header(_LIFE, life)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def do_GET(self) -> None:
                if self.headers.get(_TOKEN) not in tokens:
                    self.answer(401)
                    return
                with world.lock:
                    world.settle()
                    told = look(world, machine, self.path.split("?")[0])
                self.answer(404 if told is None else 200, told or b"")

            def do_POST(self) -> None:
                asked = urlsplit(self.path)
                if asked.path != "/equipment/shutdown":
                    self.answer(404)
                    return
                after_s = float(parse_qs(asked.query).get("after_s", ["0"])[0])
                with world.lock:
                    when = world.now() + after_s
                    world.agenda.at(when, lambda: world.end(machine, "inside"))
                self.answer(200)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


def look(world: World, machine: Machine, path: str) -> bytes | None:
    told = machine.told
    if path == "/latest/user-data":
        return user_data(told) or None
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
        **_role(world, machine),
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
    if machine.rebalance_at is not None:
        said = {"noticeTime": iso(machine.rebalance_at)}
        told["events/recommendations/rebalance"] = json.dumps(said)
    return told


def _role(world: World, machine: Machine) -> dict[str, str]:
    associations = machine.told.ec2_backend.iam_instance_profile_associations
    if machine.id not in associations:
        return {}
    profile = associations[machine.id].iam_instance_profile
    keys, now = world.dials.credentials, world.now()
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
        "accountId": machine.told.owner_id,
        "architecture": machine.told.architecture,
        "availabilityZone": machine.zones[0],
        "imageId": machine.told.image_id,
        "instanceId": machine.id,
        "instanceType": machine.kind,
        "pendingTime": iso(machine.launched),
        "privateIp": machine.told.private_ip,
        "region": machine.region,
        "version": "2017-09-30",
    }

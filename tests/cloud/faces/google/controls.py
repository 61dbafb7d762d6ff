"""What a test may ask of Google's face besides what every cloud has; control.py is its
other end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cloud.controls import Controls
from tests.cloud.world import Machine

if TYPE_CHECKING:
    from tests.cloud.faces.google.face import Google


class GoogleControls(Controls):
    def __init__(self, face: Google) -> None:
        super().__init__(face.world)
        self._face = face

    def key_file(self, email: str, project: str, url: str) -> dict[str, str]:
        return self._face.state.identities.key_file(email, project, url)

    def grant(self, resource: str, role: str, member: str) -> None:
        self._face.state.policies.grant(resource, role, member)

    def permissions(self) -> list[dict[str, Any]]:
        return self._face.state.policies.asked

    def fail_late(
        self, action: str, code: str, message: str, count: int, status: int, name: str
    ) -> None:
        told = {"action": action, "code": code, "message": message, "count": count}
        self._face.state.late.append({**told, "status": status, "name": name})

    def offers(self, zone: str, kind: str, offered: bool) -> None:
        known = self._face.state.not_offered
        (known.discard if offered else known.add)((zone, kind))

    def unreachable(self, zones: list[str]) -> None:
        self._face.state.unreachable = zones

    def service(self, name: str, on: bool, project: str) -> None:
        services = self._face.state.found(project).services
        (services.add if on else services.discard)(f"{name}.googleapis.com")

    def billing(self, on: bool, project: str) -> None:
        self._face.state.found(project).billing = on

    def project(self, name: str, number: str) -> None:
        self._face.state.project(name, number)

    def image(self, project: str, family: str, name: str, gb: int) -> None:
        self._face.shelves.put_image(project, family, name, gb)

    def expire_tokens(self) -> None:
        for each in self._face.state.identities.tokens.values():
            each.until = 0.0

    def secret(self, name: str, value: str, project: str) -> None:
        path = f"projects/{project}/secrets/{name}"
        self._face.admin.secrets.setdefault(path, []).append(value.encode())

    def storage(self) -> str:
        return self._face.storage.url

    def bucket(self, name: str, location: str, project: str) -> None:
        self._face.storage.make(name, location, project)

    def objects(self, bucket: str, prefix: str) -> list[str]:
        return self._face.storage.keys(bucket, prefix)

    def buckets(self) -> dict[str, Any]:
        return {n: each.told for n, each in self._face.storage.gcs.objects.buckets.items()}

    def shelf(self) -> list[str]:
        return sorted(self._face.shelves.things)

    def accounts(self) -> list[str]:
        return sorted(self._face.state.identities.accounts)

    def policy(self, resource: str) -> dict[str, Any]:
        return self._face.state.policies.get(resource)

    def roles(self) -> dict[str, Any]:
        return self._face.state.policies.roles

    def operations(self) -> list[dict[str, Any]]:
        return [each.told for each in self._face.state.operations.values()]

    def _machine(self, machine_id: str) -> Machine:
        """By its number, its name, or any id that ends in `/NAME` or `:NAME`; the newest of that
        name."""
        machines = self._world.machines
        if machine_id in machines:
            return machines[machine_id]
        short = machine_id.replace(":", "/").rpartition("/")[2]
        named = [each for each in machines.values() if short in (each.name, each.id)]
        if not named:
            raise ValueError(f"there never was a machine {machine_id}")
        return named[-1]

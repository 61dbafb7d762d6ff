"""The test's end of the equipment with Google's face."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cloud import control, server
from tests.cloud.faces.google.state import OWNER, PROJECT

_APIS = {
    "TPU": "tpu",
    "IAM": "iam",
    "IAMCREDENTIALS": "iamcredentials",
    "SERVICEUSAGE": "serviceusage",
    "CLOUDRESOURCEMANAGER": "cloudresourcemanager",
    "CLOUDBILLING": "cloudbilling",
    "SECRETMANAGER": "secretmanager",
    "IAP": "iap",
    "CLOUDQUOTAS": "cloudquotas",
    "STS": "sts",
}


@contextmanager
def running(folder: Path, bodies: str = "none") -> Iterator[Control]:
    """See server.running. `folder/owner.json` is the key of who owns the project."""
    with server.running(folder, "tests.cloud.faces.google.face", Control, bodies) as cloud:
        cloud.folder = folder
        cloud.key = cloud.key_file(OWNER)
        try:
            yield cloud
        finally:
            cloud.close()


class Control(control.Control):
    project = PROJECT
    owner = OWNER
    folder: Path
    key: Path
    """Of the owner, as a file."""

    @property
    def env(self) -> dict[str, str]:
        """Leads gcloud, google-auth and our own to the equipment, as the project's owner, and none
        to anybody's account."""
        named = {
            f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name}": f"{self.url}/{path}/"
            for name, path in _APIS.items()
        }
        return {
            **named,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"{self.storage}/storage/v1/",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{self.url}/compute/v1/",
            "TRADEWIND_PLAIN_HTTP": self.host,  # with bodies in namespaces it is not on loopback
            "GOOGLE_APPLICATION_CREDENTIALS": str(self.key),
            "GOOGLE_CLOUD_PROJECT": PROJECT,
            "CLOUDSDK_CORE_PROJECT": PROJECT,
            "CLOUDSDK_CONFIG": str(self.folder / "gcloud"),
            "NO_GCE_CHECK": "true",
        }

    @property
    def storage(self) -> str:
        """The URL of Cloud Storage."""
        return str(self._do("storage"))

    @property
    def body_env(self) -> dict[str, str]:
        """For the dial of that name: leads what runs in bodies to Cloud Storage and the APIs. Who
        they are is their metadata server's to say."""
        named = self.env
        own = ("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "NO_GCE_CHECK")
        return {name: value for name, value in named.items() if name not in own}

    def bucket(self, name: str, location: str = "us-central1", project: str = PROJECT) -> None:
        """Made, and reckoned with from now on: what machines elsewhere read costs traffic."""
        self._do("bucket", name=name, location=location, project=project)

    def objects(self, bucket: str, prefix: str = "") -> list[str]:
        return list(self._do("objects", bucket=bucket, prefix=prefix))

    def buckets(self) -> Any:
        return self._do("buckets")

    def key_file(self, email: str, project: str = PROJECT, name: str = "") -> Path:
        """A key of a service account, which is made where there is none."""
        told = self._do("key_file", email=email, project=project, url=self.url)
        path = self.folder / (name or f"{email.partition('@')[0]}.json")
        path.write_text(json.dumps(told))
        return path

    def client(self, api: str, version: str = "v1", key: Path | None = None) -> Any:
        """Google's own client, led here, one for each who asks."""
        known = self.__dict__.setdefault("_clients", {})
        of = api, version, str(key or self.key), (key or self.key).read_text()
        if of not in known:
            known[of] = self._client(api, version, key or self.key)
        return known[of]

    def close(self) -> None:
        """The clients' connections."""
        for each in self.__dict__.pop("_clients", {}).values():
            each.close()

    def _client(self, api: str, version: str, key: Path) -> Any:
        from google.oauth2 import service_account
        from googleapiclient import discovery  # type: ignore[import-untyped]

        from tests.cloud.faces.google.discovery import document as known

        document = dict(known(api, version))
        own = api in ("compute", "storage")
        base = self.storage if api == "storage" else self.url
        document["rootUrl"] = f"{base}/" if own else f"{self.url}/{api}/"
        document["baseUrl"] = document["rootUrl"] + document["servicePath"]
        document.pop("mtlsRootUrl", None)
        load: Any = service_account.Credentials.from_service_account_file
        credentials = load(str(key), scopes=["https://www.googleapis.com/auth/cloud-platform"])
        return discovery.build_from_document(document, credentials=credentials)

    # -- dials -------------------------------------------------------------------------------------

    def fail_late(
        self,
        action: str = "compute.instances.insert",
        code: str = "ZONE_RESOURCE_POOL_EXHAUSTED",
        *,
        count: int = 1,
        message: str = "as the test has asked",
        status: int = 503,
        name: str = "SERVICE UNAVAILABLE",
    ) -> None:
        """The next of these are accepted, and their operations end in this error. Also TPU's."""
        told = {"action": action, "code": code, "count": count, "message": message}
        self._do("fail_late", **told, status=status, name=name)

    def grant(self, role: str, member: str, resource: str = f"projects/{PROJECT}") -> None:
        self._do("grant", resource=resource, role=role, member=member)

    def offers(self, zone: str, kind: str, offered: bool = True) -> None:
        """A machine type, an accelerator or a TPU's type, in a zone, a region, or `*`."""
        self._do("offers", zone=zone, kind=kind, offered=offered)

    def unreachable(self, *zones: str) -> None:
        self._do("unreachable", zones=zones)

    def service(self, name: str, on: bool, project: str = PROJECT) -> None:
        """`compute`, `tpu`, …: whether it is enabled."""
        self._do("service", name=name, on=on, project=project)

    def billing(self, on: bool, project: str = PROJECT) -> None:
        self._do("billing", on=on, project=project)

    def make_project(self, name: str, number: str) -> None:
        self._do("project", name=name, number=number)

    def image(self, project: str, family: str, name: str, gb: int = 10) -> None:
        self._do("image", project=project, family=family, name=name, gb=gb)

    def secret(self, name: str, value: str, project: str = PROJECT) -> None:
        self._do("secret", name=name, value=value, project=project)

    def expire_tokens(self) -> None:
        self._do("expire_tokens")

    # -- looking -----------------------------------------------------------------------------------

    def permissions(self, granted: bool | None = None) -> list[dict[str, Any]]:
        """Every one that was looked at: permission, resource, member, granted, call."""
        told = self._do("permissions")
        return [each for each in told if granted is None or each["granted"] is granted]

    def shelf(self, collection: str = "") -> list[str]:
        """Paths of what exists in Compute Engine besides instances: networks, firewalls, …"""
        return [each for each in self._do("shelf") if not collection or f"/{collection}/" in each]

    def accounts(self) -> list[str]:
        return list(self._do("accounts"))

    def policy(self, resource: str = f"projects/{PROJECT}") -> Any:
        return self._do("policy", resource=resource)

    def roles(self) -> Any:
        return self._do("roles")

    def operations(self, sort: str = "") -> list[dict[str, Any]]:
        told = self._do("operations")
        return [each for each in told if not sort or each["operationType"] == sort]

"""The calls of Google's APIs that we make, what of their answers we use, and the permissions that
each call needs.

Where a service is asked is said by the variables that gcloud has for that:
CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE and so on, the base URL as gcloud has it (Compute Engine's
and Cloud Storage's with their version, the others' without).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from msgspec import Struct

from tradewind.base.errors import NoAccess
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.gcp.credentials import Credentials
from tradewind.providers.gcp.operations import Operation, finished, last
from tradewind.providers.gcp.troubles import TABLE
from tradewind.providers.rest import Rest

T = TypeVar("T")

SERVICES = {
    "compute": "https://compute.googleapis.com/compute/v1/",
    "storage": "https://storage.googleapis.com/storage/v1/",
    "tpu": "https://tpu.googleapis.com/",
    "iam": "https://iam.googleapis.com/",
    "iamcredentials": "https://iamcredentials.googleapis.com/",
    "serviceusage": "https://serviceusage.googleapis.com/",
    "cloudresourcemanager": "https://cloudresourcemanager.googleapis.com/",
    "cloudbilling": "https://cloudbilling.googleapis.com/",
    "secretmanager": "https://secretmanager.googleapis.com/",
    "cloudquotas": "https://cloudquotas.googleapis.com/",
    "iap": "https://iap.googleapis.com/",
}
OVERRIDE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_"

PERMISSIONS: dict[str, tuple[str, ...]] = {
    "compute.instances.insert": (
        "compute.instances.create",
        "compute.instances.setLabels",
        "compute.instances.setMetadata",
        "compute.instances.setServiceAccount",
        "compute.disks.create",
        "compute.disks.setLabels",
        "compute.subnetworks.use",
        "compute.subnetworks.useExternalIp",
        "compute.resourcePolicies.use",
        "iam.serviceAccounts.actAs",
    ),
    "compute.instances.bulkInsert": (),
    "compute.regionInstances.bulkInsert": (),
    "compute.instances.aggregatedList": ("compute.instances.list",),
    "compute.instances.get": ("compute.instances.get",),
    "compute.instances.delete": ("compute.instances.delete",),
    "compute.zoneOperations.get": ("compute.zoneOperations.get",),
    "compute.regionOperations.get": ("compute.regionOperations.get",),
    "compute.globalOperations.aggregatedList": (
        "compute.globalOperations.list",
        "compute.regionOperations.list",
        "compute.zoneOperations.list",
    ),
    "compute.reservations.list": ("compute.reservations.list",),
    "compute.resourcePolicies.insert": ("compute.resourcePolicies.create",),
    "compute.resourcePolicies.list": ("compute.resourcePolicies.list",),
    "compute.resourcePolicies.delete": ("compute.resourcePolicies.delete",),
    "iamcredentials.projects.serviceAccounts.signBlob": ("iam.serviceAccounts.signBlob",),
}
"""By the call's id in Google's discovery documents, what whoever looks after runs must be allowed:
of the project, but actAs and signBlob of the machines' service account alone. External addresses
and resource policies are used where there are some."""
PERMISSIONS["compute.instances.bulkInsert"] = PERMISSIONS["compute.instances.insert"]
PERMISSIONS["compute.regionInstances.bulkInsert"] = PERMISSIONS["compute.instances.insert"]

_MOST = "500"
"""Results on a page: the most that Compute Engine gives."""
_UNREACHABLE = "UNREACHABLE"


class Warned(Struct, frozen=True):
    code: str = ""
    message: str = ""


class Stamp(Struct, frozen=True):
    """An item of a machine's metadata."""

    key: str
    value: str = ""


class Metadata(Struct, frozen=True):
    items: tuple[Stamp, ...] = ()


class Planned(Struct, frozen=True, rename="camel"):
    provisioning_model: str = ""


class Instance(Struct, frozen=True, rename="camel"):
    name: str
    id: str
    zone: str
    status: str
    machine_type: str = ""
    creation_timestamp: str = ""
    last_start_timestamp: str = ""
    last_stop_timestamp: str = ""
    status_message: str = ""
    labels: dict[str, str] = {}
    metadata: Metadata = Metadata()
    scheduling: Planned = Planned()

    @property
    def zone_name(self) -> str:
        return last(self.zone)


class Policy(Struct, frozen=True, rename="camel"):
    """A resource policy: here, that machines stand close together."""

    name: str
    region: str = ""
    description: str = ""
    status: str = ""


class Properties(Struct, frozen=True, rename="camel"):
    machine_type: str = ""


class Specific(Struct, frozen=True, rename="camel"):
    count: str = "0"
    in_use_count: str = "0"
    instance_properties: Properties = Properties()


class Reservation(Struct, frozen=True, rename="camel"):
    name: str
    zone: str = ""
    status: str = ""
    specific_reservation_required: bool = False
    specific_reservation: Specific | None = None
    delete_at_time: str = ""


class _Scope(Struct, frozen=True, rename="camel"):
    instances: tuple[Instance, ...] = ()
    operations: tuple[Operation, ...] = ()
    warning: Warned | None = None


class _Aggregated(Struct, frozen=True, rename="camel"):
    items: dict[str, _Scope] = {}
    next_page_token: str | None = None
    unreachables: tuple[str, ...] = ()
    warning: Warned | None = None


class _Policies(Struct, frozen=True, rename="camel"):
    items: tuple[Policy, ...] = ()
    next_page_token: str | None = None


class _Reservations(Struct, frozen=True, rename="camel"):
    items: tuple[Reservation, ...] = ()
    next_page_token: str | None = None


class _Signed(Struct, frozen=True, rename="camel"):
    signed_blob: str


class _Rest(Rest):
    """Whose token is made anew, once, where it is not accepted: nothing was done then. It may have
    been revoked, or this computer's clock is late."""

    def __init__(self, url: str, credentials: Credentials) -> None:
        super().__init__(url, credentials, TABLE)
        self._credentials = credentials

    def _ask(self, method: str, path: str, body: bytes | None, doing: str, pace: str) -> bytes:
        try:
            return super()._ask(method, path, body, doing, pace)
        except NoAccess:
            self._credentials.renew()
            return super()._ask(method, path, body, doing, pace)


class Google:
    """Whoever uses this computer, at each of Google's services. Safe from several threads."""

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self._env = os.environ if env is None else env
        self.credentials = Credentials(self._env)
        self._rests: dict[str, Rest] = {}

    def rest(self, service: str) -> Rest:
        """One of SERVICES; paths begin with a slash, behind its base URL."""
        if service not in self._rests:
            url = self._env.get(OVERRIDE + service.upper()) or SERVICES[service]
            self._rests[service] = _Rest(url, self.credentials)
        return self._rests[service]

    def signed(self, email: str, data: bytes) -> bytes:
        """By a key of this service account that Google keeps."""
        from base64 import b64decode, b64encode

        path = f"/v1/projects/-/serviceAccounts/{quote(email)}:signBlob"
        asked = {"payload": b64encode(data).decode()}
        answer = self.rest("iamcredentials").send(
            "POST", path, asked, _Signed, f"signing a link as {email}"
        )
        return b64decode(answer.signed_blob)


class Compute:
    """Compute Engine, of one project. Safe from several threads."""

    def __init__(self, google: Google, project: str) -> None:
        self.google, self.project = google, project

    @cached_property
    def _rest(self) -> Rest:
        return self.google.rest("compute")

    def at_s(self) -> int:
        """Google's clock, by its last answer."""
        return self._rest.at_s()

    # -- changes: each is an operation, and is sent once ------------------------------------------

    def insert(self, zone: str, body: Mapping[str, Any], request_id: str, doing: str) -> Operation:
        return self._change("POST", f"zones/{zone}/instances", body, request_id, doing)

    def bulk_insert(
        self, place: str, body: Mapping[str, Any], request_id: str, doing: str
    ) -> Operation:
        """`place`: zones/ZONE, or regions/REGION, where the body's locationPolicy counts."""
        return self._change("POST", f"{place}/instances/bulkInsert", body, request_id, doing)

    def delete(self, zone: str, name: str, doing: str) -> Operation:
        return self._change("DELETE", f"zones/{zone}/instances/{name}", None, "", doing)

    def insert_policy(
        self, region: str, body: Mapping[str, Any], request_id: str, doing: str
    ) -> Operation:
        return self._change("POST", f"regions/{region}/resourcePolicies", body, request_id, doing)

    def delete_policy(self, region: str, name: str, doing: str) -> Operation:
        return self._change("DELETE", f"regions/{region}/resourcePolicies/{name}", None, "", doing)

    def done(self, operation: Operation, doing: str) -> Operation:
        """Once it is; raises what it failed of."""
        return finished(operation, lambda each: self.operation(each, doing), doing)

    def operation(self, operation: Operation, doing: str) -> Operation:
        path = f"{operation.place}/operations/{operation.name}"
        return self._rest.get(self._path(path), Operation, doing)

    # -- questions --------------------------------------------------------------------------------

    def instances(self, having: str) -> list[Instance]:
        """In all zones, those that a filter lets through. All of them: OutcomeUnknown where a zone
        did not answer, since what is not seen there may well live."""
        scopes = self._aggregated("instances", having, "listing machines of Compute Engine")
        return [each for scope in scopes for each in scope.instances]

    def operations(self, having: str) -> list[Operation]:
        """In all zones and regions. Google keeps them for two weeks."""
        scopes = self._aggregated("operations", having, "listing operations of Compute Engine")
        return [each for scope in scopes for each in scope.operations]

    def instance(self, zone: str, name: str) -> Instance | None:
        return self._found(f"zones/{zone}/instances/{name}", Instance, f"looking for {name}")

    def reservations(self, zone: str) -> list[Reservation]:
        pages = self._pages(f"zones/{zone}/reservations", _Reservations, "looking for reservations")
        return [each for page in pages for each in page.items]

    def policies(self, region: str) -> list[Policy]:
        doing = f"looking for placement policies in {region}"
        pages = self._pages(f"regions/{region}/resourcePolicies", _Policies, doing)
        return [each for page in pages for each in page.items]

    def _path(self, path: str) -> str:
        return f"/projects/{self.project}/{path}"

    def _change(
        self, method: str, path: str, body: Mapping[str, Any] | None, request_id: str, doing: str
    ) -> Operation:
        asked = self._path(path) + (
            f"?{urlencode({'requestId': request_id})}" if request_id else ""
        )
        return self._rest.send(method, asked, body, Operation, doing)

    def _found(self, path: str, kind: type[T], doing: str) -> T | None:
        try:
            return self._rest.get(self._path(path), kind, doing)
        except Refused as error:
            if error.kind != "not_found":
                raise
            return None

    def _pages(self, path: str, kind: type[T], doing: str, having: str = "") -> Iterator[T]:
        asked = {"maxResults": _MOST} | ({"filter": having} if having else {})

        def token(page: Any) -> str | None:
            return page.next_page_token or None

        return self._rest.pages(self._path(path), kind, doing, token, "pageToken", asked)

    def _aggregated(self, what: str, having: str, doing: str) -> Iterator[_Scope]:
        for page in self._pages(f"aggregated/{what}", _Aggregated, doing, having):
            silent = list(page.unreachables)
            silent += [
                name
                for name, scope in page.items.items()
                if scope.warning is not None and scope.warning.code == _UNREACHABLE
            ]
            if page.warning is not None and page.warning.code == _UNREACHABLE:
                silent.append(page.warning.message or "some zone")
            if silent:
                raise OutcomeUnknown(
                    f"{doing}: no answer of {', '.join(map(last, silent))}, so that nothing can be"
                    " concluded of what is not listed",
                    hint="it is asked again; status.cloud.google.com tells of outages",
                )
            yield from page.items.values()

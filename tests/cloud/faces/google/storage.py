"""Cloud Storage of the equipment: the server of tests/store/gcs, with a gate that knows tokens,
policies and signatures, and books that the bill is made from.

It has a port of its own, so that what is read and written does not wait for the world. Everybody
shows who they are: by a token of this Google, by what a service account's key has signed itself (as
obstore does), or by a signed link. A token that was made with a boundary does what both its account
and the boundary allow. Known lies: project owners may read objects by their role (really: by a
binding that a bucket gets when it is made). Prices are those of class A and B requests, and of
traffic to other regions, whichever these are.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from pathlib import Path

from tests.cloud.faces.google.identity import Boundary, Who
from tests.cloud.faces.google.policies import bounded
from tests.cloud.faces.google.problems import Problem
from tests.cloud.faces.google.state import PROJECT, State
from tests.cloud.s3 import Asked as Row
from tests.cloud.s3 import Books
from tests.store.gcs import signed
from tests.store.gcs.gate import Asked
from tests.store.gcs.objects import Refused
from tests.store.gcs.server import Gcs


class Caller(str):
    """Its email, and what a boundary of its token leaves of its rights."""

    boundary: Boundary | None

    def __new__(cls, email: str, boundary: Boundary | None) -> Caller:
        made = super().__new__(cls, email)
        made.boundary = boundary
        return made


class Gate:
    def __init__(self, state: State) -> None:
        self._state = state
        self.policies = state.policies
        self.projects: dict[str, str] = {}
        """Of buckets."""

    def who(self, asked: Asked) -> str:
        state = self._state
        with state.world.lock:
            if signed.is_signed(asked.query):
                return signed.signer(asked, state.identities.signature_of, time.time())
            scheme, _, token = asked.headers.get("authorization", "").partition(" ")
            if not token:
                raise Refused(
                    401,
                    "AuthenticationRequired",
                    "Authentication required.",
                    "Anonymous caller does not have storage access.",
                )
            if token.count(".") == 2:
                return self._signed(token)
            found = state.identities.known(token)
            if scheme.lower() != "bearer" or found is None or state.identities.expired(found):
                raise Refused(401, "InvalidToken", "Invalid Credentials")
            return Caller(found.who.email, found.boundary)

    def _signed(self, token: str) -> str:
        try:
            return str(self._state.identities.claims(token)["iss"])
        except Problem as error:
            raise Refused(401, "InvalidToken", "Invalid Credentials", str(error)) from None

    def may(self, who: str, permission: str, bucket: str, key: str, prefix: str = "") -> bool:
        project = f"projects/{self.projects.get(bucket, PROJECT)}"
        resource = f"projects/_/buckets/{bucket}" if bucket else project
        name = f"{resource}/objects/{key}" if key else resource
        seen = {
            "name": name,
            "type": f"storage.googleapis.com/{'Object' if key else 'Bucket'}",
            "service": "storage.googleapis.com",
        }
        if prefix:
            seen["storage.googleapis.com/objectListPrefix"] = prefix
        with self._state.world.lock:
            held = [resource, project] if bucket else [project]
            rules = getattr(who, "boundary", None)
            if rules is not None and not bounded(rules, permission, bucket, seen):
                return False
            return self.policies.ask(Who(who), permission, held, "storage", seen)

    def project(self) -> str:
        return PROJECT


class Storage:
    def __init__(self, state: State) -> None:
        self._state = state
        world = state.world
        folder = (world.folder or Path(tempfile.mkdtemp())) / "storage"
        own = (world.bodies.host, "127.0.0.1")

        def who(address: str) -> str:
            return world.at_address(address) or ("" if address in own else address)

        self.books = world.s3 = Books(who=who, now=world.now)
        world.market.bucket_region = "us-central1"
        world.market.volume_usd_gb_month = 0.10
        world.market.volume_usd_by_kind = {"hyperdisk-balanced": 0.08}
        world.market.spot_address_part = 0.5
        self.gate = Gate(state)
        self._asked = itertools.count(1)
        self.gcs = Gcs(
            folder,
            world.now,
            self.gate,
            self._enter,
            self._fails,
            lambda: state.dials.object_pace_s,
        )
        server = self.gcs.serve(world.bodies.host)
        self.url = f"http://{world.bodies.host}:{server.server_address[1]}"
        self.gcs.made = self._made

    def _made(self, name: str, told: dict[str, str]) -> None:
        self.gate.projects[name] = told.get("_project", PROJECT)
        self._state.world.market.bucket_region = told.get("location", "").lower()

    def _fails(self) -> bool:
        every = self._state.dials.storage_fails_every
        return bool(every) and next(self._asked) % every == 0

    def _enter(self, address: str, sort: str, came: int, went: int) -> None:
        with self._state.world.lock:
            caller = self.books.who(address)
        with self.books.lock:
            row = self.books.asked.setdefault(caller, Row())
            setattr(row, sort, getattr(row, sort) + 1)
            row.bytes_in += came
            row.bytes_out += went

    def make(self, name: str, location: str, project: str) -> None:
        if name in self.gcs.objects.buckets:
            raise Problem(409, f"there is a bucket {name} already")
        told = {
            "kind": "storage#bucket",
            "name": name,
            "location": location.upper(),
            "locationType": "region",
            "metageneration": "1",
            "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}},
            "_project": project,
        }
        self.gcs.objects.put_bucket(name, told)
        self._made(name, {"location": location, "_project": project})

    def keys(self, bucket: str, prefix: str) -> list[str]:
        order = self.gcs.objects.bucket(bucket).order
        return [each for each in order if each.startswith(prefix)]

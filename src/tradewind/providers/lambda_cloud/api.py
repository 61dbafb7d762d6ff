"""The calls of Lambda's API that we make, and what of their answers we use.

The key is read when it is needed, from the variable or the file that other tools use too; it is
kept in no footprint and in no message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from tradewind.base.errors import NoAccess
from tradewind.providers.base import OutcomeUnknown
from tradewind.providers.lambda_cloud.troubles import KEY_HINT, TABLE
from tradewind.providers.rest import Pace, Rest, bearer

VARIABLE, FILE = "LAMBDA_API_KEY", Path(".lambda_cloud/lambda_keys")
_ENDPOINT = "LAMBDA_CLOUD_BASE_URL"
_URL = "https://cloud.lambda.ai"
_API = "/api/v1"
LAUNCH = "launch"
PACE = Pace({"*": 1.0, LAUNCH: 12.0})
"""As Lambda documents it: a request a second, a launch every twelve."""
ENDED = ("terminated", "preempted")
ENDING = (*ENDED, "terminating")


class Named(Struct, frozen=True):
    name: str


class Kind(Struct, frozen=True):
    """Of machine."""

    name: str
    price_cents_per_hour: int
    architecture: str | None = None

    @property
    def arm(self) -> bool:
        return "arm" in (self.architecture or "") or "gh200" in self.name


class Offered(Struct, frozen=True):
    instance_type: Kind
    regions_with_capacity_available: tuple[Named, ...] = ()

    @property
    def regions(self) -> frozenset[str]:
        return frozenset(each.name for each in self.regions_with_capacity_available)


class Instance(Struct, frozen=True):
    id: str
    status: str
    name: str | None = None
    ip: str | None = None


class SshKey(Struct, frozen=True):
    id: str
    name: str
    public_key: str = ""


class _Offers(Struct):
    data: dict[str, Offered]


class _Instances(Struct):
    data: list[Instance]
    page_token: str | None = None
    """No version of the document has it; a list that were cut would hide machines that are paid."""


class _Ids(Struct):
    instance_ids: list[str]


class _Launched(Struct):
    data: _Ids


class _Ended(Struct):
    terminated_instances: list[Instance]


class _Terminated(Struct):
    data: _Ended


class _Keys(Struct):
    data: list[SshKey]


class _Key(Struct):
    data: SshKey


class _Rules(Struct):
    data: list[dict[str, Any]]


class Api:
    """Safe from several threads. Nobody misses a key before something is asked."""

    def __init__(self, env: Mapping[str, str] | None = None, pace: Pace | None = None) -> None:
        self._env, self._pace = os.environ if env is None else env, pace or PACE

    @cached_property
    def _found(self) -> tuple[str, str]:
        return found_key(self._env, Path.home())

    @property
    def key_from(self) -> str:
        return self._found[1]

    @cached_property
    def _rest(self) -> Rest:
        url = self._env.get(_ENDPOINT) or _URL
        return Rest(url, bearer(self._found[0]), TABLE, self._pace)

    def at_s(self) -> int:
        """Lambda's clock, by its last answer."""
        return self._rest.at_s()

    def offers(self) -> dict[str, Offered]:
        """Every type of machine there is, by name."""
        asked = self._rest.get(f"{_API}/instance-types", _Offers, "asking Lambda what it sells")
        return asked.data

    def instances(self) -> list[Instance]:
        """All of the account's, whoever has launched them."""
        pages = self._rest.pages(
            f"{_API}/instances",
            _Instances,
            "listing machines of Lambda",
            lambda page: page.page_token,
            "page_token",
        )
        return [each for page in pages for each in page.data]

    def launch(self, asked: Mapping[str, Any], doing: str) -> str:
        """One machine: its id."""
        path = f"{_API}/instance-operations/launch"
        made = self._rest.send("POST", path, asked, _Launched, doing, LAUNCH).data.instance_ids
        if len(made) != 1:
            raise OutcomeUnknown(f"{doing}: Lambda has launched {len(made)} machines, not one")
        return made[0]

    def terminate(self, ids: Sequence[str]) -> list[str]:
        """Those that are ending. Refused, and none of them, where one is not there."""
        told = self._rest.send(
            "POST",
            f"{_API}/instance-operations/terminate",
            {"instance_ids": list(ids)},
            _Terminated,
            "terminating machines of Lambda",
        )
        return [each.id for each in told.data.terminated_instances]

    def ssh_keys(self) -> list[SshKey]:
        return self._rest.get(f"{_API}/ssh-keys", _Keys, "asking Lambda for SSH keys").data

    def add_ssh_key(self, name: str, public_key: str) -> SshKey:
        asked = {"name": name, "public_key": public_key}
        doing = f"adding the SSH key {name}"
        return self._rest.send("POST", f"{_API}/ssh-keys", asked, _Key, doing).data

    def remove_ssh_key(self, key: SshKey) -> None:
        doing = f"removing the SSH key {key.name}"
        self._rest.send("DELETE", f"{_API}/ssh-keys/{key.id}", None, Any, doing)

    def rules(self) -> list[dict[str, Any]]:
        """Of the account's firewall, in all regions: who may reach machines."""
        return self._rest.get(
            f"{_API}/firewall-rules", _Rules, "asking Lambda for firewall rules"
        ).data

    def replace_rules(self, rules: Sequence[Mapping[str, Any]]) -> None:
        """All of them: single ones cannot be changed."""
        doing = "replacing Lambda's firewall rules"
        self._rest.send("PUT", f"{_API}/firewall-rules", {"data": rules}, _Rules, doing)


def found_key(env: Mapping[str, str], user: Path) -> tuple[str, str]:
    """The key, and where it was found."""
    if key := env.get(VARIABLE, "").strip():
        return key, VARIABLE
    path = user / FILE
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise NoAccess("there is no key for Lambda here", hint=KEY_HINT) from None
    except (OSError, UnicodeDecodeError) as error:
        raise NoAccess(f"{path} cannot be read: {error}", hint=KEY_HINT) from None
    named = re.search(r"^\s*api_key\s*=\s*(\S+)\s*$", text, re.MULTILINE)
    if named is None:
        raise NoAccess(f"{path} has no line `api_key = …`", hint=KEY_HINT)
    return named[1], f"~/{FILE}"

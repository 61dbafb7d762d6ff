"""What the routes of a table do: each `_does_…` takes what was asked for and returns facts.

Known lies: machines of one request are had all or not at all; rules of firewalls are kept and
guard nothing; every key but one is wrong.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from tests.cloud.clock import iso
from tests.cloud.face import Answer, Call, Face, Refusal
from tests.cloud.faces.rest.shapes import filled, found
from tests.cloud.faces.rest.table import Field, Route, Table
from tests.cloud.world import Machine, Thing, World

KEY = "key-of-nobody"
_JSON = [("Content-Type", "application/json")]

Facts = dict[str, Any]


@dataclass
class RestCall(Call):
    route: Route | None = None
    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)


class Rest(Face):
    def __init__(self, table: Table) -> None:
        self.table = table
        self.name = table.name
        self.notice_s, self.billing = table.notice_s, table.billing
        self.quotas, self.quotas_by_region = table.quotas, False
        self.statuses = {each.code: each.status for each in table.errors.values()}
        self._patterns = [
            (each, re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", each.path)))
            for each in table.routes
        ]

    def opened(self, world: World) -> None:
        super().opened(world)
        self._made = 0
        self._shelves: dict[str, dict[str, Facts]] = {name: {} for name in self.table.shelves}
        self._launched: dict[str, list[Machine]] = {}
        for name, kind in self.table.kinds.items():
            world.market.put_on_demand(name, kind.usd_hour)

    # -- requests and answers ----------------------------------------------------------------------

    def read(self, environ: dict[str, Any], body: bytes) -> RestCall:
        method, path = str(environ["REQUEST_METHOD"]), str(environ.get("PATH_INFO", ""))
        query = dict(parse_qsl(str(environ.get("QUERY_STRING", "")), True))
        where = {"method": method, "path": path}
        for route, pattern in self._patterns:
            match = pattern.fullmatch(path)
            if match and method == route.method:
                return RestCall(route.action, environ, body, where, route, match.groupdict(), query)
        return RestCall("", environ, body, where, None, {}, query)

    def answer(self, call: Call) -> Answer:
        assert isinstance(call, RestCall)
        if not self._knows(call.environ):
            raise Refusal("unauthorized")
        route = call.route
        if route is None:
            raise Refusal("unknown", f"There is no {call.where['method']} {call.where['path']}")
        asked: Facts = {**call.path, **_taken(route.takes, _body(call.body), call.query)}
        does = getattr(self, f"_does_{route.does}")
        facts = does(route.of, asked) if route.of else does(asked)
        if route.pages:
            facts |= self._page(facts[route.pages], route.pages, call.query)
        return _told(route.status, filled(route.gives, facts))

    def error(self, call: Call, code: str, words: str, status: int) -> Answer:
        facts = {"code": code, "message": words, "more": "", "status": status}
        return _told(status, filled(self.table.error_shape, facts))

    def refused(self, call: Call, refusal: Refusal) -> Answer:
        error = self.table.errors[refusal.sort]
        facts: Facts = {"code": error.code, "message": refusal.words or error.message}
        facts |= {"more": error.more, "status": error.status}
        return _told(error.status, filled(self.table.error_shape, facts))

    def _knows(self, environ: Mapping[str, Any]) -> bool:
        for header, how in self.table.auth:
            given = str(environ.get(f"HTTP_{header.upper().replace('-', '_')}", ""))
            if how == "plain" and given == KEY:
                return True
            scheme, _, value = given.partition(" ")
            if scheme.lower() == how and KEY in (value, _user(value) if how == "basic" else value):
                return True
        return False

    def _page(self, items: list[Facts], name: str, query: Mapping[str, str]) -> Facts:
        paging = self.table.paging
        assert paging is not None
        try:
            first = int(query.get(paging.token) or 0)
            size = min(int(query.get(paging.size) or paging.most), paging.most)
        except ValueError:
            raise Refusal("invalid", "There is no such page") from None
        more = first + size < len(items)
        return {name: items[first : first + size], "next": str(first + size) if more else ""}

    # -- machines ----------------------------------------------------------------------------------

    def _does_launch(self, asked: Facts) -> Facts:
        token = asked.get("token")
        if token and token in self._launched:
            return self._of(self._launched[token])
        kind, region = asked["kind"], asked["region"]
        if kind not in self.table.kinds:
            raise Refusal("unknown", f"There is no machine type {kind}")
        if region not in self.table.regions:
            raise Refusal("invalid", f"There is no region {region}")
        name, count = asked.get("name") or "", asked.get("count") or 1
        if self.table.unique_names and name in [m.record["name"] for m in self.world.alive()]:
            raise Refusal("duplicate", f"There is a machine {name} already")
        self._referred(asked, region)
        zones = (asked.get("zone") or region,)
        if self.world.allowed(region, kind, "on-demand") < count:
            raise Refusal("quota")
        if self.world.room(zones, kind, "on-demand") < count:
            raise Refusal("capacity")
        made = [self._machine(kind, region, zones, asked) for _ in range(count)]
        if token:
            self._launched[token] = made
        return self._of(made)

    def _machine(self, kind: str, region: str, zones: tuple[str, ...], asked: Facts) -> Machine:
        now = self.world.now()
        text = str(asked.get("user_data") or "")
        machine = Machine(
            id=self._id(),
            region=region,
            zones=zones,
            kind=kind,
            market="on-demand",
            launched=now,
            listed_from=now + self.world.dials.lag_s,
            user_data=base64.b64decode(text) if self.table.user_data == "base64" else text.encode(),
            record={**asked, "name": asked.get("name") or ""},
        )
        machine.address = self.world.bodies.address(machine) or ""
        machine.hostname = f"ip-{machine.address.replace('.', '-')}" if machine.address else ""
        self.world.begin(machine)
        return machine

    def _referred(self, asked: Facts, region: str) -> None:
        """Whatever a launch names must be there."""
        for name, shelf in self.table.shelves.items():
            for wished in asked.get(shelf.asked_as) or []:
                there = [each for each in self._shelves[name].values() if each["name"] == wished]
                if not there:
                    raise Refusal("unknown", f"There is no {wished}")
                if shelf.regional and there[0]["region"] != region:
                    raise Refusal("elsewhere", f"{wished} is in {there[0]['region']}")

    def _does_end(self, asked: Facts) -> Facts:
        ids = asked["ids"] if "ids" in asked else [asked["id"]]
        machines = [self._known(each) for each in ids]
        for each in machines:
            self.world.end(each, "user")
        return self._of(machines)

    def _does_rename(self, asked: Facts) -> Facts:
        machine = self._known(asked["id"])
        machine.record["name"] = asked["name"]
        return self._of([machine])

    def _does_machines(self, asked: Facts) -> Facts:
        there = [m for m in self.world.listed() if m.state != "ended" or self.table.lists_ended]
        return self._of(there)

    def _does_machine(self, asked: Facts) -> Facts:
        return self._of([self._known(asked["id"])])

    def _does_kinds(self, asked: Facts) -> Facts:
        return {"kinds": [self._kind(name) for name in self.table.kinds]}

    def _known(self, machine_id: str) -> Machine:
        machine = self.world.machines.get(str(machine_id))
        if machine is None or machine not in self.world.listed():
            raise Refusal("unknown")
        return machine

    def _of(self, machines: list[Machine]) -> Facts:
        told = [self._facts(each) for each in machines]
        ids = [each.id for each in machines]
        return {"machines": told, "ids": ids, "machine": told[0] if told else None}

    def _facts(self, machine: Machine) -> Facts:
        return {
            **machine.record,
            "id": machine.id,
            "state": self.table.states[machine.state],
            "region": machine.region,
            "region_words": self.table.regions[machine.region],
            "zone": machine.zones[0],
            "kind": self._kind(machine.kind),
            "address": machine.address,
            "hostname": machine.hostname,
            "made": iso(machine.launched),
        }

    def _kind(self, name: str) -> Facts:
        kind, usd_hour = self.table.kinds[name], self.world.market.on_demand("*", name)
        regions = [
            {"name": region, "words": words}
            for region, words in self.table.regions.items()
            if self.world.room((region,), name, "on-demand") > 0
        ]
        told = {"name": name, "cpus": kind.cpus, "gpus": kind.gpus, "usd_hour": usd_hour}
        return {**told, "cents_hour": round(100 * usd_hour), "regions": regions, **kind.more}

    # -- shelves -----------------------------------------------------------------------------------

    def _does_list(self, shelf: str, asked: Facts) -> Facts:
        there = list(self._shelves[shelf].values())
        return {"raw": there, "things": [self._thing(shelf, each) for each in there]}

    def _does_make(self, shelf: str, asked: Facts) -> Facts:
        there, rules = self._shelves[shelf], self.table.shelves[shelf]
        if asked["name"] in [each["name"] for each in there.values()]:
            raise Refusal("duplicate", f"There is one of the name {asked['name']} already")
        if rules.regional and asked["region"] not in self.table.regions:
            raise Refusal("invalid", f"There is no region {asked['region']}")
        now = self.world.now()
        made = {**asked, "id": self._id(), "made": iso(now)}
        there[made["id"]] = made
        if rules.costs:
            region = asked.get("region", "")
            self.world.things[made["id"]] = Thing(made["id"], shelf, region, now)
        return {"thing": self._thing(shelf, made)}

    def _does_remove(self, shelf: str, asked: Facts) -> Facts:
        thing = self._shelves[shelf].get(asked["id"])
        if thing is None:
            raise Refusal("unknown")
        if self.table.shelves[shelf].held and self._used(shelf, thing):
            raise Refusal("in_use")
        del self._shelves[shelf][asked["id"]]
        if asked["id"] in self.world.things:
            self.world.things[asked["id"]].gone = self.world.now()
        return {"ids": [asked["id"]]}

    def _does_replace(self, shelf: str, asked: Facts) -> Facts:
        """All of them by these, which have no names."""
        self._shelves[shelf] = {str(n): each for n, each in enumerate(asked["things"])}
        return {"raw": asked["things"]}

    def _thing(self, shelf: str, thing: Facts) -> Facts:
        words = self.table.regions.get(thing.get("region", ""), "")
        return {**thing, "region_words": words, "in_use": self._used(shelf, thing)}

    def _used(self, shelf: str, thing: Facts) -> bool:
        asked_as = self.table.shelves[shelf].asked_as
        return any(thing.get("name") in m.record.get(asked_as, []) for m in self.world.alive())

    # -- what the world asks -----------------------------------------------------------------------

    def size(self, kind: str) -> tuple[int, int]:
        told = self.table.kinds[kind]
        return told.cpus, told.gpus

    def counts(self, kind: str, market: str) -> tuple[str, float]:
        return (next(iter(self.table.quotas)), 1.0) if self.table.quotas else ("", 0.0)

    def after_shutdown(self, machine: Machine) -> str:
        return self.table.after_shutdown

    def metadata(
        self, machine: Machine, method: str, path: str, headers: Mapping[str, str]
    ) -> Answer | None:
        if method != "GET" or path not in self.table.metadata:
            return None
        told = filled(self.table.metadata[path], self._facts(machine))
        return Answer(200, [], str(told).encode())

    def _id(self) -> str:
        self._made += 1
        return self.table.ids.format(self._made)


def _told(status: int, body: Any) -> Answer:
    return Answer(status, list(_JSON), json.dumps(body).encode())


def _body(body: bytes) -> Facts:
    try:
        given = json.loads(body or b"{}")
    except ValueError:
        raise Refusal("invalid", "The body is not JSON") from None
    if not isinstance(given, dict):
        raise Refusal("invalid", "The body is not an object")
    return given


def _taken(takes: Mapping[str, Field], body: Facts, query: Mapping[str, str]) -> Facts:
    asked: Facts = {}
    for name, field_ in takes.items():
        value: Any = found(field_.at, body)
        value = query.get(field_.at) if value is None else value
        value = field_.default if value is None else value
        if value is None and field_.needed:
            raise Refusal("invalid", f"{field_.at} is missing")
        if value is not None and type(value) is not field_.sort:
            raise Refusal("invalid", f"{field_.at} is not of the right type")
        most = field_.most
        if most is not None and isinstance(value, str | list) and len(value) > most:
            raise Refusal("invalid", f"{field_.at} is too long")
        asked[name] = value
    return asked


def _user(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return ""

"""Machines of Lambda, for whoever owns a store.

Lambda launches one machine a call, without a token: a launch is sent once, by who has recorded it
(`Facts.safety` is "recorder"). A machine is known again by its name alone (names.py), which holds
when it was launched. When one ended Lambda does not tell either: of those that this object has
terminated it is the moment that Lambda agreed to that, as the bill has it; others are not listed
any more, and runs estimate it (lifecycle/decide.py).

Safe from several threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tradewind.base.errors import BadFile, InvalidValue, NoAccess
from tradewind.model.run import Listing, Machine, Request
from tradewind.providers.base import Refused
from tradewind.providers.boot import told
from tradewind.providers.boot.luggage import Luggage, Pack
from tradewind.providers.gang import Gang
from tradewind.providers.lambda_cloud import names
from tradewind.providers.lambda_cloud.api import ENDED, ENDING, Api, Instance
from tradewind.providers.lambda_cloud.footprint import Footprint, setup_command
from tradewind.providers.lambda_cloud.names import Name
from tradewind.providers.lambda_cloud.usable import check_account

_WHO = "tradewind.providers.lambda_cloud"
_MOST_BYTES = 1_000_000
"""Of user-data, which Lambda takes as plain text."""
_REMEMBERED_S = 3600
"""An ended machine is listed for so long, by who has ended it."""


class LambdaMachines:
    """One by one (../gang.py)."""

    def __init__(self, api: Api, footprint: Footprint, owner: str, luggage: Pack) -> None:
        """`owner` is the store's URL. `luggage` puts together what machines of a request take
        along."""
        self._api, self._footprint, self._store_url = api, footprint, owner
        self._owner, self._luggage = names.owner_of(owner), luggage
        self._bought: dict[str, tuple[Name, str]] = {}
        """By the machine's id, what this object has bought, and Lambda's id of it: it may not be
        listed yet."""
        self._ended: dict[str, tuple[Name, int]] = {}
        """What has ended, and when: as Lambda agreed to terminate it, or else as it was first seen
        to have ended."""
        self._packed: tuple[str, Luggage] | None = None
        self._arm: dict[str, bool] = {}
        self._checked = False

    def list_machines(self) -> Listing:
        there = list(self._ours(self._api.instances()))
        at_s = self._api.at_s()
        living = {name.machine_id: name for name, each in there if each.status not in ENDED}
        for name, _ in there:
            self._bought.pop(name.machine_id, None)
            if name.machine_id not in living:
                self._ended.setdefault(name.machine_id, (name, at_s))
        self._forget(at_s)
        over = [
            _machine(name, max(ended_s, name.launched_s))
            for machine_id, (name, ended_s) in self._ended.copy().items()
            if machine_id not in living
        ]
        machines = [_machine(name) for name in living.values()]
        return Listing(at_s=at_s, machines=(*machines, *over))

    def launch_one(self, request: Request, rank: int, after: int, key: str) -> Machine:
        way = request.way
        if way.region not in self._footprint.regions:
            raise Refused(
                "not_found",
                f"nothing is set up in {way.region}",
                hint=setup_command(self._store_url, way.region),
            )
        if way.market != "on_demand":
            raise Refused("not_found", f"Lambda sells nothing on the {way.market} market")
        self._check_account()
        luggage = self._taken_along(request)
        try:
            name = names.made(self._owner, request, rank, self._api.at_s())
        except InvalidValue as error:
            raise Refused("not_allowed", error.message, hint=error.hint) from None
        asked: dict[str, Any] = {
            "region_name": way.region,
            "instance_type_name": way.instance_type,
            "ssh_key_names": [self._footprint.ssh_key],
            "name": name.text,
            "image": {"family": self._footprint.image},
            "user_data": self._told(request, name, luggage, after, key),
        }
        made = self._api.launch(asked, f"launching {way.words}")
        self._bought[name.machine_id] = (name, made)
        return _machine(name)

    def _check_account(self) -> None:
        """Once: it is of the account, which the store only tells of."""
        if self._checked:
            return
        try:
            check_account(self._api, self._footprint, self._store_url)
        except (BadFile, NoAccess) as error:
            raise Refused("not_allowed", error.message, hint=error.hint) from None
        self._checked = True

    def terminate(self, machine_ids: Sequence[str]) -> None:
        """Every machine of these names: should Lambda have launched one twice, both."""
        wanted = {
            each: name
            for each in machine_ids
            if (name := names.of_machine(each)) and name.owner == self._owner
        }
        if not wanted:
            return
        there = [
            (name, each)
            for name, each in self._ours(self._api.instances())
            if name.machine_id in wanted
        ]
        listed = {name.machine_id for name, _ in there}
        going = {each.id: name for name, each in there if each.status not in ENDING}
        for machine_id in wanted.keys() - listed:
            if bought := self._bought.get(machine_id):
                going[bought[1]] = bought[0]
        self._end(going)

    def _end(self, going: dict[str, Name]) -> None:
        if not going:
            return
        try:
            agreed = self._api.terminate(sorted(going))
        except Refused as error:
            if error.kind != "not_found":
                raise
            if len(going) == 1:  # it has ended meanwhile, or is not known yet: asked again if so
                return
            for one, name in going.items():
                self._end({one: name})
            return
        at_s = self._api.at_s()
        for one in agreed:
            if one in going:  # it was listed as living, whatever was agreed to before
                self._ended[going[one].machine_id] = (going[one], at_s)

    # What more there is of a machine.

    def _ours(self, instances: Iterable[Instance]) -> Iterable[tuple[Name, Instance]]:
        for each in instances:
            name = names.parsed(each.name)
            if name is not None and name.owner == self._owner:
                yield name, each

    def _forget(self, at_s: int) -> None:
        for machine_id, (_, ended_s) in self._ended.copy().items():
            if at_s - ended_s > _REMEMBERED_S:
                self._ended.pop(machine_id, None)
        for machine_id, (name, _) in self._bought.copy().items():
            if at_s - name.launched_s > _REMEMBERED_S:
                self._bought.pop(machine_id, None)

    def _taken_along(self, request: Request) -> Luggage:
        """Once for all machines of a request."""
        packed = self._packed
        if packed is None or packed[0] != request.launch_id:
            arm = "arm64" if self._is_arm(request.way.instance_type) else "x86_64"
            packed = self._packed = (request.launch_id, self._luggage(request, arm))
        return packed[1]

    def _is_arm(self, instance_type: str) -> bool:
        if instance_type not in self._arm:
            offered = self._api.offers().get(instance_type)
            if offered is None:
                raise Refused("not_found", f"Lambda has no machines of the type {instance_type}")
            self._arm[instance_type] = offered.instance_type.arm
        return self._arm[instance_type]

    def _told(self, request: Request, name: Name, luggage: Luggage, after: int, key: str) -> str:
        boot = told.boot(
            request,
            self._store_url,
            after,
            key,
            "lambda",
            rank=name.rank,
            machine_id=name.machine_id,
        )
        text = told.script(boot, luggage, _WHO)
        if len(text.encode()) > _MOST_BYTES:
            raise Refused("not_allowed", "what a machine is told is more than Lambda takes")
        return text


class LambdaProvider(Gang):
    def __init__(self, api: Api, footprint: Footprint, owner: str, luggage: Pack) -> None:
        self._machines = LambdaMachines(api, footprint, owner, luggage)
        super().__init__(self._machines)


def _machine(name: Name, ended_s: int | None = None) -> Machine:
    return Machine(
        machine_id=name.machine_id,
        launch_id=name.launch_id,
        run_id=name.run_id,
        leg=name.leg,
        rank=name.rank,
        launched_s=name.launched_s,
        ended_s=ended_s,
    )

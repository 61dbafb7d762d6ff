"""The providers that other tests trust are held to the same."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from tests.controller.fakes import FakeProvider
from tests.providers.conformance import Conformance, Place
from tradewind.model.run import Request
from tradewind.sim import scenario as scenarios
from tradewind.sim.cloud import SimCloud
from tradewind.sim.referee import Referee
from tradewind.sim.world import World


class TestFake(Conformance):
    @pytest.fixture
    def place(self) -> Place:
        return Place(FakeProvider(), threads=False)


class AnyPurchase(Referee):
    """There is no journal that could have recorded it."""

    def buys(self, request: Request) -> None:
        pass


class TestSimulated(Conformance):
    @pytest.fixture
    def place(self) -> Place:
        world = World(random.Random(1), tell=False)
        spec_of = scenarios.of(world.rng)
        facts = replace(spec_of.spec.ways[0].facts, tokens=True, queues=False)
        way = replace(spec_of.spec.ways[0], facts=facts)
        quiet = replace(spec_of, quiet_s=0, spec=replace(spec_of.spec, ways=(way,)))
        referee = AnyPurchase(world, quiet)
        where = replace(spec_of.places[0], facts=facts, outage=(0, 0))
        cloud = SimCloud(world, quiet, where, referee, lambda *_: None)
        referee.rented.clouds = {where.name: cloud}
        return Place(cloud, way, threads=False)

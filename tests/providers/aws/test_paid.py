"""What a spot machine was charged at, while its price changed."""

from __future__ import annotations

from msgspec.structs import replace

from tests.providers.aws.machines import way
from tradewind.base.units import Micros
from tradewind.catalog import ratecard
from tradewind.model.bill import bill, charged
from tradewind.model.run import Machine
from tradewind.providers import charges
from tradewind.providers.aws.limits.prices import SpotPrice
from tradewind.providers.aws.machines.paid import held

MACHINE = Machine(
    machine_id="aws-us-east-1-i-1",
    launch_id="run-1-1",
    run_id="run-1",
    leg=1,
    rank=0,
    launched_s=10_000,
    ended_s=17_200,
)


def at(at_s: float, price: int) -> SpotPrice:
    return SpotPrice(instance_type="g5.xlarge", zone="use1-az1", price=Micros(price), at_s=at_s)


def test_each_hour_costs_what_the_price_was_when_it_began() -> None:
    told = held(MACHINE, [at(5, 9), at(9_000, 3600), at(11_000, 1), at(13_600, 7200)])
    assert told == ((10_000, 3600), (13_600, 7200))
    later = held(MACHINE, [at(9_000, 3600), at(13_601, 7200), at(20_000, 1)])
    assert later == ((10_000, 3600),)  # its second hour had begun
    spot = way(market="spot", price=5000)
    assert charged(spot, replace(MACHINE, prices=told), 7200) == 3600 + 7200
    assert charged(spot, MACHINE, 7200) == 10_000  # nobody told: as it was bought
    assert held(MACHINE, [at(12_000, 1)]) == ()


def test_what_lives_costs_what_the_price_was_until_now() -> None:
    lives = replace(MACHINE, ended_s=None)
    history = [at(9_000, 3600), at(13_000, 7200), at(17_000, 1)]
    assert held(lives, history, 13_599) == ((10_000, 3600),)
    assert held(lives, history, 13_601) == ((10_000, 3600), (13_600, 7200))


def test_the_least_that_is_billed_is_at_the_last_price() -> None:
    short = replace(MACHINE, ended_s=10_020, prices=((10_000, 3600), (10_010, 7200)))
    assert charged(way(market="spot"), short, 20) == 10 + 50 * 2
    free = replace(MACHINE, prices=((10_000, 0),))
    assert charged(way(market="spot"), free, 1000) == 0


def test_a_disk_is_paid_beside_the_machine() -> None:
    disk = charges.disk_hour(ratecard.card(), ("aws", "us-east-1"), 150)
    assert disk == 16_667
    with_disk = way(price=1_000_000 + disk, disk_price=disk)
    assert charged(with_disk, MACHINE, 7200) == 2_000_000 + bill(disk, 7200, with_disk.facts)
    free = replace(MACHINE, prices=((10_000, 0),))
    assert charged(with_disk, free, 3600) == disk  # which was not taken back

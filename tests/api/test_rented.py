"""A plan on machines of AWS: planned for what is set up, in zones, as the account can have it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from tests.cloud.faces.ec2.control import Control, running
from tests.providers.aws.machines import footprint
from tests.store import servers
from tradewind import store as stores
from tradewind.api import fleet, planned, rented, submit
from tradewind.base import errors
from tradewind.catalog import ratecard
from tradewind.model import places
from tradewind.planning.finish import FAR_RATE
from tradewind.providers import charges
from tradewind.providers.aws.facts import FACTS
from tradewind.providers.aws.footprint import KEY, secrets_path
from tradewind.store.base import Store

WORK = """
name: lora
work: {on: 1xA10G, step: 1s, steps: "20,000", memory: 10GB}
checkpoint: {every: 5m, size: 2GB}
limits: {deadline: 4d, budget: $100, accelerators: [A10G], regions: ["us-*"]}
run:
  command: "python train.py"
"""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    with running(tmp_path_factory.mktemp("ec2"), bodies="none") as control:
        yield control


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with servers.s3(tmp_path_factory.mktemp("s3")) as env:
        yield dict(env)


@pytest.fixture
def store(
    cloud: Control,
    bucket: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Store:
    keys = {name: bucket[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    env = cloud.env | keys | {"AWS_ENDPOINT_URL_S3": bucket["AWS_ENDPOINT_URL"]}
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    return stores.open(f"s3://runs/{request.node.name}")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "job" / "work.yaml"
    place.parent.mkdir()
    place.write_text(WORK)
    return place


def test_nothing_is_rented_where_nothing_is_set_up(
    store: Store, cloud: Control, work: Path
) -> None:
    with pytest.raises(errors.NotFound, match="nothing is set up at AWS for s3://runs/"):
        rented.On(store, ["aws"])
    store.replace(KEY, b"{")
    with pytest.raises(errors.BadFile, match=r"providers/aws\.json"):
        rented.On(store, ["aws"])
    store.replace(KEY, footprint(cloud).encoded())
    with pytest.raises(errors.NotFound, match=r"nothing is set up in eu-west-1\n"):
        rented.On(store, ["aws"], ["eu-west-1"])
    with pytest.raises(errors.NotFound, match=r"us-est-1 \(did you mean us-east-1"):
        rented.On(store, ["aws"], ["us-est-1"])
    work.write_text(WORK.replace("us-*", "eu-*"))
    with pytest.raises(errors.NotFound, match="lora allows none of us-east-1 at aws"):
        submit.wanted(str(work), rented.On(store, ["aws"]))


def test_a_plan_is_made_for_what_is_set_up(store: Store, cloud: Control, work: Path) -> None:
    store.replace(KEY, footprint(cloud).encoded())
    on = rented.On(store, ["aws"])
    spec = submit.spec_of(submit.wanted(str(work), on), local=False, on=on)
    assert {(way.provider, way.region) for way in spec.ways} == {("aws", "us-east-1")}
    assert all(way.zone.startswith("use1-az") for way in spec.ways)
    assert {way.market for way in spec.ways} == {"spot", "on_demand"}
    assert all(way.facts == FACTS and way.disk_gb >= 150 for way in spec.ways)
    assert all(0 < way.disk_price < way.price for way in spec.ways)
    assert all(way.address_price == 5_000 for way in spec.ways)
    home = ("aws", "us-east-1")
    rates = charges.store(ratecard.card(), home, home, kept_s=86_400)
    assert all(way.rates == rates for way in spec.ways)
    assert on.warnings == []  # every price is known there
    # And the plan has counted what its ways are charged, with the store where setup has made it.
    assert planned.rates(on).store == on.bucket == home
    plan = submit.wanted(str(work), on).plan
    [way] = [way for way in spec.ways if way.market == plan.markets[0]][:1]
    held_h = plan.on_demand_hours + plan.spot_hours
    extra = (way.disk_price + way.address_price) * plan.nodes * held_h
    assert plan.costs["disk"] + plan.costs["address"] == pytest.approx(extra, rel=0.001)
    far = structs.replace(footprint(cloud), bucket_region="eu-west-1")
    store.replace(KEY, far.encoded())
    moved = submit.wanted(str(work), rented.On(store, ["aws"])).plan
    assert moved.costs["egress"] > 0 == plan.costs.get("egress", 0)
    assert moved.save > 0 == plan.save
    assert set(fleet.providers(store)) == {"local", "aws"}


def test_this_computer_beside_a_cloud(store: Store, cloud: Control, work: Path) -> None:
    store.replace(KEY, footprint(cloud).encoded())
    on = rented.On(store, ["aws", "local"])
    spec = submit.spec_of(submit.wanted(str(work), on), local=False, on=on)
    *far, here = spec.ways
    assert {way.provider for way in far} == {"aws"}
    assert (here.provider, here.price, here.nodes, here.guessed) == ("local", 0, 1, True)
    assert here.rate == spec.ways[0].rate
    rates = charges.outside(ratecard.card(), ("aws", "us-east-1"), kept_s=86_400)
    assert here.rates == rates
    assert not any(way.bring for way in far)
    gb = spec.checkpoint_bytes / 2**30
    assert here.bring == pytest.approx(gb * rates.gb_out, abs=1)
    assert (here.save > 0) == (rates.gb_in > 0)
    assert here.start_s >= spec.checkpoint_bytes / FAR_RATE > 0
    assert spec.predicted_cost  # of the plan's machines: nobody knows how fast this one is


def test_machines_that_are_named_are_rented_exactly(
    store: Store, cloud: Control, work: Path
) -> None:
    work.write_text("gpus: A10G:1\nnodes: 2\ndisk: 300GB\nrun: {command: python train.py}\n")
    store.replace(KEY, footprint(cloud).encoded())
    on = rented.On(store, ["aws", "local"])
    spec = submit.spec_of(submit.wanted(str(work), on), local=False, on=on)
    spec, _ = submit.as_begun(spec)
    kinds = {way.instance_type for way in spec.ways}
    assert kinds
    assert all(kind.startswith("g5.") for kind in kinds)
    assert {(way.provider, way.nodes) for way in spec.ways} == {("aws", 2)}
    assert {way.market for way in spec.ways} == {"spot", "on_demand"}
    assert spec.ways[0].price == min(way.price for way in spec.ways)
    assert all(way.disk_gb >= 450 for way in spec.ways)  # beside the image and checkpoints
    assert (spec.untold, spec.predicted_cost, spec.idle_stop) == (True, None, True)
    assert any("this computer is none of them" in words for words in on.warnings)


def test_each_zone_is_a_way_at_its_own_price(store: Store, cloud: Control, work: Path) -> None:
    """A plan names the cheapest zone of a region only: what is taken there goes on elsewhere."""
    store.replace(KEY, footprint(cloud).encoded())
    on = rented.On(store, ["aws"])
    wanted = submit.wanted(str(work), on)
    kind = wanted.plan.instance_type
    for zone, price in (("use1-az1", 0.31), ("use1-az2", 0.32)):
        cloud.spot_price(kind, cloud.zone_names()[zone], price, at=cloud.now() - 7200)
    spec = submit.spec_of(wanted, local=False, on=on)
    for market in wanted.plan.markets:
        ways = [w for w in spec.ways if w.instance_type == kind and w.market == market]
        zones = [way.zone for way in ways]
        assert {"use1-az1", "use1-az2"} <= set(zones)
        assert len(zones) == len(set(zones))
    spot = [way for way in spec.ways if (way.instance_type, way.market) == (kind, "spot")]
    prices = {way.zone: way.price - way.disk_price - way.address_price for way in spot}
    assert (prices["use1-az1"], prices["use1-az2"]) == (310_000, 320_000)


def test_what_is_predicted_is_at_the_prices_of_now(
    store: Store, cloud: Control, work: Path
) -> None:
    """Those of the catalog are weeks old. Disks and addresses the plan has counted."""
    store.replace(KEY, footprint(cloud).encoded())
    work.write_text(WORK.replace("accelerators: [A10G]", "accelerators: [A10G], markets: [spot]"))
    on = rented.On(store, ["aws"])
    wanted = submit.wanted(str(work), on)
    planned = wanted.plan.price_hour["spot"]
    wanted = structs.replace(wanted, others=())  # or another type might be cheaper now
    for zone in cloud.zone_names().values():
        cloud.spot_price(wanted.plan.instance_type, zone, 2 * planned / 1e6, at=cloud.now() - 3600)
    spec = submit.spec_of(wanted, local=False, on=on)
    now, beside = spec.ways[0].price, spec.ways[0].disk_price + 5_000
    assert now == 2 * planned + beside
    assert spec.predicted_cost == round(wanted.plan.cost * now / (planned + beside))


def test_what_the_account_cannot_have_is_not_tried(
    store: Store, cloud: Control, work: Path
) -> None:
    store.replace(KEY, footprint(cloud).encoded())
    on = rented.On(store, ["aws"])
    wanted = submit.wanted(str(work), on)
    cloud.quota("L-DB2E81BA", 0)  # G machines on demand
    try:
        spec = submit.spec_of(wanted, local=False, on=on)
        assert {way.market for way in spec.ways} == {"spot"}
        assert any("L-DB2E81BA" in words or "G and VT" in words for words in on.rejected)
        cloud.quota("L-3819A6DF", 0)
        with pytest.raises(errors.NotFound, match="cannot launch any machine of the plan") as told:
            submit.spec_of(wanted, local=False, on=on)
        assert "quota" in f"{told.value.message} {told.value.hint}"
    finally:
        cloud.quota("L-DB2E81BA", 1000)
        cloud.quota("L-3819A6DF", 1000)


def test_credentials_that_can_launch_nothing_submit_nothing(
    store: Store, cloud: Control, work: Path
) -> None:
    store.replace(KEY, footprint(cloud).encoded())
    on = rented.On(store, ["aws"])
    wanted = submit.wanted(str(work), on)
    cloud.fail("GetCallerIdentity", "ExpiredToken", message="It is expired.", status=400)
    with pytest.raises(errors.NoAccess, match="ExpiredToken") as told:
        submit.spec_of(wanted, local=False, on=on)
    assert "aws sso login" in str(told.value.hint)
    other = structs.replace(footprint(cloud), account="999999999999")
    store.replace(KEY, other.encoded())
    with pytest.raises(errors.NoAccess, match=r"123456789012, and .* in 999999999999"):
        submit.spec_of(wanted, local=False, on=rented.On(store, ["aws"]))


@pytest.mark.system  # pip fetches wheels for other Pythons
def test_luggage_is_a_kit_by_a_link_that_dies(store: Store, cloud: Control, work: Path) -> None:
    import hashlib
    import urllib.request

    from tests.providers.aws.test_order import request
    from tradewind.api.luggage import Packer
    from tradewind.providers.aws.cloud import CLOUD

    packer = Packer(store, CLOUD, footprint(cloud))
    first, second = (packer(request(), "x86_64") for _ in "ab")
    assert first.sha256 == second.sha256
    with urllib.request.urlopen(first.kit) as answer:
        assert hashlib.sha256(answer.read()).hexdigest() == first.sha256
    assert "X-Amz-Expires=3600" in first.kit
    several = packer(request(nodes=2), "x86_64").tell
    for rank, link in enumerate(several):
        word = b"rank %d could not begin" % rank
        told = urllib.request.Request(link, data=word, method="PUT")
        urllib.request.urlopen(told).close()
        assert store.get(places.first_log("run-1", 1, rank)) == word
    assert len(several) == 2
    assert first.environment["AWS_REGION"] == "us-east-1"
    assert "SECRET" not in str(first.environment)
    assert packer(request(), "arm64").sha256 != first.sha256


def test_files_of_this_computer_are_no_secrets_for_rented_machines(
    store: Store, cloud: Control, work: Path
) -> None:
    record = footprint(cloud)
    store.replace(KEY, record.encoded())
    work.write_text(f"{WORK}  secrets: {{HF_TOKEN: file:~/.hf_token}}\n")
    on = rented.On(store, ["aws"])
    path = secrets_path(store.url)
    with pytest.raises(errors.InvalidValue, match=r"HF_TOKEN is in a file") as caught:
        submit.spec_of(submit.wanted(str(work), on), local=False, on=on)
    assert f"put-parameter --region us-east-1 --type SecureString --name /{path}" in str(
        caught.value
    )
    work.write_text(f"{WORK}  secrets: {{HF_TOKEN: aws-ssm:/{path}hf}}\n")
    spec = submit.spec_of(submit.wanted(str(work), on), local=False, on=on)
    assert spec.job["secrets"] == {"HF_TOKEN": f"aws-ssm:/{path}hf"}
    assert not any("endpoints" in words for words in on.warnings)
    private = {name: structs.replace(each, public=False) for name, each in record.regions.items()}
    store.replace(KEY, structs.replace(record, regions=private).encoded())
    on = rented.On(store, ["aws"])
    submit.spec_of(submit.wanted(str(work), on), local=False, on=on)
    assert any("endpoints for Systems Manager" in words for words in on.warnings)

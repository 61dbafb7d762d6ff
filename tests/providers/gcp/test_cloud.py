"""Google Cloud as the rest sees it: what is charged for, what machines are told, how to get on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import SPEC
from tests.providers.gcp.machines import REGION, footprint, way
from tradewind.base.errors import BadFile, MissingExtra, NotFound
from tradewind.catalog import ratecard
from tradewind.model.run import Machine
from tradewind.providers import registry
from tradewind.providers.cloud import Waits
from tradewind.providers.gcp import shell
from tradewind.providers.gcp.cloud import CLOUD
from tradewind.providers.gcp.footprint import bucket_of, decoded, name, owner_of

CARD = ratecard.card()


def test_a_way_is_priced_with_its_disk_its_address_and_its_store() -> None:
    priced = CLOUD.priced(footprint(), SPEC, way(price=1_000_000), CARD)
    assert priced.disk_gb >= 150
    assert priced.disk_price == round(priced.disk_gb * 0.1 * 1_000_000 / 720)
    assert priced.address_price == 5_000
    assert priced.price == 1_000_000 + priced.disk_price + 5_000
    assert priced.rates is not None
    assert (priced.rates.writes, priced.rates.reads) == (5_000_000, 400_000)
    assert (priced.rates.gb_in, priced.rates.gb_out, priced.rates.gb_month) == (0, 0, 20_000)
    away = CLOUD.priced(replace(footprint(), bucket_location="europe-west4"), SPEC, way(), CARD)
    assert away.rates is not None
    assert away.rates.gb_out > 0
    assert CLOUD.priced(footprint(), SPEC, way(market="spot"), CARD).address_price == 2_500
    private = CLOUD.priced(replace(footprint(), public=False), SPEC, way(), CARD)
    assert private.address_price == 0
    assert not private.facts.queues
    assert CLOUD.priced(footprint(), SPEC, way(market="flex_start"), CARD).facts.queues
    tpu = CLOUD.priced(footprint(), SPEC, way(instance_type="tpu-v5litepod-8"), CARD)
    assert (tpu.disk_gb, tpu.disk_price) == (0, 0)
    assert CLOUD.outside(footprint(), CARD).gb_out == 120_000


def test_a_disk_costs_by_its_kind() -> None:
    plain = CLOUD.priced(footprint(), SPEC, way(instance_type="a3-highgpu-8g"), CARD)
    hyper = CLOUD.priced(footprint(), SPEC, way(instance_type="a4-highgpu-8g"), CARD)
    assert plain.disk_price == round(plain.disk_gb * 0.1 * 1_000_000 / 720)
    assert hyper.disk_price == round(hyper.disk_gb * 0.08 * 1_000_000 / 720)


def test_assumed_prices_are_those_of_the_disks_that_ways_have() -> None:
    def said(*types: str) -> str:
        ways = tuple(way(instance_type=each, region="europe-west4") for each in types)
        spec = replace(SPEC, name="x", ways=ways)
        return " ".join(CLOUD.warnings(footprint(), spec, ["europe-west4"], CARD))

    assert "a machine's disk (pd-balanced) at gcp in europe-west4" in said("a3-highgpu-8g")
    assert "hyperdisk" not in said("a3-highgpu-8g")
    both = said("a3-highgpu-8g", "a4-highgpu-8g")
    assert "(hyperdisk-balanced)" in both
    assert "(pd-balanced)" in both
    assert "a machine's disk" not in said("tpu-v5litepod-8")


def test_a_price_that_is_derived_is_said_to_be() -> None:
    def said(kind: str) -> str:
        spec = replace(SPEC, name="x", ways=(way(instance_type=kind),))
        return " ".join(CLOUD.warnings(footprint(), spec, ["us-central1"], CARD))

    assert said("a3-highgpu-8g") == ""
    assert "(hyperdisk-balanced) at gcp in us-central1 is derived" in said("a4-highgpu-8g")
    assert "5BC4-9775-DEC9" in said("a4-highgpu-8g")  # what it was derived from


def test_what_can_be_waited_for_costs_what_the_card_says() -> None:
    rentable = CLOUD
    assert isinstance(CLOUD, Waits)
    a3 = way(instance_type="a3-highgpu-8g", price=10_000_000)
    queued = CLOUD.waited_for(a3, CARD)
    assert queued is not None
    assert queued == replace(a3, market="flex_start", price=4_330_000)
    assert rentable.priced(footprint(), SPEC, queued, CARD).facts.queues
    tpu = way(instance_type="tpu-v5litepod-8", price=10_000_000)
    assert CLOUD.waited_for(tpu, CARD) == replace(tpu, market="queued")
    assert CLOUD.waited_for(way(instance_type="n1-standard-8"), CARD) is None


def test_a_name_that_machines_cannot_have_is_warned_of() -> None:
    short = replace(SPEC, name="llama-3.1-8b")
    assert not [
        each for each in CLOUD.warnings(footprint(), short, [REGION], CARD) if "long" in each
    ]
    long = replace(SPEC, name="a-name-that-goes-on-and-on-and-on")
    (told,) = [each for each in CLOUD.warnings(footprint(), long, [REGION], CARD) if "long" in each]
    assert long.name in told
    room = int(told.partition("a name of ")[2].partition(" ")[0])
    for more, warned in ((0, False), (1, True)):
        named = replace(SPEC, name="a" * (room + more))
        said = CLOUD.warnings(footprint(), named, [REGION], CARD)
        assert any("too long" in each for each in said) == warned


def test_machines_are_somebody_by_the_metadata_server_and_nothing_else() -> None:
    env = {
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json",
        "CLOUDSDK_CONFIG": "/home/me",
        "HF_TOKEN": "x",
    }
    told = CLOUD.environment(footprint(), env)
    assert told == {"GOOGLE_CLOUD_PROJECT": footprint().project}
    for each in ("STORAGE_EMULATOR_HOST", "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"):
        led = {each: "http://10.0.0.1:9"}
        assert CLOUD.environment(footprint(), led) == told | led


def test_credentials_are_hinted_at_by_names_and_files_alone(tmp_path: Path) -> None:
    assert not CLOUD.hinted({}, tmp_path)
    assert CLOUD.hinted({"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere"}, tmp_path)
    login = tmp_path / ".config/gcloud/application_default_credentials.json"
    login.parent.mkdir(parents=True)
    login.touch()
    assert CLOUD.hinted({}, tmp_path)


def test_a_shell_goes_through_identity_aware_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(
        machine_id="gcp-us-central1-a-tw-0123abcd-run-1-7-0",
        launch_id="run-1-7",
        run_id="run-1",
        leg=7,
        rank=0,
        launched_s=1,
    )
    assert registry.of_machine(machine.machine_id) is CLOUD
    assert shell.command(machine, "p", "~/key", ["ls", "a b"]) == [
        *("gcloud", "compute", "ssh", "tw-0123abcd-run-1-7-0", "--zone", "us-central1-a"),
        *("--project", "p", "--tunnel-through-iap", "--ssh-key-file", "~/key"),
        *("--command", "ls 'a b'"),
    ]
    with pytest.raises(NotFound):
        shell.command(replace(machine, machine_id="gcp-x"), "p", "", [])
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingExtra, match="gcloud is not installed"):
        CLOUD.check_shell(["gcloud"])


def test_a_record_is_read_as_it_was_written() -> None:
    made = replace(footprint(), fast_subnets={REGION: ("a", "b")}, public=False)
    assert decoded(made.encoded()) == made
    assert (made.account, made.places) == (made.project, made.zones)
    with pytest.raises(BadFile, match="setup gcp writes it again"):
        decoded(b'{"project": "p", "secret": 1}')


def test_names_of_a_store_are_the_same_for_whoever_asks() -> None:
    assert bucket_of("gs://b/a/c/") == ("b", "a/c/")
    assert bucket_of("gs://b") == ("b", "")
    assert owner_of("gs://b/x") == owner_of("gs://b/x/")
    assert len(name("gs://b/x")) <= 30


def test_no_library_of_google_s_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys\n"
        "from tradewind.providers import registry\n"
        "cloud = registry.rentable('gcp')\n"
        "registry.aboard('gcp')\n"
        "import tradewind.providers.gcp.provider\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('google', 'requests')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"

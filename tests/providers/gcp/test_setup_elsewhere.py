"""Setting Google Cloud up for a store that is another cloud's: its machines are lent passes there,
and nothing of Cloud Storage is made."""

from __future__ import annotations

import pytest

from tests.cloud.faces.google.control import Control
from tests.lifecycle.builders import SPEC
from tests.providers.gcp.machines import footprint, way
from tradewind.base.errors import InvalidValue
from tradewind.catalog import ratecard
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.cloud import CLOUD
from tradewind.providers.gcp.facts import PASS_S
from tradewind.providers.gcp.footprint import name
from tradewind.providers.gcp.setup import roles
from tradewind.providers.gcp.setup.look import Look
from tradewind.providers.gcp.setup.make import Wish

STORE = "s3://my-bucket/tw"


def look(bucket_region: str = "") -> Look:
    wish = Wish(store_url=STORE, regions=("us-central1",), bucket_region=bucket_region)
    return Look(Google(), wish)


def test_made_without_a_bucket(cloud: Control) -> None:
    cloud.dials(operation_s=0.0)
    found = look(bucket_region="us-west-2")
    assert found.store_env == {}
    prepared = found.prepared(None)
    assert "bucket" not in {line.what for line in prepared.lines}
    record = prepared.carry_out(lambda line: None)
    assert (record.lent, record.bucket) == (True, "")
    assert record.bucket_place == ("aws", "us-west-2")
    ours = [each for each in cloud.roles() if roles.base(STORE) in each]
    assert sorted(each.rpartition("/")[2].removeprefix(roles.base(STORE)) for each in ours) == [
        "", "_act", "_secrets",
    ]  # fmt: skip
    # Again: nothing changes, and where the bucket is stays known.
    again = look().prepared(record)
    assert again.changes == 0
    assert again.record() == record
    with pytest.raises(InvalidValue, match="the bucket is not Google's"):
        look().removed(record, delete_store=True)
    for line in look().removed(record, delete_store=False):
        line.carry_out()
    assert [each for each in cloud.shelf() if name(STORE) in each] == []


def test_what_it_costs_to_reach_it() -> None:
    there = footprint(bucket="", bucket_location="us-west-2", bucket_provider="aws")
    found = CLOUD.priced(there, SPEC, way(), ratecard.card())
    assert found.pass_s == PASS_S
    assert found.rates is not None
    assert (found.rates.gb_in, found.rates.gb_out) == (120_000, 90_000)
    assert CLOUD.priced(footprint(), SPEC, way(), ratecard.card()).pass_s == 0


@pytest.mark.parametrize("kind", ["terraform", "gcloud", "role"])
def test_printed_without_a_bucket(kind: str) -> None:
    text = CLOUD.printed(kind, STORE, ("us-central1",), {"project": "my-project"})
    assert "storage_bucket" not in text
    assert "storage buckets" not in text
    assert "storage.objects" not in text
    assert f"{roles.base(STORE)}_secrets" in text

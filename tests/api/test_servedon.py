"""Which clouds a service can be on, and what a rented front cannot be given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tradewind import store as stores
from tradewind.api import servedon
from tradewind.base.errors import InvalidValue
from tradewind.model.service import EngineSpec
from tradewind.model.upkept import Upkept
from tradewind.providers.lambda_cloud.footprint import KEY, Footprint

ENGINE = EngineSpec(job={}, port=8000)


def test_a_cloud_without_rules_of_a_network_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMBDA_API_KEY", "a-key")
    store = stores.open(str(tmp_path))
    made = Footprint(
        ssh_key="mine", ssh_key_id="1", regions=("us-west-1",), bucket_provider="aws"
    )  # fmt: skip
    store.replace(KEY, made.encoded())
    monkeypatch.setattr("tradewind.api.clouds.suits", lambda cloud, url: cloud.name == "lambda")
    with pytest.raises(InvalidValue, match="is not used for services") as error:
        servedon.on(store, ["lambda"])
    assert error.value.hint == "--local, to rehearse it"


def test_a_service_is_not_half_here(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="on this computer or on rented machines"):
        servedon.on(stores.open(str(tmp_path)), ["local", "aws"])


def test_what_a_rented_front_cannot_be_given() -> None:
    servedon.check(ENGINE, Upkept())
    with pytest.raises(InvalidValue, match="the engine's port too"):
        servedon.check(ENGINE, Upkept(port=8000))
    with pytest.raises(InvalidValue, match="cannot be given its key in secret"):
        servedon.check(ENGINE, Upkept(certificate="chat.pem"))


@pytest.mark.parametrize("wrong", ["here", "10.0.0.1/8", "10.0.0.0/40"])
def test_ranges_that_are_none(wrong: str) -> None:
    with pytest.raises(InvalidValue, match="no range of addresses"):
        Upkept(allow=(wrong,))

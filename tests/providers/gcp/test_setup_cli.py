"""`tradewind setup gcp`, `doctor gcp` and `teardown gcp` as they are typed, on the equipment."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.cli.conftest import Cli, Ran, cli, home  # noqa: F401
from tests.cloud.faces.google.control import Control
from tests.providers.gcp.setups import written

STORE, OTHER = "gs://typed-bucket/tw", "gs://never-made/tw"


@pytest.fixture
def typed(cloud: Control, cli: Cli) -> Callable[..., Ran]:  # noqa: F811
    cloud.image("ubuntu-os-cloud", "ubuntu-2404-lts-arm64", "ubuntu-2404-arm")
    return lambda *words, store=STORE: cli(*words, "--store", store)


@pytest.mark.slow
def test_from_setup_to_teardown(cloud: Control, typed: Callable[..., Ran]) -> None:
    asked = typed("setup", "gcp", "--region", "us-central1")
    assert asked.code == 2
    assert "add --yes" in asked.err
    assert "make it: nothing public" in " ".join(asked.out.split())  # shown first
    assert "typed-bucket" not in cloud.buckets()
    made = typed("setup", "gcp", "--region", "us-central1", "--yes")
    assert made.code == 0, made.err
    assert "changes made, and written down in the store" in made.out
    record = written(STORE)
    assert record is not None
    again = json.loads(typed("setup", "gcp", "--json").out)
    assert again["changes"] == 0
    assert again["service_account"] == record.service_account
    well = typed("doctor", "gcp", "--json")
    assert well.code == 0, well.err
    assert json.loads(well.out)["broken"] == 0
    gone = typed("teardown", "gcp", "--yes", "--delete-bucket")
    assert gone.code == 0, gone.err
    assert "typed-bucket" not in cloud.buckets()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--project", "nobodys-project", "--region", "us-central1"), 5, "gcloud projects list"),
        (("--project", "My Project", "--region", "us-central1"), 2, "gcloud projects list"),
        (("--region", "us-central1-a"), 2, "--region us-central1"),
        (("--region", "nowhere"), 2, "gcloud compute regions list"),
        (("--region", "us-west9"), 3, "did you mean us-west"),
        ((), 2, "--region us-central1"),
    ],
)
def test_bad_input_is_an_error_and_the_next_command(
    cloud: Control, typed: Callable[..., Ran], words: tuple[str, ...], code: int, said: str
) -> None:
    told = typed("setup", "gcp", *words, "--yes", store=OTHER)
    error, hint = told.err.strip().splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("hint: ")
    assert said in hint
    assert told.code == code
    assert "never-made" not in cloud.buckets()

"""What of its machine's environment a job gets."""

from __future__ import annotations

import pytest

from tradewind.supervisor.environment import inherited

KEYS = {
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_PROFILE": "b",
    "GOOGLE_APPLICATION_CREDENTIALS": "c",
    "AZURE_STORAGE_KEY": "d",
}


@pytest.mark.parametrize(
    ("addresses", "names"),
    [
        (("file:///store", ""), set()),
        (("s3://bucket/x", ""), {"AWS_ACCESS_KEY_ID", "AWS_PROFILE"}),
        (("gs://bucket", ""), {"GOOGLE_APPLICATION_CREDENTIALS"}),
        (("az://container", ""), {"AZURE_STORAGE_KEY"}),
        (("file:///store", "gs://tokens/v3"), {"GOOGLE_APPLICATION_CREDENTIALS"}),
    ],
)
def test_credentials_are_those_of_the_store_and_the_data(
    addresses: tuple[str, str], names: set[str]
) -> None:
    assert set(inherited(KEYS, addresses)) == names


@pytest.mark.parametrize("name", ["https_proxy", "NO_PROXY", "LC_ALL", "CUDA_VISIBLE_DEVICES"])
def test_what_the_machine_is_gets_through(name: str) -> None:
    assert inherited({name: "x"}, ()) == {name: "x"}


@pytest.mark.parametrize("name", ["HF_TOKEN", "WANDB_API_KEY", "SSH_AUTH_SOCK", "PIP_INDEX_URL"])
def test_what_the_user_works_with_does_not(name: str) -> None:
    assert inherited({name: "x"}, ("file:///store",)) == {}

"""Clouds as a stranger names them: wrong, twice, not set up, without what they need. Each error
says the next command, and nothing is bought."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tradewind.api import clouds
from tradewind.base import errors
from tradewind.providers import registry

WORK = """
name: tiny
work: {on: 1xA10G, step: 1s, steps: 20, memory: 10GB}
limits: {deadline: 4d, accelerators: [A10G]}
run: {command: "true"}
"""


@pytest.fixture
def work(tmp_path: Path) -> str:
    path = tmp_path / "job" / "work.yaml"
    path.parent.mkdir()
    path.write_text(WORK)
    return str(path)


@pytest.mark.parametrize(
    ("on", "what", "hint"),
    [
        (["awz"], "machines of awz cannot be rented", "did you mean aws?"),
        (
            ["azure"],
            "machines of azure cannot be",
            "--on aws or gcp or lambda or kubernetes or ssh or slurm, or --local",
        ),
        (["locl"], "machines of locl cannot be rented", "did you mean local?"),
        (["local,aws"], "machines of AWS cannot reach the store file", "--store s3://BUCKET"),
        (["aws", "local"], "machines of AWS cannot reach the store file", "--store s3://BUCKET"),
        ([","], "--on names no cloud", "--on local or aws or gcp or lambda"),
        (["aws"], "cannot reach the store", "tradewind setup aws --store s3://BUCKET"),
        (["AWS", " aws"], "machines of AWS cannot reach", "tradewind setup aws"),
    ],
)
def test_a_run_on_what_cannot_be_says_what_to_do(
    cli: Cli, home: Path, work: str, on: list[str], what: str, hint: str
) -> None:
    ran = cli("run", work, "--yes", *(word for name in on for word in ("--on", name)))
    assert ran.code == 2
    assert what in ran.err
    assert hint in ran.err
    assert "Traceback" not in ran.err
    assert not list(home.glob("store/runs/*"))  # and so nothing can have been bought


def test_a_rehearsal_is_not_beside_clouds(cli: Cli, work: str) -> None:
    ran = cli("run", work, "--yes", "--local", "--on", "aws")
    assert ran.code == 2
    assert "--on aws,local uses this computer too" in " ".join(ran.err.split())


def test_the_local_computer_may_be_named_as_a_cloud(cli: Cli, work: str) -> None:
    """All that is asked before it is bought is the same."""
    ways = (("--local",), ("--on", "local"), ("--on", "Local,local"), ("--on", "local", "--local"))
    said = {(ran.code, ran.out, ran.err) for ran in (cli("run", work, *way) for way in ways)}
    assert len(said) == 1
    [(code, out, err)] = said
    assert "local/" in out
    assert (code, "add --yes" in err) == (2, True)


@pytest.mark.parametrize("verb", ["setup", "teardown"])
def test_the_local_computer_needs_no_setup(cli: Cli, verb: str) -> None:
    ran = cli(verb, "local")
    assert (ran.code, ran.err) == (0, "")
    assert "nothing to do" in ran.out
    assert "--on local" in ran.out
    told = cli(verb, "local", "--store", "file:///somewhere", "--json").json
    assert told == {"store": "file:///somewhere", "changes": 0, "things": []}


@pytest.mark.parametrize("verb", ["setup", "teardown"])
def test_setup_of_what_is_no_cloud(cli: Cli, verb: str) -> None:
    ran = cli(verb, "awz", "--store", "s3://bucket")
    assert (ran.code, "did you mean 'aws'?" in ran.err) == (2, True)
    ran = cli(verb, "aws", "--store", "file:///tmp/runs")
    assert (ran.code, "--store s3://my-bucket" in ran.err) == (2, True)


def test_doctor_of_this_computer(cli: Cli) -> None:
    found = cli("doctor", "local", "--json").json["findings"]
    assert {each["about"] for each in found} == {"computer", "parts", "gpus"}
    ran = cli("doctor", "awz")
    assert (ran.code, "Did you mean aws?" in ran.err) == (2, True)


def test_a_cloud_without_its_library_says_what_to_install(
    cli: Cli, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is asked of a store that may need it too."""
    monkeypatch.setattr(clouds, "find_spec", lambda name: None)
    ran = cli("run", work, "--on", "aws", "--store", "s3://not-asked", "--yes")
    assert ran.code == errors.MissingExtra.exit_code
    assert "machines of AWS need boto3" in ran.err
    assert "pip install 'tradewind[aws]'" in ran.err


def test_every_cloud_has_a_name_of_its_own_and_one_line() -> None:
    assert registry.chosen(()) == ()
    for name in registry.CLOUDS:
        assert registry.chosen([name.upper(), f"{name},"]) == (name,)
        assert registry.cloud(name).name == name

"""What `make test-kubernetes` says where something is missing, and what it starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control_plane import ASSETS, KUBE, PROGRAM, program


def a_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    for name in KUBE:
        a_program(tmp_path / "bin" / name)
    return tmp_path / "bin"


def test_the_assets_are_enough_where_a_harness_lies_beside(assets: Path, tmp_path: Path) -> None:
    beside, own = a_program(tmp_path / "beside/up"), a_program(tmp_path / "own/up")
    env = {ASSETS: str(assets)}
    assert program(env, beside) == (str(beside), "")
    assert program({**env, PROGRAM: str(own)}, beside) == (str(own), "")


@pytest.mark.parametrize("missing", KUBE)
def test_each_program_that_is_missing_is_named(assets: Path, tmp_path: Path, missing: str) -> None:
    """As the archives of envtest have it, which bring two of four."""
    (assets / missing).unlink()
    found, words = program({ASSETS: str(assets)}, a_program(tmp_path / "up"))
    assert not found
    assert f"has no {missing}\n" in words
    a_program(tmp_path / "path" / missing)
    env = {ASSETS: str(assets), "PATH": str(tmp_path / "path")}
    assert program(env, tmp_path / "up")[0], "it may be installed"


def test_what_else_can_be_missing(assets: Path, tmp_path: Path) -> None:
    none = tmp_path / "none"
    for env, words in (
        ({}, f"{ASSETS} is not set"),
        ({ASSETS: str(none)}, "is not a folder"),
        ({ASSETS: str(assets)}, f"{PROGRAM} is not set"),
        ({ASSETS: str(assets), PROGRAM: str(none)}, "cannot be run"),
    ):
        found, said = program(env, none)
        assert (found, words in said) == ("", True), said

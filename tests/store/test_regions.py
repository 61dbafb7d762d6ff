"""A bucket in another region than `AWS_REGION`, over real HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.store import servers
from tests.store.regional import Keeper, regional
from tradewind import store
from tradewind.base.errors import NoAccess, NotFound
from tradewind.store import regions
from tradewind.store.objects import ObjectStore

pytestmark = pytest.mark.slow

Env = Mapping[str, str]


@pytest.fixture(scope="module")
def s3_env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Env]:
    with servers.s3(tmp_path_factory.mktemp("s3")) as env:
        yield env


@pytest.fixture(params=["redirect", "malformed"])
def door(request: pytest.FixtureRequest, s3_env: Env) -> Iterator[Keeper]:
    with regional(_port(s3_env), Keeper(style=request.param)) as made:
        yield made


@pytest.fixture
def env(s3_env: Env, door: Keeper, tmp_path: Path) -> dict[str, str]:
    return _through(door, s3_env, tmp_path)


def _port(env: Env) -> int:
    return int(env["AWS_ENDPOINT_URL"].rpartition(":")[2])


def _through(door: Keeper, env: Env, folder: Path) -> dict[str, str]:
    home = {"TRADEWIND_HOME": str(folder / "home"), "AWS_REGION": "us-east-1"}
    return {**env, **home, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{door.port}"}


def test_the_first_request_finds_it_and_the_others_know(env: Env, door: Keeper) -> None:
    opened = store.open(f"s3://runs/{door.style}/found", env=env)
    assert door.requests == []
    assert opened.create("k", b"1") is True
    assert (door.wrong, door.asked) == (1, 1)
    assert opened.create("k", b"2") is False
    assert opened.get("k") == b"1"
    assert opened.list_after("") == ["k"]
    assert (door.wrong, door.asked) == (1, 1)
    assert store.open(f"s3://runs/{door.style}/again", env=env).list_after("") == []
    assert (door.wrong, door.asked) == (1, 1)


def test_the_next_process_knows(env: Env, door: Keeper) -> None:
    store.open(f"s3://runs/{door.style}/next", env=env).replace("k", b"1")
    regions._remembered.clear()
    assert store.open(f"s3://runs/{door.style}/next", env=env).get("k") == b"1"
    assert (door.wrong, door.asked) == (1, 1)


@pytest.mark.parametrize("written", ["{", "[]", '{"%s/runs": 7}', '{"%s/runs": "../evil"}'])
def test_what_is_remembered_may_be_nonsense(env: Env, door: Keeper, written: str) -> None:
    path = Path(env["TRADEWIND_HOME"]) / "regions.json"
    path.parent.mkdir()
    path.write_text(written.replace("%s", env["AWS_ENDPOINT_URL"]))
    assert store.open(f"s3://runs/{door.style}/nonsense", env=env).list_after("") == []
    assert door.asked == 1


def test_what_is_remembered_may_have_changed(env: Env, door: Keeper) -> None:
    regions.remember(env["AWS_ENDPOINT_URL"], "runs", "ap-south-1", env)
    opened = store.open(f"s3://runs/{door.style}/changed", env=env)
    opened.replace("k", b"1")
    assert opened.get("k") == b"1"
    assert (door.wrong, door.asked) == (1, 1)
    assert regions.known(env["AWS_ENDPOINT_URL"], "runs", env) == door.region


def test_every_first_request(env: Env, door: Keeper, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"abc" * 1000)
    here = ObjectStore(f"s3://runs/{door.style}/first", env=env)
    here.upload("k", file)
    acts: dict[str, tuple[Callable[[ObjectStore], object], object]] = {
        "get": (lambda s: s.get("k"), file.read_bytes()),
        "get_many": (lambda s: s.get_many(["k"] * 9), [file.read_bytes()] * 9),
        "list": (lambda s: s.list_after(""), ["k"]),
        "folders": (lambda s: s.folders(""), []),
        "range": (lambda s: bytes(s.get_range("k", 1, 2)), b"bc"),
        "size": (lambda s: s.size("k"), 3000),
        "written": (lambda s: s.written_s("k") > 0, True),
        "replace": (lambda s: s.replace("new", b"1"), None),
        "delete": (lambda s: s.delete("new"), None),
        "upload": (lambda s: s.upload("file", file), None),
        "parts": (lambda s: s.upload_parts("parts", iter([b"a" * 5, b"b" * 5]), 10), None),
        "download": (lambda s: s.download("k", tmp_path / "got"), None),
    }
    for name, (act, wanted) in acts.items():
        regions._remembered.clear()
        (Path(env["TRADEWIND_HOME"]) / "regions.json").unlink()
        before = door.asked
        assert act(ObjectStore(f"s3://runs/{door.style}/first", env=env)) == wanted, name
        assert door.asked == before + 1, name
    assert (tmp_path / "got").read_bytes() == file.read_bytes()
    assert here.list_after("") == ["file", "k", "parts"]
    assert here.get("parts") == b"aaaaabbbbb"
    assert here.get("file") == file.read_bytes()


def test_it_may_be_nowhere(env: Env, door: Keeper) -> None:
    opened = store.open(f"s3://runs/{door.style}/nowhere", env=env)
    with pytest.raises(NotFound, match="k"):
        opened.get("k")
    assert door.asked == 1


def test_nothing_is_asked_where_the_region_is_right(env: Env, door: Keeper) -> None:
    right = {**env, "AWS_REGION": door.region}
    opened = ObjectStore(f"s3://runs/{door.style}/right", env=right)
    opened.upload_parts("k", iter([b"1"]), 1)
    assert opened.get("k") == b"1"
    assert (door.wrong, door.asked) == (0, 0)
    assert not (Path(env["TRADEWIND_HOME"]) / "regions.json").exists()


def test_a_home_that_cannot_be_written(env: Env, door: Keeper, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = {**env, "TRADEWIND_HOME": str(tmp_path / "file" / "home")}
    assert store.open(f"s3://runs/{door.style}/blocked", env=blocked).list_after("") == []
    assert store.open(f"s3://runs/{door.style}/blocked", env=blocked).list_after("") == []
    assert door.asked == 1


def test_a_server_that_does_not_say_where(s3_env: Env, tmp_path: Path) -> None:
    with regional(_port(s3_env), Keeper(style="silent")) as door:
        opened = store.open("s3://runs/silent", env=_through(door, s3_env, tmp_path))
        with pytest.raises(NoAccess, match="not in the region") as caught:
            opened.create("k", b"")
        assert "AWS_REGION" in str(caught.value.hint)
        assert door.wrong == 1  # told at once, not after ten seconds of trying
        with pytest.raises(NoAccess, match="does not say where"):
            opened.list_after("")


def test_a_command_of_a_user_elsewhere(env: Env, door: Keeper) -> None:
    import os
    import subprocess
    import sys

    def tradewind(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tradewind", *words],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    made = tradewind("init", f"s3://runs/{door.style}/team")
    assert made.returncode == 0, made.stderr
    assert door.asked == 1
    shown = tradewind("ps")
    assert shown.returncode == 0, shown.stderr
    assert (door.asked, door.wrong) == (1, 1)

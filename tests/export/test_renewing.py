"""The table of images renewed, over real HTTP: a PyPI, an index of wheels and a registry that asks
for a token."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from tests.local_http import LocalHttp, Reply, Request
from tradewind.base.errors import SourceFailed
from tradewind.cli.app import run
from tradewind.export import images, renewing

NEW = "sha256:" + "ab" * 32


def world(http: LocalHttp, *, torch: str = "9.1.0", lacking: str = "") -> images.Table:
    host = http.url.removeprefix("http://")
    known = images._read(images.PACKAGED)
    builds = {
        name: replace(
            build,
            base=f"{host}/some/{name}:1@sha256:{'0' * 64}",
            index=f"{http.url}/whl/{name}" if build.index else "",
        )
        for name, build in known.builds.items()
    }
    for package, version in (("torch", torch), ("vllm", "1.2.3"), ("sglang", "0.9.0.post1")):
        http.on(f"/pypi/{package}/json", {"info": {"version": version}})
    http.on("/whl/", '<a href="cu118/">cu118</a><a href="/whl/cu140/">cu140</a>')
    http.on("/token", lambda request: {"token": "t-" + request.query["scope"]})

    def manifest(request: Request) -> Reply:
        name = request.path.split("/")[3]
        if request.headers.get("authorization") != f"Bearer t-repository:some/{name}:pull":
            challenge = f'Bearer realm="{http.url}/token",scope="repository:some/{name}:pull"'
            return Reply(status=401, headers={"WWW-Authenticate": challenge})
        return Reply(headers={"Docker-Content-Digest": NEW})

    for name, build in builds.items():
        http.on(f"/v2/some/{name}/manifests/1", manifest)
        if build.index:
            wheel = f"torch-{torch}%2B{name}-cp312-cp312-manylinux_2_28_x86_64.whl"
            page = "" if name == lacking else f'<a href="{wheel}">w</a>'
            http.on(f"/whl/{name}/torch/", page)
    return replace(known, builds=builds)


def test_versions_and_digests_are_renewed() -> None:
    with LocalHttp() as http:
        known = world(http)
        renewal = renewing.Renewal(known, pypi=http.url)
        table = renewal.table("2027-01-01")
    assert (table.as_of, table.torch) == ("2027-01-01", "9.1.0")
    assert table.engines == {"vllm": "1.2.3", "sglang": "0.9.0.post1"}
    assert {build.base.partition("@")[2] for build in table.builds.values()} == {NEW}
    assert table.builds["cu130"].driver == known.builds["cu130"].driver
    assert any("cu140" in note and "cu118" not in note for note in renewal.notes)
    assert any("kernels of PyTorch 9.1.0" in note for note in renewal.notes)
    assert f"torch {known.torch} → 9.1.0" in renewing.changes(known, table)
    assert json.decode(json.encode(table), type=images.Table) == table


def test_a_pytorch_that_a_build_lacks_is_not_taken() -> None:
    with LocalHttp() as http:
        known = world(http, lacking="rocm7.2")
        renewal = renewing.Renewal(known, pypi=http.url)
        table = renewal.table("2027-01-01")
    assert table.torch == known.torch
    assert any("no wheels for rocm7.2" in note for note in renewal.notes)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/pypi/torch/json", Reply(status=500)),
        ("/pypi/torch/json", {"info": {}}),
        ("/pypi/vllm/json", {"info": {"version": "1; rm -rf /"}}),
        ("/whl/cu130/torch/", Reply(status=403)),
        ("/token", {"no": "token"}),
        ("/token", "no json"),
    ],
)
def test_what_answers_badly_renews_nothing(path: str, answer: object) -> None:
    with LocalHttp() as http:
        known = world(http)
        http.on(path, answer)
        with pytest.raises(SourceFailed):
            renewing.Renewal(known, pypi=http.url).table("2027-01-01")


def test_by_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("TRADEWIND_HOME", str(home))
    monkeypatch.setenv("TRADEWIND_NOW", "2027-01-01T12:00")
    with LocalHttp() as http:
        known = world(http)
        monkeypatch.setattr(images, "_read", lambda path: known)
        monkeypatch.setattr(
            renewing.Renewal, "__init__",
            lambda self, table, inner=renewing.Renewal.__init__: inner(self, table, pypi=http.url),
        )  # fmt: skip
        assert run(["image", "renew", "--dry-run"]) == 0
        assert "torch" in capsys.readouterr().out
        assert not (home / images.OWN).exists()
        assert run(["image", "renew"]) == 0
    written = json.decode((home / images.OWN).read_bytes(), type=images.Table)
    assert (written.torch, written.as_of) == ("9.1.0", "2027-01-01")

"""What `tw.download` does not trust: plain http, redirects to it, servers that send too much."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tradewind.torch as tw
from tests.local_http import LocalHttp, Reply
from tests.tls import trusted
from tests.torch.data.web import File, noise, sha256
from tradewind.base.errors import BadFile, InvalidValue, SourceFailed
from tradewind.torch.data.download import download

DATA = noise(100_000)


@pytest.fixture
def web() -> Iterator[LocalHttp]:
    with LocalHttp() as server:
        yield server


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHttp]:
    with LocalHttp(trusted(tmp_path, monkeypatch)) as server:
        yield server


@pytest.fixture
def elsewhere(web: LocalHttp, monkeypatch: pytest.MonkeyPatch) -> LocalHttp:
    """Other computers, all of which this server stands for, as a proxy does."""
    monkeypatch.setenv("http_proxy", web.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return web


def test_plain_http_needs_a_checksum_or_a_name(
    elsewhere: LocalHttp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://elsewhere.invalid/f"
    elsewhere.on("/f", File(DATA))
    with pytest.raises(InvalidValue, match=r"plain http.*\n.*sha256=.*elsewhere\.invalid"):
        download(url, tmp_path / "f")
    with pytest.raises(InvalidValue, match="plain http"):
        tw.shards("http://elsewhere.invalid/train")
    with pytest.raises(InvalidValue, match="plain http"):
        tw.tokens("http://elsewhere.invalid/train.npy", cache=tmp_path)
    assert not elsewhere.requests
    assert download(url, tmp_path / "f", sha256=sha256(DATA)).read_bytes() == DATA
    monkeypatch.setenv("TRADEWIND_PLAIN_HTTP", "other.invalid, Elsewhere.invalid")
    assert download(url, tmp_path / "g").read_bytes() == DATA


def test_https_does_not_lead_to_plain_http(
    secure: LocalHttp,
    elsewhere: LocalHttp,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secure.on("/moved", Reply(status=302, headers={"location": "http://elsewhere.invalid/f"}))
    elsewhere.on("/f", File(DATA))
    for checksum in (None, sha256(DATA)):
        with pytest.raises(InvalidValue, match=r"/moved redirects to plain http, http://elsewhere"):
            download(secure.url + "/moved", tmp_path / "f", sha256=checksum)
    assert not elsewhere.requests
    monkeypatch.setenv("TRADEWIND_PLAIN_HTTP", "elsewhere.invalid")
    assert download(secure.url + "/moved", tmp_path / "f").read_bytes() == DATA


def test_redirects_are_followed_to_what_is_as_safe(secure: LocalHttp, tmp_path: Path) -> None:
    secure.on("/moved", Reply(status=308, headers={"location": "/there"}))
    secure.on("/there", Reply(status=303, headers={"location": secure.url + "/f"}))
    secure.on("/f", File(DATA))
    assert download(secure.url + "/moved", tmp_path / "f").read_bytes() == DATA


@pytest.mark.parametrize("where", ["file:///etc/passwd", "ftp://x/y", "http://[", "https://"])
def test_redirects_lead_to_web_servers_only(web: LocalHttp, tmp_path: Path, where: str) -> None:
    web.on("/f", Reply(status=302, headers={"location": where}))
    with pytest.raises(InvalidValue, match=r"redirects to .*, not a web address"):
        download(web.url + "/f", tmp_path / "f")


def test_redirects_in_a_circle_end(web: LocalHttp, tmp_path: Path) -> None:
    web.on("/f", Reply(status=302, headers={"location": "/f"}))
    with pytest.raises(SourceFailed, match="redirects more than 10 times"):
        download(web.url + "/f", tmp_path / "f", patience_s=0)


@pytest.mark.parametrize("ranges", [True, False])
def test_what_is_larger_than_allowed_is_refused_at_once(
    web: LocalHttp, tmp_path: Path, ranges: bool
) -> None:
    file = File(DATA, ranges=ranges)
    web.on("/f", file)
    with pytest.raises(BadFile, match=r"/f has 100,000 bytes, and at most 99,999 may come"):
        download(web.url + "/f", tmp_path / "f", max_bytes=99_999)
    assert len(file.asked) == 1
    assert not list(tmp_path.glob(".f.part*"))
    assert download(web.url + "/f", tmp_path / "f", max_bytes="100kB").read_bytes() == DATA


def test_what_never_ends_is_cut_at_the_limit(web: LocalHttp, tmp_path: Path) -> None:
    web.on("/f", Reply(DATA, endless=True))
    with pytest.raises(BadFile, match=r"/f sends more than 1,000,000 bytes"):
        download(web.url + "/f", tmp_path / "f", max_bytes="1MB")
    assert not list(tmp_path.glob(".f.part*"))


def test_what_never_ends_and_has_no_limit_leaves_half_of_the_disk(
    web: LocalHttp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(9_000_000, 5_000_000, 4_000_000))
    web.on("/f", Reply(DATA, endless=True))
    with pytest.raises(BadFile, match=r"more than 2,000,000 bytes.*\nhint: .*max_bytes"):
        download(web.url + "/f", tmp_path / "f")
    assert not list(tmp_path.glob(".f.part*"))


def test_a_part_that_is_longer_than_asked_for_is_not_written(
    web: LocalHttp, tmp_path: Path
) -> None:
    def too_much(request: object) -> Reply:
        return Reply(DATA, 206, {"content-range": "bytes 0-999/1000", "etag": '"1"'})

    web.on("/f", too_much)
    with pytest.raises(BadFile, match=r"/f sends more than the 1,000 bytes asked for"):
        download(web.url + "/f", tmp_path / "f", patience_s=0)
    assert not (tmp_path / "f").exists()


def test_a_shard_that_is_larger_than_its_index_says_is_not_fetched(
    web: LocalHttp, tmp_path: Path
) -> None:
    web.on(
        "/train/index.json",
        {"format": 1, "shards": [{"name": "0.tar", "samples": 1, "size": 1000}]},
    )
    web.on("/train/0.tar", File(DATA))
    shards = tw.shards(web.url + "/train", cache=tmp_path / "cache")
    with pytest.raises(BadFile, match=r"has 100,000 bytes, and at most 1,000 may come, as its ind"):
        shards[0]


def test_an_index_that_never_ends_is_not_held(
    web: LocalHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tradewind.torch.data.shardindex.LARGEST", 1_000_000)
    web.on("/train/index.json", Reply(DATA, endless=True))
    with pytest.raises(BadFile, match=r"index\.json is larger than 1.*MB"):
        tw.shards(web.url + "/train")

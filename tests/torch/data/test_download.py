"""Downloads from a real server that cuts, fails, changes its mind and knows no ranges."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.local_http import LocalHttp
from tests.torch.data.web import File, noise, sha256
from tradewind.base.errors import BadFile, InvalidValue, NoAccess, NotFound, SourceFailed
from tradewind.torch.data import parts
from tradewind.torch.data.download import download

SMALL = noise(100_000)
LARGE = noise(5 * parts.PART + 12_345)


@pytest.fixture
def web() -> Iterator[LocalHttp]:
    with LocalHttp() as server:
        yield server


def left(folder: Path) -> set[str]:
    """Files besides those that remember checksums."""
    return {path.name for path in folder.iterdir() if not path.name.endswith(".sum")}


def test_a_file_comes_whole_and_is_not_asked_for_again(web: LocalHttp, tmp_path: Path) -> None:
    web.on("/a/model.bin", File(SMALL))
    got = download(web.url + "/a/model.bin?token=x", tmp_path, sha256=sha256(SMALL).upper())
    assert got == tmp_path / "model.bin"
    assert got.read_bytes() == SMALL
    assert left(tmp_path) == {"model.bin"}
    asked = len(web.requests)
    assert download(web.url + "/a/model.bin", got, sha256=sha256(SMALL)) == got
    assert download(web.url + "/a/model.bin", got) == got
    assert len(web.requests) == asked


def test_large_files_come_in_parts_through_failures(
    web: LocalHttp, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    served = File(LARGE, 503, None, "cut", 500, "cut", 429)
    web.on("/large", served)
    got = download(web.url + "/large", tmp_path / "deep" / "large", sha256=sha256(LARGE))
    assert got.read_bytes() == LARGE
    assert len({each for each in served.asked if each.startswith("bytes=")}) > 5
    said = capfd.readouterr().err
    assert "the server says 503; tries again" in said
    assert re.search(r"large: 42MB in [\d.]+ s \(.*/s\), checksum right", said)


@pytest.mark.parametrize("data", [b"", b"x", SMALL, LARGE], ids=len)
@pytest.mark.parametrize("ranges", [True, False])
def test_of_any_size_and_without_ranges(
    web: LocalHttp, tmp_path: Path, data: bytes, ranges: bool
) -> None:
    web.on("/f", File(data, ranges=ranges, tag=""))
    assert download(web.url + "/f", tmp_path / "f").read_bytes() == data
    web.on("/g", File(data, None, "cut", ranges=ranges))
    got = download(web.url + "/g", tmp_path / "g", sha256=sha256(data))
    assert got.read_bytes() == data


def test_a_killed_download_goes_on_where_it_was(web: LocalHttp, tmp_path: Path) -> None:
    """The first parts come, the others take too long; then kill -9."""
    held = 600.0
    web.on("/large", File(LARGE, None, None, None, None, held, held, held, held))
    script = f"import tradewind.torch as tw; tw.download({web.url + '/large'!r}, 'large')"
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    notes = tmp_path / ".large.part.json"
    eventually(lambda: notes.exists() and notes.read_text().count(",") >= 5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "large").exists()
    served = File(LARGE)
    web.on("/large", served)
    assert download(web.url + "/large", tmp_path / "large").read_bytes() == LARGE
    assert len(served.asked) - 1 == 3  # parts, besides the look


def test_what_has_changed_since_is_begun_anew(
    web: LocalHttp, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    web.on("/f", File(LARGE, None, None, None, *[404] * 20))
    with pytest.raises(NotFound):
        download(web.url + "/f", tmp_path / "f")
    assert (tmp_path / ".f.part").exists()
    other = noise(len(LARGE), seed=1)
    web.on("/f", File(other, tag='"2"'))
    assert download(web.url + "/f", tmp_path / "f").read_bytes() == other
    # While it is read: the parts after the change are refused by their tag.
    changing, after = File(LARGE), File(other, tag='"2"')
    count = iter(range(100))
    web.on("/g", lambda request: (changing if next(count) < 3 else after)(request))
    assert download(web.url + "/g", tmp_path / "g").read_bytes() == other
    assert "has changed while it was read; begins again" in capfd.readouterr().err


def test_wrong_checksums(web: LocalHttp, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    web.on("/f", File(SMALL))
    with pytest.raises(BadFile, match=f"/f has another checksum.*{sha256(SMALL)}"):
        download(web.url + "/f?signature=hidden", tmp_path / "f", sha256="0" * 64)
    assert left(tmp_path) == set()
    # A part that rotted on the disk is not believed.
    web.on("/g", File(LARGE, None, None, *[404] * 20))
    with pytest.raises(NotFound):
        download(web.url + "/g", tmp_path / "g", sha256=sha256(LARGE))
    with (tmp_path / ".g.part").open("r+b") as stream:
        stream.write(b"rotten" * 8_000_000)
        stream.truncate(len(LARGE))
    web.on("/g", File(LARGE))
    got = download(web.url + "/g", tmp_path / "g", sha256=sha256(LARGE))
    assert got.read_bytes() == LARGE
    assert "damaged; begins again" in capfd.readouterr().err
    # A file that is there with other content is replaced, and that is said.
    got.write_bytes(b"something else")
    assert download(web.url + "/g", got, sha256=sha256(LARGE)).read_bytes() == LARGE
    assert "has another checksum than" in capfd.readouterr().err


def test_words_for_what_cannot_be_had(web: LocalHttp, tmp_path: Path) -> None:
    web.on("/secret", File(b"", *[403] * 3))
    web.on("/broken", File(b"", *[500] * 300))
    with pytest.raises(
        NotFound, match=r"there is no http://127.0.0.1:.*/none: the server says 404"
    ):
        download(web.url + "/none", tmp_path)
    with pytest.raises(NoAccess, match="refused: the server says 403"):
        download(web.url + "/secret?password=hidden", tmp_path)
    with pytest.raises(SourceFailed, match="says 500; nothing came for 1 s"):
        download(web.url + "/broken", tmp_path, patience_s=1)
    with pytest.raises(SourceFailed, match=r"did not answer: .*refused"):
        download("http://127.0.0.1:9/x", tmp_path, patience_s=0)
    with pytest.raises(SourceFailed, match="did not answer"):
        download("https://no-such-host.invalid/x", tmp_path, patience_s=0)
    for wrong, words in {
        "ftp://a/b": "ftp:// is not known here",
        "https://": "names no computer",
        "s3://bucket": "names no object",
        web.url + "/": "names no file",
    }.items():
        with pytest.raises(InvalidValue, match=words):
            download(wrong, tmp_path)
    with pytest.raises(InvalidValue, match="no SHA-256"):
        download(web.url + "/f", tmp_path, sha256="d41d8cd98f00b204e9800998ecf8427e")
    (tmp_path / "folder").mkdir()
    with pytest.raises(NoAccess, match="cannot be written to"):
        download(web.url + "/f", "/proc/nowhere/f")
    assert left(tmp_path) == {"folder"}


def test_by_way_of_a_proxy(web: LocalHttp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for the whole address, of a computer that only it knows."""
    web.on("/f", File(SMALL))
    monkeypatch.setenv("http_proxy", web.url)
    got = download("http://inside.invalid/f", tmp_path, sha256=sha256(SMALL))
    assert got.read_bytes() == SMALL
    assert web.requests[0].headers["host"] == "inside.invalid"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert download(web.url + "/f", tmp_path / "g").read_bytes() == SMALL


def test_a_full_disk_is_said_before_anything_comes(
    web: LocalHttp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.on("/f", File(LARGE))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000))
    with pytest.raises(NoAccess, match="has 1MB free, and 42MB are needed"):
        download(web.url + "/f", tmp_path)


def test_one_of_a_host_downloads_and_the_others_wait(web: LocalHttp, tmp_path: Path) -> None:
    served = File(LARGE, None, 1.0)
    web.on("/f", served)
    script = (
        f"import tradewind.torch as tw; print(len(tw.download({web.url + '/f'!r}, 'f',"
        f" sha256={sha256(LARGE)!r}).read_bytes()))"
    )
    command = [sys.executable, "-c", script]
    many = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(4)
    ]
    for each in many:
        assert int(each.communicate()[0]) == len(LARGE)
    assert served.asked.count("bytes=0-0") == 1
    assert left(tmp_path) == {"f"}


def test_from_a_store(tmp_path: Path) -> None:
    (tmp_path / "store" / "runs").mkdir(parents=True)
    (tmp_path / "store" / "runs" / "weights").write_bytes(LARGE)
    for number, url in enumerate(
        [(tmp_path / "store" / "runs" / "weights").as_uri(), str(tmp_path / "store/runs/weights")]
    ):
        got = download(url, tmp_path / str(number), sha256=sha256(LARGE), quiet=True)
        assert got.read_bytes() == LARGE
    with pytest.raises(NotFound, match="there is no nothing"):
        download(f"{tmp_path}/store/nothing", tmp_path / "x")
    assert os.listdir(tmp_path / "store") == ["runs"]  # noqa: PTH208

"""A user's folder, packed and unpacked; and bundles that nobody should unpack."""

from __future__ import annotations

import gzip
import io
import os
import socket
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tradewind.base.errors import BadFile, InvalidValue
from tradewind.supervisor.bundle import pack
from tradewind.supervisor.unpack import unpack


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def fill(folder: Path, *names: str, text: str = "x") -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def packed(user: Path, tmp_path: Path) -> set[str]:
    unpack(pack(user, tmp_path / "b.tar.gz").path, tmp_path / "there")
    return tree(tmp_path / "there")


def test_it_arrives_as_it_was(tmp_path: Path) -> None:
    user = fill(tmp_path / "user", "train.py", "lib/a.py", "lib/deep/ü.txt")
    (user / "train.py").chmod(0o4755)
    (user / "link").symlink_to("lib/deep")
    (user / "lib" / "up").symlink_to("../train.py")
    (user / "empty").mkdir()
    unpack(pack(user, tmp_path / "b.tar.gz").path, there := tmp_path / "there")
    assert tree(there) == tree(user)
    assert (there / "train.py").stat().st_mode & 0o7777 == 0o755
    assert (there / "lib" / "a.py").stat().st_mode & 0o7777 == 0o644
    assert (there / "link" / "ü.txt").read_text() == "x"
    assert (there / "lib" / "up").is_symlink()
    assert (there / "empty").is_dir()


def test_the_same_content_makes_the_same_bytes(tmp_path: Path) -> None:
    one = pack(fill(tmp_path / "one", "b", "a/c"), tmp_path / "1.tar.gz")
    two_folder = fill(tmp_path / "two", "a/c", "b")
    os.utime(two_folder / "b", (1, 1))
    (two_folder / "b").chmod(0o600)
    two = pack(two_folder, tmp_path / "2.tar.gz")
    assert one.path.read_bytes() == two.path.read_bytes()
    assert (one.sha256, one.files, one.content_bytes) == (two.sha256, 2, 2)
    fill(two_folder, "b", text="y")
    assert pack(two_folder, tmp_path / "3.tar.gz").sha256 != one.sha256


def test_what_is_ignored_stays(tmp_path: Path) -> None:
    user = fill(
        tmp_path / "user",
        ".git/config", "data/big.bin", "keep/data/x", "run.log", "lib/run.log", "lib/kept.log",
        "lib/build/a", "weights.pt", "src/weights.pt", "src/x.py",
    )  # fmt: skip
    (user / ".gitignore").write_text("*.log\n/data/\n")
    (user / "lib" / ".gitignore").write_text("!kept.log\nbuild/\n")
    (user / ".tradewindignore").write_text("*.pt\n!/weights.pt\n")
    assert packed(user, tmp_path) == {
        ".gitignore", ".tradewindignore", "lib/.gitignore", "keep/data/x", "lib/kept.log",
        "weights.pt", "src/x.py",
    }  # fmt: skip


def test_code_of_the_job_is_no_output_of_it(tmp_path: Path) -> None:
    """It would be put back on the next machine, as whoever could write it has left it."""
    user = fill(tmp_path / "user", "src/train.py", "src/lib.so", "out/a.csv")
    with pytest.raises(InvalidValue, match=r"names code of the job: src/lib.so, src/train.py"):
        pack(user, tmp_path / "b.tar.gz", outputs=["out", "./src"])
    assert pack(user, tmp_path / "b.tar.gz", outputs=["./out", "src/*.csv"]).files == 3


def test_what_is_too_large_is_named(tmp_path: Path) -> None:
    user = fill(tmp_path / "user", "small", "data/huge.bin")
    (user / "data" / "huge.bin").write_bytes(b"0" * 5000)
    with pytest.raises(InvalidValue, match=r"huge\.bin") as caught:
        pack(user, tmp_path / "b.tar.gz", most_bytes=4000)
    assert ".tradewindignore" in str(caught.value)
    (user / ".tradewindignore").write_text("data\n")
    assert pack(user, tmp_path / "b.tar.gz", most_bytes=4000).files == 2


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "sub/../../outside"])
def test_a_link_that_leaves_is_named(tmp_path: Path, target: str) -> None:
    user = fill(tmp_path / "user", "a", "sub/b")
    (user / "away").symlink_to(target)
    with pytest.raises(InvalidValue, match="away"):
        pack(user, tmp_path / "b.tar.gz")
    (user / ".gitignore").write_text("away\n")
    pack(user, tmp_path / "b.tar.gz")


def test_sockets_and_pipes_are_not_packed(tmp_path: Path, monkeypatch: Any) -> None:
    user = fill(tmp_path / "user", "a")
    os.mkfifo(user / "pipe")
    with pytest.raises(InvalidValue, match="pipe"):
        pack(user, tmp_path / "b.tar.gz")
    (user / "pipe").unlink()
    monkeypatch.chdir(user)  # the name of a socket may not be long
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("s")
        with pytest.raises(InvalidValue, match="socket"):
            pack(user, tmp_path / "b.tar.gz")


# -- bundles that others have made ----------------------------------------------------------------


def made(tmp_path: Path, *members: tuple[str, dict[str, Any]]) -> Path:
    path = tmp_path / "bad.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, facts in members:
            info = tarfile.TarInfo(name)
            data = facts.pop("data", b"")
            info.size = len(data)
            for key, value in facts.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data))
    return path


def link(target: str) -> dict[str, Any]:
    return {"type": tarfile.SYMTYPE, "linkname": target}


@pytest.mark.parametrize(
    "members",
    [
        [("/etc/evil", {})],
        [("../evil", {})],
        [("a/../../evil", {})],
        [("l", link("/etc"))],
        [("l", link("../.."))],
        [("a/l", link("../../x"))],
        [("l", link("..")), ("l/evil", {"data": b"x"})],
        [("l", link(".")), ("l/evil", link("x"))],
        [("a", link("b/..")), ("b", link("c/d")), ("a2", link("b/../../.."))],
        [("l", link("l"))],
        [("h", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"})],
        [("d", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3})],
        [("p", {"type": tarfile.FIFOTYPE})],
        [("a", {"data": b"1"}), ("a", {"data": b"2"})],
        [("a", {"data": b"1"}), ("a", link("b"))],
    ],
    ids=str,
)
def test_unsafe_bundles_are_refused_whole(
    tmp_path: Path, members: list[tuple[str, dict[str, Any]]]
) -> None:
    folder = tmp_path / "below" / "there"
    before = tree(tmp_path)
    path = made(tmp_path, ("first", {"data": b"x"}), *[(n, dict(f)) for n, f in members])
    with pytest.raises(InvalidValue, match="refused"):
        unpack(path, folder)
    assert not folder.exists()
    assert tree(tmp_path) == before | {"bad.tar.gz"}


def test_a_bomb_is_refused_before_it_bursts(tmp_path: Path) -> None:
    path = made(tmp_path, ("zeros", {"data": bytes(3_000_000)}))
    assert path.stat().st_size < 10_000
    with pytest.raises(InvalidValue, match="larger than"):
        unpack(path, tmp_path / "there", most_bytes=1_000_000)
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 1 << 40  # a header that claims a terabyte
    path.write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(3_000_000)))
    with pytest.raises((InvalidValue, BadFile)):
        unpack(path, tmp_path / "there", most_bytes=1_000_000)


@pytest.mark.parametrize(
    "data",
    [b"", b"nonsense", gzip.compress(b"nonsense" * 100, mtime=0)[:-9]],
    ids=["empty", "nonsense", "cut"],
)
def test_damaged_bundles_are_told(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "b.tar.gz"
    path.write_bytes(data)
    with pytest.raises(BadFile):
        unpack(path, tmp_path / "there")


def test_no_bits_that_change_who_runs_it(tmp_path: Path) -> None:
    path = made(tmp_path, ("tool", {"data": b"x", "mode": 0o6777, "uid": 1234}))
    unpack(path, tmp_path / "there")
    found = (tmp_path / "there" / "tool").stat()
    assert (found.st_mode & 0o7000, found.st_uid) == (0, os.getuid())

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.small import NOW, REAL, facts, row
from tradewind.base.errors import BadFile, NoAccess
from tradewind.catalog import facts as facts_file
from tradewind.catalog import files

ONE = facts(row("aws", on_demand=55))


def test_the_package_serves_where_there_is_nothing_else(tmp_path: Path) -> None:
    loaded = files.load(folder=tmp_path / "none")
    assert loaded.origin == files.BUILT_IN
    assert files.PACKAGED.stat().st_size < 1_000_000


def test_the_younger_of_refreshed_and_packaged_serves(tmp_path: Path) -> None:
    path = tmp_path / "catalog.json.gz"
    later = replace(ONE, made_at=REAL.facts.made_at + timedelta(days=1))
    files.save(later, path)
    assert len(files.load(folder=tmp_path).table) == 1
    files.save(replace(ONE, made_at=REAL.facts.made_at - timedelta(days=1)), path)
    assert files.load(folder=tmp_path).origin == files.BUILT_IN


def test_home_follows_the_environment() -> None:
    assert files.home({"TRADEWIND_HOME": "/x"}) == Path("/x")
    assert files.home({}) == Path.home() / ".tradewind"


def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(facts_file.encode(ONE)))
    return document


def _packed(document: Any) -> bytes:
    return gzip.compress(json.dumps(document).encode())


def _without(key: str) -> bytes:
    document = _document()
    del document[key]
    return _packed(document)


def _with_column(name: str, value: Any) -> bytes:
    document = _document()
    document["offers"]["columns"][name] = value
    return _packed(document)


WHOLE = facts_file.encode(ONE)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not gzip at all",
        WHOLE[:-9],
        WHOLE[: len(WHOLE) // 2],
        WHOLE[:40] + b"\x00\xff" + WHOLE[42:],
        gzip.compress(b"{"),
        gzip.compress(b"[1, 2]"),
        gzip.compress(b"null"),
        gzip.compress(b"\xff\xfe"),
        _without("offers"),
        _without("format"),
        _without("accelerators"),
        _with_column("provider", {"values": [], "kind": "H", "codes": "AAA="}),
        _with_column("provider", {"values": ["aws"], "kind": "H", "codes": "AAAAAA=="}),
        _with_column("provider", {"values": ["aws"], "kind": "q", "codes": "AAA="}),
        _with_column("provider", None),
        _with_column("provider", {"values": [7], "kind": "H", "codes": "AAA="}),
        _with_column("accelerator_count", {"values": [None], "kind": "H", "codes": "AAA="}),
        _packed(_document() | {"made_at": "2030-01-01T00:00:00"}),
        _packed(_document() | {"made_at": "soon"}),
        gzip.compress(b"[" * 200_000),
    ],
    ids=lambda data: f"{len(data)} bytes",
)
def test_a_damaged_catalog_is_an_error_with_a_way_out(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "catalog.json.gz"
    path.write_bytes(data)
    with pytest.raises(BadFile, match="damaged") as caught:
        files.load(folder=tmp_path)
    assert str(path) in caught.value.message
    assert "tradewind catalog reset" in (caught.value.hint or "")
    assert path.read_bytes() == data


@pytest.mark.parametrize("table", ["instances", "rates"])
def test_tables_that_are_read_late_are_guarded_too(tmp_path: Path, table: str) -> None:
    path = tmp_path / "catalog.json.gz"
    path.write_bytes(_packed(_document() | {table: [1, 2], "made_at": "2090-01-01T00:00:00+00:00"}))
    loaded = files.load(folder=tmp_path)
    with pytest.raises(BadFile, match="damaged"):
        getattr(loaded.facts, table)


def test_what_is_no_file(tmp_path: Path) -> None:
    for make in (
        lambda path: path.mkdir(),
        lambda path: path.symlink_to(tmp_path / "nowhere"),
        os.mkfifo,
    ):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        make(folder / "account.yaml")
        with pytest.raises(NoAccess, match="is not a file"):
            files.load(folder=folder)
    with pytest.raises(NoAccess):
        files.home({"TRADEWIND_HOME": "~no-such-user/x"})


def test_one_at_a_time(tmp_path: Path) -> None:
    order: list[str] = []

    def other() -> None:
        with files.locked(tmp_path):
            order.append("second")

    with files.locked(tmp_path):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_newer_format_is_told_apart_from_damage(tmp_path: Path) -> None:
    path = tmp_path / "catalog.json.gz"
    path.write_bytes(
        _packed({"format": 99} | {k: v for k, v in _document().items() if k != "format"})
    )
    with pytest.raises(BadFile, match="newer Tradewind"):
        files.load(folder=tmp_path)


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "catalog.json.gz"
    files.save(ONE, target)
    good = target.read_bytes()
    (tmp_path / "file").write_text("")
    with pytest.raises(NoAccess, match="cannot be written"):
        files.save(ONE, tmp_path / "file" / "catalog.json.gz")
    assert target.read_bytes() == good
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".new")] == []


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_no_write_permission(tmp_path: Path) -> None:
    """Root may write anywhere, so the attempt is made by a process that has given that up."""
    folder = tmp_path / "home"
    folder.mkdir()
    files.save(ONE, folder / "catalog.json.gz")
    good = (folder / "catalog.json.gz").read_bytes()
    folder.chmod(0o555)
    (folder / "catalog.json.gz").chmod(0o444)
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_mode & 0o011 != 0o011 and os.geteuid() == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from tradewind.catalog import files\n"
        "from tradewind.base.errors import NoAccess\n"
        "facts = files.load(account=False).facts\n"
        "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: files.save(facts, Path(sys.argv[1]))\n"
        "except NoAccess as error: print(error); sys.exit(error.exit_code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder / "catalog.json.gz")],
        capture_output=True,
        text=True,
        check=False,
    )
    folder.chmod(0o755)
    assert done.returncode == 5, done.stderr
    assert "cannot be written: Permission denied" in done.stdout
    assert (folder / "catalog.json.gz").read_bytes() == good


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    """The process is killed between writing the new file beside and renaming it."""
    target = tmp_path / "catalog.json.gz"
    files.save(ONE, target)
    script = (
        "import os, sys, signal\n"
        "from pathlib import Path\n"
        "from tradewind.catalog import files\n"
        "os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.replace(Path(sys.argv[1]), b'new')\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(target)], check=False)
    assert done.returncode == -9
    assert target.read_bytes() == WHOLE
    assert len(files.load(target).table) == 1


def test_account_and_observations_are_joined_on_load(tmp_path: Path) -> None:
    (tmp_path / "account.yaml").write_text(
        "offers:\n  - {name: desk, accelerator: 4x4090, on_demand: $0.40}\n"
    )
    loaded = files.load(folder=tmp_path, now=NOW)
    own = loaded.offers(provider="own", today=NOW.date())
    assert [o.instance_type for o in own] == ["desk"]
    assert own[0].own
    assert len(files.load(folder=tmp_path, account=False).table) == len(loaded.table) - 1
    (tmp_path / "account.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadFile, match="not UTF-8"):
        files.load(folder=tmp_path)

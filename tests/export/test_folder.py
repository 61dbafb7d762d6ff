"""What a second export does to a folder that somebody has worked in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tradewind.base.errors import BadFile, NoAccess
from tradewind.export import folder
from tradewind.export.exported import Exported, File

ONE = Exported({"run.sh": File("#!/bin/sh\necho one\n", True), "k8s/job.yaml": File("a: 1\n")})
TWO = Exported({"run.sh": File("#!/bin/sh\necho two\n", True)})


def written(
    where: Path, exported: Exported, *, overwrite: bool = False, kind: str = "script"
) -> dict[str, str]:
    changes = folder.compared(where, kind, exported)
    folder.write(where, kind, changes, overwrite=overwrite)
    return {change.path: change.what for change in changes}


def test_what_was_not_edited_is_renewed_and_removed(tmp_path: Path) -> None:
    assert written(tmp_path, ONE) == {"run.sh": "new", "k8s/job.yaml": "new"}
    assert os.access(tmp_path / "run.sh", os.X_OK)
    assert not os.access(tmp_path / "k8s/job.yaml", os.X_OK)
    assert written(tmp_path, ONE) == {"run.sh": "same", "k8s/job.yaml": "same"}
    assert written(tmp_path, TWO) == {"run.sh": "changed", "k8s/job.yaml": "gone"}
    assert not (tmp_path / "k8s/job.yaml").exists()
    assert "two" in (tmp_path / "run.sh").read_text()


def test_what_was_edited_by_hand_is_kept_until_asked(tmp_path: Path) -> None:
    written(tmp_path, ONE)
    (tmp_path / "run.sh").write_text("mine\n")
    (tmp_path / "k8s/job.yaml").write_text("mine: 1\n")
    for _ in range(2):  # also the second time
        assert written(tmp_path, TWO) == {"run.sh": "edited", "k8s/job.yaml": "edited"}
        assert (tmp_path / "run.sh").read_text() == "mine\n"
        assert (tmp_path / "k8s/job.yaml").read_text() == "mine: 1\n"
    written(tmp_path, TWO, overwrite=True)
    assert "two" in (tmp_path / "run.sh").read_text()
    assert not (tmp_path / "k8s/job.yaml").exists()
    assert written(tmp_path, TWO) == {"run.sh": "same"}


def test_what_was_there_before_counts_as_edited(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("somebody's\n")
    assert written(tmp_path, TWO) == {"run.sh": "edited"}
    assert (tmp_path / "run.sh").read_text() == "somebody's\n"


def test_what_was_deleted_comes_back(tmp_path: Path) -> None:
    written(tmp_path, TWO)
    (tmp_path / "run.sh").unlink()
    assert written(tmp_path, TWO) == {"run.sh": "new"}


def test_an_edit_undone_is_none(tmp_path: Path) -> None:
    written(tmp_path, ONE)
    kept = (tmp_path / "run.sh").read_text()
    (tmp_path / "run.sh").write_text("mine\n")
    written(tmp_path, TWO)
    (tmp_path / "run.sh").write_text(kept)
    assert written(tmp_path, TWO)["run.sh"] == "changed"


def test_kinds_share_a_folder(tmp_path: Path) -> None:
    written(tmp_path, ONE)
    other = Exported({"Makefile": File("all:\n")})
    assert written(tmp_path, other, kind="makefile") == {"Makefile": "new"}
    assert (tmp_path / "run.sh").exists()
    assert written(tmp_path, ONE) == {"run.sh": "same", "k8s/job.yaml": "same"}


def test_a_lost_mode_is_a_difference(tmp_path: Path) -> None:
    written(tmp_path, TWO)
    (tmp_path / "run.sh").chmod(0o644)
    assert written(tmp_path, TWO) == {"run.sh": "changed"}
    assert (tmp_path / "run.sh").stat().st_mode & 0o100


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "k8s").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NoAccess, match="is a link"):
        written(tmp_path / "out", ONE)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": 2, "kinds": {}}', '{"format": 1, "kinds": {"a": {"b": 1}}}',
     '{"format": 1, "kinds": {"a": {"../b": "c"}}}', '{"format": 1, "kinds": {"a": {"/b": "c"}}}'],
)  # fmt: skip
def test_a_damaged_record_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / folder.RECORD).write_text(text)
    with pytest.raises(BadFile, match="no record of exports"):
        folder.compared(tmp_path, "a", ONE)


def test_a_diff_says_what_would_become_of_it(tmp_path: Path) -> None:
    written(tmp_path, ONE)
    change = next(c for c in folder.compared(tmp_path, "script", TWO) if c.path == "run.sh")
    assert "-echo one\n+echo two\n" in change.diff
    gone = next(c for c in folder.compared(tmp_path, "script", TWO) if c.what == "gone")
    assert "+++ /dev/null" in gone.diff

"""What git's ignore files keep out of a bundle: told, and sent when the workload asks for it."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
import yaml

from tests.supervisor.test_bundle import fill
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model import globs
from tradewind.supervisor import leftout
from tradewind.supervisor.bundle import left_out, pack


def sent(folder: Path, tmp_path: Path, *include: str) -> set[str]:
    with tarfile.open(pack(folder, tmp_path / "b.tar.gz", include=include).path) as tar:
        return {member.name for member in tar if member.isreg()}


@pytest.fixture
def nano(tmp_path: Path) -> Path:
    """A repository of the kind that ignores its data."""
    folder = fill(
        tmp_path / "job",
        "train.py", "data/a/train.bin", "data/a/val.bin", "data/a/prepare.py", "out/ckpt.pt",
        "out/deep/log.txt", ".venv/lib/x.py", "__pycache__/train.pyc", ".env", "notes.txt",
    )  # fmt: skip
    (folder / ".gitignore").write_text("*.bin\n/out/\n.venv\n__pycache__\n.env\n")
    (folder / ".tradewindignore").write_text("notes.txt\n")
    (folder / "data/a/train.bin").write_bytes(b"x" * 2_000_000)
    return folder


def test_what_git_keeps_back_is_named_the_biggest_first(nano: Path) -> None:
    """Not environments, caches, secrets, and not what .tradewindignore names: that was meant."""
    found = left_out(nano)
    assert {each.name for each in found} == {"data/a/train.bin", "data/a/val.bin", "out/"}
    words = leftout.in_words(found)
    assert words == "data/a/train.bin (2MB), out/ (2B), data/a/val.bin (1B)"


def test_the_line_that_is_advised_sends_what_it_names(nano: Path, tmp_path: Path) -> None:
    before = sent(nano, tmp_path)
    assert not [name for name in before if name.endswith(".bin")]
    include = yaml.safe_load(leftout.line(left_out(nano)))["include"]
    assert include == ["data/a/*.bin", "out"]
    after = sent(nano, tmp_path, *include)
    assert after - before == {
        "data/a/train.bin", "data/a/val.bin", "out/ckpt.pt", "out/deep/log.txt",
    }  # fmt: skip
    assert left_out(nano, include) == []


def test_one_file_of_a_folder_that_is_ignored_whole(nano: Path, tmp_path: Path) -> None:
    assert "out/ckpt.pt" in sent(nano, tmp_path, "out/*.pt")
    assert "out/deep/log.txt" not in sent(nano, tmp_path, "out/*.pt")
    assert "out/deep/" in {each.name for each in left_out(nano, ["out/*.pt"])}


def test_what_names_odd_files_is_yaml_too(tmp_path: Path) -> None:
    names = ("*odd.bin", "a: b.pt", "it's.npy", "[x].txt", "data/*.bin")
    for name in names:
        left = [leftout.LeftOut(name, 1)]
        assert yaml.safe_load(leftout.line(left)) == {"include": [name]}


def test_only_some_are_named_and_the_rest_counted() -> None:
    left = [leftout.LeftOut(f"d/{n}.npy", n) for n in range(12)]
    words = leftout.in_words(left)
    assert words.startswith("d/11.npy (11B), d/10.npy (10B)")
    assert words.endswith(" and 7 more")
    assert leftout.line(left) == "include: [d/*.npy]"


def test_what_is_too_large_for_a_bundle_is_to_be_fetched() -> None:
    left = [leftout.LeftOut("data/train.bin", 17_000_000_000)]
    assert "docs/data.md" in leftout.advice(left, 100_000_000)
    assert "include: [data/train.bin]" in leftout.advice(left, 20_000_000_000)


def test_a_pattern_that_names_nothing_is_told(nano: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"run.include names \*.bin"):
        sent(nano, tmp_path, "*.bin")


def test_a_pattern_does_not_send_secrets_along(nano: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"hold secrets.*\.env"):
        sent(nano, tmp_path, "**")


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("*.bin", "a.bin", True), ("*.bin", "d/a.bin", False), ("**/*.bin", "d/e/a.bin", True),
        ("**/*.bin", "a.bin", True), ("out", "out/x/y", True), ("out/", "out/x", True),
        ("./out", "out/x", True), ("out", "outer/x", False), ("o?t/[ab]", "out/a", True),
        ("a/**/z", "a/z", True), ("a/**/z", "a/b/c/z", True), ("a/*/z", "a/b/c/z", False),
    ],
)  # fmt: skip
def test_how_patterns_match(pattern: str, name: str, expected: bool) -> None:
    assert globs.fits(name, [pattern]) is expected
    if expected:
        folders = name.split("/")[:-1]
        assert all(
            globs.may_hold("/".join(folders[: n + 1]), [pattern]) for n in range(len(folders))
        )


@pytest.mark.parametrize(
    "pattern", ["/etc/x", "~/x", "../x", "a/../../x", "a\\b", "a\nb", ".", "/"]
)
def test_patterns_stay_below_the_jobs_folder(pattern: str) -> None:
    assert globs.problem(pattern)

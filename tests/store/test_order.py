"""In which order files are synced and named: what a power cut leaves cannot be tried, but follows
from the order of the calls."""

from pathlib import Path

import pytest

from tests.system_calls import Calls
from tradewind.store.local import LocalStore, written_whole


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    made = LocalStore(tmp_path)
    made.replace("warm", b"")  # the folder of unnamed files is there
    return made


def test_content_is_synced_before_it_is_named_and_the_name_after(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch, tmp_path)
    written = [("sync", "new"), ("name", "a"), ("delete", "new"), ("sync", ".")]
    store.create("a", b"1")
    assert calls.since() == written
    assert not store.create("a", b"2")  # what another has written is told to be there, too
    assert calls.since() == written
    store.replace("a", b"3")
    assert calls.since() == written
    store.delete("a")
    assert calls.since() == [("delete", "a"), ("sync", ".")]


def test_new_folders_are_synced_into_those_above_before_anything_is_named_in_them(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch, tmp_path)
    store.create("a/b/c", b"1")
    assert calls.since() == [
        ("sync", "new"),
        ("folder", "a"),
        ("sync", "."),
        ("folder", "a/b"),
        ("sync", "a"),
        ("name", "a/b/c"),
        ("delete", "new"),
        ("sync", "a/b"),
    ]


def test_a_file_that_is_written_whole_is_synced_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch, tmp_path)
    with written_whole(tmp_path / "a") as stream:
        stream.write(b"1")
    words = [word for word, _ in calls.made]
    assert words.index("sync") < words.index("name")
    assert ("name", "a") in calls.made

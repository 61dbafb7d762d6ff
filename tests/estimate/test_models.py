"""Whatever a user calls a model: names and three kinds of files, told apart by content."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.estimate.test_profile_file import PROFILE
from tradewind.base.errors import BadFile, NoAccess, NotFound, TradewindError
from tradewind.estimate import models
from tradewind.model.profile import Profile
from tradewind.model.shape import Shape, Work

SHAPE = "layers: 24\nd_model: 2048\nn_heads: 16\n"
CONFIG = '{"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}'


@pytest.mark.parametrize(
    ("file", "content", "kind"),
    [
        ("mine.yaml", SHAPE, Shape),
        ("mine", SHAPE, Shape),
        ("mine.json", '{"layers": 24, "d_model": 2048, "n_heads": 16}', Shape),
        ("config.json", CONFIG, Shape),
        ("config.txt", CONFIG, Shape),
        ("profile.yaml", PROFILE.to_json(), Profile),
    ],
)
def test_files_are_told_apart_by_content(
    tmp_path: Path, file: str, content: str, kind: type
) -> None:
    path = tmp_path / file
    path.write_text(content)
    assert isinstance(models.load(str(path)), kind)


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(models.load("gpt2-xl"), Shape)
    assert isinstance(models.load("resnet-50"), Work)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt2").mkdir()  # a folder of that name is no model until it has a config
    assert models.load("gpt2").name == "gpt2-small"
    (tmp_path / "gpt2" / "config.json").write_text(CONFIG.replace("12,", "24,"))
    found = models.load("gpt2")
    assert isinstance(found, Shape)
    assert found.layers == 24


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("hello", "does not describe a model"),
        ("- a\n- b\n", "does not describe a model"),
        ('{"a": 1}', "does not describe a model"),
        ('{"hidden_size": 12', "not JSON"),
        ("[1, 2]", "found list"),
        ("a: [1\n", "line 2: not YAML"),
        ("\0\1", "is not text"),
        ("layers: 24\nd_modle: 2048\nn_heads: 16", "line 2: d_modle: .* did you mean 'd_model'"),
        ("layers: 24\nd_model: wide\nn_heads: 1.5", "(?s)line 2: d_model.*line 3: n_heads"),
        ("layers: 24\nd_model: 2048", "n_heads is missing"),
        (SHAPE + "n_kv_heads: 5\n", "line 3: n_heads .* not a multiple of n_kv_heads"),
        (SHAPE + "kind: other\n", "line 4: kind: 'other' is not one of decoder"),
        (SHAPE + "gated: maybe\n", "line 4: gated: 'maybe' is neither"),
        (SHAPE + "vocab: -3\n", "line 4: vocab: '-3' is negative"),
        (SHAPE + "vocab:\n", "line 4: vocab: expected a value"),
        ("layers: 0\nd_model: 8\nn_heads: 1\n", "line 1: layers is 0"),
        (PROFILE.to_json().replace('"batch": 1', '"batch": "one"'), "batch is 'one'"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(content)
    with pytest.raises(BadFile, match=words) as raised:
        models.load(str(path))
    assert str(path) in raised.value.message


@pytest.mark.parametrize("text", ["none.yaml", "./none", "/none/at/all", "none.json"])
def test_files_that_are_not_there(text: str) -> None:
    with pytest.raises(NoAccess, match="no file"):
        models.load(text)


def test_odd_paths(tmp_path: Path) -> None:
    for text in ("x" * 5000, "a\0b", "/dev/null", str(tmp_path), "~nobody/x", "nomodel"):
        with pytest.raises(TradewindError):
            models.load(text)
    with pytest.raises(NotFound):
        models.load("lama-3.1-8b")


def test_weights_by_mistake(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    with path.open("wb") as stream:
        stream.truncate(60_000_000)
    with pytest.raises(BadFile, match="are these the weights"):
        models.load(str(path))

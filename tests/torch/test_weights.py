"""The trained weights out of a checkpoint: the same numbers in every format, whoever wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tradewind.torch as tw
from tests.cli.conftest import Cli, cli, home
from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.torch.checkpoint import Checkpoints, Place
from tradewind.torch.weights import export
from tradewind.torch.weights.export import _Box, _stretches
from tradewind.torch.weights.safetensors import tensors

__all__ = ["cli", "home"]


class Config:
    def to_dict(self) -> dict[str, Any]:
        return {"model_type": "tiny", "width": 8}


class Tied(nn.Module):
    """Weights that have two names, statistics that are no parameters, numbers of several types."""

    def __init__(self) -> None:
        super().__init__()
        self.config = Config()
        self.embed, self.norm = nn.Embedding(16, 8), nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 16, bias=False)
        self.head.weight = self.embed.weight
        self.scale = nn.Parameter(torch.randn(3, 5, dtype=torch.bfloat16))

    def forward(self, x: Any) -> Any:
        return self.head(self.norm(self.embed(x))) + self.scale.sum()


def trained(folder: Path, *, steps: int = 3) -> Tied:
    torch.manual_seed(1)
    model = Tied()
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.utils.data.DataLoader(torch.randint(16, (64,)), batch_size=8)
    session = tw.session(model=model, optimizer=optimizer, data=data, folder=folder, every_steps=1)
    for batch in session.batches(max_steps=steps):
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        session.step()
    session.finish()
    return model


def test_every_format_has_the_model_as_it_is(tmp_path: Path, cli: Cli) -> None:
    model = trained(tmp_path / "checkpoints")
    wanted = model.state_dict()
    here = str(tmp_path / "checkpoints")
    shown = cli("get", here, "--weights", str(tmp_path / "m.safetensors"))
    assert "model at step 3" in shown.out
    assert cli("get", here, "--weights", str(tmp_path / "m.pt")).code == 0
    told = cli("get", here, "--weights", str(tmp_path / "hf"), "--json").json
    assert told["step"] == 3
    assert [words.partition(":")[0] for words in told["missing"]] == ["tokenizer files"]
    config = json.loads((tmp_path / "hf/config.json").read_text())
    assert config == {"model_type": "tiny", "width": 8, "architectures": ["Tied"]}
    loaded = torch.load(tmp_path / "m.pt", weights_only=True)
    for found in (
        loaded,
        tensors(tmp_path / "m.safetensors"),
        tensors(tmp_path / "hf/model.safetensors"),
    ):
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
        assert all(found[name].dtype == wanted[name].dtype for name in wanted)
    Tied().load_state_dict(loaded)
    assert cli("get", here, "--weights", str(tmp_path / "m.pt")).code == 2  # it is there already
    assert cli("get", here, "--weights", str(tmp_path / "m.pt"), "--force").code == 0
    assert not list(tmp_path.glob(".*.new*"))


def test_the_library_reads_it_too(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.torch")
    model = trained(tmp_path / "checkpoints")
    export.export(export.of_folder(tmp_path / "checkpoints"), tmp_path / "m.safetensors")
    found = library.load_file(tmp_path / "m.safetensors")
    assert all(torch.equal(found[name], each) for name, each in model.state_dict().items())


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    trained(tmp_path / "checkpoints")
    newest = max((tmp_path / "checkpoints/shards").glob("*/*/__0_0.distcp"))
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 255
    newest.write_bytes(data)
    said: list[str] = []
    place = export.of_folder(tmp_path / "checkpoints")
    made = export.export(place, tmp_path / "m.safetensors", warn=said.append)
    assert made.step < 3  # the machine may be too slow to have saved step 2
    assert "is not used" in said[0]
    for each in (tmp_path / "checkpoints/shards").glob("*/*/__0_0.distcp"):
        each.write_bytes(b"")
    with pytest.raises(BadFile):
        export.export(place, tmp_path / "other.safetensors")
    assert not (tmp_path / "other.safetensors").exists()


def test_what_it_has_not_is_said(tmp_path: Path) -> None:
    trained(tmp_path / "checkpoints")
    place = export.of_folder(tmp_path / "checkpoints")
    with pytest.raises(NotFound, match="no tensors of 'ema'"):
        export.export(place, tmp_path / "m.pt", part="ema")
    with pytest.raises(InvalidValue, match="ending"):
        export.export(place, tmp_path / "m.onnx")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound, match="no checkpoint yet"):
        export.export(export.of_folder(tmp_path / "empty"), tmp_path / "m.pt")


def test_boxes_of_any_cut_go_to_their_place() -> None:
    """Shards along any dimension, several of them at once, and numbers alone."""
    generator = torch.Generator().manual_seed(1)

    def number(upto: int) -> int:
        return int(torch.randint(upto, (), generator=generator))

    for _ in range(300):
        shape = tuple(1 + number(5) for _ in range(number(4)))
        offsets = tuple(number(each) for each in shape)
        sizes = tuple(number(each - at) + 1 for each, at in zip(shape, offsets, strict=True))
        whole = torch.arange(1, 1 + int(torch.tensor(shape).prod())).reshape(shape)
        inner = whole[tuple(slice(a, a + n) for a, n in zip(offsets, sizes, strict=True))]
        numbers = inner.reshape(-1).tolist()
        made = [0] * whole.numel()
        taken = 0
        for at, many in _stretches(_Box("f", "int64", shape, offsets, sizes, 0)):
            made[at : at + many] = numbers[taken : taken + many]
            taken += many
        expected = torch.zeros_like(whole)
        expected[tuple(slice(a, a + n) for a, n in zip(offsets, sizes, strict=True))] = inner
        assert made == expected.reshape(-1).tolist()


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (2, "float128"), (2, 7), (3, [10**15, 8]), (3, [16]), (3, "x"), (4, [99, 0]), (4, [-1, 0]),
        (5, [16, 9]), (8, 10**15), (8, -5), (8, True), (1, 5), (3, [1e308, 8]),
    ],
    ids=str,
)  # fmt: skip
def test_an_index_that_cannot_be_true_is_refused(tmp_path: Path, at: int, value: Any) -> None:
    """Whoever can write the store can write one, with check sums that fit."""
    from tradewind.torch.checkpoint import manifest

    folder = tmp_path / "checkpoints"
    place = Place(folder)
    checkpoints = Checkpoints(place, device="cpu")
    checkpoints.save(1, {"model.w": torch.ones(16, 8)}, wait=True)
    checkpoints.close()
    path = next(folder.glob("checkpoints/*/*.json"))
    told = manifest.decode(path.read_bytes(), "key")
    shards = folder / "shards" / told.name
    index = json.loads((shards / "index.json").read_text())
    entry = next(each for each in index["files"][0]["entries"] if each[1] == "model.w")
    entry[at] = value
    data = json.dumps(index).encode()
    (shards / "index.json").write_bytes(data)
    told.files["index.json"] = (len(data), manifest.sums(data))
    path.write_bytes(told.encode())
    with pytest.raises((BadFile, InvalidValue, NotFound)):
        export.export(export.of_folder(folder), tmp_path / "m.safetensors")
    assert not (tmp_path / "m.safetensors").exists()

"""What `tw.prepare` takes, and the words with which it refuses the rest: in one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tradewind.torch as tw
from tests.torch.spread import Block, Whole, loss_of, network
from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.estimate.layouts import Layout as Planned
from tradewind.torch.strategies import blocks, compression, layout, pipeline, tensors

torch.set_num_threads(1)
NOTHING: dict[str, str] = {}
PLANNED = Planned(2, 2, 1, 1, 1, 1, 4, 8, "zero3", "full", 2)


def test_a_layout_comes_in_many_clothes(tmp_path: Path) -> None:
    table = {"dp": 2, "tp": 2, "micro_batch": 4, "accumulation": 8, "sharding": "zero3"}
    table |= {"recompute": "full"}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"best": {"layout": table, "precision": "bf16", "nodes": 1}}))
    for given in (table, PLANNED, {"layout": table}, file, str(file)):
        found = layout.wanted(given, NOTHING)
        assert (found.dp, found.tp, found.batch_size, found.sharding) == (2, 2, 32, "zero3")
    assert layout.wanted(file, NOTHING).precision == "bf16"
    assert layout.wanted(file, NOTHING, "fp32").precision == "fp32"
    said = {layout.VARIABLE: json.dumps(table)}
    assert layout.wanted(None, said).tp == 2
    assert layout.wanted({"pp": 2}, said).tp == 1
    assert layout.wanted(None, NOTHING) == layout.Layout()
    assert layout.wanted(None, {layout.VARIABLE: ""}) == layout.Layout()


@pytest.mark.parametrize(
    ("given", "words", "hint"),
    [
        ({"dq": 2}, "'dq', which no layout has", "a layout has dp, tp"),
        ({"dp": 0}, "dp of the layout is 0, and must be 1, 2, 3", None),
        ({"tp": "two"}, "tp of the layout is 'two'", None),
        ({"sharding": "zero4"}, "sharding of the layout is 'zero4'", "none, zero1"),
        ({"cp": 2}, "splitting sequences is not done", "plan with cp: 1"),
        ({"ep": 4}, "splitting experts is not done", "sharding: zero3"),
        ({"vp": 2}, "several stages on a rank", "more micro-batches"),
        ({"precision": "fp8"}, "precision 'fp8' is not made", "torchao"),
        ({"best": None}, "no plan that keeps every limit", "loosen a limit"),
        (7, "the layout is a int", "plan.json"),
    ],
    ids=str,
)
def test_layouts_that_are_refused(given: Any, words: str, hint: str | None) -> None:
    with pytest.raises(InvalidValue, match=words) as caught:
        layout.wanted(given, NOTHING)
    assert hint is None or hint in str(caught.value)


def test_files_that_are_no_plans(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no file"):
        layout.wanted(tmp_path / "none.json", NOTHING)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(BadFile, match=r"bad\.json is no JSON"):
        layout.wanted(tmp_path / "bad.json", NOTHING)
    (tmp_path / "raw.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadFile, match=r"raw\.json is no text"):
        layout.wanted(tmp_path / "raw.json", NOTHING)
    with pytest.raises(BadFile, match=r"\$TRADEWIND_LAYOUT is no JSON"):
        layout.wanted(None, {layout.VARIABLE: "nonsense"})


def test_ranks_that_do_not_suffice() -> None:
    with pytest.raises(InvalidValue, match=r"needs 4 ranks \(dp 2 × tp 2\), and there are 2") as e:
        layout.placed(layout.Layout(dp=2, tp=2), 2)
    assert "torchrun --nproc-per-node 4" in str(e.value)
    with pytest.raises(InvalidValue, match="and there is 1 rank"):
        layout.placed(layout.Layout(pp=2), 1)
    with pytest.raises(InvalidValue, match="groups of 3 does not divide dp 4"):
        layout.placed(layout.Layout(dp=4, sharding="hybrid", shard=3), 4)
    assert layout.placed(layout.Layout(tp=2), 8).dp == 4


@pytest.mark.parametrize(
    ("more", "words", "hint"),
    [
        ({"layout": {"dp": 4}}, "needs 4 ranks", "torchrun"),
        ({"compress": "zip"}, "compress is 'zip'", "fp16, bf16, powersgd, topk"),
        ({"compress": {"kind": "topk", "share": 3}}, "more than all", "0.01 sends 1 %"),
        ({"compress": {"kind": "topk", "rank": 3}}, "topk has no option 'rank'", "share"),
        ({"compress": {"kind": "powersgd", "rank": -1}}, "must be a number above 0", None),
        ({"compress": "fp16", "layout": {"sharding": "zero3"}}, "is for replicas", "leave comp"),
        ({"schedule": "zigzag"}, "schedule is 'zigzag'", "1f1b, gpipe"),
        ({"engine": "jax"}, "engine is 'jax'", "torch, deepspeed"),
        ({"loss": 3}, "loss is a int and no function", None),
    ],
    ids=str,
)
def test_what_is_refused_before_anything_is_touched(
    more: dict[str, Any], words: str, hint: str | None, tmp_path: Path
) -> None:
    model = network()
    with pytest.raises(InvalidValue, match=words) as caught:
        tw.prepare(model, **{"folder": tmp_path, **more})
    assert hint is None or hint in str(caught.value)


def test_optimizers_that_do_not_belong_to_the_model(tmp_path: Path) -> None:
    model, other = network(), network()
    strange = torch.optim.AdamW(other.parameters())
    with pytest.raises(InvalidValue, match="parameters that are not the model's"):
        tw.prepare(model, strange, folder=tmp_path)
    used = torch.optim.AdamW(model.parameters())
    model(torch.zeros(1, 3, dtype=torch.int64)).sum().backward()
    used.step()
    with pytest.raises(InvalidValue, match="has made steps already"):
        tw.prepare(model, used, folder=tmp_path)
    with pytest.raises(InvalidValue, match="the optimizer is a int"):
        tw.prepare(model, 7, folder=tmp_path)
    with pytest.raises(InvalidValue, match="no optimizer to make a step"):
        tw.prepare(model, folder=tmp_path).step(torch.zeros(1, 3, dtype=torch.int64))


def test_models_that_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"no torch\.nn\.Module"):
        tw.prepare(lambda x: x, folder=tmp_path)
    with torch.device("meta"):
        empty = network()
    with pytest.raises(InvalidValue, match="is on the meta device"):
        tw.prepare(empty, folder=tmp_path)
    with pytest.raises(InvalidValue, match="is in a DataParallel already"):
        tw.prepare(nn.DataParallel(network()), folder=tmp_path)


def made(tmp_path: Path, **more: Any) -> Any:
    torch.manual_seed(0)
    model = more.pop("model", None) or network()
    return tw.prepare(
        model,
        lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
        folder=tmp_path,
        **{"loss": loss_of, **more},
    )


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16", "pure-bf16"])
def test_one_process_learns_in_every_precision(tmp_path: Path, precision: str) -> None:
    prepared = made(tmp_path, layout={"micro_batch": 3, "recompute": "full"}, precision=precision)
    tokens = torch.arange(96).view(8, 12) % 40
    losses = [float(prepared.step(tokens, clip=1.0)) for _ in range(8)]
    assert losses[-1] < losses[0] - 1
    assert (prepared.scaler is not None) == (precision == "fp16")
    assert prepared.batch_size == 3
    kind = torch.bfloat16 if precision == "pure-bf16" else torch.float32
    assert {weight.dtype for weight in prepared.model.parameters()} == {kind}


def test_batches_of_many_shapes(tmp_path: Path) -> None:
    tokens = torch.arange(24).view(2, 12) % 40
    prepared = made(tmp_path)
    first = float(prepared.step((tokens, tokens)))
    assert float(prepared.step([tokens])) < first
    assert float(prepared.step({"input": tokens, "labels": tokens})) < first
    own = made(tmp_path, split=lambda batch: (batch["x"], batch["y"]))
    assert abs(float(own.step({"x": tokens, "y": tokens, "name": "z"})) - first) < 1e-6
    with pytest.raises(InvalidValue, match="without tensors that have samples"):
        prepared.step({"name": "z"})
    silent = made(tmp_path, loss=None)
    with pytest.raises(InvalidValue, match="the model gives a Tensor without a loss"):
        silent.step(tokens)


def test_blocks_are_found_in_lists_of_alike_modules() -> None:
    names = [name for name, _ in blocks.blocks(network(depth=4))]
    assert names == ["1", "2", "3", "4"]
    whole = Whole(network())
    assert [name for name, _ in blocks.blocks(whole)] == ["blocks.0", "blocks.1", "blocks.2"]
    assert [name for name, _ in blocks.blocks(whole, ["head"])] == ["head"]
    assert len(blocks.blocks(whole, [Block])) == 3
    assert blocks.blocks(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))) == []
    with pytest.raises(InvalidValue, match="blocks names Nothing, which is no part"):
        blocks.blocks(whole, ["Nothing"])


def test_recomputing_needs_blocks(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="no list of blocks to recompute") as caught:
        made(tmp_path, model=nn.Linear(2, 2), layout={"recompute": "full"})
    assert "blocks=[Block]" in str(caught.value)


def test_stages_have_about_as_many_parameters() -> None:
    assert pipeline._bounds([1, 1, 1, 1], 2) == [0, 2, 4]
    assert pipeline._bounds([8, 1, 1, 1, 8], 3) == [0, 1, 4, 5]
    stage = pipeline.cut(network(depth=4), 2, 1)
    assert [name for name, _ in stage.named_children()] == ["3", "4", "5"]
    with pytest.raises(InvalidValue, match="pp 9, and the model has 5 members"):
        pipeline.cut(network(), 9, 0)
    with pytest.raises(InvalidValue, match="has to be traced") as caught:
        pipeline.traced(Whole(network()), 2, [], None)
    assert "example=(tokens,)" in str(caught.value)


def test_pipelines_take_tensors_of_one_size(tmp_path: Path) -> None:
    tools = made(tmp_path)._tools
    passes = pipeline.PipelinePasses(tools, None, schedule="1f1b", pipe=None, data=None)
    passes._schedule = object()
    with pytest.raises(InvalidValue, match="takes tensors: inputs are a dict") as caught:
        passes.run({"x": torch.zeros(4, 2), "labels": torch.zeros(4)})
    assert "split=lambda batch" in str(caught.value)
    passes._batch = 8
    with pytest.raises(InvalidValue, match="this one has 4 samples, those before had 8") as caught:
        passes.run(torch.zeros(4, 2))
    assert "drop_last=True" in str(caught.value)


class Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.alpha, self.omega = nn.Linear(6, 6), nn.Linear(6, 6)


class Mesh:
    def __init__(self, size: int) -> None:
        self._size = size

    def size(self) -> int:
        return self._size


def test_blocks_that_cannot_be_split_by_tensors() -> None:
    with pytest.raises(InvalidValue, match="Odd has no block that is known") as caught:
        tensors.split(Odd(), Mesh(2))
    assert "alpha, omega" in str(caught.value)
    assert "plan={'layers.*.first': ColwiseParallel()" in str(caught.value)
    with pytest.raises(InvalidValue, match=r"tp 3 does not divide the 32 features of 1\.wq"):
        tensors.split(network(), Mesh(3))
    with pytest.raises(InvalidValue, match="tp 8 does not divide heads of 1, which is 4"):
        tensors.split(network(), Mesh(8))


def test_a_share_of_nothing_is_no_compression() -> None:
    assert compression.asked(None) is None
    assert compression.asked("topk") == ("topk", {"share": 0.01})
    assert compression.asked({"kind": "powersgd", "rank": 4}) == (
        "powersgd",
        {"rank": 4, "start": 10, "min_rate": 2.0},
    )

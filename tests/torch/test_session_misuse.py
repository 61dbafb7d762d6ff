"""Scripts that do what they should not, or what few do: nothing is lost; what is wrong is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tradewind.torch as tw
from tests.torch.test_session_alone import data, net
from tradewind.base.errors import InvalidValue
from tradewind.torch.sessions import claims
from tradewind.torch.sessions.telling import Teller

pytestmark = pytest.mark.slow

torch.set_num_threads(1)


class Kept:
    """An object of a script's own."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.value = state["value"]


def session(folder: Path, model: Any = None, optimizer: Any = None, **more: Any) -> Any:
    model = model or net()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    given = {"model": model, "optimizer": optimizer, "data": data(), "folder": folder}
    return tw.session(**{**given, **more})


def steps(made: Any, upto: int) -> None:
    for _ in made.batches(max_steps=upto):
        made.step()


def test_one_training_for_each_folder(tmp_path: Path) -> None:
    with session(tmp_path):
        with pytest.raises(InvalidValue, match="this process has a session in"):
            session(tmp_path)
        script = (
            "import sys, pathlib\n"
            "from tradewind.torch.sessions.claims import Claim\n"
            "Claim(pathlib.Path(sys.argv[1]))"
        )
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
        other = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, env=env
        )
        assert f"another training (process {os.getpid()}) uses" in other.stderr
    session(tmp_path).finish()
    with pytest.raises(InvalidValue, match="holds more than numbers"):
        session(tmp_path, extra={"odd": Kept(tmp_path)})
    session(tmp_path).finish()  # one that could not begin is in nobody's way


def test_a_second_training_in_the_same_folder(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Folds and trials: the second would continue the first one's training."""
    for number in range(2):
        with session(tmp_path / str(number)) as made:
            steps(made, 2)
    assert "warning" not in capfd.readouterr().err
    with session(tmp_path / "0") as made:
        steps(made, 2)
    assert f"this process has trained in {tmp_path / '0'} before" in capfd.readouterr().err


@pytest.mark.parametrize("first", [0, 2])
def test_a_loop_that_begins_where_a_checkpoint_of_its_own_was(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], first: int
) -> None:
    """As scripts have it that resume by themselves: `range(args.start_epoch, args.epochs)`."""

    def train(first: int, upto: int) -> int:
        with session(tmp_path) as made:
            for _epoch in range(first, 4):
                for _ in made.batches():
                    made.step()
                    if made.step_number == upto:
                        return upto
            return int(made.step_number)

    an_epoch = len(data())
    train(0, 2 * an_epoch + 1)
    assert train(first, -1) == 4 * an_epoch
    assert ("_epoch is 2 already" in capfd.readouterr().err) == (first == 2)


def test_a_second_training_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_trained", set())
    monkeypatch.setenv("TRADEWIND_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("TRADEWIND_RUN", "fold-1")
    monkeypatch.setenv("TRADEWIND_LEG", "1")
    with session(tmp_path / "0") as made:
        steps(made, 2)
    with pytest.raises(InvalidValue, match="a run keeps the checkpoints of one"):
        session(tmp_path / "1")


def test_what_comes_after_an_epoch_comes_once(tmp_path: Path) -> None:
    """Also where the training had ended, and is started again."""
    counted: list[int] = []
    for _ in range(2):
        kept = Kept(0)
        made = session(tmp_path, extra={"kept": kept})
        for _epoch in made.epochs(2):
            for _batch in made.batches():
                made.step()
            kept.value += 1
        counted.append(kept.value)
        made.finish()
    assert counted == [2, 2]


def test_an_epoch_that_is_left_early(tmp_path: Path) -> None:
    def trained(folder: Path, stop: int) -> list[tuple[int, int]]:
        seen = []
        made = session(folder)
        for epoch in made.epochs(3):
            for number, _ in enumerate(made.batches()):
                made.step()
                seen.append((epoch, made.step_number))
                if number == 1 or made.step_number == stop:
                    break
            if made.step_number == stop:
                break
        made.finish()
        return seen

    whole = trained(tmp_path / "whole", 0)
    assert whole == [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)]
    first = trained(tmp_path / "parts", 3)
    assert first == whole[:3]
    assert trained(tmp_path / "parts", 0)[0][0] == 1


def test_the_rest_of_an_epoch_after_a_number_of_steps(tmp_path: Path) -> None:
    made = session(tmp_path)
    steps(made, 13)  # epochs have five
    assert len(list(made.batches())) == 2
    made.finish()


class Looked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(10, 6, sparse=True)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.table((features[:, 0].abs() * 3).long())
        return (rows * features).sum(1)


@pytest.mark.parametrize("kind", ["SparseAdam", "SGD"])
def test_sparse_gradients_that_are_partly_accumulated(kind: str, tmp_path: Path) -> None:
    ended = []
    for name, ends in (("whole", [10]), ("parts", [4, 10])):
        for end in ends:
            model = Looked()
            optimizer = getattr(torch.optim, kind)(list(model.parameters()), lr=0.01)
            made = session(tmp_path / name, model, optimizer)
            for features, wanted in made.batches(max_steps=end):
                (model(features) - wanted).square().mean().backward()
                made.step()
                if made.step_number % 3 == 0:
                    optimizer.step()
                    optimizer.zero_grad()
            made.finish()
        ended.append(model.table.weight.detach().clone())
    assert torch.equal(*ended)


def test_parameters_that_come_later_are_saved(tmp_path: Path) -> None:
    model, later = net(), torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.Adam(model.parameters())
    made = session(tmp_path, model, optimizer)
    steps(made, 2)
    optimizer.add_param_group({"params": [later]})
    model.more = torch.nn.Linear(1, 1)
    optimizer.add_param_group({"params": list(model.more.parameters())})
    steps(made, 4)
    made.finish()
    with torch.no_grad():
        later.fill_(5)
    made = session(tmp_path, model, optimizer)
    assert later.tolist() == [0, 0, 0]
    made.finish()
    with pytest.raises(InvalidValue, match="other groups of them") as caught:
        session(tmp_path, net())
    assert "before the session" in str(caught.value)


def test_parameters_without_content_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"model\.weight has no shape yet"):
        session(tmp_path, torch.nn.LazyLinear(3))
    model = net()
    model.register_buffer("nothing", torch.empty(3, device="meta"))
    with pytest.raises(InvalidValue, match=r"model\.nothing has no content"):
        session(tmp_path, model)


def test_modules_without_content_beside_the_model_do_no_harm(tmp_path: Path) -> None:
    beside = [torch.nn.LazyLinear(3), torch.nn.Linear(2, 2, device="meta")]
    with session(tmp_path) as made:
        steps(made, 4)
    assert made.step_number == 4
    assert len(beside) == 2


def test_names_that_are_taken(tmp_path: Path) -> None:
    optimizer = torch.optim.SGD(net().parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for name in ("model", "optimizer", "scheduler"):
        with pytest.raises(InvalidValue, match=f"extra '{name}' has a name that is used already"):
            session(tmp_path, scheduler=scheduler, extra={name: Kept()})


def test_state_that_becomes_unreadable_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    """And not when it is needed."""
    kept = Kept()
    made = session(tmp_path, extra={"kept": kept})
    steps(made, 2)
    kept.value = tmp_path
    with pytest.raises(InvalidValue, match="the state of kept holds more"):
        steps(made, 4)
    made.close()
    made = session(tmp_path, extra={"kept": kept})
    assert (made.step_number, kept.value) == (2, None)
    made.finish()


def test_what_an_object_keeps_comes_back_as_it_was(tmp_path: Path) -> None:
    value = {"a": {"b": torch.ones(2)}, "a.b": torch.zeros(2), "numbers": np.arange(3)}
    made = session(tmp_path, extra={"kept": Kept(value)})
    steps(made, 2)
    made.finish()
    kept = Kept()
    session(tmp_path, extra={"kept": kept}).finish()
    assert kept.value["a"]["b"].tolist() == [1, 1]
    assert kept.value["a.b"].tolist() == [0, 0]
    assert isinstance(kept.value["numbers"], np.ndarray)
    assert kept.value["numbers"].tolist() == [0, 1, 2]


class Counts(torch.nn.Linear):
    """Says of itself what is no parameter, as a tensor that grows."""

    calls = 0

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return super().forward(features)

    def get_extra_state(self) -> torch.Tensor:
        return torch.full((self.calls + 1,), self.calls)

    def set_extra_state(self, state: torch.Tensor) -> None:
        self.calls = len(state) - 1


def test_what_modules_say_of_themselves(tmp_path: Path) -> None:
    model = Counts(6, 1)
    made = session(tmp_path, model)
    for features, _ in made.batches(max_steps=3):
        model(features)
        made.step()
    made.finish()
    model = Counts(6, 1)
    session(tmp_path, model).finish()
    assert model.calls == 3


def test_averaged_weights_stay_where_frozen_ones_are_left_out(tmp_path: Path) -> None:
    averaged = net().requires_grad_(False)
    made = session(tmp_path, ema=averaged, frozen=False)
    for _ in made.batches(max_steps=2):
        with torch.no_grad():
            averaged[0].bias.fill_(7)
        made.step()
    made.finish()
    averaged = net().requires_grad_(False)
    session(tmp_path, ema=averaged, frozen=False).finish()
    assert averaged[0].bias.unique().tolist() == [7]


def test_another_kind_of_optimizer_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = session(tmp_path)
    steps(made, 2)
    made.finish()
    model = net()
    session(tmp_path, model, torch.optim.Adam(model.parameters())).finish()
    assert "optimizer was SGD at the checkpoint, and continues as Adam" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every_steps": 0}, "every_steps is 0"),
        ({"every_steps": 2.5}, "must be a whole number"),
        ({"every_s": 0}, "every_s is 0"),
        ({"every_s": float("nan")}, "every_s is nan"),
        ({"keep": 0}, "keep is 0"),
        ({"grace_s": -1}, "grace_s is -1"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=said):
        session(tmp_path, **options)


def test_configurations_of_any_shape(tmp_path: Path) -> None:
    around: list[Any] = []
    around.append(around)
    for name, config in {"keys": {1: 2, "a": {(1, 2): 3}}, "round": {"a": around}}.items():
        session(tmp_path / name, config=config).finish()
        assert (tmp_path / name).exists()


def test_metrics_of_a_training_that_begins_anew(tmp_path: Path) -> None:
    """A life before was killed in the middle of a line, and had saved nothing."""
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 1.0}\n{"step": 2, "lo')
    made = session(tmp_path)
    for _ in made.batches(max_steps=1):
        made.step(loss=3)
    made.finish()
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step":1,"loss":3.0}\n'


def test_values_that_are_no_numbers_do_no_harm(tmp_path: Path) -> None:
    teller = Teller(None, tmp_path / "metrics.jsonl")
    for step, value in enumerate([torch.empty((), device="meta"), "x", 10**400, torch.ones(3), 2]):
        teller.made(step, {"odd": value, "loss": torch.tensor(1.5)})
    teller.tell(now=True)
    assert [row["loss"] for row in teller.rows] == [1.5] * 5
    assert [row.get("odd") for row in teller.rows] == [None, None, None, None, 2]


# -- loops over epochs that a script counts itself -------------------------------------------------


def epochs_by_hand(folder: Path, epochs: range, most: int = 100, between: Any = None) -> list[int]:
    """Ends after so many steps, without a word; returns the steps that each epoch was given."""
    model = net()
    counts = []
    with session(folder, model, every_steps=1, keep=1) as made:
        for _ in epochs:
            counts.append(0)
            for _batch in made.batches():
                made.step()
                counts[-1] += 1
                if made.step_number == most:
                    made.save()
                    break
            if made.step_number == most:
                break
            if between is not None:
                between(model)
    return counts


def test_a_loop_that_begins_at_epoch_0_again(tmp_path: Path) -> None:
    assert epochs_by_hand(tmp_path, range(3), most=8) == [5, 3]
    assert epochs_by_hand(tmp_path, range(3)) == [0, 2, 5]
    assert epochs_by_hand(tmp_path, range(3)) == [0, 0, 0]


def test_what_such_a_loop_changes_between_epochs_is_refused(tmp_path: Path) -> None:
    def noise(model: Any) -> None:
        with torch.no_grad():
            model[0].bias.add_(1)

    epochs_by_hand(tmp_path, range(3), most=8, between=noise)
    with pytest.raises(InvalidValue, match="has changed between epochs that are over"):
        epochs_by_hand(tmp_path, range(3), between=noise)


def test_a_loop_that_asks_for_the_epoch(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    epochs_by_hand(tmp_path, range(3), most=8)
    made = session(tmp_path)
    counts = []
    for _ in range(made.epoch, 3):
        counts.append(0)
        for _batch in made.batches():
            made.step()
            counts[-1] += 1
    made.finish()
    assert counts == [2, 5]
    assert "its loop is taken to begin at epoch 1" in capfd.readouterr().err


def test_all_epochs_are_counted_not_each(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with session(tmp_path) as made:
        for _ in range(2):
            for _batch in made.batches(epochs=1):
                made.step()
        assert made.step_number == 5
    assert "session.batches(epochs=1) was asked again and gives nothing" in capfd.readouterr().err

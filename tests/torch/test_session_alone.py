"""Sessions of one process, in this one: what they take, keep and refuse."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

import tradewind.torch as tw
from tests.cases import and_slow
from tradewind.base.errors import InvalidValue
from tradewind.torch.sessions.notice import GRACE_S, Notice

torch.set_num_threads(1)


def data(size: int = 20) -> DataLoader[Any]:
    generator = torch.Generator().manual_seed(4)
    features = torch.randn(size, 6, generator=generator)
    return DataLoader(TensorDataset(features, features.sum(1)), batch_size=4, shuffle=True)


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))


def train(
    folder: Path, steps: int, optimizer: Any, scheduler: Any = None, **more: Any
) -> dict[str, Any]:
    model = net()
    made = optimizer(model)
    planned = scheduler(made) if scheduler else None
    with tw.session(
        model=model, optimizer=made, scheduler=planned, data=data(), folder=folder, **more
    ) as session:
        for features, wanted in session.batches(max_steps=steps):

            def loss(features: Any = features, wanted: Any = wanted) -> torch.Tensor:
                made.zero_grad()
                value = (model(features).squeeze(1) - wanted).square().mean()
                value.backward()
                return value

            value = made.step(loss)
            if isinstance(planned, lr_scheduler.ReduceLROnPlateau):
                planned.step(value.item())
            elif planned:
                planned.step()
            session.step(loss=value)
    state: dict[str, Any] = model.state_dict()
    return state


OPTIMIZERS = {
    "sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.005, momentum=0.9),
    "plain sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.05),
    "amsgrad": lambda m: torch.optim.Adam(m.parameters(), amsgrad=True),
    "groups": lambda m: torch.optim.AdamW(
        [{"params": m[0].parameters(), "lr": 0.1}, {"params": m[2].parameters()}], lr=0.01
    ),
    "tensor lr": lambda m: torch.optim.Adam(m.parameters(), lr=torch.tensor(0.01)),
    "lbfgs": lambda m: torch.optim.LBFGS(m.parameters(), lr=0.1, max_iter=3),
    "adafactor": lambda m: torch.optim.Adafactor(m.parameters(), lr=0.05),
}
OFTEN = ("sgd", "groups", "lbfgs")
SCHEDULERS = {
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.01, total_steps=30),
    "milestones": lambda o: lr_scheduler.MultiStepLR(o, [3, 3, 9]),
    "plateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=2),
    "one after another": lambda o: lr_scheduler.SequentialLR(
        o,
        [lr_scheduler.LinearLR(o, total_iters=5), lr_scheduler.CosineAnnealingLR(o, 20)],
        milestones=[5],
    ),
}


@pytest.mark.parametrize("optimizer", and_slow(OFTEN, OPTIMIZERS))
def test_optimizers_go_on(optimizer: str, tmp_path: Path) -> None:
    made = OPTIMIZERS[optimizer]
    whole = train(tmp_path / "whole", 17, made)
    train(tmp_path / "parts", 8, made)
    parts = train(tmp_path / "parts", 17, made)
    assert all(torch.equal(whole[name], parts[name]) for name in whole), (whole, parts)


@pytest.mark.parametrize("scheduler", and_slow(["plateau"], SCHEDULERS))
def test_schedulers_go_on(scheduler: str, tmp_path: Path) -> None:
    chosen = OPTIMIZERS["sgd"], SCHEDULERS[scheduler]
    whole = train(tmp_path / "whole", 17, *chosen)
    train(tmp_path / "parts", 8, *chosen)
    parts = train(tmp_path / "parts", 17, *chosen)
    assert all(torch.equal(whole[name], parts[name]) for name in whole), (whole, parts)


@pytest.mark.slow
def test_epochs_with_something_between_them(tmp_path: Path) -> None:
    """A training that ended in the middle of the second epoch, or right at its end."""
    for stop in (7, 10):
        seen: list[Any] = []
        for _ in range(2):
            model = net()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            session = tw.session(
                model=model, optimizer=optimizer, data=data(), folder=tmp_path / str(stop)
            )
            for epoch in session.epochs(3):
                for _batch in session.batches():
                    session.step()
                    seen.append(session.step_number)
                    assert session.epoch == epoch
                    if session.step_number == stop and not session.resumed:
                        break
                else:
                    seen.append(f"epoch {epoch}")
                    continue
                break
            session.finish()
        first = seen[: seen.index(stop) + 1]
        assert first.count("epoch 0") == 1
        after = seen[seen.index(stop) + 1 :]
        assert after == [*range(stop + 1, 11), "epoch 1", *range(11, 16), "epoch 2"]


def test_loops_without_data_and_several_of_everything(tmp_path: Path) -> None:
    """Two models that play against each other, and what the script counts itself."""

    class Tally:
        def __init__(self) -> None:
            self.won, self.table = 0, torch.zeros(3)

        def state_dict(self) -> dict[str, Any]:
            return {"won": self.won, "table": self.table}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.won, self.table = state["won"], state["table"]

    def play(folder: Path, steps: int) -> tuple[list[float], Tally, bool]:
        models = {"one": net(), "other": net()}
        optimizers = [torch.optim.Adam(model.parameters()) for model in models.values()]
        tally = Tally()
        with tw.session(
            model=models, optimizer=optimizers, extra={"tally": tally}, folder=folder
        ) as session:
            while session.step_number < steps:
                for model, optimizer in zip(models.values(), optimizers, strict=True):
                    model(torch.randn(4, 6)).square().mean().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                tally.won += 1
                tally.table[tally.won % 3] += torch.rand(())
                session.step()
        flat = [p.sum().item() for model in models.values() for p in model.parameters()]
        return flat, tally, session.resumed

    torch.manual_seed(2)
    whole, counted, resumed = play(tmp_path / "whole", 9)
    assert not resumed
    torch.manual_seed(2)
    play(tmp_path / "parts", 4)
    torch.manual_seed(11)
    parts, again, resumed = play(tmp_path / "parts", 9)
    assert resumed
    assert parts == whole
    assert again.won == counted.won == 9
    assert torch.equal(again.table, counted.table)


def test_metrics_are_read_later(tmp_path: Path) -> None:
    train(tmp_path, 6, OPTIMIZERS["sgd"])
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert all(isinstance(line["loss"], float) for line in lines)


def test_a_run_is_told_what_was_measured_and_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a file that only grows: steps that are made again are told again."""
    sent = tmp_path / "sent.jsonl"
    sent.write_text('{"step": 1, "lo')  # of one that was killed
    monkeypatch.setenv("TRADEWIND_METRICS", str(sent))
    train(tmp_path / "kept", 4, OPTIMIZERS["sgd"], every_steps=2)
    train(tmp_path / "kept", 6, OPTIMIZERS["sgd"], every_steps=2)
    torn, *rest = sent.read_text().splitlines()
    assert torn == '{"step": 1, "lo'
    lines = [json.loads(line) for line in rest]
    assert [line["step"] for line in lines if "step" in line] == [1, 2, 3, 4, 5, 6]
    assert all(line["at_s"] > 1e9 for line in lines)
    saved = [line for line in lines if "checkpoint" in line]
    assert {4, 6} <= {line["checkpoint"] for line in saved}
    assert all(line["bytes"] > 100 and line["took_s"] > 0 for line in saved)


def test_what_has_changed_is_an_error_where_that_is_wanted(tmp_path: Path) -> None:
    train(tmp_path, 3, OPTIMIZERS["sgd"], config={"rate": 1, "deep": {"er": 2}})
    with pytest.raises(InvalidValue, match=r"step 3: deep\.er was 2 and is 3") as caught:
        train(tmp_path, 5, OPTIMIZERS["sgd"], config={"rate": 1, "deep": {"er": 3}}, strict=True)
    assert "leave strict out" in str(caught.value)
    train(tmp_path, 5, OPTIMIZERS["sgd"], config={"rate": 1, "deep": {"er": 3}})


def test_another_model_or_optimizer_is_refused(tmp_path: Path) -> None:
    train(tmp_path, 3, OPTIMIZERS["sgd"])
    with pytest.raises(InvalidValue, match="other parameters, or other groups"):
        train(tmp_path, 5, OPTIMIZERS["groups"])
    with pytest.raises(InvalidValue, match="has no extra"):
        train(tmp_path, 5, OPTIMIZERS["sgd"], extra={"extra": net()})


def test_state_that_is_no_plain_data_is_refused_at_once(tmp_path: Path) -> None:
    class Odd:
        def state_dict(self) -> dict[str, Any]:
            return {"self": self}

        def load_state_dict(self, state: dict[str, Any]) -> None: ...

    with pytest.raises(InvalidValue, match="holds more than numbers"):
        train(tmp_path, 3, OPTIMIZERS["sgd"], extra={"odd": Odd()})
    with pytest.raises(InvalidValue, match="which has no state_dict"):
        train(tmp_path, 3, OPTIMIZERS["sgd"], extra={"odd": object()})


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    train(tmp_path, 2, OPTIMIZERS["sgd"])
    assert signal.getsignal(signal.SIGTERM) is before
    assert signal.set_wakeup_fd(-1) == -1


def test_many_processes_have_to_know_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InvalidValue, match="one of 2 processes"):
        train(tmp_path, 2, OPTIMIZERS["sgd"])


def test_children_that_are_ended_do_not_end_the_training(tmp_path: Path) -> None:
    """They share the pipe that signals are heard through, and inherit handlers, until they exec."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    others = [Notice(None, say=lambda what: None) for _ in range(8)]  # which nobody has closed
    for each in others:
        each.install()
    with tw.session(model=model, optimizer=optimizer, folder=tmp_path) as session:
        heard, up = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(up, b"x")
            time.sleep(60)
            os._exit(1)
        os.read(heard, 1)  # Python forgets what a child is sent before it has begun
        os.kill(child, signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
        session._notice.look()
        assert not session._notice.asked
    for each in reversed(others):
        each.remove()


def test_how_long_there_is_to_save_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def left_s(words: str | None) -> float:
        file = tmp_path / "save"
        file.unlink(missing_ok=True)
        notice = Notice(file, say=lambda what: None)
        notice.look()
        assert not notice.asked
        file.write_text(words or "")
        notice.look()
        return notice.left_s()

    assert left_s('{"within_s": 115}') == pytest.approx(115, abs=5)
    for nothing in ("", "soon", "[1]", '{"within_s": -3}', '{"within_s": "x"}'):
        assert left_s(nothing) == pytest.approx(GRACE_S, abs=5)
    # torchrun was asked as well, and kills its workers after half a minute.
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert left_s('{"within_s": 115}') == pytest.approx(GRACE_S, abs=5)
    assert left_s('{"within_s": 10}') == pytest.approx(10, abs=5)


class _Left(BaseException):
    pass


@pytest.mark.parametrize(
    ("looked_after", "told", "after_s", "leaves"),
    [
        (False, False, (0.0, 0.5), False),  # torchrun, and whoever asked torchrun
        (False, False, (0.0, 3.0), True),
        (False, True, (3.0,), False),  # it was another rank's machine that was told first
        (False, True, (3.0, 6.0), True),
        (True, True, (3.0, 6.0), False),  # its supervisor kills when time is up
    ],
)
def test_who_is_asked_to_end_again(
    looked_after: bool,
    told: bool,
    after_s: Sequence[float],
    leaves: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    left: list[int] = []

    def leave(code: int) -> None:
        left.append(code)
        raise _Left

    monkeypatch.setattr("tradewind.torch.sessions.notice.clock.monotonic", lambda: now[0])
    monkeypatch.setattr("tradewind.torch.sessions.notice.os._exit", leave)
    notice = Notice(tmp_path / "save" if looked_after else None, say=lambda what: None)
    if told:
        notice.told(20)
    for each in after_s:
        now[0] = 100.0 + each
        with suppress(_Left):
            notice._handler(signal.SIGTERM, None)
    assert notice.asked
    assert left == [143] * leaves


def test_as_many_are_kept_as_the_workload_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "cadence.json"
    told.write_text('{"every_s": 1000, "keep": 3}')
    monkeypatch.setenv("TRADEWIND_CADENCE", str(told))

    def kept(name: str, **more: Any) -> int:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        folder = tmp_path / name
        with tw.session(
            model=model, optimizer=optimizer, data=data(), folder=folder, every_steps=1, **more
        ) as session:
            for features, target in session.batches(max_steps=6):
                ((model(features)[:, 0] - target) ** 2).mean().backward()
                optimizer.step()
                optimizer.zero_grad()
                session.step()
                session._checkpoints.finish(60)
        return len(list((folder / "checkpoints").rglob("*.json")))

    assert kept("as the workload says") == 3
    assert kept("as the script says", keep=1) == 1


def test_gradients_in_memory_that_others_had_before_are_partial() -> None:
    """Clearing gradients gives their memory back, and the next ones often get it again."""
    from tradewind.torch.sessions.gradients import Gradients

    model = torch.nn.Sequential(torch.nn.Linear(50, 50), torch.nn.Linear(50, 50))
    optimizer = torch.optim.AdamW(model.parameters())
    gradients = Gradients({p: name for name, p in model.named_parameters()}, {})
    for _ in range(20):
        model(torch.ones(8, 50)).sum().backward()
        assert len(gradients.partial()) == 4
        optimizer.step()
        gradients.used(optimizer)
        assert not gradients.any()
        optimizer.zero_grad()


def backward(model: Any) -> None:
    model(torch.ones(2, 3)).sum().backward()


def test_gradients_that_are_cleared_after_each_step_are_not_noted() -> None:
    """What is left over once, all the same, counts as partial, and is known from the next step."""
    from tradewind.torch.sessions.gradients import Gradients

    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gradients = Gradients({p: name for name, p in model.named_parameters()}, {})

    def step() -> None:
        backward(model)
        optimizer.step()
        gradients.used(optimizer)

    for _ in range(3):
        step()
        optimizer.zero_grad()
        gradients.look()
        assert not gradients.any()
    backward(model)
    assert len(gradients.partial()) == 2, "of a step that is not over"
    step()
    optimizer.zero_grad()
    gradients.look()
    step()
    gradients.look()
    assert not hasattr(model.weight.grad, "_tradewind_used")
    assert gradients.any()
    for _ in range(3):
        optimizer.zero_grad()
        step()
        gradients.look()
        assert not gradients.any()
    backward(model)
    assert len(gradients.partial()) == 2


def test_gradients_of_two_optimizers_of_which_one_leaves_them() -> None:
    from tradewind.torch.sessions.gradients import Gradients

    first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    clears, leaves = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (first, second))
    gradients = Gradients(dict.fromkeys(first.parameters(), "a"), {})
    gradients._names.update(dict.fromkeys(second.parameters(), "b"))
    for number in range(9):
        backward(first)
        clears.step()
        gradients.used(clears)
        clears.zero_grad()
        if number % 3 == 0:
            leaves.zero_grad()
            backward(second)
            leaves.step()
            gradients.used(leaves)
        gradients.look()
        assert not gradients.any()
    backward(second)
    assert gradients.any()


def adapted(folder: Path, steps: int, *, base: int = 0, **more: Any) -> dict[str, Any]:
    """A frozen layer, under one that is trained."""
    torch.manual_seed(base)
    below = torch.nn.Linear(6, 64).requires_grad_(False)
    torch.manual_seed(1)
    model = torch.nn.Sequential(below, torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(p for p in model.parameters() if p.requires_grad)
    with tw.session(
        model=model, optimizer=optimizer, data=data(), folder=folder, **more
    ) as session:
        for features, wanted in session.batches(max_steps=steps):
            loss = (model(features).squeeze(1) - wanted).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            session.step(loss=loss)
    state: dict[str, Any] = model.state_dict()
    return state


@pytest.mark.slow
@pytest.mark.parametrize("then", [True, False])
def test_what_is_frozen_may_be_left_out(tmp_path: Path, then: bool) -> None:
    expected = adapted(tmp_path / "whole", 9)
    adapted(tmp_path / "parts", 4, frozen=False)
    saved = sum(f.stat().st_size for f in (tmp_path / "parts").rglob("*") if f.is_file())
    adapted(tmp_path / "all", 4)
    assert saved < sum(f.stat().st_size for f in (tmp_path / "all").rglob("*") if f.is_file())
    state = adapted(tmp_path / "parts", 9, frozen=then)
    assert all(torch.equal(state[name], expected[name]) for name in expected)


def test_another_base_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    adapted(tmp_path, 4, frozen=False)
    adapted(tmp_path, 6, base=5, frozen=False)
    assert "the frozen parameters' digest was" in capfd.readouterr().err


def test_metrics_are_as_durable_as_the_checkpoint(tmp_path: Path) -> None:
    """What was told until a checkpoint is on the disk before it exists, and goes with it to a
    machine that has no file of metrics."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    folder = tmp_path / "checkpoints"
    made = tw.session(
        model=model, optimizer=optimizer, data=data(), folder=folder, every_steps=4, keep=1
    )
    for features, wanted in made.batches(max_steps=50):
        optimizer.zero_grad()
        loss = (model(features).squeeze(1) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        made.step(loss=loss)
        if made.step_number in (5, 9):
            made._checkpoints.finish(30)  # durable; and nobody was told to write metrics since
            rows = [
                json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()
            ]
            told = [row["step"] for row in rows if "loss" in row]
            assert told[: made.step_number - 1] == list(range(1, made.step_number))
        if made.step_number == 9:
            break
    made.close()
    (folder / "metrics.jsonl").unlink()
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tw.session(model=model, optimizer=optimizer, data=data(), folder=folder) as session:
        assert session.resumed
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(line)["step"] for line in lines] == [5, 6, 7, 8]

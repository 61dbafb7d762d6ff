"""What others read of what we wrote: TensorBoard, Weights & Biases and MLflow themselves."""

from __future__ import annotations

import json
import struct
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import eventually
from tests.torch.telemetry.readers import scalars
from tradewind.base.errors import InvalidValue
from tradewind.torch.telemetry.events import Events
from tradewind.torch.telemetry.sinks import Row, Sinks, thinned
from tradewind.torch.telemetry.trackers import Mlflow, Wandb


def rows(first: int, last: int, loss: float) -> list[Row]:
    return [{"step": step, "loss": loss, "telemetry/data": 0.5} for step in range(first, last + 1)]


def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    events = Events(tmp_path)
    events.write(rows(1, 3, 2.5))
    events.write([{"step": 1 << 40, "loss": float("nan"), "huge": 1e300}])
    events.close()
    found = scalars(tmp_path)
    assert found[:3] == [(1, 2.5), (2, 2.5), (3, 2.5)]
    assert found[3][0] == 1 << 40
    assert found[3][1] != found[3][1]
    assert scalars(tmp_path, "telemetry/data") == [(1, 0.5), (2, 0.5), (3, 0.5)]
    assert scalars(tmp_path, "huge") == [(1 << 40, float("inf"))]


def test_tensorboard_sees_no_seam_and_nothing_twice(tmp_path: Path) -> None:
    """A training that was killed while it wrote, and goes on from an older checkpoint."""
    killed = Events(tmp_path)
    killed.write(rows(1, 30, 1.0))
    killed.close()
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-5])
    again = Events(tmp_path, first_step=21)
    again.write(rows(21, 40, 2.0))
    again.close()
    assert scalars(tmp_path) == [(step, 1.0 if step <= 20 else 2.0) for step in range(1, 41)]


def test_nothing_is_made_where_nothing_is_written(tmp_path: Path) -> None:
    Events(tmp_path / "events").close()
    assert not (tmp_path / "events").exists()


# -- Weights & Biases ------------------------------------------------------------------------------


@pytest.fixture
def wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("wandb")


def history(folder: Path) -> list[dict[str, Any]]:
    """The rows of all runs below it, in the order of their files."""
    proto: Any = import_module("wandb.proto.wandb_internal_pb2")
    found = []
    for path in sorted(folder.rglob("*.wandb")):
        for data in logged(path.read_bytes()):
            record = proto.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                found.append(
                    {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in items}
                )
    return found


def logged(data: bytes) -> Iterator[bytes]:
    """LevelDB's log format: blocks of 32 KiB, in them pieces of records; its own header first."""
    assert data[:4] == b":W&B"
    at, record = 7, b""
    while at + 7 <= len(data):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        length, kind = struct.unpack("<HB", data[at + 4 : at + 7])
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last piece
            yield record
            record = b""


def test_wandb_gets_rows_in_the_scripts_own_run(wandb: Any, tmp_path: Path) -> None:
    sink = Wandb()
    sink.seek()
    sink.write(rows(1, 2, 1.0))  # nobody has begun a run
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = wandb.init(project="p", dir=str(tmp_path))
        sink.seek()
        sink.write(rows(3, 5, 1.0))
        sink.write(rows(4, 7, 1.0))  # as after a rollback: what is there stays
        run.log({"own": 1})
        sink.write(rows(8, 8, 1.0))  # goes along with the script's next row
        run.log({"own": 2})
        sink.close()
        run.finish()
    # Its own process writes them out, a moment after the run's end.
    found = eventually(lambda: told if len(told := history(tmp_path)) >= 7 else [])
    assert [row["tradewind/step"] for row in found if "tradewind/step" in row] == [3, 4, 5, 6, 7, 8]
    assert all(row["tradewind/loss"] == 1.0 for row in found if "tradewind/step" in row)
    assert [(row["own"], row.get("tradewind/step")) for row in found if "own" in row] == [
        (1, None),
        (2, 8),
    ]


def test_wandb_begins_a_run_where_that_is_asked(wandb: Any, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sink = Wandb("run-1", str(tmp_path))
        assert wandb.run.id == "run-1"
        sink.write(rows(1, 3, 1.0))
        sink.close()
    assert wandb.run is None
    found = eventually(lambda: told if len(told := history(tmp_path)) >= 3 else [])
    assert [row["tradewind/step"] for row in found] == [1, 2, 3]


# -- MLflow ----------------------------------------------------------------------------------------


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pytest.importorskip("mlflow")
        found.set_tracking_uri(f"file://{tmp_path}/mlruns")
        yield found
        while found.active_run() is not None:
            found.end_run()


def test_mlflow_gets_rows_in_the_scripts_own_run(mlflow: Any) -> None:
    sink = Mlflow()
    sink.write(rows(1, 2, 1.0))
    run = mlflow.start_run()
    sink.seek()
    sink.write(rows(3, 5, 1.0))
    # Another life of the training, in the same run.
    again = Mlflow()
    again.write(rows(4, 7, 1.0))
    again.close()
    told = mlflow.MlflowClient().get_metric_history(run.info.run_id, "tradewind/loss")
    assert [each.step for each in told] == [3, 4, 5, 6, 7]
    assert mlflow.active_run() is not None


def test_mlflow_goes_on_with_the_run_that_it_began(mlflow: Any) -> None:
    first = Mlflow("run-1")
    first.write(rows(1, 3, 1.0))
    first.close()
    again = Mlflow("run-1")
    again.write(rows(2, 4, 1.0))
    again.close()
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("tradewind")
    (run,) = client.search_runs([experiment.experiment_id])
    told = client.get_metric_history(run.info.run_id, "tradewind/step")
    assert [each.step for each in told] == [1, 2, 3, 4]
    assert run.info.status == "FINISHED"


# -- all of them -----------------------------------------------------------------------------------


class Broken:
    name = "broken"

    def __init__(self) -> None:
        self.tries = 0

    def seek(self) -> None:
        raise OSError("no")

    def write(self, rows: Any) -> None:
        self.tries += 1
        raise OSError("no route")

    def close(self) -> None:
        raise OSError("no")


def test_one_that_is_broken_is_said_and_let_go(tmp_path: Path) -> None:
    said: list[str] = []
    broken = Broken()
    sinks = Sinks([broken, Events(tmp_path)], said.append)
    for number in range(1, 6):
        sinks.seek(1e9 * number)
        sinks.put(rows(number, number, 1.0))
        sinks.flush()
    sinks.close()
    assert broken.tries == 3
    assert said == ["metrics do not reach broken: no route", "metrics go to broken no more"]
    assert [step for step, _ in scalars(tmp_path)] == [1, 2, 3, 4, 5]


def test_rows_are_thinned_and_telemetry_stays() -> None:
    many: list[Row] = [{"step": step, "loss": 1.0} for step in range(1, 1001)]
    many[500]["telemetry/data"] = 0.5
    assert [row["step"] for row in thinned(many)] == [250, 500, 501, 750, 1000]
    assert thinned(many[:3]) == many[:3]


def test_who_is_not_known_is_refused(tmp_path: Path) -> None:
    import torch

    import tradewind.torch as tw

    model = torch.nn.Linear(2, 2)
    with pytest.raises(InvalidValue, match="telemetry='excel'"):
        tw.session(
            model=model,
            optimizer=torch.optim.SGD(model.parameters(), 0.1),
            folder=tmp_path,
            telemetry="excel",
        )

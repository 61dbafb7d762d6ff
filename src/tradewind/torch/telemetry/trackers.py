"""Rows into a run that the script has started at Weights & Biases or MLflow, or that it asked us to
start. Under `tradewind/`, with a step of their own, so that they do not get in the way of what the
script logs itself.

A training that goes on makes some steps again, to the bit: what the run has of them already stays,
and only what is new is added. How far it has come is asked of the run, not of this machine.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tradewind.base.errors import MissingExtra
from tradewind.torch.telemetry.sinks import Row, now_ms

_PREFIX = "tradewind/"
_STEP = "tradewind/step"
_MOST_A_BATCH = 900  # MLflow takes a thousand metrics at once


class Wandb:
    name = "Weights & Biases"

    def __init__(self, ask: str = "", folder: str = "") -> None:
        """`ask` is the id of a run to start or to go on with; "" waits for the script's own."""
        self._run: Any = None
        self._last = -1.0
        self._left_at = -1
        self._own = bool(ask)
        if ask:
            wandb = _imported("wandb", "wandb")
            self._own = wandb.run is None
            if self._own:
                wandb.init(project="tradewind", id=ask, resume="allow", dir=folder)
            self.seek()

    def seek(self) -> None:
        run = getattr(sys.modules.get("wandb"), "run", None)
        if run is None or run is self._run:
            return
        run.define_metric(_STEP, hidden=True)
        run.define_metric(f"{_PREFIX}*", step_metric=_STEP)
        found = run.summary.get(_STEP)
        self._last = float(found) if isinstance(found, int | float) else -1.0
        self._left_at, self._run = run.step, run

    def write(self, rows: Sequence[Row]) -> None:
        run = self._run
        if run is None:
            return
        for row in rows:
            if row["step"] <= self._last:
                continue
            self._last = row["step"]
            # Where the script logs too, ours goes along with its next row: a row of our own would
            # count up the steps that it gives.
            alone = run.step == self._left_at
            run.log({f"{_PREFIX}{name}": value for name, value in row.items()}, commit=alone)
            self._left_at = run.step

    def close(self) -> None:
        if self._own and self._run is not None:
            self._run.finish()


class Mlflow:
    name = "MLflow"

    def __init__(self, ask: str = "") -> None:
        self._client: Any = None
        self._run_id = ""
        self._last = -1.0
        self._asked = ask
        if ask:
            mlflow = _imported("mlflow", "mlflow-skinny")
            if mlflow.active_run() is None:
                self._begin(mlflow, _of_name(mlflow, ask))
        self.seek()

    def seek(self) -> None:
        """What runs is known to the thread that started it alone."""
        mlflow = sys.modules.get("mlflow")
        run = mlflow.active_run() if mlflow is not None and hasattr(mlflow, "active_run") else None
        if run is not None and run.info.run_id != self._run_id:
            self._begin(mlflow, run.info.run_id)

    def _begin(self, mlflow: Any, run_id: str) -> None:
        client = mlflow.MlflowClient()
        self._last = client.get_run(run_id).data.metrics.get(_STEP, -1.0)
        self._client, self._run_id = client, run_id

    def write(self, rows: Sequence[Row]) -> None:
        if self._client is None:
            return
        from mlflow.entities import Metric

        at_ms, metrics = now_ms(), []
        for row in rows:
            if row["step"] <= self._last:
                continue
            self._last = row["step"]
            metrics += [
                Metric(f"{_PREFIX}{name}", float(value), at_ms, int(row["step"]))
                for name, value in row.items()
            ]
        for first in range(0, len(metrics), _MOST_A_BATCH):
            self._client.log_batch(self._run_id, metrics=metrics[first : first + _MOST_A_BATCH])

    def close(self) -> None:
        if self._asked and self._client is not None and self._own_run():
            self._client.set_terminated(self._run_id)

    def _own_run(self) -> bool:
        active = sys.modules["mlflow"].active_run()
        return active is None or active.info.run_id != self._run_id


def _of_name(mlflow: Any, name: str) -> str:
    """The run of an earlier life, or a new one."""
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("tradewind")
    number = experiment.experiment_id if experiment else client.create_experiment("tradewind")
    found = client.search_runs([number], f"tags.`tradewind.run` = '{name}'", max_results=1)
    if found:
        client.update_run(found[0].info.run_id, status="RUNNING")
        return str(found[0].info.run_id)
    tags = {"tradewind.run": name, "mlflow.runName": name}
    return str(client.create_run(number, tags=tags).info.run_id)


def _imported(module: str, package: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(
            f"metrics cannot go to {module}: it is not installed", hint=f"pip install {package}"
        ) from None

"""What a session's option `telemetry` asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.telemetry.files import FOLDER
from tradewind.torch.surroundings import Surroundings
from tradewind.torch.telemetry.events import Events
from tradewind.torch.telemetry.sinks import Sink, Sinks
from tradewind.torch.telemetry.telemetry import Telemetry
from tradewind.torch.telemetry.trackers import Mlflow, Wandb

_NAMES = ("tensorboard", "wandb", "mlflow")


def begun(
    asked: bool | str | Sequence[str],
    around: Surroundings,
    folder: Path,
    parts: Any,
    teller: Any,
    data: Any,
    warn: Callable[[str], None],
) -> Telemetry | None:
    """None: it is not wanted. Where `asked` is True, metrics go to whoever the script itself has
    begun a run with, and into event files for TensorBoard."""
    if asked is False:
        return None
    names = () if asked is True else (asked,) if isinstance(asked, str) else tuple(asked)
    for name in names:
        if name not in _NAMES:
            raise InvalidValue(
                f"telemetry={name!r} is not a tracker of metrics",
                hint=f"one of {', '.join(_NAMES)}, or True or False",
            )
    sinks: list[Sink] = []
    if around.rank == 0:
        run = around.run_id or _name(folder)
        sinks = [
            Events(folder / "tensorboard", teller.step + 1 if teller.step else 0),
            Wandb(run if "wandb" in names else "", str(folder)),
            Mlflow(run if "mlflow" in names else ""),
        ]
    made = Telemetry(
        around,
        around.telemetry or folder / FOLDER,
        modules=list(parts.modules.values()),
        device=parts.device,
        workers=getattr(data, "num_workers", None),
        sinks=Sinks(sinks, warn),
        teller=teller,
    )
    teller.more, teller.pass_on = made.row, made.sinks.put
    return made


def _name(folder: Path) -> str:
    """Of a training that is no run: the same whenever it goes on in this folder."""
    path = str(folder.absolute())
    return f"{folder.absolute().parent.name}-{hashlib.sha256(path.encode()).hexdigest()[:10]}"

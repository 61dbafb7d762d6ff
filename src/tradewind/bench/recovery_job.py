"""The job of `tradewind bench recovery`, copied to where it runs: `python job.py FOLDER`.

A training loop as people write it: torch, a small model, a checkpoint every few steps, from which
it goes on. Each step that it has made is a line in FOLDER/steps, `PID STEP EPOCH`. It is the same
under torchrun and under Tradewind; only where it was told of a store it marks its checkpoints as
complete there, tells its progress, and goes on from the checkpoint that it was told.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

STEP_S = 0.05
SAVE_EVERY = 5
_MOST_STEPS = 100_000


def main(folder: Path) -> None:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    done = 0
    newest = _newest(folder)
    if newest is not None:
        saved = torch.load(newest, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        done = saved["step"]
    with (folder / "steps").open("a", buffering=1) as told:
        for step in range(done + 1, _MOST_STEPS):
            optimizer.zero_grad()
            model(torch.randn(32, 64)).square().mean().backward()
            optimizer.step()
            time.sleep(STEP_S)  # noqa: TID251 -- a script of its own
            told.write(f"{os.getpid()} {step} {time.time()}\n")  # noqa: TID251
            if step % SAVE_EVERY == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                _save(torch, {**state, "step": step}, folder, step)


def _newest(folder: Path) -> Path | None:
    if os.environ.get("TRADEWIND_STORE"):
        key = os.environ["TRADEWIND_RESUME"]
        return folder / f"{int(Path(key).stem)}.pt" if key else None
    return max(folder.glob("*.pt"), key=lambda path: int(path.stem), default=None)


def _save(torch: Any, state: dict[str, Any], folder: Path, step: int) -> None:
    beside = folder / f"{step}.part"
    torch.save(state, beside)
    beside.rename(folder / f"{step}.pt")
    if os.environ.get("TRADEWIND_STORE"):
        from tradewind import store
        from tradewind.model import places

        run, leg = os.environ["TRADEWIND_RUN"], int(os.environ["TRADEWIND_LEG"])
        store.open(os.environ["TRADEWIND_STORE"]).create(places.checkpoint(run, leg, step), b"{}")
        progress = Path(os.environ["TRADEWIND_PROGRESS"])
        progress.with_suffix(".new").write_text(f'{{"step": {step}, "saved": {step}}}')
        progress.with_suffix(".new").rename(progress)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""What a Hugging Face Trainer keeps besides model, optimizer and scheduler."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

_STATE = (
    "epoch",
    "global_step",
    "max_steps",
    "num_input_tokens_seen",
    "total_flos",
    "log_history",
    "best_metric",
    "best_global_step",
    "best_model_checkpoint",
)
_COUNTERS = ("_total_loss_scalar", "_globalstep_last_logged", "_initial_global_step")
_APART = ("output_dir", "logging_dir", "run_name", "resume_from_checkpoint", "local_rank", "report")
"""Of the arguments, what says nothing about the training: where things lie, how it is called."""


class Kept:
    """The Trainer's counters, its log, its callbacks' memories. They come back in two parts: where
    it is before the loop begins, and what its loop would begin with at zero when it has."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._saved: dict[str, Any] | None = None
        self.best_known = False

    def state_dict(self) -> dict[str, Any]:
        trainer = self._trainer
        state = asdict(trainer.state)
        return {
            "state": {name: state[name] for name in _STATE},
            "callbacks": [[name, cb.state()["attributes"]] for name, cb in self.callbacks()],
            "counters": {name: getattr(trainer, name, 0) for name in _COUNTERS},
            "loss": getattr(trainer, "_tr_loss", None),
            "flos": trainer.current_flos,
            "stopped": bool(trainer.control.should_training_stop),
            "best": self.best_known,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._saved = state
        self.best_known = state["best"]

    def callbacks(self) -> list[tuple[str, Any]]:
        from transformers.trainer_callback import ExportableState

        found = self._trainer.callback_handler.callbacks
        return [(type(cb).__name__, cb) for cb in found if isinstance(cb, ExportableState)]

    def put_back(self) -> bool:
        """Where the training is, before the loop. Whether it was over."""
        assert self._saved is not None
        state, now = dict(self._saved["state"]), self._trainer.state
        then = state.pop("max_steps")
        best = state["best_model_checkpoint"]
        if best is not None and not Path(best).is_dir() and not self.best_known:
            state["best_model_checkpoint"] = None  # it was on another machine's disk
        for name, value in state.items():
            setattr(now, name, value)
        waiting = list(self._saved["callbacks"])
        for name, callback in self.callbacks():
            found = next((each for each in waiting if each[0] == name), None)
            if found is not None:
                waiting.remove(found)
                for attribute, value in found[1].items():
                    setattr(callback, attribute, value)
        self._trainer.current_flos = self._saved["flos"]
        stopped = self._saved["stopped"] and now.global_step < then  # early, and not for good
        return bool(stopped or now.global_step >= now.max_steps)

    def begun(self) -> None:
        """The loop has set its counters: puts back what they were."""
        if self._saved is None:
            return
        trainer, saved, self._saved = self._trainer, self._saved, None
        for name, value in saved["counters"].items():
            setattr(trainer, name, value)
        if saved["loss"] is not None:
            trainer._tr_loss.copy_(saved["loss"])


@cache
def _best_kind() -> Any:
    from torch import nn

    class Kind(nn.Module):  # type: ignore[misc,unused-ignore]
        """The weights that did best so far, on the processor: the file that the Trainer keeps them
        in is on this machine's disk, and may be gone before the end."""

        def __init__(self, model: Any, kept: Kept) -> None:
            super().__init__()
            self._kept = kept
            self.weights = nn.ParameterList(
                nn.Parameter(value.detach().cpu().clone(), requires_grad=False)
                for value in _weights(model)
            )

        @property
        def known(self) -> bool:
            return self._kept.best_known

        def take(self, model: Any) -> None:
            for mine, value in zip(self.weights, _weights(model), strict=True):
                mine.data.copy_(value.detach())
            self._kept.best_known = True

        def give(self, model: Any) -> None:
            for mine, value in zip(self.weights, _weights(model), strict=True):
                value.data.copy_(mine)

    return Kind


def Best(model: Any, kept: Kept) -> Any:  # noqa: N802 -- a class, made when PyTorch is there
    return _best_kind()(model, kept)


def _weights(model: Any) -> list[Any]:
    from tradewind.torch.sessions.state import bare

    return list(bare(model).state_dict(keep_vars=True).values())


@cache
def watching() -> Any:
    """The callback's class: its base is the library's."""
    from transformers import TrainerCallback

    class Watching(TrainerCallback):  # type: ignore[misc,unused-ignore]
        def __init__(self, trainer: Any) -> None:
            self._going = trainer._tradewind

        def on_train_begin(self, *_: Any, **__: Any) -> None:
            self._going.kept.begun()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            loss, self._going.loss = self._going.loss, None
            self._going.training.stepped({} if loss is None else {"loss": loss})

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            numbers = (int, float)
            told = {k: v for k, v in (logs or {}).items() if isinstance(v, numbers) and k != "loss"}
            if self._going.training is not None:
                self._going.training.tell(told)

    return Watching


def config(args: Any) -> dict[str, Any]:
    """The arguments that a training should be continued with."""
    return {
        name: value
        for name, value in args.to_sanitized_dict().items()
        if not any(name.startswith(each) for each in _APART)
    }

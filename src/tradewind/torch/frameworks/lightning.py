"""Lightning: `Trainer(callbacks=[tw.LightningCallback()])`, and `trainer.fit` goes on by itself.

The callback is told before the loop begins, when model and optimizers are there but no batch was
asked for. Then it takes the loader's place, reads the newest checkpoint, and hands Lightning the
rest of it (loops, callbacks, precision, data module) as one of Lightning's own would be.

For pytorch_lightning and lightning.pytorch, whichever the script has imported.
"""

from __future__ import annotations

import signal
import sys
from functools import cache
from pathlib import Path
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.frameworks.driven import Driven, Fed, checked, of_users
from tradewind.torch.frameworks.needs import needed, refuse, sharded_otherwise

_STRATEGIES = ("SingleDeviceStrategy", "DDPStrategy")
_HINT = (
    "Lightning keeps what state_dict or on_save_checkpoint of the module, its callbacks and its"
    " data module give it; buffers of the module are kept anyway"
)
_OURS = ("state_dict", "optimizer_states", "lr_schedulers")
"""Of a checkpoint of Lightning's, what is ours to keep."""
_DROPPED = ("hparams_name", "hyper_parameters", "hparams_type", "datamodule_")


def LightningCallback(**options: Any) -> Any:  # noqa: N802 -- a class, of the library that is there
    """The callback. Options are those of `tw.session`: folder (`tradewind` in the trainer's
    default_root_dir), seed, every_s, every_steps and the like (`driven.OPTIONS`)."""
    names = ("lightning.pytorch", "pytorch_lightning")
    known = [name for name in names if name in sys.modules]
    library = needed(*(known or names), pip="lightning")
    return _kind(library)(checked(options, "LightningCallback"))


class _Loader(Fed):
    """Lightning warns of loaders that cannot go on."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class _Kept:
    """What Lightning puts into a checkpoint of its own, without weights and optimizers."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self.saved: dict[str, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        made = self._trainer._checkpoint_connector.dump_checkpoint(weights_only=False)
        kept = {
            name: value
            for name, value in made.items()
            if name not in _OURS and not name.startswith(_DROPPED)
        }
        return {"checkpoint": kept, "stopped": bool(self._trainer.should_stop)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.saved = state

    def put_back(self) -> None:
        """As Lightning does with a file."""
        assert self.saved is not None
        trainer, state = self._trainer, self.saved
        connector = trainer._checkpoint_connector
        connector._loaded_checkpoint = {**state["checkpoint"], "state_dict": {}}
        trainer.lightning_module.on_load_checkpoint(connector._loaded_checkpoint)
        connector.restore_datamodule()
        connector.restore_callbacks()
        connector.restore_precision_plugin_state()
        connector.restore_loops()
        connector._loaded_checkpoint = {}
        trainer.should_stop = state["stopped"]


def _check(trainer: Any) -> None:
    strategy = type(trainer.strategy).__name__
    hint = f"it is one of {', '.join(_STRATEGIES)}"
    refuse(None if strategy in _STRATEGIES else f"Lightning's {strategy}", hint)
    refuse(sharded_otherwise([trainer.strategy.model]), hint)
    reload = trainer.reload_dataloaders_every_n_epochs
    refuse("reload_dataloaders_every_n_epochs" if reload else None, "leave it out")
    averaging = next((c for c in trainer.callbacks if hasattr(c, "_average_model")), None)
    refuse(type(averaging).__name__ if averaging else None, "average in the module itself")


def _loader(trainer: Any) -> _Loader:
    """In the place of what the script gave; distributed samplers are not needed."""
    source = trainer.fit_loop._data_source
    loader = source.dataloader()
    fed = _Loader(loader)
    hint = "give fit one torch.utils.data.DataLoader of a map-style dataset"
    if not hasattr(loader, "dataset"):
        raise InvalidValue(f"training data that is a {type(loader).__name__}", hint=hint)
    try:
        len(fed)
    except TypeError:
        # Lightning reads one batch ahead of such, and the place of that one would be saved.
        refuse("data without a length", hint)
    source.instance = fed
    return fed


class _Resuming:
    """The callback, but for Lightning's own base, which is known once its library is."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._training: Driven | None = None
        self._step = 0

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        if self._training is not None:
            raise InvalidValue(
                "this callback has seen a training already",
                hint="give each Trainer a LightningCallback of its own, with another folder",
            )
        _check(trainer)
        given = trainer._checkpoint_connector._ckpt_path
        kept = _Kept(trainer)
        options = dict(self._options)
        options.setdefault("folder", Path(trainer.default_root_dir) / "tradewind")
        schedulers = [each.scheduler for each in trainer.lr_scheduler_configs]
        extra = options.pop("extra", None) or {}
        fed = _loader(trainer)
        self._training = training = Driven(
            fed,
            theirs=kept,
            model=trainer.strategy.model,
            optimizer=_one(trainer.optimizers),
            scheduler=_one(schedulers),
            extra=extra,
            config=dict(pl_module.hparams),
            **options,
        )
        held = [trainer, pl_module, self]
        training.watches(held, fed.loader, _HINT, lambda: of_users(trainer.callbacks))
        training.kept = lambda: _keeping(trainer, pl_module)
        self._step = trainer.global_step
        if training.resumed:
            if given:
                training.say(f"ckpt_path={str(given)!r} is not used: there is a newer one here")
            kept.put_back()
            self._step = trainer.global_step
        elif given:
            training.say(f"begins with ckpt_path={str(given)!r}; then has its own checkpoints")

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        training, loop = self._training, trainer.fit_loop.epoch_loop
        assert training is not None
        # Lightning's handler would end the loop before it is saved.
        before = trainer._signal_connector._original_handlers.get(signal.SIGTERM)
        if before is not None:
            signal.signal(signal.SIGTERM, before)
        if not training.resumed:
            epoch = trainer.fit_loop.epoch_progress.current.processed
            self._step = trainer.global_step
            training.goes_on_at(epoch, loop.batch_progress.current.completed, self._step)
        elif loop.restarting and loop._should_check_val_fx(trainer.fit_loop._data_fetcher):
            # It makes a round without a batch first, in which it counts one.
            loop._batches_that_stepped -= not loop._should_accumulate()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        assert self._training is not None
        if trainer.global_step == self._step:
            return
        self._step = trainer.global_step
        self._training.stepped(_values(trainer, outputs))

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self._training is not None and not trainer.sanity_checking:
            self._training.tell(_numbers(trainer.callback_metrics))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        assert self._training is not None
        self._training.finish()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self._training is not None:
            self._training.close()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == "fit" and self._training is not None:
            self._training.close()


def _keeping(trainer: Any, pl_module: Any) -> list[Any]:
    """Objects that say themselves what of them is kept."""
    base: Any = next(k for k in type(pl_module).__mro__ if k.__name__ == "LightningModule")
    found = [each for each in trainer.callbacks if type(each).__name__ != "LightningCallback"]
    kept = [each for each in found if each.state_dict()]
    if type(pl_module).on_save_checkpoint is not base.on_save_checkpoint:
        kept.append(pl_module)
    return kept


@cache
def _kind(library: Any) -> Any:
    return type("LightningCallback", (_Resuming, library.Callback), {})


def _values(trainer: Any, outputs: Any) -> dict[str, Any]:
    """Of a step: its loss, and as often as the trainer logs, all that it would log."""
    loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
    values = {} if loss is None else {"loss": loss}
    if trainer.log_every_n_steps and trainer.global_step % trainer.log_every_n_steps == 0:
        values = {**_numbers(trainer.callback_metrics), **values}
    return values


def _one(several: list[Any]) -> Any:
    return several[0] if len(several) == 1 else several


def _numbers(metrics: Any) -> dict[str, Any]:
    """As they are now: Lightning writes into them."""
    return {
        name: value.detach().clone() if hasattr(value, "detach") else value
        for name, value in metrics.items()
    }

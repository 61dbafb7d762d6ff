"""Hugging Face's Trainer: `trainer = tw.hf(trainer)`, and `trainer.train()` goes on by itself.

A callback would not do: it is told of steps, but neither gives out batches nor says where the
Trainer begins. So the trainer's class is exchanged for a subclass of itself that overrides the few
methods where it makes its loader, its place in the training, and its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.frameworks.driven import Driven, Fed, checked, of_users
from tradewind.torch.frameworks.huggingface_state import Best, Kept, config, watching
from tradewind.torch.frameworks.needs import needed, refuse, sharded_otherwise
from tradewind.torch.frameworks.prepared import on_device, plain
from tradewind.torch.surroundings import surroundings

_OURS = "a checkpoint of tradewind's"
_HINT = (
    "the Trainer keeps what callbacks that are ExportableState give it; or count by"
    " trainer.state.global_step"
)
_LACKS = "this version of transformers has no {}, which is needed to resume"


def hf(trainer: Any, **options: Any) -> Any:
    """Makes a Trainer resumable, and gives it back. Options are those of `tw.session`: folder
    (`tradewind` in the output folder), seed, every_s and the like: `driven.OPTIONS`."""
    transformers = needed("transformers", pip="'transformers[torch]'")
    if not isinstance(trainer, transformers.Trainer):
        raise InvalidValue(
            f"hf takes a transformers.Trainer, and this is a {type(trainer).__name__}",
            hint="trainer = tw.hf(trainer), after Trainer(…)",
        )
    if hasattr(trainer, "_tradewind"):
        return trainer
    for name in ("_init_training_state", "_prepare_for_training", "_run_epoch"):
        if not hasattr(transformers.Trainer, name):
            raise InvalidValue(_LACKS.format(name), hint="pip install 'transformers>=5'")
    _check(trainer)
    trainer._tradewind = _Going(trainer, checked(options, "hf"))
    kind: Any = type(trainer)
    trainer.__class__ = _resumable(kind)
    trainer.add_callback(watching()(trainer))
    return trainer


def _check(trainer: Any) -> None:
    args = trainer.args
    another = "train without it, or without tw.hf"
    refuse("DeepSpeed" if trainer.is_deepspeed_enabled else None, another)
    plugin = getattr(trainer.accelerator.state, "fsdp_plugin", None)
    if trainer.is_fsdp_enabled and getattr(plugin, "fsdp_version", 1) != 2:
        refuse("FSDP of version 1", "set fsdp_config={'fsdp_version': 2, …}")
    refuse("auto_find_batch_size" if args.auto_find_batch_size else None, another)
    refuse(
        "train_sampling_strategy='batch_rebalance'"
        if args.train_sampling_strategy == "batch_rebalance"
        else None,
        another,
    )
    parallel = trainer.get_tp_size() * trainer.get_cp_size() * trainer.get_sp_size()
    refuse("tensor, context or sequence parallelism" if parallel > 1 else None, another)


class _Going:
    """What one trainer's `train` goes through."""

    def __init__(self, trainer: Any, options: dict[str, Any]) -> None:
        self.trainer, self.options = trainer, options
        self.fed: Fed | None = None
        self.training: Driven | None = None
        self.ready: Any = None
        """Model and loader, prepared before the Trainer asks for that."""
        self.best: Any = None
        self.kept = Kept(trainer)
        self.theirs: Any = None
        self.loss: Any = None

    def asked(self, given: Any, trial: Any) -> Any:
        """Of `train`'s resume_from_checkpoint, what the Trainer is to see."""
        if trial is not None:
            refuse("a search for hyperparameters", "use tw.hf for the training itself")
        if self.training is not None:
            raise InvalidValue(
                "this trainer has trained already, and is done",
                hint="make another Trainer, with another folder: tw.hf(trainer, folder=…)",
            )
        self.theirs = given or None
        if given is True:
            from transformers.trainer_utils import get_last_checkpoint

            folder = self.trainer.args.output_dir
            return get_last_checkpoint(folder) if Path(folder).is_dir() else None
        return given if given and Path(given).is_dir() else None

    def loader(self, prepared: Any) -> Fed:
        around = surroundings()
        self.fed = Fed(plain(prepared, around.world, around.rank), on_device(prepared))
        return self.fed

    def begin(self, first: tuple[int, int], epochs: int, found: Any) -> tuple[int, int]:
        """The trainer is ready: goes on, if there is something to go on from. Gives how many epochs
        are over, and how many batches of the next."""
        trainer, args, model = self.trainer, self.trainer.args, self.ready[0]
        assert self.fed is not None
        refuse(sharded_otherwise([model]), "use DistributedDataParallel or FSDP of version 2")
        if args.load_best_model_at_end and not trainer.is_fsdp_enabled:
            self.best = Best(model, self.kept)
        options = dict(self.options)
        options.setdefault("folder", Path(args.output_dir) / "tradewind")
        options.setdefault("seed", args.seed if args.data_seed is None else args.data_seed)
        extra = options.pop("extra", None) or {}
        if self.best is not None:
            extra = {**extra, "best": self.best}
        callbacks, own = trainer.callback_handler.callbacks, partial(_own, trainer)
        self.training = training = Driven(
            self.fed,
            theirs=self.kept,
            model=model,
            optimizer=getattr(trainer.optimizer, "optimizer", trainer.optimizer),
            scheduler=trainer.lr_scheduler,
            scaler=trainer.accelerator.scaler,
            extra=extra,
            config=config(args),
            **options,
        )
        training.watches(
            [trainer, self],
            self.fed.loader,
            _HINT,
            lambda: {**of_users(callbacks), "trainer": own()},
        )
        training.kept = lambda: [each for _, each in self.kept.callbacks()]
        self._word(training, found)
        if not training.resumed:
            training.goes_on_at(*first, trainer.state.global_step)
            return first
        over = self.kept.put_back()
        training.past_whole_epoch()
        if over:
            return epochs, 0
        return training.position.epoch, training.position.batches

    def _word(self, training: Driven, found: Any) -> None:
        if self.theirs is None:
            return
        said = f"resume_from_checkpoint={self.theirs!r}"
        if training.resumed:
            training.say(f"{said} is not used: there is {_OURS}")
        elif found is not None:
            training.say(f"begins with {found}, as {said} says; from then on {_OURS} is used")
        elif self.theirs is True:
            training.say(f"{said}: there is none yet, it begins at the beginning")
        else:
            training.close()
            raise InvalidValue(
                f"{said} is no folder, and there is no checkpoint of tradewind's either",
                hint="leave it out: trainer.train() resumes by itself",
            )


@cache
def _theirs(kind: Any) -> set[str]:
    """Names that the Trainer's own methods speak of."""
    functions = [each for each in vars(kind).values() if hasattr(each, "__code__")]
    return {name for each in functions for name in each.__code__.co_names}


def _own(trainer: Any) -> dict[str, Any]:
    """Attributes that only a subclass of the script's knows."""
    from transformers import Trainer

    known = _theirs(Trainer)
    return {name: value for name, value in vars(trainer).items() if name not in known}


@cache
def _resumable(kind: Any) -> Any:
    """`kind`, a Trainer or what somebody made of it, resumable."""

    class Resumable(kind):  # type: ignore[misc,unused-ignore]
        def train(
            self, resume_from_checkpoint: Any = None, trial: Any = None, *rest: Any, **more: Any
        ) -> Any:
            found = self._tradewind.asked(resume_from_checkpoint, trial)
            return super().train(found, trial, *rest, **more)

        def get_train_dataloader(self) -> Any:
            theirs = super().get_train_dataloader()
            return self._tradewind.loader(theirs) if self.is_in_train else theirs

        def _evaluate(self, *given: Any, skip_scheduler: bool = False, **more: Any) -> Any:
            if skip_scheduler and self._tradewind.training.resumed:
                return None  # eval_on_start: it has started long ago
            return super()._evaluate(*given, skip_scheduler=skip_scheduler, **more)

        def _init_training_state(
            self, max_steps: int, per_epoch: int, epochs: int, found: Any, trial: Any
        ) -> tuple[int, int]:
            """Also prepares model and optimizer: where it goes on is known after they have been
            read, and from that alone."""
            going = self._tradewind
            first = super()._init_training_state(max_steps, per_epoch, epochs, found, trial)
            going.ready = super()._prepare_for_training(max_steps, going.fed, found)
            place: tuple[int, int] = going.begin(first, epochs, found)
            return place

        def _prepare_for_training(self, *given: Any, **more: Any) -> Any:
            made, self._tradewind.ready = self._tradewind.ready, None
            return made if made is not None else super()._prepare_for_training(*given, **more)

        def _run_epoch(self, **given: Any) -> Any:
            training = self._tradewind.training
            if training.resumed:
                given["resume_from_checkpoint"] = _OURS
            with _skipping_nothing():
                return super()._run_epoch(**given)

        def _load_rng_state(self, checkpoint: Any) -> None:
            if checkpoint != _OURS:  # else the loader does, right before the first batch
                super()._load_rng_state(checkpoint)

        def training_step(self, *given: Any, **more: Any) -> Any:
            loss = super().training_step(*given, **more)
            going = self._tradewind
            going.loss = loss.detach() if going.loss is None else going.loss + loss.detach()
            return loss

        def _determine_best_metric(self, metrics: Any, trial: Any) -> Any:
            found = super()._determine_best_metric(metrics, trial)
            going = self._tradewind
            if found and going.best is not None and going.training is not None:
                going.training.unchanged()
                going.best.take(self.model)
            return found

        def _load_best_model(self) -> None:
            best = self._tradewind.best
            if best is not None and best.known:
                best.give(self.model)
            else:
                super()._load_best_model()

        def _finalize_training(self, *given: Any, **more: Any) -> Any:
            """Before the best weights take the place of the last."""
            training = self._tradewind.training
            training.save_last()
            done = super()._finalize_training(*given, **more)
            training.finish()
            return done

    Resumable.__name__, Resumable.__qualname__ = kind.__name__, kind.__qualname__
    Resumable.__module__ = kind.__module__
    return Resumable


@contextmanager
def _skipping_nothing() -> Iterator[None]:
    """The Trainer skips batches that were done by making them; our loader is there already."""
    from transformers import trainer as theirs

    skip = theirs.skip_first_batches
    theirs.skip_first_batches = lambda loader, number=0: (
        loader if isinstance(loader, Fed) else skip(loader, number)
    )
    try:
        yield
    finally:
        theirs.skip_first_batches = skip

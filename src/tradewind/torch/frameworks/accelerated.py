"""Accelerate: one line after `accelerator.prepare`, and the loop stays as it is.

    loader = tw.accelerate(accelerator, model, optimizer, loader, scheduler=scheduler)

What comes back is iterated in the loader's place. It sees losses where they go backward and steps
where the optimizer makes them. A loop over epochs that begins at 0 again gets nothing for those
that are over; `for epoch in loader.epochs(3)` does not even see them, and has its end saved.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.frameworks.driven import Driven, Fed, checked
from tradewind.torch.frameworks.needs import needed, refuse, sharded_otherwise
from tradewind.torch.frameworks.prepared import on_device, plain
from tradewind.torch.sessions.again import Again
from tradewind.torch.sessions.telling import held
from tradewind.torch.surroundings import surroundings

_HINT = (
    "loader.step_number and loader.epoch count, and accelerator.register_for_checkpointing(…) keeps"
    " objects"
)
_KINDS = ("NO", "MULTI_CPU", "MULTI_GPU", "FSDP")


def accelerate(
    accelerator: Any,
    model: Any,
    optimizer: Any,
    loader: Any,
    *,
    scheduler: Any = None,
    extra: Mapping[str, Any] | None = None,
    config: Any = None,
    **options: Any,
) -> Accelerated:
    """Makes a training by Accelerate resumable: give what `accelerator.prepare` gave, and iterate
    what comes back in the loader's place. `model`, `optimizer` and `scheduler` may be lists. What
    is registered for checkpointing is kept too. Other options are those of `tw.session`: folder
    (`checkpoints`), seed, every_s, every_steps and the like (`driven.OPTIONS`)."""
    needed("accelerate", pip="accelerate")
    _check(accelerator, model, loader)
    return Accelerated(
        accelerator,
        loader,
        model=model,
        optimizer=_bare(optimizer),
        scheduler=scheduler,
        scaler=accelerator.scaler,
        **checked(
            {**options, "extra": {**(extra or {}), **_registered(accelerator)}}, "accelerate"
        ),
        config=config,
    )


def _check(accelerator: Any, model: Any, loader: Any) -> None:
    kind = accelerator.distributed_type.name
    hint = "train without it, or without tw.accelerate"
    refuse(None if kind in _KINDS else f"Accelerate's {kind}", hint)
    plugin = getattr(accelerator.state, "fsdp_plugin", None)
    old = kind == "FSDP" and getattr(plugin, "fsdp_version", 1) != 2
    refuse("FSDP of version 1" if old else None, "FullyShardedDataParallelPlugin(fsdp_version=2)")
    mesh = getattr(accelerator, "parallelism_config", None)
    other = mesh is not None and (mesh.tp_enabled or mesh.cp_enabled or mesh.sp_enabled)
    refuse("tensor, context or sequence parallelism" if other else None, hint)
    models = model if isinstance(model, (list, tuple)) else [model]
    refuse(sharded_otherwise(models), "FullyShardedDataParallelPlugin(fsdp_version=2)")
    if not hasattr(loader, "dataset"):
        raise InvalidValue(
            f"the loader is a {type(loader).__name__}",
            hint="tw.accelerate(accelerator, model, optimizer, loader, scheduler=scheduler)",
        )


def _bare(optimizer: Any) -> Any:
    if isinstance(optimizer, (list, tuple)):
        return [_bare(each) for each in optimizer]
    return getattr(optimizer, "optimizer", optimizer)


def _registered(accelerator: Any) -> dict[str, Any]:
    return {f"registered.{n}": each for n, each in enumerate(accelerator._custom_objects)}


class _Kept:
    """Accelerate's own counter of backward passes."""

    def __init__(self, accelerator: Any) -> None:
        self._accelerator = accelerator

    def state_dict(self) -> dict[str, Any]:
        return {"step": self._accelerator.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._accelerator.step = state["step"]


class Accelerated(Fed):
    """The training's loader, and the training."""

    def __init__(self, accelerator: Any, loader: Any, **parts: Any) -> None:
        around = surroundings()
        super().__init__(plain(loader, around.world, around.rank), on_device(loader))
        self._gradients = accelerator.gradient_state
        self.end_of_dataloader, self.remainder = False, -1  # which Accelerate asks for
        self._losses: list[Any] = []
        self._made = self._inside = False
        self._told: dict[str, Any] = {}
        """In the loop's body, of the step that it makes."""
        kept = _Kept(accelerator)
        self._training = Driven(self, theirs=kept, elastic=True, **parts)
        self._over = self._training.position.epoch
        """Epochs that are over, which a loop that begins at 0 is given nothing for."""
        self._again = Again(self._training._parts, "loader.epochs(N)") if self._over else None
        for optimizer in self._training._parts.optimizers.values():
            optimizer.register_step_post_hook(self._optimizer_stepped)
        held = [self, accelerator, loader, *parts.values()]
        self._training.watches(held, self.loader, _HINT)
        self._hook(accelerator)
        atexit.register(self._reminder)

    def _hook(self, accelerator: Any) -> None:
        backward, log, end = accelerator.backward, accelerator.log, accelerator.end_training

        def sees_loss(loss: Any, *more: Any, **also: Any) -> Any:
            self._losses.append(loss.detach())
            return backward(loss, *more, **also)

        def sees_values(values: dict[str, Any], *more: Any, **also: Any) -> Any:
            self.tell(**values)
            return log(values, *more, **also)

        def sees_end(*more: Any, **also: Any) -> Any:
            self.finish()
            return end(*more, **also)

        accelerator.backward, accelerator.log = sees_loss, sees_values
        accelerator.end_training = sees_end

    def _optimizer_stepped(self, *_: Any) -> None:
        self._made = True

    # -- for the script ----------------------------------------------------------------------------

    @property
    def step_number(self) -> int:
        """Optimizer steps that were made, by all legs together."""
        return self._training.step_number + self._made

    @property
    def resumed(self) -> bool:
        return self._training.resumed

    @property
    def epoch(self) -> int:
        return self._training.position.epoch

    def epochs(self, number: int) -> Iterator[int]:
        """The numbers of the epochs that are left of so many. At the end the state is saved."""
        first, self._over = self._over, 0
        yield from range(first, number)
        self.finish()

    def tell(self, **values: Any) -> None:
        """Metrics of this step: numbers, or tensors of one."""
        if self._inside:
            self._told |= held(values)
        else:
            self._training.tell(values)

    def save(self) -> None:
        """Saves after this step. On every rank."""
        self._training.save()

    def finish(self) -> None:
        """Saves the last state and lets go of everything."""
        self._count()
        told, self._told = self._told, {}
        self._training.tell(told)
        self._training.finish()

    # -- for Accelerate ----------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        if self._over > 0:
            if self._over == self._training.position.epoch and self._again is not None:
                self._training.say(self._again.words(self._over))
            self._over -= 1
            return
        if self._again is not None:
            self._again.put_back()
            self._again = None
        self.end_of_dataloader = False
        self._gradients._add_dataloader(self)
        try:
            self._count()
            for batch in super().__iter__():
                self.end_of_dataloader = self._training.last_of_epoch()
                self._inside = True
                yield batch
                self._count()
        finally:
            self._gradients._remove_dataloader(self)

    def _count(self) -> None:
        """What the loop's body has done: a step, where the optimizer made one."""
        self._inside = False
        if not self._made:
            return
        import torch

        losses, self._losses, self._made = self._losses, [], False
        loss = torch.stack([each.float().mean() for each in losses]).mean() if losses else None
        told, self._told = self._told, {}
        self._training.stepped(told if loss is None else {"loss": loss, **told})

    def _reminder(self) -> None:
        """The loop's end is not told to anybody. Nothing is asked of other ranks here: this one may
        have crashed."""
        training = self._training
        if not training._closed and training._saver.step < self.step_number:
            training.say(
                f"ends without its last steps saved: {training._saver.step} of"
                f" {self.step_number}; call loader.finish() or accelerator.end_training()"
            )

"""A training loop that can be interrupted at any time and goes on to the bit.

See `session` for what it takes. The order of things matters twice:

- A checkpoint is taken when the loop asks for its next batch, so everything that the loop's body
  does belongs to the step, wherever `session.step()` stands in it. A loop without data has no such
  moment: there it is taken in `step` itself.
- Random numbers are put back after the loader was made, because making one draws some.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec import structs

from tradewind import clock
from tradewind.errors import InvalidValue
from tradewind.torch.feeds.sources import feed_of
from tradewind.torch.sessions import fingerprint, restoring
from tradewind.torch.sessions.agree import Agreement, Wish, own_gloo
from tradewind.torch.sessions.notice import EXIT_CODE, GRACE_S, Notice
from tradewind.torch.sessions.saving import Saver
from tradewind.torch.sessions.state import Parts
from tradewind.torch.sessions.telling import Background, Teller, held
from tradewind.torch.surroundings import Cadence, surroundings

_SPARE_S = 2.0
"""Of the time that a notice leaves, for what comes after the save."""
_LAST_S, _CRASH_S = 1800.0, 5.0
_UNSTEPPED = 1000
_PATIENCE = 64
"""Steps that a save by time waits for gradients to be used up: without them it is smaller."""
_FOLDER = "checkpoints"
_KEEP = 2
_WARM = 2  # steps after which optimizers have their state


class Session:
    """A training that goes on from its newest checkpoint, if there is one.

    `model`, `optimizer`, `scheduler`, `scaler` and `ema` may each be one object, a list or a table
    of them. `extra` names more objects that have state_dict and load_state_dict. `data` is an
    ordinary DataLoader. Checkpoints go to the run's store under `tradewind run`, else to `folder`
    (`checkpoints`). `seed` orders and augments the data; by default it is PyTorch's.

    Saves come as often as the run says, or `every_s` seconds or `every_steps` steps; without all
    that, every ten minutes. After a notice there are `grace_s` seconds. What has changed since the
    checkpoint, of the code, `config` or the data, is said; with `strict` it is an error."""

    def __init__(
        self,
        *,
        model: Any,
        optimizer: Any,
        scheduler: Any = None,
        data: Any = None,
        scaler: Any = None,
        ema: Any = None,
        powersgd: Any = None,
        extra: Mapping[str, Any] | None = None,
        config: Any = None,
        folder: str | Path | None = None,
        seed: int | None = None,
        every_s: float | None = None,
        every_steps: int | None = None,
        keep: int | None = None,
        grace_s: float = GRACE_S,
        strict: bool = False,
    ) -> None:
        from tradewind.torch.checkpoint import Checkpoints, Place, own_group

        self._around = around = surroundings()
        more = dict(extra or {})
        if powersgd is not None:
            more["powersgd"] = powersgd
        self._parts = Parts(
            model=model,
            optimizer=optimizer,
            scheduler=scheduler,
            scaler=scaler,
            ema=ema,
            extra=more,
            rank=around.rank,
            world=around.world,
        )
        ranks = self._parts.ranks
        self._gloo = own_gloo()
        self._seed = self._agreed_seed(seed)
        sees = structs.replace(around, rank=ranks.data_rank, world=ranks.data_world)
        self._feed = feed_of(data, self._seed, sees)
        self._folder = Path(folder) if folder is not None else Path(_FOLDER)
        self._every_steps = every_steps
        self._cadence = Cadence(around.cadence, every_s if every_steps is None else 1e12)
        place = Place.of_run(self._folder) or Place(self._folder)
        self._checkpoints = Checkpoints(
            place,
            rank=around.rank,
            world=around.world,
            group=own_group(),
            keep=keep or self._cadence.keep or _KEEP,
            device=self._parts.device,
            share=(ranks.share, ranks.sharers),
            warn=self._warn,
        )
        self._agreement = Agreement(self._gloo)
        first = around.rank == 0
        self._teller = Teller(
            around.progress if first else None, self._folder / "metrics.jsonl" if first else None
        )
        self.step_number = 0
        """Steps that were made, by all legs together."""
        self.resumed = False
        """Whether it goes on from a checkpoint."""
        self._back: restoring.Back | None = None
        self._save_by_time = self._save_by_count = self._stopping = False
        self._postponed = self._unstepped = self._since = 0
        self._iterating = self._closed = False
        facts = self._feed.facts() if self._feed is not None else {}
        made_with = fingerprint.fingerprint(config, facts)
        self._saver = Saver(
            self._checkpoints, self._parts, self._feed, around, made_with, self._warn
        )
        self._restore(made_with, strict=strict)
        self._this_epoch = self.epoch
        self._last_epoch: int | None = None
        self._saver.check()
        self._looked_s = clock.monotonic()
        self._watch(grace_s)
        if self.resumed:
            self._saver.prepare()

    # -- beginning ---------------------------------------------------------------------------------

    def _agreed_seed(self, seed: int | None) -> int:
        """Rank 0's: many scripts give each rank another."""
        import torch

        given = torch.initial_seed() if seed is None else seed
        word = torch.tensor([given & ((1 << 63) - 1)], dtype=torch.int64)
        if self._gloo is not None:
            torch.distributed.broadcast(word, src=0, group=self._gloo)
        return int(word.item())

    def _restore(self, made_with: dict[str, Any], *, strict: bool) -> None:
        back = restoring.restore(self._checkpoints, self._parts)
        if back is None:
            return
        shared = back.shared
        self.step_number = self._saver.step = back.step
        self._seed = int(shared["seed"])
        self.resumed = True
        said = list(back.said)
        if self._feed is not None:
            mine = back.mine["feed"] if back.mine is not None else None
            said += self._feed.restore(shared["feed"] or {}, mine)
        for words in said:
            self._warn_once(words)
        changed = fingerprint.differences(shared["made_with"], made_with)
        if changed and strict:
            raise InvalidValue(
                f"since the checkpoint of step {back.step}: {'; '.join(changed)}",
                hint="leave strict out to go on with what is here now",
            )
        for words in changed:
            self._warn_once(f"since the checkpoint of step {back.step}: {words}")
        self._back = back
        restoring.numbers(back, self._seed, self._around.rank)
        self._teller.resumed(back.step)
        ranks = "" if back.world == self._around.world else f", then of {back.world} ranks"
        self._say(f"goes on from step {back.step} ({back.key}{ranks})")

    def _watch(self, grace_s: float) -> None:
        for optimizer in self._parts.optimizers.values():
            optimizer.register_step_pre_hook(lambda *_: self._checkpoints.gate())
            optimizer.register_step_post_hook(
                lambda optimizer, *_: self._parts.gradients.used(optimizer)
            )
        self._notice = Notice(self._around.save, grace_s=grace_s, say=self._say)
        self._notice.install()
        self._background = Background(self._notice.look, self._cadence.read, self._teller.tell)
        atexit.register(self.close)

    # -- the loop ----------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The epoch of the newest batch."""
        return self._feed.epoch if self._feed is not None else 0

    @property
    def metrics(self) -> list[dict[str, float]]:
        """What `step` was told of the last thousand steps or so, as far as it is read yet."""
        return list(self._teller.rows)

    def batches(self, max_steps: int | None = None, *, epochs: int | None = None) -> Iterator[Any]:
        """Batches from where the training is: until so many steps are made or so many epochs are
        over, in all; without either, until the end of this epoch (see `epochs`). A training that
        is done gets none. At its end the last state is saved."""
        if self._feed is None:
            raise InvalidValue("the session has no data", hint="give it a loader: data=loader")
        feed = self._feed
        whole = max_steps is not None or epochs is not None
        last_epoch = self._last_epoch if not whole else None if epochs is None else epochs - 1
        self._iterating = True
        try:
            if max_steps is None or self.step_number < max_steps:
                feed.open(last_epoch)
                self._settle()
            while max_steps is None or self.step_number < max_steps:
                try:
                    batch = feed.next(None if whole else self._this_epoch)
                except StopIteration:
                    break
                self._unstepped += 1
                yield batch
                self._act()
        finally:
            self._iterating = False
            if whole:
                feed.close()
        self._this_epoch += 1
        if whole:
            self._save_last()

    def epochs(self, number: int) -> Iterator[int]:
        """The numbers of the epochs that are left of so many, for loops that do something between
        them: in each, `batches()` gives the rest of that epoch."""
        self._last_epoch = number - 1
        while (epoch := self._this_epoch) < number:
            yield epoch
            self._this_epoch = epoch + 1
        if self._feed is not None:
            self._feed.close()
        self._save_last()

    def step(self, **values: Any) -> None:
        """A step is made; on every rank, as often. Values are kept as metrics of rank 0: tensors
        stay where they are, and nothing waits for them."""
        self.step_number += 1
        self._unstepped = 0
        first = self._around.rank == 0
        self._teller.made(self.step_number, held(values) if first and values else {})
        self._since += 1
        if self.step_number == _WARM and not self.resumed:
            self._saver.prepare()
        if self._agreement.due():
            self._look()
        if self._every_steps and self.step_number % self._every_steps == 0:
            self._save_by_count = True
        if not self._iterating:
            self._act()

    def save(self) -> None:
        """Saves after this step, whatever the cadence says. On every rank."""
        self._save_by_count = True

    def _settle(self) -> None:
        """The random numbers of the checkpoint, once: whatever was drawn since is forgotten."""
        if self._back is not None:
            restoring.numbers(self._back, self._seed, self._around.rank)
            self._back = None

    def _look(self) -> None:
        now_s = clock.monotonic()
        step_s, self._looked_s, self._since = (now_s - self._looked_s) / self._since, now_s, 0
        notice = self._notice
        due = self._around.rank == 0 and self._cadence.due()
        wish = Wish(due, notice.asked, notice.left_s(), step_s)
        heard = self._agreement.look(wish)
        if heard is not None:
            self._save_by_time |= heard.save
            if heard.stop:
                notice.told(heard.left_s)
                self._stopping = True
        saved = self._checkpoints.poll()
        if saved is not None:
            self._teller.saved = max(self._teller.saved, saved.step)

    # -- saving ------------------------------------------------------------------------------------

    def _act(self) -> None:
        """What the ranks have agreed on, now that the step is over on this one."""
        if self._stopping:
            self._leave()
        if self._unstepped == _UNSTEPPED:
            self._warn(f"{_UNSTEPPED} batches without session.step(): nothing is saved or told")
        if not self._save_by_time and not self._save_by_count:
            return
        if self._parts.gradients.hidden() and self._postponed < _PATIENCE:
            self._postponed += 1
            return
        # By the same gradients, all ranks come to the same answer.
        if not self._save_by_count and self._postponed < _PATIENCE and self._parts.gradients.any():
            self._postponed += 1
            return
        self._save_by_time = self._save_by_count = False
        self._postponed = 0
        if self._saver.save(self.step_number, self._seed):
            self._cadence.saved()
        else:
            self._cadence.refused()

    def _leave(self) -> None:
        """The machine goes: saves what can be saved in time, and ends the process."""
        left_s = self._notice.left_s() - _SPARE_S
        if self._saver.step < self.step_number and self._checkpoints.would_take_s() < left_s:
            self._saver.save(self.step_number, self._seed, wait=True, deadline_s=left_s)
        else:
            self._checkpoints.finish(max(left_s, 0.0))
        self._told_saved()
        saved = self._teller.saved
        self._say(f"ends after step {self.step_number}; step {saved} is saved")
        self._end()
        raise SystemExit(EXIT_CODE)

    def _save_last(self) -> None:
        """What was reached, before a loop's end is told to the script."""
        if self._saver.step < self.step_number:
            self._saver.save(self.step_number, self._seed, wait=True)
        else:
            self._checkpoints.finish(_LAST_S)
        self._told_saved()

    def _told_saved(self) -> None:
        saved = self._checkpoints.poll()
        if saved is not None:
            self._teller.saved = max(self._teller.saved, saved.step)
        self._teller.tell(now=True)

    # -- ending ------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Saves the last state and lets go of everything. At the end of `batches(max_steps)` and of
        `epochs` it is saved already."""
        if not self._closed:
            self._save_last()
            self._checkpoints.close()
            self.close()

    def close(self) -> None:
        """Lets go of everything; what is being saved has a moment to get done. A process that
        crashed must not wait for ranks that wait for it."""
        if self._closed:
            return
        self._checkpoints.finish(_CRASH_S)
        self._told_saved()
        self._end()
        self._notice.remove()

    def _end(self) -> None:
        self._closed = True
        self._background.close()
        self._agreement.close()
        if self._feed is not None:
            self._feed.close()
        atexit.unregister(self.close)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.close()

    # -- words -------------------------------------------------------------------------------------

    def _say(self, words: str) -> None:
        if self._around.rank == 0:
            _print(f"tradewind.torch: {words}\n")

    def _warn_once(self, words: str) -> None:
        """Of what all ranks know."""
        if self._around.rank == 0:
            self._warn(words)

    def _warn(self, words: str) -> None:
        """Of each rank: they may have different troubles."""
        rank = f" rank {self._around.rank}:" if self._around.rank else ""
        _print(f"tradewind.torch:{rank} warning: {words}\n")


def _print(words: str) -> None:
    """Past Python's own buffers: signal handlers have something to say too."""
    with suppress(OSError):
        os.write(2, words.encode())

"""A training that can be interrupted at any time and goes on to the bit, whoever runs its loop.

What it consists of is found and put back when it is made. After that, whoever runs the loop says
`made` when a step is over and `between` when nothing of it is left to be done: there a checkpoint
is taken, or the process ends because its machine goes. Random numbers are put back once more by
`settle`, after the loader was made, because making one draws some.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import structs

from tradewind.base import clock
from tradewind.base.errors import InvalidValue
from tradewind.torch.feeds.feed import Feed
from tradewind.torch.feeds.sources import feed_of
from tradewind.torch.feeds.workers import shield_all
from tradewind.torch.sessions import claims, fingerprint, restoring, trial, unheld
from tradewind.torch.sessions.agree import Agreement, Wish, own_gloo
from tradewind.torch.sessions.claims import Claim
from tradewind.torch.sessions.due import Due, patience
from tradewind.torch.sessions.lent import Lent
from tradewind.torch.sessions.notice import EXIT_CODE, GRACE_S, Notice
from tradewind.torch.sessions.pace import Pace
from tradewind.torch.sessions.saving import Saver
from tradewind.torch.sessions.state import Parts
from tradewind.torch.sessions.telling import Background, Teller
from tradewind.torch.sessions.words import Voice
from tradewind.torch.surroundings import Cadence, surroundings
from tradewind.torch.telemetry.beginning import begun
from tradewind.torch.telemetry.norms import Norms
from tradewind.torch.telemetry.tally import Tally

_SPARE_S = 2.0
"""Of the time that a notice leaves, for what comes after the save."""
_LAST_S, _CRASH_S, _END_S, _LAST_WORDS_S = 1800.0, 5.0, 2.0, 30.0
_FOLDER = "checkpoints"
_KEEP = 2
_WARM = 2  # steps after which optimizers have their state


class Training:
    """`Session` says what the options are."""

    _takes = False
    """Whether schedulers and the like that were not given are taken: frameworks have their own."""
    step_number = 0
    """Steps that were made, by all legs together."""
    resumed = False
    """Whether it goes on from a checkpoint."""
    _back: restoring.Back | None = None
    _unheld: unheld.Unheld
    _stopping = _closed = False
    _patience = 0
    _reached: tuple[int, int] | None = None
    _since = 0

    def __init__(
        self,
        *,
        model: Any,
        optimizer: Any = None,
        scheduler: Any = None,
        data: Any = None,
        scaler: Any = None,
        ema: Any = None,
        powersgd: Any = None,
        extra: Mapping[str, Any] | None = None,
        frozen: bool = True,
        config: Any = None,
        folder: str | Path | None = None,
        seed: int | None = None,
        every_s: float | None = None,
        every_steps: int | None = None,
        keep: int | None = None,
        grace_s: float = GRACE_S,
        upload_rate: float | None = None,
        strict: bool = False,
        telemetry: bool | str | Sequence[str] = True,
        grad_norm: bool = False,
    ) -> None:
        _check(every_s=every_s, every_steps=every_steps, keep=keep)
        _check(grace_s=grace_s, upload_rate=upload_rate)
        self._around = around = surroundings()
        self._voice = Voice(around.rank)
        self._strict = strict
        extra = {**(extra or {}), **({} if powersgd is None else {"powersgd": powersgd})}
        others = {"scheduler": scheduler, "scaler": scaler, "ema": ema, "extra": extra}
        if self._takes:
            others = unheld.taken(model, optimizer, others, self._voice.say)
        self._parts = Parts(
            model=model,
            optimizer=optimizer,
            **others,
            frozen=frozen,
            rank=around.rank,
            world=around.world,
        )
        gloo = own_gloo()
        self._seed = _agreed_seed(seed, gloo)
        self._feed = self._fed(data)
        self._choose_place(folder, every_s, every_steps)
        self._checkpoints, in_run = self._kept(keep, upload_rate)
        self._agreement = Agreement(gloo)
        self._teller = self._make_teller()
        self._due, self._pace = Due(), Pace()
        made_with = self._made_with(config)
        self._saver = Saver(
            self._checkpoints,
            self._parts,
            self._where,
            around,
            made_with,
            self._voice.warn,
            self._more,
        )
        self._claim_place(in_run)
        self._go_on(made_with, strict=strict)
        self._looked_s = clock.monotonic()
        self._measure(telemetry, grad_norm=grad_norm, data=data)
        self._watch(grace_s)
        if self.resumed:
            self._saver.prepare()
        self._after([model, optimizer, data, *others.values()])

    def _after(self, given: list[Any]) -> None:
        """It is made."""

    def _where(self) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """How far the data is: what all ranks know, and what this one does."""
        feed = self._feed
        return (feed.shared(), feed.mine()) if feed is not None else (None, {})

    def _more(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What else a checkpoint has: for all ranks, and for this one."""
        return {}, {}

    def _fed(self, data: Any) -> Feed | None:
        """By ranks of the data: those that split a model see the same."""
        ranks = self._parts.ranks
        sees = structs.replace(self._around, rank=ranks.data_rank, world=ranks.data_world)
        return feed_of(data, self._seed, sees)

    def _choose_place(
        self, folder: str | Path | None, every_s: float | None, every_steps: int | None
    ) -> None:
        """Where checkpoints go, and how often: on trial as the trial says, not the script."""
        self._folder = Path(folder) if folder is not None else Path(_FOLDER)
        asked, self._trial = trial.plan(), None
        if asked is not None:
            self._trial = trial.begun(asked, self._around.rank, self._folder, self._voice.say)
            inner = "tried" if self._trial is not None else str(self._folder).replace("/", "-")
            self._folder, every_s, every_steps = Path(asked.folder) / inner, None, None
        self._every_steps = every_steps
        self._cadence = Cadence(self._around.cadence, every_s if every_steps is None else 1e12)

    def _kept(self, keep: int | None, upload_rate: float | None) -> tuple[Any, bool]:
        """Where checkpoints are, and whether that is a run's store."""
        from tradewind.torch.checkpoint import Checkpoints, Place, own_group

        run, ranks = Place.of_run(self._folder), self._parts.ranks
        made = Checkpoints(
            run or Place(self._folder),
            rank=self._around.rank,
            world=self._around.world,
            group=own_group(),
            keep=keep or self._cadence.keep or _KEEP,
            device=self._parts.device,
            share=(ranks.share, ranks.sharers),
            upload_rate=upload_rate,
            warn=self._voice.warn,
        )
        return made, run is not None

    def _make_teller(self) -> Teller:
        """By rank 0 alone."""
        around = self._around
        if around.rank != 0:
            return Teller(None, None)
        teller = Teller(around.progress, self._folder / "metrics.jsonl", around.metrics)
        self._checkpoints.with_each(teller.durable)
        return teller

    def _made_with(self, config: Any) -> dict[str, Any]:
        facts = self._feed.facts() if self._feed is not None else {}
        return fingerprint.fingerprint(config, {**facts, **self._parts.facts()})

    def _claim_place(self, in_run: bool) -> None:
        self._claimed = None if in_run else self._folder
        self._check_first(in_run)
        # The legs of a run are kept apart by their supervisors.
        alone = self._around.rank == 0 and not in_run
        self._claim = Claim(self._folder) if alone else None

    def _check_first(self, in_run: bool) -> None:
        """A second training would take the first one's checkpoints for its own."""
        if not claims.trained(self._claimed):
            return
        if in_run and self._takes:
            raise InvalidValue(
                "this process had a session before, and a run keeps the checkpoints of one: the"
                " second would continue the first one's training, with its weights",
                hint="submit a run for each training, such as each fold or each trial",
            )
        self._voice.warn_once(claims.continued(self._folder))

    def _go_on(self, made_with: dict[str, Any], *, strict: bool) -> None:
        try:
            self._restore(made_with, strict=strict)
            self._saver.check()
        except BaseException:
            self._unclaim()
            raise

    def _unclaim(self) -> None:
        if self._claim is not None:
            self._claim.release()

    def _measure(self, asked: bool | str | Sequence[str], *, grad_norm: bool, data: Any) -> None:
        self._norms = Norms(self._parts.optimizers.values()) if grad_norm else None
        self._telemetry = begun(
            asked, self._around, self._folder, self._parts, self._teller, data, self._voice.warn
        )
        self.tally = self._telemetry.tally if self._telemetry is not None else Tally()

    def _restore(self, made_with: dict[str, Any], *, strict: bool) -> None:
        back = restoring.restore(self._checkpoints, self._parts)
        if back is None:
            self._teller.resumed(0)
            return
        shared = back.shared
        self.step_number = self._saver.step = back.step
        self._seed = int(shared["seed"])
        self.resumed = True
        said = list(back.said)
        if self._feed is not None:
            mine = back.mine["feed"] if back.mine is not None else None
            said += self._feed.restore(shared["feed"] or {}, mine)
        self._saver.epoch = self._saver.saved_epoch = restoring.epoch(shared, self._feed)
        for words in said:
            self._voice.warn_once(words)
        for words in back.told:
            self._voice.say(words)
        changed = fingerprint.differences(shared["made_with"], made_with)
        if changed and strict:
            raise InvalidValue(
                f"since the checkpoint of step {back.step}: {'; '.join(changed)}",
                hint="leave strict out to continue with the current ones",
            )
        for words in changed:
            self._voice.warn_once(f"since the checkpoint of step {back.step}: {words}")
        self._back = back
        restoring.numbers(back, self._seed, self._around.rank)
        beside = self._checkpoints.beside(back.name) if self._around.rank == 0 else b""
        self._teller.resumed(back.step, beside)
        ranks = "" if back.world == self._around.world else f", then of {back.world} ranks"
        self._voice.say(f"resuming from step {back.step} ({back.key}{ranks})")

    def _watch(self, grace_s: float) -> None:
        for optimizer in self._parts.optimizers.values():
            optimizer.register_step_pre_hook(self._gate)
            optimizer.register_step_post_hook(self._optimizer_stepped)
        self._notice = Notice(self._around.save, grace_s=grace_s, say=self._voice.say)
        self._notice.install()
        shield_all()
        self._lent = Lent(self._checkpoints, self._voice)
        self._background = Background(
            self._notice.look, self._cadence.read, self._teller.tell, self._lent.look
        )
        atexit.register(self.close)

    def _optimizer_stepped(self, optimizer: Any, *_: Any) -> None:
        self._parts.gradients.used(optimizer)
        if words := self._pace.optimizer_stepped():
            self._voice.warn_once(words)

    def _gate(self, *_: Any) -> None:
        if self._checkpoints.saving():
            from_s = clock.stopwatch()
            self._checkpoints.gate()
            self.tally.saved(from_s)
        else:
            self._checkpoints.gate()

    # -- what whoever runs the loop says -----------------------------------------------------------

    def settle(self) -> None:
        """The random numbers of the checkpoint, once: whatever was drawn since is forgotten."""
        if self._back is not None:
            restoring.numbers(self._back, self._seed, self._around.rank)
            self._back = None

    def made(self, values: dict[str, Any]) -> None:
        """A step is made; on every rank, as often."""
        self.step_number += 1
        self.tally.made(values.get("tokens"))
        if self._norms is not None and "grad_norm" not in values:
            values = {**values, **self._norms.newest()}
        self._teller.made(self.step_number, values)
        self._since += 1
        if self.step_number == _WARM and not self.resumed:
            self._saver.prepare()
        if self._agreement.due():
            self._look()
        if self._every_steps and self.step_number % self._every_steps == 0:
            self._due.by_count = True

    def save(self) -> None:
        """Saves after this step, whatever the cadence says. On every rank."""
        self._due.by_count = True

    def between(self) -> None:
        """What the ranks have agreed on, now that the step is over on this one."""
        if self._trial is None:
            self._between()
        else:
            self._tried(self._trial)

    def _between(self) -> None:
        self._parts.gradients.look()
        if self._stopping:
            if self._patience == 0 or not self._parts.gradients.any():
                self._leave()
            self._patience -= 1
            return
        if self._due.now(self._parts.gradients):
            from_s = clock.stopwatch()
            if self._saver.save(self.step_number, self._seed):
                self._cadence.saved()
            else:
                self._cadence.refused()
            self.tally.saved(from_s)

    def _tried(self, on_trial: trial.Trial) -> None:
        self._teller.tell(now=True)
        newest = self._teller.rows[-1] if self._teller.rows else {}
        told = newest if newest.get("step") == self.step_number else {}
        on_trial.made(self.step_number, self._parts, told, self._unheld)
        self._due.by_time |= on_trial.saves(self.step_number)
        self._between()
        if self._saver.step == self.step_number:
            self._checkpoints.finish(_LAST_S)
            on_trial.saved(self.step_number)
        elif self._due.by_time and (name := self._parts.gradients.waited_for()):
            on_trial.waits(name, self._voice.say)
        on_trial.ends(self.step_number)

    def _look(self) -> None:
        now_s = clock.monotonic()
        step_s, self._looked_s, self._since = (now_s - self._looked_s) / self._since, now_s, 0
        notice = self._notice
        due = self._around.rank == 0 and self._cadence.due()
        heard = self._agreement.look(Wish(due, notice.asked, notice.left_s(), step_s))
        if heard is not None:
            self._due.by_time |= heard.save
            if heard.stop and not self._stopping:
                notice.told(heard.left_s)
                self._stopping = True
                # Gradients that are used up before it ends need no rhythm to be gone on with. The
                # same on all ranks: what it follows from is.
                self._patience = patience(heard.left_s, heard.step_s)
        self._poll()
        self._lent.between()
        if self._telemetry is not None:
            self._telemetry.look(now_s)

    def _poll(self) -> None:
        saved = self._checkpoints.poll()
        if saved is not None:
            self._teller.keep(saved, self._around.world)

    # -- ending ------------------------------------------------------------------------------------

    def _leave(self) -> None:
        """The machine goes: saves what can be saved in time, and ends the process."""
        left_s = self._notice.left_s() - _SPARE_S
        need, can = self._all_of_us(
            self._saver.step < self.step_number, self._checkpoints.would_take_s() < left_s
        )
        if need and can:
            self._saver.save(self.step_number, self._seed, wait=True, deadline_s=left_s)
        else:
            self._checkpoints.finish(max(left_s, 0.0))
        self._told_saved()
        saved = self._teller.saved
        self._voice.say(f"ends after step {self.step_number}; step {saved} is saved")
        self._end(_SPARE_S / 2)
        raise SystemExit(EXIT_CODE)

    def save_last(self) -> None:
        """What was reached, before a loop's end is told to the script. All ranks save it or none:
        one of them may have skipped what another has begun."""
        reached = self.step_number, self._saver.epoch
        if self._reached != reached:
            self._checkpoints.finish(_LAST_S)
            self._poll()
            missing = self._teller.saved < self.step_number
            need, _ = self._all_of_us(missing or self._saver.saved_epoch < self._saver.epoch)
            if need:
                self._saver.save(self.step_number, self._seed, wait=True)
            self._reached = reached
        self._told_saved()

    def _all_of_us(self, need: bool, can: bool = True) -> tuple[bool, bool]:
        try:
            return self._agreement.at_once(need, can)
        except (RuntimeError, ValueError) as error:  # of gloo; or there are no groups any more
            self._voice.warn(f"another process is gone, so nothing more is saved: {error}")
            return False, False

    def _told_saved(self) -> None:
        self._poll()
        self._teller.tell(now=True)

    def finish(self) -> None:
        """Saves the last state and lets go of everything."""
        if not self._closed:
            self.save_last()
            self._checkpoints.close()
            self.close(_LAST_WORDS_S)

    def close(self, words_s: float = _CRASH_S) -> None:
        """Lets go of everything; what is being saved has a moment to get done. A process that
        crashed must not wait for ranks that wait for it."""
        if self._closed:
            return
        self._checkpoints.finish(_CRASH_S)
        self._checkpoints.leave(_CRASH_S)
        self._told_saved()
        self._end(words_s)
        self._notice.remove()

    def _end(self, words_s: float) -> None:
        """`words_s` is for those who keep metrics, and may be slow to take the last."""
        self._closed = True
        if self.step_number:
            claims.ended(self._claimed)
        if self._trial is not None:
            self._trial.begun = True
        if self._telemetry is not None:
            self._telemetry.close(words_s)
        self._background.close()
        self._agreement.close()
        self._checkpoints.let_go(_END_S)
        if self._feed is not None:
            self._feed.close()
        self._unclaim()
        atexit.unregister(self.close)

    def __enter__(self) -> Self:
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


def _check(**options: float | None) -> None:
    for name, value in options.items():
        if value is not None and not value > 0:
            raise InvalidValue(f"{name} is {value!r}, and must be more than nothing")
        if isinstance(value, float) and name in ("every_steps", "keep"):
            raise InvalidValue(f"{name} is {value!r}, and must be a whole number")


def _agreed_seed(seed: int | None, gloo: Any) -> int:
    """Rank 0's: many scripts give each rank another."""
    import torch

    given = torch.initial_seed() if seed is None else seed
    word = torch.tensor([given & ((1 << 63) - 1)], dtype=torch.int64)
    if gloo is not None:
        torch.distributed.broadcast(word, src=0, group=gloo)
    return int(word.item())

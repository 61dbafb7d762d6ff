"""How a loop takes its batches: how many for each step, and how many ahead of it. Pure.

A loop that fetches its next batch before the step of the last is over (prefetching) has been given
batches that no step was made with. They are not consumed: a checkpoint says where the data was
before them, and the loop that goes on is given them again.

How many there are follows from two steps: what was given by the first is one step's batches and
those ahead, what was given between the first and the second is one step's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

Mark = Any
"""Where the data was before a batch."""


class Pace:
    def __init__(self) -> None:
        self.given = 0
        """Batches, in all."""
        self.unstepped = 0
        """Batches since the last step."""
        self.per_step: int | None = None
        """Batches of a step, as far as is known."""
        self.ahead: int | None = None
        """Batches that are fetched before the step they are for has begun."""
        self._first: int | None = None
        self._marks: deque[Mark] = deque()
        self._since = 0
        self._rhythm: deque[int] = deque(maxlen=4)
        self._expected: int | None = None
        self._before = self._was_ahead = 0

    # -- batches and steps -------------------------------------------------------------------------

    def gave(self, mark: Callable[[], Mark]) -> None:
        """Before each batch."""
        if self.ahead != 0:
            self._marks.append(mark())
        self.given += 1
        self.unstepped += 1
        self._since += 1

    def took_back(self) -> None:
        """There was none."""
        self.given -= 1
        self.unstepped -= 1
        self._since -= 1
        if self.ahead != 0:
            self._marks.pop()

    def made(self) -> None:
        """A step."""
        given, self.unstepped = self.unstepped, 0
        if self.ahead is None:
            self._learn(given)
        if self.ahead is not None:
            while len(self._marks) > self.ahead:
                self._marks.popleft()

    def _learn(self, given: int) -> None:
        if self._first is None and self.per_step is None:
            self._first = given
            if given <= 1:
                self.per_step, self.ahead = max(given, 1), 0
            return
        if self._first is not None:  # the second step: what it was given is one step's
            self.per_step, given = max(given, 1), self._first
        assert self.per_step is not None
        self.ahead = max(given - self.per_step, 0)

    def plain(self) -> None:
        """Nothing is fetched ahead, for sure."""
        self.per_step, self.ahead = max(self.unstepped, 1), 0
        self._marks.clear()

    def known(self) -> bool:
        """Whether it can be said which batches are consumed."""
        return self.ahead is not None

    def mark(self) -> Mark | None:
        """Where the data is that no step was made with; None: nothing of it was given yet."""
        return self._marks[0] if self.ahead and self._marks else None

    def in_flight(self) -> int:
        """Steps whose batches are given already."""
        if not self.ahead or not self.per_step:
            return 0
        return (self.unstepped + self.ahead) // self.per_step

    # -- accumulated gradients ---------------------------------------------------------------------

    def optimizer_stepped(self) -> str | None:
        """What is to be said: the rhythm after a resume is another than before."""
        since, self._since = self._since, 0
        if not since:  # the second optimizer of this batch
            return None
        expected, self._expected = self._expected, None
        self._rhythm.append(since)
        since -= self._was_ahead if self.ahead is None else self.ahead
        if expected is None or since == expected:
            return None
        usual, all_of_it = expected + self._before, since + self._before
        return (
            f"the first optimizer step after the resume came after {all_of_it} batches, and"
            f" before it each came after {usual}: the script's own counter has started again, so"
            " gradients are accumulated differently; count with `for i, batch in"
            " session.enumerate(…)`, or by session.step_number"
        )

    def epoch_ended(self) -> None:
        """What is left of an epoch makes a shorter or a longer step."""
        self._expected = None
        self._rhythm.clear()

    # -- kept --------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        steady = len(set(self._rhythm)) == 1 and len(self._rhythm) == self._rhythm.maxlen
        usual = self._rhythm[-1] if steady else None
        since = self._since - (self.ahead or 0) if usual is not None else 0
        ahead = self.ahead or 0
        return {"per_step": self.per_step, "ahead": ahead, "usual": usual, "since": since}

    def restore(self, state: dict[str, Any]) -> None:
        """Of the loop before it; the same ranks go on."""
        self.per_step, self._was_ahead = state.get("per_step"), int(state.get("ahead") or 0)
        usual, since = state.get("usual"), int(state.get("since") or 0)
        if usual is not None and 0 <= since < usual:
            self._expected, self._before = usual - since, since

"""The job that is killed: counts steps, saves every few, and prints lines that can be checked.

    python job.py STEPS RECORDS

A second process, its child, does the counting; when either dies, the other ends. What is counted is
a chain: the value after a step follows from all steps before it, so a step that was left out or
done twice shows in every later checkpoint. On two machines both count, and the first saves.
Whatever was written to standard output is put down in a file of its own below RECORDS *after* the
write has returned: only then it may not get lost.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from binascii import crc32
from contextlib import suppress
from pathlib import Path

from tradewind import store as stores
from tradewind.base import clock
from tradewind.model import places

STEP_S = 0.1
SAVE_EVERY = 5


def chained(value: int, step: int) -> int:
    return crc32(b"%d %d" % (value, step))


def chain(steps: int) -> int:
    """The value after so many steps."""
    value = 0
    for step in range(1, steps + 1):
        value = chained(value, step)
    return value


def line(words: str, step: int) -> bytes:
    """One line of the log; every tenth is longer than a page of memory."""
    text = f"{words} step={step} {'x' * (step * 37 % 160 + (5000 if step % 10 == 0 else 0))}"
    return f"{text} {crc32(text.encode()):08x}\n".encode()


def is_line(data: bytes) -> bool:
    """Whether it is one of ours, and whole; without its end."""
    text, _, check = data.rpartition(b" ")
    return check == b"%08x" % crc32(text)


def _child(asked: int, answered: int) -> None:
    """Each time it is asked, the next value; until nobody asks."""
    while data := os.read(asked, 64):
        value, step = map(int, data.split())
        os.write(answered, b"%d" % chained(value, step))


def main(steps: int, records: Path) -> int:
    env = os.environ
    run, leg = env["TRADEWIND_RUN"], int(env["TRADEWIND_LEG"])
    store = stores.open(env["TRADEWIND_STORE"])
    resume = env["TRADEWIND_RESUME"]
    saved = json.loads(store.get(resume)) if resume else {"step": 0, "value": 0}
    step, value = saved["step"], saved["value"]
    to_child, from_child = os.pipe(), os.pipe()
    if not os.fork():
        os.close(to_child[1])
        os.close(from_child[0])
        _child(to_child[0], from_child[1])
        os._exit(0)
    os.close(to_child[0])
    os.close(from_child[1])
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    records.mkdir(parents=True, exist_ok=True)
    place = records / f"{run} {leg} {env['TRADEWIND_MACHINE']} {os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    record = os.open(place, flags, 0o600)
    while step < steps and not asked:
        clock.sleep(STEP_S)
        answer = _answer(to_child[1], from_child[0], b"%d %d" % (value, step + 1))
        if not answer:
            return 1  # the child was killed
        step, value = step + 1, int(answer)
        said = line(f"{leg} {os.getpid()}", step)
        written = os.write(1, said)
        os.write(record, b"%.3f %d %s" % (clock.monotonic(), written, said))
        if step % SAVE_EVERY == 0 or step == steps:
            _save(store, run, leg, step, value)
    if asked:
        _save(store, run, leg, step, value)
    return 0


def _answer(to_child: int, from_child: int, question: bytes) -> bytes:
    """Empty if there is no child any more."""
    with suppress(BrokenPipeError):
        os.write(to_child, question)
    return os.read(from_child, 64)


def _save(store: stores.Store, run: str, leg: int, step: int, value: int) -> None:
    content = json.dumps({"step": step, "value": value}).encode()
    if os.environ["TRADEWIND_RANK"] == "0":
        # There already: this leg's own, from before it was killed and began again.
        store.create(places.checkpoint(run, leg, step), content)
    progress = Path(os.environ["TRADEWIND_PROGRESS"])
    beside = progress.with_name("progress.new")
    beside.write_text(json.dumps({"step": step, "saved": step, "rate": 1 / STEP_S}))
    beside.replace(progress)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2])))

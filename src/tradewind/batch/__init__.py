"""Batch inference that may be taken at any time: a file of items, an output for each, exactly once.

    import tradewind.batch as batch

    work = batch.open("prompts.jsonl")
    for items in work.batches(64):
        work.put(items, [answer(item.value["prompt"]) for item in items])
    work.finish()

In a run, outputs go into the run's store, and a further leg, on as many machines or others,
continues with the first item that has no output. Alone they go into the folder `outputs`.
`batch.collect` joins them in the order of the items; so does `tradewind get RUN --answers FILE`.
"""

from tradewind.batch.items import Item
from tradewind.batch.joined import collect
from tradewind.batch.work import Work, open  # noqa: A004

__all__ = ["Item", "Work", "collect", "open"]

"""`tradewind cost --warn`: sends the budgets' warnings, for whom no controller does, or a trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tradewind.base.errors import InvalidValue, TradewindError
from tradewind.cli import render

if TYPE_CHECKING:
    from tradewind.ledger.budgets import Standing
    from tradewind.model.channels import Channels
    from tradewind.store import Store


def check(what: str, channels: Channels, *, named: bool) -> None:
    if named and what == "due":
        raise click.UsageError("a few runs say nothing about their project: --warn due without RUN")
    if not channels:
        raise InvalidValue(
            "budgets.yaml does not say where warnings go",
            hint="tell: {webhook: file:~/.slack-webhook}, or mail: …; docs/budgets.md has both",
        )


def trial(channels: Channels) -> None:
    from tradewind.controller import telling

    _done(telling.trial(channels), f"sent a trial by {' and '.join(channels.names)}")


def due(store: Store, channels: Channels, stands: Sequence[Standing]) -> None:
    from tradewind.controller.telling import Teller

    _done(Teller(store).tell(channels, stands), "every warning that is due has been sent")


def _done(troubles: Sequence[TradewindError], words: str) -> None:
    if not troubles:
        render.remark(words)
        return
    hints = {error.hint: None for error in troubles if error.hint}
    raise type(troubles[0])(
        "\n".join(error.message for error in troubles), hint="; ".join(hints) or None
    )

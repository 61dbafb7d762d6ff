"""Options of the commands that send requests to a server: `tradewind load` and `measure`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def of_the_server(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where it is, and which of its models is asked."""
    model = click.option(
        "--model", metavar="NAME", help="As the server calls it. Default: the only one."
    )
    return click.argument("url")(model(command))


def of_the_requests(command: Callable[..., Any]) -> Callable[..., Any]:
    """How each is sent and given up, and whether the same are drawn again."""
    for option in reversed(
        (
            click.option(
                "--key-env",
                default="OPENAI_API_KEY",
                show_default=True,
                metavar="NAME",
                help="The variable that holds the server's key, if it wants one.",
            ),
            click.option(
                "--timeout",
                type=click.FloatRange(1, 3600),
                default=120.0,
                show_default=True,
                help="Seconds without an event after which a request has failed.",
            ),
            click.option("--seed", type=int, help="Draw the same prompts and moments again."),
        )
    ):
        command = option(command)
    return command

"""`tradewind ssh`: a shell on one of a run's machines."""

from __future__ import annotations

import click

from tradewind.cli.base import Command


@click.command(
    "ssh",
    cls=Command,
    context_settings={"ignore_unknown_options": True},
    examples="""
    # a shell on the first machine
    tradewind ssh finetune
    # what do the GPUs of the second one do?
    tradewind ssh finetune --rank 1 -- nvidia-smi
    """,
)
@click.argument("run")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.option("--rank", type=click.IntRange(0), default=0, help="Of its machines, this one.")
@click.option("--key", metavar="FILE", default="", help="By ssh with this key.")
@click.option("--store", "store_url", metavar="URL", help="Store of the run.")
@click.option("--print", "only_print", is_flag=True, help="Print the command, and do not run it.")
def command(
    run: str, words: tuple[str, ...], rank: int, key: str, store_url: str | None, only_print: bool
) -> None:
    """A shell on one of a run's machines, or a command there.

    Where a cloud has another way, no port is open for it: at AWS it is Systems Manager (tradewind
    setup aws --ssm), on Kubernetes `kubectl exec`. Of a run on this computer it is one in the
    machine's folder."""
    import os
    import shlex

    from tradewind import store as stores
    from tradewind.api import shell
    from tradewind.cli.runs import runview

    opened = stores.open(store_url)
    run_id = runview.named(opened, run)
    machine = shell.machine(opened, run_id, rank)
    made = shell.command(machine, key, words, opened)
    if only_print:
        click.echo(shlex.join(made))
        return
    shell.needed(machine, made)
    os.execvp(made[0], made)

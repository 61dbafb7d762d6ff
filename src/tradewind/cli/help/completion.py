"""`tradewind completion`: the script by which a shell completes what is typed."""

from __future__ import annotations

import click

from tradewind.cli.base import Command

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    cls=Command,
    examples="""
    # bash: in ~/.bashrc
    eval "$(tradewind completion bash)"
    # zsh: in ~/.zshrc, below compinit
    eval "$(tradewind completion zsh)"
    # fish: once
    tradewind completion fish \\
        > ~/.config/fish/completions/tradewind.fish
    """,
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script by which SHELL completes commands, options, names of runs and files.

    It serves both names, tradewind and tw, in every terminal that is opened after the line below
    has found its place."""
    click.echo(script(shell), nl=False)


def script(shell: str) -> str:
    """As click makes it for `tradewind`, and the same for `tw`."""
    from click.shell_completion import get_completion_class

    from tradewind.cli.app import COMPLETE
    from tradewind.cli.app import command as ours

    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(ours, {}, "tradewind", COMPLETE)
    text = made.source_template % made.source_vars()
    if shell == "fish":
        return f"{text}complete --command tw --wraps tradewind;\n"
    for registers in ("#compdef tradewind\n", f"{made.func_name} tradewind\n"):
        text = text.replace(registers, registers.replace("tradewind\n", "tradewind tw\n"))
    return text

import click
from tradewind.cli.base import Command
@click.command("explain", cls=Command)
@click.argument("topic", nargs=-1)
def command(topic): ...

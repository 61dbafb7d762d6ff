"""`tradewind aws setup` and `teardown`: what machines on AWS need, made and removed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli import render
from tradewind.cli.base import Group

if TYPE_CHECKING:
    from tradewind.providers.aws.setup.changes import Line


@click.group(
    "aws",
    cls=Group,
    examples="""
    # a bucket, a role and a network: shown, then made
    tradewind aws setup --store s3://my-bucket/tradewind
    """,
)
def command() -> None:
    """Set up an AWS account for a store, and undo that.

    Credentials are found as by AWS's own tools: variables, AWS_PROFILE, single sign-on."""


_STORE = click.option(
    "--store", "store_url", metavar="URL", required=True, help="s3://bucket or s3://bucket/prefix."
)


@command.command(
    "setup",
    examples="""
    # two regions, and do not ask
    tradewind aws setup --store s3://my-bucket \\
      --region us-east-1 --region us-west-2 --yes
    # as code, for whoever sets up your accounts
    tradewind aws setup --store s3://my-bucket \\
      --region us-east-1 --print terraform
    """,
)
@_STORE
@click.option(
    "--region",
    "regions",
    multiple=True,
    metavar="REGION",
    help="Where machines may be; a new bucket is made in the first. May be repeated.",
)
@click.option("--private", is_flag=True, help="A network of its own, which reaches only S3.")
@click.option("--ssm", is_flag=True, help="Let Systems Manager open shells on machines.")
@click.option("--image", metavar="IMAGE", help="An AMI or an SSM parameter to start them from.")
@click.option(
    "--key-pair", metavar="NAME", help="A key pair for SSH; each region has one so named."
)
@click.option(
    "--print",
    "printed",
    type=click.Choice(["terraform", "cloudformation", "policy", "setup-policy", "boundary"]),
    help="Print Terraform, CloudFormation, or an IAM policy: for running Tradewind (policy), for"
    " running this (setup-policy), or the permissions boundary of machines. Nothing is changed.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def setup(
    store_url: str,
    regions: tuple[str, ...],
    private: bool,
    ssm: bool,
    image: str | None,
    key_pair: str | None,
    printed: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Make what machines on AWS need: a bucket, a role, and in each region a security group.

    Shows first what is missing, and asks. What is there already is left as it is, so it may be run
    again at any time."""
    from tradewind.providers.aws.footprint import secrets_path
    from tradewind.providers.aws.setup.things import checked

    url = checked(store_url)
    if printed:
        named = {"image": image or "", "key_pair": key_pair or ""}
        click.echo(_code(printed, url, regions, private, ssm, named), nl=False)
        return
    from tradewind.api.aws.setup import plan_setup
    from tradewind.providers.aws.setup.make import Wish

    wish = Wish(
        store_url=url, regions=regions, private=private, ssm=ssm, image=image or "",
        key_pair=key_pair or "",
    )  # fmt: skip
    with render.busy("looking"):
        plan = plan_setup(wish)
    lines = plan.prepared.lines
    if not as_json:
        click.echo(f"account {plan.prepared.account}, store {url}")
        _show(lines)
    if plan.recorded:
        footprint, changed = plan.known, 0
        words = "nothing to do: all of it is there"
    else:
        if not as_json and not plan.prepared.changes:
            click.echo("all of it is there; only the record in the store is missing")
        _ask(yes, as_json, "Make it?" if plan.prepared.changes else "Write it?")
        changed = plan.prepared.changes
        with render.busy("making"):
            footprint = plan.carry_out()
        words = f"{render.count(changed, 'change')} made, and written down in the store"
    if as_json:
        from msgspec import to_builtins

        record = to_builtins(footprint)
        render.print_json({"store": url, "changes": changed, "things": _rows(lines), **record})
    else:
        click.echo(words)
        path = secrets_path(url)
        render.note(f"secrets of jobs: aws-ssm:/{path}… and aws-secretsmanager:{path}…")
        render.note(
            "whoever shares this store trusts each other: a job on one machine can read all its"
            " runs, and overwrite and delete what machines write; who must not trust each other"
            " take a bucket each"
        )
        if private:
            render.note(
                "machines have no way to the internet: what a job needs must be in its image, its"
                " folder or a bucket of this region; pip and shells by --ssm find nothing there"
            )


@command.command(
    "teardown",
    examples="""
    # what would be removed, and then remove it
    tradewind aws teardown --store s3://my-bucket
    """,
)
@_STORE
@click.option(
    "--region",
    "regions",
    multiple=True,
    metavar="REGION",
    help="Look there too; those that were set up are looked at anyway. May be repeated.",
)
@click.option("--delete-bucket", is_flag=True, help="With all runs, checkpoints and versions.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def teardown(
    store_url: str, regions: tuple[str, ...], delete_bucket: bool, yes: bool, as_json: bool
) -> None:
    """Remove what setup made for a store: by name and tag, and nothing else.

    Refuses while runs of the store go on or its machines are up. The bucket stays, unless it is
    asked for."""
    from tradewind.api.aws.setup import plan_teardown
    from tradewind.providers.aws.footprint import bucket_of
    from tradewind.providers.aws.setup.things import checked

    url = checked(store_url)
    with render.busy("looking"):
        removal = plan_teardown(url, regions, delete_bucket=delete_bucket)
    if not as_json:
        _show(removal.lines)
    if not removal.changes:
        words = "nothing to do: nothing is there"
    else:
        if delete_bucket and removal.bucket_region:
            _ask_name(yes, as_json, bucket_of(url)[0])
        else:
            _ask(yes, as_json, "Remove it?")
        with render.busy("removing"):
            removal.carry_out()
        stays = removal.bucket_region and not delete_bucket
        words = "removed" + (
            f"; the bucket {bucket_of(url)[0]} and all in it stay" if stays else ""
        )
    if as_json:
        render.print_json(
            {"store": url, "removed": removal.changes > 0, "things": _rows(removal.lines)}
        )
    else:
        click.echo(words)


def _code(
    kind: str,
    url: str,
    regions: tuple[str, ...],
    private: bool,
    ssm: bool,
    named: dict[str, str],
) -> str:
    """Without asking AWS anything: whoever prints it need not be who applies it. `named`: the image
    and the key pair that machines use."""
    import json

    from tradewind.errors import InvalidValue
    from tradewind.providers.aws.setup import cloudformation, policies, setter, terraform, things

    usual = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    wanted = regions or ((usual,) if usual else ())
    first = wanted[0] if wanted else "us-east-1"
    if kind == "policy":
        return json.dumps(policies.user(url, first, ssm=ssm, **named), indent=2) + "\n"
    if kind == "boundary":
        return json.dumps(policies.boundary(url, first), indent=2) + "\n"
    if kind == "setup-policy":
        made = setter.setter(url, first, private=private, ssm=ssm)
        return json.dumps(made, indent=2) + "\n"
    if not wanted:
        raise InvalidValue("no region is named", hint="--region us-east-1, for example")
    found = things.described(url, wanted[0], wanted, private=wanted if private else (), ssm=ssm)
    if kind == "terraform":
        return terraform.rendered(found)
    return cloudformation.rendered(found)


def _show(lines: list[Line]) -> None:
    columns = [
        render.Column("what"),
        render.Column("name"),
        render.Column("region"),
        render.Column("there"),
        # Whoever says yes must have seen all of it.
        render.Column("to do", grow=True, wrap=True, keep=9),
    ]
    rows = []
    for line in lines:
        words = [change.words for change in line.changes] or [line.remark or "nothing"]
        first = [line.what, line.name, line.region or "all", "yes" if line.there else "no"]
        rows.append([*first, words[0]])
        rows += [["", "", "", "", more] for more in words[1:]]
    if rows:
        render.table(columns, rows)


def _rows(lines: list[Line]) -> list[dict[str, Any]]:
    return [
        {
            "what": line.what,
            "name": line.name,
            "region": line.region or None,
            "there": line.there,
            "changes": [change.words for change in line.changes],
        }
        for line in lines
    ]


def _ask(yes: bool, as_json: bool, question: str) -> None:
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise click.UsageError("nobody is there to be asked: add --yes")
    if not click.confirm(question):
        raise click.exceptions.Exit(0)


def _ask_name(yes: bool, as_json: bool, bucket: str) -> None:
    """What cannot be undone is not done by a slip of a finger."""
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise click.UsageError("nobody is there to be asked: add --yes")
    typed = click.prompt("All runs and checkpoints go with the bucket. Type its name")
    if typed.strip() != bucket:
        click.echo("that is not its name: nothing was removed")
        raise click.exceptions.Exit(0)

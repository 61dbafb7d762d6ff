"""Runs a program of Pulumi's under its own mocks, and prints what it made: a line of JSON with each
thing's type, name and inputs. Fields that the provider's own classes do not have are faults."""

from __future__ import annotations

import asyncio
import importlib
import json
import runpy
import sys
import typing
from collections.abc import Iterator
from typing import Any

import pulumi  # type: ignore[import-not-found]
from pulumi import _types

made: list[list[Any]] = []
COMPUTED = ("arn", "email", "member", "selfLinkUnique", "insecureValue", "name")


class Mocks(pulumi.runtime.Mocks):  # type: ignore[misc]
    def new_resource(self, args: Any) -> tuple[str, dict[str, Any]]:
        made.append([args.typ, args.name, args.inputs])
        computed = {each: f"{args.name}.{each}" for each in COMPUTED}
        return f"{args.typ}.{args.name}", computed | dict(args.inputs)

    def call(self, args: Any) -> dict[str, Any]:
        made.append([args.token, "", args.args])
        return {each: f"data.{each}" for each in ("id", *COMPUTED)} | dict(args.args)


def known(kind: Any) -> Any:
    """The class of inputs that a type hint is about, through lists and options; None: a value."""
    if isinstance(kind, type) and _types.is_input_type(kind):
        return kind
    return next(filter(None, map(known, typing.get_args(kind))), None)


def faults(value: Any, kind: Any, where: str) -> Iterator[str]:
    inputs = known(kind)
    if isinstance(value, list):
        for each in value:
            yield from faults(each, kind, where)
    elif isinstance(value, dict) and inputs is not None:
        types = _types.input_type_types(inputs)
        for name, each in value.items():
            if name not in types:
                yield f"{where}.{name}: no such field"
            else:
                yield from faults(each, types[name], f"{where}.{name}")


def arguments(typ: str) -> Any:
    """`aws:ec2/vpc:Vpc` → pulumi_aws.ec2.VpcArgs; None of what is no resource."""
    package, module, name = typ.split(":")
    try:
        found = importlib.import_module(f"pulumi_{package}.{module.partition('/')[0]}")
    except ImportError:
        return None
    # Where inputs of another thing bear that name, its own have a longer one.
    return getattr(found, f"{name}InitArgs", None) or getattr(found, f"{name}Args", None)


def main(program: str) -> None:
    pulumi.runtime.set_mocks(Mocks(), preview=False)
    values = {f"project:{name}": each for name, each in json.load(sys.stdin).items()}
    pulumi.runtime.set_all_config(values)
    runpy.run_path(program, run_name="__main__")
    loop = asyncio.get_event_loop()
    loop.run_until_complete(pulumi.runtime.stack.wait_for_rpcs())
    wrong, looked = [], 0
    for typ, name, inputs in made:
        kind = arguments(typ)
        looked += kind is not None
        wrong += list(faults(dict(inputs), kind, f"{typ} {name}")) if kind is not None else []
    sys.stdout.write(
        json.dumps({"made": made, "wrong": wrong, "looked": looked}, default=str) + "\n"
    )


if __name__ == "__main__":
    main(sys.argv[1])

"""`tradewind estimate --serve`: what was typed about serving, and what is answered."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind import catalog as catalogs
from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.cli import render
from tradewind.cli.plan import onepass, serveoptions, serveparts

if TYPE_CHECKING:
    from tradewind.estimate.serving.answer import Answer, Question
    from tradewind.estimate.serving.load import Load, Loaded
    from tradewind.estimate.serving.points import Points
    from tradewind.estimate.serving.served import Served
    from tradewind.model import Accelerator
    from tradewind.model.lengths import Lengths
    from tradewind.model.shape import Shape, Work

# Of the options of `estimate`, those that speak of training alone.
_TRAINING = (
    "seq", "global_batch", "micro_batch", "precision", "qlora", "sharding", "vp", "cp",
    "ep", "recompute", "stack", "network", "optimizer", "no_flash_attention",
)  # fmt: skip
OPTIONS = (
    "input_tokens", "output_tokens", "concurrency", "engine", "weights", "cache", "rate", "cv",
    "ttft", "tpot", "e2e", "adapters", "speculate", "accept", "draft", "prefix_cached",
    "dp_attention", "steps",
)  # fmt: skip
_RANK = 16  # of adapters, where --lora does not say
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0}


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --serve and what goes with it."""
    serve = click.option("--serve", is_flag=True, help="Serving instead of training.")
    return serve(serveoptions.of_the_load(serveoptions.of_the_engine(command)))


def refuse_mixed(serve: bool) -> None:
    """An option of the one kind of question beside the other would be ignored silently."""
    context = click.get_current_context()
    wrong = _TRAINING if serve else OPTIONS
    for parameter in context.command.params:
        if parameter.name in wrong and (
            context.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
        ):
            name = parameter.opts[0]
            what = "training" if serve else "serving"
            hint = "leave it out" if serve else "add --serve"
            raise InvalidValue(f"{name} is about {what}", hint=hint)


def serve(
    name: str, hardware: str, measured: str | None, given: dict[str, Any], as_json: bool
) -> None:
    from tradewind.estimate.serving.answer import Question, ask

    chip, count = accelerator(hardware)
    shape = _loaded(name)
    if shape is not None and not generates(shape):
        onepass.answer(shape, chip, count * given["nodes"], measured, given, as_json)
        return
    _refuse_other("steps", "is about diffusion models", given)
    inputs = _lengths("--input", given["input_tokens"] or "1000")
    outputs = _lengths("--output", given["output_tokens"] or "200")
    question = Question(
        model=model(name),
        accelerator=chip,
        count=count * given["nodes"],
        input=round(inputs.mean),
        output=max(round(outputs.mean), 1),
        concurrency=given["concurrency"] or 1,
        engine=given["engine"],
        weights=given["weights"],
        cache=given["cache"],
        tp=given["tp"],
        pp=given["pp"] or 1,
        dp_attention=given["dp_attention"],
        cached=share("--prefix-cached", given["prefix_cached"]) or 0.0,
        **_adapters(shape, name, given),
        **_guesses(given),
    )
    if given["rate"] is not None:
        if measured is not None:
            raise InvalidValue(
                "--measured is for one load, and --rate for a queue",
                hint="--concurrency N --measured FILE, or --rate alone",
            )
        _under_load(question, inputs, outputs, given, as_json)
        return
    for option in ("cv", "ttft", "tpot", "e2e"):
        if given[option] is not None:
            raise InvalidValue(
                f"--{option} goes with --rate", hint="add --rate REQUESTS_PER_SECOND"
            )
    for option, lengths in (("--input", inputs), ("--output", outputs)):
        if lengths.kind != "fixed":
            raise InvalidValue(
                f"{option}: several lengths go with --rate", hint="one number, or add --rate"
            )
    found = ask(
        question, own_points(Path(measured), question.model) if measured is not None else None
    )
    if as_json:
        render.print_json(asdict(found))
        return
    _show(found)


def accelerator(hardware: str) -> tuple[Accelerator, int]:
    """What `--on` names, and how many: of the catalog, or one that is only measured (cpu)."""
    from tradewind.estimate.serving import chips

    for known in chips.extra().values():
        if known.name.lower() == hardware.strip().lower():
            return known, 1
    chip, count = catalogs.load().variant(hardware)
    if count is not None and count != int(count):
        raise InvalidValue(f"{count:g} of {chip.name}", hint="serving needs whole ones")
    return chip, int(count or 1)


def own_points(path: Path, model: Served | None = None) -> Points:
    """A user's own points, of the model that is asked about or of others."""
    from tradewind.bench.inference import finder
    from tradewind.bench.measured import rows_of
    from tradewind.estimate.serving import points, rows, served

    def find(name: str) -> Served:
        return model if model is not None and name == model.name else served.find(name)

    # Published rows without a date are old, and their engines slower; a user's own are of today.
    today = clock.today().isoformat()
    dated = [{**row, "date": row.get("date") or today} for row in rows_of(path, "mode")]
    found = rows.read(dated, finder(), find)
    for why, number in found.unsupported.most_common():
        render.remark(f"{render.count(number, 'row')} of {path} left out: {why}")
    return points.Points(found, str(path))


def _lengths(option: str, text: str) -> Lengths:
    from tradewind.model.lengths import Lengths

    try:
        return Lengths.parse(text)
    except InvalidValue as error:
        raise InvalidValue(f"{option}: {error.message}", hint=error.hint) from None


def target(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min|m)", text.strip(), re.ASCII)
    if not found or not float(found[1]):
        raise InvalidValue(f"{option}: {text!r} is not a time", hint="for example 500ms or 2s")
    return float(found[1]) * _UNITS[found[2]]


def _under_load(
    question: Question, inputs: Lengths, outputs: Lengths, given: dict[str, Any], as_json: bool
) -> None:
    from tradewind.estimate.serving.answer import ask
    from tradewind.estimate.serving.load import Load, under
    from tradewind.estimate.serving.mix import Mix

    if question.guesses:
        raise InvalidValue(
            "--speculate is for clients, and --rate for a queue",
            hint="--concurrency N --speculate N, or --rate without guesses",
        )
    if given["concurrency"] is not None:
        raise InvalidValue(
            "--concurrency and --rate are both given",
            hint="clients that wait for their answer, or requests that arrive: one of them",
        )
    load = Load(
        rate=given["rate"],
        mix=Mix.of(inputs, outputs, question.cached),
        cv=1.0 if given["cv"] is None else given["cv"],
        **{f"{name}_s": target(f"--{name}", given[name]) for name in ("ttft", "tpot", "e2e")},
    )
    found = under(question, load)
    # Memory and the band are those of as many clients as there are on average.
    clients = max(round(found.running * found.replicas), 1)
    usual = ask(replace(question, concurrency=clients))
    if as_json:
        render.print_json(asdict(usual) | {"load": asdict(found)})
        return
    _head(usual, f"{found.rate:g} requests a second, {inputs.words} in, {outputs.words} out")
    if not usual.fits:
        return
    _show_load(found, load)
    render.note(f"the speed behind it: {usual.band}")


def _show_load(found: Loaded, load: Load) -> None:
    click.echo()
    if not found.stable:
        click.secho("overloaded: the queue only grows", fg="red", bold=True)
        render.note(
            f"at most {_digits(found.most_requests_per_s)} requests a second; more accelerators, "
            "or fewer requests"
        )
        return
    names = ("mean", "p50", "p90", "p95", "p99")
    click.echo(f"{'ms':<13}" + "".join(f"{name:>9}" for name in names))
    for label, values in (
        ("first token", found.ttft_ms),
        ("each further", found.tpot_ms),
        ("a request", found.e2e_ms),
    ):
        cells = (values[name] for name in names)
        click.echo(f"{label:<13}" + "".join(f"{_digits(c or 0):>9}" for c in cells))
    click.echo(
        f"{'load':<13} {found.load:.0%} of the {_digits(found.most_requests_per_s)} requests a "
        f"second that it can take; {_digits(found.running)} at once on a replica"
    )
    if found.goodput is not None:
        click.echo(f"{'goodput':<13} {found.goodput:.1%} of requests inside the target")


def model(text: str) -> Served:
    """NotFound, or InvalidValue for what does not generate text."""
    from tradewind.estimate.serving import served
    from tradewind.model.shape import Shape

    shape = _loaded(text)
    if shape is None:
        return served.find(text)
    if not generates(shape):
        raise InvalidValue(
            f"{text} does not generate text", hint="plans of serving are for language models"
        )
    assert isinstance(shape, Shape)
    return served.of_shape(shape)


def _loaded(text: str) -> Shape | Work | None:
    """None for the few that tables of measurements know and the registry does not."""
    from tradewind.estimate import models
    from tradewind.estimate.serving import served
    from tradewind.model.shape import Shape, Work

    try:
        found = models.load(text)
    except NotFound:
        served.find(text)
        return None
    if not isinstance(found, Shape | Work):
        raise InvalidValue(
            f"{text} is a profile of a training, which does not say how it is served",
            hint="give the model's config.json, or a YAML file of its shape",
        )
    return found


def generates(shape: Shape | Work) -> bool:
    from tradewind.model.shape import Shape

    return isinstance(shape, Shape) and shape.kind == "decoder"


def share(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip(), re.ASCII)
    if not found or float(found[1]) > 100:
        raise InvalidValue(f"{option}: {text!r} is not a share", hint="for example 35%")
    return float(found[1]) / 100


def _refuse_other(option: str, why: str, given: dict[str, Any]) -> None:
    if given[option] is not None:
        raise InvalidValue(f"--{option.replace('_', '-')} {why}", hint="leave it out")


def _adapters(shape: Shape | Work | None, name: str, given: dict[str, Any]) -> dict[str, Any]:
    from tradewind.estimate import lora, shapes
    from tradewind.model.shape import Shape

    if given["adapters"] is None:
        if given["lora"] is not None:
            raise InvalidValue(
                "--lora is the rank of adapters that are served", hint="add --adapters N"
            )
        return {}
    if not isinstance(shape, Shape):
        raise InvalidValue(
            f"the layers of {name} are not known well enough for adapters",
            hint="give its config.json, or a YAML file of its shape",
        )
    rank = given["lora"] or _RANK
    params = lora.trained_share(shape, rank) * shapes.parameters(shape)
    return {"adapters": given["adapters"], "adapter_params": params}


def _guesses(given: dict[str, Any]) -> dict[str, Any]:
    if given["speculate"] is None:
        for option in ("accept", "draft"):
            if given[option] is not None:
                raise InvalidValue(f"--{option} goes with --speculate", hint="add --speculate N")
        return {}
    found: dict[str, Any] = {"guesses": given["speculate"]}
    if given["accept"] is not None:
        found["accepted"] = share("--accept", given["accept"])
    if given["draft"] is not None:
        found["draft"] = model(given["draft"])
    return found


def _head(found: Answer, load: str) -> None:
    serveparts.title(found)
    layout = f"{render.count(found.replicas, 'replica')} of tp {found.tp}"
    render.paragraph(layout + (f" × pp {found.pp}" if found.pp > 1 else ""), indent="  ")
    render.paragraph(load, indent="  ")
    for text in found.notes:
        render.note(text)
    serveparts.memory(found)
    if not found.fits:
        click.secho("does not fit: no room for one sequence", fg="red", bold=True)
        render.note("more accelerators for a replica (--tp), or smaller --weights")
        return
    click.echo(f"  room for {render.count(found.most_sequences, 'such sequence')} on each replica")


def _show(found: Answer) -> None:
    clients = render.count(found.concurrency, "client")
    _head(found, f"{clients}, {found.input:,} tokens in, {found.output:,} out")
    if not found.fits:
        return
    click.echo()
    for name, label, unit in (
        ("output_tokens_per_s", "speed", "tokens/s out"),
        ("ttft_ms", "first token", "ms"),
        ("tpot_ms", "each further", "ms"),
    ):
        low, value, high = (_digits(v) for v in _three(found, name))
        click.echo(f"{label:<13} {value:>8} {unit} ({low} to {high} in 4 of 5 cases)")
    click.echo(f"{'a request':<13} {_digits(found.e2e_ms):>8} ms")
    click.echo(f"{'requests':<13} {_digits(found.requests_per_s):>8} a second")
    render.note(f"the range: {found.band}")


def _three(found: Answer, name: str) -> tuple[float, float, float]:
    return found.low[name], getattr(found, name), found.high[name]


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")

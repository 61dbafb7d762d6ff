"""Options of `tradewind estimate --serve`: what is asked of the server, and how it serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

_COUNT = click.IntRange(min=1)
_LOAD = (
    click.option(
        "--input",
        "input_tokens",
        metavar="LENGTH",
        help="Tokens of a prompt; with --rate also '100 to 2000' or "
        "'median 600, p95 3000'. Default: 1000.",
    ),
    click.option(
        "--output",
        "output_tokens",
        metavar="LENGTH",
        help="Tokens of an answer, likewise. Default: 200.",
    ),
    click.option("--concurrency", type=_COUNT, help="Requests under way at once. Default: 1."),
    click.option(
        "--rate",
        type=float,
        metavar="N",
        help="Requests a second that arrive at random: percentiles of latency.",
    ),
    click.option(
        "--cv",
        type=float,
        metavar="N",
        help="With --rate: coefficient of variation of the gaps; 1 is Poisson, more is "
        "bursts. Default: 1.",
    ),
    click.option(
        "--ttft",
        metavar="TIME",
        help="With --rate: target for the first token, e.g. 500ms.",
    ),
    click.option("--tpot", metavar="TIME", help="With --rate: target for each further token."),
    click.option("--e2e", metavar="TIME", help="With --rate: target for a whole request."),
)
_ENGINE = (
    click.option(
        "--engine", metavar="NAME", help="vllm, sglang, trtllm, llama.cpp … Default: vllm."
    ),
    click.option(
        "--weights",
        metavar="FORMAT",
        help="Of the served weights: bf16, fp8, int4, mxfp4 … Default: bf16.",
    ),
    click.option(
        "--cache", metavar="FORMAT", help="Of keys and values. Default: as the engine does."
    ),
    click.option(
        "--adapters",
        type=_COUNT,
        help="LoRA adapters that requests choose among; --lora is their rank. Default: none.",
    ),
    click.option(
        "--speculate",
        type=_COUNT,
        metavar="N",
        help="Speculative decoding: tokens guessed in each step. Default: none.",
    ),
    click.option(
        "--accept",
        metavar="PERCENT",
        help="With --speculate: how often a guess is right. Default: 70%.",
    ),
    click.option(
        "--draft",
        metavar="MODEL",
        help="With --speculate: what guesses. Default: a layer more of the model (EAGLE, MTP).",
    ),
    click.option(
        "--prefix-cached",
        metavar="PERCENT",
        help="Share of prompts' tokens that a prefix cache holds. Default: none.",
    ),
    click.option(
        "--dp-attention",
        is_flag=True,
        help="Each rank attends for its own sequences (data-parallel attention).",
    ),
    click.option(
        "--steps",
        type=_COUNT,
        help="Of a diffusion model, which makes a picture in so many. Default: 30.",
    ),
)


def of_the_load(command: Callable[..., Any]) -> Callable[..., Any]:
    """Requests, how they arrive, and how soon they must be answered."""
    for option in reversed(_LOAD):
        command = option(command)
    return command


def of_the_engine(command: Callable[..., Any]) -> Callable[..., Any]:
    """What serves, and what it does to be fast or small."""
    for option in reversed(_ENGINE):
        command = option(command)
    return command

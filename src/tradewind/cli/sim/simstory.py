"""A simulated scenario in words: what is asked for, where it may run, what goes wrong how often."""

from __future__ import annotations

from collections.abc import Iterator

from tradewind.base.units import format_duration, format_money
from tradewind.model.run import Spec
from tradewind.sim.scenario import Chances, Place, Scenario
from tradewind.sim.world import START_S

GOES_WRONG = {
    "store_fails": "a store's step fails",
    "cloud_fails": "a cloud's step fails",
    "crash": "a controller dies at a step",
    "stall": "a step takes long",
    "refuse": "a launch is refused",
    "unknown": "the result of a launch is unknown",
    "dud": "a machine never comes up",
    "vanish": "a machine is interrupted",
    "zombie": "a machine is listed as ended and lives",
    "cut_off": "a machine cannot reach the store",
    "hardware": "a machine breaks its job",
    "stubborn": "a job takes too long to save",
    "no_pass": "a pass cannot be made",
}


def described(scenario: Scenario, *others: Scenario) -> Iterator[tuple[str, str]]:
    """Lines of a name, empty where the line goes on about the one before, and words."""
    spec = scenario.spec
    yield "work", _work(spec, scenario)
    yield "deadline", _deadline(spec)
    yield "budget", "none" if spec.budget is None else format_money(spec.budget, digits=2)
    for number, way in enumerate(spec.ways):
        price = format_money(way.price_all, digits=2)
        words = f"{way.words}: {price} an hour, {way.rate:g} steps/s"
        yield "" if number else "machines", words
    for place in scenario.places:
        yield f"cloud {place.name}", _cloud(place)
    yield "controllers", _controllers(scenario)
    if scenario.cancel_at_s is not None:
        yield "cancelled", f"after {format_duration(scenario.cancel_at_s)}"
    if scenario.resumes:
        yield "resumed", "once, with more money and time, if it did not succeed"
    quiet = format_duration(scenario.quiet_s)
    if _chances(scenario.chances):
        yield "goes wrong", f"until {quiet}: {', '.join(_chances(scenario.chances))}"
    else:
        yield "goes wrong", "nothing by chance"
    if scenario.liar:
        yield "lies", f"until {quiet}: {LIARS[scenario.liar]}"
    for other in others:
        budget = other.spec.budget
        money = "no budget" if budget is None else f"a budget of {format_money(budget, digits=2)}"
        cancelled = other.cancel_at_s
        ends = f", cancelled after {format_duration(cancelled)}" if cancelled is not None else ""
        yield other.run_id, f"beside it: {other.spec.work:g} steps, {money}{ends}"


LIARS = {
    "own": "the run's own machines, about themselves",
    "other": "a machine of another run in the same store, which writes wherever machines may",
}


def _work(spec: Spec, scenario: Scenario) -> str:
    speeds = "/".join(f"{rate:.0%}" for rate in scenario.true_rates.values())
    words = f"{spec.work:g} steps, at {speeds} of the estimated speed; a checkpoint"
    words += f" every {format_duration(spec.checkpoint_every_s)}; may fail {spec.tries}×"
    if scenario.fails_at is not None:
        words += f"; has an error of its own at step {scenario.fails_at:.0f}"
    return words


def _deadline(spec: Spec) -> str:
    if spec.deadline_s is None:
        return "none"
    after = format_duration(int(spec.deadline_s) - START_S)
    return f"{after} from the start" + (", and worth nothing after it" if spec.hard else "")


def _cloud(place: Place) -> str:
    facts = place.facts
    notice = f"tells {facts.notice_s} s before it takes" if facts.notice_s else "takes untold"
    lag = f"up to {facts.listing_lag_s} s late" if facts.listing_lag_s else "at once"
    return "; ".join(
        (
            f"boots within {format_duration(facts.boot_timeout_s)}",
            notice,
            f"bills by {format_duration(facts.billing_step_s)}",
            "launches carry tokens" if facts.tokens else "launches carry no tokens",
            f"lists {lag}",
            f"its clock is {_off(place.skew_s)}",
            *_oddities(place),
        )
    )


def _oddities(place: Place) -> Iterator[str]:
    facts = place.facts
    if not facts.gang:
        yield "sells machines one by one"
    if facts.queues:
        yield "may queue launches"
    if facts.ends == "never":
        yield "bills a machine that has shut itself down"
    begins_s, ends_s = place.outage
    if ends_s > begins_s:
        begins, ends = format_duration(begins_s), format_duration(ends_s)
        yield f"answers nobody from {begins} to {ends}"


def _controllers(scenario: Scenario) -> str:
    clocks = " and ".join(_off(skew) for skew in scenario.skews_s[: scenario.controllers])
    every = format_duration(scenario.pass_s)
    clock = "clock is" if scenario.controllers == 1 else "clocks are"
    return f"{scenario.controllers}, a pass every {every}; {clock} {clocks}"


def _off(skew_s: int) -> str:
    return f"{abs(skew_s)} s {'fast' if skew_s > 0 else 'slow'}" if skew_s else "right"


def _chances(chances: Chances) -> list[str]:
    return [
        f"{words} {chance:.3g} %"
        for name, words in GOES_WRONG.items()
        if (chance := 100 * getattr(chances, name))
    ]

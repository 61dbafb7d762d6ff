"""A plan of serving as one HTML page that needs nothing but itself: machines by hour, what they
cost, sliders for traffic and targets, what else there is, and why the rest was rejected. Without
its script all is there but the sliders.

    Path("plan.html").write_text(serve_page.render(plans), encoding="utf-8")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tradewind.web import serve_chart, shell
from tradewind.web import serve_words as words
from tradewind.web.page_data import as_json as data_json
from tradewind.web.report_tables import folded, table
from tradewind.web.words import clean, html, prose

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tradewind.model.serveplan import Alternative, NotChosen, ServingPlans, ServingPool


def render(plans: ServingPlans) -> str:
    name, script = html(plans.workload.name), shell.asset("serve.js")
    parts = {
        "head": shell.head(f"{name}: plan", shell.style("serve.css"), script),
        "script": script,
        "data": data_json(_sliders(plans)),
        "name": name,
        "sentence": prose(_sentence(plans)),
        "figures": _figures(plans),
        "body": _body(plans),
        "made": f"{plans.made_at:%Y-%m-%d %H:%M %Z}".strip(),
    }
    return shell.filled(shell.asset("serve.html"), parts)


def _sentence(plans: ServingPlans) -> str:
    if plans.best is None:
        return f"Nothing meets the targets within the limits: {words.targets(plans)}."
    doing = []
    for pool in plans.best.pools:
        most = pool.committed + max(hour.on_demand + hour.spot for hour in pool.hours)
        whose = "your own" if pool.own else f"at {words.where(pool)}"
        sizes = f" for {pool.sizes}" if pool.sizes else ""
        doing.append(f"up to {most} × {words.machines(pool)} {whose}{sizes}")
    return f"Serve it on {', and on '.join(doing)}: about {words.money(plans.best.cost)} a month."


def _figures(plans: ServingPlans) -> str:
    best = plans.best
    if best is None:
        return ""
    headroom = min(pool.headroom for pool in best.pools)
    rows = (
        ("Cost", words.money(best.cost), "a month"),
        ("A million tokens", f"${best.usd_per_million:.3g}",
         f"${best.usd_per_million_out:.3g} a million out"),
        ("Available", f"{best.had:.0%}", "that machines are there when they are asked for"),
        ("Chance", f"{best.chance:.2%}", "that enough machines are up in the worst hour"),
        ("Headroom", f"{headroom:.0%}", "more requests in the fullest hour"),
    )  # fmt: skip
    return "\n".join(
        f"<div><dt>{html(name)}</dt><dd>{html(value)}</dd>"
        f'<dd class="range">{html(under)}</dd></div>'
        for name, value, under in rows
    )


def _sliders(plans: ServingPlans) -> dict[str, Any]:
    """What the script moves among: every combination that was planned."""
    traffic = sorted({one.traffic for one in plans.changed})
    steps = {
        name: sorted({one.targets[name] for one in plans.changed}) if plans.changed else []
        for name in plans.targets
    }
    return {
        "rate": plans.requests_per_s,
        "traffic": traffic,
        "targets": [
            {"name": name, "words": words.NAMES[name], "ms": 1e3 * seconds, "steps": steps[name]}
            for name, (seconds, _) in plans.targets.items()
        ],
        "costs": [
            [[one.traffic, *one.targets.values()], None if one.cost is None else one.cost / 1e6,
             clean(one.machines)]
            for one in plans.changed
        ],
    }  # fmt: skip


def _play(plans: ServingPlans) -> str:
    if not plans.changed:
        return ""
    names = [("traffic", "Traffic"), *((n, words.NAMES[n].capitalize()) for n in plans.targets)]
    sliders = "\n".join(
        f'<label for="s-{key}"><span>{html(text)}</span><output id="o-{key}"></output>'
        f'<input type="range" id="s-{key}" step="1" min="0" max="0"></label>'
        for key, text in names
    )
    return (
        f'<div class="play" id="play" hidden>\n{sliders}\n'
        '<p class="result" id="result" aria-live="polite"></p>\n</div>\n'
        '<noscript><p class="quiet">The sliders need the page&#39;s script.</p></noscript>'
    )


def _body(plans: ServingPlans) -> str:
    sections = [
        ("What comes nearest, and what would do", _nearest(plans)),
        *((_title(pool), _pool(pool)) for pool in (plans.best.pools if plans.best else ())),
        ("Other traffic, other targets", _play(plans)),
        ("What targets cost", _list(map(words.target_cost, plans.targets_cost))),
        ("One place", _list([words.one_site(plans.one_site)] if plans.one_site else ())),
        ("With growth", _list(map(words.growth, plans.growth))),
        ("Instead of machines", _alternatives(plans.alternatives)),
        (f"Rejected: {len(plans.losers):,} accelerators", _losers(plans.losers)),
        ("What was asked", _asked(plans)),
        ("What was assumed", _list(plans.notes)),
    ]
    return "\n".join(
        f'<section aria-labelledby="h-{at}">\n<h2 id="h-{at}">{html(title)}</h2>\n'
        f"{body}\n</section>"
        for at, (title, body) in enumerate(sections)
        if body
    )


def _nearest(plans: ServingPlans) -> str:
    if plans.best is not None:
        return ""
    changes = plans.nearest.would_do if plans.nearest else ()
    texts = [words.nearest(plans), *(f"it could be done {change}" for change in changes)]
    return _list(filter(None, texts)) or (
        '<p class="quiet">No single change of a target or a limit would do.</p>'
    )


def _title(pool: ServingPool) -> str:
    whose = pool.sizes or ", ".join(one.place for one in pool.users)
    return f"Machines by hour: {whose}" if whose else "Machines by hour"


def _pool(pool: ServingPool) -> str:
    rows = [
        ("Machines", f"{words.machines(pool)}, {words.where(pool)}"),
        ("Price", f"{words.prices(pool)}; of {pool.price_as_of}"),
        ("Cost", f"{words.money(pool.cost)} a month"),
        ("Commitment", words.commitment(pool)),
        ("Users", words.users(pool)),
        ("Layout", words.layout(pool)),
        ("Speed", f"{words.digits(pool.rate_per_machine)} requests a second within the targets"),
        ("Fullest hour", f"{words.latencies(pool)} at the targets' percentiles"),
        ("Estimate", words.margin(pool)),
    ]
    rows.append(("Format", pool.caveat))
    rows = [row for row in rows if row[1]]
    return serve_chart.by_hour(pool) + "\n" + _facts(rows, "facts pool")


def _alternatives(found: Sequence[Alternative]) -> str:
    if not found:
        return ""
    rows = [
        f'<tr><th scope="row">{html(one.provider)}<span class="under">{html(one.what)}</span></th>'
        f'<td class="n">{words.money(one.cost)}</td>'
        f'<td class="n wide">${one.usd_per_million:.3g}</td>'
        f"<td>{html(words.crossover(one))}</td>"
        f'<td class="wide">{html(one.note)} <span class="under">prices of {html(one.as_of)}</span>'
        "</td></tr>"
        for one in found
    ]
    head = (("Offer", ""), ("A month", "n"), ("A million tokens", "n wide"),
            ("The plan is cheaper", ""), ("Note", "wide"))  # fmt: skip
    return table(head, rows, "alternatives")


def _losers(found: Sequence[NotChosen]) -> str:
    if not found:
        return ""
    rows = [
        f'<tr><th scope="row">{html(one.accelerator)}</th><td>{html(one.reason)}</td>'
        f'<td class="n">{"" if one.cost is None else words.money(one.cost)}</td></tr>'
        for one in found
    ]
    head = (("Accelerator", ""), ("Why", ""), ("A month", "n"))
    return folded(table(head, rows, "lost"), len(found), "accelerator")


def _asked(plans: ServingPlans) -> str:
    serve, limits = plans.workload.serve, plans.workload.limits
    assert serve is not None
    model = serve.model if isinstance(serve.model, str) else "a model of your own"
    rows = [
        # A path of one's own is not sent on with the page.
        ("Model", model.rsplit("/", 1)[-1]),
        ("Traffic", words.traffic(plans)),
        ("Lengths", words.lengths(plans)),
        ("Targets", words.targets(plans)),
        ("Availability", f"{100 * serve.availability:g}%"),
        ("Confidence", f"{limits.margin:.0%}"),
    ]
    if limits.budget is not None:
        rows.append(("Budget", f"{words.money(limits.budget)} a month"))
    weighed = f"{plans.offers:,} offers and {plans.layouts:,} layouts"
    return _facts([*rows, ("Weighed", weighed)], "facts")


def _facts(rows: Iterable[tuple[str, str]], kind: str) -> str:
    inside = "\n".join(
        f"<div><dt>{html(name)}</dt><dd>{prose(text)}</dd></div>" for name, text in rows
    )
    return f'<dl class="{kind}">\n{inside}\n</dl>'


def _list(texts: Iterable[str]) -> str:
    items = "\n".join(f"<li>{prose(text)}</li>" for text in texts)
    return f'<ul class="notes">\n{items}\n</ul>' if items else ""

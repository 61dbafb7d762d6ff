"""The charts as one HTML page that needs nothing but itself: no network, no script.

Drawings are inline SVG whose colours are CSS variables, so they follow the reader's light or dark.
Below each stands everything it shows as a table, for those who do not see it and those who copy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from tradewind.pictures import canvas
from tradewind.pictures.chart import Chart, Table, counted

OPEN_UP_TO = 12  # rows; longer tables are folded away


def render(charts: Sequence[Chart], *, title: str, note: str) -> bytes:
    sections = "\n".join(_section(chart, number) for number, chart in enumerate(charts, start=1))
    sources = sorted({s for chart in charts for s in chart.provenance.sources}, key=str.lower)
    text = _PAGE.format(
        title=escape(title),
        note=_unbroken(escape(note)),
        style=_style(),
        sections=sections,
        sources=_sources(sources),
    )
    return canvas.writable(text).encode("utf-8", "replace")


def _section(chart: Chart, number: int) -> str:
    tables = "\n".join(_table(table) for table in chart.tables())
    return (
        f"<section>\n<h2>{escape(chart.heading)}</h2>\n<p>{_unbroken(escape(chart.caption))}</p>\n"
        f'<figure role="img" aria-label="{escape(chart.heading)}; the numbers follow as a table">\n'
        f"{_inline(chart, number)}\n</figure>\n{tables}\n</section>"
    )


def _unbroken(text: str) -> str:
    """Dates are not torn at the ends of lines."""
    return re.sub(r"\d{4}-\d\d-\d\d", r'<span class="date">\g<0></span>', text)


def _inline(chart: Chart, number: int) -> str:
    """The chart's SVG for the inside of a page: fluid, coloured by variables, ids its own."""
    svg, width = canvas.render_bare(chart)
    svg = svg[svg.index("<svg") :].rstrip()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(
        r'(<svg[^>]*?) width="[^"]*"',
        rf'\1 style="width:100%;min-width:{width * 60:.0f}px;max-width:{width * 110:.0f}px"',
        svg,
        count=1,
    )
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    # Two drawings must not share an id, and an id that nothing points to is of no use.
    used = set(re.findall(r'(?:url\(#|xlink:href="#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="c{number}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(url\(#|xlink:href="#)', rf"\1c{number}-", svg)
    roles = {light: role for role, (light, _) in canvas.TONES.items()}
    return re.sub(
        r"#[0-9a-f]{6}\b",
        lambda m: f"var(--{roles[m[0]]})" if m[0] in roles else m[0],
        svg,
    )


def _table(table: Table) -> str:
    def cell(row: Sequence[str], column: int) -> str:
        text = escape(row[column])
        if column == 0:
            return f'<th scope="row">{text}</th>'
        return f"<td>{text}</td>" if column < table.names else f'<td class="n">{text}</td>'

    head = "".join(
        f'<th scope="col"{"" if i < table.names else " class=n"}>{escape(name)}</th>'
        for i, name in enumerate(table.columns)
    )
    body = "\n".join(
        "<tr>" + "".join(cell(row, i) for i in range(len(row))) + "</tr>" for row in table.rows
    )
    opened = " open" if len(table.rows) <= OPEN_UP_TO else ""
    return (
        f"<details{opened}><summary>{escape(table.caption)}: the numbers "
        f"({counted(len(table.rows), 'row')})</summary>\n"
        f'<div class="wide" tabindex="0"><table>\n<caption>{escape(table.caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div></details>"
    )


def _sources(sources: Sequence[str]) -> str:
    if not sources:
        return ""
    items = "\n".join(f"<li>{escape(source)}</li>" for source in sources)
    return f"<h2>Sources of the prices</h2>\n<ul>\n{items}\n</ul>"


def _style() -> str:
    light = "".join(f"--{role}:{tones[0]};" for role, tones in canvas.TONES.items())
    dark = "".join(f"--{role}:{tones[1]};" for role, tones in canvas.TONES.items())
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{_RULES}"
    )


_RULES = """\
body{margin:2rem auto;max-width:1320px;padding:0 1.25rem;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,"DejaVu Sans",Verdana,Helvetica,Arial,sans-serif}
h1{font-size:1.7rem;margin:0 0 .25rem}
h2{font-size:1.15rem;margin:2.5rem 0 .25rem}
p,footer,summary,caption{color:var(--quiet)}
.date{white-space:nowrap}
p{margin:.25rem 0 1rem;max-width:60rem}
figure{margin:0 0 1rem;overflow-x:auto}
svg{display:block;height:auto}
summary{cursor:pointer;margin:.5rem 0}
.wide{display:inline-block;max-width:100%;max-height:36rem;overflow:auto;
border:1px solid var(--line)}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
th,td{padding:.2rem .7rem;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}
thead th{position:sticky;top:0;background:var(--stripe);z-index:1}
tbody th{font-weight:600;white-space:nowrap}
footer{margin:3rem 0 1rem;border-top:1px solid var(--line);font-size:13px}
footer h2{font-size:1rem;margin:1rem 0 .25rem}
footer .note{text-align:right;max-width:none}
@media print{.wide{max-height:none;overflow:visible}}"""

# The policy forbids every request: should anything in the page ever point outside, it stays unread.
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
{sections}
</main>
<footer>
{sources}
<p class="note">{note}</p>
</footer>
</body>
</html>
"""

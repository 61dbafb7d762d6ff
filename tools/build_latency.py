"""The table of round trips between cities, for the package, from measurements between regions.

    .venv/bin/python tools/build_latency.py --from latency.csv.gz

Rows as in the table of clouds' own and public measurements: provider_a, region_a, provider_b,
region_b, rtt_ms, as_of, source. Between two cities it is the median over clouds. A row is left out,
and told, where a city is not known, or where it is faster than light in glass could be.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from statistics import median, quantiles

from tradewind.base import csvfile
from tradewind.catalog import places

GLASS_KM_PER_MS = 100.0
"""There and back; slack for cities of some size is below."""
SLACK_KM = 150.0
NEAR_KM = 300.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=places.ROUND_TRIPS)
    given = parser.parse_args()
    found: dict[tuple[str, str], list[tuple[float, str, str]]] = {}
    left: dict[str, int] = {}
    for _, row in csvfile.rows(given.source):
        regions = [(row[f"provider_{end}"], row[f"region_{end}"]) for end in "ab"]
        unknown = ["/".join(one) for one in regions if places.metro_of(*one) is None]
        ends = sorted(places.metro_of(*one) or "" for one in regions)
        rtt = float(row["rtt_ms"])
        if unknown:
            why = f"which city {unknown[0]} is in is not known"
        elif (places.distance_km(*ends) - SLACK_KM) / GLASS_KM_PER_MS > rtt:
            why = f"{ends[0]} to {ends[1]} in {rtt:g} ms is faster than light in glass"
        else:
            found.setdefault((ends[0], ends[1]), []).append((rtt, row["as_of"], row["provider_a"]))
            continue
        left[why] = left.get(why, 0) + 1
    with given.out.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("metro_a", "metro_b", "rtt_ms", "clouds", "as_of"))
        for (a, b), several in sorted(found.items()):
            clouds = " ".join(sorted({cloud for _, _, cloud in several}))
            latest = max(as_of for _, as_of, _ in several)
            writer.writerow((a, b, f"{median(rtt for rtt, _, _ in several):.1f}", clouds, latest))
    for why, number in sorted(left.items()):
        sys.stdout.write(f"left out: {why}{f' ({number} times)' if number > 1 else ''}\n")
    far = [
        (median(rtt for rtt, _, _ in several) - places.NEAR_MS) / places.distance_km(*ends)
        for ends, several in found.items()
        if places.distance_km(*ends) > NEAR_KM
    ]
    cuts = quantiles(far, n=10)
    apart = [max(r) / min(r) for r in ([o[0] for o in s] for s in found.values()) if len(r) > 1]
    sys.stdout.write(
        f"{len(found):,} pairs of cities; clouds differ by {median(apart) - 1:.0%} at the median\n"
    )
    sys.stdout.write(
        f"ms a km beyond {places.NEAR_MS:g} ms: median {cuts[4]:.4f}, 80 % {cuts[7]:.4f}\n"
    )


if __name__ == "__main__":
    main()

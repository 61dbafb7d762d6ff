from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from tests.estimate.serving.questions import cases
from tradewind.estimate.serving import band, calibrate, left_out
from tradewind.estimate.serving.cases import Cases
from tradewind.estimate.serving.constants import FILE, TERMS, Constants, fitted
from tradewind.estimate.serving.modes import predict
from tradewind.estimate.serving.rows import MEASURES, Measurements


def made(truth: Constants, asked: Cases) -> Measurements:
    """Measurements as they would be if `truth` were so."""
    seen = predict(asked, truth.terms(asked))
    columns = dict(zip(MEASURES, (seen.tokens_per_s, seen.tpot, seen.ttft), strict=True))
    ones = np.ones(len(asked))
    return Measurements(asked, columns, ones, ["made"] * len(asked), Counter(), len(asked))


ASKED = cases(
    concurrency=np.tile(2.0 ** np.arange(8), 6),
    input=np.repeat([128.0, 500, 2000], 16),
    group=np.tile([1.0, 2, 4], 16),
)


def test_a_fit_finds_what_made_the_measurements() -> None:
    truth = Constants({"weights": 0.4, "matrix": 0.3, "start": 0.8})
    measured = made(truth, ASKED)
    before = calibrate.residuals(measured, Constants({}))
    after = calibrate.residuals(measured, calibrate.fit(measured))
    for name in MEASURES:
        assert np.median(np.abs(after[name])) < 0.03 < np.median(np.abs(before[name]))


def test_a_part_that_no_row_speaks_of_stays_at_nought() -> None:
    found = calibrate.fit(made(Constants({"all": 0.2}), ASKED))
    assert all("ampere" not in name and "sglang" not in name for name in found.parts)
    other = cases(chip="A100-80GB", engine="sglang")
    assert 0 < found.terms(other)["weights"][0] / TERMS["weights"].start < 3


def test_what_was_shipped_is_of_terms_that_there_are() -> None:
    document = json.loads(FILE.read_text())
    assert {name.split(".")[0] for name in document["constants"]} <= set(TERMS)
    for widths in document["bands"].values():
        ordered = [widths[name] for name in band.CLASSES]
        assert ordered == sorted(ordered)  # less known is never surer
        assert 0.05 < ordered[0] < 1


def test_familiarity_goes_from_the_model_to_nothing() -> None:
    evidence = band.Evidence([("vllm", "hopper", "H100-SXM", "llama-3.1-8b")])
    asked = {
        "known": cases(),
        "model": cases("llama-3.1-70b"),
        "chip": cases(chip="H200"),
        "strange": cases(chip="A100-80GB"),
    }
    for name, case in asked.items():
        assert evidence.familiarity(case) == [name]


def test_bands_lie_between_what_was_fitted_and_what_was_left_out() -> None:
    measured = made(fitted(), ASKED)
    near = {name: np.full(len(ASKED), 0.1) for name in MEASURES}
    far = {name: np.full(len(ASKED), 0.4) for name in MEASURES}
    kin = {name: np.full(len(ASKED), 0.9) for name in MEASURES}
    parts = [
        left_out.LeftOut(far, ["known"] * len(ASKED)),
        left_out.LeftOut(kin, ["chip"] * len(ASKED)),
    ]
    widths = left_out.bands(measured, near, parts)["tpot"]
    assert widths["known"] == pytest.approx(0.2)
    assert widths["chip"] == pytest.approx(0.3)
    assert widths["known"] <= widths["model"] <= widths["chip"] <= widths["strange"]

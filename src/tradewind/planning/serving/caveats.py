"""What is published of answers with fewer bits a weight. Pure.

Kurtic and others, "Give Me BF16 or Give Me Death?" (arXiv 2411.02355), over 500,000 evaluations of
the Llama 3.1 family: FP8 effectively lossless, well-tuned INT8 1 to 3 % worse, 4-bit weights
rivalling 8-bit integers. Other models, 4-bit floats and quick conversions were not in it.
"""

from __future__ import annotations

from tradewind.estimate.serving import formats

_STUDY = "arXiv 2411.02355, Llama 3.1"


def caveat(weights: str) -> str:
    """Of a format that was chosen where another was asked for; empty for 16 bits."""
    group = formats.FORMATS[weights].group
    if group == "16":
        return ""
    if weights == "fp8":
        found = f"no loss was measured ({_STUDY})"
    elif group in ("8", "weight8"):
        found = f"scores 1 to 3 % lower were measured ({_STUDY})"
    elif group == "weight4":
        found = f"losses like those of 8-bit integers, 1 to 3 %, were measured ({_STUDY})"
    else:
        found = "we know of no evaluation over many models"
    return f"{weights} weights: {found}; evaluate your model before you serve it so"

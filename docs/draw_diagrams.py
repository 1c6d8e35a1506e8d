"""Draw the panels of docs/guide/partial-feedback.md: ``python docs/draw_diagrams.py``.

The same applicants four times: what is true, what a lender sees, and what exploration adds.
"""

from pathlib import Path

import altair as alt
import numpy as np

from fairchance import plot

TITLES = (
    "1. What is true",
    "2. What the lender sees",
    "3. What a model believes",
    "4. With a few chances",
)
COLOURS = {"good": "#0072b2", "bad": "#d55e00", "not known": "#bbbbbb", "believed bad": "#e8b999"}
SHAPES = dict(zip(COLOURS, ("circle", "cross", "circle", "cross"), strict=True))


def panels():
    """Return a row for each applicant and panel."""
    rng = np.random.default_rng(5)
    n = 110
    # A group whose incomes are not on paper is as good as the others.
    overlooked = rng.random(n) < 0.35
    income = np.where(overlooked, rng.normal(-1.2, 0.35, n), rng.normal(0.5, 0.8, n))
    savings = rng.normal(0, 1, n)
    good = rng.random(n) < 1 / (1 + np.exp(-1.2 - 1.6 * np.where(overlooked, savings, income)))
    accepted = income > 0
    explored = ~accepted & (rng.random(n) < 0.15)
    truth = np.where(good, "good", "bad")
    shown = (
        truth,
        np.where(accepted, truth, "not known"),
        np.where(accepted, truth, "believed bad"),
        np.where(accepted | explored, truth, "not known"),
    )
    return [
        {"panel": title, "income": round(x, 2), "savings": round(y, 2), "state": str(state)}
        for title, states in zip(TITLES, shown, strict=True)
        for x, y, state in zip(income.tolist(), savings.tolist(), states, strict=True)
    ]


def draw():
    """Return the four panels in two rows."""
    bare = {"labels": False, "ticks": False, "grid": False, "domain": True}
    base = alt.Chart(alt.InlineData(values=panels()))
    dots = base.mark_point(size=45, filled=True, opacity=1).encode(
        x=alt.X("income:Q", axis=bare, title="income on paper →"),
        y=alt.Y("savings:Q", axis=bare, title="savings →"),
        color=alt.Color(
            "state:N",
            scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
            legend=alt.Legend(title=None, orient="bottom"),
        ),
        shape=alt.Shape("state:N", scale=alt.Scale(domain=[*SHAPES], range=[*SHAPES.values()])),
    )
    cut = base.mark_rule(strokeDash=[5, 3]).encode(x=alt.datum(0))
    one = alt.layer(dots, cut, width=290, height=200)
    heading = alt.Facet("panel:N", title=None, header={"labelFontSize": 14})
    return one.facet(facet=heading, columns=2).configure(aria=False)


if __name__ == "__main__":
    stem = Path(__file__).parent / "pictures" / "seen"
    plot.save(draw(), stem)
    stem.with_suffix(".png").unlink()

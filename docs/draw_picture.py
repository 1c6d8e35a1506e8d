"""Draw the picture of the README from the results of ``fairchance compare``.

Run ``fairchance compare adult-race --data-set acs-ca-2018-sample --repetitions 6 --methods
plain,certified --out results/picture``, then ``python docs/draw_picture.py results/picture
docs/certified-against-plain``.
"""

import sys
from pathlib import Path

import altair as alt
import numpy as np

from fairchance import plot
from fairchance_lab.experiments.comparison import (
    CEILING,
    LOGISTIC,
    population_fdr,
    population_utility,
)
from fairchance_lab.experiments.results import read_results

COLOURS = {"certified": "#0072b2", "plain (the paper's Algorithm 1)": "#d55e00"}


def panel(title, rows, bounds, below):
    """Return a panel with a line for each method, bands if there are any, and dashed bounds.

    ``below`` is how many pixels below a bound its name is, where no line crosses it.
    """
    domain = [0, 1.1 * max(row.get("high", row["y"]) for row in (*rows, *bounds))]
    y = alt.Y("y:Q", title=None, scale=alt.Scale(domain=domain, nice=False), axis={"format": "%"})
    scale = alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("round:Q", axis={"tickMinStep": 1, "grid": False}, scale=alt.Scale(nice=False)),
        color=alt.Color(
            "name:N", scale=scale, legend=alt.Legend(title=None, orient="bottom", symbolOpacity=1)
        ),
    )
    bands = "high" in rows[0]
    band = base.mark_area(opacity=0.2, clip=True).encode(y=y, y2="high:Q")
    limit = alt.Chart(alt.InlineData(values=bounds)).encode(y=y)
    name = limit.mark_text(align="right", dx=-3, dy=below)
    name = name.encode(x=alt.value("width"), text="name:N")
    lines = base.mark_line(strokeWidth=2.5, clip=True)
    lines = lines.encode(y=alt.Y("middle:Q" if bands else "y:Q"))
    layers = [*[band] * bands, lines, limit.mark_rule(strokeDash=[5, 3]), name]
    heading = alt.Title(title, anchor="start", offset=10)
    return alt.layer(*layers, title=heading, width=330, height=210)


def draw(folder, stem):
    """Write one picture: money earned and mistakes made by the policy of each round."""
    results = read_results(folder / "results.parquet")
    methods = list(results.methods)
    fdr, utility = population_fdr(results)[0], population_utility(results)[0]
    ceiling, logistic = (utility[methods.index(name)].mean() for name in (CEILING, LOGISTIC))
    earned, mistakes = [], []
    for label in COLOURS:
        row = methods.index(label.split()[0])
        low, middle, high = np.nanquantile(fdr[row], [0.1, 0.5, 0.9], axis=0)
        for t, share in enumerate(utility[row].mean(0) / ceiling):
            point = {"name": label, "round": t + 1}
            earned.append(point | {"y": float(share)})
            ends = {"y": low[t], "middle": middle[t], "high": high[t]}
            mistakes.append(point | {key: float(value) for key, value in ends.items()})
    known = [{"name": "ceiling", "y": 1.0}]
    known.append({"name": "logistic with all labels", "y": float(logistic / ceiling)})
    alpha = [{"name": "α, the bound", "y": float(results.alphas[0])}]
    left = panel("Earned, share of the ceiling", earned, known, 10)
    right = panel("Bad among the accepted (80 % of runs)", mistakes, alpha, -8)
    plot.save(left | right, stem)
    stem.with_suffix(".png").unlink()


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))

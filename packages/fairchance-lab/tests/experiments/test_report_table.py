"""One table in every format: the same numbers, and nothing that a format would obey."""

from __future__ import annotations

import csv
import io
import math
import re

import numpy as np
import pytest

from experiments.known_results import from_counts, make_results, row_of
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.all_tables import all_tables, overview
from fairchance_lab.experiments.report_table import Column, ReportTable, proportion
from fairchance_lab.runs import csv_text, write_tables

HOSTILE = (
    "50% & more_of #1",
    r"\input{/etc/passwd}",
    "{un}balanced}{",
    "a^b~c $x$",
    "[2cm] after a row",
    "* starred",
    '=HYPERLINK("x")',
    "@sum",
    "-1+2",
    "| bar | <b>",
    'quote "and, comma',
    "line\nend \x1b[31m",
)


def hostile():
    rows = [
        {"method": name, "label": name, "late": value, "late_standard_error": 1 / 3, "n": at}
        for at, (name, value) in enumerate(zip(HOSTILE, np.linspace(-1, 1 / 7, 12), strict=True))
    ]
    rows[3]["late"] = math.nan
    columns = (Column("method", "method_1 > α"), Column("late", "late & 5%", proportion(2)))
    return ReportTable("hostile", "100% of {names}", "α = 0.15", "A $note$.", columns, rows)


def unescaped(latex):
    r"""Return a body of LaTeX without what this library writes on purpose."""
    known = (
        r"\\(textbackslash|textasciicircum|textasciitilde|textbar|dots)\{\}|\\[{}$&#%_]"
        r"|\$(-|<|>|\\[a-zA-Z]+)\$|\{[\[\]*]\}"
    )
    return re.sub(known, "", latex)


def test_latex_has_nothing_unescaped():
    text = hostile().latex()
    assert text.isascii()
    lines = text.splitlines()
    body = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    assert len(body) == len(HOSTILE)
    for line in [lines[lines.index(r"\toprule") + 1], *body]:
        assert line.endswith(r" \\")
        rest = unescaped(line.removesuffix(r" \\"))
        assert rest.count("&") == 1  # between the columns
        assert not re.search(r"[\\{}$#%_^~\[*|<>]", rest), line
    caption = next(line for line in lines if line.startswith(r"\caption"))
    assert not re.search(r"[\\{}$#%_^~]", unescaped(caption[len(r"\caption{") : -1]))
    bare = re.sub(r"\\[{}]", "", text)
    depth = np.cumsum([(c == "{") - (c == "}") for c in bare])
    assert depth.min() == 0
    assert depth[-1] == 0
    assert [lines[0], lines[-1]] == [r"\begin{table}", r"\end{table}"]
    assert text.count("$") % 2 == text.count(r"\$") % 2
    # The escapes above are LaTeX's own: spelled out once, so that the regex is not its own proof.
    assert body[0].startswith(r"50\% \& more\_of \#1 & ")
    assert body[1].startswith(r"\textbackslash{}input\{/etc/passwd\} & ")
    assert body[4].startswith(r"{[}2cm{]} after a row & ")


def test_csv_reads_back_to_the_same_numbers_and_runs_nothing():
    table = hostile()
    (titles, *rows) = csv.reader(io.StringIO(csv_text(table)))
    assert titles == ["method", "label", "late", "late_standard_error", "n"]
    for row, want in zip(rows, table.rows, strict=True):
        value = float(row[2]) if row[2] else math.nan
        assert value == want["late"] or math.isnan(want["late"]) == (row[2] == "")
        assert float(row[3]) == want["late_standard_error"]  # in full
        assert int(row[4]) == want["n"]
        assert row[0][0] not in "=+-@\t\r"
        assert "\x1b" not in row[0]
    assert rows[6][0] == "'" + HOSTILE[6]


def test_markdown_keeps_its_columns():
    for line in hostile().markdown().splitlines()[2:-2]:
        assert len(re.findall(r"(?<!\\)\|", line)) == 3, line
        assert "\x1b" not in line
        assert not re.search(r"(?<!\\)<b>", line)


def test_what_belongs_to_a_number_is_shown_beside_it():
    row = {"x": -0.5, "x_low": -0.75, "x_high": 0.25, "y": 0.25, "y_runs": 1, "y_of_runs": 4}
    row |= {"z": 12.0, "z_standard_error": 1.0, "z_sd": 3.0, "u": math.nan, "u_standard_error": 1}
    form = proportion(2)
    assert Column("x", "x", form).shown(row) == ("−.50 (−.75 to .25)", "")
    assert Column("y", "y", form).shown(row) == (".25 (1/4)", "")
    assert Column("z", "z", "{:.0f}".format, sd=True).shown(row) == ("12 ± 1", "sd 3")
    assert Column("z", "z", "{:.0f}".format, error=False).shown(row) == ("12", "")
    assert Column("u", "u", form).shown(row) == Column("v", "v", form).shown(row) == ("–", "")


def test_every_table_is_written_with_its_numbers_in_full(rng, tmp_path):
    methods = ("plain", "both-fair", "ceiling")
    results = make_results(rng, methods, alphas=(0.1, 0.15), published="german_gender", n=200)
    written = write_tables([results], tmp_path)
    made = all_tables(results)
    assert {path.name for path in written} == {
        f"{table.name}.{ending}" for table in made for ending in ("csv", "tex", "md")
    }
    assert len(written) == 3 * len(made)
    for table in made:
        with (tmp_path / f"{table.name}.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for row, want in zip(rows, table.rows, strict=True):
            for key, value in want.items():
                if isinstance(value, float):
                    assert math.isnan(value) if row[key] == "" else float(row[key]) == value
        latex = (tmp_path / f"{table.name}.tex").read_text(encoding="utf-8")
        assert "Data: german, " in latex
        assert "5 repetitions of 8 rounds" in latex
    assert r"$\alpha$ = 0.15" in (tmp_path / "overview-alpha-0.15.tex").read_text()
    one = write_tables([results, results], tmp_path / "two")
    assert len(one) == 2 * len(written)
    revenue = tables.summary(results, "revenue").estimate
    row = row_of(overview(results, 0), "both-fair")
    assert row["revenue"] == revenue.mean[0, 1]
    assert row["revenue_sd"] == tables.summary(results, "revenue").pooled_sd[0, 1]


def test_groups_with_hostile_names_stay_text():
    shape = (1, 1, 2, 2, 2)
    counts = {name: np.full(shape, 10) for name in ("n_people", "n_good", "n_accepted")}
    counts["n_accepted_good"] = np.full(shape, 10)
    results = from_counts(counts, ("=1+1",), ["=cmd", "a&b"])
    text = csv_text(overview(results, 0))
    assert not re.search(r"(^|,)\"?[=@]", text, re.MULTILINE)
    for table in all_tables(results):
        assert "&b" not in table.latex().replace(r"\&", "")


@pytest.mark.parametrize("decimals", [1, 3])
def test_proportions_are_rounded_like_other_numbers(rng, decimals):
    for value in rng.normal(size=50):
        text = proportion(decimals)(value).replace("−", "-")
        assert float(text) == round(value, decimals)

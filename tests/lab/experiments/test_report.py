"""The report is one file, and its sentences follow the numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from lab.experiments.test_tables import from_counts, make_results
from secondlook.errors import InputError
from secondlook.lab.experiments import figures, findings, tables
from secondlook.lab.experiments.all_tables import (
    all_tables,
    beside_the_paper,
    overview,
    parity_costs,
)
from secondlook.lab.experiments.certificates import summarise_certificates
from secondlook.lab.experiments.comparison import compared
from secondlook.lab.experiments.figures import MANY, families
from secondlook.lab.experiments.methods import METHODS, REFERENCES
from secondlook.lab.experiments.released import DEVIATIONS, SWITCHES
from secondlook.lab.experiments.report import write_report
from secondlook.lab.experiments.results import SHARES, Failure
from secondlook.lab.experiments.runner import Run, run_experiment
from secondlook.lab.experiments.spec import Experiment
from secondlook.lab.experiments.world_spec import WorldSpec
from secondlook.lab.simulate.populations import Lender

VOID = {"meta", "br", "link"}
OUTCOME = [{"rule": "outcome", "good": 0.9, "bad": 0.1}]


def crafted(accepted, fdr=0.1, alphas=(0.15,), noise=2, size=(12, 8), **experiment):
    """Return results in which methods accept about as many people, with about this FDR."""
    rng = np.random.default_rng(1)
    methods = tuple(accepted)
    shape = (len(alphas), len(methods), *size, 2)
    rates = fdr if isinstance(fdr, dict) else dict.fromkeys(methods, fdr)
    mean = np.array([accepted[name] for name in methods])[:, None, None, None]
    share = np.array([rates[name] for name in methods])[:, None, None, None]
    n = np.maximum(np.broadcast_to(mean, shape) + rng.integers(-noise, noise + 1, shape), 0)
    bad = np.clip(np.rint(n * share).astype(int) + rng.integers(-1, 2, shape), 0, n)
    people = np.full(shape, 1000)
    counts = {
        "n_people": people,
        "n_good": people // 2,
        "n_accepted": n,
        "n_accepted_good": n - bad,
    }
    return from_counts(counts, methods, "ab", alphas, **experiment)


def findings_of(results):
    return " ".join(findings.findings(results))


class Page(HTMLParser):
    """Collects tags, ids and links, and checks that tags are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.svgs = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [v for k, v in attrs.items() if k in ("href", "src", "xlink:href")]
        self.svgs += [attrs] if tag == "svg" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("report")
    methods = ("plain", "both-fair", "no-exploration", "opt-offline")
    first = make_results(rng, methods, size=(4, 6), n=300, published="german_gender")
    second = make_results(rng, methods[:2], "abc", (0.1, 0.15), size=(4, 6), n=300)
    second.about["data"]["source"] = "This & <b>that</b>."
    (written,) = write_report([first, second], folder / "out" / "report.html")
    return written.read_text(encoding="utf-8"), first


def test_report_is_one_well_formed_file(report):
    text, _ = report
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    inside = [link for link in page.links if link.startswith("#")]
    assert inside == page.links  # nothing is loaded
    assert {link[1:] for link in inside} <= set(page.ids)
    assert not {"script", "link", "img"} & set(page.tags)
    references = set(re.findall(r"url\(#([^)]+)\)", text))
    assert references
    assert references <= set(page.ids)
    assert not re.findall(r"url\((?!#)|@import", text)


def test_figures_have_labels_and_tables_have_captions(report):
    text, _ = report
    page = Page(text)
    assert len(page.svgs) == 8 + 9
    assert all(svg["role"] == "img" and len(svg["aria-label"]) > 40 for svg in page.svgs)
    assert page.tags.count("figcaption") == len(page.svgs)
    assert page.tags.count("caption") == page.tags.count("table") >= 10


def test_separate_figure_files(rng, tmp_path, monkeypatch):
    def draw_two(results):
        return {"revenue": figures.revenue(results), "exploration": figures.exploration(results)}

    monkeypatch.setattr("secondlook.lab.experiments.figures.draw_all", draw_two)
    first, second = make_results(rng, ("plain",)), make_results(rng, ("both-fair",))
    written = write_report([first, second], tmp_path / "report.html", tmp_path / "figures")
    assert all(path.is_file() for path in written)
    assert {path.suffix for path in written[1:]} == {".svg", ".png"}
    assert len(written) == 1 + 2 * (2 + 2)
    assert len({path.name for path in written}) == len(
        written
    )  # both experiments are named "a test"
    for path in written[1:]:
        if path.suffix == ".svg":
            assert path.read_text(encoding="utf-8").count("<svg") == 1
        else:
            assert path.read_bytes().startswith(b"\x89PNG")


def test_single_file_without_a_folder_for_figures(rng, tmp_path, without_figures):
    alone = tmp_path / "out" / "alone.html"
    assert write_report([make_results(rng)], alone, None) == [alone]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [alone]


def test_sources_are_escaped(report):
    text, _ = report
    assert "This &amp; &lt;b&gt;that&lt;/b&gt;." in text
    assert "A source." in text


def test_table_with_the_papers_numbers(report):
    text, results = report
    table = re.search(r"<table>(?:(?!</table>).)*Beside the paper.*?</table>", text, re.DOTALL)[0]
    row = re.search(r"<tr><th[^>]*>Both-fair</th>.*?</tr>", table)[0]
    mean = tables.summary(results, "revenue")
    assert f"{findings.thousands(mean.estimate.mean[0, 1])} ± " in row
    assert f"sd {findings.thousands(mean.pooled_sd[0, 1])}" in row
    assert '<td>8.8<span class="more">sd 4.1</span></td>' in row
    assert '<td>.11<span class="more">sd .05</span></td>' in row
    assert "kilbertus (not run)" in table
    assert "standard deviation over rounds and repetitions" in table


def test_no_table_of_the_paper_without_a_published_table(rng, tmp_path, without_figures):
    write_report([make_results(rng)], tmp_path / "r.html")
    assert "Beside the paper" not in (tmp_path / "r.html").read_text()


def test_revenue_without_its_sign_is_labelled(rng, tmp_path, without_figures):
    results = make_results(rng, published="german_gender", switches=["C1", "E2"])
    write_report([results], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "Revenue without its sign" in text
    unsigned = tables.summary(results, "revenue", absolute_revenue=True).estimate.mean[0, 0]
    assert f"<td>{findings.thousands(unsigned)} ± " in text


def test_report_needs_results(tmp_path):
    with pytest.raises(InputError, match="at least one experiment, got none"):
        write_report([], tmp_path / "r.html")


def test_description_of_the_run(rng):
    text = findings.what_was_run(crafted({"plain": 50, "fair-clf": 40}))
    assert text.startswith("2 methods decided 8 rounds of 2,000 people each, in 12 repetitions")
    assert text.endswith("Data: A source.")
    assert "for each of α = 0.1 and 0.2, with" in findings.what_was_run(
        crafted({"plain": 50}, alphas=(0.1, 0.2))
    )


@pytest.mark.parametrize(
    ("fdr", "expected"),
    [(0.3, "is above α = 0.150 for “Plain” (0.3"), (0.05, "is below α = 0.150 for “Plain” (0.0")],
)
def test_fdr_above_or_below_alpha(fdr, expected):
    assert expected in findings_of(crafted({"plain": 100}, fdr))
    assert f"in {'1.000' if fdr > 0.15 else '0.000'} of its rounds" in findings_of(
        crafted({"plain": 100}, fdr)
    )


def test_fdr_around_alpha():
    text = findings_of(crafted({"plain": 100}, 0.15, size=(5, 3)))
    assert "not measurably different from α = 0.150 for “Plain”" in text


def test_few_repetitions_give_intervals_and_no_verdict():
    """A difference that anyone can see is not called unmeasurable because repetitions are few."""
    results = crafted(
        {"plain": 100, "no-exploration": 50, "opt-offline": 60},
        {"plain": 0.32, "no-exploration": 0.1, "opt-offline": 0.1},
        size=(3, 8),
        noise=20,
        published="german_gender",
        focus="a",
    )
    text = findings_of(results)
    assert text.count("too few repetitions to tell") == 5
    assert "measurabl" not in text
    fdr = tables.summary(results, "pooled_fdr").estimate[0, 0]
    assert f"({findings.rate(fdr.mean)}; {findings.rate(fdr.low)} to " in text
    assert "measurabl" not in findings_of(crafted({"plain": 90}, size=(4, 8), alphas=(0.1, 0.2)))


@pytest.mark.parametrize("other", ["no-exploration", "alpha-at-once"])
def test_comparison_follows_the_numbers(other):
    def sentence(plain, accepted, noise=2):
        results = crafted({"plain": plain, other: accepted}, noise=noise)
        sentences = findings.findings(results)
        return next(s for s in sentences if f"“Plain” against “{other.capitalize()}”" in s)

    assert re.search(r"\d thousand more per round \(95 % interval \d", sentence(100, 80))
    assert re.search(r"\d thousand less per round \(95 % interval −\d", sentence(80, 100))
    assert "no measurable difference" in sentence(90, 90, noise=20)
    assert "no measurable difference" not in sentence(100, 80)


def test_best_variant():
    for best in ("exploit-fair", "both-fair"):
        results = crafted({"plain": 50, "exploit-fair": 60, "both-fair": 60} | {best: 90})
        assert findings.best_variant(results, 0) == best
        said = findings_of(results)
        assert f"Of the 3 variants of the paper that were run, “{best.capitalize()}” earned" in said
    assert findings.best_variant(crafted({"fair-clf": 50}), 0) is None
    assert "earned" not in findings_of(crafted({"fair-clf": 50}))


def test_costs_of_parity_at_equal_flexibility():
    """A group of which 100 are accepted at an FDR of .1 brings 13 thousand."""
    shared = {"plain": 100, "fair-shared-cut": 60, "fair-fit": 100}
    cuts = {"per-group-cuts": 140, "exploit-fair": 120}
    (table,) = parity_costs(crafted(shared | cuts), 0)
    assert "Algorithm 1" in table.title
    assert [row["comparison"] for row in table.rows] == [
        "one cut: parity at the cut",
        "one cut: parity in the fit",
        "cut per group: parity at the cut",
        "no parity: cut per group",
    ]
    for row, want in zip(table.rows, (-10.4, 0, -5.2, 10.4), strict=True):
        assert row["revenue"] == pytest.approx(want, abs=0.7)
        assert row["revenue_low"] <= row["revenue"] <= row["revenue_high"] < row["revenue_low"] + 2
    assert len(parity_costs(crafted(shared | {"clf-plain": 90, "clf-fair-fit": 80}), 0)) == 2
    assert not parity_costs(crafted({"plain": 100, "exploit-fair": 100}), 0)


def test_share_of_a_reference_needs_positive_revenue():
    near = findings_of(crafted({"plain": 80, "opt-offline": 100}))
    assert re.search(r"thousand less per round .*, (7\d|8\d)\u00a0% of its revenue", near)
    beyond = findings_of(crafted({"plain": 120, "opt-offline": 100}))
    assert re.search(r"thousand more per round .*, 1[12]\d\u00a0% of its revenue", beyond)
    losing = findings_of(
        crafted({"plain": 80, "opt-offline": 100}, {"plain": 0.1, "opt-offline": 0.6})
    )
    assert "% of its revenue" not in losing


def test_share_of_the_ceiling_is_shown_beside_that_of_logistic_regression():
    found = findings_of(
        crafted({"plain": 60, "opt-offline": 70, "logistic-all-labels": 80, "ceiling": 120})
    )
    shares = re.findall(r"reference “(.*?)”.*?, (\d+)\u00a0% of its revenue", found)
    assert [name for name, _ in shares] == ["Ceiling", "Logistic-all-labels"]
    assert int(shares[0][1]) < 60 < int(shares[1][1]) < 90


def test_rounds_without_acceptances_are_counted():
    assert "no one was accepted" not in findings_of(crafted({"plain": 50}))
    assert "In 96 of 96 rounds no one was accepted." in findings_of(crafted({"plain": 0}, noise=0))


def test_one_repetition_has_no_intervals():
    text = findings_of(crafted({"plain": 100, "no-exploration": 50}, size=(1, 8)))
    assert "known without an interval" in text
    assert "with no interval" in text
    assert "more per round" not in text


def test_sweep_counts_broken_bounds():
    text = findings_of(crafted({"plain": 200}, 0.12, alphas=(0.05, 0.10, 0.15, 0.2)))
    assert "Of the 4 bounds α tried, the pooled FDR was measurably above α at 2 for “Plain”" in text


@pytest.mark.parametrize(
    ("published", "data", "other"),
    [
        ("german_gender", "german", False),
        ("german_gender", "lender", True),
        ("adult_race", "adult-ca-2019", False),
        ("adult_race", "german", True),
        (None, "lender", False),
    ],
)
def test_remark_on_other_data_than_the_papers(published, data, other):
    results = crafted({"plain": 50}, published=published)
    results.about["data"]["name"] = data
    assert ("The paper used other data" in " ".join(findings.remarks(results))) == other


def test_switches_are_described():
    text = " ".join(findings.remarks(crafted({"plain": 50}, switches=["C1", "Z9"])))
    assert "C1 (the four variants" in text
    assert "Z9." in text
    beside = crafted({"plain": 50}, published="german_gender")
    assert "No deviation" in " ".join(findings.remarks(beside))
    assert "No deviation" not in " ".join(findings.remarks(crafted({"plain": 50})))


def test_known_outcomes_of_the_rejected_are_not_called_hidden():
    plain, known = (
        " ".join(findings.remarks(crafted({"plain": 50}, switches=on))) for on in ([], ["A1"])
    )
    assert "known all the same" in known
    assert "known all the same" not in plain


@pytest.mark.parametrize(
    ("accepted", "verdict"), [(20, "not measurably different"), (60, "not reproduced for “Plain”")]
)
def test_levels_are_compared_with_the_papers(accepted, verdict):
    """Accepting 2 · 20 people with 4 bad earns 5.2 thousand and prints 6.4; 2 · 60 earn 15.6."""
    results = crafted({"plain": accepted, "fair-clf": 5}, published="german_gender")
    (sentence,) = (text for text in findings.findings(results) if text.startswith("Levels"))
    assert verdict in sentence
    earned = tables.summary(results, "revenue").estimate.mean[0, 0]
    assert f"“Plain” {findings.thousands(earned)} (" in sentence
    assert "), paper 6.4" in sentence
    results.about["data"]["name"] = "lender"
    assert not [text for text in findings.findings(results) if text.startswith("Levels")]


def test_reasons_follow_the_options_of_a_setting():
    results = crafted({"plain": 50}, published="german_gender")
    assert "rows weighted" in " ".join(overview(results, 0).remarks)
    results.about["settings"][0]["options"] = {"weights": "none"}
    said = " ".join(overview(results, 0).remarks)
    assert "rows weighted" not in said
    assert "set: weights = none" in said


def test_no_sentence_about_a_run_as_released_is_false():
    names = ("plain", "exploit-fair", "fair-clf")
    results = crafted(dict.fromkeys(names, 50), published="german_gender", switches=list(SWITCHES))
    said = " ".join(overview(results, 0).remarks).partition("fair-clf")[0]
    for name in SWITCHES:
        assert DEVIATIONS[name].ours not in said
        assert name in said


def test_remark_on_a_past_that_chose_by_the_outcome():
    def remarks(past, **accepted):
        named = {name.replace("_", "-"): n for name, n in accepted.items()}
        return " ".join(findings.remarks(crafted(named, world={"past": past})))

    assert "exploration can hardly help." in remarks(OUTCOME, plain=50)
    assert "hardly help." in remarks(OUTCOME, plain=50, no_exploration=90)
    assert "it did increase revenue here" in remarks(OUTCOME, plain=90, no_exploration=50)
    assert "hardly help" not in remarks([*OUTCOME, {"rule": "group"}], plain=50)
    assert "hardly help" not in remarks([{"rule": "cutoff"}], plain=50)


def test_differences_are_compared_with_chance():
    shape = (1, 2, 10, 8, 2)
    people = np.full(shape, 400)
    rng = np.random.default_rng(0)
    counts = {"n_people": people, "n_good": people // 2}
    for apart, near in (([0.3, 0.3], 2), ([0.3, 0.6], 0)):
        counts["n_accepted_good"] = rng.binomial(people // 2, apart)
        counts["n_accepted"] = counts["n_accepted_good"]
        text = findings_of(from_counts(counts, ["plain", "no-exploration"], "ab"))
        assert text.count(f"for {near} of 2 methods that is more than two thirds") == 2


NAMES = tuple(name for name in (*METHODS, *REFERENCES) if "quick" not in name)
CROWD = tuple(
    name for name in NAMES if name.startswith(("plain", "certified", "greedy", "random", "kilbert"))
)


def with_failures(results, method, repetitions):
    """Return results in which a method failed in some repetitions."""
    lost = (results.columns["method"] == method) & np.isin(
        results.columns["repetition"], list(repetitions)
    )
    columns = {
        name: np.where(lost, 0, values) if name.startswith("n_") else values
        for name, values in results.columns.items()
    }
    failures = tuple(
        Failure("α = 0.15", method, k, 1000 + k, f"FloatingPointError: seed {1000 + k} diverged.")
        for k in repetitions
    )
    return replace(results, columns=columns, failures=failures)


def row_of(table, name):
    """Return a method's row."""
    return next(row for row in table.rows if row["method"] == name)


def test_the_group_an_experiment_is_about_has_a_column(rng):
    results = make_results(rng, n=300, focus="b")
    row = overview(results, 0).rows[1]
    good, accepted = (
        results.count(name)[0, 1, :, -tables.late_rounds(results) :, 1]
        for name in ("n_good", "n_accepted_good")
    )
    by_hand = np.mean([np.nanmean(a / g) for a, g in zip(accepted, good, strict=True)])
    assert row["focus_tpr"] == pytest.approx(by_hand)
    assert "TPR b" in overview(results, 0).markdown()
    assert "focus_tpr" not in overview(make_results(rng), 0).rows[1]


def test_overview_of_all_methods(rng):
    results = make_results(rng, ("plain", "greedy-aligned"), size=(6, 5), n=300)
    table = overview(results, 0)
    for i, name in enumerate(results.methods):
        row = row_of(table, name)
        cells = table.cells(row)
        for column, (text, _) in zip(table.columns[1:], cells[1:], strict=True):
            estimate = tables.summary(results, column.key).estimate[0, i]
            assert row[column.key] == estimate.mean
            assert row[f"{column.key}_standard_error"] == estimate.standard_error
            assert text.startswith(column.form(estimate.mean))
            assert (" ± " in text) == column.error
    assert "why_different" not in table.rows[0]


def test_rows_of_the_paper_with_reasons(rng):
    names = ("plain", "kilbertus-icml", "kilbertus-aligned", "greedy-aligned")
    results = make_results(rng, names, size=(3, 4), n=300, published="german_gender")
    table = overview(results, 0)
    for name in ("kilbertus-icml", "kilbertus-aligned"):
        row = row_of(table, name)
        assert table.cells(row)[-1] == ("9.7", "")
        assert row["published_fdr"] == 0.24
        assert "a gradient for each weight" in row["why_different"]
        assert any(name in text and row["why_different"] in text for text in table.remarks)
    row = row_of(table, "greedy-aligned")
    assert (table.cells(row)[-1], row["why_different"]) == (("–", ""), "")
    rows = [row["method"] for row in beside_the_paper(results, 0).rows]
    assert "kilbertus (not run)" not in rows
    assert "yang (not run)" in rows


def test_fdr_of_the_paper_is_compared_with_the_mean_of_rounds():
    """10 of 10 accepted are bad in one round, 0 of 90 in the other: 0.5 per round, 0.1 pooled."""
    accepted = np.array([10, 90]).reshape(1, 1, 1, 2, 1) * np.ones((1, 1, 2, 1, 1), int)
    counts = {
        "n_people": np.full(accepted.shape, 100),
        "n_good": np.full(accepted.shape, 90),
        "n_accepted": accepted,
        "n_accepted_good": np.where(accepted == 90, 90, 0),
    }
    results = from_counts(counts, ("plain",), "a", published="german_gender")
    row = row_of(overview(results, 0), "plain")
    assert (row["fdr"], row["pooled_fdr"]) == (0.5, 0.1)
    row = row_of(beside_the_paper(results, 0), "plain")
    assert (row["fdr"], row["published_fdr"]) == (0.5, 0.11)


def test_acceptance_is_the_share_of_all_people():
    people = np.array([[100, 300], [50, 50]]).reshape(1, 1, 1, 2, 2)
    accepted = np.array([[50, 50], [0, 100]]).reshape(1, 1, 1, 2, 2)
    counts = {"n_people": people, "n_good": people, "n_accepted": accepted}
    counts["n_accepted_good"] = accepted
    results = from_counts(counts, ("plain",), "ab")
    rates = tables.per_round(results, "acceptance_rate")
    assert rates.ravel().tolist() == [0.25, 1.0]
    assert tables.per_repetition(results, "pooled_acceptance_rate").ravel().tolist() == [0.4]


def test_failures_have_seeds_and_are_left_out_of_means(rng, tmp_path, without_figures):
    names = ("plain", "fairall-aligned", "no-exploration", "ceiling")
    whole = make_results(rng, names, size=(8, 5), n=300)
    results = with_failures(whole, "fairall-aligned", (2, 5))
    assert (
        findings.failed_in(results, "fairall-aligned", 0) == "failed in 2 of 8 (seeds 1002, 1005)"
    )
    assert findings.failed_in(results, "plain", 0) == ""
    (sentence,) = findings.failures(results)
    assert "failed in 2 of 8 (seeds 1002, 1005); its numbers are from the other" in sentence
    assert "FloatingPointError: seed 1002 diverged. (1 more reasons)" in sentence
    kept = [0, 1, 3, 4, 6, 7]
    for metric in ("revenue", "pooled_fdr", "above_alpha", "acceptance_rate"):
        all_eight = tables.per_repetition(whole, metric)[0, 1]
        estimate = tables.summary(results, metric).estimate[0, 1]
        expected = all_eight[kept]
        assert estimate.mean == pytest.approx(expected.mean())
        assert estimate.standard_error == pytest.approx(expected.std(ddof=1) / np.sqrt(6))
    page = write_report([results], tmp_path / "report.html")[0].read_text(encoding="utf-8")
    assert "Methods that failed" in page
    assert '<th scope="row">Fairall-aligned (2 of 8 failed)</th>' in page
    assert findings.failures(whole) == []
    assert not any("failed" in name for name, *_ in overview(whole, 0).texts())


def test_report_on_a_method_that_always_failed(rng, tmp_path):
    results = make_results(rng, ("plain", "fairall-aligned"), size=(3, 4), n=300)
    results = with_failures(results, "fairall-aligned", range(3))
    page = write_report([results], tmp_path / "report.html")[0].read_text(encoding="utf-8")
    assert "failed in 3 of 3 (seeds 1000, 1001, 1002); it has no numbers." in page
    assert "other repetitions" not in page
    assert "nan" not in page.lower().replace("finan", "")
    assert findings.best_variant(with_failures(results, "plain", range(3)), 0) is None


def test_message_if_all_but_references_failed(rng):
    names = ("plain", "fairall-aligned", "ceiling")
    results = with_failures(make_results(rng, names, size=(3, 4), n=50), "plain", range(3))
    assert findings.nothing_found(results) == ""
    assert "each failed" in findings.nothing_found(with_failures(results, names[1], range(3)))
    assert findings.nothing_found(with_failures(results, names[1], range(2))) == ""
    references = make_results(rng, names[2:], size=(3, 4), n=50)
    assert findings.nothing_found(references) == ""


def test_long_lists_of_seeds_are_shortened(rng):
    results = make_results(rng, ("plain",), size=(9, 2), n=50)
    results = with_failures(results, "plain", range(7))
    assert findings.failed_in(results, "plain", 0).endswith(
        "(seeds 1000, 1001, 1002, 1003, 1004, …)"
    )


def test_assumptions_are_grouped(rng):
    names = ("plain", "extrapolation-published", "extrapolation-aligned", "wei-finite-aligned")
    sentences = findings.assumptions(make_results(rng, names, size=(1, 2)))
    assert len(sentences) == 2
    assert sentences[0].startswith(
        "“Extrapolation-published” and “Extrapolation-aligned” assume: At"
    )
    assert sentences[1].startswith("“Wei-finite-aligned” assumes: ")


def test_every_method_has_a_family_of_at_most_eight():
    members = families(NAMES)
    assert sorted(i for places in members.values() for i in places) == list(range(len(NAMES)))
    assert max(map(len, members.values())) <= 8
    assert "Others" not in members
    assert list(families(["own:make"] * 9)) == ["Others (1)", "Others (2)"]


@pytest.fixture(scope="module")
def crowd():
    results = make_results(np.random.default_rng(2), CROWD, size=(3, 5), n=200)
    assert len(CROWD) > MANY
    return results, figures.draw_all(results)


def texts_of(figure):
    return [t for t in figure.findobj(match=lambda a: hasattr(a, "get_text")) if t.get_text()]


def test_many_methods_are_all_named_and_no_text_is_cut_off(crowd):
    _, drawn = crowd
    for name, figure in drawn.items():
        figure.canvas.draw()
        width, height = figure.canvas.get_width_height()
        shown = " ".join(text.get_text() for text in texts_of(figure)).lower()
        assert all(method in shown for method in CROWD), name
        for text in texts_of(figure):
            if any(letter.isalpha() for letter in text.get_text()):
                box = text.get_window_extent()
                inside = box.x0 > -2 and box.y0 > -2 and box.x1 < width + 2 and box.y1 < height + 2
                assert inside, (name, text.get_text())


def test_panels_have_at_most_eight_different_lines(crowd):
    results, drawn = crowd
    for name in ("revenue", "fdr", "differences", "exploration"):
        for axes in drawn[name].axes:
            lines = [line for line in axes.lines if not line.get_label().startswith("_")]
            assert 0 < len(lines) <= 8
            looks = {(n.get_color(), str(n.get_linestyle()), n.get_marker()) for n in lines}
            assert len(looks) == len(lines), axes.get_title("left")
    line = drawn["revenue"].axes[0].lines[0]
    i = [name.capitalize() for name in CROWD].index(line.get_label())
    means = tables.series(results, "revenue").mean[0, i]
    assert np.asarray(line.get_ydata()) == pytest.approx(means)


def test_settings_of_a_method_share_a_colour(crowd):
    results, _ = crowd
    published, aligned, icml = (
        figures.style(results, f"kilbertus-{setting}")
        for setting in ("published", "aligned", "icml")
    )
    assert published.colour == aligned.colour == icml.colour
    assert len({published.line, aligned.line, icml.line}) == 3
    assert figures.style(results, "kilbertus-semi-aligned").colour != aligned.colour


def test_sweep_with_many_methods(rng):
    results = make_results(rng, NAMES[: MANY + 1], "abcd", (0.1, 0.15), size=(2, 3), n=80)
    drawn = figures.draw_all(results)
    for name in ("settings", "true-positive-rates"):
        drawn[name].canvas.draw()
    assert len(drawn["settings"].axes) == 2 * len(families(results.methods))


def test_failed_runs_are_not_counted(rng):
    names = ("certified", "ceiling")
    results = make_results(rng, names, size=(6, 5), n=300)
    shares = {name: rng.random(len(results)) for name in SHARES}
    certified = results.columns["n_people"] * (results.columns["round"] > 2)
    columns = results.columns | shares | {"n_certified": certified}
    whole = replace(results, columns=columns)
    lost = (columns["method"] == "certified") & (columns["repetition"] == 4)
    failed = with_failures(whole, "certified", (4,))
    unknown = {name: np.where(lost, np.nan, failed.columns[name]) for name in SHARES}
    failed = replace(failed, columns=failed.columns | unknown)
    before, after = compared(whole)[0], compared(failed)[0]
    assert (before.certified.runs, after.certified.runs) == (6, 5)
    assert (before.uncertified.rounds, after.uncertified.rounds) == (12, 10)
    kept = whole.columns["repetition"] != 4
    five = replace(whole, columns={name: values[kept] for name, values in whole.columns.items()})
    assert after.earned["whole"].share == pytest.approx(compared(five)[0].earned["whole"].share)
    assert summarise_certificates(failed, "certified", 0) == summarise_certificates(
        five, "certified", 0
    )
    assert (
        summarise_certificates(with_failures(whole, "certified", range(6)), "certified", 0).runs
        == 0
    )


def test_a_varied_option_in_sentences_tables_and_a_figure():
    """A method that the option does not change is shown once, and is level in the figure."""
    world = WorldSpec("lender", n_batch=80, n_rounds=3, past=({"rule": "policy"},))
    experiment = Experiment(
        "x",
        world,
        ("plain", "mine", "opt-offline"),
        classifier={"paper_text": True, "coverage": "mean-past-score"},
        variants={"mine": {"method": "explore-fair", "weight_cap": 7}},
        vary={"slack": (0.0, 0.001)},
        repetitions=2,
    )
    results = run_experiment(experiment, Lender(), Run(jobs=1))
    assert results.settings == ("slack = 0.0", "slack = 0.001")
    assert (results.main, results.alphas) == (1, (0.15, 0.15))
    assert "α = 0.15 and each of slack = 0.0 and 0.001" in findings.what_was_run(results)
    remarks = " ".join(findings.remarks(results))
    for text in (
        "paper_text is on",
        "constrain_fit = true; coverage = mean-past-score (plain and mine); strategy_reading = "
        "product (mine); weight_cap = none (plain); first_round = cut (plain and mine).",
        "“mine” is explore-fair with weight_cap = 7.",
        "does not change “OPT-OFFLINE, all outcomes of S_0”, which ran once, with slack = 0.001.",
    ):
        assert text in remarks
    found = findings.findings(results)
    about_one = [s for s in found if s.startswith("At slack = 0.001: ")]
    assert "“mine” earned most with slack = 0.0" in " ".join(found)
    assert all("earned most with" in s or "looks a little" in s for s in found[len(about_one) :])
    for table in all_tables(results):
        assert ("slack = 0.0" in table.setting) or table.name.endswith("-by-slack"), table.name
    made = {table.name: table for table in all_tables(results)}
    named = {name: [row["method"] for row in table.rows] for name, table in made.items()}
    assert named["overview-slack-0.0"] == ["plain", "mine"]
    assert named["overview-slack-0.001"] == list(experiment.methods)
    by_slack = made["revenue-by-slack"]
    assert [column.title for column in by_slack.columns] == ["method", *results.settings]
    assert np.isnan(by_slack.rows[2]["revenue_slack_0.0"])
    figure = figures.draw_all(results)["settings"]
    level = figure.axes[0].lines[2].get_ydata()
    assert level[0] == level[1] == by_slack.rows[2]["revenue_slack_0.001"]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["0.0", "0.001"]


def test_whether_the_past_policy_kept_alpha_is_judged_over_repetitions(rng):
    """Pooled people of all repetitions would look surer than they are."""
    results = make_results(rng, ("plain",), size=(6, 4), n=300)
    for name, share in {"n_past": 1.0, "n_past_accepted": 0.5, "n_past_accepted_good": 0.4}.items():
        results.count(name)[0, 0, :, 0] = np.round(share * np.array([[100], [110]] * 3))
    said = " ".join(findings.findings(results))
    good, accepted = (
        results.count(name)[0, 0, :, 0].sum(-1) for name in ("n_accepted_good", "n_accepted")
    )
    fdr, rate = tables.over_repetitions(1 - good / accepted, axis=0), findings.rate
    assert f"FDR of {rate(fdr.mean)} ({rate(fdr.low)} to {rate(fdr.high)})" in said
    assert f"The past accepted {rate(0.5)} with an FDR of {rate(0.2)}" in said

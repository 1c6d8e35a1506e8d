"""Programs of lenders, made once and copied for each test."""

from __future__ import annotations

import shutil

import pytest

from cli import hostile_lender as hostile
from cli.lender_files import start
from fairchance.ledger import Program


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return a folder with a program of 400 past applicants."""
    folder = tmp_path_factory.mktemp("lender")
    start(f"sqlite:///{folder}/lender.db", folder)
    return folder


@pytest.fixture
def lender(made, tmp_path, monkeypatch):
    """Return a copy of the program in the current folder."""
    for file in made.glob("lender.db*"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    url = f"sqlite:///{tmp_path}/lender.db"
    monkeypatch.setenv("FAIRCHANCE_LEDGER", url)
    return Program.open(url)


@pytest.fixture(scope="session")
def hostile_lender(tmp_path_factory):
    """Return the URL of a program, the program, its batches and the erased applicants."""
    return hostile.start(tmp_path_factory.mktemp("hostile"))

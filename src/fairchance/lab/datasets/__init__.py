"""Data sets: bundled, downloaded, or read from your own files."""

from fairchance.lab.datasets.acs import load_acs_income
from fairchance.lab.datasets.catalogue import CATALOGUE, load
from fairchance.lab.datasets.fico import load_fico
from fairchance.lab.datasets.files import read_table
from fairchance.lab.datasets.german import load_german

__all__ = ["CATALOGUE", "load", "load_acs_income", "load_fico", "load_german", "read_table"]

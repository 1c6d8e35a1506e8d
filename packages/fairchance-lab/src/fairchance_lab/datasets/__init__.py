"""Data sets: bundled, downloaded, or read from your own files."""

from fairchance_lab.datasets.acs import load_acs_income
from fairchance_lab.datasets.catalogue import CATALOGUE, load
from fairchance_lab.datasets.fico import load_fico
from fairchance_lab.datasets.files import read_table
from fairchance_lab.datasets.german import load_german

__all__ = ["CATALOGUE", "load", "load_acs_income", "load_fico", "load_german", "read_table"]

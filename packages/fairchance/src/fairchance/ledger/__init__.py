"""A durable record of decisions and outcomes that can be verified.

``Program`` decides and records, ``summarise`` counts rounds, outcomes and mistakes,
``check_health`` compares them with their bounds, and ``verify`` checks the record and makes its
decisions again. ``ledger.base`` has the contract of a ledger.
"""

from fairchance.errors import InputError, to_install

try:
    import sqlalchemy as _sqlalchemy
except ImportError as error:
    raise InputError(
        f"a ledger needs SQLAlchemy and Alembic; {to_install('ledger')} installs them."
    ) from error

from fairchance.ledger.chain import Checkpoint
from fairchance.ledger.health import check_health
from fairchance.ledger.program import Program
from fairchance.ledger.sql import SqlLedger
from fairchance.ledger.summary import summarise
from fairchance.ledger.verification.walk import Verification, verify

__all__ = [
    "Checkpoint",
    "Program",
    "SqlLedger",
    "Verification",
    "check_health",
    "summarise",
    "verify",
]

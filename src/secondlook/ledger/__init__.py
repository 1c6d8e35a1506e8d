"""A durable record of decisions and outcomes, which proves itself.

``Program`` decides on the record, ``summarise`` says how it stands, ``verify`` checks it. The
contract is in ``ledger.base``.
"""

from secondlook.errors import InputError, to_install

try:
    import sqlalchemy as _sqlalchemy  # noqa: F401
except ImportError as error:
    raise InputError(
        f"a ledger needs SQLAlchemy and Alembic; {to_install('ledger')} installs them."
    ) from error

from secondlook.ledger.chain import Checkpoint
from secondlook.ledger.program import Program
from secondlook.ledger.sql import SqlLedger
from secondlook.ledger.summary import summarise
from secondlook.ledger.verification.walk import Verification, verify

__all__ = [
    "Checkpoint",
    "Program",
    "SqlLedger",
    "Verification",
    "summarise",
    "verify",
]

"""What logged decisions say about other policies and about groups, and what they cannot say.

Everything here is a function of a ``DecisionLog``: decisions with the probability of each
acceptance, and outcomes of the accepted.
"""

from secondlook.audit.evaluate import Evaluation, evaluate
from secondlook.audit.groups import GroupAudit, GroupFinding, GroupMeasure, groups
from secondlook.audit.log import DecisionLog
from secondlook.audit.policies import Challenger, Rule
from secondlook.audit.scores import calibration, drift

__all__ = ["Challenger", "DecisionLog", "Evaluation", "GroupAudit", "GroupFinding", "GroupMeasure"]
__all__ += ["Rule", "calibration", "drift", "evaluate", "groups"]

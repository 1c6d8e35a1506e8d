"""What logged decisions say about other policies and about groups, and what they cannot say.

Everything here is a function of a ``DecisionLog``: decisions with the probability of each
acceptance, and outcomes of the accepted.
"""

from secondlook.audit.evaluate import Evaluation, evaluate
from secondlook.audit.groups import GroupAudit, GroupFinding, GroupMeasure, groups
from secondlook.audit.log import DecisionLog
from secondlook.audit.policies import Challenger, Rule
from secondlook.audit.scores import calibration, drift
from secondlook.audit.unknown import Condition, UnknownMap, UnknownSlice, unknown

__all__ = ["Challenger", "Condition", "DecisionLog", "Evaluation", "GroupAudit", "GroupFinding"]
__all__ += ["GroupMeasure", "Rule", "UnknownMap", "UnknownSlice", "calibration", "drift"]
__all__ += ["evaluate", "groups", "unknown"]

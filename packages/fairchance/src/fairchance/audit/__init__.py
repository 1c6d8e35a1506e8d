"""What logged decisions say about other policies and about groups, and what they cannot say.

Everything here is a function of a ``DecisionLog``: decisions with the probability of each
acceptance, and outcomes of the accepted.
"""

from fairchance.audit.evaluate import Evaluation, added_profit, evaluate
from fairchance.audit.groups import GroupAudit, GroupFinding, GroupMeasure, TakeUp, groups, take_up
from fairchance.audit.log import DecisionLog
from fairchance.audit.policies import Challenger, Rule
from fairchance.audit.scores import calibration, drift
from fairchance.audit.unknown import Condition, UnknownMap, UnknownSlice, unknown

__all__ = ["Challenger", "Condition", "DecisionLog", "Evaluation", "GroupAudit", "GroupFinding"]
__all__ += ["GroupMeasure", "Rule", "TakeUp", "UnknownMap", "UnknownSlice", "added_profit"]
__all__ += ["calibration", "drift", "evaluate", "groups", "take_up", "unknown"]

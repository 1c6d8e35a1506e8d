"""Step 1 of Algorithm 1 for many classes: class probabilities first, then the best rule on them.

Rows, weights and halves are those of two-class learning; only the model and the rule differ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from secondlook.methods.algorithm1.learning import (
    LabelledRows,
    Learned,
    LearningRules,
    effective_sample_size,
)
from secondlook.methods.algorithm1.policy_log import PolicyLog
from secondlook.methods.many_classes.class_models import NetWorth, fit_class_model
from secondlook.methods.many_classes.decision_table import DecisionTable
from secondlook.methods.many_classes.operating_point import best_rule
from secondlook.people.store import ApplicantRows

__all__ = ["learn_classes"]


def learn_classes(
    learner: Any,
    folds: list[ApplicantRows],
    log: PolicyLog,
    rules: LearningRules,
    table: DecisionTable,
    missing: int | None = None,
) -> Learned | None:
    """Learn f_t, or return None while fewer than two classes are known.

    The model learns from the first fold, the rule from the second; when one of them holds a single
    class, both together serve both purposes, and the note says so. ``missing`` is the code that
    outcomes count as which have not come when their round is mature.
    """
    parts = []
    for fold in folds:
        log.update(fold, rules.rule, rules.waiting)
        rows = LabelledRows.of(fold, log, rules)
        if missing is not None:
            recorded = fold["outcome"]
            outcome = np.where(recorded >= 0, recorded, np.int8(missing))
            rows = replace(rows, outcome=outcome)
        parts.append(rows)
    note = ""
    if not all(map(_tells_apart, parts)):
        parts = [LabelledRows.joined(parts)]
        if not _tells_apart(parts[0]):
            return None
        note = "One fold held one class only: the rule was not held out."
    first, last = parts[0], parts[-1]
    model = fit_class_model(learner, first.X, first.outcome, first.weight, len(table.classes))
    calibrated = effective_sample_size(last.own_weight) >= rules.min_outcomes
    weight = last.own_weight if calibrated else last.weight
    rule = best_rule(
        table,
        model.probabilities(last.X),
        last.outcome,
        weight,
        max_fdr=rules.max_fdr,
        min_selection_rate=rules.min_selection_rate,
    )
    if not rule.feasible:
        note += (
            f" No rule with an FDR of at most {rules.max_fdr:.4g} accepts a share of "
            f"{rules.min_selection_rate:.4g}; the best accepts {rule.selection_rate:.4g}."
        )
    return Learned(
        NetWorth(model, table, rule.multiplier),
        np.full(rules.n_groups, rule.threshold),
        calibrated,
        int((weight > 0).sum()),
        effective_sample_size(weight),
        rule.fdr,
        0.0,
        rule.feasible,
        note.strip(),
    )


def _tells_apart(rows: LabelledRows) -> bool:
    return np.unique(rows.outcome[rows.weight > 0]).size > 1

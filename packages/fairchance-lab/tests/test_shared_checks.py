"""The lab's methods pass the checks that the product's classifiers pass."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

import fairchance as fc
from classifier_checks import (
    CALLS,
    OBVIOUS,
    UNCLEAR,
    check_a_batch_unlike_the_history_stops_and_changes_nothing,
    check_a_failed_batch_is_decided_as_if_it_had_not_failed,
    check_numbers_without_names_are_compared_by_position,
    check_obvious_outcomes_need_no_name,
    check_unclear_outcomes_must_be_named,
    check_wrong_groups_stop_a_batch,
)
from fairchance_lab import FiniteClassifier, ManyClassClassifier
from fairchance_lab.baselines.greedy import Greedy
from ledger.program_machine import play

METHODS = {
    "cells": FiniteClassifier(random_state=0),
    "many classes": ManyClassClassifier(random_state=0),
    "baseline": Greedy(random_state=0),
}


@pytest.mark.parametrize("classifier", [FiniteClassifier(), ManyClassClassifier()], ids=repr)
def test_the_bound_is_that_of_the_default_budget(classifier):
    assert classifier.bound_ == fc.FdrBudget().alpha


@pytest.mark.parametrize("labels", UNCLEAR, ids=str)
@pytest.mark.parametrize("name", METHODS)
def test_outcomes_whose_meaning_is_not_obvious_must_be_named_to_decide(name, labels, tmp_path):
    named = {"classes": labels[::-1]} if name == "many classes" else {"pos_label": labels[0]}
    check_unclear_outcomes_must_be_named(METHODS[name], labels, tmp_path, named)


@pytest.mark.parametrize("labels", OBVIOUS, ids=str)
@pytest.mark.parametrize("name", METHODS)
def test_obvious_outcomes_need_no_name(name, labels):
    check_obvious_outcomes_need_no_name(METHODS[name], labels)


@pytest.mark.parametrize("mode", ["blind", "audit"])
def test_a_column_of_groups_that_went_wrong_stops_a_batch(mode):
    check_wrong_groups_stop_a_batch(FiniteClassifier(group_mode=mode, random_state=0))


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_decide_stops_for_what_is_unlike_and_changes_nothing(kind):
    classifier = FiniteClassifier(random_state=0)
    check_a_batch_unlike_the_history_stops_and_changes_nothing(classifier, kind)


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
def test_numbers_without_names_are_compared_by_position():
    check_numbers_without_names_are_compared_by_position(FiniteClassifier(random_state=0))


@pytest.mark.parametrize("call", CALLS)
def test_a_batch_that_failed_is_decided_as_if_it_had_not(call):
    check_a_failed_batch_is_decided_as_if_it_had_not_failed(ManyClassClassifier, call)


DECISIONS = {"refuse": {0: 0, 1: 0}, "pay": {0: -3, 1: 1}}
PROGRAMS = {  # and whether features may have few values only
    "finite": (
        lambda: FiniteClassifier(
            utility=fc.Revenue(1, 3), budget=fc.FdrBudget(alpha=0.2), random_state=0
        ),
        True,
    ),
    "many classes": (
        lambda: ManyClassClassifier(
            DECISIONS, good=[1], budget=fc.FdrBudget(alpha=0.3), random_state=0
        ),
        False,
    ),
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_program_survives_any_order_of_operations(kind):
    make, few_values = PROGRAMS[kind]
    play(make, lives=2, steps=7, few_values=few_values, takes_lender=False)


@pytest.mark.long
@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_program_survives_many_long_lives(kind):
    make, few_values = PROGRAMS[kind]
    play(make, lives=15, steps=30, few_values=few_values, takes_lender=False)

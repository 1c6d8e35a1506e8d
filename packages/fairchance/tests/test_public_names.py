"""The names of the package, which are imported when they are asked for."""

import ast
import inspect
import sys

import pytest

import fairchance


def test_type_checkers_see_the_same_names_in_the_same_modules():
    tree = ast.parse(inspect.getsource(fairchance))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {
        name.name: line.module.removeprefix("fairchance.")
        for line in block.body
        for name in line.names
    }
    assert imported.pop("audit") == imported.pop("plot") == "fairchance"
    assert imported == fairchance._MODULE_OF_NAME
    assert sorted(imported) == fairchance.__all__


@pytest.mark.parametrize("name", fairchance.__all__)
def test_a_public_name_is_there_and_documented(name):
    found = getattr(fairchance, name)
    assert found.__name__ == name
    assert inspect.getdoc(found)
    assert vars(fairchance)[name] is found  # the next time it is no longer looked for


def test_all_names_are_listed_and_can_be_imported_at_once():
    listed = {name for name in dir(fairchance) if not name.startswith("__")}
    assert listed == {*fairchance.__all__, "audit", "plot"}
    assert {"DecisionLog", "evaluate"} <= set(fairchance.audit.__all__)
    mine = {}
    exec("from fairchance import *", mine)
    assert set(fairchance.__all__) <= set(mine)


def test_help_works_without_the_extra_of_charts(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    assert "plot" not in dir(fairchance)
    assert "audit" in dict(inspect.getmembers(fairchance))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'fairchance' has no attribute 'Nonsense'"):
        _ = fairchance.Nonsense
    assert not hasattr(fairchance, "__wrapped__")

"""Our sentences in another language, ``[aa sseenntteennccee]``, made while modules are imported."""

from __future__ import annotations

import ast
import re
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader

WORDS = 5  # of a string that is read as a sentence, as benchmarks/size.py counts
# What is no sentence of ours, though it has as many words.
LEFT_ALONE = {
    r"(SELECT|INSERT|UPDATE|DELETE|CREATE|SET|WITH|PRAGMA|ALTER|LOCK|VACUUM)\s": "SQL",
    r'"\{3\}': "a regular expression of the texts in TOML",
    r"X does not have valid feature names": "a warning of scikit-learn",
}
MODULES_LEFT_ALONE = {"fairchance.ledger.migrations": "SQL"}
# Names in braces, tags of HTML and conversions are no words.
_MARKS = re.compile(r"\{[^{}]*\}|<[^<>]*>|%[a-z]|&\w+;")


def pseudo(text):
    """Return a text with doubled letters."""
    parts, at = [], 0
    for mark in _MARKS.finditer(text):
        parts += [_doubled(text[at : mark.start()]), mark[0]]
        at = mark.end()
    return "".join([*parts, _doubled(text[at:])])


def _doubled(text):
    return re.sub(r"[^\W\d_]", r"\g<0>\g<0>", text)


def is_sentence(text):
    return len(text.split()) >= WORDS and not any(
        re.match(rf"\s*{one}", text) for one in LEFT_ALONE
    )


class Translator(ast.NodeTransformer):
    """Translates the sentences of a module, but no docstring."""

    def __init__(self, tree):
        bodies = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        self.docs = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, bodies) and node.body and isinstance(node.body[0], ast.Expr)
        }

    def visit_Constant(self, node):
        if isinstance(node.value, str) and id(node) not in self.docs and is_sentence(node.value):
            return ast.copy_location(ast.Constant(f"[{pseudo(node.value)}]"), node)
        return node

    def visit_JoinedStr(self, node):
        texts = [part for part in node.values if isinstance(part, ast.Constant)]
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)  # not its format
        if is_sentence(" ".join(part.value for part in texts)):
            for part in texts:
                part.value = pseudo(part.value)
            node.values = [ast.Constant("["), *node.values, ast.Constant("]")]
        return ast.fix_missing_locations(node)


def translated(source):
    """Return the syntax tree of a module in the other language."""
    tree = ast.parse(source)
    return Translator(tree).visit(tree)


class Loader(SourceFileLoader):
    """Loads a module in the other language, past the files of compiled modules."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return compile(translated(self.get_data(path)), path, "exec", dont_inherit=True)


class Finder(MetaPathFinder):
    """Finds our modules, but for those that are left alone."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] != "fairchance":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        alone = any(fullname.startswith(name) for name in MODULES_LEFT_ALONE)
        if spec and isinstance(spec.loader, SourceFileLoader) and not alone:
            spec.loader = Loader(fullname, spec.origin)
        return spec

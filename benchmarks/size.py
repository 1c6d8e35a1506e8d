"""How large each package is: files, lines, words of sentences, public names, imports.

``python benchmarks/size.py [REVISION ...]`` prints a table of the working tree, and of revisions
to compare it with. A sentence is a string of five words or more outside of docstrings. The longest
chain counts modules that import each other when they are loaded.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

_WORDS = 5  # of a string that is read as a sentence


def packages(root):
    """Return the source folder of each package, and the folder of its tests, by its name."""
    found = [*root.glob("src/*/__init__.py"), *root.glob("packages/*/src/*/__init__.py")]
    return {
        init.parent.name: (init.parent, init.parent.parent.parent / "tests")
        for init in sorted(found)
    }


def module_name(file, source):
    parts = file.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_type_checking(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imported(tree, known, *, when_loaded):
    """Return the known modules that a module imports, but for those that type checkers read."""
    found, waiting = set(), [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = {f"{node.module}.{name.name}" for name in node.names} & known
            found |= parts or {node.module}
        if is_type_checking(node):
            waiting += node.orelse
        elif not (when_loaded and isinstance(node, ast.FunctionDef)):
            waiting += ast.iter_child_nodes(node)
    return found & known


def sentence_words(tree):
    """Return the number of words in sentences that the code of a module makes."""
    parents = (ast.Module, ast.ClassDef, ast.FunctionDef)
    first = [node.body[0] for node in ast.walk(tree) if isinstance(node, parents) and node.body]
    docs = {id(node.value) for node in first if isinstance(node, ast.Expr)}
    in_text = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in in_text for part in node.values}
    texts = [
        " ".join(p.value for p in node.values if isinstance(p, ast.Constant)) for node in in_text
    ]
    texts += [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docs | parts
    ]
    counts = (len(text.split()) for text in texts)
    return sum(n for n in counts if n >= _WORDS)


def measure(root):
    """Return a row of numbers for each package below a folder."""
    sources = packages(root)
    trees = {
        module_name(file, source): ast.parse(file.read_text(encoding="utf-8"))
        for source, _ in sources.values()
        for file in source.rglob("*.py")
    }
    known = set(trees)
    edges = {n: imported(tree, known, when_loaded=False) - {n} for n, tree in trees.items()}
    loaded = {n: imported(tree, known, when_loaded=True) - {n} for n, tree in trees.items()}

    @cache
    def chain(name):
        others = [other for other in loaded[name] if not name.startswith(f"{other}.")]
        return 1 + max(map(chain, others), default=0)

    def top(name):
        return name.partition(".")[0]

    rows = {}
    for package, (source, tests) in sources.items():
        mine = [name for name in trees if top(name) == package]
        classes = Counter(
            node.name
            for name in mine
            for node in trees[name].body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        )
        functions = sum(
            isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
            for name in mine
            for node in trees[name].body
        )
        rows[package] = {
            "files": len(mine),
            "lines": sum(lines(file) for file in source.rglob("*.py")),
            "test lines": sum(lines(file) for file in tests.rglob("*.py")),
            "words": sum(sentence_words(trees[name]) for name in mine),
            "classes": sum(classes.values()),
            "functions": functions,
            "doubled": sum(n > 1 for n in classes.values()),
            "edges": sum(len(edges[name]) for name in mine),
            "to others": sum(top(other) != package for name in mine for other in edges[name]),
            "chain": max(chain(name) for name in mine),
        }
    return rows


def lines(file):
    return len(file.read_text(encoding="utf-8").splitlines())


def at_revision(revision):
    content = subprocess.run(["git", "archive", revision], capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(folder, filter="data")
        return measure(Path(folder))


def is_there(revision):
    command = ["git", "rev-parse", "--quiet", "--verify", f"{revision}^{{commit}}"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0


def main():
    revisions = [revision for revision in sys.argv[1:] if is_there(revision)]
    for revision in set(sys.argv[1:]) - set(revisions):
        print(f"This clone has no {revision} to compare with.", file=sys.stderr)
    tables = {revision: at_revision(revision) for revision in revisions}
    tables["now"] = measure(Path(__file__).parents[1])
    titles = list(next(iter(tables["now"].values())))
    print(f"{'':24}", *(f"{title:>10}" for title in titles))
    for revision, rows in tables.items():
        for package, row in rows.items():
            print(f"{revision[:9]:9} {package:14}", *(f"{n:10,}" for n in row.values()))


if __name__ == "__main__":
    main()

"""Formulas as MathML, which browsers draw themselves: no script, no font and no other host."""

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml


def inline(visitor, node):
    """Write a formula within a line."""
    visitor.body.append(tex2mathml(node.astext()))
    raise SkipNode


def block(visitor, node):
    """Write a formula on its own line, which scrolls if a narrow screen cannot show it."""
    formula = tex2mathml(node.astext(), as_block=True)
    visitor.body.append(f'<div class="formula" role="region" tabindex="0">{formula}</div>')
    raise SkipNode


def setup(app):
    """Let pages of HTML show formulas in this way."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

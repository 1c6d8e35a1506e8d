"""The public names of the packages: what their pages leave out, and where types lead to."""

from docutils.nodes import Text
from sphinx.addnodes import desc_signature, pending_xref


def leave_out(_app, _kind, name, member, _skip, _options):
    """Leave out what every scikit-learn estimator has."""
    of_sklearn = (getattr(member, "__module__", None) or "").startswith("sklearn.")
    return True if of_sklearn or name.endswith("_request") else None


def resolve(app, env, node, content):
    """Link a type in a signature to its public name, or leave it as text.

    A signature names the module that defines a type, and its page is that of the public name. Types
    that are not public, and those of other packages, have no page.
    """
    if node.get("refdomain") != "py" or not _in_signature(node):
        return None
    name = node["reftarget"].rpartition(".")[2]
    domain = env.get_domain("py")
    for public in (f"{package}.{name}" for package in ("fairchance", "fairchance.audit")):
        if public in domain.objects:
            found = domain.objects[public]
            return domain.resolve_xref(
                env, node["refdoc"], app.builder, found.objtype, public, node, content
            )
    return Text(content.astext())


def _in_signature(node: pending_xref):
    while node.parent is not None and not isinstance(node, desc_signature):
        node = node.parent
    return isinstance(node, desc_signature)


def setup(app):
    """Follow autodoc and the resolution of references."""
    app.connect("autodoc-skip-member", leave_out)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

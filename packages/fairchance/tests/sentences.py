"""Messages are one sentence each."""

import re


def one_sentence(error):
    """Return the message of an error after checking that it is one sentence."""
    text = str(error.value if hasattr(error, "value") else error)
    assert "\n" not in text, text
    assert text[-1] in ".?", text
    assert not re.search(r"[a-z)\]'\"]{2}\. [A-Z]", text), text
    return text


def one_full_stop(error):
    """Check that the message of an error ends with its only full stop."""
    text = str(error.value)
    assert text.endswith("."), text
    assert ". " not in text, text

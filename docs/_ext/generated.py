"""Text that pages take from the code: commands from their help, keys from the example.

A page says where with a comment, such as ``% exit codes``.
"""

import re
from importlib.resources import files
from pathlib import Path

from fairchance.cli import app, options

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|$~])")


def plain(text):
    """Return text in which no sign means anything to Markdown."""
    return _SPECIAL.sub(r"\\\1", text)


def spoken(text):
    """Return a help text in which options are code."""
    parts = re.split(r"((?<!\w)--?[a-z][a-z-]*)", " ".join(text.replace("\\[", "[").split()))
    return "".join(f"`{part}`" if at % 2 else plain(part) for at, part in enumerate(parts))


def commands(panel):
    """Return a section for each command of a panel: what it does, its options, an example."""
    names = [name for name, command in app.COMMANDS.items() if str(command.panel) == panel]
    return "\n".join(_command(name) for name in names)


def _command(name):
    found = app._loaded(app.COMMANDS[name])
    arguments = [one for one in found.params if not hasattr(one, "is_flag")]
    words = " ".join(_optional(one, one.metavar or one.name.upper()) for one in arguments)
    lines = [f"({name}-command)=", f"## {name}", "", spoken(found.help), ""]
    lines += ["```console", f"$ fairchance {name} {words}".rstrip(), "```", ""]
    for one in found.params:
        lines += [_term(one), f": {_meaning(one)}", ""]
    example = found.epilog.removeprefix("Example: ").replace("\\[", "[")
    return "\n".join([*lines, "Example:", "", "```console", f"$ {example}", "```", ""])


def _optional(parameter, text):
    return text if parameter.required else f"[{text}]"


def _term(parameter):
    if not hasattr(parameter, "is_flag"):
        return f"`{parameter.metavar or parameter.name.upper()}`"
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    return names if parameter.is_bool_flag else f"{names} *{plain(parameter.metavar or 'VALUE')}*"


def _meaning(parameter):
    more = ["Required." if parameter.required else ""]
    if parameter.envvar:
        more.append(f"Or set `{parameter.envvar}`.")
    usual = parameter.default
    if usual not in (None, False, True, (), []):
        more.append(f"Default: `{usual}`.")
    if parameter.multiple and "repeated" not in (parameter.help or ""):
        more.append("May be repeated.")
    return " ".join(filter(None, [spoken(parameter.help or ""), *more]))


def exit_codes():
    """Return the table of exit codes."""
    rows = [f"| {code} | {plain(meaning)} |" for code, meaning in options.EXIT_CODES.items()]
    return "\n".join(["| exit code | meaning |", "|---|---|", *rows])


_TABLE = re.compile(r"(?P<off># )?\[(?P<name>\w+)\](?:  # (?P<why>.*))?")
_KEY = re.compile(r'(?P<off># )?(?P<key>"[^"]+"|\w+) = (?P<value>.*?)(?:  # (?P<why>.*))?')


def configuration():
    """Return a section for each table of the example, with its keys in their order."""
    text = files("fairchance.ledger").joinpath("program_example.toml").read_text("utf-8")
    return "\n".join(_configured(line) for line in text.splitlines()[4:])


def _configured(line):
    table, key = _TABLE.fullmatch(line), _KEY.fullmatch(line)
    if table:
        return f"## [{table['name']}]\n\n{_sentence(table['why'])}\n"
    if key:
        return f"`{key['key']} = {key['value']}`\n: {_sentence(key['why']) or 'As above.'}\n"
    return f"**{plain(line.strip('# '))}**\n" if line else ""


def _sentence(why):
    said = plain(why[0].upper() + why[1:]).replace("\\`", "`") if why else ""
    return said and f"{said}."


def filled(text):
    """Replace the comments of a page by what they name."""
    text = re.sub(r"^% commands: (.+)$", lambda m: commands(m[1]), text, flags=re.M)
    for name, make in (("exit codes", exit_codes), ("configuration", configuration)):
        text = re.sub(f"^% {name}$", lambda _, made=make: made(), text, flags=re.M)
    return text


def fill(_app, _page, source):
    """Fill a page when it is read."""
    source[0] = filled(source[0])


def fill_copies(application, _error):
    """Fill the copies of pages, of which llms-full.txt is made."""
    for copy in Path(application.outdir, "_sources").rglob("*.md.txt"):
        text = copy.read_text(encoding="utf-8")
        if re.search("^% ", text, re.M):
            copy.write_text(filled(text), encoding="utf-8")


def setup(application):
    """Fill pages when they are read, and their copies before others read these."""
    application.connect("source-read", fill)
    application.connect("build-finished", fill_copies, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

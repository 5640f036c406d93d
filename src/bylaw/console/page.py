"""Renders pages from templates.

All values are escaped. Text from logs and packs must pass through `said`, `marked` or `seen`.
"""
# pyright: basic, reportMissingImports=false

import hashlib
import json
import re
import time
import unicodedata
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from itertools import groupby
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import Response

from bylaw.audit.report.page import ELEMENTS, joined_scripts
from bylaw.text.number import counted

VERDICTS = {
    "violation": "violation",
    "near_miss": "near-miss",
    "broken": "rule broken",
    "uninformed": "uninformed",
    "inconclusive": "undecided",
    "compliant": "compliant",
    "open": "undecided",
}
PLURALS = {"violation": "violations", "near_miss": "near-misses", "broken": "rules broken"}
STATES = {
    "new": "New",
    "still": "Known",
    "open": "Undecided",
    "attested": "Settled",
    "waived": "Waived",
    "false-alarm": "False alarms",
    "refused": "Refused by the tool",
}
SETTLED = {"waived": "waived", "false-alarm": "false alarm", "attested": "settled"}
"""The labels of findings that a reviewer has settled."""
STATIC = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "elements.js": "text/javascript",
    "htmx.js": "text/javascript",
}
_MARKED = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*")


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("bylaw.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {"said": said, "marked": marked, "seen": seen, "plain": plain, "times": counted}
    filters |= {"percent": percent, "span": span, "in_path": in_path, "json": as_json}
    made.filters.update(filters)
    words: dict[str, Any] = {
        "VERDICTS": VERDICTS,
        "PLURALS": PLURALS,
        "STATES": STATES,
        "SETTLED": SETTLED,
    }
    words["static"] = static_address
    made.globals.update(words)
    return made


def load_templates() -> None:
    """Compile all templates in advance, because compiling is slower than rendering."""
    for name in environment().list_templates():
        environment().get_template(name)


def page(template: str, status: int = 200, headers: dict[str, str] | None = None, **values: Any) -> Response:
    text = environment().get_template(template).render(**values)
    return Response(text, status, headers, "text/html; charset=utf-8")


def said(value: Any, limit: int = 300) -> Markup:
    """Return text for a page without markup or hidden characters.

    The text is isolated, so it cannot change the writing direction of the text around it.
    """
    return Markup("<bdi>{}</bdi>").format(seen(_cut(value, limit)))


def marked(value: Any, limit: int = 300) -> Markup:
    """Return a reason or sentence as `said` does, but render code and bold text in Markdown."""
    text = _cut(value, limit)
    parts: list[Markup] = []
    end = 0
    for found in _MARKED.finditer(text):
        name = "code" if found[1] else "strong"
        parts += [seen(text[end : found.start()]), Markup(f"<{name}>{{}}</{name}>").format(seen(found[1] or found[2]))]
        end = found.end()
    return Markup("<bdi>{}</bdi>").format(Markup("").join([*parts, seen(text[end:])]))


def seen(text: str) -> Markup:
    """Return text as `said` does, but without isolation. Use this only for an element without other content."""
    parts: list[Markup] = []
    for hidden, run in groupby(text, key=lambda each: "" if _is_seen(each) else each):
        whole = "".join(run)
        often = f"×{len(whole)}" if len(whole) > 1 else ""
        shown = Markup('<span class="unseen">{}{}</span>')
        parts.append(shown.format(_code_point(hidden), often) if hidden else escape(whole))
    return Markup("").join(parts)


def plain(value: Any, limit: int = 80) -> str:
    """Return text without hidden characters, for an attribute or a title."""
    text = str(value)[: limit + 1]
    return _cut("".join(each if _is_seen(each) else _code_point(each) for each in text).replace("\n", " "), limit)


def _cut(value: Any, limit: int) -> str:
    whole = "" if value is None else str(value).replace("\r\n", "\n")
    return whole if len(whole) <= limit else whole[: limit - 1] + "…"


def _is_seen(character: str) -> bool:
    return character.isprintable() or character in "\n\t" or unicodedata.category(character) == "Zs"


def _code_point(character: str) -> str:
    return f"U+{ord(character):04X}"


def as_json(data: Any) -> Markup:
    """Return data as JSON that cannot close the element that contains it."""
    written = json.dumps(data, separators=(",", ":"), allow_nan=False, default=str)
    return Markup(written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def in_path(name: str) -> str:
    """Return the name of a conversation for the end of a URL.

    A name such as `..` gets a slash in front, because a browser would read it as the parent folder.
    """
    start = "/" if name in (".", "..") or name.startswith("/") else ""
    return quote(start + name, safe="", errors="replace")


def from_path(given: str) -> str:
    return given.removeprefix("/")


def place_in(text: str) -> int:
    """Return the offset of a list from a page's address, or 0 if the address has none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def span(seconds: float) -> str:
    """Return a duration as text, such as `5 s`."""
    if seconds < 90:
        return f"{max(0, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h" if seconds < 172_800 else f"{round(seconds / 86_400)} days"


def running(seconds: float, *, down: bool = False) -> Markup:
    """Return a duration that the page keeps updating. The UTC time is its tooltip."""
    when = datetime.fromtimestamp(time.time() + (seconds if down else -seconds), UTC).isoformat(" ", "minutes")[:16]
    told = ("left" if down else "ago", seconds, when, span(seconds))
    return Markup('<span data-{}="{:.0f}" title="{} UTC">{}</span>').format(*told)


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:.1f}\u2009%"


@cache
def static_file(name: str) -> bytes:
    """Return a style sheet or script. The report of an audit uses some of these files."""
    files = resources.files("bylaw.console") / "static"
    match name:
        case "elements.js":
            return joined_scripts(ELEMENTS, [(files / "elements.js").read_text("utf-8")]).encode()
        case "console.css":
            shared = (resources.files("bylaw.audit.report") / "page.css").read_bytes()
            return shared + b"\n" + (files / "console.css").read_bytes()
        case "console.js":
            texts = [(files / each).read_text("utf-8") for each in ("forms.js", "listening.js", "console.js")]
            return joined_scripts((), texts).encode()
        case "htmx.js":
            return (files / "htmx" / "htmx.min.js").read_bytes()
        case _:
            return (files / name).read_bytes()


@cache
def static_address(name: str) -> str:
    """Return the address of a file. The address contains the file's hash, so browsers may cache the file forever."""
    return f"/static/{hashlib.sha256(static_file(name)).hexdigest()[:12]}/{name}"

"""Pages out of templates: everything is escaped, and what came from logs or packs goes through `said`."""
# pyright: basic, reportMissingImports=false

import hashlib
import json
import time
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

from bylaw.audit.report.page import ELEMENTS, joined_scripts
from bylaw.console.text import marked, plain, said, seen

VERDICTS = {
    "violation": "violation",
    "near_miss": "near-miss",
    "broken": "rule broken",
    "uninformed": "uninformed",
    "inconclusive": "undecided",
    "compliant": "compliant",
}
PLURALS = {"violation": "violations", "near_miss": "near-misses", "broken": "rules broken"}
"""More than one of a verdict; `uninformed` and the like are said alike."""
STATES = {
    "new": "New",
    "still": "Known",
    "open": "Undecided",
    "attested": "Attested",
    "waived": "Waived",
    "false-alarm": "False alarms",
    "refused": "Refused by the tool",
}
SETTLED = {"waived": "waived", "false-alarm": "false alarm", "attested": "attested"}
"""How a finding is called that somebody has answered for."""
STATIC = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "elements.js": "text/javascript",
    "htmx.js": "text/javascript",
}


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("bylaw.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    texts: dict[str, Any] = {"said": said, "marked": marked, "seen": seen, "plain": plain}
    values: dict[str, Any] = {"json": as_json, "times": times, "percent": percent, "span": span, "in_path": in_path}
    made.filters.update(texts | values)
    known: dict[str, Any] = {
        "VERDICTS": VERDICTS,
        "PLURALS": PLURALS,
        "STATES": STATES,
        "SETTLED": SETTLED,
        "static": static_address,
    }
    made.globals.update(known)
    return made


def load_templates() -> None:
    """Make every template ready, which takes longer than showing it."""
    for name in environment().list_templates():
        environment().get_template(name)


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


def page(template: str, status: int = 200, headers: dict[str, str] | None = None, **values: Any) -> Response:
    return Response(render(template, **values), status, headers, "text/html; charset=utf-8")


def as_json(data: Any) -> Markup:
    """Data for a block of JSON in a page: nothing in it can end the block."""
    written = json.dumps(data, separators=(",", ":"), allow_nan=False, default=str)
    return Markup(written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def times(count: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def in_path(name: str) -> str:
    """A conversation's name as the last part of an address: a browser would take `..` for the folder above."""
    start = "/" if name in (".", "..") or name.startswith("/") else ""
    return quote(start + name, safe="", errors="replace")


def from_path(given: str) -> str:
    """The name that such an address says."""
    return given.removeprefix("/")


def place_in(text: str) -> int:
    """A place in a list as an address says it; the first where it says none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def span(seconds: float) -> str:
    """A time in words that are short enough for a phone."""
    if seconds < 90:
        return f"{max(0, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h" if seconds < 172_800 else f"{round(seconds / 86_400)} days"


def running(seconds: float, *, down: bool = False) -> Markup:
    """The same, which goes on by itself while the page is open; with when that is, in UTC."""
    when = datetime.fromtimestamp(time.time() + (seconds if down else -seconds), UTC).isoformat(" ", "minutes")[:16]
    told = ("left" if down else "ago", seconds, when, span(seconds))
    return Markup('<span data-{}="{:.0f}" title="{} UTC">{}</span>').format(*told)


def percent(value: float | None) -> str:
    """A share of one, as people read it."""
    return "–" if value is None else f"{value * 100:.1f}\u2009%"


@cache
def static_file(name: str) -> bytes:
    """A style or a script; the drawings are the static report's own."""
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
    """Where a file is found: the address changes with it, so a browser may keep it for good."""
    return f"/static/{hashlib.sha256(static_file(name)).hexdigest()[:12]}/{name}"

"""Renders a review as one page without scripts.

The page shows each sentence with its check, cases, author and questions. Packs are untrusted, so the template escapes
their text, and the page's content security policy forbids scripts and network access.
"""
# pyright: basic, reportMissingImports=false

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from bylaw.console.pack_state import case_names, cases_of, parts_of
from bylaw.console.page import environment
from bylaw.pack import Pack
from bylaw.pack.review import Signature, Standing
from bylaw.policy.statement import Policy
from bylaw.review.check import Noted, most_pressing_first
from bylaw.scan.written import dump

_STYLE = Path(__file__).with_suffix(".css")
_ASKING = ("unsigned", "lapsed", "rejected")
"""The review states that require a signature. Policies in other states are shown collapsed."""
_TRIED = {
    "repairs": "repairs:",
    "generated_inputs": "tested on generated calls:",
    "generations_divided_on": "two generated versions differ on:",
}


class Reviewed(Struct, frozen=True):
    policy: Policy
    state: Standing
    noted: Noted
    author: str
    check: list[str]
    cases: list[Any]

    @property
    def told_cases(self) -> str:
        return ", ".join(f"{count} {want}" for want, count in Counter(case.wanted for case in self.cases).items())


def review_page(
    pack: Pack,
    standings: Mapping[str, Standing],
    noted: Mapping[str, Noted],
    signatures: Mapping[str, Signature],
    checks: Mapping[str, list[str]],
    weighed: str = "",
) -> str:
    """Return the page for a pack.

    `noted` contains the compiler's notes on each policy, and `checks` contains the lines of each check. `weighed`
    describes how accurate learned weights are.
    """
    rows: list[Reviewed] = []
    for name in most_pressing_first(pack, pack.policies, noted):
        policy = pack.policies[name]
        own, cases = noted.get(name, Noted()), list(cases_of(pack, case_names(pack, name)))
        author = _author(own, signatures.get(name))
        rows.append(Reviewed(policy, standings[name], own, author, checks.get(name, []), cases))
    told = ", ".join(f"{count} {state}" for state, count in Counter(standings.values()).items())
    shown = {"pack": pack, "rows": rows, "told": told, "weighed": weighed, "asking": _ASKING}
    style = _STYLE.read_text(encoding="utf-8")
    return environment().get_template("review.html").render(**shown, style=style, yaml=dump, parts=parts_of)


def _author(noted: Noted, signature: Signature | None) -> str:
    written = "written by hand"
    if noted.is_compiled:
        tried = [f"{word} {told}" for part, word in _TRIED.items() if (told := getattr(noted, part))]
        written = "written by a model" + (f" ({', '.join(tried)})" if tried else "")
    word = f"; {signature.word} by {signature.by} on {signature.on} {signature.note}".rstrip() if signature else ""
    return written + word

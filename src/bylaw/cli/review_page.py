"""A review as one page without scripts: each policy with its sentences, check, cases, writer and open questions."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, cast

from bylaw.engine.pack import Pack
from bylaw.engine.review import Signature, Standing
from bylaw.policy.statement import Policy
from bylaw.scan.written import dump

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #777; --warn: #b36b00; --bad: #b3261e; --good: #2e7d32 }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin: 0; font-size: 1.1rem } article { border-top: 1px solid var(--line); padding: 1.2rem 0 }
blockquote { margin: .5rem 0; padding-left: .8rem; border-left: 3px solid var(--line) }
pre { overflow-x: auto; padding: .7rem; border: 1px solid var(--line); border-radius: 6px; font-size: .85rem }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
td { padding: .25rem .6rem .25rem 0; vertical-align: top; border-bottom: 1px solid var(--line) }
code { font-size: .85em } summary { cursor: pointer }
.dim { color: var(--dim) } .open, .lapsed, .question { color: var(--warn) }
.rejected, .deny, .broken { color: var(--bad) }
.accepted, .permit, .kept { color: var(--good) } nav a { margin-right: .8rem; white-space: nowrap }
td code { overflow-wrap: anywhere }
"""


def review_page(
    pack: Pack,
    standings: Mapping[str, Standing],
    noted: Mapping[str, Mapping[str, Any]],
    signatures: Mapping[str, Signature],
    checks: Mapping[str, list[str]],
) -> str:
    """The page of a pack; `noted` is what the compiler wrote of each policy, `checks` the lines of each check."""
    counts = Counter(standings.values())
    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    head = (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Review of {escape(pack.name)}</title><style>{_STYLE}</style>"
        f"<h1>Review of {escape(pack.name)}</h1><p>{len(pack.policies)} policies: {escape(told)}</p><nav>"
    )
    links = "".join(f"<a class={state} href='#{escape(name)}'>{escape(name)}</a> " for name, state in standings.items())
    bodies = "".join(
        _policy(pack, policy, standings[name], noted.get(name, {}), signatures.get(name), checks.get(name, []))
        for name, policy in pack.policies.items()
    )
    return f"{head}{links}</nav>{bodies}</html>\n"


def _policy(
    pack: Pack,
    policy: Policy,
    state: Standing,
    noted: Mapping[str, Any],
    signature: Signature | None,
    check: list[str],
) -> str:
    parts = [f"<article id='{escape(policy.id)}'><h2>{escape(policy.id)} <span class=dim>{policy.kind}</span>"]
    parts.append(f" <span class={state}>{state}</span></h2>")
    parts += [
        f"<blockquote>{escape(each.text or '')} <span class=dim>{escape(str(each))}</span></blockquote>"
        for each in policy.citations
    ]
    if policy.definition:
        parts.append(f"<p>{escape(policy.definition)}</p>")
    if policy.tools:
        parts.append(f"<p class=dim>binds {', '.join(f'<code>{escape(tool)}</code>' for tool in policy.tools)}</p>")
    if policy.unenforced is not None:
        word = f"unenforced, accepted by {policy.unenforced.accepted_by}: {policy.unenforced.reason}"
        parts.append(f"<p class=open>{escape(word)}</p>")
    if check:
        parts.append(f"<pre>{escape(chr(10).join(check))}</pre>")
    parts.append(f"<p class=dim>{escape(_writer(noted, signature))}</p>")
    parts += _questions(noted)
    parts += _in_logs(noted)
    parts += _cases(pack, policy.id)
    return "".join([*parts, "</article>"])


def _writer(noted: Mapping[str, Any], signature: Signature | None) -> str:
    """Who wrote the check, and whose word there is on it."""
    written = "written by hand"
    if noted:
        tried = [f"{noted[part]} {word}" for part, word in _TRIED.items() if noted.get(part)]
        written = "written by a model" + (f" ({', '.join(tried)})" if tried else "")
    word = f"; {signature.word} by {signature.by} on {signature.on} {signature.note}".rstrip() if signature else ""
    return written + word


_TRIED = {
    "repairs": "repairs",
    "generated_inputs": "generated calls",
    "generations_divided_on": "of them divided two generations",
    "mutants_found": "mutants found by its cases",
}


def _questions(noted: Mapping[str, Any]) -> Iterator[str]:
    for question in cast(list[dict[str, Any]], noted.get("questions") or []):
        yield f"<p class=question>? {escape(question['about'])}: {escape(question['text'])}</p>"
        if "input" in question:
            yield f"<pre>{escape(dump(question['input']))}</pre>"


def _in_logs(noted: Mapping[str, Any]) -> Iterator[str]:
    for verdict, body in cast(dict[str, Any], noted.get("in_logs") or {}).items():
        first = "".join(
            f"<li>{escape(each['conversation'])} step {each['step']}: {escape(each['why'])}</li>"
            for each in body["first"]
        )
        yield f"<p>in the logs: {escape(verdict)} {body['calls']} times, such as</p><ul>{first}</ul>"


def _cases(pack: Pack, name: str) -> Iterator[str]:
    rows: list[str] = []
    for read in pack.cases.values():
        for case in read.record.cases:
            if name in (case.policy, case.rule):
                want = str(case.want)
                given = case.facts if case.rule is None else [_event(each) for each in case.events or ()]
                whole = {**case.call, "facts": given} if case.call else given
                shown = escape(json.dumps(whole, ensure_ascii=False, default=str))
                said = f"<td class={escape(want)}>{escape(want)}<td>{escape(str(case.note))}"
                rows.append(f"<tr>{said}<td><code>{shown}</code>")
    if rows:
        yield f"<details><summary>{len(rows)} cases</summary><table>{''.join(rows)}</table></details>"


def _event(event: Any) -> str:
    if event.user is not None:
        return f"user: {event.user}"
    return (
        f"agent: {event.agent}" if event.agent is not None else f"{event.call}({json.dumps(event.args, default=str)})"
    )

"""A review as one page without scripts: each sentence beside its check, with cases, writer and open questions."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, cast

from bylaw.engine.pack import Pack
from bylaw.engine.review import Signature, Standing
from bylaw.policy.statement import Policy
from bylaw.scan.written import dump

_STYLE = Path(__file__).with_suffix(".css")


def review_page(
    pack: Pack,
    standings: Mapping[str, Standing],
    noted: Mapping[str, Mapping[str, Any]],
    signatures: Mapping[str, Signature],
    checks: Mapping[str, list[str]],
    weighed: str = "",
) -> str:
    """The page of a pack; `noted` is what the compiler wrote of each policy, `checks` the lines of each check.

    `weighed` says how right the rules are with learned weights, where there are any.
    """
    title = f"Review of {escape(pack.name)}"
    told = ", ".join(f"{count} {state}" for state, count in Counter(standings.values()).items())
    rows = "".join(_row(pack, policy, standings[name], noted.get(name, {})) for name, policy in pack.policies.items())
    bodies = "".join(
        _policy(pack, policy, standings[name], noted.get(name, {}), signatures.get(name), checks.get(name, []))
        for name, policy in pack.policies.items()
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{title}</title><style>{_STYLE.read_text(encoding='utf-8')}</style><h1>{title}</h1>"
        f"<p class=lede>{len(pack.policies)} policies: {escape(told)}. Read each sentence beside its check; then "
        f"say so: <code>bylaw review {escape(pack.root.name)} --accept POLICY --reject POLICY --by NAME</code></p>"
        f"{f'<p>{escape(weighed)}</p>' if weighed else ''}"
        "<table class=index><tr><th>policy<th>kind<th>standing<th>cases<th>flagged in logs<th>questions"
        f"{rows}</table>{bodies}</html>\n"
    )


def _row(pack: Pack, policy: Policy, state: Standing, noted: Mapping[str, Any]) -> str:
    """A policy's line in the table at the top."""
    flagged = sum(body["calls"] for body in _in_logs(noted).values())
    numbers = (len(_cases_of(pack, policy.id)), flagged, len(noted.get("questions") or ()))
    cells = "".join(f"<td>{number or ''}" for number in numbers)
    what = "unenforced" if policy.unenforced is not None else policy.kind
    return f"<tr><td><a href='#{escape(policy.id)}'>{escape(policy.id)}</a><td>{what}<td class={state}>{state}{cells}"


def _policy(
    pack: Pack,
    policy: Policy,
    state: Standing,
    noted: Mapping[str, Any],
    signature: Signature | None,
    check: list[str],
) -> str:
    sentences = "".join(
        f"<blockquote>{escape(each.text or '')} <span class=dim>{escape(str(each))}</span></blockquote>"
        for each in policy.citations
    )
    parts = [
        f"<article id='{escape(policy.id)}'><header><h2>{escape(policy.id)}</h2>"
        f"<span class='state {state}'>{state}</span><span class=dim>{escape(_writer(noted, signature))}</span>",
        f"</header><div class=both><div><h3>The document says</h3>{sentences}</div><div>",
        *_check(policy, check),
        *_questions(noted),
        *_flagged(noted),
        *_cases(pack, policy.id),
        "</div></div></article>",
    ]
    return "".join(parts)


def _check(policy: Policy, check: list[str]) -> Iterator[str]:
    bound = f", for {', '.join(f'<code>{escape(tool)}</code>' for tool in policy.tools)}" if policy.tools else ""
    yield f"<h3>{f'Bylaw checks, as a {policy.kind}{bound}' if check else f'Nothing is checked ({policy.kind})'}</h3>"
    if policy.definition:
        yield f"<p>{escape(policy.definition)}</p>"
    if policy.unenforced is not None:
        word = f"Not enforced, accepted by {policy.unenforced.accepted_by}: {policy.unenforced.reason}"
        yield f"<p class=question>{escape(word)}</p>"
    if check:
        yield f"<pre{'' if policy.kind == 'guard' else ' class=formula'}>{escape(chr(10).join(check))}</pre>"


def _writer(noted: Mapping[str, Any], signature: Signature | None) -> str:
    """Who wrote the check, and whose word there is on it."""
    written = "written by hand"
    if noted:
        tried = [f"{word} {noted[part]}" for part, word in _TRIED.items() if noted.get(part)]
        written = "written by a model" + (f" ({', '.join(tried)})" if tried else "")
    word = f"; {signature.word} by {signature.by} on {signature.on} {signature.note}".rstrip() if signature else ""
    return written + word


_TRIED = {
    "repairs": "repairs:",
    "generated_inputs": "tried on generated calls:",
    "generations_divided_on": "two generations differ on:",
    "mutants_found": "mutants found by its cases:",
}


def _questions(noted: Mapping[str, Any]) -> Iterator[str]:
    for question in cast(list[dict[str, Any]], noted.get("questions") or []):
        yield f"<p class=question>{escape(question['about'])}: {escape(question['text'])}</p>"
        if "input" in question:
            yield f"<pre class=given>{escape(dump(question['input']))}</pre>"


def _in_logs(noted: Mapping[str, Any]) -> dict[str, Any]:
    return cast(dict[str, Any], noted.get("in_logs") or {})


def _flagged(noted: Mapping[str, Any]) -> Iterator[str]:
    for verdict, body in _in_logs(noted).items():
        first = "".join(
            f"<li><code>{escape(each['conversation'])}</code> step {each['step']}: {escape(each['why'])}"
            for each in body["first"]
        )
        times = "once" if body["calls"] == 1 else f"{body['calls']} times, such as"
        yield f"<h3>In the logs: <span class={escape(verdict)}>{escape(verdict.replace('_', '-'))}</span> {times}</h3>"
        yield f"<ul class=found>{first}</ul>"


def _cases_of(pack: Pack, name: str) -> list[Any]:
    return [
        case for read in pack.cases.values() for case in read.record.written_out if name in (case.policy, case.rule)
    ]


def _cases(pack: Pack, name: str) -> Iterator[str]:
    cases = _cases_of(pack, name)
    if not cases:
        return
    rows: list[str] = []
    for case in cases:
        want = escape(case.wanted)
        lines = [_call(case)] if case.rule is None else [_event(each) for each in case.events or ()]
        shown = "<br>".join(map(escape, lines))
        rows.append(f"<tr><td class={want}>{want}<td>{escape(str(case.note))}<br><code class=dim>{shown}</code>")
    told = ", ".join(f"{count} {want}" for want, count in Counter(case.wanted for case in cases).items())
    yield f"<h3>Cases</h3><details><summary>{escape(told)}</summary><table>{''.join(rows)}</table></details>"


def _call(case: Any) -> str:
    whole = {**case.called, "facts": case.facts} if case.called else case.facts
    return json.dumps(whole, ensure_ascii=False, default=str)


def _event(event: Any) -> str:
    if event.user is not None:
        return f"user: {event.user}"
    return (
        f"agent: {event.agent}" if event.agent is not None else f"{event.call}({json.dumps(event.args, default=str)})"
    )

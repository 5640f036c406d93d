"""A review as one page without scripts: each sentence next to its check, with cases, author and questions.

Packs are untrusted. All their text goes through `_text`, all attributes are quoted, and the content security policy
forbids scripts and network access.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from bylaw.console.pack_state import case_names, cases_of, parts_of
from bylaw.pack import Pack
from bylaw.pack.review import Signature, Standing
from bylaw.policy.statement import Policy
from bylaw.review.noted import Noted
from bylaw.scan.written import dump
from bylaw.text.visible import visible

_STYLE = Path(__file__).with_suffix(".css")
_NOTHING = Noted()
_ASKING = ("unsigned", "lapsed", "rejected")
"""Review states that need a signature; other policies are folded."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def review_page(
    pack: Pack,
    standings: Mapping[str, Standing],
    noted: Mapping[str, Noted],
    signatures: Mapping[str, Signature],
    checks: Mapping[str, list[str]],
    weighed: str = "",
) -> str:
    """The page of a pack; `noted` are the compiler's notes on each policy, `checks` the lines of each check.

    `weighed` describes the accuracy of learned weights, if there are any.
    """
    title = f"Review of {_text(pack.name)}"
    told = ", ".join(f"{count} {state}" for state, count in Counter(standings.values()).items())
    rows = "".join(
        _row(pack, policy, standings[name], noted.get(name, _NOTHING)) for name, policy in pack.policies.items()
    )
    bodies = "".join(
        _policy(pack, policy, standings[name], noted.get(name, _NOTHING), signatures.get(name), checks.get(name, []))
        for name, policy in pack.policies.items()
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        "<meta name=viewport content='width=device-width'>"
        f"<title>{title}</title><style>{_STYLE.read_text(encoding='utf-8')}</style><main><h1>{title}</h1>"
        f"<p class=lede>{len(pack.policies)} policies: {_text(told)}. Read each sentence beside its check; then "
        f"say so: <code>bylaw review {_text(pack.root.name)} --accept POLICY --reject POLICY --by NAME</code></p>"
        f"{f'<p>{_text(weighed)}</p>' if weighed else ''}"
        "<table class=index><tr><th>policy<th>kind<th>standing<th>cases<th>flagged in logs<th>questions"
        f"{rows}</table>{bodies}</main></html>\n"
    )


def _text(value: object) -> str:
    """Escapes a pack's text for a page or a quoted attribute, and shows hidden characters."""
    return escape(visible(str(value)), quote=True)


def _row(pack: Pack, policy: Policy, state: Standing, noted: Noted) -> str:
    """A policy's line in the table at the top."""
    flagged = sum(body.calls for body in noted.in_logs.values())
    cases = sum(1 for _ in cases_of(pack, case_names(pack, policy.id)))
    numbers = (cases, flagged, len(noted.questions))
    cells = "".join(f"<td>{number or ''}" for number in numbers)
    what = "unenforced" if policy.unenforced is not None else policy.kind
    name = _text(policy.id)
    return f"<tr><td><a href='#{name}'>{name}</a><td>{_text(what)}<td class='{_text(state)}'>{_text(state)}{cells}"


def _policy(
    pack: Pack, policy: Policy, state: Standing, noted: Noted, signature: Signature | None, check: list[str]
) -> str:
    sentences = "".join(
        f"<blockquote>{_text(each.text or '')} <span class=dim>{_text(str(each))}</span></blockquote>"
        for each in policy.citations
    )
    parts = [
        f"<article><details{' open' if state in _ASKING else ''}>",
        f"<summary><h2>{_text(policy.id)}</h2> <span class='state {_text(state)}'>{_text(state)}</span>",
        f" <span class=dim>{_text(_writer(noted, signature))}</span></summary>",
        f"<div class=both id='{_text(policy.id)}'><div><h3>The document says</h3>{sentences}</div><div>",
        *_check(policy, check),
        *_questions(noted),
        *_flagged(noted),
        *_cases(pack, policy.id),
        "</div></div></details></article>",
    ]
    return "".join(parts)


def _check(policy: Policy, check: list[str]) -> Iterator[str]:
    bound = f", for {', '.join(f'<code>{_text(tool)}</code>' for tool in policy.tools)}" if policy.tools else ""
    kind = _text(policy.kind)
    yield f"<h3>{f'Bylaw checks, as a {kind}{bound}' if check else f'Nothing is checked ({kind})'}</h3>"
    if policy.definition:
        yield f"<p>{_text(policy.definition)}</p>"
    if policy.unenforced is not None:
        word = f"Not enforced, accepted by {policy.unenforced.accepted_by}: {policy.unenforced.reason}"
        yield f"<p class=question>{_text(word)}</p>"
    if check:
        yield f"<pre tabindex=0{'' if policy.kind == 'guard' else ' class=formula'}>{_text(chr(10).join(check))}</pre>"


def _writer(noted: Noted, signature: Signature | None) -> str:
    """The author of the check, and its signature."""
    written = "written by hand"
    if noted.is_compiled:
        tried = [f"{word} {told}" for part, word in _TRIED.items() if (told := getattr(noted, part))]
        written = "written by a model" + (f" ({', '.join(tried)})" if tried else "")
    word = f"; {signature.word} by {signature.by} on {signature.on} {signature.note}".rstrip() if signature else ""
    return written + word


_TRIED = {
    "repairs": "repairs:",
    "generated_inputs": "tried on generated calls:",
    "generations_divided_on": "two generations differ on:",
}


def _questions(noted: Noted) -> Iterator[str]:
    for question in noted.questions:
        yield f"<p class=question>{_text(question.about)}: {_text(question.text)}</p>"
        if question.input is not None:
            yield f"<pre class=given tabindex=0>{_text(dump(question.input))}</pre>"


def _flagged(noted: Noted) -> Iterator[str]:
    for verdict, body in noted.in_logs.items():
        name, often = _text(verdict.replace("_", "-")), "once" if body.calls == 1 else f"{body.calls} times, such as"
        yield f"<h3>In the logs: <span class='{_text(verdict)}'>{name}</span> {often}</h3>"
        first = [
            f"<li><code>{_text(each.conversation)}</code> step {_text(each.step)}: {_text(each.why)}"
            for each in body.first
        ]
        yield f"<ul class=found>{''.join(first)}</ul>"


def _cases(pack: Pack, name: str) -> Iterator[str]:
    cases = list(cases_of(pack, case_names(pack, name)))
    if not cases:
        return
    rows: list[str] = []
    for case in cases:
        want = _text(case.wanted)
        parts = "".join(f"<dt>{_text(title)}<dd>{_text(value)}" for title, value in parts_of(case))
        rows.append(f"<tr><td class='{want}'>{want}<td>{_text(str(case.note))}<dl>{parts}</dl>")
    told = ", ".join(f"{count} {want}" for want, count in Counter(case.wanted for case in cases).items())
    yield f"<h3>Cases</h3><details><summary>{_text(told)}</summary><table>{''.join(rows)}</table></details>"

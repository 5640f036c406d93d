"""Reads the tools and policies of a pack, and finds the sentences that each policy cites in the document."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from bylaw.consent.card import SLOT, Terms, label_of, what_matters
from bylaw.errors import BylawError, meant
from bylaw.facts.value import CURRENCIES
from bylaw.policy.document import Document, Quote, Range, Which, number_of, read_quote
from bylaw.policy.pattern import PatternError, compile_pattern
from bylaw.policy.statement import (
    DRAFTED_BY,
    Citation,
    PoliciesFile,
    Policy,
    PolicyKind,
    Severity,
    Stand,
    StatementError,
    Unenforced,
    WrittenPolicy,
    WrittenSpan,
    WrittenTools,
    told_place,
)
from bylaw.policy.tool import Effect, Tool, ToolsFile, Trust, WrittenCardFact, WrittenTool
from bylaw.policy.verb import words_of
from bylaw.policy.yaml import Located, Scalar, read_record

_CODE = "use a three-letter code, such as EUR"
_SHOWN = 4
"""The maximum number of locations to list in a message."""
_LONGEST = 200
"""The maximum length of a quote in a message, in characters."""


class Ambiguous(Struct, frozen=True):
    """A quote that matches several sentences, all of which are cited."""

    policy: str
    quote: str
    lines: tuple[int, ...]
    documents: tuple[str, ...]
    """The file that contains each line."""

    @property
    def places(self) -> str:
        """The first locations, and the number of further locations."""
        told = [f"{file}:{line}" for file, line in zip(self.documents, self.lines, strict=True)]
        more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        return ", ".join(told[:_SHOWN]) + more

    @property
    def example(self) -> str:
        """The quote with a location, as an example of how to refer only to the first sentence."""
        return f"[{self.documents[0]}:{self.lines[0]}] {self.quote}"


class Cited(Struct, frozen=True):
    citations: tuple[Citation, ...]
    ambiguous: Ambiguous | None = None
    lost: StatementError | None = None
    """The error if the cited text is missing from the document."""


class Citing:
    """Finds the sentences that policies cite in a document. The document may be unavailable."""

    def __init__(self, document: Document | None, title: str) -> None:
        self._document = document
        self._title = title

    def cite(self, span: WrittenSpan, policy: str, place: str) -> Cited:
        """Return the sentences that a span cites by quote or digest.

        `place` is the location of the span in the pack.
        """
        document = self._document
        if document is None:
            return Cited((_outside(span, self._title),))
        if span.is_section:
            return self._section(span, document, policy, place)
        if span.quote is None:
            return self._by_digest(span, document, policy, place)
        quote = _quote(span, document)
        found = quote.places(document)
        if not found and not span.document and str(span.quote) == quote.words:
            # The heading or line of a quote may be outdated. It matters only if the quote occurs more than once.
            found = every if len(every := document.places(quote.words)) == 1 else ()
        if not found:
            return Cited((_outside(span, self._title),), lost=_nowhere(quote, document, policy, place))
        stands = tuple(cited(found, document))
        return Cited(stands, _ambiguous(policy, quote, found, document) if len(stands) > 1 else None)

    def _section(self, span: WrittenSpan, document: Document, policy: str, place: str) -> Cited:
        which = Which(str(span.document), tuple(part.strip() for part in str(span.heading).split(" > ")))
        found = [(each.start, each.end) for each in document.sentences if which.holds((each.start, each.end), document)]
        if found:
            return Cited(tuple(cited(found, document)))
        headings = dict.fromkeys(heading for each in document.sentences for heading in document.headings_at(each.start))
        message = f"no sentence is under the heading `{which}`, which policy `{policy}` cites"
        lost = StatementError(message, place=place, hint=meant(str(span.heading), headings))
        return Cited((_outside(span, self._title),), lost=lost)

    def _by_digest(self, span: WrittenSpan, document: Document, policy: str, place: str) -> Cited:
        """Return the sentence with the span's digest: on the span's line, or else the closest under its heading."""
        digest, line = span.digest or "", span.line or 0
        found = document.all_by_digest(digest)
        if span.document:
            which = Which(str(span.document))
            found = [each for each in found if which.holds((each.start, each.end), document)]
        if not found:
            message = f"no sentence of {document.name} has the digest `{digest}`, which policy `{policy}` cites"
            return Cited((_outside(span, self._title),), lost=StatementError(message, place=place))
        best = min(
            found,
            key=lambda each: (
                (each.line, each.index) != (line, span.sentence),
                each.heading != str(span.heading),
                abs(each.line - line),
            ),
        )
        return Cited(tuple(cited([(best.start, best.end)], document)))


def cited(places: Iterable[Range], document: Document) -> Iterator[Citation]:
    """Yield whole sentences with their locations. A sentence that occurs several times is cited once."""
    stands: dict[str, list[Stand]] = {}
    wholes: dict[str, str] = {}
    told: set[tuple[int, ...]] = set()
    for start, end in places:
        held = document.within(start, end)
        sentences = tuple(each.start for each in held) or (start,)
        if sentences in told:
            continue
        told.add(sentences)
        text = whole = document.whole(start, end)
        if held and start >= held[0].start + number_of(document.text, held[0].start):
            # Keep a clause number only if the quote also contains one.
            text = text[number_of(text) :]
        where = (document.file_at(start).name, document.heading_at(start), document.line_of(start))
        wholes.setdefault(text, whole)
        stands.setdefault(text, []).append(Stand(*where, start, end))
    for text, found in stands.items():
        one, *others = found
        yield Citation(one.document, one.heading, one.line, text, one.start, one.end, tuple(others), wholes[text])


def merged(citations: Sequence[Citation]) -> tuple[Citation, ...]:
    found: dict[str | int, Citation] = {}
    for number, each in enumerate(citations):
        known = found.get(each.text or number)
        if known is None:
            found[each.text or number] = each
            continue
        own = Stand(each.document, each.heading, each.line, each.start, each.end)
        here = {(stand.document, stand.line) for stand in (known, *known.again)}
        more = tuple(stand for stand in (own, *each.again) if (stand.document, stand.line) not in here)
        found[each.text or number] = replace(known, again=(*known.again, *more)) if more else known
    return tuple(found.values())


def _quote(span: WrittenSpan, document: Document) -> Quote:
    quote = read_quote(str(span.quote), document)
    if not (span.document or span.heading or span.line):
        return quote
    headings = (*quote.which.headings, *([str(span.heading)] if span.heading else ()))
    document_name = str(span.document) or quote.which.document or (document.name if span.line else "")
    return Quote(quote.words, Which(document_name, headings, span.line or quote.which.line))


def _nowhere(quote: Quote, document: Document, policy: str, place: str) -> StatementError:
    """Return the error for a quote that is missing from the document, or from the location that the pack states."""
    words = quote.words if len(quote.words) <= _LONGEST else f"{quote.words[:_LONGEST]}..."
    if elsewhere := document.places(quote.words):
        told = [_told(start, document) for start, _ in elsewhere[:_SHOWN]]
        more = f" and {len(elsewhere) - _SHOWN} more" if len(elsewhere) > _SHOWN else ""
        message = f"`{words}`, quoted by `{policy}`, is not at `{quote.which}`"
        return StatementError(message, place=place, hint=f"it is at {', '.join(told)}{more}")
    message = f"`{words}`, quoted by `{policy}`, is not in {_named(document)}"
    nearest = document.nearest(quote.words)
    if nearest is None:
        return StatementError(message, place=place, hint="copy the quote from the document")
    hint = f"the nearest sentence is `{nearest.bare}`, {_told(nearest.start, document)}"
    return StatementError(message, place=place, hint=f"{hint}: copy it exactly")


def _named(document: Document) -> str:
    return document.name if len(document.files) == 1 else f"any of the {len(document.files)} documents"


def _told(offset: int, document: Document) -> str:
    return told_place(document.file_at(offset).name, document.line_of(offset), document.heading_at(offset))


def _ambiguous(policy: str, quote: Quote, places: Sequence[Range], document: Document) -> Ambiguous:
    lines = tuple(document.line_of(start) for start, _ in places)
    files = tuple(document.file_at(start).name for start, _ in places)
    return Ambiguous(policy, quote.words, lines, files)


def spans_of(given: Sequence[Scalar | WrittenSpan]) -> Iterator[tuple[int, WrittenSpan]]:
    """Yield each cited sentence with the index of its entry.

    An entry that is a string is a quote. The key `at` of an entry lists sentences as `line:sentence`.
    """
    for index, span in enumerate(given):
        record = span if isinstance(span, WrittenSpan) else WrittenSpan(quote=span)
        if not record.at:
            yield index, record
        for place, digest in record.at.items():
            line, _, sentence = place.partition(":")
            if line.isdigit() and (sentence or "1").isdigit():
                at = (record.heading, int(line), int(sentence or 1), digest)
                yield index, WrittenSpan(None, record.document, *at)
            else:
                yield index, WrittenSpan()


def _outside(span: WrittenSpan, title: str) -> Citation:
    """Return a citation from an unavailable document. Its location and text are those given in the pack."""
    quote = read_quote(str(span.quote)) if span.quote is not None else None
    words = quote.words if quote is not None else None
    return Citation(str(span.document) or title, str(span.heading), span.line or 0, words, whole=words)


_GLUED_BEFORE = re.compile(r"(?:[A-Za-z\u00c0-\u058f_\d]|\d[.,:'])$")
_GLUED_AFTER = re.compile(r"[A-Za-z\u00c0-\u058f_\d]|[.,:']\d")
"""Matches characters that would merge with a value, as in "{amount}.50". Scripts without spaces are exempt."""


def read_tools(source: Located) -> tuple[dict[str, Tool], list[BylawError]]:
    """Return the tools in `tools.yaml`, and the errors."""
    file, source, faults = read_record(source, ToolsFile)
    _check_patterns(source, file, faults)
    tools: dict[str, Tool] = {}
    said_by: dict[str, str] = {}
    for name, body in file.tools.items():
        tools[name] = _read_tool(name, body or WrittenTool(), file, source, faults, said_by, "tools")
    if file.actions or file.otherwise:
        from bylaw.actions.action_reader import action_tools

        for name, record, of in action_tools(file, source, faults):
            tools[name] = replace(_read_tool(name, record, file, source, faults, said_by, "actions"), of=of)
    return tools, faults


def _read_tool(
    name: str,
    record: WrittenTool,
    file: ToolsFile,
    source: Located,
    faults: list[BylawError],
    said_by: dict[str, str],
    section: str,
) -> Tool:
    """Return a tool, or an action in the form of a tool.

    `said_by` contains the sentences of other tools, which must differ.
    """
    effect: Any = record.effect
    if effect not in get_args(Effect):
        message = f"effect of `{name}` must be read, write or none"
        faults.append(source.fault(StatementError, message, section, name, "effect"))
        effect = "write"
    if record.prepares and effect != "write":
        message = f"`prepares` is for writes, but the effect of `{name}` is {effect}"
        hint = "drop `prepares`: a call that changes nothing needs no request"
        faults.append(source.fault(StatementError, message, section, name, "prepares", hint=hint))
    parameters, required = read_parameters(record.parameters)
    refused, surely_refused = str(record.refused), str(record.surely_refused)
    _check_patterns(source, record, faults, section, name)
    if not refused and not surely_refused:
        refused, surely_refused = str(file.refused), str(file.surely_refused) if effect == "write" else ""
    changes = None if record.changes is None else tuple(record.changes)
    described = str(record.description)
    is_schema = isinstance(record.parameters.get("properties"), dict)
    others = record.parameters.get("additionalProperties", False) if is_schema else False
    called = tuple(map(str, record.also_called))
    trust: dict[str, Trust] = record.trust if isinstance(record.trust, dict) else {"*": record.trust}
    told = (parameters, required, changes, tuple(record.effects), refused, called, others, surely_refused, trust)
    title, masked = " ".join(str(record.title).split()), frozenset(map(str, record.mask))
    written = record.put_as if isinstance(record.put_as, list) else [record.put_as]
    put_as = tuple(" ".join(str(each).split()) for each in written)
    show = {
        key: body if isinstance(body, WrittenCardFact) else WrittenCardFact(body) for key, body in record.show.items()
    }
    for each in put_as:
        other = said_by.setdefault(SLOT.sub("{}", each), name)
        wrong = faults_of_sentence(each, parameters, show, name, other)
        faults += [source.fault(StatementError, message, section, name, "put_as") for message in wrong]
    wrong = _faults_of_facts(show, parameters, name)
    faults += [source.fault(StatementError, message, section, name, "show", key) for key, message in wrong]
    for key, schema in parameters.items():
        currency: Any = cast("dict[str, Any]", schema).get("currency") if isinstance(schema, dict) else None
        if currency is not None and currency not in CURRENCIES:
            message, at = f"`{currency}` is not a currency", (section, name, "parameters", key)
            faults.append(source.fault(StatementError, message, *at, hint=_CODE))
    more: dict[str, Any] = {"mask": masked, "mark": record.mark, "put_as": put_as, "show": show}
    return Tool(name, effect, described, *told, title=title, prepares=record.prepares, **more)


def _check_patterns(source: Located, record: ToolsFile | WrittenTool, faults: list[BylawError], *place: str) -> None:
    for key, pattern in (("refused", record.refused), ("surely_refused", record.surely_refused)):
        try:
            found = compile_pattern(str(pattern), ignore_case=False)
            if str(pattern) and found.search("") is not None:
                raise PatternError("the pattern matches every result", hint="remove the empty alternative")
        except PatternError as error:
            faults.append(source.fault(PatternError, error.message, *place, key, hint=error.hint))


def _faults_of_facts(
    show: Mapping[str, WrittenCardFact], parameters: Mapping[str, Any], tool: str
) -> Iterator[tuple[str, str]]:
    labels = {label_of(key, schema).lower() for key, schema in parameters.items()}
    for name, fact in show.items():
        if name in parameters:
            yield name, f"`{name}` in `show` is already an argument of `{tool}`"
        elif label_of(name, {"title": str(fact.title)}).lower() in labels:
            yield name, f"`{name}` in `show` looks like an argument of `{tool}` on a card"
        if not SLOT.fullmatch(f"{{{name}}}"):
            yield name, f"`{name}` in `show` is not a name: use letters, digits and `_`"
        if not str(fact.value).strip():
            yield name, f"`{name}` in `show` has no expression"
        if fact.currency and str(fact.currency) not in CURRENCIES:
            yield name, f"`{fact.currency}` is not a currency: use a three-letter code, such as EUR"


def faults_of_sentence(
    put_as: str, parameters: Mapping[str, Any], show: Mapping[str, Any], tool: str, other: str
) -> Iterator[str]:
    parts = SLOT.split(put_as)
    words, slots = parts[::2], parts[1::2]
    if not put_as:
        yield f"`put_as` of `{tool}` is empty"
    if other != tool:
        yield f"`{tool}` and `{other}` have the same words in `put_as`, so a yes would be ambiguous"
    # A tool that declares no parameters accepts any arguments.
    for slot in sorted(set(slots) - parameters.keys() - show.keys()) if parameters else ():
        also = " and not in its `show`" if show else ""
        yield f"`{slot}` in `put_as` is not a parameter of `{tool}`{also}"
    for fact in sorted(show.keys() - set(slots)):
        yield f"`put_as` of `{tool}` does not contain `{{{fact}}}`, which is in `show`"
    if any(brace in part for part in words for brace in "{}"):
        yield f"`put_as` of `{tool}` has a brace without the name of a parameter"
    if not all(words[1:-1]):
        yield f"`put_as` of `{tool}` has two adjacent values: put words between them"
    if any(map(_GLUED_BEFORE.search, words[:-1])) or any(map(_GLUED_AFTER.match, words[1:])):
        yield f"`put_as` of `{tool}` has a value next to a letter or digit: put a space between them"


def read_parameters(given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the schema of each parameter by name, and the names of the required parameters."""
    if isinstance(given.get("properties"), dict):
        return given["properties"], tuple(given.get("required", ()))
    parameters: dict[str, Any] = {}
    required: list[str] = []
    for name, spec in given.items():
        if isinstance(spec, str):
            parameters[name] = {"type": spec.removesuffix("?")}
            optional = spec.endswith("?")
        else:
            parameters[name] = dict(cast(dict[str, Any], spec)) if isinstance(spec, dict) else {}
            optional = str(parameters[name].get("type", "")).endswith("?") or bool(
                parameters[name].pop("optional", False)
            )
        if not optional:
            required.append(name)
    return parameters, tuple(required)


class PolicyReader:
    """Reads `policies.yaml`, and collects all errors in the file."""

    def __init__(self, source: Located, tools: Mapping[str, Tool], document: Document | None, title: str) -> None:
        self._file, self._source, self.faults = read_record(source, PoliciesFile)
        self._tools = tools
        self._citing = Citing(document, title)
        self.lost: list[BylawError] = []
        """Errors about cited sentences that are missing from the document."""
        self.ambiguous: list[Ambiguous] = []
        self.digests: dict[str, tuple[str, ...]] = {}
        self.places: dict[str, str] = {}

    def read(self) -> dict[str, Policy]:
        """Return the policies, keyed by id, in order."""
        policies: dict[str, Policy] = {}
        for index, body in enumerate(self._file.policies):
            if not body.id:
                self._fault("a policy needs an id", index)
                continue
            policy = self._policy(str(body.id), body, index)
            if policy.id in policies:
                hint = f"the policy is also at {self.places[policy.id]}; remove one of them, or change its id"
                self._fault(f"policy `{policy.id}` is listed twice", index, hint=hint)
            policies[policy.id] = policy
            self.places[policy.id] = self._source.place("policies", index)
        return policies

    def _policy(self, name: str, body: WrittenPolicy, index: int) -> Policy:
        kind: Any = body.kind
        severity: Any = body.severity
        if kind not in get_args(PolicyKind):
            self._fault(f"kind `{kind}` of `{name}` is not one of {', '.join(get_args(PolicyKind))}", index, "kind")
            kind = "knowledge"
        if severity not in get_args(Severity):
            self._fault(f"severity of `{name}` must be high, medium or low, not `{severity}`", index, "severity")
            severity = "medium"
        tools = self._bound(body.tools, name, index)
        if kind == "guard" and not tools and not body.spans:
            hint = (
                "state its tools and its sentence in its guard, or here under `tools` and `spans`, or remove the policy"
            )
            self._fault(f"policy `{name}` has neither tools nor sentences", index, hint=hint, lacks=f"guard {name}")
            # Assume this kind, which avoids a second error about the missing check.
            return Policy(name, "knowledge", str(body.definition))
        if kind == "guard" and not tools:
            self._fault(
                f"policy `{name}` applies to no tool",
                index,
                hint="name them in its guard, `call: tool`, or here: `tools: [...]`",
            )
        citations: list[Citation] = []
        stale = False
        for at, span in spans_of(body.spans):
            if span.is_section and kind not in ("knowledge", "conversation"):
                hint = (
                    "quote the sentence; only policies of kind `knowledge` or `conversation` may cite a whole section"
                )
                self._fault(f"a span of `{name}` is a whole section", index, "spans", hint=hint)
                continue
            if span.quote is None and not span.is_section and (span.line is None or span.digest is None):
                self._fault(
                    f"a span of `{name}` needs `quote`, or `line` and `digest`, or `at: {{line:sentence: digest}}`",
                    index,
                    "spans",
                )
                continue
            found = self._citing.cite(span, name, self._source.place("policies", index, "spans", at))
            citations += found.citations
            self.ambiguous += [found.ambiguous] if found.ambiguous is not None else []
            if found.lost is not None:
                stale = True
                self.lost.append(found.lost)
            if span.digest is not None:
                self.digests[name] = (*self.digests.get(name, ()), span.digest)
        accepted = body.unenforced
        is_draft = accepted is not None and accepted.accepted_by == DRAFTED_BY
        if not citations and kind != "knowledge" and not is_draft:
            hint = "quote the sentence in the docstring of its guard, one line per sentence, or here: `spans: [...]`"
            self._fault(f"policy `{name}` cites no sentence", index, hint=hint)
        unenforced = Unenforced(str(accepted.accepted_by), str(accepted.reason)) if accepted is not None else None
        if unenforced and not unenforced.accepted_by:
            self._fault(
                f"`unenforced` of `{name}` does not name the person who accepts it", index, hint="add `accepted_by`"
            )
        said = (str(body.definition), tools, str(body.description))
        return Policy(name, kind, *said, merged(citations), severity, unenforced, stale)

    def _bound(self, given: list[Scalar | WrittenTools] | WrittenTools, name: str, index: int) -> tuple[str, ...]:
        if isinstance(given, WrittenTools):
            return self._matching(given, name, index)
        self._must_be_tools(tuple(str(each) for each in given if not isinstance(each, WrittenTools)), name, index)
        bound = (
            self._matching(each, name, index) if isinstance(each, WrittenTools) else (str(each),) for each in given
        )
        return tuple(dict.fromkeys(tool for tools in bound for tool in tools))

    def _matching(self, given: WrittenTools, name: str, index: int) -> tuple[str, ...]:
        taken, left = _names(given.with_), _names(given.except_)
        if given.effect is not None and given.effect not in get_args(Effect):
            self._fault(f"the effect must be read, write or none, not `{given.effect}`", index, "tools")
        self._must_be_tools(left, name, index)
        found = tuple(
            tool.name
            for tool in self._tools.values()
            if given.effect in (None, tool.effect) and tool.parameters.keys() >= set(taken) and tool.name not in left
        )
        if not found or given == WrittenTools():
            message = f"no tool matches `tools` of policy `{name}`"
            self._fault(message, index, "tools", hint="see tools.yaml", lacks="tool" if not self._tools else "")
        return found

    def _must_be_tools(self, names: tuple[str, ...], policy: str, index: int) -> None:
        for tool in names:
            if tool not in self._tools:
                message, hint = f"`{tool}` of policy `{policy}` is not a tool", meant(tool, self._tools)
                self._fault(message, index, "tools", hint=hint, lacks=f"tool {tool}")

    def _fault(self, message: str, index: int, *at: str, hint: str = "", lacks: str = "") -> None:
        place = self._source.place("policies", index, *at)
        self.faults.append(StatementError(message, place=place, hint=hint, lacks=lacks))


def _names(given: Scalar | list[Scalar]) -> tuple[str, ...]:
    return tuple(map(str, given if isinstance(given, list) else (given,)))


_SIMPLE = {"string", "integer", "number", "boolean"}


def draft_sentences(tool: str, given: Mapping[str, Any], taken: set[str]) -> list[str]:
    """Return drafts of `put_as` for a write: one sentence with only the required arguments, and one that also has the
    optional arguments.

    `given` contains the tool's parameters in tools.yaml. If a required argument, such as an object, does not fit into
    a sentence, return no sentences, so that the user is shown a card. Sentences in `taken` are left out, and new
    sentences are added to `taken`.
    """
    parameters, required = read_parameters(given)
    matters = [name for name in parameters if what_matters({name: "" if _is_text(parameters[name]) else 0}, Terms())]
    simple = [name for name in matters if _is_simple(parameters[name])]
    if any(name in required and name not in simple for name in matters):
        return []
    needed = [name for name in simple if name in required]
    # A sentence without arguments would not identify the call.
    drafts = [_sentence(tool, names) for names in (needed, simple) if names or not simple]
    found = [each for each in dict.fromkeys(drafts) if not any(faults_of_sentence(each, parameters, {}, tool, tool))]
    words = {SLOT.sub("{}", each) for each in found}
    if not words.isdisjoint(taken):
        return []
    taken |= words
    return found


def _sentence(tool: str, names: list[str]) -> str:
    """Return a sentence such as `cancel order with order id {order_id} and fee {fee}`."""
    parts = [f"{' '.join(words_of(name))} {{{name}}}" for name in names]
    listed = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
    return " ".join(words_of(tool)) + (f" with {listed}" if listed else "")


def _is_text(schema: Any) -> bool:
    return isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "string"


def _is_simple(schema: Any) -> bool:
    """Whether a value with this schema fits into a sentence: text, numbers, Booleans, and lists of these."""
    declared = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    if declared.get("type") == "array":
        return _is_simple(declared.get("items"))
    kinds: Any = declared.get("type")
    named = {*cast("list[Any]", kinds)} if isinstance(kinds, list) else {kinds}
    return bool(named - {"null"}) and named - {"null"} <= _SIMPLE

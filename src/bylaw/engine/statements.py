"""Reads a pack's tools and policies, and finds each policy's sentences in the document."""

from collections.abc import Iterator, Mapping
from typing import Any, cast, get_args

from bylaw.errors import BylawError
from bylaw.policy.document import Document
from bylaw.policy.pattern import PatternError, compile_pattern
from bylaw.policy.statement import Citation, Policy, PolicyKind, Severity, Unenforced
from bylaw.policy.tool import Effect, Tool
from bylaw.policy.yaml import Located


class StatementError(BylawError):
    """A policy or a tool of a pack does not say what it must."""

    code = "BY406"


def read_tools(source: Located) -> tuple[dict[str, Tool], list[BylawError]]:
    """The tools of `tools.yaml`, and the faults met."""
    tools: dict[str, Tool] = {}
    faults: list[BylawError] = []
    for name, body in cast(dict[str, Any], source.data.get("tools") or {}).items():
        record = cast(dict[str, Any], body or {})
        effect: Any = record.get("effect")
        if effect not in get_args(Effect):
            place = source.place("tools", name, "effect")
            faults.append(StatementError(f"effect of `{name}` is none of read, write, none", place=place))
            effect = "write"
        parameters, required = _parameters(record)
        refused = str(record.get("refused", ""))
        try:
            compile_pattern(refused, ignore_case=False)
        except PatternError as error:
            place = source.place("tools", name, "refused")
            faults.append(PatternError(error.message, place=place, hint=error.hint))
        changes = record.get("changes")
        tools[name] = Tool(
            name,
            effect,
            str(record.get("description", "")),
            parameters,
            required,
            None if changes is None else tuple(changes),
            tuple(record.get("effects") or ()),
            refused,
        )
    return tools, faults


def _parameters(record: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    given: dict[str, Any] = record.get("parameters") or {}
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
    """Reads `policies.yaml`; keeps every fault it meets."""

    def __init__(self, source: Located, tools: Mapping[str, Tool], document: Document | None, title: str) -> None:
        self._source = source
        self._tools = tools
        self._document = document
        self._title = title
        self.faults: list[BylawError] = []
        self.digests: dict[str, tuple[str, ...]] = {}

    def read(self) -> dict[str, Policy]:
        """The policies by id, in the order written."""
        policies: dict[str, Policy] = {}
        for index, body in enumerate(self._source.data.get("policies") or []):
            if body is None:
                continue
            policy = self._policy(body, index)
            if policy is None:
                continue
            if policy.id in policies:
                self._fault(f"policy `{policy.id}` stands twice", index)
            policies[policy.id] = policy
        return policies

    def _policy(self, body: Any, index: int) -> Policy | None:
        if not isinstance(body, dict) or not cast(dict[str, Any], body).get("id"):
            self._fault("a policy needs an id", index)
            return None
        record = cast(dict[str, Any], body)
        name, kind, severity = str(record["id"]), record.get("kind", "guard"), record.get("severity", "medium")
        if kind not in get_args(PolicyKind):
            self._fault(f"kind `{kind}` of `{name}` is none of {', '.join(get_args(PolicyKind))}", index, "kind")
            kind = "knowledge"
        if severity not in get_args(Severity):
            self._fault(f"severity `{severity}` of `{name}` is none of high, medium, low", index, "severity")
            severity = "medium"
        tools = self._bound(record.get("tools"), name, index)
        if kind == "guard" and not tools:
            self._fault(f"policy `{name}` binds no tool", index, hint="add `tools: [...]`")
        citations: list[Citation] = []
        stale = False
        for span in _spans(record.get("spans")):
            if "quote" not in span and not ("line" in span and "digest" in span):
                self._fault(
                    f"a span of `{name}` needs `quote`, or `line` and `digest`, or `at: {{line:sentence: digest}}`",
                    index,
                    "spans",
                )
                continue
            citation = self._citation(span)
            stale |= citation is None
            citations.append(citation or _outside(span, self._title))
            if "digest" in span:
                self.digests[name] = (*self.digests.get(name, ()), str(span["digest"]))
        if not citations and kind != "knowledge":
            self._fault(f"policy `{name}` cites no sentence", index, hint="add `spans: [{quote: ...}]`")
        accepted: dict[str, Any] | None = record.get("unenforced")
        unenforced = (
            Unenforced(str(accepted.get("accepted_by", "")), str(accepted.get("reason", ""))) if accepted else None
        )
        if unenforced and not unenforced.accepted_by:
            self._fault(f"`{name}` is accepted as unenforced by nobody", index, hint="add `accepted_by`")
        definition = str(record.get("definition", ""))
        description = str(record.get("description", ""))
        return Policy(name, kind, definition, tools, description, tuple(citations), severity, unenforced, stale)

    def _bound(self, given: Any, name: str, index: int) -> tuple[str, ...]:
        """The tools that a policy binds, named one by one or by what they do and take."""
        if not isinstance(given, dict):
            tools = tuple(str(tool) for tool in cast(list[Any], given or ()))
            for tool in tools:
                if tool not in self._tools:
                    self._fault(f"`{tool}` of policy `{name}` is not a tool", index, "tools")
            return tools
        record = cast(dict[str, Any], given)
        effect, taken, left = record.get("effect"), _names(record.get("with")), _names(record.get("except"))
        if effect is not None and effect not in get_args(Effect):
            self._fault(f"effect `{effect}` is none of read, write, none", index, "tools")
        for tool in left:
            if tool not in self._tools:
                self._fault(f"`{tool}` of policy `{name}` is not a tool", index, "tools")
        found = tuple(
            tool.name
            for tool in self._tools.values()
            if effect in (None, tool.effect) and tool.parameters.keys() >= set(taken) and tool.name not in left
        )
        if not found or not record:
            self._fault(f"no tool is as policy `{name}` wants it", index, "tools", hint="see tools.yaml")
        return found

    def _citation(self, span: Mapping[str, Any]) -> Citation | None:
        """Where the span stands; None where the document at hand no longer has it."""
        document = self._document
        if document is None:
            return _outside(span, self._title)
        if "quote" in span:
            found = document.find(str(span["quote"]))
            if found is None:
                return None
            start, end = found
            text = " ".join(document.text[start:end].split())
            return Citation(document.name, document.heading_at(start), document.line_of(start), text, start, end)
        line, index = int(span.get("line", 0)), int(span.get("sentence", 1))
        digest = str(span.get("digest", ""))
        here = [s for s in document.sentences if s.digest == digest and s.line == line and s.index == index]
        sentence = here[0] if here else document.by_digest(digest)
        if sentence is None:
            return None
        return Citation(document.name, sentence.heading, sentence.line, sentence.text, sentence.start, sentence.end)

    def _fault(self, message: str, index: int, *at: str, hint: str = "") -> None:
        self.faults.append(StatementError(message, place=self._source.place("policies", index, *at), hint=hint))


def _spans(given: Any) -> Iterator[dict[str, Any]]:
    """Each sentence cited: a text is a quote, and `at` names several by `line:sentence`."""
    for span in cast(list[Any], given or []):
        if span is None:
            continue
        record = cast(dict[str, Any], span) if isinstance(span, dict) else {"quote": span}
        if not isinstance(record.get("at"), dict):
            yield record
            continue
        for place, digest in cast(dict[str, Any], record["at"]).items():
            line, _, sentence = str(place).partition(":")
            if line.isdigit() and (sentence or "1").isdigit():
                heading = record.get("heading", "")
                yield {"heading": heading, "line": int(line), "sentence": int(sentence or 1), "digest": digest}
            else:
                yield {}


def _names(given: Any) -> tuple[str, ...]:
    return tuple(map(str, cast(list[Any], given) if isinstance(given, list) else () if given is None else (given,)))


def _outside(span: Mapping[str, Any], title: str) -> Citation:
    text = span.get("quote")
    return Citation(title, str(span.get("heading", "")), int(span.get("line", 0)), text if text is None else str(text))

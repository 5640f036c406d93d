"""Removes private values from all output of an audit.

With `--redact`, also removes free text and ids. Imported only if the pack has private fields or `--redact` is used.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from bylaw.audit.private import SAYS_LITTLE, Private, Scrub, WatchedWorld, collect, leaves, respelled
from bylaw.audit.row import CallRow, ConversationRow, JsonRecord, encode, record_of
from bylaw.engine.settlement import CallVerdict
from bylaw.engine.wording import policy_words, rule_words
from bylaw.errors import RecordError, UsageError
from bylaw.facts.world import World
from bylaw.pack import Pack
from bylaw.trace.event import Event, decode_text

Line = dict[str, Any]

_PLACE = re.compile(r"^(.*?)([:#]\d+)?$", re.DOTALL)
_FORMATS = "json|jsonl|ndjson|eval|log|txt|csv|parquet|db|sqlite|sql|yaml"
_EXTENSION = re.compile(rf"(\.(?:{_FORMATS}))?(\.(?:gz|bz2|zst))?$", re.IGNORECASE)
"""File extensions of logs and databases, which may be shown. Any other extension may be private."""
_QUOTED = re.compile(r"`[^`]*`?|'[^']*'?|\"[^\"]*\"?")
_SHORTEST = 8


class Pseudonyms:
    """Creates pseudonyms. With the same key, a value always gets the same pseudonym."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, value: Any) -> str:
        """Return the pseudonym of a value. The number 1 and the text "1" get the same pseudonym."""
        text = ("true" if value else "false") if isinstance(value, bool) else str(value)
        return "p-" + hashlib.blake2b(text.encode("utf-8", "replace"), key=self._key, digest_size=5).hexdigest()

    def unquoted(self, text: str) -> str:
        """Return the message with `...` in place of each quoted value."""
        return _QUOTED.sub("...", text)

    @property
    def mark(self) -> str:
        """Return a digest that identifies the key without revealing it."""
        return hashlib.blake2b(b"which key", key=self._key, digest_size=6).hexdigest()

    def place(self, place: str) -> str:
        """Hide the path in a location, but keep the line or position."""
        path, at = cast(re.Match[str], _PLACE.match(place)).groups()
        return self.file(path) + (at or "")

    def file(self, path: str) -> str:
        """Hide the path of a file, but keep a known extension."""
        ending = cast(re.Match[str], _EXTENSION.search(path))[0]
        return f"{self.of(path)}{ending}" if path else path

    def fault(self, fault: RecordError) -> RecordError:
        """Remove quoted values from an error message."""
        return RecordError(self.unquoted(fault.message), place=self.place(fault.place))

    def summary(self, summary: Line) -> Line:
        """Return `summary.json` without file names. The names of agents and tools are already hidden."""
        return summary | {
            "redacted": self.mark,
            "files": [self.file(file) for file in summary["files"]],
            "worlds": {self.file(file): self.file(note) for file, note in summary["worlds"].items()},
            "limits": [
                row | {"first": [each | {"file": self.file(each["file"])} for each in row["first"]]}
                for row in summary["limits"]
            ],
        }


def redaction_key(given: str | None) -> bytes:
    """Return the given key, or a random key that is used for this run only."""
    if given is None:
        return secrets.token_bytes(32)
    if len(given) < _SHORTEST:
        raise UsageError("the redaction key is too short", hint=f"use at least {_SHORTEST} characters")
    return hashlib.blake2b(given.encode(), digest_size=32).digest()


_KEYED = re.compile(r"^([^\[]*)\[(.*)\](.*)$", re.DOTALL)
_UNREAD = ("not_captured", "not_readable", "not_shown", "not_told", "contradicted", "spelt_otherwise")


class Redaction:
    """The private values to hide in one pack's conversations."""

    def __init__(self, pack: Pack, key: bytes | None = None) -> None:
        self.private = Private(pack)
        self.pseudonyms = Pseudonyms(key) if key is not None else None
        schema = pack.schema
        self.names = {name for entity in schema.entities.values() for name in (entity.name, *entity.fields)}
        self.names |= schema.arguments(tuple(schema.tools)) | schema.tools.keys()
        self.keys = {entity.name: entity.key for entity in schema.entities.values()}
        self.tools = schema.tools.keys()
        self.tags = {f"[{kind}.{name}]" for kind, marked in self.private.fields.items() for name in marked}
        self._pack = pack
        self._denials: dict[str, list[tuple[re.Pattern[str], str]]] = {}

    def __bool__(self) -> bool:
        return bool(self.private) or self.pseudonyms is not None

    def watch(self, world: World | None) -> World | None:
        """Return the database.

        If it may contain private values, the returned database records which entities are read.
        """
        return cast(World, WatchedWorld(world, self.private)) if world is not None and self.private else world

    def cover(self, events: Sequence[Event], world: World | None, verdicts: Sequence[CallVerdict]) -> "Cover":
        """Return the cover for one conversation.

        `world` is the database that `watch` returned and that judged the conversation.
        """
        if not self.private:
            return Cover(self, Scrub(()))
        found = collect(self.private, events, world.read if isinstance(world, WatchedWorld) else {})
        for verdict in verdicts:
            for policy in verdict.policies:
                for missing in policy.missing:
                    fact = missing.fact
                    if missing.claim and fact.field in self.private.fields.get(fact.entity, ()):
                        found.append(((f"{fact.entity}.{fact.field}", missing.claim, fact.field, False), None))
        return Cover(self, Scrub([*found, *respelled(found, events)]))

    def safe_names(self, tool: str, value: Any, names: Sequence[str]) -> list[str]:
        """Return the field names in a result that are safe to show. A field name can itself be private."""
        if not self.private:
            return list(names)
        found = {
            text.lower()
            for _, shown, _, _ in self.private.in_result(tool, {}, value, None)
            for leaf, _ in leaves(shown, "")
            if (text := str(leaf).strip())
        }
        return [name for name in names if not any(text in name.lower() for text in found if len(text) > SAYS_LITTLE)]

    def field_name(self, name: str) -> str:
        """Return the name to show for an undeclared field."""
        return self.pseudonyms.of(name) if self.pseudonyms is not None else name

    def denial(self, policy: str, text: str) -> str:
        """Return a guard's reason without its values.

        If the reason is not recognised, return the policy's definition.
        """
        if policy not in self._denials:
            guard = self._pack.guards.get(policy)
            texts = guard.denials if guard is not None else []
            self._denials[policy] = [
                (re.compile(".*".join(map(re.escape, words.split("..."))), re.DOTALL), words) for words in texts
            ]
        for pattern, words in self._denials[policy]:
            if pattern.fullmatch(text):
                return words
        return self._pack.policies[policy].definition if policy in self._pack.policies else ""


class Cover:
    """Hides the private values of one conversation, record by record."""

    def __init__(self, redaction: Redaction, scrub: Scrub) -> None:
        self._redaction = redaction
        self._scrub = scrub
        self._pseudonyms = redaction.pseudonyms

    def name(self, name: str) -> str:
        """Return the id of a conversation or call for the output."""
        return self._pseudonyms.of(name) if self._pseudonyms is not None and name else self._scrub.text(name)

    def words(self, text: str) -> str:
        """Return text or a name from a person or model, without private values.

        A redacted audit shows neither text nor names.
        """
        return "" if self._pseudonyms is not None else self._scrub.reason(text)

    def scrubbed(self, text: str) -> str:
        return self._scrub.text(text)

    def call(self, row: CallRow) -> bytes:
        line = record_of(row)
        hidden = line | {
            "call_id": self.name(row.call_id),
            "policies": [self._policy(policy) for policy in line["policies"]],
            "rules": [self.rule(rule) for rule in line["rules"]],
            "open_rules": [self.rule(rule) for rule in line["open_rules"]],
        }
        if "origins" in line:
            hidden["origins"] = [
                each | {"tool": self.tool(each["tool"])} if "tool" in each else each for each in line["origins"]
            ]
        if "answered" in line:
            hidden["answered"] = [self._answer(each) for each in line["answered"]]
        if row.because:
            because = self._scrub.reason(row.because)
            hidden["because"] = self._pseudonyms.unquoted(because) if self._pseudonyms is not None else because
        return encode(hidden)

    def _answer(self, answer: JsonRecord) -> JsonRecord:
        """Return an answer without the model's text, because that text may quote private values.

        Reviewers' text is already redacted.
        """
        if answer["by"] == "person":
            return answer
        shown = {name: value for name, value in answer.items() if name not in ("because", "quotes")}
        if self._pseudonyms is not None or "because" not in answer:
            return shown
        quotes = [each | {"text": self._scrub.text(each["text"])} for each in answer.get("quotes", ())]
        return shown | {"because": self.words(answer["because"])} | ({"quotes": quotes} if quotes else {})

    def _predicate(self, predicate: JsonRecord) -> JsonRecord:
        """Return a predicate with its value at a step, but without the model's text."""
        why: JsonRecord = predicate.get("why") or {}
        if not why:
            return predicate
        shown = {name: value for name, value in why.items() if name != "words"}
        if "facts" in why:
            shown["facts"] = [self._fact(each) for each in why["facts"]]
        if "words" in why and why["reason"] != "model":
            shown["words"] = self._denied(why["policy"], why["words"]) if "policy" in why else why["words"]
        return predicate | {"why": shown}

    def rule(self, line: JsonRecord) -> JsonRecord:
        """Return a line for `findings.jsonl`.

        If a rule applies to each entity separately, the line also names the entity.
        """
        shown = [self._predicate(each) for each in line.get("predicates", ())]
        hidden = line | {"predicates": shown}
        if binding := line.get("binding"):
            value = self._scrub.reason(binding["value"])
            shown = self._pseudonyms.of(value) if self._pseudonyms is not None else value
            hidden["binding"] = binding | {"value": shown}
        return hidden | {"because": self._scrub.reason(rule_words(hidden))}

    def agent(self, name: str) -> str:
        hidden = self._scrub.text(name)
        return self._pseudonyms.of(hidden) if self._pseudonyms is not None and hidden else hidden

    def tool(self, name: str) -> str:
        """Return the name of a tool. Undeclared names are hidden, because they may contain private values."""
        if name in self._redaction.tools:
            return name
        hidden = self._scrub.text(name)
        return self._pseudonyms.of(hidden) if self._pseudonyms is not None else hidden

    def conversation(self, row: ConversationRow) -> ConversationRow:
        if self._pseudonyms is None and self._scrub.is_empty:
            return row
        file = (self._pseudonyms.file if self._pseudonyms is not None else self._scrub.text)(row.file)
        return replace(row, file=file, events=[self._event(step, event) for step, event in enumerate(row.events)])

    def _event(self, step: int, event: JsonRecord) -> JsonRecord:
        if event["type"] == "call":
            return event | {
                "tool": self.tool(event["tool"]),
                "arguments": self._data(event["arguments"]),
                "id": self.name(event["id"]),
            }
        text: str = event["text"]
        if self._pseudonyms is not None:
            value = decode_text(text) if event["type"] == "result" else None
            said = f"[{len(text)} characters]" if text else ""
            return event | {"text": json.dumps(self._data(value)) if isinstance(value, dict | list) else said}
        hidden = self._scrub.text(text, step)
        return event if hidden is text else event | {"text": hidden}

    def _policy(self, policy: JsonRecord) -> JsonRecord:
        hidden = policy | {
            "missing": [self._missing(fact) for fact in policy["missing"]],
            "asks": [self._ask(ask) for ask in policy["asks"]],
            "seen": [self._seen(fact) for fact in policy["seen"]],
        }
        hidden["reason"] = reason = self._reason(policy["id"], policy["reason"])
        because = policy_words(hidden)
        if self._pseudonyms is None:
            because = self._scrub.reason(because)
        return hidden | {"because": because, "reason": reason}

    def _reason(self, policy: str, reason: JsonRecord) -> JsonRecord:
        words: str = reason["words"]
        if reason["kind"] == "approved":
            # The reviewer's name and note are private.
            words = "approved by a reviewer"
        elif reason["kind"] != "person":
            # The reviewer's text is already redacted.
            words = self._denied(policy, words)
        facts = {name: [self._fact(each) for each in reason[name]] for name in _UNREAD if name in reason}
        return reason | {"words": words} | facts

    def _denied(self, policy: str, words: str) -> str:
        if self._pseudonyms is None:
            return self._scrub.reason(words)
        return self._redaction.denial(policy, words) if words else words

    def _missing(self, fact: JsonRecord) -> JsonRecord:
        lookup = fact["lookup"] and {**fact["lookup"], "args": self._data(fact["lookup"]["args"])}
        hidden = self._fact(fact) | {"lookup": lookup}
        if self._pseudonyms is not None or (fact["field"] in self._redaction.private.fields.get(fact["entity"], ())):
            return hidden | {"claim": ""}
        return hidden | {"claim": self._scrub.text(fact["claim"])}

    def _seen(self, fact: JsonRecord) -> JsonRecord:
        hidden = self._fact(fact)
        return hidden | {"value": self._data(fact["value"])} if "value" in fact else hidden

    def _fact(self, fact: JsonRecord) -> JsonRecord:
        if not fact["key"]:
            return fact
        names = self._redaction.keys.get(fact["entity"], ())
        marked = self._redaction.private.fields.get(fact["entity"], {})
        key = [
            f"[{fact['entity']}.{name}]" if name in marked else self._data(part)
            for name, part in zip(names, fact["key"], strict=False)
        ]
        return fact | {"key": key}

    def _ask(self, ask: JsonRecord) -> JsonRecord:
        fact = self._scrub.reason(ask["fact"])
        if (pseudonyms := self._pseudonyms) is not None and (match := _KEYED.match(fact)):
            fact = f"{match[1]}[{', '.join(map(pseudonyms.of, match[2].split(', ')))}]{match[3]}"
        return {"fact": fact, "question": ask["question"].replace(ask["fact"], fact)}

    def _data(self, value: Any) -> Any:
        hidden = self._scrub.data(value)
        return self._structure(hidden) if self._pseudonyms is not None else hidden

    def _structure(self, value: Any) -> Any:
        """Return the data with its structure, booleans and declared names.

        Everything else is replaced with pseudonyms.
        """
        assert self._pseudonyms is not None
        if isinstance(value, Mapping):
            known, of = self._redaction.names, self._pseudonyms.of
            pairs = cast(Mapping[str, Any], value).items()
            return {name if name in known else of(name): self._structure(item) for name, item in pairs}
        if isinstance(value, list | tuple):
            return [self._structure(item) for item in cast(Sequence[Any], value)]
        if value is None or isinstance(value, bool) or value in self._redaction.tags:
            return value
        return self._pseudonyms.of(value)

"""A compiled pack, which can judge calls: policies with their sentences, tools, facts and guards.

Only the causes of errors are reported. For example, a missing tools.yaml is reported once, without the errors that
follow from it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from msgspec import Struct
from msgspec.structs import replace

from bylaw.errors import BylawError, PackError, SyntaxFault, UsageError, meant
from bylaw.facts.schema import Schema
from bylaw.facts.schema_reader import SchemaReader
from bylaw.guard import Guard, compared_with_none, compile_expression
from bylaw.pack.code import (
    Pinned,
    card_code,
    pinned_of,
    predicate_code,
    read_guards,
    read_pack_actions,
    unenforced,
    with_card_facts,
    with_lookups,
    with_unsaid,
)
from bylaw.pack.review import Standing, unaccepted
from bylaw.pack.rules import ReadyRules, Rules, RulesReader, where_broken
from bylaw.pack.statements import Ambiguous, PolicyReader, read_tools
from bylaw.policy.case import CasesFile, read_case_file
from bylaw.policy.catalogue import CatalogueError
from bylaw.policy.document import Document
from bylaw.policy.folder import (
    Criterion,
    Manifest,
    ManifestError,
    PackFolder,
    WrittenDocument,
    find_folder,
    named_documents,
    read_folder,
)
from bylaw.policy.statement import Policy
from bylaw.policy.tool import Postures
from bylaw.policy.yaml import Located, Read, Scalar, ShapeError, YamlError
from bylaw.rule.formula import atoms
from bylaw.rule.rule import Rule

_DECLARED_IN: Mapping[str, tuple[str, ...]] = {
    "tool": ("tools",),
    "argument": ("tools",),
    "entity": ("entities",),
    "field": ("entities",),
    "predicate": ("rules",),
    "policy": ("policies", "guards"),
    "guard": ("guards",),
}
"""For each kind of error, the files that may contain the missing declaration."""
_CONTENTS = {
    "tools": "list the tools that the agent may call, each with its effect (read, write or none)",
    "entities": "declare the entities that guards read, with their keys and fields",
}
_SHOWN = 4


def causes(faults: Iterable[BylawError], *, files: Collection[str], declared: Mapping[str, bool]) -> list[BylawError]:
    """Return the `faults` without those that are consequences of others.

    `files` are the YAML files that exist. `declared` says whether the pack has tools and entities.
    """
    faults = list(faults)
    broken = {
        _part(fault) for fault in faults if isinstance(fault, YamlError | ShapeError | CatalogueError | SyntaxFault)
    }
    kept: list[BylawError] = []
    for part in _CONTENTS:
        needing = [fault for fault in faults if part in _declared_in(fault)]
        if needing and not declared[part] and part not in broken:
            kept.append(_undeclared(part, part in files, needing))
            broken.add(part)
    has_no_tool = any(_kind(fault) == "tool" for fault in faults)
    by_name: dict[str, list[BylawError]] = {}
    for fault in faults:
        # If a tool is unknown, its arguments are unknown too.
        if broken.isdisjoint(_declared_in(fault)) and not (has_no_tool and _kind(fault) == "argument"):
            by_name.setdefault(fault.lacks or f"{fault.code} {fault.message} {fault.hint}", []).append(fault)
    return kept + [one_for_all(alike) for alike in by_name.values()]


def _kind(fault: BylawError) -> str:
    return fault.lacks.partition(" ")[0]


def _declared_in(fault: BylawError) -> tuple[str, ...]:
    return _DECLARED_IN.get(_kind(fault), ())


def _part(fault: BylawError) -> str:
    """Return the part of a pack that contains a location: `tools` for `tools.yaml:3`, `guards` for `guards/a.py:1`."""
    file = fault.place.partition(":")[0]
    folder, _, _ = file.removeprefix("../").rpartition("/")
    return folder.rpartition("/")[2] if file.endswith(".py") else file.rpartition("/")[2].removesuffix(".yaml")


def _undeclared(part: str, is_there: bool, needing: Sequence[BylawError]) -> BylawError:
    found = (fault.lacks.partition(" ")[2] for fault in needing if _kind(fault) in ("tool", "entity"))
    names = [f"`{name}`" for name in dict.fromkeys(found) if name]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    named = f", and the pack names {', '.join(names[:_SHOWN])}{more}" if names else ""
    message = f"the file lists no {part}{named}" if is_there else f"this file is missing{named}"
    hint = f"{_CONTENTS[part]}; `bylaw init` drafts it from logs"
    return ManifestError(message, place=f"{part}.yaml", hint=hint)


def one_for_all(alike: Sequence[BylawError]) -> BylawError:
    """Return one error in place of several errors with this message. It lists all their locations."""
    first, *others = alike
    places = list(dict.fromkeys(fault.place for fault in others if fault.place != first.place))
    if not places:
        return first
    more = f" and {len(places) - _SHOWN} more places" if len(places) > _SHOWN else ""
    also = f"also at {', '.join(places[:_SHOWN])}{more}"
    made = copy(first)
    made.hint = "; ".join(filter(None, (first.hint, also)))
    return made


def manifest_faults(manifest: Manifest, source: Located) -> Iterator[BylawError]:
    if manifest.format != 1:
        yield source.fault(ManifestError, f"format `{manifest.format}` is not 1", "format")
    if not manifest.name:
        yield ManifestError("the pack has no name", place=source.file)
    if not manifest.document:
        hint = "name the policy document, a list of documents or their folder; or state the document's title and sha256"
        yield ManifestError("the pack has no document", place=source.file, hint=hint)
    if manifest.now is not None and moment(manifest.now) is None:
        hint = "write it like 2025-03-12T09:00:00"
        yield source.fault(ManifestError, f"`{manifest.now}` is not a time", "now", hint=hint)
    if manifest.timezone != "" and zone_named(manifest.timezone) is None:
        known = available_timezones()
        unknown = "this machine has no time zones: install the package `tzdata`"
        hint = f"{meant(str(manifest.timezone), known) if known else unknown}; write it like Europe/Berlin"
        yield source.fault(ManifestError, f"there is no time zone `{manifest.timezone}`", "timezone", hint=hint)


def posture_faults(folder: PackFolder, policies: Mapping[str, Policy], schema: Schema) -> Iterator[BylawError]:
    """Yield an error for each policy or tool that is named under `shield:` but is not in the pack."""
    postures = folder.manifest.shield
    named = [
        *(("policy", name, ("policies", name), policies) for name in postures.policies),
        *(("policy", name, ("approval", "stands_in"), policies) for name in postures.approval.stands_in),
        *(("tool", name, ("tools", name), schema.tools) for name in postures.tools),
        *(("tool", name, ("unguarded_tools", name), schema.tools) for name in postures.unguarded_tools),
    ]
    for kind, name, at, known in named:
        if name not in known:
            message, hint = f"`shield` names {kind} `{name}`, which does not exist", meant(name, known)
            yield folder.manifest_source.fault(ManifestError, message, "shield", *at, hint=hint, lacks=f"{kind} {name}")


def is_the_packs(text: Document, manifest: Manifest) -> bool:
    """Whether a document is exactly the document for which the pack was written."""
    return isinstance(manifest.document, WrittenDocument) and manifest.document.sha256 == text.sha256


def title_of(manifest: Manifest, text: Document | None) -> str:
    if text is not None:
        return text.name
    named = manifest.document
    return str(named.title) if isinstance(named, WrittenDocument) else ", ".join(named_documents(manifest)) or "policy"


def moment(value: Scalar | None) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value)) if value is not None else None
    except ValueError:
        return None


def zone_named(name: Scalar) -> ZoneInfo | None:
    """Return the time zone with an IANA name. Return None if the name is unknown or empty."""
    try:
        return ZoneInfo(str(name)) if name != "" else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


CRITERIA: tuple[Criterion, ...] = ("strict", "determined")

_EMPTY = Located("", {}, {})


class Pack(Struct, frozen=True, dict=True):
    name: str
    version: str
    title: str
    digest: str
    root: Path
    document: Document | None
    policies: dict[str, Policy]
    schema: Schema
    guards: dict[str, Guard]
    by_tool: dict[str, tuple[tuple[Policy, Guard], ...]]
    """The guards that check each tool, in the order of the policies."""
    cases: Mapping[str, Read[CasesFile]]
    now: datetime | None
    criterion: Criterion
    book: Rules
    """The rules that apply to conversations as a whole."""
    world: str
    """For built-in packs, the module that opens a ground-truth database. Empty for other packs."""
    stale: tuple[str, ...]
    """Policies that cite a sentence which is missing from the document."""

    postures: Postures
    """The postures, which say how strictly a shield enforces the pack."""
    digests: dict[str, tuple[str, ...]]
    """For each policy, the digests of the sentences that it cites."""
    unaccepted: dict[str, Standing]
    """Policies that were not enforced when the pack was loaded, because of their review status."""
    pinned: Pinned
    lost: tuple[BylawError, ...] = ()
    """Citations that are missing from the given document, each with its line."""
    ambiguous: tuple[Ambiguous, ...] = ()
    """Quotes that match more than one sentence."""

    @cached_property
    def pin(self) -> str:
        """A digest of everything that decides calls.

        It identifies the version with which a conversation is judged. `digest` covers all files.
        """
        return self.pinned.digest()

    @cached_property
    def _bound(self) -> frozenset[str]:
        free = self.held_back
        guarded = [tool for tool, bound in self.by_tool.items() if any(each.id not in free for each, _ in bound)]
        limited = [tool for limit in self.book.limits if limit.policy not in free for tool in limit.tools]
        ruled = [tool for rule in self.book.rules if rule.policy not in free for tool in self._named_by(rule)]
        return frozenset((*guarded, *limited, *ruled))

    def _named_by(self, rule: Rule) -> list[str]:
        own = self.policies[rule.policy].tools if rule.policy in self.policies else ()
        used = [self.book.predicates[name] for name in atoms(rule.formula)]
        asked = [tool for each in used if each.guard in self.policies for tool in self.policies[each.guard].tools]
        tools = self.schema.tools.values()
        named = {
            *own,
            *asked,
            *(tool.name for tool in tools if any(each.names(tool.name, tool.effect) for each in used)),
        }
        return [*named & where_broken(rule, self.book.predicates, self.schema, self.policies).tools]

    def binds(self, tool: str) -> bool:
        """Whether any enforced guard, rule or limit applies to calls of this tool."""
        return tool in self._bound

    @cached_property
    def held_back(self) -> dict[str, Standing]:
        """Policies that do not decide live calls, because of their review status or because they are `unenforced`."""
        checked = self.guards.keys() | self.book.enforced
        marked = [each.id for each in self.policies.values() if each.unenforced is not None and each.id in checked]
        return {**dict.fromkeys(marked, "unenforced"), **self.unaccepted}

    @cached_property
    def reads_requests(self) -> bool:
        """Whether any guard depends on the user's request."""
        return any("requested" in guard.built_ins for guard in self.guards.values())

    @cached_property
    def traces_values(self) -> bool:
        """Whether any guard depends on the user's request or on the origin of a value."""
        return self.reads_requests or any("provenance" in guard.built_ins for guard in self.guards.values())

    @cached_property
    def ready_rules(self) -> ReadyRules:
        return ReadyRules(self.book, self.schema.tools)

    @staticmethod
    def from_files(files: Mapping[str, str]) -> "Pack":
        """Build a pack from a mapping of file names, such as `pack.yaml` and `guards/orders.py`, to texts."""
        if not isinstance(files, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = 'such as `{"pack.yaml": "format: 1 ...", "policy.md": "..."}`'
            raise UsageError(
                f"pass a mapping from file names to their contents, not `{type(files).__name__}`", hint=hint
            )
        if odd := [name for name, text in files.items() if not isinstance(text, str)]:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"the content of `{odd[0]}` must be a string, not `{type(files[odd[0]]).__name__}`",
                hint="decode it as UTF-8",
            )
        with TemporaryDirectory(prefix="bylaw-") as folder:
            root = Path(folder).resolve()
            for name, text in files.items():
                path = (root / name).resolve()
                if not path.is_relative_to(root) or path == root:
                    raise UsageError(f"`{name}` does not name a file of a pack", hint="such as `guards/orders.py`")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return load_pack(root)

    def __copy__(self) -> "Pack":
        return self

    def __deepcopy__(self, memo: object) -> "Pack":
        """Return this pack, because packs never change."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the pack's folder, because compiled guards cannot be pickled.

        The process that unpickles it loads the pack again.
        """
        if not self.root.is_dir():
            hint = "send the contents of the files, and call `Pack.from_files` there"
            raise UsageError(f"`{self.name}` has no folder that another process could read it from", hint=hint)
        return _load_again, (str(self.root.resolve()), self.digest)

    def __repr__(self) -> str:
        tools, actions = len(self.schema.called), len(self.schema.tools) - len(self.schema.called)
        told = f", {actions} actions" if actions else ""
        return f"<pack {self.name} {self.version}: {len(self.policies)} policies, {tools} tools{told}>"

    def changed_in(self, text: Document) -> tuple[str, ...]:
        """Return the policies that cite a sentence which is missing from `text`.

        If all policies do, `text` is another document, so return none.
        """
        here = {sentence.digest for sentence in text.sentences}
        changed = tuple(name for name, cited in self.digests.items() if not here.issuperset(cited))
        return () if len(changed) == len(self.digests) else changed


def load_pack(name: str | Path, *, document: Path | None = None, cases: bool = True) -> Pack:
    """Load a pack by path or name. Raise `PackError` with all errors in the pack."""
    root = find_folder(str(name))
    folder = read_folder(root, cases=cases)
    if variants := folder.manifest.variants:
        if folder.faults:
            raise PackError(folder.faults, place=root.name)
        names = ", ".join(f"{name}/{variant.name}" for variant in variants)
        raise UsageError(f"`{name}` has variants, so choose one", hint=f"name one of them: {names}")
    return build_pack(folder, document=document)


def _load_again(root: str, digest: str) -> Pack:
    pack = load_pack(root)
    if pack.digest != digest:
        hint = "load it in each process, by its path"
        raise UsageError(
            f"`{pack.name}` is no longer the pack that was pickled: its files have changed", place=root, hint=hint
        )
    return pack


def build_pack(folder: PackFolder, *, document: Path | None = None) -> Pack:
    """Build a pack from its files. Raise `PackError` with all errors in the files."""
    text = folder.read_document(document)
    faults = list(folder.faults)
    manifest = folder.manifest
    faults.extend(manifest_faults(manifest, folder.manifest_source))
    zone = zone_named(manifest.timezone)
    tools, tool_faults = read_tools(folder.parts.get("tools", _EMPTY))
    actions, action_faults = read_pack_actions(folder.parts.get("tools"), folder.parts.get("entities"), tools)
    reader = SchemaReader(
        folder.parts.get("entities"),
        tools,
        folder.parts.get("tools"),
        partial(compile_expression, zone=zone),
        compared_with_none(
            {**folder.guards, **folder.lookups}.values(),
            [*predicate_code(folder.parts.get("rules")), *card_code(tools)],
        ),
        actions,
    )
    schema = replace(reader.read(), zone=zone)
    faults += tool_faults + reader.faults
    schema, faults = replace(schema, actions=actions), faults + action_faults
    policy_reader = PolicyReader(folder.parts.get("policies", _EMPTY), schema.tools, text, title_of(manifest, text))
    policies = policy_reader.read()
    faults += policy_reader.faults
    if text is not None and (document is None or is_the_packs(text, manifest)):
        faults += policy_reader.lost
    rule_reader = RulesReader(folder.parts.get("rules"), schema, policies, folder.parts.get("weights"))
    book = rule_reader.read()
    faults += rule_reader.faults
    guards, guard_faults = read_guards(folder, schema, policies)
    faults += guard_faults
    schema, card_faults = with_card_facts(folder, schema)
    schema, search_faults = with_lookups(folder, with_unsaid(schema, policies, guards, book))
    faults += card_faults + search_faults
    faults += unenforced(policies, guards, book, policy_reader.places, folder if guard_faults else None)
    faults += posture_faults(folder, policies, schema)
    cases = {name: read_case_file(source) for name, source in folder.cases.items()}
    faults += [fault for read in cases.values() for fault in read.faults]
    if faults:
        declared = {"tools": bool(schema.tools), "entities": bool(schema.entities)}
        told = causes(faults, files=folder.parts, declared=declared)
        raise PackError(told, place=str(manifest.name or folder.root.name))
    by_tool: dict[str, list[tuple[Policy, Guard]]] = {}
    for policy in policies.values():
        if policy.id in guards:
            for tool in policy.tools:
                by_tool.setdefault(tool, []).append((policy, guards[policy.id]))
    return Pack(
        str(manifest.name),
        str(manifest.version),
        str(manifest.title or manifest.name),
        folder.digest,
        folder.root,
        text,
        policies,
        schema,
        guards,
        {tool: tuple(bound) for tool, bound in by_tool.items()},
        cases,
        moment(manifest.now),
        manifest.criterion,
        book,
        str(manifest.world),
        tuple(policy.id for policy in policies.values() if policy.stale),
        manifest.shield,
        policy_reader.digests,
        unaccepted(folder.root),
        pinned_of(folder),
        tuple(policy_reader.lost),
        tuple(policy_reader.ambiguous),
    )

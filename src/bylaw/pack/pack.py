"""A pack, compiled: policies with their sentences, tools, facts and guards, ready to judge calls."""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, cast

from msgspec import Struct, ValidationError, convert
from msgspec.structs import replace

from bylaw.errors import BylawError, PackError, UsageError, meant
from bylaw.facts.schema import FieldSearch, Schema
from bylaw.facts.schema_reader import SchemaReader
from bylaw.guard import (
    Guard,
    Vocabulary,
    compared_with_none,
    compile_expression,
    parse_guards,
    parse_lookups,
    run_lookup,
    seen_from,
)
from bylaw.pack.causes import causes
from bylaw.pack.citing import Ambiguous
from bylaw.pack.pinned import Pinned
from bylaw.pack.review import Standing, unaccepted
from bylaw.pack.rules import ReadyRules, Rules, RulesReader
from bylaw.pack.statements import PolicyReader, read_tools
from bylaw.policy.case import CasesFile, read_case_file
from bylaw.policy.document import Document
from bylaw.policy.folder import (
    Manifest,
    ManifestError,
    NothingEnforces,
    PackFolder,
    WrittenDocument,
    find_folder,
    named_documents,
    read_folder,
)
from bylaw.policy.posture import Postures
from bylaw.policy.reading import Read, Scalar
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import Located
from bylaw.rule.formula import atoms
from bylaw.rule.rule import Rule

Criterion = Literal["strict", "determined"]
CRITERIA: tuple[Criterion, ...] = ("strict", "determined")

_EMPTY = Located("", {}, {})


class Pack(Struct, frozen=True, dict=True):
    """A policy pack that loaded without a fault."""

    name: str
    version: str
    title: str
    digest: str
    root: Path
    document: Document | None
    document_name: str
    policies: dict[str, Policy]
    schema: Schema
    guards: dict[str, Guard]
    """By policy id."""
    by_tool: dict[str, tuple[tuple[Policy, Guard], ...]]
    """The guards that bind each tool, in the order of the policies."""
    cases: Mapping[str, Read[CasesFile]]
    """By file."""
    now: datetime | None
    criterion: Criterion
    book: Rules
    """The rules that bind whole conversations."""
    world: str
    """Name of the module that opens a world for it, for packs that come with Bylaw; else empty."""
    stale: tuple[str, ...]
    """Policies whose cited sentence no longer stands in the document."""

    postures: Postures
    """How firmly a shield holds to it."""
    digests: dict[str, tuple[str, ...]]
    """Per policy the digests of the sentences it cites, where it cites whole sentences."""
    unaccepted: dict[str, Standing]
    """Policies that a review kept from being enforced when the pack was loaded, and how they stood."""
    pinned: Pinned
    """What decides on calls."""
    lost: tuple[BylawError, ...] = ()
    """What policies cite that stands no longer in the document that was given for it, each at its line."""
    ambiguous: tuple[Ambiguous, ...] = ()
    """Quotes that stand in sentences that differ."""

    @cached_property
    def pin(self) -> str:
        """What a conversation is held to: the digest of what decides, where `digest` is of all files."""
        return self.pinned.digest()

    @cached_property
    def _bound(self) -> frozenset[str]:
        """The tools that an enforced guard, rule or limit names."""
        free = self.held_back
        guarded = [tool for tool, bound in self.by_tool.items() if any(each.id not in free for each, _ in bound)]
        limited = [tool for limit in self.book.limits if limit.policy not in free for tool in limit.tools]
        ruled = [tool for rule in self.book.rules if rule.policy not in free for tool in self._named_by(rule)]
        return frozenset((*guarded, *limited, *ruled))

    def _named_by(self, rule: Rule) -> list[str]:
        """The tools that a rule's policy or one of its predicates names."""
        own = self.policies[rule.policy].tools if rule.policy in self.policies else ()
        used = [self.book.predicates[name] for name in atoms(rule.formula)]
        asked = [tool for each in used if each.guard in self.policies for tool in self.policies[each.guard].tools]
        tools = self.schema.tools.values()
        return [
            *own,
            *asked,
            *(tool.name for tool in tools if any(each.names(tool.name, tool.effect) for each in used)),
        ]

    def binds(self, tool: str) -> bool:
        """Whether any enforced policy has a say in calls of a tool: a guard of it, or a rule or limit that names it."""
        return tool in self._bound

    @cached_property
    def held_back(self) -> dict[str, Standing]:
        """Policies whose check decides on no live call: by a review, or because they are marked `unenforced`."""
        checked = self.guards.keys() | self.book.enforced
        marked = [each.id for each in self.policies.values() if each.unenforced is not None and each.id in checked]
        return {**dict.fromkeys(marked, "unenforced"), **self.unaccepted}

    @cached_property
    def reads_requests(self) -> bool:
        """Whether any guard asks what the user's request allows."""
        return any("requested" in guard.built_ins for guard in self.guards.values())

    @cached_property
    def traces_values(self) -> bool:
        """Whether any guard asks where a value came from, or what the user's request allows."""
        return self.reads_requests or any("provenance" in guard.built_ins for guard in self.guards.values())

    @cached_property
    def ready_rules(self) -> ReadyRules:
        """The rules, made ready once for all conversations."""
        return ReadyRules(self.book, self.schema.tools)

    @staticmethod
    def from_files(files: Mapping[str, str]) -> "Pack":
        """A pack from texts, each under its name in the folder (`pack.yaml`, `guards/orders.py`)."""
        if not isinstance(files, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = 'such as `{"pack.yaml": "format: 1 ...", "policy.md": "..."}`'
            raise UsageError(f"files are texts by their names, not `{type(files).__name__}`", hint=hint)
        if odd := [name for name, text in files.items() if not isinstance(text, str)]:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"`{odd[0]}` is a text, not `{type(files[odd[0]]).__name__}`", hint="decode it as UTF-8")
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
        """Nothing in it changes, so one will do."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Compiled guards do not travel: another process reads the same folder."""
        if not self.root.is_dir():
            hint = "send the texts, and call `Pack.from_files` there"
            raise UsageError(f"`{self.name}` has no folder that another process could read it from", hint=hint)
        return _load_again, (str(self.root.resolve()), self.digest)

    def __repr__(self) -> str:
        return f"<pack {self.name} {self.version}: {len(self.policies)} policies, {len(self.schema.tools)} tools>"

    def changed_in(self, text: Document) -> tuple[str, ...]:
        """Policies whose cited sentences do not all stand in `text`; none where not a single cited sentence does."""
        here = {sentence.digest for sentence in text.sentences}
        changed = tuple(name for name, cited in self.digests.items() if not here.issuperset(cited))
        return () if len(changed) == len(self.digests) else changed


def load_pack(name: str | Path, *, document: Path | None = None, cases: bool = True) -> Pack:
    """Load the pack at a path or of a name, without its cases where nobody runs them; PackError lists every fault."""
    root = find_folder(str(name))
    folder = read_folder(root, cases=cases)
    if variants := folder.manifest.variants:
        if folder.faults:
            raise PackError(folder.faults, place=root.name)
        names = ", ".join(f"{name}/{variant.name}" for variant in variants)
        raise UsageError(f"`{name}` only chooses among its variants", hint=f"name one of them: {names}")
    return build_pack(folder, document=document)


def _load_again(root: str, digest: str) -> Pack:
    """A pack that was pickled."""
    pack = load_pack(root)
    if pack.digest != digest:
        hint = "load it in each process, by its path"
        raise UsageError(f"`{pack.name}` is no longer what was pickled: its files have changed", place=root, hint=hint)
    return pack


def build_pack(folder: PackFolder, *, document: Path | None = None) -> Pack:
    """Understand the files of a pack; PackError lists every fault found."""
    text = folder.read_document(document)
    faults = list(folder.faults)
    manifest = folder.manifest
    faults.extend(_manifest_faults(manifest, folder.manifest_source))
    tools, tool_faults = read_tools(folder.parts.get("tools", _EMPTY))
    reader = SchemaReader(
        folder.parts.get("entities"),
        tools,
        folder.parts.get("tools"),
        compile_expression,
        compared_with_none({**folder.guards, **folder.lookups}.values(), _predicate_code(folder.parts.get("rules"))),
    )
    schema = reader.read()
    faults += tool_faults + reader.faults
    title = _title(manifest, text)
    policy_reader = PolicyReader(folder.parts.get("policies", _EMPTY), schema.tools, text, title)
    policies = policy_reader.read()
    faults += policy_reader.faults
    if text is not None and (document is None or _is_the_packs(text, manifest)):
        faults += policy_reader.lost
    rule_reader = RulesReader(folder.parts.get("rules"), schema, policies, folder.parts.get("weights"))
    book = rule_reader.read()
    faults += rule_reader.faults
    guards, guard_faults = _guards(folder, schema, policies)
    faults += guard_faults
    schema, search_faults = _searches(folder, schema)
    faults += search_faults
    faults += _unguarded(policies, guards, book, policy_reader.places, folder if guard_faults else None)
    postures, posture_faults = _postures(folder, policies, schema)
    faults += posture_faults
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
        title,
        policies,
        schema,
        guards,
        {tool: tuple(bound) for tool, bound in by_tool.items()},
        cases,
        _time(manifest.now),
        cast(Criterion, manifest.criterion),
        book,
        str(manifest.world),
        tuple(policy.id for policy in policies.values() if policy.stale),
        postures,
        policy_reader.digests,
        unaccepted(folder.root),
        _pinned(folder),
        tuple(policy_reader.lost),
        tuple(policy_reader.ambiguous),
    )


def _predicate_code(rules: Located | None) -> list[str]:
    """The expressions of a pack's predicates, as they stand in rules.yaml."""
    data: Any = rules.data if rules is not None else {}
    predicates: Any = cast("Mapping[str, Any]", data).get("predicates") if isinstance(data, Mapping) else None
    written = list(cast("Mapping[str, Any]", predicates).values()) if isinstance(predicates, Mapping) else []
    told = [cast("Mapping[str, Any]", each) for each in written if isinstance(each, Mapping)]
    return [each[name] for each in told for name in ("code", "when") if isinstance(each.get(name), str)]


def _pinned(folder: PackFolder) -> Pinned:
    manifest = folder.manifest
    records: dict[str, Any] = {part: source.data for part, source in folder.parts.items()}
    named = [str(manifest.name), str(manifest.version)]
    told = [*named, str(manifest.now), str(manifest.criterion), str(manifest.world), manifest.shield]
    return Pinned(records | {"pack": told}, {**folder.guards, **folder.lookups})


def _guards(
    folder: PackFolder, schema: Schema, policies: Mapping[str, Policy]
) -> tuple[dict[str, Guard], list[BylawError]]:
    guards: dict[str, Guard] = {}
    faults: list[BylawError] = []
    vocabulary = _vocabulary(schema)
    by_function = {policy.id.replace("-", "_"): policy for policy in policies.values()}
    others = seen_from(folder.guards, by_function)
    for file, text in folder.guards.items():
        found, wrong = parse_guards(
            text, file=file, vocabulary=vocabulary, policies=by_function, elsewhere=others[file]
        )
        faults.extend(wrong)
        for function, guard in found.items():
            policy = by_function.get(function)
            if policy is None:
                hint = "name the function after a policy id, `-` as `_`, or call it from a guard"
                faults.append(ManifestError(f"guard `{function}` enforces no policy", place=guard.place, hint=hint))
            elif policy.kind != "guard":
                faults.append(
                    ManifestError(f"policy `{policy.id}` is of kind {policy.kind}, not guard", place=guard.place)
                )
            elif policy.id in guards and not _is_laid_over(file, guards[policy.id].file):
                hint = f"it has one at {guards[policy.id].place}"
                faults.append(ManifestError(f"policy `{policy.id}` has a second guard", place=guard.place, hint=hint))
            else:
                guards[policy.id] = guard
    return guards, faults


def _is_laid_over(file: str, below: str) -> bool:
    """Whether a file of the pack itself stands over one of its base."""
    return file.startswith("guards/") and not below.startswith("guards/")


def _searches(folder: PackFolder, schema: Schema) -> tuple[Schema, list[BylawError]]:
    """The schema with the pack's look-up functions."""
    if not folder.lookups:
        return schema, []
    searches: dict[tuple[str, str], FieldSearch] = {}
    faults: list[BylawError] = []
    for file, text in folder.lookups.items():
        found, wrong = parse_lookups(text, file=file, vocabulary=_vocabulary(schema))
        faults.extend(wrong)
        for lookup in found.values():
            searches[lookup.entity.name, lookup.field.name] = partial(run_lookup, lookup)
    return replace(schema, searches=searches), faults


def _vocabulary(schema: Schema) -> Vocabulary:
    arguments = schema.arguments(tuple(schema.tools))
    return Vocabulary(schema.entities, arguments, frozenset(schema.tools), schema.writes(), schema.texts())


def _unguarded(
    policies: Mapping[str, Policy],
    guards: Mapping[str, Guard],
    book: Rules,
    places: Mapping[str, str],
    faulty: PackFolder | None,
) -> list[BylawError]:
    """Promise 5: what nothing enforces must be accepted by name."""
    ruled = book.enforced
    # A guard that is there but did not compile has been reported already.
    texts = faulty.guards.values() if faulty is not None else ()
    written = {name for text in texts for name in re.findall(r"^def (\w+)", text, re.MULTILINE)}
    guarded = guards.keys() | {name for name in policies if name.replace("-", "_") in written}
    faults: list[BylawError] = []
    for policy in policies.values():
        enforced = {"guard": policy.id in guarded, "rule": policy.id in ruled}.get(policy.kind, True)
        if not enforced and policy.unenforced is None:
            hint = (
                f"write its {policy.kind}, or accept that by name: `bylaw review --unenforced {policy.id}`,"
                " or `unenforced: {accepted_by: ..., reason: ...}`"
            )
            message = f"nothing enforces policy `{policy.id}`"
            faults.append(NothingEnforces(message, place=places[policy.id], hint=hint))
    return faults


def _postures(folder: PackFolder, policies: Mapping[str, Policy], schema: Schema) -> tuple[Postures, list[BylawError]]:
    """`shield:` of the manifest: how firmly policies are held to while an agent runs."""
    place = folder.manifest_source.place("shield")
    try:
        postures = convert(folder.manifest.shield, Postures)
    except ValidationError as error:
        hint = "postures are enforce, advise and shadow; on_error is deny or ask"
        return Postures(), [ManifestError(f"`shield`: {error}", place=place, hint=hint)]
    unknown = [("policy", name, meant(name, policies)) for name in postures.policies if name not in policies]
    unknown += [("tool", name, meant(name, schema.tools)) for name in postures.tools if name not in schema.tools]
    return postures, [
        ManifestError(
            f"`shield` names {kind} `{name}`, which is not known", place=place, hint=hint, lacks=f"{kind} {name}"
        )
        for kind, name, hint in unknown
    ]


def _manifest_faults(manifest: Manifest, source: Located) -> list[BylawError]:
    faults: list[BylawError] = []
    if manifest.format != 1:
        faults.append(ManifestError(f"format `{manifest.format}` is not 1", place=source.place("format")))
    if not manifest.name:
        faults.append(ManifestError("the pack has no name", place=source.file))
    if not manifest.document:
        hint = "name the policy document, several, or a folder of them; or give its title and sha256"
        faults.append(ManifestError("the pack has no document", place=source.file, hint=hint))
    if manifest.criterion not in ("strict", "determined"):
        faults.append(ManifestError("criterion is strict or determined", place=source.place("criterion")))
    if manifest.now is not None and _time(manifest.now) is None:
        hint = "write it like 2025-03-12T09:00:00"
        faults.append(ManifestError(f"`{manifest.now}` is not a time", place=source.place("now"), hint=hint))
    return faults


def _is_the_packs(text: Document, manifest: Manifest) -> bool:
    """Whether a document that was given is the very one that the pack was written for, and no other version."""
    return isinstance(manifest.document, WrittenDocument) and manifest.document.sha256 == text.sha256


def _title(manifest: Manifest, text: Document | None) -> str:
    if text is not None:
        return text.name
    named = manifest.document
    return str(named.title) if isinstance(named, WrittenDocument) else ", ".join(named_documents(manifest)) or "policy"


def _time(value: Scalar | None) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value)) if value is not None else None
    except ValueError:
        return None

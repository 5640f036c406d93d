"""What `pack.yaml` says of a pack, beside the names of its files."""

from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from msgspec import ValidationError, convert

from bylaw.errors import BylawError, meant
from bylaw.facts.schema import Schema
from bylaw.policy.document import Document
from bylaw.policy.folder import Manifest, ManifestError, PackFolder, WrittenDocument, named_documents
from bylaw.policy.posture import Postures
from bylaw.policy.reading import Scalar
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import Located


def manifest_faults(manifest: Manifest, source: Located) -> list[BylawError]:
    """What is wrong with it."""
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
    if manifest.now is not None and moment(manifest.now) is None:
        hint = "write it like 2025-03-12T09:00:00"
        faults.append(ManifestError(f"`{manifest.now}` is not a time", place=source.place("now"), hint=hint))
    if manifest.timezone != "" and zone_named(manifest.timezone) is None:
        known = available_timezones()
        hint = meant(str(manifest.timezone), known) if known else "this machine has none: install the package `tzdata`"
        told = f"there is no time zone `{manifest.timezone}`"
        faults.append(ManifestError(told, place=source.place("timezone"), hint=f"{hint}; write it like Europe/Berlin"))
    return faults


def read_postures(
    folder: PackFolder, policies: Mapping[str, Policy], schema: Schema
) -> tuple[Postures, list[BylawError]]:
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


def is_the_packs(text: Document, manifest: Manifest) -> bool:
    """Whether a document that was given is the very one that the pack was written for, and no other version."""
    return isinstance(manifest.document, WrittenDocument) and manifest.document.sha256 == text.sha256


def title_of(manifest: Manifest, text: Document | None) -> str:
    """What the policy document is called."""
    if text is not None:
        return text.name
    named = manifest.document
    return str(named.title) if isinstance(named, WrittenDocument) else ", ".join(named_documents(manifest)) or "policy"


def moment(value: Scalar | None) -> datetime | None:
    """The time that a text says."""
    try:
        return datetime.fromisoformat(str(value)) if value is not None else None
    except ValueError:
        return None


def zone_named(name: Scalar) -> ZoneInfo | None:
    """The time zone of a name of the IANA database; None where there is none, and where nothing is said."""
    try:
        return ZoneInfo(str(name)) if name != "" else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None

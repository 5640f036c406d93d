"""Three-way merge of a pack: the compiler's last version, the owner's current one, and the compiler's new one.

The merge goes item by item, and a deletion is an edit. If both sides changed an item, the owner's edit stays and a
question reports this. A policy's kind, tools and check come from one side together.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import UNSET, Struct, field

from bylaw.compile.check import Question
from bylaw.compile.items import Items, Key, named
from bylaw.compile.naming import function_name
from bylaw.scan.written import dump

_POLICIES = ("policies.yaml", "policies")
_CHECK = ("guards", "rules.yaml")
_BINDING = ("kind", "tools")
"""The fields of a policy that belong to its check."""


class Merge(Struct):
    """The result of a merge."""

    items: Items
    base: Items
    """The base of the next merge. An unresolved conflict stays in it."""
    questions: dict[str, list[Question]] = field(default_factory=dict[str, list[Question]])
    """Questions for the owner, by policy."""
    notes: list[str] = field(default_factory=list[str])
    """Conflicts outside the pack's policies."""

    def ask(self, policy: str, what: str, theirs: Any) -> None:
        text = f"{what}; your version is kept. The compiler would write: {_text(theirs)}"
        if (*_POLICIES, policy) in self.items:
            self.questions.setdefault(policy, []).append(Question("an edit and an update differ", text))
        else:
            self.notes.append(text)


def merge(
    base: Items, ours: Items, theirs: Items, *, redone: Collection[str] = (), settled: Collection[str] = ()
) -> Merge:
    """Return a pack's items after an update.

    The checks of `redone` policies were rejected, so the new ones replace them. `settled` policies are signed in their
    current form and not asked about again.
    """
    made = Merge(dict(ours), dict(theirs))
    owner = _policies_of({**base, **theirs, **ours})
    by_policy: dict[str, list[Key]] = {}
    for key in dict.fromkeys([*ours, *theirs, *base]):
        by_policy.setdefault(owner.get(key, ""), []).append(key)
    for policy, keys in by_policy.items():
        at = (*_POLICIES, policy)
        if policy and at in base and at in ours and at not in theirs:
            _remove(made, policy, keys, base, ours)
            continue
        before, new = dict(base), dict(theirs)
        moves_on = policy in settled or (at in base and at not in ours)
        if policy:
            _hold_together(made, policy, keys, before, ours, new, is_redone=policy in redone)
        for key in keys:
            clashes: list[str] = []
            sides = [each.get(key, UNSET) for each in (before, ours, new)]
            found = merged_value(sides, " ".join(key[-2:]), clashes)
            if clashes:
                made.ask(policy, f"{', '.join(clashes)} differ{'s' * (len(clashes) == 1)}", theirs.get(key))
            if clashes or new.get(key, UNSET) != theirs.get(key, UNSET):
                _set(made.base, key, (theirs if moves_on else base).get(key, UNSET))
            _set(made.items, key, found)
        if policy and at in made.items:
            made.items[at] = _still_accepted(made.items[at], base.get(at), theirs.get(at), keys, base, theirs)
    return made


def merged_value(sides: Sequence[Any], at: str, clashes: list[str]) -> Any:
    """Merge base, ours and theirs part by part. If both sides changed a part, ours stays and `clashes` names the
    part.
    """
    base, ours, theirs = sides
    if theirs in (base, ours):
        return ours
    if ours == base:
        return theirs
    old, mine, new = (_parts(each) for each in sides)
    if mine is None or new is None or type(ours) is not type(theirs):
        clashes.append(at)
        return ours
    found: dict[str, Any] = {}
    for name in dict.fromkeys([*mine, *new]):
        each = [part.get(name, UNSET) for part in (old or {}, mine, new)]
        _set(found, name, merged_value(each, f"{at}, {name}", clashes))
    return found if isinstance(ours, dict) else list(found.values())


def _parts(value: Any) -> dict[str, Any] | None:
    """Return the parts to merge separately; None for an indivisible value."""
    if isinstance(value, list):
        return named(cast(list[Any], value))
    if not isinstance(value, dict):
        return None
    record = cast(dict[str, Any], value)
    # A case's only variation is written without a list.
    return {**record, "but": [record["but"]]} if isinstance(record.get("but"), dict) else record


def _set(items: dict[Any, Any], key: Any, value: Any) -> None:
    if value is UNSET:
        items.pop(key, None)
    else:
        items[key] = value


def _policies_of(items: Items) -> dict[Key, str]:
    """Return the policy of each item. Items without one are left out."""
    ids = {key[2] for key in items if key[:2] == _POLICIES}
    functions = {("guards", function_name(name)): name for name in ids}
    rules = {
        key: str(value.get("policy", key[2])) for key, value in items.items() if key[:2] == ("rules.yaml", "rules")
    }
    of_rule = {key[2]: policy for key, policy in rules.items()}
    cases = {
        key: str(value.get("policy") or of_rule.get(str(value.get("rule")), value.get("rule")))
        for key, value in cast(dict[Key, dict[str, Any]], items).items()
        if key[0] == "cases" and type(value) is dict
    }
    return {(*_POLICIES, name): name for name in ids} | functions | rules | cases


def _remove(made: Merge, policy: str, keys: list[Key], base: Items, ours: Items) -> None:
    """Remove a policy whose sentences are gone, with its check. If it was edited, a note quotes it in full."""
    edits = [key for key in keys if key in ours and ours[key] != base.get(key)]
    for key in keys:
        made.items.pop(key, None)
    if edits:
        told = "\n".join(_text(ours[key]) for key in edits)
        made.notes.append(f"`{policy}` is gone from the document, and with it your edit: {told}")


def _hold_together(
    made: Merge, policy: str, keys: list[Key], base: Items, ours: Items, theirs: Items, *, is_redone: bool
) -> None:
    """Keep the owner's check completely, if the owner edited it and the compiler wrote another."""
    at = (*_POLICIES, policy)
    checks = [key for key in keys if key[0] in _CHECK]
    if is_redone:
        for key in (key for key in checks if key in ours):
            base[key] = ours[key]
        return
    is_deleted = at in base and at not in ours
    mine, new = (_check(each, at, checks) for each in (ours, theirs))
    old = _check(base, at, checks)
    if not is_deleted and (mine == old or new in (old, mine)):
        return
    if new != old and at in theirs:
        what = f"you removed `{policy}`" if is_deleted else f"you edited the check of `{policy}`"
        shown = {key: theirs[key] for key in checks if key in theirs} or theirs[at]
        made.ask(policy, f"{what}, and its sentences have another one now", [*shown.values()])
    for key in keys:
        if key != at or is_deleted:
            _set(theirs, key, base.get(key, UNSET))
    if not is_deleted and at in theirs:
        held = dict(theirs[at])
        for part in _BINDING:
            _set(held, part, base.get(at, {}).get(part, UNSET))
        theirs[at] = held


def _check(items: Items, at: Key, checks: list[Key]) -> list[Any]:
    body = cast(dict[str, Any], items.get(at) or {})
    return [*(body.get(part) for part in _BINDING), *(items.get(key) for key in checks)]


def _still_accepted(
    body: dict[str, Any], base: Any, theirs: Any, keys: list[Key], before: Items, after: Items
) -> dict[str, Any]:
    """Remove a policy's `unenforced` mark if the policy has changed or now has a check."""
    if base is None or theirs is None or "unenforced" not in body:
        return body
    is_same = all(base.get(part) == theirs.get(part) for part in ("definition", "spans"))
    has_check = any(key in after and key not in before for key in keys if key[0] in _CHECK)
    return body if is_same and not has_check else {name: part for name, part in body.items() if name != "unenforced"}


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in cast(list[Any], value)):
        return "\n\n".join(cast(list[str], value))
    return "nothing" if value is None else value if isinstance(value, str) else dump(value).strip()


def differing(one: Mapping[Key, Any], other: Mapping[Key, Any]) -> Iterator[Key]:
    for key in dict.fromkeys([*one, *other]):
        if one.get(key, UNSET) != other.get(key, UNSET):
            yield key

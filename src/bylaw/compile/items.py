"""Splits a pack's files into items (policies, tools, entities, cases, functions), merges items, and writes them back.

An item is identified by its name, in whichever file it is. In an edited file, all other lines stay unchanged.

This is a three-way merge of the compiler's last version, the owner's current version, and the compiler's new version.
It works item by item and treats a deletion as an edit. If the owner and the compiler both changed an item, the owner's
edit wins and a question reports the conflict. A policy's kind, tools and check always come from the same side, either
the owner or the compiler.
"""

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import Any, cast

import msgspec
import yaml
from msgspec import UNSET, Struct, field

from bylaw.compile.check import Question
from bylaw.compile.guards import functions_of
from bylaw.compile.naming import function_name
from bylaw.compile.schema import listed, record
from bylaw.errors import UsageError
from bylaw.policy.yaml import LOADER, YamlError, read_yaml
from bylaw.scan.written import dump, packed
from bylaw.text.python import parse_python

Key = tuple[str, ...]
"""An item's key: `(guards, NAME)`, `(cases, POLICY: NOTE)`, or the file, its section and the name in that section."""
Items = dict[Key, Any]

_ANYWHERE = ("guards", "lookups", "cases")
"""Folders in which an item may be in any file."""
_LISTS = {"policies.yaml": ("policies",), "rules.yaml": ("rules", "limits")}


def read_items(path: str, text: str) -> Items:
    """Return the items in one file. If the file cannot be parsed, the error names the line."""
    folder = path.split("/")[0]
    if path.endswith(".py"):
        try:
            return {(folder, name): code.strip() for name, code in functions_of(text).items()}
        except SyntaxError as error:
            hint = "correct it, then run the same command again"
            raise UsageError(f"not Python: {error.msg}", place=f"{path}:{error.lineno}", hint=hint) from None
    found: Items = {}
    for section, value in read_yaml(text, file=path).data.items():
        for name, part in entries(value).items():
            found[key_of(path, section, name)] = part
    return found


def key_of(path: str, section: str, name: str) -> Key:
    folder = path.split("/")[0]
    if folder in _ANYWHERE:
        return (folder, name or path)
    return (path, section, name) if name else (path, section)


def entries(value: Any) -> dict[str, Any]:
    """Return the entries of a section by name. A section without names is treated as a single unnamed entry."""
    if isinstance(value, dict):
        return record(value)
    is_listed = isinstance(value, list) and all(isinstance(each, dict) for each in listed(value))
    return named(listed(value)) if is_listed else {"": value}


def named(members: list[Any]) -> dict[str, Any]:
    """Return the items of a list, keyed by the field that identifies them."""
    found: dict[str, Any] = {}
    for each in members:
        name, count = _name(each), 1
        while (unique := name if count == 1 else f"{name} ({count})") in found:
            count += 1
        found[unique] = each
    return found


def _name(member: Any) -> str:
    body = record(member)
    if "note" in body:
        of = body.get("policy") or body.get("rule")
        return f"{of}: {body['note']}" if of else str(body["note"])
    return str(body["id"]) if "id" in body else msgspec.json.encode(member, order="sorted").decode()


_Chunk = tuple[Key | None, str]
"""Consecutive lines of a file, with their key: an item, the head of a section (named `*`), or text between items (no
key).
"""


def edited(path: str, text: str, made: str, wanted: Items) -> str:
    """Return a file's text with the wanted items. The text of unchanged items is taken from `text`, that of changed
    items from `made`.
    """
    try:
        found = _edited(path, text, made, wanted)
        if read_items(path, found) == wanted:
            return found
    except (YamlError, yaml.YAMLError, UsageError):
        pass
    return _whole(path, wanted)


def _edited(path: str, text: str, made: str, wanted: Items) -> str:
    mine, theirs, fresh = read_items(path, text), read_items(path, made), dict(_chunks(path, made))

    def written(key: Key) -> str:
        is_theirs = key in fresh and wanted[key] == theirs[key]
        return fresh[key] if is_theirs else _packed(path, key, wanted[key])

    kept: list[_Chunk] = []
    for key, lines in _chunks(path, text):
        if key is None or key[-1] == "*" or wanted.get(key, UNSET) == mine[key]:
            kept.append((key, lines))
        elif key in wanted:
            instead = written(key)
            remarks = [line for line in lines.splitlines(keepends=True) if line.lstrip().startswith("#")]
            kept.append((key, "".join(line for line in remarks if line not in instead) + instead))
    for key in (each for each in wanted if each not in mine):
        section = [place for place, (other, _) in enumerate(kept) if other is not None and other[:-1] == key[:-1]]
        at = section[-1] + 1 if section else len(kept)
        if not section and (head := (*key[:-1], "*")) in fresh:
            kept.insert(at, (head, fresh[head]))
            at += 1
        kept.insert(at, (key, ("\n\n" if path.endswith(".py") and at else "") + written(key)))
    return "".join(lines if lines.endswith("\n") or not lines else f"{lines}\n" for _, lines in kept)


def _chunks(path: str, text: str) -> Iterator[_Chunk]:
    """Yield the chunks of a file in order. A chunk consists of whole lines."""
    lines = text.splitlines(keepends=True)
    starts = list(_functions(path, text) if path.endswith(".py") else _sections(path, text))
    place = 0
    for number, (start, end, key) in enumerate(starts):
        end = end or (starts[number + 1][0] if number + 1 < len(starts) else len(lines))
        if start < place:
            raise yaml.YAMLError("two items on one line")
        if path.endswith(".yaml"):
            while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
                end -= 1
        if start > place:
            yield None, "".join(lines[place:start])
        yield key, "".join(lines[start:end])
        place = end
    if place < len(lines):
        yield None, "".join(lines[place:])


def _functions(path: str, text: str) -> Iterator[tuple[int, int, Key]]:
    for node in parse_python(text).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield first - 1, node.end_lineno or node.lineno, (path.split("/")[0], node.name)


def _sections(path: str, text: str) -> Iterator[tuple[int, int, Key]]:
    """Yield the position where each item of a YAML file begins. A section written on one line is a single item."""
    root: Any = cast(Any, yaml).compose(text, Loader=LOADER)
    data = read_yaml(text, file=path).data
    if isinstance(root, yaml.SequenceNode):
        for name, node in zip(entries(data[""]), root.value, strict=True):
            yield node.start_mark.line, 0, key_of(path, "", name)
        return
    for section, node in root.value if root is not None else ():
        names = entries(data[section.value])
        line = section.start_mark.line
        if "" in names or not names:
            yield line, 0, key_of(path, section.value, "")
            continue
        if node.flow_style or node.start_mark.line == line:
            raise yaml.YAMLError("a section on one line")
        yield line, 0, (path, section.value, "*")
        for name, each in zip(names, node.value, strict=True):
            first = each[0] if isinstance(node, yaml.MappingNode) else each
            yield first.start_mark.line, 0, key_of(path, section.value, name)


def _packed(path: str, key: Key, value: Any) -> str:
    if path.endswith(".py"):
        return f"{value}\n"
    text = _whole(path, {key: value})
    return text.split("\n", 1)[1] if len(key) == 3 else text


def _whole(path: str, wanted: Items) -> str:
    if path.endswith(".py"):
        return "\n\n\n".join(wanted.values()) + "\n"
    if path.startswith("cases/"):
        return packed(list(wanted.values()))
    data: dict[str, Any] = {}
    for key, value in wanted.items():
        if len(key) == 2:
            data[key[1]] = value
        elif key[1] in _LISTS.get(path, ()):
            data.setdefault(key[1], []).append(value)
        else:
            data.setdefault(key[1], {})[key[2]] = value
    return packed(data)


_POLICIES = ("policies.yaml", "policies")
_CHECK = ("guards", "rules.yaml")
_BINDING = ("kind", "tools")
"""The fields that a policy's check depends on."""


class Merge(Struct):
    items: Items
    base: Items
    """The base of the next merge. For an unresolved conflict, it still contains the old item."""
    questions: dict[str, list[Question]] = field(default_factory=dict[str, list[Question]])
    """Questions for the owner, keyed by policy."""
    notes: list[str] = field(default_factory=list[str])
    """Notes on conflicts that concern no policy."""

    def ask(self, policy: str, what: str, theirs: Any) -> None:
        text = f"{what}; your version is kept. The compiler would write: {_text(theirs)}"
        if (*_POLICIES, policy) in self.items:
            self.questions.setdefault(policy, []).append(Question("your edit conflicts with an update", text))
        else:
            self.notes.append(text)


def merge(
    base: Items, ours: Items, theirs: Items, *, redone: Collection[str] = (), settled: Collection[str] = ()
) -> Merge:
    """Return the items of a pack after an update.

    The checks of `redone` policies were rejected and are replaced. `settled` policies are signed as they are, so no
    questions are added for them.
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
    """Merge the values field by field. If both sides changed a field, keep ours and add the field to `clashes`."""
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
    """Return the fields of a value that are merged separately, or None for an indivisible value."""
    if isinstance(value, list):
        return named(listed(value))
    if not isinstance(value, dict):
        return None
    # A case with a single variation may have it without a list.
    return {**value, "but": [value["but"]]} if isinstance(record(value).get("but"), dict) else record(value)


def _set(items: dict[Any, Any], key: Any, value: Any) -> None:
    if value is UNSET:
        items.pop(key, None)
    else:
        items[key] = value


def _policies_of(items: Items) -> dict[Key, str]:
    """Return the policy to which each item belongs. Items that belong to no policy are left out."""
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
    """Remove a policy whose sentences were deleted, and its check. If the owner had edited the policy, a note quotes it
    in full.
    """
    edits = [key for key in keys if key in ours and ours[key] != base.get(key)]
    for key in keys:
        made.items.pop(key, None)
    if edits:
        told = "\n".join(_text(ours[key]) for key in edits)
        made.notes.append(f"the document no longer contains `{policy}`, so your edit was removed: {told}")


def _hold_together(
    made: Merge, policy: str, keys: list[Key], base: Items, ours: Items, theirs: Items, *, is_redone: bool
) -> None:
    """Keep the owner's whole check if the owner edited it and the compiler wrote a different check."""
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
        made.ask(policy, f"{what}, and its sentences now have a different check", [*shown.values()])
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
    """Remove the `unenforced` mark from a policy that has changed or that has a check now."""
    if base is None or theirs is None or "unenforced" not in body:
        return body
    is_same = all(base.get(part) == theirs.get(part) for part in ("definition", "spans"))
    has_check = any(key in after and key not in before for key in keys if key[0] in _CHECK)
    return body if is_same and not has_check else {name: part for name, part in body.items() if name != "unenforced"}


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in listed(value)):
        return "\n\n".join(listed(value))
    return "nothing" if value is None else value if isinstance(value, str) else dump(value).strip()

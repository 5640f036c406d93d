"""A check being edited: the text of a guard or the formula of a rule, the pack it would make, and the file with it."""

import difflib
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

import yaml
from msgspec import Struct
from msgspec.structs import replace

from bylaw.console.pack_state import PackState
from bylaw.console.records import alone, put
from bylaw.errors import PackError, UsageError
from bylaw.pack import Pack, build_pack
from bylaw.policy.folder import PackFolder
from bylaw.policy.python import parse_python
from bylaw.policy.yaml import read_yaml
from bylaw.review.reading import check_lines

LONGEST = 20_000
"""Characters of a check at most."""
RULES = "rules.yaml"
_PLAIN = re.compile(r"[A-Za-z(][\w ()<>=.'-]*[\w)']")


class Draft(Struct, frozen=True):
    """One check as saved in its file."""

    policy: str
    kind: Literal["guard", "rule"]
    name: str
    """The guard's function, or the rule."""
    file: str
    text: str

    @property
    def digest(self) -> str:
        """Identifies the saved text, to detect changes by others."""
        return hashlib.blake2b(f"{self.file}\0{self.text}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def drafts_of(now: PackState, policy: str) -> list[Draft]:
    """The editable checks of a policy: its guard, or each of its rules."""
    pack = now.pack
    guard = pack.guards.get(policy)
    if guard is not None:
        text = "\n".join(check_lines(pack, pack.policies[policy]))
        return [Draft(policy, "guard", guard.name, guard.file, text)]
    return [Draft(policy, "rule", rule.name, RULES, rule.text) for rule in pack.book.rules if rule.policy == policy]


def tried_pack(now: PackState, draft: Draft, text: str) -> Pack:
    """The pack with the edited check; raises `PackError` if the text is faulty."""
    if len(text) > LONGEST:
        raise UsageError(f"a check of more than {LONGEST:,} characters")
    folder = now.folder
    if draft.kind == "rule":
        folder = _with_formula(folder, draft, text)
    else:
        changed = spliced(folder.guards[draft.file], draft, text)
        folder = _copied(folder, guards={**folder.guards, draft.file: changed})
    try:
        return build_pack(folder)
    except (RecursionError, MemoryError):
        raise UsageError("the check is too deeply nested") from None


def spliced(whole: str, draft: Draft, text: str) -> str:
    """The text of a guard's file with the guard replaced."""
    lines = whole.split("\n")
    starts = [number for number, line in enumerate(lines) if re.match(rf"def {re.escape(draft.name)}\b", line)]
    old = draft.text.split("\n")
    if len(starts) != 1 or lines[starts[0] : starts[0] + len(old)] != old:
        raise UsageError("the check has changed since you loaded the page", hint="load it again")
    return "\n".join([*lines[: starts[0]], *text.rstrip().split("\n"), *lines[starts[0] + len(old) :]])


def _with_formula(folder: PackFolder, draft: Draft, text: str) -> PackFolder:
    source = folder.parts["rules"]
    rules = [
        body | {"formula": text} if _rule_name(body) == draft.name else body for body in _rules(source.data)
    ]  # fmt: skip
    return _copied(folder, parts={**folder.parts, "rules": source.with_data({**source.data, "rules": rules})})


def _copied(folder: PackFolder, **changes: Any) -> PackFolder:
    """A copy of the folder, so that trying a change has no side effects."""
    return replace(folder, faults=list(folder.faults), **changes)


def _rules(data: dict[str, Any]) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", data.get("rules") or [])


def _rule_name(body: Any) -> str:
    return str(cast("dict[str, Any]", body).get("id", "")) if isinstance(body, dict) else ""


def file_with(root: Path, draft: Draft, text: str) -> tuple[str, str]:
    """The draft's file before and after the edit; raises `UsageError` if it is not in this pack's folder."""
    path = root / draft.file
    if not path.is_file() or not path.resolve().is_relative_to(root.resolve()):
        raise UsageError("the check comes from another pack that this one is based on", hint="edit it there")
    whole = path.read_text(encoding="utf-8")
    return whole, spliced(whole, draft, text) if draft.kind == "guard" else _with_rule(whole, draft, text)


def _with_rule(whole: str, draft: Draft, text: str) -> str:
    """The file of rules with one formula replaced and everything else unchanged."""
    place = _formula_place(whole, draft.name)
    if place is None:
        raise UsageError(f"rule `{draft.name}` is not in {RULES}", hint="edit the file that contains it")
    start, end, is_last_line = place
    one_line = " ".join(text.split())
    written = one_line if _PLAIN.fullmatch(one_line) else json.dumps(one_line, ensure_ascii=False)
    changed = whole[:start] + written + ("\n" if is_last_line else "") + whole[end:]
    before, after = (read_yaml(each, file=RULES).data for each in (whole, changed))
    wanted = [body | {"formula": one_line} if _rule_name(body) == draft.name else body for body in _rules(before)]
    if _rules(after) != wanted or {**after, "rules": None} != {**before, "rules": None}:
        raise UsageError(f"the formula cannot be replaced in {RULES}", hint="edit the file")
    return changed


def _formula_place(whole: str, name: str) -> tuple[int, int, bool] | None:
    """Where in the file the formula of a rule begins and ends, and whether a line break belongs to it."""
    compose = cast("Callable[..., Any]", yaml.compose)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    for key, listed in _pairs(compose(whole, Loader=yaml.SafeLoader)):
        items: list[Any] = listed.value if key == "rules" else []
        for fields in (dict(_pairs(item)) for item in items):
            if "formula" in fields and fields["id"].value == name:
                node = fields["formula"]
                start, end = int(node.start_mark.index), int(node.end_mark.index)
                return start, end, whole[start:end].endswith("\n")
    return None


def _pairs(node: Any) -> list[tuple[str, Any]]:
    """The entries of a YAML mapping, each with its name."""
    return [(str(key.value), value) for key, value in node.value]


def patch(root: Path, draft: Draft, text: str) -> str:
    """The change as a patch for `git apply`; empty if there is none."""
    before, after = file_with(root, draft, text)
    return _diff(before, after, draft.file)


def _diff(before: str, after: str, name: str) -> str:
    lines = [each.splitlines(keepends=True) for each in (before, after)]
    made = difflib.unified_diff(lines[0], lines[1], f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in made)


def save(root: Path, draft: Draft, text: str) -> str:
    """Write the check into its file, and return the change as a patch."""
    path = root / draft.file
    with alone(path):
        before, after = file_with(root, draft, text)
        if draft.kind == "guard":
            parse_python(after)
        put(path, after)
    return _diff(before, after, draft.file)


def faults_of(error: Exception) -> list[str]:
    """The faults of a text."""
    if isinstance(error, PackError) and error.faults:
        return [str(fault) for fault in error.faults][:10]
    return [str(error)]

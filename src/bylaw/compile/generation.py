"""What a model's answer holds of guards, or of cases for them, and what is wrong with it."""

import ast
import re
from collections.abc import Container, Sequence
from contextlib import suppress

from msgspec import Struct

from bylaw.compile.bench import Bench, Case, read_cases
from bylaw.compile.naming import function_name
from bylaw.llm.chat import unfenced
from bylaw.policy.python import parse_python, text_of
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import YamlError

_CANNOT = re.compile(r"^#\s*cannot\s+([\w-]+)\s*:\s*(.*)$", re.MULTILINE)


class Written(Struct, frozen=True):
    """The guards of one answer."""

    codes: dict[str, str]
    """By policy."""
    cannot: dict[str, str]
    """Policies that were said not to be checkable, with why."""


def one_function(text: str, name: str) -> str:
    """The function of that name in an answer; the whole answer where there is none, for its faults to be told."""
    try:
        return functions_of(text).get(name, text)
    except SyntaxError:
        return text


def read_given_cases(
    text: str, policies: Sequence[Policy], bench: Bench, uncheckable: Container[str]
) -> tuple[dict[str, list[Case]], list[str]]:
    """The cases of an answer by policy, and what is wrong with it; `uncheckable` policies need none."""
    listed, complaints = _listed_cases(unfenced(text))
    found: dict[str, list[Case]] = {policy.id: [] for policy in policies}
    for case in listed:
        policy = next((each for each in policies if each.id == case.get("policy")), None)
        if policy is None:
            complaints.append(f"case `{case.get('note', '')}`: `{case.get('policy')}` is not one of the policies")
            continue
        wrong = (
            bench.misfits(policy, [case])
            if case.get("want") in ("permit", "deny")
            else [f"case `{case.get('note', '')}` wants neither permit nor deny"]
        )
        complaints += wrong
        if not wrong:
            found[policy.id].append(case)
    for name, cases in found.items():
        if name not in uncheckable and {"permit", "deny"} - {str(case["want"]) for case in cases}:
            complaints.append(f"`{name}` needs a case that permits and one that denies")
    return found, complaints


def _listed_cases(text: str) -> tuple[list[Case], list[str]]:
    """The cases of an answer; of one that breaks off, those before the break."""
    try:
        return read_cases(text), []
    except YamlError as error:
        complaints = [f"not the YAML asked for: {error}"]
    whole, cut, _ = text.rpartition("\n- ")
    with suppress(YamlError):
        return (read_cases(whole) if cut else []), complaints
    return [], complaints


def read_guards(text: str, policies: Sequence[Policy], bench: Bench) -> tuple[Written, list[str]]:
    """The guards of an answer, and what is wrong with it."""
    source = unfenced(text)
    cannot = {match[1].replace("_", "-"): match[2].strip() for match in _CANNOT.finditer(source)}
    try:
        functions = functions_of(source)
    except SyntaxError as error:
        return Written({}, cannot), [f"line {error.lineno}: not Python: {error.msg}"]
    names = {function_name(policy.id): policy for policy in policies}
    complaints = [f"`{name}` is the guard of none of the policies" for name in functions if name not in names]
    codes: dict[str, str] = {}
    for name, policy in names.items():
        if name in functions:
            codes[policy.id] = functions[name]
            complaints += [f"`{name}`, {fault}" for fault in bench.guard(policy, functions[name])[1]]
        elif policy.id not in cannot:
            complaints.append(f"there is no function `{name}`")
    return Written(codes, cannot), complaints


def functions_of(source: str) -> dict[str, str]:
    """The text of each function of an answer."""
    try:
        nodes = parse_python(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise error if isinstance(error, SyntaxError) else SyntaxError(str(error)) from None
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return {node.name: f"{text_of(source, node)}\n" for node in functions}

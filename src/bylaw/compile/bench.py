"""Runs generated checks in a small pack, with the same code that runs them in production."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, TypeVar

from msgspec.structs import replace

from bylaw.compile.card import Card
from bylaw.compile.desk import Unreadable, yaml_answer
from bylaw.compile.naming import function_name
from bylaw.compile.plausible import Plausible, arguments_of
from bylaw.compile.schema import Schema, listed, section
from bylaw.compile.things import Things, entities_file, held, insides, recorded_entities, tools_file
from bylaw.errors import BylawError, PackError
from bylaw.guard import Guard, Vocabulary, parse_guards
from bylaw.pack import Pack
from bylaw.policy.case import CasesFile, read_case_file
from bylaw.policy.statement import Policy
from bylaw.policy.tool import misfit
from bylaw.policy.yaml import Read, read_yaml
from bylaw.review.case import CaseResult, run_cases
from bylaw.scan.written import dump
from bylaw.trace import Call, Trajectory

Case = dict[str, Any]

Tried = TypeVar("Tried")

_SENTENCE = "This is on trial."
_KEPT = 64
"""The maximum number of compiled guards and rules in the cache."""


class Bench:
    """The data that all trials share: the tools, the entities, the user facts and the clock."""

    def __init__(
        self,
        cards: Mapping[str, Card],
        things: Things,
        request: Mapping[str, Any],
        now: str,
        trajectories: Sequence[Trajectory] = (),
        described: Things | None = None,
        *,
        has_clock: bool = False,
    ) -> None:
        self._has_clock = has_clock
        self.trajectories = trajectories
        self.cards = cards
        self.things = things
        self.described = described if described is not None else things
        """The entities as the compiler described them, before the owner's edits."""
        self.request = request
        self.now = now
        self._files = {
            "pack.yaml": dump({"format": 1, "name": "trial", "document": "policy.md", "now": now}),
            "policy.md": f"# Trial\n\n{_SENTENCE}\n",
            "tools.yaml": tools_file(cards, things),
            "entities.yaml": entities_file(things, request),
        }
        self._case_files: dict[str, Read[CasesFile]] = {}
        # The same code and rules are run on several sets of cases.
        self._parsed = lru_cache(maxsize=_KEPT)(self._parse)
        self._loaded = lru_cache(maxsize=_KEPT)(self._load)
        self._tried: dict[Hashable, Any] = {}

    @cached_property
    def base(self) -> Pack:
        """The pack without its policies. Raises PackError if the entities do not load."""
        return Pack.from_files(self._files)

    @cached_property
    def inside(self) -> dict[tuple[str, str], Schema]:
        """The schemas of records nested inside fields."""
        return insides(self.things, self.cards)

    @cached_property
    def plausible(self) -> Plausible:
        """The plausible values, according to the schemas and the recorded results."""
        schemas: dict[str, dict[str, Any]] = {
            arguments_of(name): {"properties": card.parameters} for name, card in self.cards.items()
        }
        for (entity, field), schema in held(self.things, self.cards).items():
            schemas.setdefault(entity, {"properties": {}})["properties"][field] = schema
        calls = (
            (arguments_of(event.tool), event.arguments)
            for each in self.trajectories
            for event in each.events
            if isinstance(event, Call)
        )
        return Plausible(schemas, chain(calls, recorded_entities(self.base, self.trajectories)))

    @cached_property
    def vocabulary(self) -> Vocabulary:
        schema = self.base.schema
        arguments = schema.arguments(tuple(schema.tools))
        named = (frozenset(schema.tools), schema.declared(), schema.texts(), schema.zone)
        return Vocabulary(schema.entities, arguments, *named)

    def guard(self, policy: Policy, code: str) -> tuple[Guard | None, list[str]]:
        """Return a policy's guard, or None and the errors in its code."""
        guard, wrong = self._parsed(function_name(policy.id), code)
        return guard, list(wrong)

    def _parse(self, name: str, code: str) -> tuple[Guard | None, list[str]]:
        found, faults = parse_guards(code, file="guards/trial.py", vocabulary=self.vocabulary, policies=[name])
        wrong = [fault_text(fault) for fault in faults]
        if not wrong and name not in found:
            wrong = [f"there is no function `{name}`"]
        return (None, wrong) if wrong else (found[name], [])

    def run(self, policy: Policy, guard: Guard, cases: Sequence[Case]) -> Iterator[CaseResult | BylawError]:
        written = self._written(told_whole(guard, cases))
        return run_cases(replace(self._holding(policy, guard), cases={"cases/trial.yaml": written}))

    def with_guard(self, policy: Policy, guard: Guard) -> Pack:
        """Return a pack that contains only this guard, for replaying recorded calls."""
        return self.on_its_clock(self._holding(policy, guard))

    def on_its_clock(self, pack: Pack) -> Pack:
        """Return the pack with a suitable clock for recorded calls: the pack's own clock or, without one, the time of
        each call.
        """
        return pack if self._has_clock else replace(pack, now=None)

    def _holding(self, policy: Policy, guard: Guard) -> Pack:
        by_tool = dict.fromkeys(policy.tools, ((policy, guard),))
        return replace(self.base, policies={policy.id: policy}, guards={policy.id: guard}, by_tool=by_tool)

    def _written(self, cases: Sequence[Case]) -> Read[CasesFile]:
        """Parse cases as if they came from a pack's file. The result is cached, because the same cases are used to try
        many guards.
        """
        key = repr(cases)
        if key not in self._case_files:
            self._case_files[key] = read_case_file(read_yaml(dump(list(cases)), file="cases/trial.yaml"))
        return self._case_files[key]

    def once(self, key: Hashable, make: Callable[[], Tried]) -> Tried:
        """Return the cached result for a key, or compute it. Results are cached because the stages run again after each
        round of answers.
        """
        if key not in self._tried:
            self._tried[key] = make()
        return self._tried[key]

    def misfits(self, policy: Policy, cases: Sequence[Case]) -> list[str]:
        """Return the errors in a guard's cases that no change to the guard could fix."""
        code = f'def {function_name(policy.id)}(call, facts):\n    return deny("on trial")\n'
        guard, _ = self.guard(policy, code)
        assert guard is not None
        try:
            if faults := self._written(cases).faults:
                return [fault_text(fault) for fault in faults]
            results = zip(self.run(policy, guard, cases), cases, strict=True)
            wrong = [fault_text(each, case) for each, case in results if isinstance(each, BylawError)]
        except BylawError as error:
            return [fault_text(error)]
        return wrong or [
            f"case `{case.get('note', '')}`: its call does not fit the schema of `{tool}`: {why}"
            for case in cases
            for tool, arguments in section(case, "call").items()
            if (why := misfit(self.base.schema.tools.get(tool), arguments or {}))
        ]

    def with_rules(self, policies: Sequence[Policy], rules: Mapping[str, Any], cases: Sequence[Case] = ()) -> Pack:
        """Return a pack with these rules and cases. Raises PackError if it does not load."""
        pack = self._loaded(dump({"policies": [_policy(each) for each in policies]}), dump(rules))
        if isinstance(pack, PackError):
            raise pack
        if not cases:
            return pack
        written = self._written(cases)
        if written.faults:
            raise PackError(written.faults)
        return replace(pack, cases={"cases/trial.yaml": written})

    def _load(self, policies: str, rules: str) -> Pack | PackError:
        try:
            return Pack.from_files({**self._files, "policies.yaml": policies, "rules.yaml": rules})
        except PackError as error:
            return error

    def rule_faults(self, policies: Sequence[Policy], rules: Mapping[str, Any]) -> list[str]:
        try:
            self.with_rules(policies, rules)
        except PackError as error:
            return [fault_text(fault) for fault in error.faults]
        return []


def told_whole(guard: Guard, cases: Sequence[Case]) -> Sequence[Case]:
    """Mark the cases as complete if the guard searches for entities. In a complete case, only the listed entities
    exist.
    """
    if not guard.searches:
        return cases
    return [
        {**case, "world": {}, "want": {"world": case.get("want")}} if "world" not in case else case for case in cases
    ]


def cases_answer(text: str) -> list[Case]:
    """Parse an answer as a list of cases. Raises Unreadable if the answer is not such a list."""
    data = yaml_answer(text)
    cases: Any = data.get("") or data.get("cases")
    if not isinstance(cases, list) or not all(isinstance(each, dict) for each in listed(cases)):
        raise Unreadable("not the YAML asked for: not a list of cases")
    return listed(cases)


def fault_text(fault: BylawError, case: Case | None = None) -> str:
    """Describe an error so that the model that wrote the faulty answer can correct it."""
    line = f"line {fault.place.rpartition(':')[2]}: " if fault.place.startswith("guards/") else ""
    of = f"case `{case.get('note', '')}`: " if case is not None else ""
    return f"{of}{line}{fault.message}" + (f"; {fault.hint}" if fault.hint else "")


def _policy(policy: Policy) -> dict[str, Any]:
    body = {"id": policy.id, "kind": policy.kind, "spans": [{"quote": _SENTENCE}]}
    return {**body, "tools": list(policy.tools)} if policy.tools else body

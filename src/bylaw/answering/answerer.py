"""Answers predicates that code cannot decide, with a plan for each rule and an operation for each step.

The model is called through `llm.Chat`. No function here raises an error: if a question cannot be asked or an answer
cannot be parsed, the predicate stays unknown. Cost estimates run the same code without sending requests.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from bylaw.answering.consent import consent_answer, consent_request, no_question
from bylaw.answering.history import EXAMPLES, SAME, History, Outcome, Plans
from bylaw.answering.operation import Check, Plan, Search
from bylaw.answering.running import PROMPTS, Operation, PlanRun
from bylaw.answering.statement import statement_answer, statement_request
from bylaw.consent import OpenConsent
from bylaw.engine.predicate_values import Answered
from bylaw.facts.entity import Field
from bylaw.llm import Answer, Chat, Pending, Request
from bylaw.llm.chat import ChatError, Unreachable, estimate, render, schema_of
from bylaw.llm.source import at_hand
from bylaw.pack import Pack
from bylaw.pack.predicate import Predicate
from bylaw.rule.formula import atoms
from bylaw.rule.monitor import Act
from bylaw.rule.rule import Rule
from bylaw.trace.event import Event

MOST_QUERIES = 12
"""The maximum number of questions to a model for each predicate and act."""


class Answerer:
    """Answers predicates in many conversations, using one model and one long-term memory."""

    def __init__(
        self,
        chat: Chat,
        *,
        plans: Plans | None = None,
        remembers: bool = True,
        operations: Iterable[Operation] = (),
        most_queries: int = MOST_QUERIES,
        budget: int | None = None,
    ) -> None:
        """`plans` is the long-term memory, and `remembers` switches on the short-term memory of each conversation.

        At most `budget` requests are sent. A question that was already answered costs nothing.
        """
        self.chat = chat
        self.plans = plans
        self.remembers = remembers
        self.operations = {each.name: each for each in operations}
        self.most_queries = most_queries
        self._known = at_hand(chat)
        self._budget = math.inf if budget is None else budget
        self._ahead: dict[str, Answer | None] = {}
        """Answers that were requested in advance. None if the answer is pending."""
        self._unreachable: Unreachable | None = None
        self._waiting: dict[str, str] = {}
        """Requests in a batch, each with the file that contains the request."""
        self._failed: dict[str, str] = {}
        """Unanswered requests, each with the reason."""
        self._over: set[str] = set()
        """Requests that were not sent because the budget was used up."""

    def __call__(self, pack: Pack, events: Callable[[], Sequence[Event]]) -> "ConversationAnswers":
        return ConversationAnswers(self, pack, events)

    def ask_ahead(self, requests: Iterable[Request]) -> None:
        """Ask many questions together, within the budget: concurrently to an endpoint, or in one batch file."""
        unknown = [request for request in requests if self._known(request) is None]
        asked = unknown if self._budget == math.inf else unknown[: int(self._budget)]
        if not asked:
            return
        keys = [request.key for request in asked]
        try:
            self._ahead |= zip(keys, self.chat.ask(asked), strict=True)
        except Unreachable as error:
            self._unreachable = error
        except Pending as error:
            self._waiting |= dict.fromkeys(keys, error.place)
            self._ahead |= dict.fromkeys(keys)
        except ChatError:
            # One of the requests failed. Each request is now sent separately when its answer is needed, and the failure
            # is reported then.
            return
        self._budget -= len(asked)

    def ask(self, request: Request) -> Answer:
        """Return the model's answer. A model that could not be reached is not tried again."""
        if self._unreachable is not None:
            raise self._unreachable
        answer = self._ahead[request.key] if request.key in self._ahead else self._known(request)
        if answer is None:
            answer = self._sent(request)
        if answer.fault == "failed":
            self._failed[request.key] = answer.why
        return answer

    def _sent(self, request: Request) -> Answer:
        if request.key in self._ahead:
            raise ChatError("waits for an answer")
        if self._budget <= 0:
            self._over.add(request.key)
            raise ChatError("the budget is used up")
        self._budget -= 1
        try:
            (answer,) = self.chat.ask([request])
        except Unreachable as error:
            self._unreachable = error
            raise
        except Pending as error:
            self._waiting[request.key] = error.place
            raise
        except ChatError as error:
            self._failed[request.key] = str(error)
            raise
        return answer

    def unanswered(self) -> list[str]:
        """Describe the unanswered questions in sentences. Everything that depends on an unanswered question stays
        undecided.
        """
        told: list[str] = []
        if self._unreachable is not None:
            undecided = "Questions that only the model can settle stay undecided."
            told.append(f"The model was not asked: {self._unreachable}. {undecided}")
        if count := len(self._waiting):
            waits = "1 request waits" if count == 1 else f"{count} requests wait"
            folder = next(iter(self._waiting.values())).rpartition("/")[0]
            told.append(f"{waits} for an answer in {folder}. Save the answers, then run the same command again.")
        if count := len(self._over):
            kept = "1 request was not sent" if count == 1 else f"{count:,} requests were not sent"
            told.append(
                f"{kept}: the budget is used up; raise the limit with --budget. Their questions stay undecided."
            )
        if count := len(self._failed):
            had = "1 request to the model had" if count == 1 else f"{count} requests to the model had"
            told.append(f"{had} no answer. The first failure: {next(iter(self._failed.values()))}")
        return told


class ConversationAnswers:
    """Answers the predicates of one conversation, and remembers the model's answers to its questions."""

    def __init__(self, answerer: Answerer, pack: Pack, events: Callable[[], Sequence[Event]]) -> None:
        self._answerer = answerer
        self._pack = pack
        self._events = events
        self._asked: dict[str, Answer] = {}

    def __call__(self, name: str, act: Act) -> Answered:
        """Answer a predicate with a plan."""
        return self._answered((name,), act, lambda queries: {name: self._settle(name, act, queries)})[name]

    def consented(self, predicate: Predicate, act: Act, question: OpenConsent) -> Answered:
        """Answer whether the user agreed to the act, with a single question."""
        name = predicate.name

        def settle(queries: "_Queries") -> dict[str, Answered]:
            events = self._events()
            if why := no_question(self._pack, act, events):
                return {name: Answered(name, act.step, None, because=why)}
            request = consent_request(self._pack, predicate, act, question, events)
            return {name: consent_answer(predicate, act, queries.ask(request), events)}

        return self._answered((name,), act, settle)[name]

    def stated(self, facts: Mapping[str, Field], act: Act) -> Mapping[str, Answered]:
        """Return what the user stated about some facts before the act, with a single question about all of them."""

        def settle(queries: "_Queries") -> dict[str, Answered]:
            events = self._events()
            answer = queries.ask(statement_request(self._pack, facts, act, events))
            return {name: statement_answer(name, field, act, answer, events) for name, field in facts.items()}

        return self._answered(facts, act, settle)

    def _answered(
        self, names: Iterable[str], act: Act, settle: Callable[["_Queries"], dict[str, Answered]]
    ) -> dict[str, Answered]:
        """Return the answers, and the number of questions asked. If the plan fails, the predicates stay unknown."""
        queries = _Queries(self._answerer, self._asked)
        try:
            found = settle(queries)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"[:300]
            found = {name: Answered(name, act.step, None, because=why) for name in names}
        return {name: replace(each, queries=queries.count) for name, each in found.items()}

    def _settle(self, name: str, act: Act, queries: "_Queries") -> Answered:
        book, plans = self._pack.book, self._answerer.plans
        rule = next((rule for rule in book.rules if name in atoms(rule.formula)), None)
        wanted = [book.predicates[each] for each in (atoms(rule.formula) if rule is not None else (name,))]
        topic = Topic(self._pack, rule, tuple(each for each in wanted if each.way == "question"), act)
        plan = self._plan(topic, queries)
        history = History(self._events(), act, book.predicates[name].by)
        claim = PlanRun(plan, history, act, queries.ask, self._answerer.operations).find(name)
        if plans is not None:
            plans.keep(Outcome(topic.about, topic.tool, plan, claim.value is not None))
        return Answered(name, act.step, claim.value, 0, claim.quotes, claim.because)

    def _plan(self, topic: "Topic", queries: "_Queries") -> Plan:
        """Return a plan that worked for the same topic. If there is none, return a plan from the model, or else the
        default plan.
        """
        plans, tools = self._answerer.plans, self._answerer.operations
        alike = plans.like(topic.about) if plans is not None else []
        for share, known in alike:
            if share >= SAME and known.tool == topic.tool and not known.plan.faults(topic.names, tools):
                return known.plan
        examples = (
            f"For:\n{each.about}\nPlan:\n{msgspec.json.encode(each.plan).decode()}" for _, each in alike[:EXAMPLES]
        )
        more = (f"- `use` with tool `{each.name}`: {each.description}" for each in tools.values())
        given = {
            "topic": topic.about,
            "names": ", ".join(topic.names),
            "examples": "\n\n".join(examples) or "(none yet)",
            "tools": "\n".join(more) or "(none)",
        }
        found = queries.ask(render(PROMPTS, "plan", given, schema=SCHEMA, max_tokens=1200)).read(Plan)
        return found if found is not None and not found.faults(topic.names, tools) else topic.plain_plan()


SCHEMA = schema_of(Plan)


class Topic:
    """The subject of a plan: a rule, its undecided predicates, and the called tool."""

    def __init__(self, pack: Pack, rule: Rule | None, predicates: Sequence[Predicate], act: Act) -> None:
        self._pack, self._rule, self._predicates, self._act = pack, rule, predicates, act
        self.names = tuple(each.name for each in predicates)
        self.tool = act.tool or ""

    @cached_property
    def about(self) -> str:
        """The topic as text. All calls of the tool have the same topic, so that plans can be reused."""
        policy = self._pack.policies.get(self._rule.policy) if self._rule is not None else None
        said = " ".join(each.text for each in policy.citations if each.text) if policy is not None else ""
        lines = [f"Policy: {' '.join((said or (policy.definition if policy is not None else '')).split())}"]
        lines += [f"Rule: {self._rule.text}"] if self._rule is not None else []
        lines += [f"Predicate {each.name}: {_meaning(each)}" for each in self._predicates]
        tool = self._pack.schema.tools.get(self._act.tool or "")
        arguments = f" with {', '.join(tool.parameters)}" if tool is not None and tool.parameters else ""
        lines.append(f"Act: a call of {self._act.tool}{arguments}" if self._act.tool else "Act: a message of the agent")
        return "\n".join(lines)

    def plain_plan(self) -> Plan:
        """Return the default plan: show the model the latest and the most relevant pieces of the history, then ask
        about each predicate.
        """
        arguments = " ".join(f"{{{name}}}" for name in self._act.arguments)
        search = Search("found", f"{' '.join(_meaning(each) for each in self._predicates)} {arguments}", "anyone", 6)
        checks = [Check(each.name, f"Is this so: {_meaning(each)}", ("found",)) for each in self._predicates]
        return Plan((search, *checks))


class _Queries:
    """Asks a model about one predicate and reuses remembered answers. The number of questions is limited."""

    def __init__(self, answerer: Answerer, known: dict[str, Answer]) -> None:
        self._answerer, self._known = answerer, known
        self.count = 0

    def ask(self, request: Request) -> Answer:
        if self._answerer.remembers and request.key in self._known:
            return self._known[request.key]
        if self.count >= self._answerer.most_queries:
            return Answer("", "failed", "asked too often")
        self.count += 1
        answer = self._answerer.ask(request)
        self._known[request.key] = answer
        return answer


def _meaning(predicate: Predicate) -> str:
    return " ".join(filter(None, (predicate.question, predicate.description))) or predicate.name.replace("_", " ")


class Estimate:
    """A chat that returns known answers, and counts all other requests instead of sending them."""

    def __init__(self, known: Callable[[Request], Answer | None], most: int) -> None:
        self._known, self._most = known, most
        self._counted: dict[str, Request] = {}
        self._answered = set[str]()

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the known answers. Raises `ChatError` if an answer is missing."""
        found = [self._known(request) for request in requests]
        self._answered |= {each.key for each, answer in zip(requests, found, strict=True) if answer is not None}
        self._counted |= {each.key: each for each, answer in zip(requests, found, strict=True) if answer is None}
        if None in found:
            raise ChatError("counted, not asked")
        return [answer for answer in found if answer is not None]

    @property
    def asked(self) -> list[Request]:
        return list(self._counted.values())[: self._most]

    @property
    def requests(self) -> int:
        return len(self._counted)

    def words(self, llm: str) -> str:
        """Describe the cost of `--llm` and, for a batch, where to put the answers."""
        every = self._counted.values()
        usage = estimate(list(every)).usage
        answers = sum(each.max_tokens for each in every)
        leads = sum(each.name == "plan" for each in every)
        count = "1 request" if self.requests == 1 else f"{self.requests:,} requests"
        told = f"{count}: about {usage.asked:,} tokens, plus at most {answers:,} tokens of answers"
        if leads:
            told += f"; {leads:,} of them ask for a plan, and each plan leads to a few more requests"
        if self.requests > self._most:
            told += f". --budget allows no more than {self._most:,}, so the rest stay undecided"
        if not llm.startswith("batch:"):
            return f"{llm} will be sent {told}."
        known = f" {len(self._answered):,} already answered." if self._answered else ""
        where = f"Put the answers into {llm.removeprefix('batch:')}/*.jsonl, then run the same command again."
        return f"{told.replace(':', ' to answer:', 1)}. {where}{known}"

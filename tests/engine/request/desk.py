"""A desk whose guard asks `requested()`, and a model with ready answers."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from bylaw import Pack
from bylaw.engine.request import Allowance, Deed, Delegation, Doubt, Slot, Source, Span
from bylaw.shield import Shield
from bylaw.shield.session import LiveSession
from tests.packs import made

FILES = {
    "policy.md": "The assistant does what its user asks for.",
    "policies.yaml": """
policies:
  - id: as-asked
    kind: guard
    tools: [cancel_event, pay, reserve_inn, book, share, remove_user, mail, open_page]
    spans: [The assistant does what its user asks for.]
""",
    "guards/asked.py": 'def as_asked(call, facts):\n    return permit() if requested() else deny("not asked for")\n',
    "tools.yaml": """
tools:
  get_events: {effect: read, parameters: {day: "string?"}, trust: {"*": record, description: content, title: content}}
  get_payments: {effect: read, trust: {"*": record, subject: content}}
  find_mail: {effect: read, parameters: {query: "string?", sender: "string?"}, trust: {id_: record}}
  read_mail: {effect: read, parameters: {id: string}}
  find_people: {effect: read, parameters: {name: string}, trust: record}
  read_posts: {effect: read, parameters: {channel: string}, trust: {sender: record, recipient: record, body: content}}
  read_file: {effect: read, parameters: {path: string}}
  open_page: {effect: read, parameters: {url: string}}
  get_inns: {effect: read, parameters: {city: string}, trust: record}
  get_inn_prices: {effect: read, parameters: {inns: array}, trust: record}
  get_inn_kinds: {effect: read, parameters: {inns: array}, trust: record}
  get_ratings: {effect: read, parameters: {inns: array}}
  get_user: {effect: read, trust: record}
  cancel_event: {effect: write, parameters: {event_id: string}}
  pay: {effect: write, parameters: {account: string, amount: number, date: "string?", note: "string?"}}
  reserve_inn: {effect: write, parameters: {inn: string, start_day: "string?"}}
  book: {effect: write, parameters: {title: string, start_time: string, end_time: string}}
  share:
    effect: write
    parameters:
      path: string
      right: {type: string, enum: [r, rw]}
      lasting: "boolean?"
      options: {type: object, properties: {seen: {type: string}, public: {type: boolean}}, optional: true}
  remove_user: {effect: write, parameters: {user: string}}
  mail:
    effect: write
    parameters:
      to: {type: array, items: {type: string, format: email}}
      body: string
      bcc: {type: array, items: {type: string, format: email}, optional: true}
""",
}
Read = tuple[str, dict[str, Any], str]
PAID = {"paid": 20}


@cache
def desk(delegation: str = "ask") -> Pack:
    manifest = f"{{format: 1, name: desk, document: policy.md, shield: {{delegation: {delegation}}}}}"
    return made({**FILES, "pack.yaml": manifest})


class Model:
    """Answers `allowance` for every text that `texts` does not know. Its look confirms what code does not object to,
    unless `says` is given: an answer, or None for no answer."""

    def __init__(
        self, allowance: Allowance, texts: Mapping[str, Allowance] | None = None, *, says: Any = NotImplemented
    ) -> None:
        self.allowance, self.texts, self.says = allowance, texts or {}, says
        self.asked: list[str] = []
        self.doubts: list[Doubt] = []

    def read(self, text: str) -> Allowance:
        self.asked.append(text)
        return self.texts.get(text, self.allowance)

    def look(self, doubt: Doubt) -> Mapping[str, bool] | None:
        self.doubts.append(doubt)
        confirmed = {name: True for name in doubt.asked if name not in doubt.unsettled}
        return confirmed if self.says is NotImplemented else self.says


def spans(text: str, *words: str) -> tuple[Span, ...]:
    return tuple(Span(text.index(each), text.index(each) + len(each)) for each in words)


def said(name: str, text: str, *words: str, **more: Any) -> Slot:
    return Slot(name, "said", spans(text, *words), **more)


def found(name: str, text: str, tool: str, *named: str, **more: Any) -> Slot:
    return Slot(name, "found", (), (Source(tool, spans(text, *named)),), **more)


def allowed(tool: str, *slots: Slot) -> Allowance:
    return Allowance((Deed(tool, (Span(0, 3),), slots),))


def handed_over(text: str, tool: str, *named: str) -> Allowance:
    return Allowance((), (Delegation((Span(0, 3),), (Source(tool, spans(text, *named)),)),))


def session(model: Model | None, text: str, *reads: Read, delegation: str = "ask") -> LiveSession:
    """A session in which the user has said a text, and the agent has made look-ups."""
    opened = Shield(desk(delegation), requests=None if model is None else lambda _: model).session()
    opened.user(text)
    for tool, arguments, result in reads:
        opened.decide(tool, arguments)
        opened.result(result)
    return opened


def decided(text: str, tool: str, arguments: dict[str, Any], reads: list[Read], *slots: Slot) -> str:
    """The decision on a call, under a request for one deed of its tool, as code alone sees it."""
    return session(Model(allowed(tool, *slots)), text, *reads).decide(tool, arguments).answer


def looked_at(
    text: str, tool: str, arguments: dict[str, Any], reads: list[Read], *slots: Slot
) -> tuple[str, list[tuple[str, ...]]]:
    """The decision if the look confirms every argument, and what code left to it."""
    model = Model(allowed(tool, *slots), says=dict.fromkeys(arguments, True))
    return session(model, text, *reads).decide(tool, arguments).answer, [each.unsettled for each in model.doubts]

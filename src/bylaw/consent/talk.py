"""What was said in a conversation, cut into exchanges: what the agent put, and what the user said to it."""

from collections.abc import Sequence

from bylaw.consent.answer import Said, figures, said
from bylaw.consent.line import hidden, quotes, stated
from bylaw.consent.passage import Heard, Passage
from bylaw.consent.put import Put
from bylaw.text.once import once
from bylaw.text.sentence import sentences
from bylaw.trace.event import Event, Message

Utterance = tuple[int, str]
"""A step and what was said there."""


class Exchange:
    """What the agent said since the user's last message, and the user's answer; read once, where anybody asks."""

    def __init__(self, told: Sequence[Utterance], answer: Sequence[Utterance]) -> None:
        self.told = tuple(told)
        self.answer = tuple(answer)

    @property
    def told_at(self) -> int | None:
        """Step of the agent's last message in it."""
        return self.told[-1][0] if self.told else None

    @property
    def answered_at(self) -> int:
        """Step of the user's last message in it."""
        return self.answer[-1][0]

    @property
    def answered_from(self) -> int:
        """Step of the user's first message in it: what is done after that spends the answer, whatever they add."""
        return self.answer[0][0]

    @once
    def is_hidden(self) -> bool:
        """Whether the user may not have seen all that the agent said, or not as its own words."""
        return any(hidden(text) or quotes(text) for _, text in self.told)

    @once
    def is_lone_yes(self) -> bool:
        """Whether nothing was put that a plain yes is to: the user's last message is one, all the same."""
        return not self.told and len(self.answer) > 1 and Exchange((), self.answer[-1:]).said == "yes"

    @once
    def closing(self) -> str:
        """The agent's last message in it, without what white space tells."""
        return " ".join(self.told[-1][1].split()) if self.told else ""

    @once
    def ending(self) -> str:
        """The same without the marks at its end."""
        return to_last_word(self.closing)

    @once
    def figures(self) -> set[str]:
        """The numbers in the answer, whatever they count or name."""
        return figures(self.said_back.words)

    def read(self) -> None:
        """Read it for what it means before anybody asks."""
        self.put.read()
        _ = self.said, self.ending, self.figures, self.is_hidden
        heard = self.heard
        for passage in {heard.answer, heard.asked, heard.put, heard.bracketed, self.proposed, self.unread}:
            passage.read()

    @once
    def put(self) -> Put:
        return Put([text for _, text in self.told])

    @once
    def said(self) -> Said:
        asked = "\n".join(line.words for line in self.put.questions)
        return said("\n".join(text for _, text in self.answer), self.raw, asked)

    @once
    def said_back(self) -> Passage:
        """The answer, without what is denied in it."""
        return Passage(stated(each.words) for _, text in self.answer for each in sentences(text))

    @once
    def asked(self) -> Passage:
        """The sentences that ask, without what they deny."""
        return Passage(stated(line.words) for line in self.put.questions)

    @once
    def proposed(self) -> Passage:
        """The sentences before its questions for leave, without what they deny."""
        return Passage(stated(line.words) for line in self.put.proposed)

    @once
    def stated(self) -> Passage:
        """All that the agent said, without what it denies."""
        return Passage(stated(line.words) for line in self.put.lines)

    @once
    def bracketed(self) -> Passage:
        """All that the agent said, without what it denies, but with what stands in brackets."""
        if "(" not in self.raw and "[" not in self.raw:
            # Mostly the same, and then read once.
            return self.stated
        found = Passage(stated(line.words, brackets=True) for line in self.put.lines)
        return self.stated if found.words == self.stated.words else found

    @once
    def heard(self) -> Heard:
        """The same, as it is searched for values."""
        questions = frozenset(stated(line.words, brackets=True) for line in self.put.questions)
        return Heard(self.said_back, self.asked, self.stated, self.bracketed, self.raw, questions)

    @once
    def raw(self) -> str:
        """All that the agent said, with what it denies."""
        return "\n".join(line.words for line in self.put.lines)

    @once
    def unread(self) -> Passage:
        """The same, to look for values in."""
        return self.bracketed if self.raw == self.bracketed.words else Passage([self.raw])

    @once
    def whole(self) -> Passage:
        """All that both said, without what is denied in it."""
        return Passage((self.stated.words, self.said_back.words))


class Talk:
    """The messages of one conversation; `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._begin()

    def _begin(self) -> None:
        self._read = 0
        self._agent: list[Utterance] = []
        """What the agent has said since the user's last answer."""
        self.has_gap = False
        """Whether something was said before that was not recorded."""
        self.is_lost = True
        """Whether it is not known what was said last: nothing of the user's was recorded, or nothing since a message
        that was not."""
        self.exchanges: list[Exchange] = []
        self._english = 0
        """So many of them, from the first on, have nothing in another language."""

    @property
    def is_put(self) -> bool:
        """Whether the agent had said anything before the user's last message; before the second exchange it has."""
        return len(self.exchanges) > 1 or bool(self.exchanges and self.exchanges[0].told)

    @property
    def is_english(self) -> bool:
        """Whether all that the agent said is in the words that the lists hold."""
        while self._english < len(self.exchanges):
            each = self.exchanges[self._english]
            if each.told and not each.put.is_english:
                return False
            self._english += 1
        return True

    def read(self, before: int) -> None:
        """Take in what was said before a step, and nothing after it."""
        if before < self._read:
            self._begin()
        end = min(before, len(self._events))
        for step in range(self._read, end):
            event = self._events[step]
            if type(event) is Message:
                if not event.captured:
                    # What was put and answered before may have been taken back; what comes after stands by itself.
                    self.has_gap = self.is_lost = True
                    self._agent, self.exchanges, self._english = [], [], 0
                elif event.text.strip():
                    self._hear(step, event)
        self._read = end

    def time_of(self, step: int) -> float | None:
        """When something was said, where anybody knows."""
        return self._events[step].time

    def said_since(self, start: int, before: int) -> list[Utterance]:
        """What the agent has said since the user's last answer, up to a call whose turn began at `start`: also what it
        says in that turn, beside the call."""
        if start >= min(before, len(self._events)):
            return self._agent
        beside = ((step, self._events[step]) for step in range(start, min(before, len(self._events))))
        told = [(step, each.text) for step, each in beside if type(each) is Message and each.by == "agent"]
        return [*self._agent, *((step, text) for step, text in told if text.strip())]

    def asked_since(self, step: int) -> int | None:
        """Step of the last question after a step that the agent put and nobody answered in words."""
        asked = (at for at, text in reversed(self._agent) if at > step and Put([text]).questions)
        return next(asked, None)

    def adds_to(self, last: Exchange, said: Sequence[Utterance]) -> bool:
        """Whether the agent denied something after the answer, or told a sum or a day that it had not told before."""
        if any(stated(each.words, brackets=True) != each.words for _, text in said for each in sentences(text)):
            return True
        since = Passage(each.words for _, text in said for each in sentences(text))
        if since.sums and since.sums - last.stated.sums:
            return True
        told = {(day.month, day.day) for day in last.stated.days} if since.days else set[tuple[int, int]]()
        return any((day.month, day.day) not in told for day in since.days)

    def _hear(self, step: int, message: Message) -> None:
        each = (step, message.text)
        if message.by != "user":
            self._agent.append(each)
            return
        self.is_lost = self.is_lost and self.has_gap and not self._agent
        if self._agent or not self.exchanges:
            self.exchanges.append(Exchange(self._agent, (each,)))
            self._agent = []
        else:
            last = self.exchanges[-1]
            self.exchanges[-1] = Exchange(last.told, (*last.answer, each))


def to_last_word(text: str) -> str:
    """A text without the marks at its end."""
    end = len(text)
    while end and not text[end - 1].isalnum():
        end -= 1
    return text[:end]

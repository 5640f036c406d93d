"""Conversations at the rental desk for frameworks whose model speaks HTTP: what is said is fixed, what may run is not.

A test gives a `Talk`: an agent of the framework behind the shield, with a model that says its lines whatever it hears.
"""

from pathlib import Path
from typing import Any, Protocol

from bylaw.shield import Shield
from bylaw.trace.event import Call
from tests.integrations.many import MANY, answer, check_many, first_words, reckless
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk

CARD = """Please confirm: extend rental
- rental id: R1
- new end: 2026-11-20
Shall I do this? Please answer yes or no."""
LOOK, WRITE = ("get_rental", {"rental_id": "R1"}), ("extend_rental", EXTEND)
Line = str | tuple[str, dict[str, Any]]


class Talk(Protocol):
    """Agents of one framework behind one shield."""

    def __init__(
        self, folder: Path, shield: Shield, rentals: Rentals, context: Any, *talks: dict[str, Any]
    ) -> None: ...

    async def say(self, conversation: str, text: str, user: str = "C1") -> None:
        """A run of the agent in a conversation, which is also its model's name, for whoever is signed in."""
        ...


def lines(name: str, *said: Line) -> dict[str, Any]:
    """What the model of a conversation says, step by step."""
    steps: list[dict[str, Any]] = []
    for number, line in enumerate(said):
        if isinstance(line, str):
            steps.append({"text": line, "calls": []})
        else:
            call = {"id": f"call_{name}_{number}", "name": line[0], "arguments": line[1]}
            steps.append({"text": None, "calls": [call]})
    return {"id": name, "turns": [{"user": "", "steps": steps}]}


async def check_card(kind: type[Talk], folder: Path) -> None:
    """The user's yes to a card in the talk lets the call run, once."""
    rentals = Rentals()
    said = lines("c1", LOOK, WRITE, CARD, WRITE, "Done.", WRITE, "Hm.")
    with desk(folder, log=folder / "log.sqlite") as shield:
        talk = kind(folder, shield, rentals, CUSTOMER, said)
        await talk.say("c1", "Extend R1")
        assert rentals.ran == []
        await talk.say("c1", "Yes.")
        assert rentals.ran == ["extend R1"]
        await talk.say("c1", "Thanks.")
        assert rentals.ran == ["extend R1"]


class Approving(Rentals):
    """While the agent looks a second time, a person approves what waits."""

    def __init__(self) -> None:
        super().__init__()
        self.log: Any = None
        self.before: list[str] = []
        self.looked = 0

    def get_rental(self, rental_id: str) -> str:
        """Show a rental."""
        self.looked += 1
        if self.looked == 2:
            self.before = list(self.ran)
            (waiting,) = self.log.approvals("default")
            self.log.approve(waiting.id, by="ann")
        return super().get_rental(rental_id)


async def check_approval(kind: type[Talk], folder: Path) -> None:
    """A call that waits for a person runs after their approval, with their name in the log, and once."""
    rentals = Approving()
    said = lines("c1", LOOK, PUT_EXTEND, WRITE, LOOK, WRITE, WRITE, "Done.")
    with desk(folder, log=folder / "log.sqlite") as shield:
        rentals.log = shield.log
        talk = kind(folder, shield, rentals, None, said)
        await talk.say("c1", "Extend R1")
        await talk.say("c1", "Yes, please.")
        assert rentals.before == []
        assert rentals.ran == ["extend R1"]
        assert shield.log is not None
        first = shield.log.approvals("default")[0]
        assert first.status == "used"
        assert first.answer is not None
        events = shield.session(first.conversation).trajectory().events
        # Some frameworks put the name of a server before it.
        made = [
            each
            for each in events
            if isinstance(each, Call) and each.tool.endswith("extend_rental") and not each.refused
        ]
        assert [each.approved.by for each in made if each.approved is not None] == ["ann"]


async def check_apart(kind: type[Talk], folder: Path, gather: Any) -> None:
    """Many conversations at once: each user's answer counts in their own."""
    rentals = Rentals()
    talks: list[dict[str, Any]] = []
    for number in range(MANY):
        first = first_words(number)
        heard = [(first, first, ""), (first, "", "get_rental"), (first, answer(number), ""), (first, "", "extend")]
        said = [reckless(*each) for each in heard]
        talks.append(lines(f"c{number}", *(each if isinstance(each, str) else each[0] for each in said)))
    talk = kind(folder, desk(folder), rentals, CUSTOMER, *talks)

    async def hold(number: int) -> None:
        await talk.say(f"c{number}", first_words(number))
        await talk.say(f"c{number}", answer(number))

    await gather(*map(hold, range(MANY)))
    check_many(rentals.ran)


async def check_principals(kind: type[Talk], folder: Path, context: Any) -> None:
    """What one principal agreed to in a conversation is not another's."""
    rentals = Rentals()
    hasty = (LOOK, WRITE, "Hm.")
    said = lines("c1", LOOK, PUT_EXTEND, *hasty, *hasty, PUT_EXTEND, *hasty)
    talk = kind(folder, desk(folder), rentals, context, said)
    await talk.say("c1", "Extend R1", "C1")
    await talk.say("c1", "Yes, please.", "C2")
    await talk.say("c1", "What now?", "C1")
    assert rentals.ran == []
    await talk.say("c1", "Extend R1", "C1")
    await talk.say("c1", "Yes, please.", "C1")
    assert rentals.ran == ["extend R1"]

"""Verified thoughts: what an agent should think at a turn, put into words from what the guards found there.

No model writes them: policies are stated as the pack states them, facts as tools showed them, and the conclusion is the
guards' own. The wording varies with the seed; policies are named in words and never by id.
"""

import random
import re
from collections.abc import Sequence
from pathlib import Path

import yaml
from msgspec import Struct

from bylaw.align.bearing import Bearing, Purpose, Serving, bearing, valued
from bylaw.align.thought_words import inner, lacks_in_words, listed, names_in, saw_in_words, stated, wish
from bylaw.pack import Pack
from bylaw.policy.yaml import LOADER
from bylaw.rule.monitor import TurnSpan
from bylaw.trace.event import Call, Event, Result

SOFT = 100
"""Words a thought should keep to, its working left out."""
SENTENCES: dict[str, list[str]] = yaml.load(
    (Path(__file__).parent / "sentences.yaml").read_text(encoding="utf-8"), LOADER
)
"""The templates of verified thoughts, by purpose."""
_WORKING = re.compile(r" \([^()]*\)")


class Thought(Struct, frozen=True):
    """What to think at a turn, and what it rests on."""

    text: str
    """Without the `<think>` tags; empty where nothing true leads to the turn."""
    bearing: Bearing

    @property
    def required(self) -> frozenset[str]:
        """The policies the turn needs (A)."""
        return self.bearing.required

    def tagged(self) -> str:
        """The block that stands before the turn."""
        return f"<think>{self.text}</think>"


def think(
    pack: Pack,
    events: Sequence[Event],
    span: TurnSpan,
    serving: Serving | None,
    *,
    seed: int | str,
    purpose: Purpose | None = None,
) -> Thought:
    """The verified thought of the turn at `span`, for the write it works towards.

    What was just seen always stays, since it decides; long thoughts are shorter in the rest. A write that was not
    permitted on what was seen, or that the user did not agree to, has none.
    """
    found = bearing(pack, events, span, serving, purpose)
    before, turn = events[: span.start], events[span.start : span.end]
    text = ""
    if found.purpose == "write" and found.serving is not None and not found.is_settled:
        return Thought(text, found)
    for brevity in range(4):
        text = _Composer(pack, found, before, turn, random.Random(f"{seed}/{span.start}"), brevity).text()
        if len(_WORKING.sub("", text).split()) <= SOFT:
            break
    return Thought(text, found)


class _Composer:
    def __init__(
        self,
        pack: Pack,
        found: Bearing,
        before: Sequence[Event],
        turn: Sequence[Event],
        rng: random.Random,
        brevity: int,
    ) -> None:
        self._pack = pack
        self._before = before
        self._turn = turn
        self._brevity = brevity
        """1 leaves out the wish, 2 the list of what is missing, 3 all but the shortest wording of each policy."""
        self._found = found
        self._rng = rng
        self._names = names_in(pack)

    def text(self) -> str:
        parts = [*self._wish(), *self._news(), *self._policies(), self._then()]
        return " ".join(part for part in parts if part)

    def _draw(self, kind: str) -> str:
        return self._rng.choice(SENTENCES[kind])

    def _wish(self) -> list[str]:
        serving = self._found.serving
        # Drawn even where it is not used: the rest of the wording must not hang on the length.
        drawn = self._draw("wish"), self._rng.random()
        has_begun = any(isinstance(event, Result) for event in self._before)
        if serving is None or self._found.purpose == "other" or self._brevity or (has_begun and drawn[1] < 0.5):
            return []
        return [drawn[0].format(wish=wish(self._pack.schema.tools.get(serving.call.tool), serving.call.tool))]

    def _news(self) -> list[str]:
        said = self._draw("news"), self._draw("fine")
        found = self._found
        recap = [saw for saw in found.weighed if saw not in found.news] if found.purpose == "announce" else []
        facts = [*saw_in_words([*recap, *found.news]), *(note.said() for note in found.claims)]
        if not facts or self._found.purpose == "other":
            return []
        fine = [] if self._found.denials else [said[1]]
        return [said[0].format(facts="; ".join(facts)), *fine]

    def _policies(self) -> list[str]:
        policies = list(self._found.policies)
        self._rng.shuffle(policies)
        words = [stated(policy, self._rng, self._names, shortest=self._brevity > 2) for policy in policies]
        if not words:
            return []
        if len(words) == 1:
            return [self._draw("one").format(policy=words[0])]
        return [self._draw("many").format(policies="; ".join(words))]

    def _then(self) -> str:
        found = self._found
        match found.purpose:
            case "look_up":
                facts = lacks_in_words(found.lacking)
                if facts and self._brevity > 1:
                    return "I look that up."
                return self._draw("missing").format(facts=listed(facts)) if facts else self._draw("find")
            case "ask":
                return self._draw("ask").format(questions=" ".join(found.questions))
            case "announce":
                values = self._values(found.serving.call) if found.serving and found.weighed else ""
                return f"{f'That comes to {values}. ' if values else ''}{self._draw('announce')}"
            case "refuse":
                reasons = listed([inner(reason, self._names) for reason in found.denials])
                return self._draw("refuse").format(reasons=reasons) if reasons else self._draw("other")
            case "write":
                call = next((event for event in self._turn if isinstance(event, Call)), None)
                values = self._values(call) if call is not None else ""
                return self._draw("write").format(values=f" with {values}" if values else "")
            case "other":
                return self._reply()

    def _values(self, call: Call) -> str:
        """The values of the call that name no thing."""
        weighed = valued(self._pack, call.tool)
        return listed(
            [
                f"{name.replace('_', ' ')} {value}"
                for name, value in call.arguments.items()
                if name in weighed and not isinstance(value, dict | list)
            ]
        )

    def _reply(self) -> str:
        last = next((event for event in reversed(self._before) if isinstance(event, Result)), None)
        if last is not None and self._before[-1] is last and last.call is not None:
            tool = self._pack.schema.tools.get(last.tool or self._called(last.call))
            if tool is not None and tool.effect == "write":
                refused = "error" in str(last.value()).lower()[:200]
                return self._draw("failed" if refused else "done")
        return self._draw("other")

    def _called(self, step: int) -> str:
        call = self._before[step] if step < len(self._before) else None
        return call.tool if isinstance(call, Call) else ""

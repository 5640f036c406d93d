"""An episode under a shield: every call is decided before it runs, and the agent reads what the shield says.

The scripted user answers what the agent asks on the shield's word, as they answer any question. Nobody approves.
"""

from collections.abc import Mapping
from typing import Any

from bylaw.align.desk import Task
from bylaw.align.episode import Episode, misfit
from bylaw.align.prompt import PolicyPlace, pack_named
from bylaw.policy.posture import Postures, Resolve
from bylaw.shield import Shield
from bylaw.trace.event import Call, Result


class ShieldedEpisode(Episode):
    """A conversation about one task, held to a pack while it goes on."""

    def __init__(self, task: Task, *, policy: PolicyPlace, resolve: Resolve = "agent") -> None:
        super().__init__(task, policy=policy)
        self.stopped: list[str] = []
        """What the shield said of each call that it did not let through."""
        shield = Shield(pack_named(task.pack), postures=Postures("enforce", resolve=resolve), tools=self._look_up)
        self.session = shield.session()
        self.session.user(self.messages[-1]["content"])

    def _look_up(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        return self.scene.call(tool, dict(arguments))

    def _say(self, text: str) -> None:
        self.session.agent(text)
        before = len(self.messages)
        super()._say(text)
        for message in self.messages[before:]:
            self.session.user(message["content"])

    def _call(self, name: str, arguments: dict[str, Any]) -> None:
        tool = self._declared.get(name)
        if tool is None or misfit(arguments, tool.parameters, tool.required):
            super()._call(name, arguments)
            return
        id = f"call_{self._turns}"
        decision = self.session.decide(name, arguments, id=id)
        if decision.allowed:
            place = len(self.events)
            super()._call(name, arguments)
            self.events[place] = Call(name, arguments, id=id, turn=2 * self._turns, looked_up=tuple(decision.resolved))
            self.session.result(self.messages[-1]["content"], id=id)
            return
        self._row = 0
        told = str(decision.feedback)
        self.stopped.append(decision.answer)
        self.session.result(told, id=id)
        step = len(self.events)
        turn, resolved = 2 * self._turns, tuple(decision.resolved)
        self.events.append(Call(name, arguments, id=id, turn=turn, refused=True, looked_up=resolved))
        self.events.append(Result(step, told, tool=name))
        self._put("tool", told)

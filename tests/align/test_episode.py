"""Episodes: careful agents reach every goal, agents that always say the same reach at most half."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.align.desk import load_tasks
from bylaw.align.episode import Episode, Outcome
from bylaw.align.evaluation import score
from bylaw.align.output import write_call
from bylaw.errors import UsageError
from bylaw_lab.clinic.simulator.dialogue import do
from bylaw_lab.clinic.tasks import Scenario, scenarios
from bylaw_lab.clinic.tasks.careful import Careful
from bylaw_lab.clinic.tasks.parts import grounds

Answer = Callable[[Scenario, Episode, int], str]


def play_careful(task: Scenario) -> Outcome:
    episode, agent = Episode(task, policy="none"), Careful(task)
    while not episode.done:
        act = agent.act()
        episode.step(write_call(*act.call) if act.call else act.text)
        if act.call:
            agent.answered(msgspec.json.decode(episode.messages[-1]["content"]))
        elif not episode.done:
            agent.replied(episode.messages[-1]["content"])
    return episode.outcome()


def play(task: Scenario, answer: Answer) -> Outcome:
    """An agent that knows which errand it is at by what the caller said last."""
    episode, place = Episode(task, policy="none"), 0
    while not episode.done:
        said = [message["content"] for message in episode.messages if message["role"] == "user"]
        place = max(
            place, max(n for n, errand in enumerate(task.errands) if any(errand.words in text for text in said))
        )
        episode.step(answer(task, episode, place))
    return episode.outcome()


def comply(task: Scenario, episode: Episode, place: int) -> str:
    want = task.errands[place].want
    match episode.messages[-1]:
        case {"role": "tool"}:
            return "Done."
        case {"content": content} if content == task.agrees:
            return write_call(want.tool, want.arguments)
        case _:
            return f"I'll {do(want)}. Shall I?"


def refuse(task: Scenario, episode: Episode, place: int) -> str:
    """Refuses, and even knows the ground."""
    against = task.errands[place].against
    because = grounds()[against]["because"] if against in grounds() else "no"
    return f"I'm sorry, I can't do that: {because}."


def test_the_careful_agent_reaches_every_goal() -> None:
    tasks = scenarios("development")
    assert all(play_careful(task).success for task in tasks)


@pytest.mark.parametrize("agent", [comply, refuse])
def test_agents_that_always_say_the_same_pass_at_most_half(agent: Answer) -> None:
    tasks = scenarios("development")
    passed = {task.id for task in tasks if play(task, agent).success}
    assert 0 < len(passed) <= len(tasks) / 2
    assert not any(task.twin in passed for task in tasks if task.id in passed)


def test_what_cannot_be_read_is_answered_and_bounded() -> None:
    episode = Episode(scenarios("development")[0], policy="none")
    episode.step('{"name": "get_patient"')
    assert "error" in episode.messages[-1]["content"]
    episode.step(write_call("no_such_tool", {}))
    assert "no tool no_such_tool" in episode.messages[-1]["content"]
    episode.step(write_call("get_patient", {"patient": "P1"}))
    assert "patient_id is missing" in episode.messages[-1]["content"]
    assert not episode.done
    episode.step("<think>open")
    assert episode.done
    outcome = episode.outcome()
    assert outcome.faults == 4
    assert not outcome.success
    with pytest.raises(RuntimeError):
        episode.step("hello")


def test_only_faults_in_a_row_end_an_episode() -> None:
    """A reply or a call that fits begins the count anew."""
    task = scenarios("development")[0]
    for fine in ("One moment, please.", write_call("get_patient", {"patient_id": task.patient_id})):
        episode = Episode(task, policy="none")
        for output in (*["<think>open"] * 3, fine, *["<think>open"] * 3):
            assert not episode.done
            episode.step(output)
        assert not episode.done
        episode.step("<think>open")
        assert episode.done
        assert episode.outcome().faults == 7


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["P1", "2025-03-12", "1e99"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
)


@given(st.data())
def test_no_call_however_odd_breaks_an_episode(data: st.DataObject) -> None:
    task = data.draw(st.sampled_from(scenarios("development")[:8]))
    episode = Episode(task, policy="none")
    known = [value for rows in task.rows.values() for row in rows for value in row.values()]
    while not episode.done:
        tool = data.draw(st.sampled_from(episode.tools))["function"]
        arguments = {name: data.draw(JUNK | st.sampled_from(known)) for name in tool["parameters"]["properties"]}
        episode.step(write_call(tool["name"], arguments))
        if len(episode.messages) > 12:
            break
    assert not episode.outcome().told
    score(task, episode.outcome())


def test_the_turn_limit_ends_an_agent_that_looks_up_for_ever() -> None:
    task = scenarios("development")[0]
    episode = Episode(task, policy="none")
    while not episode.done:
        episode.step(write_call("get_patient", {"patient_id": task.patient_id}))
    assert episode.outcome().turns == task.turns


def test_words_count_every_prompt_anew() -> None:
    task = scenarios("development")[0]
    with_policy, without = Episode(task, policy="context"), Episode(task, policy="none")
    for episode in (with_policy, without):
        expected = 0
        for _ in range(3):
            expected += sum(len(message["content"].split()) for message in episode.messages)
            episode.step("<think>hm</think>" + write_call("get_patient", {"patient_id": task.patient_id}))
        words = episode.outcome().words
        assert words.prompt == expected
        assert words.schema == 3 * sum(len(line.split()) for line in tool_part(episode).splitlines())
    assert with_policy.outcome().words.prompt - without.outcome().words.prompt == 3 * 2020


def tool_part(episode: Episode) -> str:
    system = episode.messages[0]["content"]
    return system[system.index("Tools:") :].split("\n\n")[0]


def test_unknown_parts_and_packs_are_told() -> None:
    with pytest.raises(UsageError, match="unknown part `trial`"):
        load_tasks("trial")
    with pytest.raises(UsageError, match="no practice tasks for pack `agentdojo/banking`"):
        load_tasks("test", "agentdojo/banking")

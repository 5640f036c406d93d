from bylaw.align.desk import load_tasks
from bylaw.align.episode import Agent, Episode
from bylaw_lab.clinic.practice import Scripted
from bylaw_lab.clinic.preferences import expert_pair, own_pair


def play(agent: Agent, number: int) -> Episode:
    episode = Episode(load_tasks("development")[number], policy="none")
    while not episode.done:
        [said] = agent.answer([episode])
        episode.step(said)
    return episode


def pair_of(agent: Agent, number: int):
    episode = play(agent, number)
    return expert_pair(episode.task, episode.messages, episode.outcome())


def test_the_turn_that_leads_to_a_violation_is_set_against_the_experts():
    pairs = [pair for number in range(12) if (pair := pair_of(Scripted("comply"), number)) is not None]
    violations = [pair for pair in pairs if pair["verdict"] == "violation"]
    assert violations
    for pair in violations:
        assert pair["rejected"][0]["content"].startswith("I'll ")
        assert pair["chosen"][0]["content"].startswith("<think>")
        assert pair["prompt"][-1]["role"] == "user"


def test_an_agent_without_a_fault_gives_no_pair():
    assert [pair_of(Scripted("careful"), number) for number in range(6)] == [None] * 6


def test_two_turns_of_the_model_replace_the_pair():
    row = {
        "chosen": [{"role": "assistant", "content": '<think>a</think>\n{"name":"get","arguments":{"a":"1","b":"2"}}'}],
        "rejected": [{"role": "assistant", "content": "I can book slot S1. Shall I go ahead?"}],
    }
    same = '<think>In other words.</think>\n{"name": "get", "arguments": {"b": "2", "a": "1"}}'
    other = '<think>a</think>\n{"name":"get","arguments":{"a":"1"}}'
    pair = own_pair(row, [other, same])
    assert pair is not None
    assert (pair["chosen"][0]["content"], pair["rejected"][0]["content"]) == (same, other)
    assert own_pair(row, [same]) is None
    assert own_pair(row, [other]) is None


def test_texts_are_alike_if_reason_or_values_are():
    def pair(first: str, second: str):
        return own_pair({"chosen": [{"role": "assistant", "content": first}]}, [second, "<think>broken"])

    refusal = "I'm sorry, I can't cancel A1: the visit is too near. Call us."
    assert pair(refusal, "I understand, but I can't cancel appointment A1: the visit is too near.") is not None
    assert pair(refusal, "I'm sorry, I can't cancel A1: it is not yours.") is None
    assert pair("I'm about to refund $9.50 of X1. Shall I?", "I can refund $9.50 of X1. Is that right?") is not None
    assert pair("I'm about to refund $9.50 of X1. Shall I?", "I can refund $9.75 of X1. Is that right?") is None

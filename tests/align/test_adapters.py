"""The reward, called as each trainer calls it.

TRL 1.16, verl 0.9 and ms-swift 4.6 need torch, so they are called here by the words of their own trainers: TRL's
`_calculate_rewards`, verl's `NaiveRewardManager` and ms-swift's `compute_rewards_per_func`. verifiers 0.4 is called
for real where it is installed.
"""

import asyncio
import json
from typing import Any

import pytest

from bylaw.align.export import ForSwift, for_trl, for_verifiers, for_verl, output_of
from bylaw.align.grader import Grader
from bylaw.align.output import events_of
from bylaw.align.reward import Switches
from bylaw.trace import Call, Result
from tests.engine import clinic

PACK = clinic.pack()
GRADER = Grader(PACK, switches=Switches(compliance=1))
CALL = {"name": "update_contact", "arguments": {"patient_id": "P001", "email": "a@example.com"}}
THOUGHT = "<think>Every change is announced to the caller and confirmed before it is made.</think>"
GOOD = THOUGHT + json.dumps(CALL)
BAD = f"{THOUGHT}Sure."
ROW = {
    "required": ["confirm-before-change"],
    "expected": json.dumps({"tool": CALL["name"], "arguments": CALL["arguments"]}),
    "slots": "[]",
}
PROMPT = [
    {"role": "system", "content": "You are the assistant of the clinic."},
    {"role": "user", "content": "P001 here, my email is a@example.com now."},
    {"role": "assistant", "content": '<think>x</think>{"name": "get_patient", "arguments": {"patient_id": "P001"}}'},
    # TRL's tool messages: no id of the call, and what Python prints of the result.
    {"role": "tool", "name": "get_patient", "content": "{'patient_id': 'P001', 'identity_checked': True}"},
]
BLIND = PROMPT[:2]
LATER = [{"role": "assistant", "content": "Done."}]


def _columns(count: int) -> dict[str, Any]:
    return {name: [value] * count for name, value in ROW.items()}


def test_trl_passes_lists_of_prompts_completions_and_columns() -> None:
    reward = for_trl(GRADER)
    kwargs = {**_columns(4), "trainer_state": object(), "log_extra": print, "log_metric": print}
    native = {"role": "assistant", "content": THOUGHT, "tool_calls": [{"type": "function", "function": CALL}]}
    completions = [
        [{"role": "assistant", "content": GOOD}],
        [
            native,
            {"role": "tool", "name": "update_contact", "content": "{'ok': True}"},
            {"role": "assistant", "content": "Done."},
        ],
        [{"role": "assistant", "content": BAD}],
        [],
    ]
    found = reward(prompts=[PROMPT] * 4, completions=completions, completion_ids=[[1]] * 4, **kwargs)
    assert found[:3] == [5, 5, 2]
    assert found[3] == 0  # no format, no recall, and a text where a call was due
    assert reward(prompts=["p"], completions=[GOOD], completion_ids=[[1]], **_columns(1)) == [4]
    assert reward.__name__ == "bylaw_reward"


def test_the_python_that_trl_prints_is_seen_by_the_guards() -> None:
    reward = for_trl(GRADER)
    said = [[{"role": "assistant", "content": GOOD}]]
    assert reward(prompts=[PROMPT], completions=said, completion_ids=[[1]], **_columns(1)) == [5]
    # Without the look-up the same write is blind: the compliance term takes 1.
    assert reward(prompts=[BLIND], completions=said, completion_ids=[[1]], **_columns(1)) == [4]


def test_results_without_ids_go_to_the_calls_they_answer() -> None:
    two = {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"function": {"name": "get_slot", "arguments": '{"slot_id": "S1"}'}},
            {"function": {"name": "get_patient", "arguments": {"patient_id": "P1"}}},
        ],
    }
    results = [{"role": "tool", "name": "get_patient", "content": "{}"}, {"role": "tool", "content": "{}"}]
    events = events_of([two, *results])
    assert [event.tool for event in events if isinstance(event, Call)] == ["get_slot", "get_patient"]
    assert [event.call for event in events if isinstance(event, Result)] == [1, 0]


def test_verl_passes_one_output_and_no_messages() -> None:
    score = for_verl(GRADER)
    extra = {"num_turns": None, "rollout_reward_scores": {}}
    truth = json.dumps({**ROW, "prompt": PROMPT})
    found = score(data_source="clinic", solution_str=GOOD, ground_truth=truth, extra_info=extra)
    assert found["score"] == found["total"] == 5
    assert {"format", "turn", "policy_recall", "hallucination", "length", "compliance"} <= found.keys()
    assert all(isinstance(value, float) for value in found.values())
    blind = score(
        data_source="clinic",
        solution_str=GOOD,
        ground_truth=ROW,
        extra_info={**extra, "prompt": BLIND},
        reward_router_address="x",
    )
    assert blind["score"] == 4


def test_ms_swift_passes_texts_and_columns_with_the_messages_up_to_the_completion() -> None:
    reward = ForSwift(GRADER)
    messages = [[*PROMPT, {"role": "assistant", "content": text}] for text in (GOOD, BAD)]
    kwargs = {**_columns(2), "messages": messages, "trainer_state": object()}
    assert reward([GOOD, BAD], **kwargs) == [5, 2]
    assert reward([GOOD], **_columns(1)) == [4]


def test_a_call_beside_the_content_is_put_after_the_thought() -> None:
    call = {"type": "function", "function": {"name": "t", "arguments": '{"a": 1}'}}
    assert output_of([{"content": THOUGHT, "tool_calls": [call]}]) == THOUGHT + '\n{"name":"t","arguments":{"a":1}}'
    assert output_of("text") == "text"


def test_verifiers_scores_a_trace() -> None:
    vf = pytest.importorskip("verifiers.v1")
    reward = for_verifiers(GRADER)

    class Data(vf.TaskData):
        gold: dict[str, Any]

    class Turn(vf.Task[Data, vf.TaskConfig] if hasattr(vf, "TaskConfig") else vf.Task[Data]):
        @vf.reward
        async def bylaw(self, task: Data, trace: Any) -> float:
            return await reward(task, trace)

    kinds = {
        "system": vf.SystemMessage,
        "user": vf.UserMessage,
        "assistant": vf.AssistantMessage,
        "tool": vf.ToolMessage,
    }
    nodes = []
    for place, message in enumerate([*PROMPT, {"role": "assistant", "content": GOOD}]):
        more = {"tool_call_id": "c1"} if message["role"] == "tool" else {}
        said = kinds[message["role"]](content=message["content"], **more)
        nodes.append(vf.MessageNode(parent=place - 1 if place else None, message=said, sampled=place == len(PROMPT)))
    data = Data(gold=ROW)
    trace = vf.Trace.model_construct(
        task=vf.TraceTask(type="Turn", data=data), nodes=nodes, calls=[], rewards={}, metrics={}, root_reply=None
    )
    task = Turn(data)
    asyncio.run(task.score(trace))
    assert trace.rewards["bylaw"].value == 5

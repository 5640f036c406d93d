"""Practice on whole conversations: what is learned of them, and that it is GRPO's gradient."""

from itertools import islice

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from align_conversations import Batch, Episodes, Practice, drawn, loss_of, marked, talk  # noqa: E402
from align_marks import Mark, Marks  # noqa: E402
from align_practice import written  # noqa: E402

from bylaw.align.desk import load_tasks  # noqa: E402
from bylaw.align.episode import Episode  # noqa: E402
from bylaw.align.training.dialect import Dialect  # noqa: E402
from bylaw_lab.clinic.practice import comply, refuse  # noqa: E402
from bylaw_lab.clinic.tasks import Scenario  # noqa: E402
from bylaw_lab.clinic.tasks.careful import Careful  # noqa: E402
from bylaw_lab.training.checkpoint import open_checkpoint  # noqa: E402
from bylaw_lab.training.shared_prefix import share_prefix  # noqa: E402
from tests.align.tiny import tiny_model  # noqa: E402

pytestmark = [pytest.mark.train, pytest.mark.timeout(300)]
TASKS = [task for task in load_tasks("development")[:12] if isinstance(task, Scenario)]


def careful(episode):
    act = Careful.taking_over(episode.scene, episode.events).act()
    return written(episode.task, episode, act, 0)


def messages_of(task, script):
    episode = Episode(task, policy="none")
    while not episode.done:
        episode.step(script(episode))
    episode.outcome()
    return episode.messages


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    texts = [message["content"] for task in TASKS[:4] for message in messages_of(task, careful)]
    return tiny_model(tmp_path_factory.mktemp("base"), texts, words=600, width=32)


def test_twins_are_drawn_together_and_those_that_failed_first():
    failed = {TASKS[0].id: 1.0, TASKS[5].id: 0.5}
    settings = Episodes(pairs=2, failed=1.0)
    for some in islice(drawn(TASKS, failed, settings, 1), 3):
        assert {task.id for task in some} == {TASKS[0].id, TASKS[0].twin, TASKS[5].id, TASKS[5].twin}
    mixed = Episodes(pairs=4, failed=0.5)
    for some in islice(drawn(TASKS, failed, mixed, 1), 4):
        assert len(some) == 8
        assert {TASKS[0].id, TASKS[5].id} <= {task.id for task in some}


def test_only_what_the_model_said_is_learned_each_turn_with_its_own_weight(base):
    dialect = Dialect(transformers.AutoTokenizer.from_pretrained(base))
    messages = messages_of(TASKS[0], careful)
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    found = talk(dialect, messages, [float(place + 1) for place in range(len(said))])
    weights = [round(weight * sum(found.is_own), 6) for weight in found.weights]
    for place, text in enumerate(said, start=1):
        own = [token for token, weight in zip(found.ids, weights, strict=True) if weight == place]
        assert dialect.text(own) == text
    assert all(mine == (weight != 0) for mine, weight in zip(found.is_own, found.weights, strict=True))
    assert found.is_own[-1]


def test_the_gradient_is_that_of_grpo_written_out_by_hand(base):
    dialect = Dialect(transformers.AutoTokenizer.from_pretrained(base))
    talks = [
        talk(dialect, messages, [0.5, -1.0, 2.0] * 20)
        for messages in (messages_of(TASKS[0], careful), messages_of(TASKS[0], comply), messages_of(TASKS[1], refuse))
    ]
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    plain = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    share_prefix(model)
    batch = Batch(talks, "cpu")
    old = batch.chances(model).detach() + 0.15
    loss_of(batch.chances(model), old, batch.weights, 0.1).backward()
    start, wanted = 0, 0.0
    for each in talks:
        logs = plain(torch.tensor([each.ids])).logits[0].log_softmax(-1)
        for place in range(1, len(each.ids)):
            if not each.is_own[place]:
                continue
            ratio = (logs[place - 1, each.ids[place]] - old[start]).exp()
            gain = each.weights[place]
            wanted = wanted - torch.minimum(ratio * gain, ratio.clamp(0.9, 1.1) * gain)
            start += 1
    wanted.backward()
    assert start == len(old)
    ours, theirs = (torch.cat([weight.grad.flatten() for weight in one.parameters()]) for one in (model, plain))
    assert (ours - theirs).norm() < 1e-3 * theirs.norm()
    assert theirs.norm() > 0


def test_practice_plays_marks_and_learns(base, monkeypatch):
    # A model with random weights gets everything wrong alike; so that it has something to learn, long turns are better.
    monkeypatch.setattr(
        "align_conversations.mark",
        lambda task, outputs: Marks(task.id, False, tuple(Mark(len(each) / 10, True) for each in outputs)),
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    share_prefix(model)
    before = [weight.detach().clone() for weight in model.parameters()]
    player = open_checkpoint(base, slots=16, room=1500)
    player.longest = 24
    lines = []
    settings = Episodes(learning_rate=1e-3, rollouts=2, pairs=1, samples=2, steps=2, at_once=2)
    practice = Practice(model, player, settings, log=lines.append)
    assert practice.run(TASKS, {}) == 2
    assert [line["rollout"] for line in lines] == [1, 2]
    assert lines[0]["conversations"] == 4
    assert practice.steps == lines[-1]["step"] > 0
    assert any(not torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))
    # The second rollout was played with what the first had taught.
    theirs = dict(player.generator.decoder.model.named_parameters())
    assert any(not torch.equal(old, theirs[name]) for old, name in zip(before, theirs, strict=True))


def test_a_rollout_in_which_everything_was_right_moves_nothing(base):
    """What the careful agent says is clean, so its groups are left out."""
    found = marked(TASKS[:2], [[messages_of(task, careful)] * 2 for task in TASKS[:2]])
    assert all(each.is_clean and each.whole == 3 for group in found for each in group)

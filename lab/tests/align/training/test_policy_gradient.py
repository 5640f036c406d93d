"""Stage 3 beside its definition, written out by hand: chances of drawn tokens, rewards, gradients, what is learned."""

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
transformers = pytest.importorskip("transformers")

from bylaw.align.training.dialect import Dialect  # noqa: E402
from bylaw_lab.training import reinforced  # noqa: E402
from bylaw_lab.training.run import Run, train  # noqa: E402
from tests.align.tiny import tiny_model  # noqa: E402

pytestmark = [pytest.mark.train, pytest.mark.timeout(300)]

OPENING = "You are at the desk, and these are the tools: look, ask, tell, write. "
ROWS = [
    {"prompt": [{"role": "user", "content": OPENING + f"{word} " * times}], "want": want}
    for word, want in {"one": "e", "two": "a", "three": "t", "four": "o"}.items()
    for times in (2, 5, 40, 41)
]
BETA, LOW, HIGH = 0.1, 0.8, 1.2


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    return tiny_model(folder, [OPENING, "one two three four eat at toto"] * 4, words=300, width=32)


def score(outputs, rows):
    """The share of the letter that the prompt wants."""
    return [{"total": text.count(row["want"]) / max(1, len(text))} for text, row in zip(outputs, rows, strict=True)]


def watched(base, tmp_path, monkeypatch, steps, changes):
    """A run whose rollouts, gradients and weights at every step are kept."""
    rollouts, gradients, weights = [], [], []
    plain = reinforced.Rollout.__call__

    def rollout(self, prompts, trainer):
        found = plain(self, prompts, trainer)
        rollouts.append({**found, "prompts": list(prompts)})
        return found

    class Watched(torch.optim.SGD):
        def step(self, closure=None):
            parameters = self.param_groups[0]["params"]
            gradients.append([weight.grad.clone() for weight in parameters])
            weights.append([weight.detach().clone() for weight in parameters])
            return super().step(closure)

    monkeypatch.setattr(reinforced.Rollout, "__call__", rollout)
    monkeypatch.setattr("bylaw_lab.training.run.RoundedAdamW", lambda parameters, lr: Watched(parameters, lr=lr))
    settings = {"learning_rate": 3.0, "least_learning_rate": 3.0, "warmup": 0.0, "gradient_norm": 1e9, "epochs": 50}
    run = Run(
        stage=3,
        model=base,
        out=tmp_path / "out",
        preset="tiny",
        steps=steps,
        changes={**settings, "batch": 32, "at_once": 16, "longest_answer": 12, **changes},
        save_every=None,
        tensorboard=False,
    )
    train(run, ROWS, score)
    lines = [json.loads(line) for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()]
    return rollouts, gradients, weights, lines


def model_with(base, weights):
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    if weights is not None:
        with torch.no_grad():
            for weight, value in zip(model.parameters(), weights, strict=True):
                weight.copy_(value)
    return model


def chances(model, prompt, answer):
    """The log-probability of each token of an answer: one row, no padding, no packing."""
    logits = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1)[torch.arange(len(answer)), torch.tensor(answer)]


def advantages(base, rollout):
    """By hand: reward less the mean of the prompt's four, over the spread of all."""
    dialect = Dialect(transformers.AutoTokenizer.from_pretrained(base))
    row_of = {reinforced.written(row): row for row in ROWS}
    texts = dialect.tokenizer.batch_decode(rollout["completion_ids"], skip_special_tokens=True)
    totals = [one["total"] for one in score(texts, [row_of[prompt] for prompt in rollout["prompts"]])]
    rewards = torch.tensor(totals).view(-1, 4)
    return ((rewards - rewards.mean(1, keepdim=True)) / (rewards.std() + 1e-4)).flatten()


def by_hand(model, old, reference, rollout, weights, places):
    """The gradient of GRPO's loss on some answers: clipped ratios times advantages, less beta times k3."""
    loss = 0.0
    for place in places:
        prompt, answer = rollout["prompt_ids"][place], rollout["completion_ids"][place]
        now = chances(model, prompt, answer)
        with torch.no_grad():
            then, far = chances(old, prompt, answer), chances(reference, prompt, answer)
        ratio = (now - then).exp()
        gain = torch.minimum(ratio * weights[place], ratio.clamp(LOW, HIGH) * weights[place])
        # The answers are of the model as it was and the drift is that of the model as it is: hence the ratio.
        drift = ratio * ((far - now).exp() - (far - now) - 1)
        loss = loss - (gain - BETA * drift).mean() / len(places)
    model.zero_grad()
    loss.backward()
    return [weight.grad for weight in model.parameters()]


def assert_alike(found, wanted):
    a, b = (torch.cat([part.flatten() for part in parts]) for parts in (found, wanted))
    assert (a - b).norm() < 1e-3 * b.norm()


def test_the_first_gradient_is_that_of_reinforce(base, tmp_path, monkeypatch):
    rollouts, gradients, weights, _ = watched(base, tmp_path, monkeypatch, 1, {"scale": "batch"})
    [rollout] = rollouts
    model = model_with(base, weights[0])
    gained = advantages(base, rollout)
    # On the first step nothing has moved: ratios are 1 and the drift has no slope, so this is plain REINFORCE.
    terms = [
        gained[place] * chances(model, prompt, answer).mean()
        for place, (prompt, answer) in enumerate(zip(rollout["prompt_ids"], rollout["completion_ids"], strict=True))
    ]
    (-sum(terms) / len(terms)).backward()
    assert_alike(gradients[0], [weight.grad for weight in model.parameters()])


def test_chances_at_drawing_are_those_that_are_learned_from(base, tmp_path, monkeypatch):
    rollouts, _, _, lines = watched(base, tmp_path, monkeypatch, 2, {"rollout": 64})
    [rollout] = rollouts
    model = model_with(base, None)
    with torch.no_grad():
        parts = (rollout[name] for name in ("prompt_ids", "completion_ids", "logprobs"))
        for prompt, answer, logs in zip(*parts, strict=True):
            assert len(logs) == len(answer) > 0
            assert torch.allclose(torch.tensor(logs), chances(model, prompt, answer), atol=1e-4)
    assert lines[0]["sampling_gap"] < 1e-5


def test_later_steps_on_one_rollout_clip_what_has_moved(base, tmp_path, monkeypatch):
    changes = {"rollout": 64, "scale": "batch", "learn_from": "differing"}
    dealt = []
    plain = reinforced.dealt
    monkeypatch.setattr(reinforced, "dealt", lambda *given: dealt.append(plain(*given)) or dealt[-1])
    rollouts, gradients, weights, _ = watched(base, tmp_path, monkeypatch, 3, changes)
    assert [len(rollout["prompts"]) for rollout in rollouts] == [64, 64]
    reference = model_with(base, None)
    gained = advantages(base, rollouts[0])
    halves = dealt[0].view(2, -1).tolist()
    telling = {place for place in range(64) if gained.view(-1, 4)[place // 4].abs().max() > 1e-4}
    assert telling <= {place for half in halves for place in half}
    moved = 0.0
    for step, half in enumerate(halves):
        model, old = model_with(base, weights[step]), model_with(base, weights[0])
        assert_alike(gradients[step], by_hand(model, old, reference, rollouts[0], gained, half))
        pair = rollouts[0]["prompt_ids"][half[0]], rollouts[0]["completion_ids"][half[0]]
        moved = float((chances(model, *pair) - chances(old, *pair)).abs().max().detach())
    assert moved > 0.01
    # The third step learns from answers that the model wrote after the second.
    model = model_with(base, weights[2])
    third = dealt[1].view(2, -1)[0].tolist()
    wanted = by_hand(model, model_with(base, weights[2]), reference, rollouts[1], advantages(base, rollouts[1]), third)
    assert_alike(gradients[2], wanted)


def test_the_reward_of_what_is_learned_rises_steadily(base, tmp_path):
    steady = {"learning_rate": 6e-3, "least_learning_rate": 6e-3, "warmup": 0.1, "scale": "batch", "epochs": 100}
    run = Run(
        stage=3,
        model=base,
        out=tmp_path / "out",
        preset="tiny",
        steps=24,
        changes={**steady, "batch": 64, "at_once": 64, "rollout": 256, "longest_answer": 12, "learn_from": "differing"},
        save_every=None,
        tensorboard=False,
    )
    # Short prompts say as much; what long ones share is in the tests above.
    short = [row for row in ROWS if len(row["prompt"][0]["content"]) < len(OPENING) + 40]
    train(run, short * 8, score)
    lines = [json.loads(line) for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()]
    rewards = [line["reward"] for line in lines if "reward" in line]
    assert len(rewards) == 6
    thirds = [sum(rewards[start : start + 2]) / 2 for start in (0, 2, 4)]
    assert thirds[0] * 1.1 < thirds[1]
    assert thirds[1] * 1.1 < thirds[2]
    assert thirds[2] > 1.25 * thirds[0]


def test_a_prompt_without_room_does_not_end_the_run(base, tmp_path, monkeypatch):
    # As where a generator that plays tasks is lent to stage 3, with less room than the longest turn needs.
    monkeypatch.setattr(reinforced.Rollout, "room", lambda self: 60)
    rollouts, *_ = watched(base, tmp_path, monkeypatch, 1, {})
    end = Dialect(transformers.AutoTokenizer.from_pretrained(base)).end
    answers = rollouts[0]["completion_ids"]
    assert [end] in answers
    assert any(len(answer) > 1 for answer in answers)

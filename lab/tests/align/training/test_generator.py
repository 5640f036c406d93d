"""The generator writes what the model itself writes when it is asked token by token."""

import random

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from bylaw_lab.training import floor  # noqa: E402
from bylaw_lab.training import generator as training  # noqa: E402
from bylaw_lab.training.generator import Generator  # noqa: E402

pytestmark = pytest.mark.train


def model_of(kind, seed=0):
    torch.manual_seed(seed)
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=60,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        tie_word_embeddings=True,
        initializer_range=0.2,
    )
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


def slowly(model, prompt, longest, said=None):
    """The obvious way: the whole conversation again for every token.

    With what was `said`, one look at all of it tells how far each token is the likeliest after those before it.
    """
    ids = list(prompt)
    with torch.no_grad():
        if said:
            likeliest = model(torch.tensor([ids + said])).logits[0, len(ids) - 1 : -1].argmax(-1).tolist()
            alike = next(
                (place for place, pair in enumerate(zip(said, likeliest, strict=True)) if pair[0] != pair[1]), None
            )
            alike = said.index(1) + 1 if alike is None and 1 in said else alike
            ids += said[:alike][:longest]
        while len(ids) < len(prompt) + longest and (len(ids) == len(prompt) or ids[-1] != 1):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt) :]


def answers_of(model, prompts, longest, got):
    """What the model itself says after each prompt."""
    return [slowly(model, prompt, longest, said) for prompt, said in zip(prompts, got, strict=True)]


@pytest.mark.parametrize("kind", ["Qwen2", "Llama", "Qwen3"])
def test_conversations_that_grow_and_end_get_the_answers_the_model_gives(kind):
    rng = random.Random(0)
    model = model_of(kind)
    generator = Generator(model, ends=[1], slots=80, room=900)
    opening = [rng.randrange(2, 60) for _ in range(40)]
    talks = [opening + [rng.randrange(2, 60) for _ in range(rng.randrange(1, 30))] for _ in range(70)]
    for turn in range(3):
        live = [place for place in range(70) if turn == 0 or place % 17 == 3]
        got = generator.generate([talks[place] for place in live], longest=5, names=live)
        assert got == answers_of(model, [talks[place] for place in live], 5, got)
        for place, answer in zip(live, got, strict=True):
            talks[place] = talks[place] + answer + [rng.randrange(2, 60) for _ in range(rng.randrange(1, 300))]


@pytest.mark.parametrize("kind", ["Qwen2", "Qwen3"])
def test_conversations_at_their_own_pace_get_the_answers_the_model_gives(kind, monkeypatch):
    # Answers take more steps than are taken between two looks, and slots are given up early.
    monkeypatch.setattr(floor, "BLOCK", 4)
    monkeypatch.setattr(training, "LEAST", 3)
    rng = random.Random(1)
    model = model_of(kind)
    generator = Generator(model, ends=[1], slots=16, room=300)
    opening = [rng.randrange(2, 60) for _ in range(20)]
    talks = [opening + [rng.randrange(2, 60) for _ in range(rng.randrange(1, 20))] for _ in range(16)]
    firsts = list(talks)
    turns = [rng.choice((1, 1, 2, 3)) for _ in talks]
    turns[7] = 2
    expected = sum(turns)
    heard, sizes = [], []

    def reply(place, answer):
        heard.append((talks[place], answer))
        turns[place] -= 1
        if not turns[place]:
            return None
        # One conversation outgrows its room: it gets an empty answer.
        more = 400 if place == 7 else rng.randrange(1, 60)
        talks[place] = talks[place] + answer + [rng.randrange(2, 60) for _ in range(more)]
        return talks[place]

    generator.converse(firsts, reply, longest=11, watch=sizes.append)
    assert len(heard) == expected
    assert sizes[-1] == 0
    for prompt, answer in heard:
        assert answer == ([] if len(prompt) > 300 else slowly(model, prompt, 11, answer))


@pytest.mark.parametrize("opening", [12, 0])
@pytest.mark.parametrize("kind", ["Qwen2", "Qwen3"])
def test_reading_only_the_keys_that_a_slot_holds_changes_nothing(kind, opening, monkeypatch):
    # What a GPU does with flash kernels, in plain products.
    monkeypatch.setattr(floor, "BLOCK", 3)
    monkeypatch.setattr(training, "LEAST", 2)
    rng = random.Random(4)
    model = model_of(kind)
    generator = Generator(model, ends=[1], slots=5, room=200)
    generator.decoder.is_packed = True
    prompts = [[4] * opening + [rng.randrange(2, 60) for _ in range(rng.randrange(1, 90))] for _ in range(12)]
    got = generator.generate(prompts, longest=8)
    assert got == answers_of(model, prompts, 8, got)


def test_conversations_wait_for_a_slot_and_get_the_answers_the_model_gives(monkeypatch):
    monkeypatch.setattr(floor, "BLOCK", 3)
    monkeypatch.setattr(training, "LEAST", 2)
    rng = random.Random(3)
    model = model_of("Qwen2")
    generator = Generator(model, ends=[1], slots=5, room=200)
    prompts = [[4] * 12 + [rng.randrange(2, 60) for _ in range(rng.randrange(1, 90))] for _ in range(23)]
    wanted = [slowly(model, prompt, 8) for prompt in prompts]
    assert generator.generate(prompts, longest=8) == wanted
    heard = []
    generator.converse(prompts, lambda place, answer: heard.append((place, answer)), longest=8)
    assert sorted(heard) == list(enumerate(wanted))


def test_the_quick_way_to_what_a_model_says_finds_every_fault():
    model = model_of("Qwen2")
    rng = random.Random(5)
    for _ in range(6):
        prompt = [rng.randrange(2, 60) for _ in range(9)]
        right = slowly(model, prompt, 6)
        other = [*right[:-1], (right[-1] + 1) % 60]
        for said in (right, right[:-1], [*right, 7], other, [9], []):
            assert slowly(model, prompt, 6, said) == right


def test_like_prompts_are_read_once():
    model = model_of("Qwen2")
    generator = Generator(model, ends=[1], slots=9, room=100)
    prompts = [[5] * 10 + [7, 8, 9], [5] * 10 + [11, 12, 13, 14], [5] * 10 + [3]]
    read = []
    plain = generator._read
    generator._read = lambda own, **others: (read.append(len(own)), plain(own, **others))
    assert generator.generate(prompts * 3, longest=6) == [slowly(model, prompt, 6) for prompt in prompts] * 3
    assert read == [3]


def test_a_prompt_that_was_rewritten_is_read_anew():
    model = model_of("Qwen2")
    generator = Generator(model, ends=[1], slots=4, room=200)
    first = [[5] * 10 + [7, 8, 9], [5] * 10 + [11, 12]]
    generator.generate(first, longest=5, names=["a", "b"])
    changed = [[5] * 10 + [7, 30, 9, 4], [5] * 10 + [11, 12, 13]]
    got = generator.generate(changed, longest=5, names=["a", "b"])
    assert got == [slowly(model, prompt, 5) for prompt in changed]


def test_new_weights_write_other_answers():
    old, new = model_of("Qwen2"), model_of("Qwen2", seed=1)
    prompts = [[5] * 10 + [7, 8, 9], [5] * 10 + [11, 12]]
    generator = Generator(old, ends=[1], slots=4, room=100)
    assert generator.generate(prompts, longest=5) == [slowly(old, prompt, 5) for prompt in prompts]
    generator.load(dict(new.named_parameters()))
    assert generator.generate(prompts, longest=5) == [slowly(new, prompt, 5) for prompt in prompts]


def test_chances_are_those_of_the_model():
    rng = random.Random(2)
    model = model_of("Llama")
    prompts = [[3] * 20 + [rng.randrange(2, 60) for _ in range(rng.randrange(1, 50))] for _ in range(7)]
    got = Generator(model, ends=[1], slots=3, room=100).chances(prompts, [4, 9])
    with torch.no_grad():
        want = torch.stack([model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)[[4, 9]] for ids in prompts])
    assert torch.allclose(got, want, atol=1e-4)


def test_sampling_follows_the_chances_and_its_seed():
    model = model_of("Qwen2")
    generator = Generator(model, ends=[1], slots=2500, room=20)
    prompts = [[5, 6, 7]] * 2500
    first = generator.generate(prompts, longest=1, temperature=1.0, seed=1)
    assert first == generator.generate(prompts, longest=1, temperature=1.0, seed=1)
    with torch.no_grad():
        chances = model(torch.tensor([[5, 6, 7]])).logits[0, -1].softmax(-1)
    shares = torch.bincount(torch.tensor([answer[0] for answer in first]), minlength=60) / 2500
    assert (shares - chances).abs().max() < 0.03


def test_a_prompt_without_room_gets_an_empty_answer():
    generator = Generator(model_of("Qwen2"), ends=[1], slots=4, room=30)
    answers = generator.generate([[5] * 10 + [7] * 40, [5] * 10 + [11, 12]], longest=5)
    assert answers[0] == []
    assert answers[1]

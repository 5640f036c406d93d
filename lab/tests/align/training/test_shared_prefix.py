"""Computing a shared opening once changes neither the loss nor a gradient."""

import copy

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")

from trl.trainer.utils import add_fused_lm_head  # noqa: E402

from bylaw_lab.training.shared_prefix import PackedBatch, share_prefix  # noqa: E402

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def pair():
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=300,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    )
    plain = transformers.Qwen2ForCausalLM(config).train()
    sharing = copy.deepcopy(plain)
    for model in (plain, sharing):
        add_fused_lm_head(model)
    share_prefix(sharing)
    return plain, sharing


def padded(rows, side):
    """Rows of (unlearned, learned) tokens as ids, mask and labels."""
    width = max(len(head) + len(tail) for head, tail in rows)
    ids = torch.zeros((len(rows), width), dtype=torch.long)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, -100)
    for place, (head, tail) in enumerate(rows):
        size = len(head) + len(tail)
        start = 0 if side == "right" else width - size
        ids[place, start : start + size] = torch.cat([head, tail])
        mask[place, start : start + size] = 1
        labels[place, start + len(head) : start + size] = tail
    return ids, mask, labels


def words(count):
    return torch.randint(5, 300, (count,))


def agree(pair, ids, mask, labels):
    found = []
    for model in pair:
        model.zero_grad()
        out = model(input_ids=ids, attention_mask=mask, labels=labels, fused_lm_head=True)
        out.loss.backward()
        found.append((out.loss.item(), out.log_probs.detach(), [weight.grad.clone() for weight in model.parameters()]))
    (loss, chances, gradients), (other_loss, other_chances, other_gradients) = found
    assert loss == pytest.approx(other_loss, abs=1e-6)
    assert torch.allclose(chances, other_chances, atol=1e-5)
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(gradients, other_gradients, strict=True))


@pytest.mark.parametrize("side", ["left", "right"])
def test_conversations_with_one_opening(pair, side):
    torch.manual_seed(1)
    opening = words(100)
    rows = [(torch.cat([opening, words(size)]), words(size)) for size in (20, 50, 3, 37)]
    batch = padded(rows, side)
    assert PackedBatch(batch[0], batch[1].bool(), "cpu").opening >= 100
    agree(pair, *batch)


@pytest.mark.parametrize("sizes", [(90, 70, 120), (40, 200, 80)])
def test_answers_to_one_prompt_side_by_side(pair, sizes):
    torch.manual_seed(2)
    opening = words(100)
    prompts = [torch.cat([opening, words(size)]) for size in sizes]
    rows = [(prompt, words(int(torch.randint(1, 20, ())))) for prompt in prompts for _ in range(4)]
    batch = padded(rows, "left")
    pack = PackedBatch(batch[0], batch[1].bool(), "cpu")
    assert [last - first for first, last, _ in pack.groups] == [4, 4, 4]
    assert all(size >= len(prompt) for (_, _, size), prompt in zip(pack.groups, prompts, strict=True))
    assert pack.ids.shape[1] < 100 + sum(sizes) + 4 * 3 * 20
    agree(pair, *batch)


def test_a_row_that_is_the_beginning_of_another(pair):
    torch.manual_seed(3)
    long = words(150)
    agree(pair, *padded([(long[:70], long[70:100]), (long[:70], long[70:150]), (long[:70], words(9))], "right"))


def test_rows_with_nothing_in_common(pair):
    torch.manual_seed(4)
    agree(pair, *padded([(words(80), words(9)), (words(70), words(20))], "right"))

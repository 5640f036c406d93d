"""Which answers stage 3 learns from, and how much each side weighs."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from bylaw_lab.training.optimizer import RoundedAdamW  # noqa: E402
from bylaw_lab.training.reinforced import MOST, balanced, telling  # noqa: E402

pytestmark = pytest.mark.train

FLAT = [0.0, 0.0, 0.0, 0.0]


def test_prompts_whose_answers_differ_are_learned_from():
    advantages = torch.tensor([*FLAT, 1, -1, 0, 0, *FLAT, 3, -1, -1, -1])
    assert telling(advantages, 4, 4).tolist() == [12, 13, 14, 15, 4, 5, 6, 7]


def test_answers_can_be_dealt_to_equal_parts():
    advantages = torch.tensor([*FLAT, 1, -1, 0, 0, *FLAT, *FLAT])
    assert telling(advantages, 4, 8).tolist() == [4, 5, 6, 7, 0, 1, 2, 3]
    assert len(telling(torch.zeros(16), 4, 8)) == 8


def test_refusing_and_going_on_push_as_much():
    advantages = torch.tensor([1.0, -1, 3, -3, 1, -1])
    is_refusal = torch.tensor([True, True, False, False, False, False])
    found = balanced(advantages, is_refusal)
    assert found.abs()[is_refusal].sum() == pytest.approx(found.abs()[~is_refusal].sum())
    assert found.abs().sum() == pytest.approx(advantages.abs().sum())
    assert torch.equal(found.sign(), advantages.sign())


def test_a_side_that_hardly_speaks_is_not_made_loud():
    advantages = torch.tensor([0.01, -0.01, 3, -3])
    is_refusal = torch.tensor([True, True, False, False])
    assert balanced(advantages, is_refusal)[0] == pytest.approx(0.01 * MOST)
    assert torch.equal(balanced(advantages, torch.zeros(4, dtype=torch.bool)), advantages)


def test_weights_in_bfloat16_learn_from_small_steps():
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.ones(64, dtype=torch.bfloat16))
    exact = torch.nn.Parameter(torch.ones(64))
    rounded, plain = RoundedAdamW([weight], lr=1e-4), torch.optim.AdamW([exact], lr=1e-4, weight_decay=0.0)
    for step in range(60):
        gradient = torch.randn(64, generator=torch.Generator().manual_seed(step)) + 1
        weight.grad, exact.grad = gradient.to(torch.bfloat16), gradient.to(torch.bfloat16).float()
        rounded.step()
        plain.step()
    assert torch.allclose(rounded.state[weight]["exact"], exact.detach(), atol=1e-6)
    assert torch.equal(weight.detach(), exact.detach().to(torch.bfloat16))
    again = RoundedAdamW([weight], lr=1e-4)
    again.load_state_dict(rounded.state_dict())
    assert torch.equal(again.state[weight]["exact"], rounded.state[weight]["exact"])
    weight.grad = torch.full_like(weight, float("nan"))
    before = weight.detach().clone()
    again.step()
    assert torch.equal(weight.detach(), before)
    assert again.skipped == 1

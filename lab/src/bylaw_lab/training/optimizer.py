"""AdamW for weights in bfloat16: what is learned is added up in float32 and rounded once a step.

A step of stage 3 changes a weight by far less than bfloat16 can tell apart, so weights kept only in bfloat16 would not
learn. A step with a gradient that is not finite is not taken.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Iterable
from typing import Any

import torch


class RoundedAdamW(torch.optim.Optimizer):
    """AdamW without weight decay, whose state holds each weight in float32."""

    def __init__(
        self, parameters: Iterable[Any], lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps})
        self.skipped = 0
        """Steps that were not taken since a gradient was not finite."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if not weights:
                continue
            norms = torch._foreach_norm([weight.grad for weight in weights])
            if not bool(torch.isfinite(torch.stack(norms)).all()):
                self.skipped += 1
                continue
            for weight in weights:
                if not self.state[weight]:
                    exact = weight.detach().to(torch.float32, copy=True)
                    self.state[weight].update(
                        step=0, exact=exact, mean=torch.zeros_like(exact), square=torch.zeros_like(exact)
                    )
            states = [self.state[weight] for weight in weights]
            for state in states:
                state["step"] += 1
            first, second = group["betas"]
            gradients = [weight.grad.float() for weight in weights]
            exact = [state["exact"] for state in states]
            means, squares = [state["mean"] for state in states], [state["square"] for state in states]
            torch._foreach_lerp_(means, gradients, 1 - first)
            torch._foreach_mul_(squares, second)
            torch._foreach_addcmul_(squares, gradients, gradients, 1 - second)
            steps = states[0]["step"]
            below = torch._foreach_div(squares, 1 - second**steps)
            torch._foreach_sqrt_(below)
            torch._foreach_add_(below, group["eps"])
            torch._foreach_addcdiv_(exact, means, below, -group["lr"] / (1 - first**steps))
            torch._foreach_copy_(weights, exact)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a saved state; unlike its base, this leaves what is held in float32 in float32."""
        super().load_state_dict(state_dict)
        weights = [weight for group in self.param_groups for weight in group["params"]]
        for index, saved in state_dict["state"].items():
            weight = weights[index]
            for name in ("exact", "mean", "square"):
                self.state[weight][name] = saved[name].to(device=weight.device, dtype=torch.float32, copy=True)

"""How a conversation becomes text: ChatML, with the results of tools as Hermes shows them.

Training and evaluation use the same template, and so do servers that load a checkpoint. The system message lists the
tools, and a call is text like any other. `chatml.jinja` marks the agent's turns, so that TRL learns only from them.
"""
# pyright: basic, reportMissingImports=false

from pathlib import Path
from typing import Any

OPEN, CLOSE = "<|im_start|>", "<|im_end|>"
_TEMPLATE = Path(__file__).parent / "chatml.jinja"


def with_dialect(tokenizer: Any) -> Any:
    """The tokenizer, with this template and its end of a turn."""
    tokenizer.chat_template = _TEMPLATE.read_text(encoding="utf-8").strip()
    tokenizer.eos_token = CLOSE
    tokenizer.pad_token = tokenizer.pad_token or CLOSE
    return tokenizer

"""A shop under a pack, for the tests of every integration: two tools that note each run, and what a model would say."""

from pathlib import Path
from typing import Any

from tests.engine.test_conversation import FILES

ORDERS = {"7": {"order_id": "7", "returned": True}, "8": {"order_id": "8", "returned": False}}


def write_pack(folder: Path) -> Path:
    """The pack in a folder."""
    for name, text in FILES.items():
        path = folder / "pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "pack"


class Shop:
    """The real tools; `ran` is what they did."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def get_order(self, order_id: str) -> dict[str, Any]:
        """Show an order."""
        self.ran.append(f"get_order {order_id}")
        return ORDERS[order_id]

    def refund(self, order_id: str) -> str:
        """Pay an order back."""
        self.ran.append(f"refund {order_id}")
        return f"refunded {order_id}"

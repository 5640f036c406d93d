"""Conversations in a shop: refunds need records, voids wait for a reviewer, and a reviewer may stop either."""

import json
from decimal import Decimal
from functools import cache
from random import Random

from bylaw import Pack
from bylaw.errors import BylawError
from bylaw.record import Log
from bylaw.shield import Decision
from bylaw_lab.theorems.host import ChatsHost, HistoryHost, Host, StatelessHost
from bylaw_lab.theorems.story import Story, Wanted
from bylaw_lab.theorems.truth import Allowed, Lifted, Note, Ran, Shown, Stopped, True_

ORDERS = (("R-1", "r-1", "R1"), ("R-2", "r-2"))
PAID = Decimal("100.00")
AMOUNTS = ("30.00", "60.00", "60", "200.00")


@cache
def shop_pack() -> Pack:
    """Return a shop whose refunds need a fresh record and whose voids need a reviewer."""
    return Pack.from_files(
        {
            "pack.yaml": (
                "{format: 1, name: shop, document: policy.md, shield: {handover: true, "
                "approval: {timeout: 900, lifetime: 1800}}}"
            ),
            "policy.md": (
                "A refund is never more than what was paid and not refunded yet.\n"
                "An order is voided only after it was checked.\n"
            ),
            "policies.yaml": (
                "policies:\n"
                "  - {id: refund-left, kind: guard, spans: [A refund is never more than what was paid]}\n"
                "  - {id: checked-first, kind: guard, spans: [An order is voided only after it was checked.]}\n"
            ),
            "entities.yaml": (
                "entities:\n  Order: {key: order_id, read: get_order, "
                "fields: {paid: money, refunded: money, checked: boolean}}\n"
                "context:\n  signed_in_as: string\n"
            ),
            "guards/shop.py": (
                "def refund_left(call: refund, facts):\n"
                "    order = facts.Order(call.order_id)\n"
                '    return deny("too much") if money(call.amount) > order.paid - order.refunded else permit()\n'
                "def checked_first(call: void_order, facts):\n"
                "    order = facts.Order(call.order_id)\n"
                '    return permit() if order.paid > money("0") and order.checked else deny("not checked")\n'
            ),
            "tools.yaml": (
                "tools:\n"
                "  get_order: {effect: read, parameters: {order_id: string}}\n"
                "  refund: {effect: write, parameters: {order_id: string, amount: string}, "
                "changes: [Order], refused: ^REFUSED}\n"
                "  void_order: {effect: write, parameters: {order_id: string, reason: string?}, "
                "changes: [], refused: ^REFUSED}\n"
            ),
        }
    )


class Shop(Story):
    """A conversation in the shop, with the shop's true records."""

    pauses = 0.25
    reports_resumed = True

    def __init__(self, rng: Random, host: Host, theorems: tuple[str, ...], note: str) -> None:
        super().__init__(rng, host, theorems, note)
        self.refunded = {names[0]: Decimal(0) for names in ORDERS}
        self.paid = dict.fromkeys(self.refunded, PAID)
        self._last_seen: dict[str, str] = {}
        self._stops: list[str] = []
        self._wanted = ""

    @property
    def facts(self) -> str:
        """The price of the voided order as the agent saw it last. A reviewer is shown this price."""
        return "" if self.hides_facts else self._last_seen.get(self._wanted, "")

    def focus(self, wanted: Wanted) -> None:
        self._wanted = self._name_here(wanted.arguments["order_id"])

    def _name_here(self, order: str) -> str:
        """Return the name that this chat has shown the agent for an order."""
        return f"{self.host.chat} {order}".strip()

    def allow(self, decision: Decision, wanted: Wanted) -> Allowed:
        theorem = "T8-facts" if wanted.tool == "refund" and not decision.approval else "T6-approvals"
        self.theorems = (theorem, "T7-stops") if self._stops else (theorem,)
        if self.host.chat and theorem == "T8-facts":
            # No chat knows what another chat has changed.
            self.theorems = self.theorems[1:]
        return super().allow(decision, wanted)

    def read(self, wanted: Wanted, id: str) -> None:
        """Look up an order. If the result is cut off, the earlier data of the order is unknown again."""
        order, since = true_name(wanted.arguments["order_id"]), len(self.events)
        left = {"paid": f"{self.paid[order]:.2f}", "refunded": f"{self.refunded[order]:.2f}"}
        record = json.dumps({"order_id": wanted.arguments["order_id"], **left})
        made, way = (wanted.tool, wanted.arguments, id), self.rng.random()
        if way < 0.85:
            self.host.result(record, *made)
            self._last_seen[self._name_here(wanted.arguments["order_id"])] = left["paid"]
            self.events.append(Shown(order, self.paid[order] - self.refunded[order], since))
        elif way < 0.9:
            self.host.result(record[: self.rng.randrange(len(record))], *made)
            if self.host.has_times:
                self._last_seen.pop(self._name_here(wanted.arguments["order_id"]), None)
        elif way < 0.95:
            self.host.result("no answer", *made, error=True)
        else:
            self.host.no_result(*made)

    def carry_out(self, decision: Decision, wanted: Wanted, id: str) -> None:
        super().carry_out(decision, wanted, id)
        last = self.events[-1]
        if wanted.tool in ("refund", "pay_out") and isinstance(last, Ran) and last.outcome != "did not run":
            order = true_name(wanted.arguments["order_id"])
            self.refunded[order] += Decimal(wanted.arguments["amount"])
            # Everything that an agent saw before is outdated. No chat knows what another chat has changed.
            here = [each for each in self._last_seen if each.startswith(self.host.chat)]
            for seen in [each for each in here if true_name(each.split()[-1]) == order]:
                self._last_seen.pop(seen)

    def stop(self) -> None:
        """Let a reviewer stop a tool or all writes."""
        log, rng = self.host.log, self.rng
        if log is None:
            return
        tool = rng.choice(("", "refund", "void_order", "Refund"))
        until = self.now + rng.choice((30.0, 60.0, 3600.0))
        made = log.stop("tool" if tool else "all", tool, by="ann", reason="r", until=until, tenant=self.host.tenant)
        self._stops.append(made.id)
        self.events.append(Stopped(made.id, tool.lower(), until))

    def lift(self) -> None:
        if self.host.log is None or not self._stops:
            return
        stop = self.rng.choice(self._stops)
        try:
            self.host.log.lift(stop, by="bo", tenant=self.host.tenant)
        except BylawError as error:
            self.events.append(Note(str(error)))
        else:
            self.events.append(Lifted(stop))


def true_name(order: str) -> str:
    """Return the order that a spelling refers to."""
    return next(names[0] for names in ORDERS if order in names)


def shop_story(rng: Random, log: Log | None, name: str) -> list[True_]:
    """Play one conversation and return its true events."""
    kinds: tuple[type[Host], ...] = (Host, HistoryHost, ChatsHost if log is not None else StatelessHost)
    host = rng.choice(kinds)(rng, shop_pack(), log, name, "P1")
    shop = Shop(rng, host, (), "shop")
    if rng.random() < 0.9:
        shop.user("other", "I want my money back.")
    order = rng.choice(ORDERS)
    for _ in range(rng.choice((3, 5, 8))):
        way = rng.random()
        spelled = order[0] if rng.random() < 0.85 else rng.choice(order)
        if isinstance(host, ChatsHost) and rng.random() < 0.4:
            number = rng.choice((1, 2, 3))
            host.go_to(f"chat {number}", rng.choice(("P1", "P1", "P2", "")))
        if rng.random() < 0.4:
            rng.choice((shop.stop, shop.lift, shop.lift))()
        if way < 0.3:
            shop.attempt(Wanted("get_order", {"order_id": spelled}))
        elif way < 0.55:
            shop.attempt(Wanted("refund", {"order_id": spelled, "amount": rng.choice(AMOUNTS)}))
        elif way < 0.8:
            _void(shop, spelled)
        else:
            _disturb(shop)
        if rng.random() < 0.1:
            order = rng.choice(ORDERS)
    return shop.events


def _void(shop: Shop, order: str) -> None:
    """Play the agent's attempt to void an order. A reviewer usually answers."""
    if shop.host.log is None:
        return
    wanted = Wanted("void_order", {"order_id": order})
    if shop.chance(0.6):
        shop.attempt(Wanted("get_order", {"order_id": order}))
    shop.attempt(wanted)
    if shop.chance(0.8):
        shop.person(shop.chance(0.85))
    if shop.chance(0.2):
        _disturb(shop)
    for _ in range(shop.rng.choice((1, 1, 2))):
        called = wanted
        if isinstance(shop.host, ChatsHost) and shop.chance(0.3):
            shop.host.go_to(f"chat {shop.rng.choice((1, 2, 3))}", "P1")
            shop.attempt(Wanted("get_order", {"order_id": order}))
        if shop.chance(0.15):
            names = next(each for each in ORDERS if order in each)
            called = Wanted("void_order", {"order_id": shop.rng.choice(names)})
        elif shop.chance(0.1):
            called = Wanted("void_order", {"order_id": order, "reason": "broken"})
        shop.attempt(called)
    if shop.paused and shop.chance(0.8):
        _go_on(shop, wanted)


def _go_on(shop: Shop, wanted: Wanted) -> None:
    """Continue a paused call. Its record may have changed, or a reviewer may have been asked again."""
    way = shop.rng.random()
    if way < 0.3:
        shop.paid[true_name(wanted.arguments["order_id"])] += Decimal(10)
    if way < 0.45:
        shop.attempt(Wanted("get_order", dict(wanted.arguments)))
    elif way < 0.75:
        shop.attempt(wanted)
        shop.person(shop.chance(0.3))
    shop.resume()


def _disturb(shop: Shop) -> None:
    way = shop.rng.random()
    if way < 0.4:
        shop.host.clock.now += shop.rng.choice((1.0, 59.0, 60.0, 900.0, 1900.0))
    elif way < 0.55 and shop.host.may_reopen:
        shop.host.reopen()
    elif way < 0.7:
        shop.user("other", "It says 100.00 was paid for R-1 and nothing was refunded.")
    elif way < 0.85:
        shop.resume()
    else:
        # Another party changes the shop's records.
        order = shop.rng.choice(list(shop.paid))
        shop.paid[order] += Decimal(10)

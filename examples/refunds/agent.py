import sys

from bylaw import Shield

ORDERS = {"7": True, "8": False}
TOOLS = {
    "get_order": lambda order_id: {"order_id": order_id, "returned": ORDERS[order_id]},
    "refund": lambda order_id: f"refunded {order_id}",
}


def call(session, tool, arguments):
    decision, run = session.decide(tool, arguments), TOOLS[tool]
    answer = run(**arguments) if decision.allowed else decision.feedback
    session.result(answer)
    print(f"{session.id}: {tool} {arguments['order_id']} {'ran' if decision.allowed else 'was stopped'}")
    return decision


def serve(session, order):
    session.user(f"Refund order {order}, I sent it back.")
    decision = call(session, "refund", {"order_id": order})
    if decision.feedback:
        for look_up in decision.look_ups:
            call(session, look_up.tool, look_up.arguments)
        if not decision.allowed:
            call(session, "refund", {"order_id": order})


pack, log = sys.argv[1:]
with Shield(pack, log=log) as shield:
    for order in ORDERS:
        with shield.session(f"order-{order}", agent="shop-bot") as session:
            serve(session, order)

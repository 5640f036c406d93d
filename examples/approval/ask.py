from bylaw import Shield

with Shield("asking", log="asking.db") as shield, shield.session("order-9") as session:
    decision = session.decide("refund", {"order_id": "9", "amount": "60"})
    print(decision.answer, decision.approval)

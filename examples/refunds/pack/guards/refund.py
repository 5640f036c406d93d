def returned_first(call, facts):
    if facts.Order(call.order_id).returned:
        return permit()
    return deny("the order was not returned")

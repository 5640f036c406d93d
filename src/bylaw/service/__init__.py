"""The HTTP service. Every decision is durable before it is sent. Start at `app`. `request` defines requests and
responses.
"""

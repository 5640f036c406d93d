"""The HTTP service: every decision is durable before it is sent. Start at `app`; `request` defines requests and
responses.
"""

"""The HTTP service, in which every decision is durable before it is sent. Start at `app`; `request` defines the
requests and responses.
"""

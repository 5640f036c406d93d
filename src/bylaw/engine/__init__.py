"""The incremental engine that audit and shield share. It judges a call on what the agent had seen, then settles that
judgement against the truth. Start at `session`.
"""

-- Per agent, tool and policy: executed calls that the policy binds, and shares of them by its verdict.
-- Calls alike are counted first and taken apart by policy afterwards: there are few kinds of them, however many calls.
WITH alike AS (
    SELECT agent, tool, policies, count(*) AS calls
    FROM calls
    WHERE executed IS NOT FALSE
    GROUP BY agent, tool, policies
),
bound AS (
    SELECT agent, tool, calls, each.policy AS policy, each.verdict AS verdict
    FROM (SELECT agent, tool, calls, unnest(policies) AS each FROM alike)
)
SELECT
    agent,
    tool,
    policy,
    sum(calls)::BIGINT AS calls,
    sum(calls) FILTER (verdict = 'violation')::BIGINT AS violations,
    round(100 * coalesce(sum(calls) FILTER (verdict = 'violation'), 0) / sum(calls), 2) AS violation_percent,
    round(100 * coalesce(sum(calls) FILTER (verdict = 'near_miss'), 0) / sum(calls), 2) AS near_miss_percent
FROM bound
GROUP BY agent, tool, policy
ORDER BY violations DESC NULLS LAST, agent, tool, policy

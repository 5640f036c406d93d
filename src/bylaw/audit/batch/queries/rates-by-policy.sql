-- Per agent, tool and policy: executed calls that the policy applies to, and the share of each verdict.
-- Calls alike are counted first, by the one word that tells of all their policies, and then taken apart: there are few such words.
WITH alike AS (
    SELECT agent, tool, policies_json, count(*) AS calls
    FROM calls
    WHERE executed IS NOT FALSE AND policies_json IS NOT NULL
    GROUP BY agent, tool, policies_json
),
each_policy AS (
    SELECT agent, tool, calls, unnest(policies_of(policies_json)) AS each
    FROM alike
    UNION ALL
    -- Rows that were written before there was that word.
    SELECT agent, tool, 1 AS calls, unnest(policies) AS each
    FROM calls
    WHERE executed IS NOT FALSE AND policies_json IS NULL
),
bound AS (
    SELECT agent, tool, calls, each.policy AS policy, each.verdict AS verdict
    FROM each_policy
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

-- Per week and agent: conversations, violations and near-misses; a conversation counts in the week of its first event.
SELECT
    date_trunc('week', day)::DATE AS week,
    agent,
    count(*) AS conversations,
    round(100 * avg(violation::INT), 1) AS violation_percent,
    round(100 * avg(near_miss::INT), 1) AS near_miss_percent,
    round(100 * avg(broken_rule::INT), 1) AS broken_rule_percent
FROM conversations
GROUP BY ALL
ORDER BY week, agent

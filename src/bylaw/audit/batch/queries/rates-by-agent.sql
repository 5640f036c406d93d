-- Per agent: conversations, and how many have a violation, a near-miss or a broken rule.
SELECT
    agent,
    count(*) AS conversations,
    count(*) FILTER (violation) AS violations,
    round(100 * avg(violation::INT), 1) AS violation_percent,
    count(*) FILTER (near_miss) AS near_misses,
    round(100 * avg(near_miss::INT), 1) AS near_miss_percent,
    count(*) FILTER (broken_rule) AS broken_rules,
    round(100 * avg(broken_rule::INT), 1) AS broken_rule_percent
FROM conversations
GROUP BY agent
ORDER BY agent

-- Findings of an earlier audit (--base) that this one does not have.
SELECT finding, kind, name, agent, conversation, step, verdict, severity, because
FROM base.findings
WHERE finding NOT IN (SELECT finding FROM findings)
ORDER BY ordinal, step

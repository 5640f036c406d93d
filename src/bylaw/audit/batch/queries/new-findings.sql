-- Findings that an earlier audit (--base) does not have; a repeated conversation keeps the ids of its findings.
SELECT finding, kind, name, agent, conversation, step, verdict, severity, because
FROM findings
WHERE finding NOT IN (SELECT finding FROM base.findings)
ORDER BY ordinal, step

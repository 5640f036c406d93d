"""Counts of findings by cell and by how they stand: what every number of a page is a sum of.

A finding of a refused call is `refused`, and in no other count. Any other has the state a person gave it; else that of
its waived cell; else it is known from an earlier audit; else it is new, or undecided (`open`). Few findings are singled
out, so cells are counted whole and the few are moved.
"""

_USUAL = "CASE WHEN c.verdict = 'inconclusive' THEN 'open' ELSE 'new' END"
_REFUSED = "(SELECT number FROM cells WHERE executed IS 0)"
_BEFORE = f"COALESCE(w.state, CASE WHEN n.finding IS NOT NULL THEN 'still' END, {_USUAL})"
STATE = f"CASE WHEN c.executed IS 0 THEN 'refused' ELSE COALESCE(g.state, {_BEFORE}) END"
"""How a finding `f` of a cell `c` stands, where `STANDING` is joined."""
STANDING = """LEFT JOIN temp.singled g ON g.finding = f.number LEFT JOIN temp.waived w ON w.cell = f.cell
LEFT JOIN temp.known n ON n.finding = f.number"""


def tally_query(search: int = 0) -> str:
    """Cell, state and how many, of all findings or of those that a search found."""
    whole, among = "SELECT number AS cell, findings FROM cells", ""
    if search:
        whole, among = f"SELECT cell, findings FROM temp.cells{search}", f"AND is_found({search}, f.number)"
    known = f"""SELECT f.cell AS cell, count(*) AS findings FROM temp.known n CROSS JOIN findings f ON
        f.number = n.finding {among} WHERE f.cell NOT IN (SELECT cell FROM temp.waived) AND f.cell NOT IN {_REFUSED}
        GROUP BY 1"""
    singled = f"""FROM temp.singled g CROSS JOIN findings f ON f.number = g.finding {among}
        JOIN cells c ON c.number = f.cell AND c.executed IS NOT 0 LEFT JOIN temp.waived w ON w.cell = f.cell
        LEFT JOIN temp.known n ON n.finding = f.number"""
    return f"""WITH k AS MATERIALIZED ({known}) SELECT cell, state, sum(findings) AS findings FROM (
        SELECT a.cell AS cell, CASE WHEN c.executed IS 0 THEN 'refused' ELSE COALESCE(w.state, {_USUAL}) END AS state,
            a.findings AS findings FROM ({whole}) a
            JOIN cells c ON c.number = a.cell LEFT JOIN temp.waived w ON w.cell = a.cell
        UNION ALL SELECT k.cell, 'still', k.findings FROM k
        UNION ALL SELECT k.cell, {_USUAL}, -k.findings FROM k JOIN cells c ON c.number = k.cell
        UNION ALL SELECT f.cell, g.state, 1 {singled}
        UNION ALL SELECT f.cell, {_BEFORE}, -1 {singled}
        ) GROUP BY 1, 2 HAVING sum(findings) > 0"""

// Rates and counts. Charts are rows of positioned boxes, so that they follow the width of the page; each has its table.

const SHOWN = VERDICTS.slice(0, 4);

function heading(section, title, ...lede) {
  return [make("h2", {id: `${section}-title`}, title), make("p", {class: "lede"}, lede)];
}

function plainTable(caption, heads, rows) {
  return make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
    make("table", {}, make("thead", {}, make("tr", {}, heads.map((head) => make("th", {scope: "col"}, head)))),
      make("tbody", {}, rows.map((cells) => make("tr", {}, cells.map((cell, column) => make(column ? "td" : "th", column ? {} : {scope: "row"}, cell)))))));
}

function table(caption, heads, rows) {
  return make("details", {class: "as-table"}, make("summary", {}, `Table: ${caption}`), plainTable(caption, heads, rows));
}

function interval(rate) {
  if (!rate || rate.value === null) return "\u2013";
  return `${percent(rate.value)} (${percent(rate.low)} to ${percent(rate.high)}; ${number(rate.count)} of ${number(rate.of)})`;
}

function ceiling(value) {
  return [0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1].find((step) => value <= step) || 1;
}

function whiskers(title, explanation, kind, rows, unknown, wide) {
  if (!rows.some(({rate}) => rate && rate.value !== null)) return make("div", {class: `panel${wide ? " wide" : ""}`}, make("h3", {}, title), make("p", {class: "note"}, `${sentence(unknown)}.`));
  const top = ceiling(Math.max(0.01, ...rows.map(({rate}) => (rate && rate.high) || 0)));
  const place = (value) => `${Math.min(100, (value / top) * 100)}%`;
  const track = ({rate}) => {
    const known = rate && rate.value !== null;
    return make("div", {class: "track"},
      known ? make("i", {class: `whisker ${kind}`, style: {left: place(rate.low ?? rate.value), width: place((rate.high ?? rate.value) - (rate.low ?? rate.value))}}) : null,
      known ? make("i", {class: `dot ${kind}`, style: {left: place(rate.value)}}) : make("span", {class: "note"}, unknown));
  };
  return make("div", {class: `panel${wide ? " wide" : ""}`}, make("h3", {}, title), make("p", {class: "note"}, explanation),
    make("div", {class: "plot", "aria-hidden": "true"},
      rows.map((entry) => [make("div", {class: "label"}, said(entry.name, 28)), track(entry), make("div", {class: "reading"}, entry.rate ? percent(entry.rate.value) : "\u2013")]),
      make("div", {class: "label"}), make("div", {class: "axis"}, make("span", {}, "0"), make("span", {}, `${Math.round(top * 50)}\u2009%`), make("span", {}, `${Math.round(top * 100)}\u2009%`)), make("div", {})));
}

function agentsChart(overview) {
  const agents = overview.agents.slice();
  const missed = (agent) => (agent.near_miss_rate_of_writing || {}).value ?? -1;
  agents.sort((one, other) => missed(other) - missed(one));
  const rows = (pick) => agents.map((agent) => ({name: agent.agent || "(unnamed)", rate: pick(agent)}));
  const head = heading("agents", "How often, per agent",
    "Each dot is the share of conversations; the line is its 95\u2009% confidence interval. ",
    "A near-miss counts only if the outcome was good, or if no outcome is known and nothing was violated.");
  if (!agents.length) return [head, make("p", {class: "note"}, "This audit has no agents.")];
  return [head, make("div", {class: "panels"},
    whiskers("Near-misses", "of conversations with write calls", "near_miss", rows((agent) => agent.near_miss_rate_of_writing), "no such conversation", true),
    whiskers("Violations", "of all conversations", "violation", rows((agent) => agent.violation_rate), "no conversation"),
    overview.by_rule.length ? whiskers("Broken rules", "of all conversations", "violation", rows((agent) => agent.rule_rate), "no conversation") : null,
    whiskers("Failed outcomes", "of all known outcomes", "failure", rows((agent) => agent.failure_rate), "no outcome recorded")),
  table("rates per agent, with 95% intervals",
    ["Agent", "Conversations", "With write calls", "Outcome known", "Failed", "Violation", ...SEVERITIES.map((severity) => `Violation, ${severity}`), "Rule broken", ...SEVERITIES.map((severity) => `Rule broken, ${severity}`), "Near-miss, of all", "Near-miss, of writing"],
    agents.map((agent) => [said(agent.agent, 60), number(agent.trajectories), number(agent.with_write_calls), number(agent.outcome_known), interval(agent.failure_rate),
      interval(agent.violation_rate), ...agent.violation_rates.map(interval), interval(agent.rule_rate), ...agent.rule_rates.map(interval), interval(agent.near_miss_rate), interval(agent.near_miss_rate_of_writing)]))];
}

function legend(kinds) {
  return make("p", {class: "legend"}, kinds.map((kind) => make("span", {}, make("i", {class: `swatch ${kind}`}), named(kind))));
}

// The target of a name in a chart: findings of this page (`show`), or another page (`address`).
const leading = {show: null, address: null};

function leadTo(wanted, title, label) {
  if (leading.address) return make("a", {href: leading.address(wanted), title}, label);
  return leading.show ? make("button", {type: "button", class: "link", title, on: {click: () => leading.show(wanted)}}, label) : label;
}

function bars(rows, kinds, filter) {
  const longest = Math.max(1, ...rows.map((row) => kinds.reduce((sum, kind) => sum + (row.counts.get(kind) || 0), 0)));
  return make("div", {class: "plot bars"}, rows.map((row) => {
    const label = row.words || code(row.name, 44);
    const total = kinds.reduce((sum, kind) => sum + (row.counts.get(kind) || 0), 0);
    return [
      make("div", {class: "label"}, total && filter ? leadTo(filter(row.name), `Show these findings: ${plain(row.words || row.name)}`, label) : label),
      make("div", {class: "stack", "aria-hidden": "true"}, kinds.map((kind) => {
        const value = row.counts.get(kind) || 0;
        return value ? make("i", {class: `swatch ${kind}`, style: {width: `${(value / longest) * 100}%`}, title: `${number(value)} ${named(kind)}`}) : null;
      })),
      make("div", {class: "reading"}, row.unjudged ? make("span", {class: "note"}, "no guard") : [number(total), row.of !== undefined ? make("span", {class: "note"}, ` of ${number(row.of)}`) : null]),
    ];
  }));
}

function verdictRows(rows, of) {
  return rows.map((row) => ({...row, counts: new Map(row.verdicts), of: row[of] ?? undefined}));
}

function flaggedCount(row) {
  return SHOWN.reduce((sum, kind) => sum + (row.counts.get(kind) || 0), 0);
}

function toolsChart(overview) {
  const rows = verdictRows(overview.by_tool, "executed").sort((one, other) => flaggedCount(other) - flaggedCount(one));
  const head = heading("tools", "Which tools were flagged",
    "Violations, near-misses and undecided calls among the accepted calls of each write tool and each guarded look-up. Choose a name to see the conversations.");
  if (!rows.length) return [head, make("p", {class: "note"}, "No call was judged.")];
  const kinds = SHOWN.filter((kind) => rows.some((row) => row.counts.get(kind)));
  const unguarded = new Set(overview.unguarded_tools);
  for (const row of rows) row.unjudged = unguarded.has(row.name);
  return [head, legend(kinds), bars(rows, kinds, (tool) => ({tool})), table("verdicts by tool", ["Tool", "Effect", "Calls", "Accepted", ...VERDICTS.map(named), "Not judged"],
    rows.map((row) => [code(row.name, 60), row.effect || "write", number(row.calls), number(row.executed), ...VERDICTS.map((kind) => (row.unjudged ? "\u2013" : number(row.counts.get(kind) || 0))), row.unjudged ? `${number(row.executed)}: no guard` : "0"]))];
}

function lookupsChart(overview) {
  const rows = overview.by_lookup.filter((row) => row.lacked).map((row) => ({...row, counts: new Map([["near_miss", row.lacked || 0]]), agents: new Map(row.agents)}))
    .sort((one, other) => other.counts.get("near_miss") - one.counts.get("near_miss"));
  const reasons = new Map(overview.by_reason);
  const head = heading("lookups", "Which look-ups were skipped",
    "Flagged calls that needed a fact this tool would have shown.");
  if (!rows.length) return [head, make("p", {class: "note"}, "No look-up was missed.")];
  const total = REASONS.reduce((sum, reason) => sum + (reasons.get(reason) || 0), 0);
  const out = [head, bars(rows, ["near_miss"], (lookup) => ({lookup}))];
  if (total) out.push(make("h3", {}, "Why the fact was missing"), bars(REASONS.map((reason) => ({name: reason, words: named(reason), counts: new Map([["near_miss", reasons.get(reason) || 0]])})),
    ["near_miss"], (reason) => ({reason})));
  const agents = [...new Set(rows.flatMap((row) => [...row.agents.keys()]))].slice(0, 30);
  out.push(table("missed look-ups by agent", ["Look-up", "Missed", ...agents.map((agent) => said(agent, 30))],
    rows.map((row) => [code(row.name, 60), number(row.lacked), ...agents.map((agent) => number(row.agents.get(agent) || 0))])));
  if (total) out.push(table("reasons", ["Reason", "Calls"], REASONS.map((reason) => [named(reason), number(reasons.get(reason) || 0)])));
  return out;
}

function policiesChart(overview) {
  const rows = verdictRows(overview.by_policy, "applied");
  const rules = overview.by_rule.map((row) => ({...row, of: undefined, counts: new Map([["violation", row.broken || 0]]), agents: new Map(row.agents)}))
    .sort((one, other) => SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity) || other.counts.get("violation") - one.counts.get("violation"));
  const judged = new Set([...rows, ...rules].map((row) => row.name));
  const unjudged = [...policies.values()].filter((policy) => !judged.has(policy.id));
  rows.sort((one, other) => flaggedCount(other) - flaggedCount(one) || (other.applied || 0) - (one.applied || 0));
  const idle = rows.filter((row) => row.could_deny === 0 || !row.applied);
  const tried = rows.filter((row) => !idle.includes(row));
  const out = heading("policies", "Findings by policy",
    "Flagged calls under each policy, out of the calls it applied to. A policy that could not have denied any call in these logs was not tested: that is not compliance.");
  if (!rows.length) return [out, make("p", {class: "note"}, "This audit lists no policies.")];
  const kinds = SHOWN.filter((kind) => tried.some((row) => row.counts.get(kind)));
  out.push(legend(kinds), bars(tried, kinds, (policy) => ({policy})));
  if (idle.length) out.push(make("h3", {}, `Never exercised: ${count(idle.length, "policy", "policies")}`),
    make("ul", {class: "idle"}, idle.slice(0, 200).map((row) => make("li", {}, code(row.name, 60), " ",
      make("span", {class: "note"}, row.applied ? `applied to ${count(row.applied, "call")}, none of which it could have denied` : "applied to no call")))));
  if (rules.length) {
    const agents = [...new Set(rules.flatMap((row) => [...row.agents.keys()]))].slice(0, 30);
    out.push(make("h3", {}, "Process rules, by how often they were broken"), bars(rules, ["violation"], (policy) => ({policy})),
      table("broken rules by agent", ["Rule", "Severity", "Times", "Conversations", ...agents.map((agent) => said(agent, 30))],
        rules.map((row) => [code(row.name, 60), said(row.severity, 20), number(row.broken), number(row.trajectories), ...agents.map((agent) => number(row.agents.get(agent) || 0))])));
  }
  if (unjudged.length) out.push(make("h3", {}, `Without a verdict here: ${count(unjudged.length, "policy", "policies")}`),
    make("ul", {class: "idle"}, unjudged.slice(0, 200).map((policy) => make("li", {}, code(policy.id, 60), " ", make("span", {class: "note"}, policy.unenforced ? ["not enforced: ", said(policy.unenforced, 200)] : policy.kind === "rule" ? "a process rule, not seen broken" : policy.kind === "guard" ? "has no guard" : [said(policy.kind, 20), ": not checked from logs"])))));
  const sentence = (name) => (policies.get(name) || {}).definition || "";
  out.push(table("verdicts by policy", ["Policy", "What it says", "Severity", "Applied to", "Could deny", ...VERDICTS.map(named)],
    rows.map((row) => [code(row.name, 60), said(sentence(row.name), 200), said((policies.get(row.name) || {}).severity, 20), number(row.applied), number(row.could_deny), ...VERDICTS.map((kind) => number(row.counts.get(kind) || 0))])));
  return out;
}

// Look-up results, by whether they could be read. An unreadable one is a fault of the log or the pack, never of the agent.
function evidenceChart(overview) {
  const lookups = overview.evidence;
  const out = heading("evidence", "What the look-ups showed",
    "Verdicts rest on recorded, readable results. An unreadable fact is never held against the agent.");
  if (!lookups.length) return [out, make("p", {class: "note"}, "The logs have no look-up results.")];
  const lacking = lookups.filter((lookup) => lookup.cures.length);
  out.push(lacking.length
    ? make("ul", {class: "plain"}, lacking.map((lookup) => make("li", {}, code(lookup.tool, 60), ` ${number(lookup.results)} results, ${number(lookup.captured)} recorded, ${number(lookup.readable)} readable`,
      lookup.shown === null ? "" : `, ${number(lookup.shown)} used by the pack`, ". ", lookup.cures.map((cure) => [said(sentence(cure), 300), ". "]))))
    : make("p", {class: "note"}, `All ${number(lookups.reduce((sum, lookup) => sum + (lookup.results || 0), 0))} results could be read.`));
  out.push(table("results of look-ups", ["Look-up", "Results", "Recorded", "Readable", "Used by the pack"],
    lookups.map((lookup) => [code(lookup.tool, 60), number(lookup.results), number(lookup.captured), number(lookup.readable), lookup.shown === null ? "not mapped" : number(lookup.shown)])));
  return out;
}

const CHARTS = new Map([["agents", agentsChart], ["tools", toolsChart], ["lookups", lookupsChart], ["policies", policiesChart], ["evidence", evidenceChart]]);

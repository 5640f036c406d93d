// The page as a whole: the opening, what the audit could not see, the words, the switches, the address.

function total(kind) {
  return data.overview.by_tool.reduce((sum, row) => sum + (new Map(row.verdicts).get(kind) || 0), 0);
}

const MORE = new Map(Object.entries({violations: ["violation", "violations"], near_misses: ["near-miss", "near-misses"], uninformed: ["uninformed call", "uninformed calls"], undecided: ["undecided call", "undecided calls"]}));

function drawOpening() {
  const section = document.getElementById("opening");
  const overview = data.overview;
  const conversations = overview.agents.reduce((sum, agent) => sum + (agent.trajectories || 0), 0);
  const executed = (isRead) => overview.by_tool.filter((row) => (row.effect === "read") === isRead).reduce((sum, row) => sum + (row.executed ?? row.calls ?? 0), 0);
  const reads = executed(true);
  const calls = executed(false) || (reads ? 0 : data.calls);
  const broken = overview.by_rule.reduce((sum, row) => sum + (row.broken || 0), 0);
  const [nearMisses, violations, uninformed] = ["near_miss", "violation", "uninformed"].map((kind) => total(kind));
  const refused = data.counts.refused || {};
  const unaccepted = [...MORE].filter(([kind]) => refused[kind]).map(([kind, [one, many]]) => `${number(refused[kind])} ${refused[kind] === 1 ? one : many}`);
  const tally = make("p", {class: "tally"},
    make("span", {class: "near_miss"}, make("b", {}, number(nearMisses)), nearMisses === 1 ? " near-miss" : " near-misses"), uninformed ? ", " : " and ",
    make("span", {class: "violation"}, make("b", {}, number(violations)), violations === 1 ? " violation" : " violations"),
    uninformed ? [", and ", make("span", {}, make("b", {}, number(uninformed)), " uninformed"), ","] : "", " in ",
    make("span", {}, make("b", {}, number(calls)), " executed write calls"),
    reads ? [" and ", make("span", {}, make("b", {}, number(reads)), " guarded look-ups,")] : null,
    conversations ? [" of ", make("span", {}, make("b", {}, number(conversations)), " conversations")] : null,
    overview.agents.length > 1 ? [" by ", make("span", {}, make("b", {}, number(overview.agents.length)), " agents")] : null, ".",
    broken ? [" Rules of the conversation were broken ", make("span", {class: "broken"}, make("b", {}, count(broken, "time"))), "."] : null,
    data.open.calls ? [" ", make("a", {href: "#undecided"}, `${count(data.open.calls, "call")} undecided`), "."] : null,
    unaccepted.length ? make("span", {class: "refused"}, ` Refused by the tool, not counted above: ${unaccepted.join(", ")}.`) : null);
  if (!data.opening) {
    section.replaceChildren(make("h1", {id: "opening-title"}, "No findings."), tally,
      make("p", {class: "lede"}, "Policies that no call exercised are listed below: not flagged is not the same as compliant."));
    return;
  }
  const {finding, conversation} = data.opening;
  const policy = mainPolicy(finding);
  const verdict = (policy || finding).verdict;
  fill(section,
    make("p", {class: `verdict ${verdict}`}, policy && policy.severity ? make("span", {class: `severity ${policy.severity}`}, said(policy.severity, 12)) : null, named(verdict), make("span", {class: "note"}, DEFINITIONS.has(verdict) ? `: ${DEFINITIONS.get(verdict)}` : "")),
    make("h1", {id: "opening-title"}, headline(finding, policy)),
    make("p", {class: "story"}, story(finding, policy, conversation)),
    finding.verdict === "broken" ? null : drawing(finding, policy, conversation, "step-"),
    policy ? citation(policy, policy.missing) : "",
    make("div", {class: "sum"}, tally,
      make("p", {}, make("a", {href: `#finding/${encodeURIComponent(safeForUrl(finding.finding))}`, "data-finding": finding.finding}, "Read this conversation"), " or ", make("a", {href: "#findings"}, "all findings"), ".")));
}

function drawLede() {
  const left = data.flagged - findings.length;
  const unheld = data.conversations - held.size;
  const unkept = data.conversations - data.kept;
  document.getElementById("findings-lede").replaceChildren(
    "Every flagged executed call and every broken rule, most severe policy first. The filter also shows refused calls. Use the arrow keys or ", make("kbd", {}, "j"), " and ", make("kbd", {}, "k"), " to go through them, ", make("kbd", {}, "/"), " to search.",
    ...(data.compared ? [` ${count(findings.filter((finding) => finding.state === "new").length, "finding")} new, ${number(findings.filter((finding) => finding.state === "still").length)} known from an earlier audit, ${number(findings.filter((finding) => finding.state === "waived").length)} waived.`] : []),
    ...(left > 0 ? [` This page lists ${number(findings.length)} of ${number(data.flagged)}; the others are in `, make("code", {}, "calls.jsonl"), " and ", make("code", {}, "findings.jsonl"), "."] : []),
    ...(unheld > 0 ? [` ${count(unheld, "conversation")} of ${number(data.conversations)} ${unheld === 1 ? "is" : "are"} not in this page`, unkept ? ` (${unkept === unheld ? "not kept by the audit" : `${number(unkept)} not kept by the audit`})` : "", "; to read one, ", make("code", {}, `bylaw explain ${plain(data.out, 40)} CONVERSATION STEP`), "."] : []));
}

function drawLimits() {
  const overview = data.overview;
  const section = document.getElementById("limits");
  section.replaceChildren(...heading("limits", "Limits of this audit"), make("ul", {class: "plain"}, overview.limits.map((words) => make("li", {}, said(words, 600)))));
  if (overview.skipped.length) section.append(make("details", {class: "as-table"}, make("summary", {}, "Skipped records"), make("ol", {}, overview.skipped.map((entry) => make("li", {}, said(entry, 500)))),
    overview.skipped_count > overview.skipped.length ? make("p", {class: "note"}, `and ${number(overview.skipped_count - overview.skipped.length)} more in summary.json`) : ""));
}

// Undecided calls, by rule and reason, then one by one.
function drawUndecided() {
  const {calls, rules, list} = data.open;
  const section = document.getElementById("undecided");
  section.hidden = !calls;
  document.querySelector('nav a[href="#undecided"]').hidden = !calls;
  if (!calls) return;
  const rows = rules.flatMap(([rule, , reasons]) => reasons.map(([reason, of]) => [said(rule, 120), said(reason, 200), number(of)]));
  section.replaceChildren(...heading("undecided", "Undecided", `${count(calls, "call")} to review: code could not decide them, and they are not counted as violations. A model (--llm) or a person (bylaw view) can settle them.`),
    plainTable("Undecided calls, by rule and reason", ["Rule", "Undecided because", "Calls"], rows),
    make("details", {class: "as-table"}, make("summary", {}, "Call by call"), make("ol", {}, list.map((call) => make("li", {}, code(call.tool, 60), " at ", said(`${call.where} ${call.step}`, 160), ": ", said(call.because, 500)))),
      calls > list.length ? make("p", {class: "note"}, `and ${number(calls - list.length)} more in calls.jsonl`) : ""));
}

function drawTerms() {
  const terms = [
    ["violation", "the policy forbids the call."], ["near_miss", "the call was allowed, but the agent had not seen enough to know that."],
    ["uninformed", "the agent had not seen enough, and the logs do not show whether the call was allowed."],
    ["inconclusive", "the call could not be judged; the finding shows the reason."], ["compliant", "both the facts the agent had seen and the ground truth permit the call."]];
  const word = (name, text) => [make("dt", {}, name), make("dd", {}, text)];
  document.getElementById("terms").replaceChildren(...heading("terms", "Terms"), make("dl", {class: "facts"},
    [...terms, ["broken", "a rule about the conversation, such as \u201cconfirm before every change\u201d, was broken at that step."]].map(([kind, text]) => word(make("span", {class: `verdict ${kind}`}, named(kind)), text)),
    data.overview.criterion === "strict" ? word("strict", "this audit requires every fact on the policy\u2019s path to have been seen, even one that could not change the answer.") : null,
    word("seen", "shown by a tool result delivered before the agent\u2019s turn. What a user says is a claim, not a fact.")),
    make("p", {class: "note"}, "Made by Bylaw from ", said(data.out, 60), data.overview.pack.digest ? [" \u00b7 pack digest ", code(data.overview.pack.digest, 16)] : "", ". This file loads nothing from the network."));
}

// When the audit was made, of which files, and when their conversations took place.
function about() {
  const {date, files, period} = data.overview;
  const day = (time) => time.slice(0, 10);
  const [from, to] = period.map(day);
  return [date ? `Audited on ${date}` : "", files.length ? [date ? ": " : "", files.slice(0, 3).map((file, index) => [index ? ", " : "", said(file, 60)]), files.length > 3 ? ` and ${count(files.length - 3, "other file")}` : ""] : "",
    from ? (from === to ? `, conversations of ${from}` : `, conversations from ${from} to ${to}`) : "", date || files.length ? "." : ""].flat(3).filter(Boolean);
}

function drawNumbers() {
  drawOpening();
  for (const name of CHARTS.keys()) {
    const chart = make("bylaw-chart", {kind: name});
    chart.data = {overview: data.overview};
    fill(document.getElementById(name), chart);
  }
  drawUndecided();
  drawLimits();
}

function remembered(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch { /* a file may have no storage */ }
  return null;
}

function listenToSwitches() {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`); };
  const theme = remembered("bylaw-theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; remembered("bylaw-theme", root.dataset.theme); label(); });
  dark.addEventListener("change", label);
  label();
  const closed = [];
  addEventListener("beforeprint", () => { closed.push(...document.querySelectorAll("details:not([open])")); for (const details of closed) details.open = true; });
  addEventListener("afterprint", () => { for (const details of closed.splice(0)) details.open = false; });
}

function followAddress() {
  const match = location.hash.match(/^#finding\/(.+)$/);
  if (!match) return false;
  let id = match[1];
  try { id = decodeURIComponent(id); } catch { /* as it is */ }
  openFinding(id, true);
  return true;
}

leading.show = showFiltered;
const pack = data.overview.pack;
document.title = `Bylaw audit: ${plain(pack.title || pack.name || data.out, 60)}`;
document.getElementById("pack").append(...(pack.name ? ["of ", said(pack.name, 30), " ", said(pack.version, 16)] : []));
document.getElementById("about").append(...about());
drawNumbers();
drawLede();
drawTerms();
drawFilters();
shownFindings = findings.filter(matches);
drawList();
listenToFindings();
listenToSwitches();
addEventListener("hashchange", followAddress);
const landed = followAddress();
if (!landed && isWide() && shownFindings.length) openFinding(shownFindings[0].id, false);
// What an address names was not there yet when the browser looked for it.
const place = !landed && location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
if (place) place.scrollIntoView();
document.documentElement.dataset.ready = "true";

// The list of findings, its filters, and the one that is open.

const PAGE = 40;
// The counts of the audit are of executed calls: the list starts with those.
const wasRefused = (finding) => finding.executed === false;
const lacks = (finding) => ["near_miss", "uninformed"].includes(finding.verdict);
const FILTERS = [
  ["severity", "Severity", (finding) => [finding.severity]],
  ["verdict", "Verdict", (finding) => [finding.verdict]],
  ["reason", "Reason", (finding) => (lacks(finding) ? [...new Set(finding.facts.map((fact) => fact.reason))] : [])],
  ["lookup", "Look-up", (finding) => (lacks(finding) ? [...new Set(finding.facts.map((fact) => fact.lookup))] : [])],
  ["tool", "Tool", (finding) => (finding.rule ? [] : [finding.tool])],
  ["policy", "Policy", (finding) => [...new Set([...(finding.rule ? [finding.tool] : []), ...finding.policies])]],
  ["agent", "Agent", (finding) => [finding.agent]],
  ["call", "Call", (finding) => [wasRefused(finding) ? "refused" : "executed"]],
  ...(data.compared ? [["state", "Standing", (finding) => [finding.state]]] : []),
];
const EVERY = {severity: "", verdict: "", reason: "", lookup: "", tool: "", policy: "", agent: "", call: "executed", state: "", text: ""};
const chosen = {...EVERY};
let shownFindings = [];
let pageNumber = 0;

function drawFilters() {
  const form = document.getElementById("filters");
  const fields = FILTERS.map(([name, title, values]) => {
    const counts = new Map();
    const among = name === "call" ? findings : amongCalls();
    for (const finding of among) for (const value of values(finding)) if (value) counts.set(value, (counts.get(value) || 0) + 1);
    const order = {severity: SEVERITIES, verdict: KINDS, reason: REASONS, state: ["new", "still", "waived"]}[name] || null;
    const options = [...counts].sort((one, other) => (order ? order.indexOf(one[0]) - order.indexOf(other[0]) : other[1] - one[1]));
    if (chosen[name] && !counts.has(chosen[name])) options.push([chosen[name], 0]);
    const select = make("select", {id: `filter-${name}`, name}, make("option", {value: ""}, `All ${number(among.length)}`),
      options.slice(0, 500).map(([value, times]) => make("option", {value}, `${plain(order ? named(value) : value, 48)} (${number(times)})`)));
    select.value = chosen[name];
    return make("label", {}, make("span", {}, title), select);
  });
  form.replaceChildren(make("label", {class: "search"}, make("span", {}, "Search"), make("input", {type: "search", id: "filter-text", name: "text", autocomplete: "off", placeholder: "a fact, an id, a word", maxlength: "200"})),
    ...fields, make("button", {type: "reset", class: "quiet"}, "Clear"));
  form.elements.text.value = chosen.text;
}

function amongCalls() {
  return findings.filter((finding) => !chosen.call || wasRefused(finding) === (chosen.call === "refused"));
}

function matches(finding) {
  for (const [name, , values] of FILTERS) if (chosen[name] && !values(finding).includes(chosen[name])) return false;
  return chosen.text.toLowerCase().split(/\s+/).every((piece) => finding.sought.includes(piece));
}

function applyFilters() {
  shownFindings = findings.filter(matches);
  pageNumber = 0;
  drawList();
}

function showFiltered(wanted) {
  Object.assign(chosen, EVERY, wanted);
  drawFilters();
  applyFilters();
  document.getElementById("findings").scrollIntoView();
  const first = document.querySelector("#list a");
  if (first) first.focus({preventScroll: true});
  if (shownFindings.length && isWide()) openFinding(shownFindings[0].id, false);
}

function rowOf(finding) {
  const facts = finding.facts;
  // A violation is told by what was wrong, whatever else was not looked up.
  const wrong = finding.verdict === "violation" && finding.because;
  const line = finding.rule ? said(sentenceOf(finding.policies[0]), 110) : facts.length && !wrong ? [code(facts[0].name, 46), " ", named(facts[0].reason), facts.length > 1 ? `, +${facts.length - 1}` : ""] : said(finding.because, 90);
  return make("li", {}, make("a", {href: `#finding/${encodeURIComponent(safeForUrl(finding.id))}`, "data-finding": finding.id, class: finding.verdict, "aria-current": state.open === finding.id ? "true" : null},
    make("span", {class: "top"}, finding.severity ? make("span", {class: `severity ${finding.severity}`}, said(finding.severity, 12)) : null, make("span", {class: `verdict ${finding.verdict}`}, named(finding.verdict)), code(finding.tool, 34)),
    make("span", {class: "why"}, line),
    make("span", {class: "where note"}, said(finding.agent, 26), " \u00b7 ", said(finding.trajectory, 24), ` \u00b7 step ${finding.step ?? "?"}`, finding.executed === false ? " \u00b7 refused" : "", finding.state && finding.state !== "new" ? make("b", {}, ` \u00b7 ${named(finding.state)}`) : "")));
}

function drawList() {
  const pages = Math.max(1, Math.ceil(shownFindings.length / PAGE));
  pageNumber = Math.min(pageNumber, pages - 1);
  const from = pageNumber * PAGE;
  document.getElementById("list").replaceChildren(...shownFindings.slice(from, from + PAGE).map(rowOf));
  document.getElementById("shown").textContent = shownFindings.length ? `${count(shownFindings.length, "finding")} of ${number(amongCalls().length)}` : "No finding matches these filters.";
  const go = (to) => () => { pageNumber = to; drawList(); document.querySelector("#list a").focus(); };
  const button = (words, to, usable) => make("button", {type: "button", class: "quiet", disabled: !usable, on: {click: go(to)}}, words);
  const pager = document.getElementById("pager");
  pager.replaceChildren();
  if (pages > 1) pager.append(button("Earlier", pageNumber - 1, pageNumber > 0), make("span", {class: "note"}, `page ${number(pageNumber + 1)} of ${number(pages)}`), button("Later", pageNumber + 1, pageNumber < pages - 1));
}

function isWide() {
  return matchMedia("(min-width: 60rem)").matches;
}

async function openFinding(id, moveFocus) {
  const finding = findingsById.get(id);
  if (!finding) return;
  state.open = id;
  const position = shownFindings.indexOf(finding);
  if (position >= 0 && Math.floor(position / PAGE) !== pageNumber) pageNumber = Math.floor(position / PAGE);
  drawList();
  let details, conversation;
  try {
    [details, conversation] = await Promise.all([findingDetails(finding), conversationOf(finding.trajectory)]);
  } catch (fault) {
    document.getElementById("detail").replaceChildren(make("p", {}, "This browser cannot unpack the finding. To read it: ", code(explainCommand(finding), 400)));
    return;
  }
  if (state.open === id) drawDetail(details, conversation, moveFocus);
}

function drawDetail(finding, conversation, moveFocus) {
  const article = document.getElementById("detail");
  const others = findings.filter((entry) => entry.trajectory === finding.trajectory && entry.id !== finding.finding).slice(0, 12);
  const shown = make("bylaw-finding");
  shown.data = {finding, conversation, others, address: "#finding/"};
  const row = findingsById.get(finding.finding);
  fill(article, row && row.waiver ? make("p", {class: "note"}, make("b", {}, "Waived: "), said(row.waiver, 600)) : null, make("p", {class: "back"}, make("button", {type: "button", class: "quiet", on: {click: closeFinding}}, "Back to the list")), shown);
  document.getElementById("findings").classList.add("opened");
  if (moveFocus) {
    article.focus({preventScroll: true});
    article.scrollIntoView({block: "start"});
  }
}

function closeFinding() {
  const section = document.getElementById("findings");
  section.classList.remove("opened");
  const row = [...document.querySelectorAll("#list a")].find((link) => link.dataset.finding === state.open);
  if (row) row.focus();
}

function step(by) {
  if (!shownFindings.length) return;
  const now = shownFindings.findIndex((finding) => finding.id === state.open);
  const next = shownFindings[Math.max(0, Math.min(shownFindings.length - 1, now < 0 ? 0 : now + by))];
  const inDetail = document.getElementById("detail").contains(document.activeElement);
  openFinding(next.id, inDetail || !isWide());
  const row = [...document.querySelectorAll("#list a")].find((link) => link.dataset.finding === next.id);
  if (row && !inDetail) row.focus();
}

function listenToFindings() {
  const form = document.getElementById("filters");
  form.addEventListener("input", (event) => {
    if (!(event.target.name in chosen)) return;
    chosen[event.target.name] = event.target.value;
    if (event.target.name === "call") drawFilters();
    applyFilters();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    Object.assign(chosen, EVERY);
    drawFilters();
    applyFilters();
    document.getElementById("filter-text").focus();
  });
  const section = document.getElementById("findings");
  section.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const inList = event.target.closest("#list");
    const move = {j: 1, k: -1, ArrowDown: inList ? 1 : 0, ArrowUp: inList ? -1 : 0}[event.key];
    if (move) { event.preventDefault(); step(move); }
    else if (event.key === "/") { event.preventDefault(); document.getElementById("filter-text").focus(); }
    else if (event.key === "Escape") closeFinding();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-finding]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.replaceState(null, "", link.getAttribute("href"));
    openFinding(link.dataset.finding, true);
  });
  // Within the open finding its element follows links to steps; the opening's lead to the same finding in the list.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("#opening a[data-step]");
    if (!link) return;
    event.preventDefault();
    showOpeningStep(Number(link.dataset.step));
  });
}

async function showOpeningStep(number) {
  await openFinding(data.opening.finding.finding, false);
  const shown = document.querySelector("#detail bylaw-finding");
  if (shown) shown.showStep(number);
}

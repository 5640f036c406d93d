// The drawing: from a write call to each fact it needed, to the step that showed it, or the gap where nothing did
// and the claim that stood in for it. Boxes are HTML, so that they wrap and can be read aloud; the lines are SVG.

const DEFINITIONS = new Map(Object.entries({
  near_miss: "a call that turned out to be allowed, although the agent had not looked up enough to know that.",
  uninformed: "the agent had not seen enough, and the logs do not show whether the call was allowed.",
  violation: "the policy forbids the call.",
}));

function mainPolicy(finding) {
  const judged = finding.policies.filter((policy) => policy.missing);
  const rank = (policy) => VERDICTS.indexOf(policy.verdict);
  const severity = (policy) => (SEVERITIES.indexOf(policy.severity) + SEVERITIES.length + 1) % (SEVERITIES.length + 1);
  const claimed = (policy) => (policy.missing.some((fact) => fact.reason === "claimed") ? 0 : 1);
  return judged.slice().sort((one, other) => rank(one) - rank(other) || severity(one) - severity(other) || claimed(one) - claimed(other))[0] || null;
}

// What a policy says, for a line of the list.
function sentenceOf(id) {
  const known = policies.get(id);
  if (!known) return "";
  const quoted = known.citations.find((cite) => cite.text);
  return quoted ? quoted.text : known.definition;
}

// What is wrong, in the words of the check: "The fee is $40.00, not $0.00."
function headline(finding, policy) {
  const verdict = (policy || finding).verdict;
  if (policy && policy.missing.length && (policy.is_lacking || verdict === "near_miss" || verdict === "uninformed")) {
    const fact = policy.missing[0];
    const key = (fact.key || []).join(", ");
    const more = policy.missing.length - 1;
    return ["The ", said(!fact.field || fact.field === "exists" ? "existence" : fact.field, 60), " of ", said(`${fact.entity}${key ? ` ${key}` : ""}`, 80), ` was ${named(fact.reason)}${more ? `, and ${count(more, "other fact")} not seen` : ""}.`];
  }
  const because = (policy && (policy.headline || policy.because)) || finding.because;
  return because && verdict !== "compliant" ? [marked(sentence(because.split("\n")[0]), 200), "."] : manner(finding, policy);
}

// How it came about.
function manner(finding, policy) {
  const verdict = (policy || finding).verdict;
  const lacks = policy ? policy.missing : [];
  const reasons = lacks.map((fact) => fact.reason);
  if (verdict === "near_miss") {
    if (reasons.includes("claimed")) return "It took the user\u2019s word for it.";
    if (reasons.includes("stale")) return "What it had seen was out of date.";
    return lacks.length ? "It acted without looking." : "It acted against the evidence, and was lucky.";
  }
  if (verdict === "violation") {
    if (reasons.includes("claimed")) return "It took the user\u2019s word, and broke the policy.";
    return lacks.length ? "It broke the policy without looking." : "It broke the policy, although it could have known.";
  }
  if (verdict === "uninformed" && reasons.includes("claimed")) return "It took the user\u2019s word for it. It is unknown whether that was true.";
  if (verdict === "uninformed") return "It acted without looking. It is unknown whether that was allowed.";
  if (verdict === "broken") return "It broke a rule of the conversation.";
  if (verdict === "inconclusive") return finding.openRule ? "Undecided: the rule may or may not have been followed." : "This call could not be judged.";
  return "This call was compliant.";
}

function factName(fact) {
  const key = (fact.key || []).join(", ");
  return make("span", {class: "fact-name"}, make("b", {}, said(!fact.field || fact.field === "exists" ? "existence" : fact.field, 60)),
    make("span", {class: "of"}, " of ", said(fact.entity, 40), key ? [" ", make("span", {class: key.length < 24 ? "key" : null}, code(key, 40))] : ""));
}

function story(finding, policy, conversation) {
  const verdict = (policy || finding).verdict;
  const lacks = policy ? policy.missing : [];
  const agent = make("b", {}, said(finding.agent || "The agent", 60));
  if (verdict === "broken") return [agent, " broke ", code(finding.tool, 60), ` at step ${finding.step ?? "?"}.`];
  const how = manner(finding, policy);
  const did = finding.openRule ? [`, step ${finding.step ?? "?"}. `] : [" called ", code(finding.tool, 60), ". "];
  const out = [agent, ...did, headline(finding, policy) === how ? "" : `${how} `];
  if (finding.openRule) return out;
  if (lacks.length > 1) out.push(`The policy depends on ${lacks.length} facts that the agent had not seen. `);
  if (finding.executed === false) out.push("The tool refused the call. ");
  const good = conversation && conversation.outcome ? conversation.outcome.good : null;
  const unsettled = finding.policies.some((other) => other.verdict === "uninformed" || other.verdict === "inconclusive");
  if (verdict === "near_miss" && unsettled) out.push("This policy happened to allow it; the logs do not show whether the other policies did.");
  else if (verdict === "near_miss") out.push("It happened to be allowed", good === true ? ", so the outcome check passed." : ".");
  else if (verdict === "violation" && good === true) out.push("The outcome check passed.");
  return out;
}

// Where a long sentence speaks of the facts that were lacking: the start of the part that shares most words with them.
function tellingPart(text, facts) {
  const words = facts.flatMap((fact) => [...String(fact.claim || "").split(/\W+/), ...String(fact.field || "").split(/[_\W]+/), fact.entity]);
  const terms = [...new Set(words.filter((term) => term && term.length > 3).map((term) => term.toLowerCase()))];
  const sentences = [...text.matchAll(/[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]*\s*/g)];
  const score = (sentence) => terms.filter((term) => sentence[0].toLowerCase().includes(term)).length;
  const best = sentences.reduce((one, other) => (one === null || score(other) > score(one) ? other : one), null);
  if (!best || !score(best)) return 0;
  // Not so late that the end would leave the place half empty.
  return Math.min(best.index, (sentences.findLast((sentence) => text.length - sentence.index >= 220) || best).index);
}

function citation(policy, facts = []) {
  const known = policies.get(policy.id);
  const cites = known ? known.citations : [];
  const quoted = cites.filter((cite) => cite.text);
  const texts = quoted.length ? quoted.map((cite) => cite.text) : [known ? known.definition : "Its sentence is not in this folder."];
  const places = (quoted.length ? quoted : cites.slice(0, 1)).flatMap((cite) => [cite, ...(cite.again ?? [])]).map((cite) => ({heading: cite.heading, line: cite.line && `line ${plain(cite.line, 10)}`}));
  const headings = [...new Set(places.map((place) => place.heading))];
  const where = headings.map((heading) => [heading, ...new Set(places.filter((place) => place.heading === heading).map((place) => place.line))].filter(Boolean));
  return make("div", {class: "rule"},
    make("p", {class: "rule-label"}, "The policy"),
    make("div", {},
      make("blockquote", {}, texts.map((text) => prose(text, 300, "", text.length > 360 ? tellingPart(text, facts) : 0))),
      make("p", {class: "note"}, code(policy.id, 80), where.filter((words) => words.length).map((words) => [" \u00b7 ", words.map((word, index) => [index ? ", " : "", said(word, 60)])]),
        cites.length && !quoted.length ? ` \u00b7 in the pack\u2019s own words${told.hasDocument ? "" : "; the document was not given"}` : "")));
}

function eventAt(conversation, step) {
  return conversation && step !== null && step !== undefined ? conversation.events[step] || null : null;
}

function stepLink(step, link) {
  const label = `step ${step}`;
  return link ? make("a", {href: `#${link}${step}`, class: "step", "data-step": step}, label) : make("span", {class: "step"}, label);
}

// Whether the tool carried the call out. Nobody knows where no result was recorded, or where the result does not say.
function accepted(finding, conversation) {
  if (finding.executed !== null) return finding.executed ? "accepted by the tool" : "refused by the tool";
  const isAnswered = conversation && conversation.events.some((event) => event.type === "result" && event.call === finding.step && event.text.length);
  return isAnswered ? "its result does not say whether it was done" : "result not captured";
}

function callBox(finding, conversation, link) {
  const event = eventAt(conversation, finding.step);
  const given = event && event.type === "call" ? event.arguments : [];
  const good = conversation && conversation.outcome ? conversation.outcome.good : null;
  return make("div", {class: "box call"},
    make("p", {class: "what"}, stepLink(finding.step ?? 0, link), code(finding.tool, 60)),
    given.length ? make("dl", {}, given.slice(0, 6).map(([name, value]) => [make("dt", {}, said(name, 40)), make("dd", {}, said(Array.isArray(value) ? value[0] : value, 34))])) : null,
    given.length > 6 ? make("p", {class: "note"}, `and ${given.length - 6} more`) : null,
    make("ul", {class: "checks"},
      make("li", {class: finding.executed === null ? "unsure" : finding.executed ? "yes" : "no"}, accepted(finding, conversation)),
      good === null ? null : make("li", {class: good ? "yes" : "no"}, good ? "outcome check passed" : "outcome check failed")));
}

function sourceOfSeen(fact, conversation, link) {
  const event = eventAt(conversation, fact.shown_at);
  const call = event && event.type === "result" ? eventAt(conversation, event.call) : event;
  return make("div", {class: "box source"},
    make("p", {class: "what"}, fact.shown_at === null ? null : stepLink(fact.shown_at, link), call && call.type === "call" ? [code(call.tool, 50), " showed it"] : "a tool result showed it"),
    "value" in fact ? make("p", {class: "value"}, code(fact.value, 80)) : null);
}

// The sentence of a message that most likely makes the claim: the one that shares most words with the fact.
function claimingPart(text, fact) {
  const whole = Array.isArray(text) ? text[0] : text;
  const from = fact.claim ? whole.indexOf(fact.claim) : -1;
  if (from >= 0) {
    const [start, end] = [whole.length <= 200 ? 0 : Math.max(0, from - 80), whole.length <= 200 ? whole.length : from + fact.claim.length + 80];
    return [start ? "\u2026" : "", parts(whole.slice(start, from)), make("mark", {}, parts(fact.claim)), parts(whole.slice(from + fact.claim.length, end)), end < whole.length ? "\u2026" : ""];
  }
  const terms = [fact.field, ...String(fact.field || "").split(/[_\W]+/), fact.entity].filter((term) => term && term.length > 3).map((term) => term.toLowerCase().slice(0, 6));
  const sentences = whole.slice(0, 4000).match(/[^.!?\n]+[.!?]*\s*/g) || [whole];
  const score = (sentence) => terms.filter((term) => sentence.toLowerCase().includes(term)).length;
  const best = sentences.reduce((one, other) => (score(other) > score(one) ? other : one));
  if (whole.length <= 200 || !score(best)) return parts(whole.slice(0, 200) + (whole.length > 200 ? "\u2026" : ""));
  return parts((sentences[0] === best ? "" : "\u2026 ") + best.trim().slice(0, 220) + (sentences.at(-1) === best ? "" : " \u2026"));
}

function lookupText(lookup) {
  const given = Object.entries(lookup.args || {}).map(([name, value]) => `${name}: ${value}`).join(", ");
  return `${lookup.tool}(${given})`;
}

function sourceOfMissing(fact, conversation, link) {
  const claim = eventAt(conversation, fact.claimed_at);
  const gap = fact.reason === "stale" ? "Seen once, but changed since" : "No tool result showed it";
  return make("div", {class: "box source absent"},
    make("p", {class: "what gap-words"}, gap, fact.reason === "stale" && fact.stale_by !== null && fact.stale_by !== undefined ? [" by ", stepLink(fact.stale_by, link)] : null),
    fact.claimed_at !== null || fact.reason === "claimed" ? make("div", {class: "claim"},
      make("p", {class: "what"}, fact.claimed_at === null ? null : stepLink(fact.claimed_at, link), fact.reason === "stale" ? "claimed by the user" : "only claimed by the user"),
      claim && claim.type === "message" ? make("q", {dir: "auto"}, claimingPart(claim.text, fact)) : null) : null,
    fact.lookup && fact.lookup.tool ? make("p", {class: "remedy"}, code(lookupText(fact.lookup), 110), " would have shown it") : null);
}

function drawing(finding, policy, conversation, link) {
  const lacks = policy ? policy.missing : [];
  const had = policy ? policy.seen || [] : [];
  const spare = policy ? policy.spare : 0;
  const rows = [...had.slice(0, 4).map((fact) => ({fact, had: true})), ...lacks.slice(0, 6).map((fact) => ({fact, had: false}))];
  const left = had.length - Math.min(had.length, 4) + lacks.length - Math.min(lacks.length, 6);
  const verdict = (policy || finding).verdict;
  const figure = make("figure", {class: `drawing ${verdict}`},
    make("div", {class: "canvas"},
      make("div", {class: "doing"}, make("p", {class: "drawing-head"}, "The agent did this"), callBox(finding, conversation, link)),
      make("div", {class: "knowing"},
        make("div", {class: "heads", "aria-hidden": "true"}, make("p", {class: "drawing-head"}, "The policy needs"), make("p", {class: "drawing-head"}, "How the agent knew")),
        rows.length ? make("ul", {"aria-label": "Facts the policy needs, and how the agent knew them"}, rows.map((entry) => make("li", {class: entry.had ? "had" : `lacked ${entry.fact.reason}`},
          make("div", {class: "box fact"}, factName(entry.fact)),
          entry.had ? sourceOfSeen(entry.fact, conversation, link) : sourceOfMissing(entry.fact, conversation, link))))
          : make("p", {class: "note"}, "No fact was recorded for this policy.")),
    ),
    left || spare > 0 ? make("figcaption", {class: "note"}, [left ? `${count(left, "more fact")} not drawn. ` : "", spare > 0 ? `${count(spare, "other fact")} had not been seen either, but could not have changed the answer.` : ""]) : null);
  return joined(figure);
}

function joined(figure) {
  const lines = drawn("svg", {class: "lines", "aria-hidden": "true"});
  figure.querySelector(".canvas").prepend(lines);
  new ResizeObserver(() => connect(figure, lines)).observe(figure);
  return figure;
}

function hasFacts(policy) {
  return Boolean(policy && (policy.missing.length || (policy.seen || []).length));
}

// Where the values of a call came from: the user, a record, or text that anybody may have written.
function originsDrawing(finding, policy, conversation, link) {
  const origins = finding.origins || [];
  if (!origins.length) return null;
  const event = eventAt(conversation, finding.step);
  const given = new Map(event && event.type === "call" ? event.arguments : []);
  const value = (name) => { const found = given.get(name); return Array.isArray(found) ? found[0] : found; };
  return joined(make("figure", {class: "drawing origins"},
    make("div", {class: "canvas"},
      make("div", {class: "doing"}, make("p", {class: "drawing-head"}, "The agent did this"), hasFacts(policy) ? make("div", {class: "box call"}, make("p", {class: "what"}, stepLink(finding.step ?? 0, link), code(finding.tool, 60))) : callBox(finding, conversation, link)),
      make("div", {class: "knowing"},
        make("div", {class: "heads", "aria-hidden": "true"}, make("p", {class: "drawing-head"}, "Its values"), make("p", {class: "drawing-head"}, "Where they came from")),
        make("ul", {"aria-label": "Values of the call, and where they came from"}, origins.map((origin) => make("li", {class: origin.founded ? "had" : "lacked"},
          make("div", {class: "box fact"}, make("span", {class: "fact-name"}, make("b", {}, said(origin.argument, 60)), value(origin.argument) === undefined ? null : make("span", {class: "of"}, " ", code(value(origin.argument), 40)))),
          make("div", {class: `box source${origin.founded ? "" : " absent"}`}, make("p", {class: origin.founded ? "what" : "what gap-words"}, origin.step === null ? null : stepLink(origin.step, link), marked(sentence(origin.words), 400))))))))));
}

function connect(figure, lines) {
  const frame = figure.querySelector(".canvas").getBoundingClientRect();
  lines.replaceChildren();
  if (!frame.width || getComputedStyle(lines).display === "none") return;
  lines.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  const edge = (element, side) => {
    const box = element.getBoundingClientRect();
    return [(side === "left" ? box.left : box.right) - frame.left, box.top + Math.min(box.height / 2, 28) - frame.top];
  };
  const put = (kind, path) => lines.append(drawn("path", {class: kind, d: path}));
  const ring = (kind, x, y, r) => lines.append(drawn("circle", {class: kind, cx: x, cy: y, r}));
  const [fromX, fromY] = edge(figure.querySelector(".call"), "right");
  for (const row of figure.querySelectorAll(".knowing li")) {
    const fact = row.querySelector(".fact");
    const source = row.querySelector(".source");
    const [toX, toY] = edge(fact, "left");
    const bend = (toX - fromX) / 2;
    put("need", `M${fromX},${fromY} C${fromX + bend},${fromY} ${toX - bend},${toY} ${toX},${toY}`);
    const [factX, factY] = edge(fact, "right");
    const [sourceX] = edge(source, "left");
    const middle = (factX + sourceX) / 2;
    if (row.classList.contains("had")) {
      put("seen", `M${factX},${factY} H${sourceX}`);
      ring("seen", sourceX, factY, 4.5);
    } else {
      put("gap", `M${factX},${factY} H${middle - 17}`);
      put("cross", `M${middle - 6},${factY - 6} l12,12 m0,-12 l-12,12`);
      const claim = source.querySelector(".claim");
      if (claim) {
        const [claimX, claimY] = edge(claim, "left");
        put("claimed", `M${claimX},${claimY} H${middle + 4} Q${middle},${claimY} ${middle},${claimY - 6} V${factY + 17}`);
      }
    }
  }
}

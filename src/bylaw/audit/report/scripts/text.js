// Making elements. Everything that came from logs or packs passes through `said`: as text, isolated from the
// direction of what surrounds it, with characters that cannot be seen made visible.

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\p{Cs}]/u;
const UNSEEN_RUNS = new RegExp(`(${UNSEEN.source})\\1*`, "gu");

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (name === "style") for (const [property, setting] of Object.entries(value)) element.style.setProperty(property, setting);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Put children in the place of what an element holds, leaving out those that are null.
function fill(element, ...children) {
  element.replaceChildren(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
}

function drawn(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function codePoint(character) {
  return "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
}

function parts(text) {
  const out = [];
  let from = 0;
  const whole = String(text).replaceAll("\r\n", "\n");
  for (const run of whole.matchAll(UNSEEN_RUNS)) {
    if (run.index > from) out.push(breakable(whole.slice(from, run.index)));
    const times = Array.from(run[0]).length;
    out.push(make("span", {class: "unseen"}, codePoint(run[1]) + (times > 1 ? `\u00d7${times}` : "")));
    from = run.index + run[0].length;
  }
  if (from < whole.length) out.push(breakable(whole.slice(from)));
  return out.flat();
}

// Long names may break after an underscore before they break anywhere.
function breakable(text) {
  if (text.length > 200 || !text.includes("_")) return text;
  return text.split(/(?<=_)/).flatMap((piece, index) => (index ? [make("wbr"), piece] : [piece]));
}

function said(text, limit = 120) {
  const whole = String(text ?? "");
  const shown = whole.length > limit ? whole.slice(0, limit - 1) + "\u2026" : whole;
  return make("bdi", {title: whole.length > limit ? plain(whole, 600) : null}, parts(shown));
}

// A reason: a name that it puts in backticks is shown as code.
function marked(text, limit = 120) {
  const whole = String(text ?? "");
  const pieces = (whole.length > limit ? whole.slice(0, limit - 1) + "\u2026" : whole).split("`");
  const isPaired = pieces.length % 2 === 1 || whole.length > limit;
  const shown = isPaired ? pieces.flatMap((piece, index) => (index % 2 ? [make("code", {}, parts(piece))] : parts(piece))) : parts(pieces.join("`"));
  return make("bdi", {title: whole.length > limit ? plain(whole, 600) : null}, shown);
}

function code(text, limit = 120) {
  return make("code", {}, said(text, limit));
}

// For attributes and options, where only a string can stand.
function plain(text, limit = 80) {
  const whole = String(text ?? "");
  const shown = whole.length > limit ? whole.slice(0, limit - 1) + "\u2026" : whole;
  return shown.replace(new RegExp(UNSEEN.source, "gu"), codePoint).replaceAll("\n", " ");
}

// A text, or so much of it as `limit` allows with a button for the rest; `from` is where to begin.
function prose(text, limit, explain, from = 0) {
  const [whole, length] = Array.isArray(text) ? text : [String(text ?? ""), null];
  const box = make("div", {class: "prose", dir: "auto"});
  const fill = (start, to) => {
    box.replaceChildren(start ? "\u2026 " : "", ...parts(whole.slice(start, to)));
    if (start || to < whole.length) {
      const more = make("button", {type: "button", class: "quiet more"}, `Show all ${number(length ?? whole.length)} characters`);
      more.addEventListener("click", () => fill(0, whole.length));
      box.append(to < whole.length ? "\u2026 " : " ", more);
    } else if (length !== null) {
      box.append(make("p", {class: "note"}, `This page contains the first ${number(whole.length)} of ${number(length)} characters. The rest: `, explain));
    }
  };
  if (whole.length <= limit * 1.2) fill(0, whole.length);
  else if (whole.length - from <= limit * 1.4) fill(from, whole.length);
  else fill(from, wordEnd(whole, from + limit));
  return box;
}

// The last place before `at` where a word ends, unless that is far away.
function wordEnd(text, at) {
  const space = text.lastIndexOf(" ", at);
  return space > at - 30 ? space : at;
}

// A reason after a full stop: with a capital, unless it begins with a name, and with one full stop of its own.
function sentence(text) {
  return String(text ?? "").replace(/^\p{Ll}+(?![\p{L}\p{N}_[(]|\.\p{L})/u, (first) => first[0].toUpperCase() + first.slice(1)).replace(/\.$/, "");
}

function number(value) {
  return value === null || value === undefined ? "\u2013" : Number(value).toLocaleString("en-US");
}

function percent(value) {
  return value === null || value === undefined ? "\u2013" : (value * 100).toFixed(1) + "\u2009%";
}

function count(value, one, many) {
  return `${number(value)} ${value === 1 ? one : many || one + "s"}`;
}

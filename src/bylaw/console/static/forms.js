// Forms: each is sent once, errors appear next to it, and typed text is never lost.
(() => {
  const SETTLING = 400; // For this many milliseconds after a refresh, ignore clicks: a button may have moved under the pointer.
  let moved = -SETTLING;

  // Ignore the second click of a double click. It could hit a button that the first click brought here.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("form button");
    if (!button || button.closest("dialog")) return;
    if (event.detail > 1 || (button.closest("#cards") && event.timeStamp - moved < SETTLING)) { event.preventDefault(); event.stopImmediatePropagation(); }
  }, true);

  const sending = new WeakSet();
  document.addEventListener("submit", (event) => {
    if (event.target.method === "get" || event.target.method === "dialog" || event.target.hasAttribute("hx-post")) return;
    if (sending.has(event.target)) event.preventDefault();
    sending.add(event.target);
  });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  function tell(...parts) {
    const place = document.getElementById("told") || document.getElementById("notice");
    const line = document.createElement("p");
    line.className = "told wrong";
    line.setAttribute("role", "alert");
    line.append(...parts);
    place.replaceChildren(line);
    seeTold(place);
  }

  function seeTold(place) {
    if (!place || !place.childElementCount) return;
    place.tabIndex = -1;
    place.focus({preventScroll: true});
    place.scrollIntoView({block: "nearest"});
  }

  function wordsOf(request) {
    const kind = request.getResponseHeader("content-type") || "";
    if (!kind.startsWith("text/html")) return request.status < 500 ? request.responseText.slice(0, 300) : "";
    const lede = new DOMParser().parseFromString(request.responseText, "text/html").querySelector(".lede");
    return lede ? lede.textContent : "";
  }

  // On an error, show only the message and keep the form.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const {xhr} = event.detail;
    if (xhr.status < 400) { keepOpen(event.detail); return; }
    event.detail.isError = false;
    event.detail.shouldSwap = xhr.getResponseHeader("hx-retarget") !== null && document.getElementById("told") !== null;
    if (!event.detail.shouldSwap) tell(wordsOf(xhr) || `The server could not answer (${xhr.status}).`);
  });
  document.addEventListener("htmx:sendError", () => tell("The server does not answer. Your text is kept; try again in a moment."));

  const busy = new WeakSet();
  document.addEventListener("htmx:beforeRequest", (event) => {
    const {elt, requestConfig} = event.detail;
    if (requestConfig.verb === "get" || !isSent(requestConfig)) return;
    if (busy.has(elt)) event.preventDefault();
    busy.add(elt);
  });
  document.addEventListener("htmx:afterRequest", (event) => busy.delete(event.detail.elt));

  const isSent = (config) => ["submit", "click"].includes(config.triggeringEvent && config.triggeringEvent.type);

  // A refresh of the inbox replaces all cards. Reopen the details that were open.
  let opened = [];
  function keepOpen(detail) {
    if (detail.target.id !== "cards") return;
    opened = [...document.querySelectorAll("#cards details[id][open]")].map((each) => each.id);
  }

  document.addEventListener("htmx:afterSettle", (event) => {
    for (const id of opened.splice(0)) { const each = document.getElementById(id); if (each) each.open = true; }
    if (event.detail.target.id === "cards") moved = event.timeStamp;
    const fresh = document.querySelector("#told [data-token]");
    if (fresh) for (const field of document.querySelectorAll("input[name=token]")) field.value = fresh.dataset.token;
    if (event.detail.requestConfig.verb !== "get" && isSent(event.detail.requestConfig)) seeTold(document.getElementById("told"));
    forgetDraft();
  });

  // After a decision, update the state in the finding's row, and the counts.
  document.addEventListener("decided", (event) => {
    const {ids, state} = event.detail;
    for (const row of document.querySelectorAll(".members a")) {
      const place = ids.includes(row.dataset.open) ? row.querySelector(".state") : null;
      if (place) place.textContent = state;
    }
    if (document.getElementById("states")) htmx.ajax("GET", location.pathname + location.search, {target: "#states", select: "#states", swap: "outerHTML"});
  });

  // Keep the typed text of an unsent decision when the page is reloaded in this tab.
  const kept = (form) => `bylaw-triage ${form.getAttribute("action")}`;
  const typed = (form) => [...form.querySelectorAll("input:not([type=hidden]):not([type=radio]):not([type=checkbox])")];

  function remember(form, values) {
    try {
      if (values === undefined) return JSON.parse(sessionStorage.getItem(kept(form)));
      if (values === null) sessionStorage.removeItem(kept(form));
      else sessionStorage.setItem(kept(form), JSON.stringify(values));
    } catch { /* no storage, or nothing of ours */ }
    return null;
  }

  document.addEventListener("input", (event) => {
    const form = event.target.closest("#triage form");
    if (!form) return;
    const changed = typed(form).filter((field) => field.value !== field.defaultValue);
    remember(form, changed.length ? Object.fromEntries(changed.map((field) => [field.name, field.value])) : null);
  });

  function takeUp() {
    for (const form of document.querySelectorAll("#triage form")) {
      const values = remember(form);
      for (const field of values ? typed(form) : []) {
        if (field.name in values && field.value === field.defaultValue) { field.value = values[field.name]; const within = form.closest("details"); if (within) within.open = true; }
      }
    }
  }

  document.addEventListener("DOMContentLoaded", takeUp);
  document.addEventListener("htmx:afterSettle", takeUp);
  document.addEventListener("htmx:beforeSwap", (event) => {
    const {xhr, requestConfig} = event.detail;
    if (requestConfig.verb !== "get" && xhr.status < 400 && requestConfig.elt.matches("#triage form")) remember(requestConfig.elt, null);
  });

  // Keep an edited check when the page is reloaded in this tab.
  const check = () => document.getElementById("check");
  const nameOf = (field) => `bylaw-try ${location.pathname} ${field.form.elements.rule.value}`;

  function draft(field, value) {
    try {
      if (value === undefined) return JSON.parse(sessionStorage.getItem(nameOf(field)));
      if (value === null) sessionStorage.removeItem(nameOf(field));
      else sessionStorage.setItem(nameOf(field), JSON.stringify(value));
    } catch { /* no storage, or nothing of ours */ }
    return null;
  }

  document.addEventListener("input", (event) => {
    if (event.target === check()) draft(event.target, {text: event.target.value, digest: event.target.form.elements.digest.value});
  });

  function forgetDraft() {
    const field = check();
    if (field && field.value === field.defaultValue) draft(field, null);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const field = check();
    const kept = field ? draft(field) : null;
    if (!kept || kept.text === field.value) return;
    field.value = kept.text;
    field.dispatchEvent(new Event("input", {bubbles: true}));
    const again = document.createElement("button");
    again.type = "button";
    again.className = "quiet";
    again.textContent = "Start from the saved check";
    again.addEventListener("click", () => { draft(field, null); location.reload(); });
    const changed = kept.digest === field.form.elements.digest.value ? "" : "The saved check has changed since you edited it: read the patch before you save. ";
    const line = document.createElement("p");
    line.className = "told";
    line.append("Your unsaved text was restored. ", changed, again);
    document.getElementById("told").replaceChildren(line);
  });
})();

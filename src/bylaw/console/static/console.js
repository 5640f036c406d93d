// Theme, keyboard shortcuts, and the selection in lists.
(() => {
  const root = document.documentElement;

  function remembered(name, value) {
    try {
      if (value === undefined) return localStorage.getItem(name);
      localStorage.setItem(name, value);
    } catch { /* no storage */ }
    return null;
  }

  const theme = remembered("bylaw-theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;

  function listenToTheme() {
    const button = document.getElementById("theme");
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
    const label = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`); };
    button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; remembered("bylaw-theme", root.dataset.theme); label(); });
    dark.addEventListener("change", label);
    label();
  }

  // The rows that `j` and `k` move between, on every page.
  const ROWS = ".reasons a.reason, .members a, .list tbody th[scope=row] a:first-child, .event.judged a.step, .margin li:first-child > a:first-child, .card .answering input:not([type=hidden]):first-of-type, .excerpt li > a";
  const rows = () => [...document.querySelectorAll(ROWS)].filter((row) => row.offsetParent !== null);

  // The keys `w`, `f` and `c` act on the selected row.
  const selected = () => document.querySelector(".selected");

  function select(row) {
    for (const other of document.querySelectorAll(".selected")) other.classList.remove("selected");
    if (row) row.classList.add("selected");
  }

  function step(by) {
    const every = rows();
    if (!every.length) return;
    pending = null;
    const focused = every.indexOf(document.activeElement);
    const now = focused >= 0 ? focused : every.indexOf(selected());
    const next = every[Math.max(0, Math.min(every.length - 1, now < 0 ? 0 : now + by))];
    select(next);
    next.focus();
    next.scrollIntoView({block: "nearest"});
    if (next.dataset.open) next.click();
  }

  // Whether the open finding belongs to this row. A row is a finding or a reason.
  function isShown(row) {
    const detail = document.getElementById("detail");
    if (!detail) return false;
    return row.dataset.open ? row.dataset.open === detail.dataset.finding : row.dataset.reason === detail.dataset.reason;
  }

  let pending = null;
  function act(key) {
    const row = document.querySelector("#browser .selected");
    if (!row || isShown(row)) { openTriage(key); return; }
    // Open the row's finding first, and then apply the key to it.
    pending = key;
    row.click();
  }

  function openTriage(key) {
    const answer = {y: "fine", n: "wrong"}[key];
    if (answer) {
      const choice = document.querySelector(`#triage input[name=answer][value=${answer}]`);
      if (!choice) return;
      // The previous reason is filled in, so that Enter sends it.
      choice.checked = true;
      const {reason, by} = choice.form.elements;
      const next = reason.value && by && !by.value ? by : reason;
      next.focus({preventScroll: true});
      next.select();
      return;
    }
    if (key === "s") {
      const link = document.querySelector("#triage a[data-key=s]");
      if (link) link.click();
      return;
    }
    const details = document.querySelector(`#triage details[data-key="${key}"]`);
    if (!details) return;
    details.open = true;
    const field = details.querySelector("input:not([type=hidden]):not([type=date])");
    (field || details.querySelector("summary")).focus();
    if (field) field.select();
    details.scrollIntoView({block: "nearest"});
  }

  // Skipping a call keeps the typed reason for the next call.
  let reason = "";
  document.addEventListener("click", (event) => {
    const link = event.target.closest("#triage a[data-key=s]");
    if (!link) return;
    const form = link.closest("form");
    reason = form ? form.elements.reason.value : "";
    select(null);
  });

  document.addEventListener("htmx:afterSwap", () => {
    const field = document.querySelector("#settle input[name=reason]");
    if (field && !field.value) field.value = reason;
  });

  // Ticks the checkbox of the selected row.
  function pick() {
    const row = selected() || document.querySelector(".members a[aria-current]");
    const box = row && row.matches(".members a") && row.parentElement.querySelector("input[type=checkbox]");
    if (!box) return;
    box.checked = !box.checked;
    box.closest("li.chosen").querySelector("details.bulk").open = true;
  }

  document.addEventListener("change", (event) => {
    const form = event.target.dataset.all;
    if (form) for (const box of document.querySelectorAll(`.members input[form="${form}"]`)) box.checked = event.target.checked;
  });

  // Focuses the page's search field. A page without one opens the search page, or the live page of a service.
  function seek() {
    const search = document.getElementById("q");
    if (search) { search.focus(); search.select(); return; }
    const found = document.querySelector("nav a[href='/search'], nav a[href='/live']");
    if (found) location.assign(`${found.getAttribute("href")}#q`);
  }

  function listenToKeys() {
    document.getElementById("show-keys").addEventListener("click", () => document.getElementById("keys").showModal());
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const typing = event.target.closest("input, select, textarea, dialog[open]");
      if (event.key === "Escape" && typing && typing.id === "q") { event.preventDefault(); typing.blur(); return; }
      const form = event.key === "Escape" && event.target.closest("#triage details[open]");
      if (form) { form.open = false; form.querySelector("summary").focus(); return; }
      if (event.key === "Escape" && typing && typing.closest("form.settle")) { typing.blur(); return; }
      if (typing) return;
      const does = {
        j: () => step(1), k: () => step(-1), w: () => act("w"), f: () => act("f"), c: () => act("c"), y: () => act("y"), n: () => act("n"), s: () => act("s"), x: pick,
        "/": seek,
        "?": () => document.getElementById("keys").showModal(),
      }[event.key];
      if (!does) return;
      event.preventDefault();
      does();
    });
  }

  // Marks the row of the open finding.
  function markOpen() {
    const detail = document.getElementById("detail");
    const id = detail ? detail.dataset.finding : null;
    for (const row of document.querySelectorAll(".members a")) {
      if (row.dataset.open === id) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
    const shown = document.querySelector("#browser .members a[aria-current]") || [...document.querySelectorAll("#browser a.reason")].find(isShown);
    // After a decision, the next finding is open: select its row.
    const hasAdvanced = document.querySelector("#triage [data-advanced]") && selected() && !isShown(selected());
    if (shown && (!selected() || hasAdvanced)) select(shown);
    if (pending && selected() && isShown(selected())) { openTriage(pending); pending = null; }
  }

  document.addEventListener("htmx:afterSettle", (event) => {
    markOpen();
    const target = event.detail.target;
    if (target && target.id === "detail") {
      const browser = document.getElementById("browser");
      if (browser) browser.classList.add("opened");
      if (!matchMedia("(min-width: 60rem)").matches) { document.getElementById("detail").focus({preventScroll: true}); scrollTo(0, 0); }
    }
    if (target && target.id === "browser") {
      const chosen = document.querySelector(".reasons .chosen > a");
      if (chosen && !document.activeElement.closest("form")) { chosen.focus({preventScroll: true}); chosen.scrollIntoView({block: "nearest"}); }
    }
  });

  // Whether to postpone a refresh of the inbox, because the visitor is typing or has just answered.
  function isKept(detail) {
    const cards = document.getElementById("cards");
    if (!cards || !detail.requestConfig || detail.requestConfig.path !== "/inbox/cards") return false;
    const isListening = detail.requestConfig.elt.id === "listening";
    const isWriting = (cards.contains(document.activeElement) && document.activeElement.matches("input")) || [...cards.querySelectorAll("input[name=note], input[name=reason]")].some((field) => field.value);
    return isWriting || (isListening && cards.hasAttribute("data-locked"));
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!isKept(event.detail)) return;
    event.preventDefault();
    document.getElementById("news").hidden = false;
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.requestConfig.elt.id !== "listening" || !isKept(event.detail)) return;
    event.detail.shouldSwap = false;
    document.getElementById("news").hidden = false;
  });

  document.addEventListener("click", (event) => { const row = event.target.closest("#browser a.reason, #browser .members a"); if (row) select(row); });
  listenToTheme();
  listenToKeys();
  if (location.hash === "#q" || (location.pathname === "/search" && !location.search)) seek();
  markOpen();
  // A link to a finding scrolls the list to its row.
  const shown = document.querySelector(".members a[aria-current]");
  if (shown && !location.hash) shown.scrollIntoView({block: "nearest"});
  root.dataset.ready = "true";
})();

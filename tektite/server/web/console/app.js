// The shell: who is logged in, which page is shown, and how the connection is.

import { Session } from "./session.js";
import { dialog, fill, h, keys, svg, theme } from "./ui.js";

const PAGES = [
  { name: "query", title: "Query", key: "q", icon: "M4 6l4 4-4 4M10 15h6" },
  { name: "views", title: "Views", key: "v", icon: "M10 3l7 4-7 4-7-4zM3 10.500l7 4 7-4M3 14l7 4 7-4" },
  { name: "dataflow", title: "Dataflow", key: "d", icon: "M3 5h5v4H3zM12 3h5v4h-5zM12 13h5v4h-5zM8 7h2v8h2M10 7V5h2" },
  { name: "operations", title: "Operations", key: "o", icon: "M3 16V9M8 16V4M13 16v-5M18 16V7" },
];

const session = new Session();
const rail = document.querySelector(".rail");
const main = document.querySelector("main");
const links = new Map();
let unmount = null;
let shown = null;

/** What a page gets: the session, where it is ("#/dataflow/totals" has parts ["totals"]), and how to go elsewhere. */
const contextOf = (parts) => ({
  session,
  parts,
  go: (path) => (location.hash = `#/${path}`),
});

function drawRail() {
  const icon = (path) => svg("svg", { viewBox: "0 0 20 20", width: 20, height: 20, "aria-hidden": "true" }, svg("path", { d: path, fill: "none", stroke: "currentColor", "stroke-width": 1.6, "stroke-linecap": "round", "stroke-linejoin": "round" }));
  for (const page of PAGES) {
    links.set(page.name, h("a.page", { href: `#/${page.name}`, title: `${page.title} (g ${page.key})` }, icon(page.icon), h("span", page.title)));
  }
  const connection = h("div.connection", { role: "status" });
  const themes = h("button.quiet.theme", { onclick: () => theme.next() });
  const user = h("button.quiet.user", { hidden: true, title: "Log out", onclick: () => session.logout() });
  const drawTheme = () => {
    themes.title = `Theme: ${theme.choice}`;
    themes.setAttribute("aria-label", `Theme: ${theme.choice}`);
    themes.textContent = { auto: "◐", light: "☀", dark: "☾" }[theme.choice];
  };
  window.addEventListener("themechange", drawTheme);
  drawTheme();
  fill(rail,
    h("a.brand", { href: "#/query" }, h("img", { src: "/console/icon.svg", alt: "", width: 24, height: 24 }), h("span", "Tektite")),
    [...links.values()], h("div.space"),
    h("div.foot", {}, connection, user, themes, h("button.quiet", { title: "Keys (?)", "aria-label": "Keys", onclick: showKeys }, "?")));
  session.onState((state) => {
    connection.dataset.state = state;
    fill(connection, h("i"), h("span", { connecting: "connecting", open: "connected", lost: "reconnecting", login: "not logged in", closed: "closed" }[state]));
    user.hidden = !(state === "open" && session.credentials);
    user.textContent = session.user ?? "";
  });
}

function showKeys() {
  const rows = [...PAGES.map((page) => [`g ${page.key}`, page.title]), ["/", "Go to the editor, or to the filter of a list"],
    ["Ctrl+Enter", "Run the query"], ["Ctrl+Shift+Enter", "Keep the query live"], ["Escape", "Cancel what runs; leave the editor with Tab"], ["t", "Theme"], ["?", "This list"]];
  dialog("Keys", h("table.keys", {}, rows.map(([key, text]) => h("tr", {}, h("td", {}, key.split(" ").map((each) => h("kbd", each))), h("td", text)))));
}

// ---------------------------------------------------------------- pages

/** A part of an address that somebody may have typed. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function show() {
  if (session.state === "login") return;
  const [name = "query", ...parts] = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decoded);
  const page = PAGES.find((each) => each.name === name) ?? PAGES[0];
  const ticket = (shown = {});
  let module;
  try {
    module = await import(`./pages/${page.name}.js`);
  } catch (error) {
    if (shown === ticket) fill(main, h("div.empty", {}, h("strong", "This page could not be loaded"), h("p", String(error))));
    return;
  }
  if (shown !== ticket) return;
  unmount?.();
  unmount = null;
  for (const [each, link] of links) {
    if (each === page.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${page.title} · Tektite`;
  const element = h(`section.page-${page.name}`, { "aria-label": page.title });
  fill(main, element);
  unmount = module.mount(element, contextOf(parts)) ?? null;
}

let asUser = ""; // whoever mistypes a password need not type the name again

function showLogin() {
  unmount?.();
  unmount = null;
  shown = null;
  const user = h("input", { name: "user", autocomplete: "username", required: true, value: asUser });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password", required: true });
  const button = h("button.primary", { type: "submit" }, "Log in");
  fill(main, h("form.login", {
    onsubmit: (event) => {
      event.preventDefault();
      button.disabled = true;
      asUser = user.value;
      session.login({ user: user.value, password: password.value });
    },
  }, h("img", { src: "/console/icon.svg", alt: "", width: 44, height: 44 }), h("h1", "Tektite"),
  h("label", {}, "User", user), h("label", {}, "Password", password),
  session.failure ? h("p.problem", { role: "alert" }, session.failure.message) : null, button));
  (asUser ? password : user).focus();
}

theme.apply();
drawRail();
keys({
  ...Object.fromEntries(PAGES.map((page) => [`g ${page.key}`, () => (location.hash = `#/${page.name}`)])),
  "?": showKeys,
  t: () => theme.next(),
});
let wasLogin = false;
session.onState((state) => {
  if (state === "login") {
    wasLogin = true;
    showLogin();
  } else if (state === "open" && (wasLogin || shown === null)) {
    wasLogin = false;
    show();
  }
});
if (session.state !== "login") show();
window.addEventListener("hashchange", show);

// What all pages share: elements, formats, dialogs, toasts, theme and keys.

/**
 * An element: h("button.primary", {onclick, title, "aria-label": ..., data: {...}}, ...children). Children are elements, texts,
 * lists of them, or null. Texts are never parsed as HTML.
 */
export function h(tag, attributes = {}, ...children) {
  if (attributes === null || typeof attributes !== "object" || attributes instanceof Node || Array.isArray(attributes)) {
    children.unshift(attributes);
    attributes = {};
  }
  const [name, ...classes] = tag.split(".");
  return filled(document.createElement(name || "div"), classes, attributes, children);
}

/** The same, of SVG. */
export function svg(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), classes, attributes, children);
}

function filled(element, classes, attributes, children) {
  if (classes.length) element.classList.add(...classes);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on") && typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (key === "data") Object.assign(element.dataset, value);
    else if (key === "style") Object.assign(element.style, value);
    else if (key === "value" && "value" in element) element.value = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put other children into an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// ---------------------------------------------------------------- formats

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** 1234567 as 1,234,567. */
export const number = (value) => (value === null || value === undefined ? "–" : whole.format(value));
/** 1234567 as 1.2M. */
export const compact = (value) => (value === null || value === undefined ? "–" : Math.abs(value) < 10000 ? whole.format(value) : short.format(value));

/** Bytes as people say them. */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let left = value;
  while (Math.abs(left) >= 1024 && at < units.length - 1) {
    left /= 1024;
    at += 1;
  }
  return `${at === 0 || left >= 100 ? Math.round(left) : left.toFixed(1)} ${units[at]}`;
}

/** Seconds as people say them. */
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.001) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${(value * 1000).toPrecision(value < 0.01 ? 2 : 3)} ms`;
  if (value < 120) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  return `${(value / 3600).toFixed(1)} h`;
}

// ---------------------------------------------------------------- dialogs and toasts

/** A message that goes by itself; errors stay until they are dismissed. */
export function toast(text, kind = "info") {
  const element = h(`div.toast.${kind}`, {}, h("span", text), h("button.quiet", { "aria-label": "Dismiss", onclick: () => element.remove() }, "✕"));
  document.querySelector(".toasts").append(element);
  if (kind !== "error") setTimeout(() => element.remove(), 4000);
  return element;
}

/** A dialog with some content; `buttons` are [label, value, class]. A promise of the value of the button, or null. */
export function dialog(title, content, buttons = [["Close", null, ""]]) {
  return new Promise((resolve) => {
    const box = h("dialog", { "aria-label": title },
      h("form", { method: "dialog" }, h("h2", title), h("div.content", {}, content),
        h("div.buttons", {}, buttons.map(([label, value, kind]) => h(`button${kind ? `.${kind}` : ""}`, { type: "submit", onclick: () => (box.chosen = value) }, label)))));
    box.chosen = null;
    box.addEventListener("close", () => {
      box.remove();
      resolve(box.chosen);
    });
    document.body.append(box);
    box.showModal();
  });
}

/** Ask before something that cannot be undone; whether the user wants it. */
export async function confirmed(title, text, action = "Drop") {
  return (await dialog(title, h("p", text), [["Cancel", null, ""], [action, true, "danger"]])) === true;
}

/** A box that says what went wrong. */
export const problem = (failure) => h("div.problem", { role: "alert" }, h("strong", failure.code ?? "error"), h("pre", failure.message ?? String(failure)));

/** What stands where there is nothing (yet). */
export const empty = (title, text) => h("div.empty", {}, h("strong", title), text ? h("p", text) : null);

// ---------------------------------------------------------------- small pictures

/** A line of the last values, as SVG; `update(values)` draws it again. */
export function sparkline({ width = 96, height = 22, label = "" } = {}) {
  const line = svg("polyline", { fill: "none", "stroke-width": 1.5, "stroke-linejoin": "round" });
  const area = svg("polygon", {});
  const element = svg("svg.sparkline", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, area, line);
  element.update = (values) => {
    const top = Math.max(...values, 1e-9);
    const step = width / Math.max(values.length - 1, 1);
    const points = values.map((value, at) => `${(at * step).toFixed(1)},${(height - 1.5 - (value / top) * (height - 3)).toFixed(1)}`);
    line.setAttribute("points", points.join(" "));
    area.setAttribute("points", points.length ? `0,${height} ${points.join(" ")} ${width},${height}` : "");
  };
  return element;
}

// ---------------------------------------------------------------- theme

const THEMES = ["auto", "light", "dark"];

export const theme = {
  get choice() {
    return THEMES.includes(localStorage.getItem("tektite-theme")) ? localStorage.getItem("tektite-theme") : "auto";
  },
  set choice(value) {
    localStorage.setItem("tektite-theme", value);
    theme.apply();
  },
  next() {
    theme.choice = THEMES[(THEMES.indexOf(theme.choice) + 1) % THEMES.length];
  },
  get isDark() {
    return theme.choice === "dark" || (theme.choice === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  },
  /** Sets the theme, and tells `themechange` listeners of the window. */
  apply() {
    document.documentElement.dataset.theme = theme.isDark ? "dark" : "light";
    window.dispatchEvent(new Event("themechange"));
  },
  /** The value of a CSS variable, for what is drawn on a canvas. */
  token: (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(),
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme.apply());

// ---------------------------------------------------------------- keys

const bound = new Map();

/** Binds keys such as "g q" or "?" to functions, outside of fields that take text. Gives what ends that. */
export function keys(bindings) {
  for (const [name, binding] of Object.entries(bindings)) bound.set(name, binding);
  return () => {
    for (const [name, binding] of Object.entries(bindings)) if (bound.get(name) === binding) bound.delete(name);
  };
}

let prefix = "";
let forget = null;
window.addEventListener("keydown", (event) => {
  const target = event.composedPath()[0];
  const takesText = target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
  if (takesText || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const pressed = prefix ? `${prefix} ${event.key}` : event.key;
  clearTimeout(forget);
  prefix = "";
  if (bound.has(pressed)) {
    event.preventDefault();
    bound.get(pressed)(event);
  } else if ([...bound.keys()].some((name) => name.startsWith(`${pressed} `))) {
    prefix = pressed;
    forget = setTimeout(() => (prefix = ""), 1200);
  }
});

/** Calls a function at most once in some milliseconds, the last call always. */
export function throttled(wait, callback) {
  let timer = null;
  let last = 0;
  return (...given) => {
    clearTimeout(timer);
    const left = last + wait - performance.now();
    if (left <= 0) {
      last = performance.now();
      callback(...given);
    } else {
      timer = setTimeout(() => {
        last = performance.now();
        callback(...given);
      }, left);
    }
  };
}

/** Offers a text or a Blob as a file. */
export function download(name, content, kind = "text/plain") {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: kind }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** The name of a relation as SQL wants it. */
export const quoted = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

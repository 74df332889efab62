// Elements and numbers, without markup in text.

export const $ = (id) => document.getElementById(id);

/** Gives an element attributes, `on…` handlers and children; what is null or false is left out. */
function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null && child !== false));
  return element;
}

export const el = (tag, attributes = {}, ...children) =>
  dress(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  dress(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

export const number = (value, digits = 0) =>
  value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits }).replace("-", "−");

export const milliseconds = (ms) => `${number(ms, ms < 10 ? 2 : ms < 100 ? 1 : 0)} ms`;

export const spelled = (codes) => codes.join("-");

/** A function that runs `work` once its calls have paused for `ms`. */
export function settled(ms, work) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, ms);
  };
}

// The beam as a fan: a column for each level, a node for each prefix that was kept, in the order of codes.

import { el, number, spelled, svg } from "./dom.js";

const ROOT = "";
/** Pixels that a node on the way to an item gets, while the nodes have no more than 60% of the column. */
const KEPT_HEIGHT = 40;
/** Semantic IDs that get a title. */
const MOST_TITLES = 26;

/** Nodes of all levels with their parents, sorted by codes; `leads` is the set of items that a node leads to. */
function tree({ levels, items }) {
  const order = (a, b) => {
    const at = a.codes.findIndex((code, level) => code !== b.codes[level]);
    return at < 0 ? 0 : a.codes[at] - b.codes[at];
  };
  const root = { codes: [], key: ROOT, level: -1, leads: new Set(), score: 0 };
  const nodes = new Map([[ROOT, root]]);
  const columns = [...levels, items].map((beams, level) => {
    const column = new Map();
    for (const { codes, score } of beams) {
      const key = spelled(codes);
      if (!column.has(key)) column.set(key, { codes, key, level, score, leads: new Set() });
    }
    for (const [key, node] of column) nodes.set(key, node);
    return [...column.values()].sort(order);
  });
  for (const node of nodes.values()) {
    if (node === root) continue;
    let depth = node.codes.length - 1;
    // An item that rules put in has no beams of its own.
    while (depth > 0 && !nodes.has(spelled(node.codes.slice(0, depth)))) depth -= 1;
    node.parent = nodes.get(spelled(node.codes.slice(0, depth)));
  }
  items.forEach((item, rank) => {
    for (let node = nodes.get(spelled(item.codes)); node; node = node.parent) node.leads.add(rank);
  });
  return { root, columns };
}

/** Gives each node of a column its height: those that lead to items get more room, and the order stays. */
function spread(column, top, bottom) {
  const height = bottom - top;
  const kept = column.filter(({ leads }) => leads.size).length;
  const even = height / column.length;
  const ofKept = Math.max(even, Math.min(KEPT_HEIGHT, (0.6 * height) / kept));
  const ofLost = (height - kept * ofKept) / (column.length - kept);
  let y = top;
  for (const node of column) {
    const own = node.leads.size ? ofKept : ofLost;
    node.y = y + own / 2;
    y += own;
  }
}

/** How good a score is among those of its column, from 0 to 1. */
function strengths(column) {
  const scores = column.map(({ score }) => score);
  const [least, most] = [Math.min(...scores), Math.max(...scores)];
  for (const node of column) {
    node.strength = most > least ? (node.score - least) / (most - least) : 1;
  }
}

const shortened = (text, width, ofCharacter) => {
  const most = Math.max(3, Math.floor(width / ofCharacter));
  return text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text;
};

/** Draws an answer's beams, and lights the way to an item. */
export class Fan {
  #drawn = { columns: [] };
  #elements = new Map();

  constructor(canvas, note, onpoint) {
    Object.assign(this, { canvas, note, onpoint });
    for (const type of ["pointermove", "pointerdown"]) canvas.addEventListener(type, (event) => this.#point(event));
    canvas.addEventListener("pointerleave", () => this.#leave());
    new ResizeObserver(() => this.answer && this.draw(this.answer, this.items)).observe(canvas);
  }

  draw(answer, items, isNew = false) {
    Object.assign(this, { answer, items });
    const { root, columns } = tree(answer);
    const width = Math.max(280, this.canvas.clientWidth);
    const height = width < 560 ? 360 : 392;
    // Titles of more items would lie over each other.
    const hasTitles = columns.at(-1).length <= MOST_TITLES;
    const ofLabels = !hasTitles ? 32 : width < 560 ? width * 0.44 : Math.min(280, width * 0.34);
    const [left, top, bottom] = [8, 32, height - 8];
    const right = width - ofLabels;
    root.x = left;
    root.y = (top + bottom) / 2;
    columns.forEach((column, level) => {
      spread(column, top, bottom);
      strengths(column);
      for (const node of column) node.x = left + ((right - left) * (level + 1)) / columns.length;
    });
    this.#drawn = { root, columns };
    this.#elements.clear();

    const nodes = columns.flat();
    // What leads to items is drawn last, over what was lost.
    const ordered = [...nodes].sort((a, b) => Math.sign(a.leads.size) - Math.sign(b.leads.size));
    const edges = ordered.map((node) => this.#edge(node));
    const circles = ordered.map((node) => this.#circle(node));
    const dot = svg("circle", { class: "root", cx: root.x, cy: root.y, r: 5 });
    const layers = [["edges", edges], ["nodes", [dot, ...circles]], ["texts", this.#texts(columns, width, hasTitles ? ofLabels : 0)]];
    this.canvas.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.canvas.style.height = `${height}px`;
    this.canvas.classList.toggle("new", isNew);
    this.canvas.replaceChildren(...layers.map(([name, children]) => svg("g", { class: name }, ...children)));
    const kept = columns.slice(0, -1).map(({ length }) => number(length)).join(" → ");
    this.summary = `${kept} beginnings kept, ${number(columns.at(-1).length)} semantic IDs at the end. Point at a beam to read it.`;
    this.canvas.setAttribute("aria-label", `Beam search over ${columns.length} levels: ${this.summary}`);
    this.light(null);
  }

  #edge(node) {
    const { parent } = node;
    const middle = (parent.x + node.x) / 2;
    const isKept = node.leads.size > 0;
    const edge = svg("path", {
      class: isKept ? "edge kept" : "edge",
      "data-level": node.level,
      d: `M${parent.x} ${parent.y}C${middle} ${parent.y} ${middle} ${node.y} ${node.x} ${node.y}`,
      "stroke-width": isKept ? 1.25 + 2 * node.strength : 0.5 + 1 * node.strength,
      "stroke-opacity": isKept ? 0.55 + 0.45 * node.strength : 0.08 + 0.3 * node.strength,
    });
    this.#elements.set(node.key, [edge]);
    return edge;
  }

  #circle(node) {
    const isKept = node.leads.size > 0;
    const circle = svg("circle", {
      class: isKept ? "node kept" : "node", "data-level": node.level, "data-codes": node.key, cx: node.x, cy: node.y,
      r: isKept ? 3.5 : 1.5,
      "fill-opacity": isKept ? 1 : 0.25 + 0.5 * node.strength,
    });
    this.#elements.get(node.key).push(circle);
    return circle;
  }

  #texts(columns, width, ofLabels) {
    const texts = columns.map((column, level) => {
      const isLast = level === columns.length - 1;
      const count = number(isLast ? this.answer.items.length : column.length);
      const name = width < 560 ? count : isLast ? `${count} items` : `level ${level} · ${count}`;
      return svg("text", { class: "column", x: column[0]?.x ?? 0, y: 14, "text-anchor": !isLast ? "middle" : ofLabels ? "start" : "end" }, name);
    });
    for (const column of columns.slice(0, -1)) {
      if (width < 700) break;
      // A name stands over its node: there is none where that is the place of another.
      const kept = column.filter(({ leads }) => leads.size);
      for (const [at, node] of kept.entries()) {
        const name = this.items.name(node.codes);
        if (!name || node.y - (kept[at - 1]?.y ?? 0) < 18) continue;
        const text = svg("text", { class: "name", x: node.x, y: node.y - 8, "text-anchor": "middle" }, shortened(name, 120, 6.5));
        this.#elements.get(node.key).push(text);
        texts.push(text);
      }
    }
    const leaves = columns.at(-1);
    for (const leaf of ofLabels ? leaves : []) {
      const ranks = [...leaf.leads];
      const title = this.items.title(this.answer.items[ranks[0]].id);
      const text = svg("text", { class: "leaf", x: leaf.x + 12, y: leaf.y + 4 },
        svg("tspan", { class: "rank" }, `${ranks.map((rank) => rank + 1).join(", ")} `), shortened(title, ofLabels - 32, 6.6));
      this.#elements.get(leaf.key).push(text);
      texts.push(text);
    }
    return texts;
  }

  /** Lights a node, what it came from, and what came of it; null ends that. */
  light(node) {
    for (const lit of this.canvas.querySelectorAll(".lit")) lit.classList.remove("lit");
    this.canvas.classList.toggle("dim", node != null);
    this.note.textContent = node ? this.#told(node) : this.summary ?? "";
    const isUnder = (other) => node.codes.every((code, level) => other.codes[level] === code);
    const ways = [];
    for (let one = node; one?.parent; one = one.parent) ways.push(one);
    if (node) ways.push(...this.#drawn.columns.flat().filter((other) => other !== node && isUnder(other)));
    for (const { key } of ways) for (const element of this.#elements.get(key)) element.classList.add("lit");
  }

  /** Lights the way to the item of a rank. */
  lightItem(rank) {
    this.light(this.#drawn.columns.at(-1)?.find(({ leads }) => leads.has(rank)) ?? null);
  }

  #told({ codes, score, leads, level }) {
    const names = codes.map((_, at) => this.items.name(codes.slice(0, at + 1))).filter(Boolean);
    const isItem = level === this.#drawn.columns.length - 1;
    const title = isItem ? this.items.title(this.answer.items[[...leads][0]].id) : names.join(" › ");
    const outcome = isItem ? "" : leads.size ? `, leads to ${leads.size} of the items` : ", lost";
    return `${spelled(codes)}${title ? ` ${title}` : ""}: log-probability ${number(score, 2)}${outcome}`;
  }

  #point(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const columns = this.#drawn.columns.filter((column) => Math.abs((column[0]?.x ?? -99) - x) < 28);
    const leaves = this.#drawn.columns.at(-1);
    const near = columns[0] ?? (leaves?.length && x > leaves[0].x ? leaves : []);
    const distance = (node) => Math.abs(node.y - y);
    const nearest = near.reduce((best, node) => (!best || distance(node) < distance(best) ? node : best), null);
    const node = nearest && distance(nearest) < 16 ? nearest : null;
    this.light(node);
    this.onpoint(node && near === leaves ? [...node.leads] : []);
  }

  #leave() {
    this.light(null);
    this.onpoint([]);
  }
}

/** The stages of a request as parts of one bar. */
export function drawStages(place, timings) {
  const stages = [["queue", "queue"], ["prefill", "prefill"], ["decode", "decode"], ["mask", "masks"], ["topk", "top-k"]];
  const parts = stages.map(([stage, name]) => ({ stage, name, ms: timings[stage] ?? 0 }));
  const rest = (timings.total ?? 0) - parts.reduce((sum, { ms }) => sum + ms, 0);
  if (rest > 0) parts.push({ stage: "rest", name: "rest", ms: rest });
  const bar = parts.map(({ stage, ms }) => el("span", { class: `stage ${stage}`, style: { flexGrow: ms } }));
  const key = parts.map(({ stage, name, ms }) =>
    el("li", {}, el("span", { class: `swatch ${stage}`, "aria-hidden": "true" }), `${name} `, el("b", {}, `${number(ms, 2)}`)));
  place.replaceChildren(el("div", { class: "bar", "aria-hidden": "true" }, ...bar), el("ul", { class: "legend" }, ...key));
}

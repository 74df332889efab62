// The items of an answer, with marks for what has changed since the one before.

import { $, el, number, spelled } from "./dom.js";

/** Milliseconds that a mark stays. */
const MARK_MS = 6000;

/** The list of items; `work` has what its buttons do. */
export class Results {
  #ranks = new Map();
  #marks = new Map();
  #left = new Map();

  constructor(items, work) {
    Object.assign(this, { items, work });
    const rankOf = (event) => event.target.closest?.("[data-rank]")?.dataset.rank;
    for (const [type, isOver] of [["pointerover", true], ["pointerout", false], ["focusin", true], ["focusout", false]]) {
      $("results").addEventListener(type, (event) => {
        const rank = rankOf(event);
        if (rank !== undefined) work.light(isOver ? Number(rank) : null);
      });
    }
  }

  /** Shows an answer; `isSame` where it answers the question of the one before. */
  show(answer, { isSame, stock, isEditable, before = 0 }) {
    this.#mark(answer.items, isSame);
    const focused = document.activeElement?.closest?.("[data-id]")?.dataset.id;
    const control = document.activeElement?.dataset?.control;
    const best = Math.max(...answer.items.map(({ score }) => score));
    $("results").replaceChildren(...answer.items.map((item, rank) => this.#row(item, rank, { best, stock, isEditable, before })));
    // The list is new, the place of the keyboard is not.
    if (focused && control) {
      const row = [...$("results").children].find((row) => row.dataset.id === focused);
      (row?.querySelector(`[data-control="${control}"]`) ?? $("items-title")).focus();
    }
    const left = [...this.#left.values()].map(({ title, rank }) => el("li", {}, `${title} (was ${rank + 1})`));
    $("left").replaceChildren(...(left.length ? [el("h3", {}, "No longer here"), el("ul", {}, ...left)] : []));
    this.#ranks = new Map(answer.items.map(({ id }, rank) => [id, rank]));
  }

  #mark(items, isSame) {
    const now = Date.now();
    const expire = (marks) => marks.forEach(({ until }, id) => until < now && marks.delete(id));
    if (!isSame) {
      this.#marks.clear();
      this.#left.clear();
      return;
    }
    [this.#marks, this.#left].forEach(expire);
    const ids = new Set(items.map(({ id }) => id));
    const until = now + MARK_MS;
    for (const [id, rank] of this.#ranks) {
      if (!ids.has(id)) this.#left.set(id, { title: this.items.title(id), rank, until });
    }
    // Who moves up because another has left has not moved among those that stayed.
    const stayed = [...this.#ranks.keys()].filter((id) => ids.has(id));
    let place = 0;
    for (const { id } of items) {
      const before = stayed.indexOf(id);
      this.#left.delete(id);
      if (before < 0) this.#marks.set(id, { text: "new", until });
      else if (before !== place) this.#marks.set(id, { text: `${before > place ? "↑" : "↓"}${Math.abs(before - place)}`, until });
      if (before >= 0) place += 1;
    }
  }

  #row(item, rank, { best, stock, isEditable, before }) {
    const { id, score, codes, fields = {} } = item;
    const mark = this.#marks.get(id);
    const title = this.items.title(id);
    const shown = Object.entries(fields).filter(([name]) => !["title", "name", stock].includes(name));
    const text = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
    return el("li", { class: `result${mark ? " changed" : ""}`, "data-rank": rank, "data-id": id },
      el("span", { class: "rank", "aria-hidden": "true" }, `${before + rank + 1}`),
      el("div", { class: "what" },
        el("p", { class: "title" }, title, item.pinned && el("span", { class: "mark" }, "pinned"), mark && el("span", { class: "mark" }, mark.text)),
        // Texts speak for themselves, numbers need their name.
        el("dl", { class: "attributes" }, ...shown.map(([name, value]) => el("div", { title: name },
            el("dt", { class: typeof value === "string" ? "unseen" : null }, name.replaceAll("_", " ")), el("dd", {}, text(value)))))),
      el("div", { class: "spelling" },
        el("p", { class: "names mono" }, el("span", { title: "Id" }, id), el("span", { title: "Semantic ID" }, spelled(codes))),
        el("div", { class: "score", title: `Log-probability; the bar is the probability against that of the best, ${number(100 * Math.exp(score - best), 1)}%` },
          el("span", { class: "meter", "aria-hidden": "true" }, el("span", { style: { width: `${Math.max(1, 100 * Math.exp(score - best))}%` } })),
          el("span", { class: "mono" }, number(score, 2)))),
      el("div", { class: "actions" },
        stock && this.#stock(item, title, stock, isEditable),
        el("button", { type: "button", class: "plus", "data-control": "exclude", title: "Exclude", "aria-label": `Exclude ${title}`, onclick: () => this.work.exclude(id) }, "−"),
        el("button", { type: "button", class: "plus", "data-control": "add", title: "Add to the history", "aria-label": `Add ${title} to the history`, onclick: () => this.work.add(id) }, "+")));
  }

  #stock({ id, fields }, title, stock, isEditable) {
    const pieces = fields?.[stock];
    if (pieces === undefined) return null;
    const [label, next] = pieces > 0 ? ["Sell out", 0] : ["Restock", 10];
    return el("span", { class: "stock" },
      el("span", { class: pieces > 0 ? "" : "out" }, pieces > 0 ? `${number(pieces)} in stock` : "sold out"),
      isEditable && el("button", { type: "button", "data-control": "stock", "aria-label": `${label}: ${title}`, onclick: () => this.work.setStock(id, next) }, label));
  }
}

/** What the page has changed, each with the way back. */
export function drawEdits(edits, items, setStock) {
  $("edits").hidden = !edits.size;
  $("edits").querySelector("ul").replaceChildren(...[...edits].map(([id, { before, now }]) =>
    el("li", {}, el("span", {}, items.title(id), " ", el("span", { class: "mono" }, id), `: stock ${before} → ${now}`),
      el("button", { type: "button", onclick: () => setStock(id, before) }, `Set to ${before} again`))));
}

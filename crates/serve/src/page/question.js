// The question: a history, a filter, and the settings of the search.

import { queryItems } from "./client.js";
import { $, el, number, settled, spelled } from "./dom.js";

/** Codes as they are typed, `0-2-4-0`; null for any other text. */
function codesOf(text) {
  return /^\d+(-\d+)+$/.test(text) ? text.split("-").map(Number) : null;
}

/** The history, as a list of items that can be moved and removed, and the search that adds to it. */
export class History {
  #entries = [];
  #found = [];
  #active = -1;

  constructor(items, onchange) {
    this.items = items;
    this.onchange = onchange;
    const input = $("search");
    input.addEventListener("input", settled(120, () => this.#search()));
    input.addEventListener("focus", () => this.#search());
    input.addEventListener("blur", () => this.#close());
    input.addEventListener("keydown", (event) => this.#searchKey(event));
    $("history").addEventListener("keydown", (event) => this.#chipKey(event));
  }

  get entries() {
    return [...this.#entries];
  }

  set(entries) {
    this.#entries = [...entries];
    this.draw();
    this.onchange();
  }

  add(entry) {
    this.set([...this.#entries, entry]);
  }

  draw(focus = -1) {
    const chips = this.#entries.map((entry, at) => this.#chip(entry, at, Math.max(focus, 0)));
    $("history").replaceChildren(...chips);
    if (focus >= 0) (chips[focus] ?? $("search")).focus();
    $("history-count").textContent = chips.length ? `${chips.length}, the oldest first` : "";
    $("history-keys").hidden = !chips.length;
  }

  #chip(entry, at, tabbable) {
    const isId = typeof entry === "string";
    const title = isId ? this.items.title(entry) : spelled(entry.codes);
    // The keys of the chip itself do the same: the buttons are for pointers and touch.
    const button = (sign, label, work) =>
      el("button", { type: "button", class: "icon", tabindex: -1, "aria-label": `${label} ${title}`, onclick: work }, sign);
    const id = isId ? entry : spelled(entry.codes);
    return el("li", { class: "chip", tabindex: at === tabbable ? 0 : -1, title: id, "data-at": at, "data-id": id, "aria-describedby": "history-keys" },
      el("span", { class: "chip-title" }, title),
      el("span", { class: "chip-buttons" },
        at > 0 && button("↑", "Earlier:", () => this.#move(at, at - 1)),
        at + 1 < this.#entries.length && button("↓", "Later:", () => this.#move(at, at + 1)),
        button("×", "Remove", () => this.#remove(at))));
  }

  #chipKey(event) {
    const at = Number(event.target.closest(".chip")?.dataset.at);
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (Number.isNaN(at) || !event.target.matches(".chip")) return;
    if (step && event.altKey) this.#move(at, at + step);
    else if (step && this.#entries[at + step]) this.draw(at + step);
    else if (event.key === "Delete" || event.key === "Backspace") this.#remove(at);
    else return;
    event.preventDefault();
  }

  #move(from, to) {
    if (to < 0 || to >= this.#entries.length) return;
    this.#entries.splice(to, 0, ...this.#entries.splice(from, 1));
    this.draw(to);
    this.onchange();
  }

  #remove(at) {
    this.#entries.splice(at, 1);
    this.draw(Math.min(at, this.#entries.length - 1));
    if (!this.#entries.length) $("search").focus();
    this.onchange();
  }

  async #search() {
    const text = $("search").value.trim();
    const found = text ? await this.items.search(text).catch(() => []) : [];
    if (text !== $("search").value.trim() || document.activeElement !== $("search")) return;
    this.#found = found;
    this.#active = -1;
    $("found").replaceChildren(...found.map(({ id }, at) =>
      // The list would lose its focus, and close, before the click.
      el("li", { role: "option", id: `found-${at}`, "aria-selected": "false", onpointerdown: (event) => event.preventDefault(), onclick: () => this.#choose(id) },
        el("span", {}, this.items.title(id)), el("span", { class: "mono" }, id))));
    $("found").hidden = !found.length;
    $("search").setAttribute("aria-expanded", String(found.length > 0));
    $("search").removeAttribute("aria-activedescendant");
  }

  #searchKey(event) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const text = $("search").value.trim();
    if (step && this.#found.length) {
      const count = this.#found.length;
      this.#active = (this.#active + step + (this.#active < 0 && step < 0 ? 1 : 0) + count) % count;
      for (const [at, option] of [...$("found").children].entries()) {
        option.setAttribute("aria-selected", String(at === this.#active));
      }
      $("search").setAttribute("aria-activedescendant", `found-${this.#active}`);
      $("found").children[this.#active].scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && text) {
      const exact = this.items.get(text) ? text : null;
      const codes = codesOf(text);
      const first = this.#found[Math.max(this.#active, 0)]?.id;
      this.#choose((this.#active >= 0 && first) || exact || (codes && { codes }) || first || text);
    } else if (event.key === "Escape") this.#close();
    else return;
    event.preventDefault();
  }

  #choose(entry) {
    $("search").value = "";
    this.#close();
    this.add(entry);
  }

  #close() {
    this.#found = [];
    $("found").hidden = true;
    $("search").setAttribute("aria-expanded", "false");
  }
}

/** The filter: quick controls for attributes that the catalog has, and conditions as JSON. */
export class Filter {
  #columns = {};
  #controller = new AbortController();

  constructor(items, onchange) {
    this.items = items;
    for (const id of ["price", "category", "stock", "filter"]) {
      $(id).addEventListener("input", settled(id === "filter" ? 300 : 150, async () => {
        if (await this.check()) onchange();
      }));
    }
  }

  /** Shows the controls that fit the catalog's attributes. */
  fit() {
    const { items } = this;
    const [price, stock] = [items.column(/^price$/i), items.column(/^stock$/i)];
    const category = items.column(/^(category|department|genre)$/i);
    const values = category ? items.values(category) : [];
    this.#columns = { price, stock, category: values.length > 1 && values.length <= 60 ? category : null };
    for (const [control, column] of Object.entries(this.#columns)) $(`${control}-field`).hidden = !column;
    if (price) $("price-name").textContent = `${price} below`;
    if (category) $("category-name").textContent = category;
    const options = values.map((value) => el("option", { value }, value));
    $("category").replaceChildren(el("option", { value: "" }, "any"), ...options);
  }

  get stock() {
    return this.#columns.stock;
  }

  /** The filter as a request has it; undefined where it permits all. Throws where the JSON is none. */
  read() {
    const { price, stock, category } = this.#columns;
    const must = [];
    const most = $("price").valueAsNumber;
    if (price && $("price").validity.badInput) throw new Error("the price is no number");
    if (price && !Number.isNaN(most)) must.push({ range: { [price]: { lt: most } } });
    if (category && $("category").value) must.push({ match: { [category]: $("category").value } });
    if (stock && $("stock").checked) must.push({ range: { [stock]: { gt: 0 } } });
    const text = $("filter").value.trim();
    const own = text ? JSON.parse(text) : null;
    if (own && !must.length) return own;
    if (own) must.push(own);
    return must.length ? { must } : undefined;
  }

  /** Asks the server about the filter: the items that match, or the reason why it is none. */
  async check() {
    const show = (text, isWrong = false) => {
      $("filter-note").textContent = text;
      $("filter-note").classList.toggle("wrong", isWrong);
      $("filter").setAttribute("aria-invalid", String(isWrong));
    };
    this.#controller.abort();
    this.#controller = new AbortController();
    let filter;
    try {
      filter = this.read();
    } catch (error) {
      show(error instanceof SyntaxError ? `Not JSON yet: ${error.message}` : error.message, true);
      return false;
    }
    if (!filter || !this.items.hasQuery) {
      show("");
      return true;
    }
    try {
      const query = { filter, limit: 1, count: true };
      const { count } = await queryItems(this.items.catalog, query, this.#controller.signal);
      show(typeof count === "number" ? `${number(count)} items match` : "");
      return true;
    } catch (problem) {
      if (problem.name === "AbortError") return false;
      const [fault] = problem.document?.errors ?? [];
      show(fault ? `${fault.pointer}: ${fault.detail}` : problem.message, true);
      return problem.document?.status !== 422;
    }
  }
}

/** Items that may not come, with the way to let them come again. */
export class Excluded {
  #ids = [];

  constructor(items, onchange) {
    this.items = items;
    this.onchange = onchange;
  }

  get ids() {
    return [...this.#ids];
  }

  add(id) {
    if (!this.#ids.includes(id)) this.#set([...this.#ids, id]);
    $("rules-fold").open = true;
  }

  #set(ids) {
    this.#ids = ids;
    $("excluded-field").hidden = !ids.length;
    $("excluded").replaceChildren(...ids.map((id) => {
      const title = this.items.title(id);
      const again = () => this.#set(this.#ids.filter((other) => other !== id));
      return el("li", {}, el("button", { type: "button", class: "token", title: id, "aria-label": `Let ${title} come again`, onclick: again }, `${title} ×`));
    }));
    this.onchange();
  }
}

/** Says at a field of JSON that it is none, or nothing; the value, undefined where the field is empty. Throws where it is none. */
function readJson(id) {
  const text = $(id).value.trim();
  const say = (said) => {
    $(`${id}-note`).textContent = said;
    $(`${id}-note`).classList.toggle("wrong", said !== "");
    $(id).setAttribute("aria-invalid", String(said !== ""));
  };
  try {
    const value = text ? JSON.parse(text) : undefined;
    say("");
    return value;
  } catch (error) {
    say(`Not JSON yet: ${error.message}`);
    throw new WrongField(id, $(`${id}-note`).textContent);
  }
}

/** A field that cannot be sent. */
export class WrongField extends Error {
  constructor(id, message) {
    super(message);
    this.id = id;
  }
}

/** The number of a field, undefined where it is empty. What is no number is told, and not taken for nothing. */
function readNumber(id) {
  const field = $(id);
  if (field.validity.badInput) throw new WrongField(id, `${field.labels[0].firstChild.data.trim()}: what stands there is no number`);
  return field.value.trim() === "" ? undefined : Number(field.value);
}

/** The body of a request for what the form says. Throws where a field cannot be read. */
export function readQuestion(history, filter, excluded) {
  const value = (id) => $(id).value.trim();
  const generation = value("generation");
  return {
    target: value("target") || undefined,
    history: history.entries,
    k: readNumber("k"),
    beam_width: readNumber("beam_width"),
    deadline_ms: readNumber("deadline_ms"),
    mode: value("mode") || undefined,
    generation: /^\d+$/.test(generation) ? Number(generation) : generation || undefined,
    filter: filter.read(),
    rules: readJson("rules"),
    exclude: excluded.ids.length ? excluded.ids : undefined,
  };
}

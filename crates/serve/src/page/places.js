// Items in text: one types under a grammar that names catalogs, and sees at each place what may follow.

import * as client from "./client.js";
import { $, el, milliseconds, number, settled } from "./dom.js";
import { visible } from "./signs.js";

const json = (value) => JSON.stringify(value, null, 2);
const KINDS = {
  schema: {
    label: "JSON Schema",
    example: (catalog, title) => json({
      type: "object",
      required: ["items"],
      properties: {
        items: {
          type: "array", minItems: 1, maxItems: 5, "x-distinct": catalog,
          items: {
            type: "object", "x-record": catalog, required: ["id", ...(title ? [title] : []), "reason"],
            properties: {
              id: { type: "string", "x-catalog": `${catalog}.id` },
              ...(title && { [title]: { type: "string", "x-catalog": `${catalog}.${title}` } }),
              reason: { type: "string", maxLength: 200 },
            },
          },
        },
      },
    }),
    members: (text) => ({ response_format: { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(text) } } }),
  },
  grammar: {
    label: "Grammar, Lark or GBNF",
    example: (catalog) => `root ::= "Try " <catalog:${catalog}.id> (" or " <catalog:${catalog}.id>)? "."`,
    members: (text) => ({ guided_grammar: text }),
  },
};
const DOCUMENT = "The warranty covers two years. Batteries are not part of it.";
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The part of the page for texts that name items. */
export class Places {
  #kind = "schema";
  #forms = {};
  #models = [];
  #asking = new AbortController();
  #writing = null;
  #items;
  #edit;
  /** Spelling of the stock attribute, where items have one that can be set here. */
  stock = null;

  constructor(items, edit) {
    this.#items = items;
    this.#edit = edit;
    const soon = settled(150, () => this.ask());
    $("place-kind").replaceChildren(...Object.entries(KINDS).map(([kind, { label }]) => el("option", { value: kind }, label.split(",")[0])));
    $("place-kind").addEventListener("change", () => this.#setKind($("place-kind").value));
    $("place-grammar").addEventListener("input", () => {
      this.#forms[this.#kind] = $("place-grammar").value;
      soon();
    });
    $("place-catalogs").addEventListener("input", soon);
    for (const event of ["input", "keyup", "click", "select"]) $("place-text").addEventListener(event, soon);
    $("place-form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#writing) this.#writing.abort();
      else if (this.#models.length) this.#write();
      else this.ask();
    });
  }

  /** Begins with an example for a catalog, if there is one, and the models that may write. */
  show({ catalog, filter, title, models }) {
    this.#models = models;
    $("place-prompt-field").hidden = !models.length;
    $("place-write").textContent = models.length ? "Write" : "Show what may follow";
    const name = catalog || "words";
    this.#forms = Object.fromEntries(Object.entries(KINDS).map(([kind, { example }]) => [kind, example(name, title)]));
    const sets = catalog ? { [catalog]: { catalog, ...(filter && { filter }) } } : { words: { values: ["red", "green", "blue"] } };
    $("place-catalogs").value = json(sets);
    $("place-documents").textContent = json({ terms: { documents: [DOCUMENT] } });
    this.#setKind(this.#kind);
  }

  #setKind(kind) {
    this.#kind = kind;
    $("place-kind").value = kind;
    $("place-grammar-label").textContent = KINDS[kind].label;
    $("place-grammar").value = this.#forms[kind];
    $("place-text").value = "";
    $("place-status").textContent = "";
  }

  /** The members that ask for the form; null, and said at the field, where one cannot be read. */
  #members() {
    const read = (field, note, work) => {
      const say = (text) => {
        $(note).textContent = text;
        $(note).classList.toggle("wrong", text !== "");
        $(field).setAttribute("aria-invalid", String(text !== ""));
      };
      try {
        const value = work($(field).value);
        say("");
        return value;
      } catch (error) {
        say(`Not JSON yet: ${error.message}`);
        return null;
      }
    };
    const form = read("place-grammar", "place-grammar-note", KINDS[this.#kind].members);
    const catalogs = read("place-catalogs", "place-catalogs-note", (text) => (text.trim() ? JSON.parse(text) : undefined));
    return form && catalogs !== null ? { ...form, catalogs } : null;
  }

  /** Shows the place where the cursor is. */
  async ask() {
    if ($("places").hidden) return;
    const members = this.#members();
    this.#asking.abort();
    this.#asking = new AbortController();
    if (!members) return;
    const at = $("place-text").selectionEnd ?? $("place-text").value.length;
    const text = $("place-text").value.slice(0, at);
    const body = { ...members, text };
    $("place-request").textContent = json(body);
    try {
      const place = await client.place(body, this.#asking.signal);
      this.#showProblem(null);
      this.#draw(place, text);
    } catch (problem) {
      if (problem.name !== "AbortError") this.#showProblem(problem);
    }
  }

  #draw(place, text) {
    const { read, refused, may_end: mayEnd, forced, next, within, catalogs, members } = place;
    const bytes = encoder.encode(text);
    $("place-text").setAttribute("aria-invalid", String(Boolean(refused)));
    $("place-shown").replaceChildren(...this.#spans(bytes, read, members));
    $("place-refused").hidden = !refused;
    $("place-refused").textContent = refused?.detail ?? "";
    $("place-note").textContent = `after ${number(read)} ${read === 1 ? "byte" : "bytes"}, in ${milliseconds(place.milliseconds)}`;
    const sets = Object.entries(catalogs ?? {}).map(([name, { generation, eligible }]) =>
      `${name}: ${number(eligible)} may be written${generation == null ? "" : `, generation ${number(generation)}`}`);
    $("place-sets").textContent = sets.join(" · ");
    $("place-said").textContent = refused ? "What may follow before it:" : `The text ${mayEnd ? "may end here" : "may not end here"}.`;
    const before = decoder.decode(bytes.slice(0, read));
    const add = (rest) => () => this.#append(before + rest);
    const chip = (rest, shown, title) => el("li", {}, el("button", { type: "button", class: "token", title, onclick: add(rest) }, shown));
    const characters = next.map(({ from, to }) => (from === to
      ? chip(from, visible(from), "This character")
      : el("li", {}, el("span", { class: "token" }, `${visible(from)}–${visible(to)}`))));
    $("place-next").replaceChildren(
      ...(forced ? [chip(forced, visible(forced), "This must follow")] : characters),
      ...(!forced && place.other_characters ? [el("li", { class: "hint" }, "and others")] : []));
    $("place-members").replaceChildren(...within.flatMap((set) => this.#set(set, add)));
    $("place-members-panel").hidden = !within.length;
  }

  /** The text as far as it is read, its members marked, then what is refused. */
  #spans(bytes, read, members) {
    const parts = [];
    let at = 0;
    const plain = (end) => end > at && parts.push(decoder.decode(bytes.slice(at, end)));
    for (const { set, field, id, value, span: [begin, end] } of members ?? []) {
      plain(begin);
      const item = id && this.#items.get(id);
      const title = [`${field} of ${set}`, id && this.#items.title(id), item && `codes ${item.codes?.join("-")}`].filter(Boolean).join(" · ");
      parts.push(el("mark", { title: `${value}: ${title}`, tabindex: 0 }, decoder.decode(bytes.slice(begin, end))));
      at = end;
    }
    plain(read);
    at = read;
    if (at < bytes.length) parts.push(el("del", { title: "Not in the language" }, decoder.decode(bytes.slice(at))));
    return parts;
  }

  /** The members that may still be written in a set's place. */
  #set({ set, field, members, more }, add) {
    const head = el("li", { class: "hint" }, `${field} of ${set}: ${number(members.length)}${more ? " and more" : ""}`);
    return [head, ...members.map(({ value, id, rest }) => {
      const item = id && this.#items.get(id);
      const pieces = this.stock && item?.fields?.[this.stock];
      const title = item && this.#items.title(id) !== value ? this.#items.title(id) : "";
      return el("li", { class: "member" },
        el("button", { type: "button", class: "token", title: `Write ${rest}`, onclick: add(rest) }, value),
        el("span", { class: "hint" }, title),
        typeof pieces === "number" && el("button", { type: "button", "aria-label": `${pieces ? "Sell out" : "Restock"}: ${title || value}`, onclick: () => this.#setStock(id, pieces ? 0 : 10) },
          pieces ? `${number(pieces)} in stock: sell out` : "Restock"));
    })];
  }

  async #setStock(id, pieces) {
    try {
      await this.#edit(id, pieces);
      await this.ask();
    } catch (problem) {
      this.#showProblem(problem);
    }
  }

  #append(text) {
    const rest = $("place-text").value.slice($("place-text").selectionEnd);
    $("place-text").value = text;
    $("place-text").setSelectionRange(text.length, text.length);
    $("place-status").textContent = rest ? "what stood behind the place is gone" : "";
    this.ask();
  }

  /** Lets the model write. */
  async #write() {
    const members = this.#members();
    if (!members) return;
    this.#showProblem(null);
    this.#writing = new AbortController();
    $("place-write").textContent = "Stop";
    const [{ id: model, has_chat_template: chats }] = this.#models;
    const prompt = $("place-prompt").value;
    const body = { model, ...members, max_tokens: 400 };
    const began = performance.now();
    try {
      const { signal } = this.#writing;
      const { choices: [choice], usage } = chats
        ? await client.chat({ ...body, messages: [{ role: "user", content: prompt }] }, signal)
        : await client.complete({ ...body, prompt }, signal);
      const text = choice.message?.content ?? choice.text ?? "";
      $("place-text").value = text;
      $("place-text").setSelectionRange(text.length, text.length);
      $("place-status").textContent = `${number(usage.completion_tokens)} tokens in ${milliseconds(performance.now() - began)}`;
      await this.ask();
    } catch (problem) {
      if (problem.name !== "AbortError") this.#showProblem(problem);
    } finally {
      this.#writing = null;
      $("place-write").textContent = "Write";
    }
  }

  #showProblem(problem) {
    $("place-problem").hidden = !problem;
    if (!problem) return;
    const { title, detail, errors = [], status } = problem.document ?? {};
    $("place-problem").replaceChildren(
      el("h2", {}, title ?? "The page failed"),
      el("p", {}, detail ?? problem.message),
      el("p", { class: "hint" }, [status && `status ${status}`, ...errors.map(({ pointer }) => pointer)].filter(Boolean).join(" · ")));
  }
}

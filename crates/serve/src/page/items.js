// Items that the page knows: the beginning of the catalog, and whatever answers have shown.

import { queryItems } from "./client.js";

const PAGE = 1000;
const PAGES = 5;
/** Pages of items that have words, each of as many as the server looks at in one request. */
export const WORD_PAGES = 4;

/** Finds items by text, names the prefixes of semantic IDs, and tells which attributes there are. */
export class Items {
  #known = new Map();
  #names = new Map();
  catalog = "";
  /** True when all items of the catalog are known. */
  isWhole = false;
  /** False where items cannot be listed. */
  hasQuery = true;

  /** Reads the first items of a catalog. */
  async load(catalog) {
    Object.assign(this, { catalog, isWhole: false, hasQuery: true });
    this.#known.clear();
    let cursor;
    for (let page = 0; page < PAGES; page += 1) {
      const query = { limit: PAGE, ...(cursor && { cursor }) };
      let answer;
      try {
        answer = await queryItems(catalog, query);
      } catch (problem) {
        this.hasQuery = !problem.isMissing;
        throw problem;
      }
      this.add(answer.items);
      cursor = answer.cursor;
      if (!cursor) break;
    }
    this.isWhole = !cursor;
  }

  add(items) {
    for (const { id, codes, fields, attributes } of items) {
      const known = { id, codes, fields: fields ?? attributes ?? {} };
      this.#known.set(id, known);
    }
    this.#names.clear();
  }

  get = (id) => this.#known.get(id);
  title = (id) => this.get(id)?.fields.title ?? this.get(id)?.fields.name ?? id;
  all = () => [...this.#known.values()];

  /** Up to `most` items whose id begins with the text or whose title has all its words: of those known, else of the server's. */
  async search(text, most = 8) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (const item of this.#known.values()) {
      const title = String(this.title(item.id)).toLowerCase();
      const isNamed = item.id.toLowerCase().startsWith(text.toLowerCase());
      if (isNamed || words.every((word) => title.includes(word))) found.push(item);
      if (found.length === most) return found;
    }
    if (found.length || this.isWhole || !this.hasQuery) return found;
    // Of all items the server finds one by its id or by the beginning of its title, and then by words for as long as it may take.
    const begins = { range: { title: { gte: text, lt: `${text}\uffff` } } };
    const filter = { should: [{ ids: [text] }, ...(this.column(/^title$/) ? [begins] : [])] };
    const answer = await queryItems(this.catalog, { filter, limit: most });
    let { items } = answer;
    let cursor;
    for (let page = 0; page < WORD_PAGES && !items.length; page += 1) {
      const query = { words: text, limit: most, ...(cursor && { cursor }) };
      ({ items, cursor } = await queryItems(this.catalog, query));
      if (!cursor) break;
    }
    this.add(items);
    return items.map(({ id }) => this.get(id));
  }

  /** The first attribute with a name like this, among those of the first items known. */
  column(pattern) {
    for (const item of this.all().slice(0, 50)) {
      const name = Object.keys(item.fields).find((name) => pattern.test(name));
      if (name) return name;
    }
    return null;
  }

  values(column) {
    const values = new Set(this.all().map((item) => item.fields[column]));
    return [...values].filter((value) => typeof value === "string").sort();
  }

  /**
   * The text that all known items of a prefix have in common, and not those of its parent: most catalogs spell a
   * category first, then something finer.
   */
  name(codes) {
    const key = codes.join("-");
    if (!this.#names.has(key)) this.#names.set(key, this.#findName(codes));
    return this.#names.get(key);
  }

  #findName(codes) {
    const under = (prefix) =>
      this.all().filter((item) => prefix.every((code, level) => item.codes?.[level] === code));
    const common = (items, column) =>
      items.every((item) => item.fields[column] === items[0].fields[column]);
    const [own, parents] = [under(codes), under(codes.slice(0, -1))];
    if (own.length < 2) return "";
    const columns = Object.keys(own[0].fields).filter((of) => typeof own[0].fields[of] === "string");
    const telling = columns.find((of) => common(own, of) && !common(parents, of));
    return telling ? own[0].fields[telling] : "";
  }

  /** Three short histories, each from one part of the catalog. */
  examples() {
    const parts = new Map();
    for (const item of this.all()) {
      const part = item.codes?.[0];
      if (part === undefined || item.fields.stock === 0) continue;
      parts.set(part, [...(parts.get(part) ?? []), item]);
    }
    const large = [...parts].filter(([, items]) => items.length >= 3);
    const spread = (list, at) => list[Math.floor((list.length * (2 * at + 1)) / 6)];
    const places = large.length < 3 ? large.map((_, at) => at) : [0, 1, 2];
    return places.map((at) => {
      const [part, items] = large.length < 3 ? large[at] : spread(large, at);
      const history = [0, 1, 2].map((place) => spread(items, place).id);
      return { name: this.name([part]) || `Items ${part}-…`, history };
    });
  }
}

// Requests to the server that the page came from, and the problems that it answers with.

const KEY = "palmette-key";

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/** An answer that is a problem document (RFC 9457), or none at all. */
export class Problem extends Error {
  constructor(document) {
    super(document.detail ?? document.title);
    this.document = document;
  }

  /** True where the route is not there, or not for this key: the page does without. */
  get isMissing() {
    return [403, 404, 405].includes(this.document.status);
  }
}

async function send(method, path, body, { type = "application/json", signal } = {}) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = type;
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  let response, text;
  try {
    response = await fetch(path, { method, headers, body, signal });
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ title: "No answer", detail: "The server cannot be reached; is it running?" });
  }
  const isJson = /\bjson\b/.test(response.headers.get("Content-Type") ?? "");
  const read = isJson ? JSON.parse(text) : text;
  if (response.ok) return read;
  const { status } = response;
  // Routes of texts spell errors as OpenAI does.
  const { message, param } = read?.error ?? {};
  if (message) throw new Problem({ title: "The request was refused", detail: message, status, errors: param ? [{ pointer: param, detail: message }] : [] });
  throw new Problem(isJson ? read : { title: `Status ${status}`, detail: text.slice(0, 200), status });
}

const post = (path, body, signal) => send("POST", path, JSON.stringify(body), { signal });
const catalogPath = (name) => `/v1/catalogs/${encodeURIComponent(name)}`;

export const recommend = (body, signal) => post("/v1/recommend", body, signal);
export const chat = (body, signal) => post("/v1/chat/completions", body, signal);
export const complete = (body, signal) => post("/v1/completions", body, signal);
export const place = (body, signal) => post("/v1/places", body, signal);
export const mask = (body, signal) => post("/v1/masks", body, signal);
/** Text models; none where the server does not list them. */
export const textModels = async () => (await send("GET", "/v1/models")).data ?? [];
export const metrics = () => send("GET", "/metrics");
export const targets = async () => (await send("GET", "/v1/targets")).targets;
export const catalog = (name) => send("GET", catalogPath(name));

/** A page of items: `{items, cursor, count, generation}`. */
export const queryItems = (name, query, signal) =>
  post(`${catalogPath(name)}/items/query`, query, signal);

/** Changes attributes of an item, and tells the generation that has the change. */
export async function patchItem(name, id, attributes) {
  const line = `${JSON.stringify({ item_id: id, ...attributes })}\n`;
  const type = "application/x-ndjson";
  return (await send("POST", `${catalogPath(name)}/items`, line, { type })).generation;
}

// The server's state, from its metrics once a second.

import { metrics } from "./client.js";
import { $, number, svg } from "./dom.js";

const SECONDS = 60;

/** Samples of the Prometheus text format: name, labels, value. */
function* samples(text) {
  for (const line of text.split("\n")) {
    const sample = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!sample) continue;
    const labels = [...(sample[2] ?? "").matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)];
    yield { name: sample[1], labels: Object.fromEntries(labels.map(([, name, value]) => [name, value])), value: Number(sample[3]) };
  }
}

/** Polls for as long as the page is seen. */
export class Live {
  #before = null;
  #rates = [];
  catalog = "";

  constructor() {
    const poll = async () => {
      if (!document.hidden) await this.poll().catch(() => this.#show({}));
      setTimeout(poll, 1000);
    };
    poll();
  }

  async poll() {
    const all = [...samples(await metrics())];
    const at = performance.now();
    const sum = (name, labels = {}) => {
      const of = all.filter((sample) => sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value));
      return of.length ? of.reduce((total, { value }) => total + value, 0) : null;
    };
    const asked = all
      .filter(({ name, labels }) => name === "palmette_http_requests_total" && labels.route?.startsWith("/v1/"))
      .reduce((total, { value }) => total + value, 0);
    const busy = sum("palmette_streams", { state: "busy" });
    const written = sum("palmette_text_tokens_total", { kind: "text" });
    const before = this.#before;
    this.#before = { asked, at, written };
    const rate = before ? Math.max(0, (1000 * (asked - before.asked)) / (at - before.at)) : null;
    if (rate !== null) this.#rates = [...this.#rates, rate].slice(-SECONDS);
    const ofCatalog = this.catalog ? { catalog: this.catalog } : {};
    this.#show({
      rate: rate === null ? null : number(rate, rate < 10 ? 1 : 0),
      refused: number(sum("palmette_recommend_shed_total") ?? 0),
      streams: busy === null ? null : `${busy} of ${busy + sum("palmette_streams", { state: "idle" })}`,
      queue: sum("palmette_queue_requests"),
      generation: sum("palmette_catalog_generation", ofCatalog),
      items: sum("palmette_catalog_items", ofCatalog),
      writing: sum("palmette_text_requests", { state: "writing" }),
      waiting: sum("palmette_text_requests", { state: "waiting" }),
      tokens: written === null || !before ? null : number(Math.max(0, (1000 * (written - before.written)) / (at - before.at))),
    });
  }

  #show(values) {
    for (const name of ["rate", "refused", "streams", "queue", "generation", "items", "writing", "waiting", "tokens"]) {
      const value = values[name];
      $(`live-${name}`).textContent = value == null ? "–" : typeof value === "number" ? number(value) : value;
    }
    const most = Math.max(1, ...this.#rates);
    const points = this.#rates.map((rate, at) => `${at + SECONDS - this.#rates.length},${23 - (22 * rate) / most}`);
    $("live-spark").setAttribute("viewBox", `0 0 ${SECONDS - 1} 24`);
    $("live-spark").setAttribute("preserveAspectRatio", "none");
    $("live-spark").replaceChildren(svg("polyline", { points: points.join(" ") }));
  }
}

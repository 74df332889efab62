// Texts under a form: it is tried on a model, and its masks are seen place by place.

import * as client from "./client.js";
import { $, el, milliseconds, number, settled } from "./dom.js";
import { visible } from "./signs.js";

const json = (value) => JSON.stringify(value, null, 2);
const PERSON = {
  type: "object",
  properties: { name: { type: "string", maxLength: 40 }, age: { type: "integer", minimum: 0, maximum: 120 } },
  required: ["name", "age"],
  additionalProperties: false,
};
const WEATHER = [{
  type: "function",
  function: {
    name: "weather",
    description: "The weather of a place",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"], additionalProperties: false },
  },
}];

/** Kinds of forms: what their field is called, an example, and the members of a request that a text of the field becomes. */
const KINDS = {
  schema: {
    label: "JSON Schema", example: json(PERSON), prompt: "Invent a person.",
    members: (text) => ({ response_format: { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(text) } } }),
  },
  tools: {
    label: "Tools", example: json(WEATHER), prompt: "How is the weather in Oslo?",
    members: (text) => ({ tools: JSON.parse(text), tool_choice: "required" }),
  },
  regex: {
    label: "Regular expression", example: "(red|green|blue)( and (red|green|blue))?", prompt: "Name a colour or two.",
    members: (text) => ({ guided_regex: text }),
  },
  choice: {
    label: "Choices, one a line", example: "yes\nno\nperhaps", prompt: "Is it raining?",
    members: (text) => ({ guided_choice: text.split("\n").filter((line) => line !== "") }),
  },
  grammar: {
    label: "Grammar, Lark or GBNF", example: 'start: sum\nsum: NUMBER ("+" NUMBER)*\nNUMBER: /[1-9][0-9]{0,3}/', prompt: "What makes 42?",
    members: (text) => ({ guided_grammar: text }),
  },
};
/** The part of the page for text models. */
export class Texts {
  #models = [];
  #kind = "schema";
  /** What was typed for each kind. */
  #forms = Object.fromEntries(Object.entries(KINDS).map(([kind, { example, prompt }]) => [kind, { example, prompt }]));
  #mask = new AbortController();
  #writing = null;

  constructor() {
    const soon = settled(200, () => this.#showMask());
    $("form").addEventListener("input", () => {
      this.#forms[this.#kind].example = $("form").value;
      soon();
    });
    $("prompt").addEventListener("input", () => (this.#forms[this.#kind].prompt = $("prompt").value));
    for (const event of ["input", "keyup", "click", "select"]) $("text").addEventListener(event, soon);
    $("kind").addEventListener("change", () => this.#setKind($("kind").value));
    $("text-model").addEventListener("change", () => this.#setModel());
    $("text-form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#writing) this.#writing.abort();
      else this.#write();
    });
  }

  /** Shows the models that there are. */
  show(models) {
    this.#models = models;
    $("text-model").replaceChildren(...models.map(({ id }) => el("option", { value: id }, id)));
    $("text-model-field").hidden = models.length < 2;
    this.#setModel();
  }

  get #model() {
    return this.#models.find(({ id }) => id === $("text-model").value) ?? this.#models[0];
  }

  #setModel() {
    const { tool_format: tools, has_chat_template: chats } = this.#model;
    const options = Object.entries(KINDS).map(([kind, { label }]) => {
      const isOff = kind === "tools" && !(tools && chats);
      return el("option", { value: kind, disabled: isOff, selected: kind === this.#kind }, isOff ? `${label} (not this model)` : label.split(",")[0]);
    });
    $("kind").replaceChildren(...options);
    this.#setKind(this.#kind === "tools" && !tools ? "schema" : this.#kind);
  }

  #setKind(kind) {
    this.#kind = kind;
    $("kind").value = kind;
    $("form-label").textContent = KINDS[kind].label;
    $("form").value = this.#forms[kind].example;
    $("prompt").value = this.#forms[kind].prompt;
    $("text").value = "";
    $("text-status").textContent = "";
    $("calls").hidden = true;
    this.#showMask();
  }

  /** The members that ask for the form; null, and said at the field, where it cannot be read. */
  #members() {
    const say = (text) => {
      $("form-note").textContent = text;
      $("form-note").classList.toggle("wrong", text !== "");
      $("form").setAttribute("aria-invalid", String(text !== ""));
    };
    try {
      const members = KINDS[this.#kind].members($("form").value);
      say("");
      return { model: this.#model.id, ...members };
    } catch (error) {
      say(`Not JSON yet: ${error.message}`);
      return null;
    }
  }

  /** Shows the mask of the place where the cursor is. */
  async #showMask() {
    const members = this.#members();
    this.#mask.abort();
    this.#mask = new AbortController();
    if (!members) return this.#clearMask("");
    const at = $("text").selectionEnd ?? $("text").value.length;
    const text = $("text").value.slice(0, at);
    const body = { ...members, text };
    $("mask-request").textContent = json(body);
    try {
      this.#drawMask(await client.mask(body, this.#mask.signal), text);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.#clearMask(problem.message);
      const [fault] = problem.document?.errors ?? [];
      $("text").setAttribute("aria-invalid", String(fault?.pointer === "text"));
    }
  }

  #clearMask(text) {
    $("mask-said").textContent = text;
    $("mask-said").classList.toggle("wrong", text !== "");
    $("mask-note").textContent = "";
    $("mask-meter").style.width = "0";
    $("mask-forced").hidden = true;
    $("mask-tokens").replaceChildren();
  }

  #drawMask(mask, text) {
    this.#clearMask("");
    $("text").setAttribute("aria-invalid", "false");
    const { allowed, num_tokens: all, may_end: mayEnd, forced, tokens } = mask;
    $("mask-note").textContent = `after ${number(text.length)} ${text.length === 1 ? "character" : "characters"}, in ${milliseconds(mask.milliseconds)}`;
    // Most masks are a few of many: a logarithm shows them apart.
    $("mask-meter").style.width = `${allowed ? Math.max(1, (100 * Math.log(1 + allowed)) / Math.log(1 + all)) : 0}%`;
    $("mask-said").textContent = `${number(allowed)} of ${number(all)} tokens may follow; the text ${mayEnd ? "may end here" : "may not end here"}.`;
    $("mask-forced").hidden = !forced;
    $("mask-forced").replaceChildren("Must follow: ", el("button", { type: "button", class: "token", onclick: () => this.#append(text + forced) }, visible(forced)));
    const left = allowed - tokens.length;
    $("mask-tokens").replaceChildren(
      ...tokens.map(({ token, text: of }) => el("li", {}, el("button", { type: "button", class: "token", title: `Token ${token}`, onclick: () => this.#append(text + of) }, visible(of)))),
      ...(left > 0 ? [el("li", { class: "hint" }, `and ${number(left)} more`)] : []));
  }

  #append(text) {
    $("text").value = text;
    $("text").setSelectionRange(text.length, text.length);
    this.#showMask();
  }

  /** Lets the model write. */
  async #write() {
    const members = this.#members();
    if (!members) return $("form").focus();
    this.#showProblem(null);
    this.#writing = new AbortController();
    $("write").textContent = "Stop";
    $("text-answer").setAttribute("aria-busy", "true");
    const given = (id) => ($(id).value.trim() === "" ? undefined : Number($(id).value));
    const numbers = { max_tokens: given("max_tokens"), temperature: given("temperature"), seed: given("seed") };
    const began = performance.now();
    try {
      const { choices: [choice], usage } = await this.#ask({ ...members, ...numbers }, this.#writing.signal);
      const { content, tool_calls: calls } = choice.message ?? { content: choice.text };
      $("text").value = content ?? "";
      $("calls").hidden = !calls?.length;
      $("calls").textContent = (calls ?? []).map(({ function: of }) => `${of.name}(${of.arguments})`).join("\n");
      const ends = { length: "broken off at most tokens", tool_calls: "ended with calls", stop: "ended" };
      $("text-status").textContent = `${number(usage.completion_tokens)} tokens in ${milliseconds(performance.now() - began)}, ${ends[choice.finish_reason] ?? choice.finish_reason}`;
      $("text").setSelectionRange($("text").value.length, $("text").value.length);
      if (!calls?.length) this.#showMask();
    } catch (problem) {
      if (problem.name !== "AbortError") this.#showProblem(problem);
    } finally {
      this.#writing = null;
      $("write").textContent = "Write";
      $("text-answer").removeAttribute("aria-busy");
    }
  }

  #ask(body, signal) {
    const prompt = $("prompt").value;
    return this.#model.has_chat_template
      ? client.chat({ ...body, messages: [{ role: "user", content: prompt }] }, signal)
      : client.complete({ ...body, prompt }, signal);
  }

  #showProblem(problem) {
    $("text-problem").hidden = !problem;
    if (!problem) return;
    const { title, detail, errors = [], status } = problem.document ?? {};
    $("text-problem").replaceChildren(
      el("h2", {}, title ?? "The page failed"),
      el("p", {}, detail ?? problem.message),
      el("p", { class: "hint" }, [status && `status ${status}`, ...errors.map(({ pointer }) => pointer)].filter(Boolean).join(" · ")));
    $("text-problem").scrollIntoView({ block: "nearest" });
  }
}

// The page: asks the form's question, shows the answer, and asks again when something has changed.

import * as client from "./client.js";
import { $, el, milliseconds, number, settled } from "./dom.js";
import { Fan, drawStages } from "./fan.js";
import { Items, WORD_PAGES } from "./items.js";
import { Live } from "./live.js";
import { Places } from "./places.js";
import { Excluded, Filter, History, WrongField, readQuestion } from "./question.js";
import { Results, drawEdits } from "./results.js";
import { Texts } from "./texts.js";

const FOLLOW_MS = 1000;
const isWide = matchMedia("(min-width: 900px)");

const items = new Items();
const live = new Live();
const askSoon = settled(200, () => ask());
const history = new History(items, askSoon);
const filter = new Filter(items, () => hasAsked && askSoon());
const fan = new Fan($("fan"), $("fan-note"), lightRows);
const excluded = new Excluded(items, () => hasAsked && askSoon());
const results = new Results(items, { light, add: (id) => history.add(id), exclude: (id) => excluded.add(id), setStock });
const texts = new Texts();
const places = new Places(items, async (id, pieces) => {
  await client.patchItem(items.catalog, id, { [filter.stock]: pieces });
  items.get(id).fields[filter.stock] = pieces;
});

/** Changed stocks: id → the first and the present number. */
const edits = new Map();
let hasAsked = false;
let isEditable = false;
/** The targets; none where the server does not list them. */
let targets = [];
/** The text models; none where the server does not list them. */
let models = [];
/** The question that the answer on the page belongs to. */
let shownQuestion = "";
/** Items of the pages before this one, and the question that they answer. */
let passed = [];
let passedQuestion = "";
let asking = new AbortController();
let isAsking = false;

/** Asks what the form says, and shows the answer or the problem. */
async function ask({ leastGeneration, focus = false } = {}) {
  let body;
  try {
    body = readQuestion(history, filter, excluded);
  } catch (error) {
    const field = $(error instanceof WrongField ? error.id : "filter");
    field.closest("details").open = true;
    field.focus();
    showProblem(error instanceof WrongField ? { document: { title: "The question cannot be sent", detail: error.message } } : null);
    if (error instanceof WrongField) field.setAttribute("aria-invalid", "true");
    return;
  }
  hasAsked = true;
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  isAsking = true;
  $("answer").setAttribute("aria-busy", "true");
  // Another question begins with its first items.
  if (JSON.stringify(body) !== passedQuestion) passed = [];
  passedQuestion = JSON.stringify(body);
  if (passed.length) body.exclude = [...(body.exclude ?? []), ...passed];
  const question = JSON.stringify(body);
  if (leastGeneration !== undefined && body.generation === undefined) body.min_generation = leastGeneration;
  try {
    const answer = await client.recommend({ ...body, fields: ["*"], trace: true }, signal);
    show(answer, body, question);
    if (focus) $("answer").focus();
  } catch (problem) {
    if (problem.name === "AbortError") return;
    showProblem(problem);
    if (focus) $("problem").scrollIntoView({ block: "nearest" });
  } finally {
    if (signal === asking.signal) {
      isAsking = false;
      $("answer").removeAttribute("aria-busy");
    }
  }
}

/** The next items of the same question: those that were shown do not come again. */
async function askNext() {
  passed.push(...[...$("results").children].map((row) => row.dataset.id));
  await ask();
  $("items-title").focus();
}

function show(answer, body, question) {
  const isSame = question === shownQuestion;
  shownQuestion = question;
  showProblem(null);
  items.add(answer.items);
  if (!filter.stock && items.column(/^stock$/i)) filter.fit();
  $("empty").hidden = true;
  $("beam").hidden = $("items").hidden = false;
  fan.draw({ ...answer, levels: answer.levels ?? [] }, items, !isSame);
  drawStages($("stages"), answer.timings_ms);
  $("total").textContent = milliseconds(answer.timings_ms.total);
  results.show(answer, { isSame, stock: filter.stock, isEditable: isEditable && answer.generation !== null, before: passed.length });
  $("next").hidden = !answer.items.length;
  $("first").hidden = !passed.length;
  drawEdits(edits, items, setStock);
  $("request").textContent = JSON.stringify(body, null, 2);
  const { generation, shortfall, narrowed, proven, beam_width: width } = answer;
  const count = `${answer.items.length} ${answer.items.length === 1 ? "item" : "items"}`;
  // Once a second would be too much for those who listen: the region is quiet while the page follows.
  $("status").setAttribute("aria-live", isSame && $("follow").checked ? "off" : "polite");
  $("status").textContent = `${count} in ${milliseconds(answer.timings_ms.total)}, width ${width}${narrowed ? ", narrowed" : ""}${proven ? ", proven" : ""}`;
  const reasons = { catalog: "the catalog has no more", filter: "no more match the filter", seen: "the others were seen", rules: "rules hold the others back" };
  $("items-note").textContent = [
    generation !== null && `generation ${number(generation)}`,
    shortfall && `fewer than asked for: ${reasons[shortfall.reason] ?? shortfall.reason}, ${number(shortfall.eligible)} eligible`,
    answer.history.unknown.length > 0 && `unknown, left out: ${answer.history.unknown.join(", ")}`,
  ].filter(Boolean).join(" · ");
}

function showProblem(problem) {
  const { title, detail, errors = [], status, request_id: id, retry_after_ms: pause } = problem?.document ?? {};
  for (const field of document.querySelectorAll("[data-pointer]")) {
    const isWrong = errors.some(({ pointer }) => pointer === field.dataset.pointer);
    field.setAttribute("aria-invalid", String(isWrong));
    if (isWrong && field.closest("details")) field.closest("details").open = true;
  }
  $("problem").hidden = !problem;
  if (!problem) return;
  if (!$("beam").hidden) $("status").textContent = "the answer before the problem";
  $("problem").replaceChildren(
    el("h2", {}, title ?? "The page failed"),
    el("p", {}, detail ?? problem.message),
    el("ul", {}, ...errors.map(({ pointer, detail: of }) => el("li", {}, el("code", {}, pointer || "(body)"), of === detail ? "" : ` ${of}`))),
    el("p", { class: "hint" }, [status && `status ${status}`, pause && `again in ${milliseconds(pause)}`, id && `request ${id}`].filter(Boolean).join(" · ")));
  if (status === 401) {
    $("key-panel").open = true;
    $("key").focus();
  }
}

function light(rank) {
  if (rank === null) fan.light(null);
  else fan.lightItem(rank);
}

function lightRows(ranks) {
  for (const row of $("results").children) row.classList.toggle("lit", ranks.includes(Number(row.dataset.rank)));
}

/** Changes an item's stock and asks again, at the generation that has the change or a later one. */
async function setStock(id, pieces) {
  const before = edits.get(id)?.before ?? items.get(id)?.fields[filter.stock];
  try {
    const leastGeneration = await client.patchItem(items.catalog, id, { [filter.stock]: pieces });
    edits.set(id, { before, now: pieces });
    if (before === pieces) edits.delete(id);
    await ask({ leastGeneration });
  } catch (problem) {
    if (problem.isMissing) {
      // The controls go, the reason stays.
      isEditable = false;
      await ask();
    }
    showProblem(problem);
  }
}

const MAINS = { recommend: "recommender", text: "texts", place: "places" };
const ANSWERS = { recommend: "#answer", text: "#text-answer", place: "#place-answer" };

/** Shows one of the parts: for items, for texts, for items in texts. */
function setView(view) {
  for (const [name, main] of Object.entries(MAINS)) {
    $(main).hidden = name !== view;
    $(`view-${name}`).setAttribute("aria-pressed", String(name === view));
    for (const of of document.querySelectorAll(`[data-of="${name}"]`)) of.hidden = name !== view;
  }
  document.querySelector(".skip").hash = ANSWERS[view];
  $("target-field").hidden = view === "text" || !targets.length;
  if (view === "place") places.ask();
}

/** Learns targets and text models, then what the catalog of the chosen target has. */
async function start() {
  models = [];
  let hasTargets = true;
  try {
    targets = await client.targets();
    hasTargets = targets.length > 0;
    models = await client.textModels();
  } catch (problem) {
    if (!problem.isMissing) return showProblem(problem);
  }
  if (models.length) texts.show(models);
  $("views").hidden = false;
  $("view-recommend").hidden = !hasTargets && models.length > 0;
  $("view-text").hidden = !models.length;
  const isText = models.length > 0 && (!hasTargets || !$("texts").hidden);
  setView(!$("places").hidden ? "place" : isText ? "text" : "recommend");
  if (!hasTargets && models.length) return places.show({ models });
  const chosen = $("target").value;
  $("target").replaceChildren(...targets.map(({ alias }) => el("option", { value: alias, selected: alias === chosen }, alias)));
  $("target-field").hidden = isText || !targets.length;
  await changeTarget();
}

async function changeTarget() {
  const target = targets.find(({ alias }) => alias === $("target").value);
  let catalog = target?.catalog;
  try {
    // Without a list of targets, an answer tells the catalog's name, and its items make do for examples.
    if (!catalog) {
      const answer = await client.recommend({ k: 100, fields: ["*"] });
      catalog = answer.target.catalog;
      items.add(answer.items);
    }
    live.catalog = catalog;
    const status = await client.catalog(catalog).catch(() => null);
    isEditable = status?.kind === "live";
    $("kept").replaceChildren(...(status?.live?.kept ?? []).map(({ generation, name }) => el("option", { value: name ?? generation })));
    await items.load(catalog);
  } catch (problem) {
    if (!problem.isMissing) showProblem(problem);
    if (problem.isMissing && !items.all().length) items.add((await client.recommend({ target: target?.alias, k: 100, fields: ["*"] })).items);
  }
  $("search-note").hidden = items.hasQuery && items.isWhole;
  $("search-note").textContent = items.hasQuery
    ? `Words are looked for in the first ${number(items.all().length)} titles, and where none has them in ${number(WORD_PAGES * 50000)}; ids and beginnings of titles in all.`
    : "Items cannot be listed here: type ids, or titles that answers have shown.";
  filter.fit();
  filter.check();
  places.stock = isEditable ? filter.stock : null;
  const inStock = filter.stock && { range: { [filter.stock]: { gt: 0 } } };
  places.show({ catalog, filter: inStock, title: items.column(/^(title|name)$/), models });
  places.ask();
  drawExamples();
  history.draw();
  if (hasAsked) ask();
}

function drawExamples() {
  const cards = items.examples().map(({ name, history: ids }) =>
    el("button", { type: "button", class: "example", onclick: () => begin(ids) },
      el("span", { class: "example-name" }, name), ...ids.map((id) => el("span", {}, items.title(id)))));
  $("examples").replaceChildren(...cards);
}

function begin(ids) {
  history.set(ids);
  ask({ focus: true });
}

$("question").addEventListener("submit", (event) => {
  event.preventDefault();
  // Where the answer is below the form, it is gone to.
  ask({ focus: !isWide.matches });
});
for (const id of ["k", "beam_width", "deadline_ms", "generation", "mode", "rules"]) {
  $(id).addEventListener("input", settled(300, () => hasAsked && ask()));
}
$("next").addEventListener("click", askNext);
$("first").addEventListener("click", () => {
  passed = [];
  ask();
});
for (const view of Object.keys(MAINS)) $(`view-${view}`).addEventListener("click", () => setView(view));
$("target").addEventListener("change", changeTarget);
$("key").value = client.key.get();
$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  client.key.set($("key").value.trim());
  $("key-panel").open = false;
  showProblem(null);
  start();
});
setInterval(() => $("follow").checked && !document.hidden && !isAsking && hasAsked && ask(), FOLLOW_MS);
$("follow").addEventListener("change", () => $("follow").checked && ask());
// On a wide screen there is room for all of the question.
if (isWide.matches) $("filter-fold").open = $("search-fold").open = true;
start();

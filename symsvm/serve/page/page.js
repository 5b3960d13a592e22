"use strict";
// The page to try a model: asks the service what the model is, sends one text or row, shows what it answers.
// Text from the service is only ever set as text.

const FEW = 40; // features with a field of their own; more are pasted
const SHOWN = 5; // classes that are seen at once

const at = (id) => document.getElementById(id);
let model = null;
let latest = 0;

function make(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") node.textContent = value;
    else if (name === "part") node.style.setProperty("--part", value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const percent = (p) => (p >= 0.9995 && p < 1 ? "> 99.9" : p > 0 && p < 0.0005 ? "< 0.1" : (100 * p).toFixed(1)) + " %";

function shown(x) {
  if (x === null || x === undefined) return "not known";
  if (x === 0) return "0";
  const size = Math.abs(x);
  return (size >= 1e-3 && size < 1e5 ? x.toFixed(size < 1 ? 4 : 3) : x.toExponential(2)).replace(/-/g, "\u2212");
}

// A name that may be broken after its dots and the like.
function broken(name) {
  const parts = String(name).split(/(?<=[._/-])/);
  return parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part]));
}

const brief = (text) => text.replace(/\d+\.\d{5,}/g, (digits) => String(Number(Number(digits).toPrecision(4))));

// ---- asking

async function ask(path, body) {
  const headers = {};
  if (at("token").value) headers.Authorization = "Bearer " + at("token").value;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method: body === undefined ? "GET" : "POST", headers, body: body && JSON.stringify(body) });
  } catch {
    throw new Error("The service does not answer.");
  }
  const told = await answer.json().catch(() => ({}));
  if (answer.ok) return told;
  if (answer.status === 401) at("token-field").hidden = false;
  const error = new Error((told.error && told.error.message) || "The service answers with status " + answer.status + ".");
  error.field = told.error && told.error.field;
  throw error;
}

function fail(error) {
  at("error").textContent = error ? error.message : "";
  at("error").hidden = !error;
}

// ---- the model and its form

async function begin() {
  try {
    model = await ask("v1/model");
  } catch (error) {
    at("about").textContent = "";
    return fail(error);
  }
  fail(null);
  const kinds = { class: model.labels.length + " classes", value: "a regression", side: "one class" };
  const input = model.kind === "text" ? "texts" : model.n_features + (model.n_features === 1 ? " number" : " numbers");
  const vectors = model.n_support === null ? "" : ", " + model.n_support + " support vectors";
  at("about").textContent = `${model.estimator}, kernel ${brief(model.kernel)}${vectors}: from ${input} to ${kinds[model.answer]}.`;
  build();
  certificate();
}

function build() {
  const inputs = at("inputs");
  inputs.replaceChildren();
  if (model.kind === "text" || model.n_features > FEW) {
    const text = model.kind === "text";
    const label = text ? "Text" : `${model.n_features} numbers, with commas or spaces between them`;
    inputs.append(
      make("div", { class: "field" },
        make("label", { for: "entry", text: label }),
        make("textarea", { id: "entry", spellcheck: "false", placeholder: text ? "Paste a post here." : "" })),
    );
    return;
  }
  const grid = make("div", { class: "numbers" });
  for (let j = 0; j < model.n_features; j++) {
    const name = model.feature_names ? model.feature_names[j] : "x" + j;
    grid.append(
      make("div", {},
        make("label", { for: "x" + j, text: name }),
        make("input", { id: "x" + j, inputmode: "decimal", autocomplete: "off", value: "0" })),
    );
  }
  inputs.append(grid);
}

function number(text) {
  const value = Number(text.trim().replace("\u2212", "-"));
  return text.trim() !== "" && Number.isFinite(value) ? value : null;
}

function entered() {
  const entry = at("entry");
  if (model.kind === "text") return { text: entry.value };
  if (entry) {
    const row = entry.value.split(/[\s,;]+/).filter(Boolean).map(number);
    const wrong = row.indexOf(null);
    if (wrong >= 0) throw Object.assign(new Error(`Entry ${wrong + 1} is no number.`), { input: entry });
    return { row };
  }
  const fields = [...document.querySelectorAll(".numbers input")];
  const row = fields.map((field) => number(field.value));
  const wrong = row.indexOf(null);
  if (wrong >= 0) {
    const name = document.querySelector(`label[for="x${wrong}"]`).textContent;
    throw Object.assign(new Error(`${name} must be a number.`), { input: fields[wrong] });
  }
  return { row };
}

function mark(input) {
  for (const field of document.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  if (!input) return;
  input.setAttribute("aria-invalid", "true");
  input.focus();
}

async function predict(event) {
  event.preventDefault();
  if (!model) return begin(); // a token has been entered
  const turn = ++latest;
  mark(null);
  at("go").setAttribute("aria-disabled", "true");
  try {
    const answer = await ask("v1/explain", { ...entered(), terms: 12 });
    if (turn !== latest) return;
    fail(null);
    show(answer);
  } catch (error) {
    if (turn !== latest) return;
    fail(error);
    const found = /^row\[(\d+)\]$/.exec(error.field || "");
    mark(error.input || (found && at("x" + found[1])) || (error.field && at("entry")) || null);
  } finally {
    if (turn === latest) at("go").removeAttribute("aria-disabled");
  }
}

// ---- the answer

function show({ prediction, decisions }) {
  const place = at("prediction");
  place.replaceChildren();
  if (model.answer === "value") {
    first("The value is", shown(prediction.value), "");
  } else if (model.answer === "side") {
    first("The point is an", prediction.label > 0 ? "inlier" : "outlier", "decision " + shown(prediction.decision));
  } else {
    const sure = prediction.proba === null ? "" : percent(prediction.proba);
    first(model.calibrated ? "The most probable class is" : "The class is", prediction.label, sure);
    place.append(...ranking(prediction));
  }
  why(decisions);
}

function first(sentence, answer, more) {
  at("status").textContent = sentence;
  at("first").replaceChildren(...broken(answer), " ", make("small", { text: more }));
  at("first").hidden = false;
}

function ranking(prediction) {
  const key = model.calibrated ? "proba" : "decision";
  const values = prediction.classes.map((c) => c[key]);
  const least = model.calibrated ? 0 : Math.min(...values);
  const span = model.calibrated ? 1 : Math.max(...values) - least || 1;
  const row = (c) =>
    make("tr", { class: c.name === prediction.label ? "best" : null },
      make("th", { scope: "row" }, ...broken(c.name)),
      make("td", { class: "chart", "aria-hidden": "true" }, make("div", { class: "meter", part: (c[key] - least) / span })),
      make("td", { class: "number", text: model.calibrated ? percent(c[key]) : shown(c[key]) }));
  const table = (classes, caption) =>
    make("table", {},
      make("caption", { text: caption }),
      make("thead", {}, make("tr", {},
        make("th", { scope: "col", text: "Class" }), make("td"),
        make("th", { scope: "col", class: "number", text: model.calibrated ? "Probability" : "Decision" }))),
      make("tbody", {}, ...classes.map(row)));
  const all = prediction.classes;
  const few = all.length > SHOWN + 1 ? all.slice(0, SHOWN) : all;
  const parts = [table(few, few.length < all.length ? `The first ${few.length} of ${all.length} classes` : "All classes")];
  if (few.length < all.length) {
    parts.push(make("details", {}, make("summary", { text: `The other ${all.length - few.length}` }), table(all.slice(SHOWN), "The other classes")));
  }
  return parts;
}

// ---- why

function why(decisions) {
  at("why").hidden = !decisions.length;
  const place = at("decision");
  place.replaceChildren();
  if (!decisions.length) return;
  const body = make("div");
  if (decisions.length > 1) {
    const choose = make("select", { id: "which" });
    decisions.forEach((d, i) => choose.append(make("option", { value: i, text: `${d.label} against ${d.against}` })));
    choose.addEventListener("change", () => body.replaceChildren(...terms(decisions[choose.value])));
    place.append(make("div", { class: "field" }, make("label", { for: "which", text: "Decision between" }), choose));
  }
  body.append(...terms(decisions[0]));
  place.append(body);
}

function terms(decision) {
  const vectors = decision.by === "support vectors";
  const words = vectors ? "support vectors" : model.kind === "text" ? "words" : "features";
  const left = decision.count - decision.terms.length;
  const sides = decision.label === null ? "a higher value" : decision.label + (decision.against === null ? "" : ", against " + decision.against);
  const most = Math.max(...decision.terms.map((t) => Math.abs(t.contribution)), 1e-300);
  const named = (t) => (vectors ? `training row ${t.name}` + (t.label === null ? "" : ` (${t.label})`) : t.name);
  const row = (t) =>
    make("tr", {},
      make("th", { scope: "row" }, ...broken(named(t))),
      make("td", { class: "chart", "aria-hidden": "true" },
        make("div", { class: "both" }, make("div", { class: t.contribution < 0 ? "left" : "right", part: Math.abs(t.contribution) / most }))),
      make("td", { class: "number detail", text: shown(t.weight) }),
      make("td", { class: "number detail", text: shown(t.value) }),
      make("td", { class: "number", text: shown(t.contribution) }));
  const sum = (name, value) =>
    make("tr", {}, make("th", { scope: "row", colspan: "2", text: name }), make("td", { class: "detail", colspan: "2" }),
      make("td", { class: "number", text: shown(value) }));
  const column = (name, more = "") => make("th", { scope: "col", class: "number" + more, text: name });
  const some = decision.terms.length < decision.count ? `The ${decision.terms.length} of ${decision.count} ${words} that count most` : `All ${decision.count} ${words} that count`;
  const heading = decision.count
    ? `A positive contribution speaks for ${sides}. Contributions, intercept and the rest add up to the decision.`
    : `None of the ${words} of the input is known to the model: the intercept alone decides.`;
  return [
    make("p", { class: "hint", text: heading }),
    make("div", { class: "scroll" },
      make("table", {},
        make("caption", { text: some }),
        make("thead", {}, make("tr", {},
          make("th", { scope: "col", text: vectors ? "Support vector" : model.kind === "text" ? "Word" : "Feature" }), make("td"),
          column(vectors ? "Coefficient" : "Weight", " detail"), column(vectors ? "Kernel" : "Value", " detail"),
          column("Contribution"))),
        make("tbody", {}, ...decision.terms.map(row)),
        make("tfoot", {},
          ...(left > 0 ? [sum(`The other ${left} ${words}`, decision.rest)] : []),
          sum("Intercept", decision.intercept),
          sum("Decision", decision.decision)))),
  ];
}

// ---- the certificate

function certificate() {
  const found = model.certificate;
  at("proof").hidden = !found;
  if (!found) return;
  const meaning = {
    optimal: "The training problem is solved: no other model of this kind fits better, to the tolerance.",
    stationary: "No small change improves the fit; the problem is not known to be convex.",
    feasible: "Training ended before the tolerance was reached.",
    unknown: "The file does not say how well its problem was solved.",
  };
  const items = [
    ["Status", found.status], ["Problems solved", found.problems], ["Relative duality gap, at most", shown(found.relative_gap)],
    ["Violation of the optimality conditions", shown(found.violation)], ["Tolerance", shown(found.tol)],
    ["Infeasibility", shown(found.infeasibility)], ["File (SHA-256)", model.digest.slice(0, 12)], ["Loaded", model.loaded.replace("T", " ").replace("+00:00", " UTC")],
  ];
  at("certificate").replaceChildren(
    make("p", { class: "hint", text: meaning[found.status] || "The fit is not to be trusted." }),
    make("dl", {}, ...items.map(([name, value]) => make("div", {}, make("dt", { text: name }), make("dd", { text: value })))),
  );
}

// ---- events

at("form").addEventListener("submit", predict);
at("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("form").requestSubmit();
});
at("token").addEventListener("change", () => { if (!model) begin(); });
at("clear").addEventListener("click", () => {
  latest++;
  for (const field of document.querySelectorAll("#inputs input")) field.value = "0";
  if (at("entry")) at("entry").value = "";
  mark(null);
  fail(null);
  at("go").removeAttribute("aria-disabled");
  at("status").textContent = "Nothing has been asked yet.";
  at("first").hidden = true;
  at("prediction").replaceChildren();
  at("why").hidden = true;
  (at("entry") || at("x0") || at("token")).focus();
});
begin();

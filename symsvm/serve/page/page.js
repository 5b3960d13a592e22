"use strict";
// The page to try a model: asks the service what the model is, sends one text or row, shows what it answers.
// Text from the service is only ever set as text.

const FEW = 40; // features with a field of their own; more are pasted

let model = null;
let latest = 0;

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
  introduce();
  build();
}

function introduce() {
  const kinds = { class: model.labels.length + " classes", value: "a regression", side: "one class" };
  const input = model.kind === "text" ? "texts" : model.n_features + (model.n_features === 1 ? " number" : " numbers");
  const vectors = model.n_support === null ? "" : ", " + model.n_support + " support vectors";
  at("about").textContent = `${model.estimator}, kernel ${brief(model.kernel)}${vectors}: from ${input} to ${kinds[model.answer]}.`;
  certify(model);
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
    const now = answer.model === model.digest ? model : await ask("v1/model"); // its file has changed
    if (turn !== latest) return;
    if (now !== model) {
      model = now;
      introduce();
    }
    fail(null);
    show(model, answer);
  } catch (error) {
    if (turn !== latest) return;
    fail(error);
    const found = /^row\[(\d+)\]$/.exec(error.field || "");
    mark(error.input || (found && at("x" + found[1])) || (error.field && at("entry")) || null);
  } finally {
    if (turn === latest) at("go").removeAttribute("aria-disabled");
  }
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

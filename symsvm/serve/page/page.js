"use strict";
// The page to try a model: gets the description of the model, sends one text or row, shows the prediction.

const MAX_FIELDS = 40; // with more features, all numbers are entered in one text area

let model = null;
let latest = 0; // the number of the latest prediction; earlier ones are not shown

// ---- requests

async function request(path, body) {
  const headers = {};
  if (byId("token").value) headers.Authorization = "Bearer " + byId("token").value;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: body === undefined ? "GET" : "POST", headers, body: body && JSON.stringify(body) });
  } catch {
    throw new Error("The service does not respond.");
  }
  const content = await response.json().catch(() => ({}));
  if (response.ok) return content;
  if (response.status === 401) byId("token-field").hidden = false;
  const error = new Error((content.error && content.error.message) || "The service returned status " + response.status + ".");
  error.field = content.error && content.error.field;
  throw error;
}

function showError(error) {
  byId("error").textContent = error ? error.message : "";
  byId("error").hidden = !error;
}

// ---- the model and its form

async function loadModel() {
  try {
    model = await request("v1/model");
  } catch (error) {
    byId("about").textContent = "";
    return showError(error);
  }
  showError(null);
  showModel();
  buildForm();
}

function showModel() {
  const kinds = { class: "one of " + model.labels.length + " classes", value: "a value", side: "an inlier or outlier" };
  const input = model.kind === "text" ? "texts" : model.n_features + (model.n_features === 1 ? " number" : " numbers");
  const vectors = model.n_support === null ? "" : ", " + model.n_support + " support vectors";
  byId("about").textContent = `${model.estimator}, kernel ${shortenDigits(model.kernel)}${vectors}: predicts ${kinds[model.answer]} from ${input}.`;
  showCertificate(model);
}

function buildForm() {
  const inputs = byId("inputs");
  inputs.replaceChildren();
  if (model.kind === "text" || model.n_features > MAX_FIELDS) {
    const text = model.kind === "text";
    const label = text ? "Text" : `${model.n_features} numbers, separated by commas or spaces`;
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

function parseNumber(text) {
  const value = Number(text.trim().replace("\u2212", "-"));
  return text.trim() !== "" && Number.isFinite(value) ? value : null;
}

function readForm() {
  const entry = byId("entry");
  if (model.kind === "text") return { text: entry.value };
  if (entry) {
    const row = entry.value.split(/[\s,;]+/).filter(Boolean).map(parseNumber);
    const wrong = row.indexOf(null);
    if (wrong >= 0) throw Object.assign(new Error(`Entry ${wrong + 1} is not a number.`), { input: entry });
    return { row };
  }
  const fields = [...document.querySelectorAll(".numbers input")];
  const row = fields.map((field) => parseNumber(field.value));
  const wrong = row.indexOf(null);
  if (wrong >= 0) {
    const name = document.querySelector(`label[for="x${wrong}"]`).textContent;
    throw Object.assign(new Error(`${name} must be a number.`), { input: fields[wrong] });
  }
  return { row };
}

function markInvalid(input) {
  for (const field of document.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  if (!input) return;
  input.setAttribute("aria-invalid", "true");
  input.focus();
}

async function predict(event) {
  event.preventDefault();
  if (!model) return loadModel(); // a token has been entered
  const number = ++latest;
  markInvalid(null);
  byId("go").setAttribute("aria-disabled", "true");
  try {
    const answer = await request("v1/explain", { ...readForm(), terms: 12 });
    const current = answer.model === model.digest ? model : await request("v1/model"); // the model was replaced
    if (number !== latest) return;
    if (current !== model) {
      model = current;
      showModel();
    }
    showError(null);
    showPrediction(model, answer);
  } catch (error) {
    if (number !== latest) return;
    showError(error);
    const found = /^row\[(\d+)\]$/.exec(error.field || "");
    markInvalid(error.input || (found && byId("x" + found[1])) || (error.field && byId("entry")) || null);
  } finally {
    if (number === latest) byId("go").removeAttribute("aria-disabled");
  }
}

// ---- events

byId("form").addEventListener("submit", predict);
byId("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
});
byId("token").addEventListener("change", () => { if (!model) loadModel(); });
byId("clear").addEventListener("click", () => {
  latest++;
  for (const field of document.querySelectorAll("#inputs input")) field.value = "0";
  if (byId("entry")) byId("entry").value = "";
  markInvalid(null);
  showError(null);
  byId("go").removeAttribute("aria-disabled");
  byId("status").textContent = "No prediction yet.";
  byId("first").hidden = true;
  byId("prediction").replaceChildren();
  byId("why").hidden = true;
  (byId("entry") || byId("x0") || byId("token")).focus();
});
loadModel();

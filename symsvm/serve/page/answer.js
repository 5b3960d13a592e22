"use strict";
// What the page shows: the prediction, why it is so, and the certificate of the model.

const SHOWN = 5; // classes that are seen at once

// ---- the answer

function show(model, { prediction, decisions }) {
  const place = at("prediction");
  place.replaceChildren();
  if (model.answer === "value") {
    first("The value is", shown(prediction.value), "");
  } else if (model.answer === "side") {
    first("The point is an", prediction.label > 0 ? "inlier" : "outlier", "decision " + shown(prediction.decision));
  } else {
    const sure = prediction.proba === null ? "" : percent(prediction.proba);
    first(model.calibrated ? "The most probable class is" : "The class is", prediction.label, sure);
    place.append(...ranking(model, prediction));
  }
  why(model, decisions);
}

function first(sentence, answer, more) {
  at("status").textContent = sentence;
  at("first").replaceChildren(...broken(answer), " ", make("small", { text: more }));
  at("first").hidden = false;
}

function ranking(model, prediction) {
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

function why(model, decisions) {
  at("why").hidden = !decisions.length;
  const place = at("decision");
  place.replaceChildren();
  if (!decisions.length) return;
  const body = make("div");
  if (decisions.length > 1) {
    const choose = make("select", { id: "which" });
    decisions.forEach((d, i) => choose.append(make("option", { value: i, text: `${d.label} against ${d.against}` })));
    choose.addEventListener("change", () => body.replaceChildren(...terms(model, decisions[choose.value])));
    place.append(make("div", { class: "field" }, make("label", { for: "which", text: "Decision between" }), choose));
  }
  body.append(...terms(model, decisions[0]));
  place.append(body);
}

function terms(model, decision) {
  const vectors = decision.by === "support vectors";
  const words = vectors ? "support vectors" : model.kind === "text" ? "words" : "features";
  const left = decision.count - decision.terms.length;
  const sides =
    model.answer === "value" ? "a higher value"
    : model.answer === "side" ? "an inlier"
    : decision.label + (decision.against === null ? "" : ", against " + decision.against);
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

function certify(model) {
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

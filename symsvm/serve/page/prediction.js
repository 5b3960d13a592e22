"use strict";
// Shows a prediction, the decisions behind it, and the certificate of the model.

const TOP_CLASSES = 5; // the others are in a part that opens on a click

// ---- the prediction

function showPrediction(model, { prediction, decisions }) {
  const place = byId("prediction");
  place.replaceChildren();
  if (model.answer === "value") {
    showHeadline("The value is", formatNumber(prediction.value), "");
  } else if (model.answer === "side") {
    showHeadline("The point is an", prediction.label > 0 ? "inlier" : "outlier", "decision value " + formatNumber(prediction.decision));
  } else {
    const probability = prediction.proba === null ? "" : formatPercent(prediction.proba);
    showHeadline(model.calibrated ? "The most probable class is" : "The class is", prediction.label, probability);
    place.append(...classTables(model, prediction));
  }
  showDecisions(model, decisions);
}

function showHeadline(sentence, answer, more) {
  byId("status").textContent = sentence;
  byId("first").replaceChildren(...breakable(answer), " ", make("small", { text: more }));
  byId("first").hidden = false;
}

function classTables(model, prediction) {
  const key = model.calibrated ? "proba" : "decision";
  const values = prediction.classes.map((c) => c[key]);
  const least = model.calibrated ? 0 : Math.min(...values);
  const span = model.calibrated ? 1 : Math.max(...values) - least || 1;
  const row = (c) =>
    make("tr", { class: c.name === prediction.label ? "best" : null },
      make("th", { scope: "row" }, ...breakable(c.name)),
      make("td", { class: "chart", "aria-hidden": "true" }, make("div", { class: "meter", part: (c[key] - least) / span })),
      make("td", { class: "number", text: model.calibrated ? formatPercent(c[key]) : formatNumber(c[key]) }));
  const table = (classes, caption) =>
    make("table", {},
      make("caption", { text: caption }),
      make("thead", {}, make("tr", {},
        make("th", { scope: "col", text: "Class" }), make("td"),
        make("th", { scope: "col", class: "number", text: model.calibrated ? "Probability" : "Decision value" }))),
      make("tbody", {}, ...classes.map(row)));
  const all = prediction.classes;
  const top = all.length > TOP_CLASSES + 1 ? all.slice(0, TOP_CLASSES) : all;
  const parts = [table(top, top.length < all.length ? `The first ${top.length} of ${all.length} classes` : "All classes")];
  if (top.length < all.length) {
    parts.push(make("details", {}, make("summary", { text: `The other ${all.length - top.length}` }), table(all.slice(TOP_CLASSES), "The other classes")));
  }
  return parts;
}

// ---- decisions

function showDecisions(model, decisions) {
  byId("why").hidden = !decisions.length;
  const place = byId("decision");
  place.replaceChildren();
  if (!decisions.length) return;
  const body = make("div");
  if (decisions.length > 1) {
    const choose = make("select", { id: "which" });
    decisions.forEach((d, i) => choose.append(make("option", { value: i, text: `${d.label} against ${d.against}` })));
    choose.addEventListener("change", () => body.replaceChildren(...termTable(model, decisions[choose.value])));
    place.append(make("div", { class: "field" }, make("label", { for: "which", text: "Decision between" }), choose));
  }
  body.append(...termTable(model, decisions[0]));
  place.append(body);
}

function termTable(model, decision) {
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
      make("th", { scope: "row" }, ...breakable(named(t))),
      make("td", { class: "chart", "aria-hidden": "true" },
        make("div", { class: "both" }, make("div", { class: t.contribution < 0 ? "left" : "right", part: Math.abs(t.contribution) / most }))),
      make("td", { class: "number detail", text: formatNumber(t.weight) }),
      make("td", { class: "number detail", text: formatNumber(t.value) }),
      make("td", { class: "number", text: formatNumber(t.contribution) }));
  const sum = (name, value) =>
    make("tr", {}, make("th", { scope: "row", colspan: "2", text: name }), make("td", { class: "detail", colspan: "2" }),
      make("td", { class: "number", text: formatNumber(value) }));
  const column = (name, more = "") => make("th", { scope: "col", class: "number" + more, text: name });
  const caption = decision.terms.length < decision.count ? `The ${decision.terms.length} of ${decision.count} ${words} with the largest contributions` : `All ${decision.count} ${words} with a contribution`;
  const heading = decision.count
    ? `A positive contribution supports ${sides}. The contributions and the intercept add up to the decision value.`
    : `The model knows none of the ${words} of the input: the decision value is the intercept.`;
  return [
    make("p", { class: "hint", text: heading }),
    make("div", { class: "scroll" },
      make("table", {},
        make("caption", { text: caption }),
        make("thead", {}, make("tr", {},
          make("th", { scope: "col", text: vectors ? "Support vector" : model.kind === "text" ? "Word" : "Feature" }), make("td"),
          column(vectors ? "Coefficient" : "Weight", " detail"), column(vectors ? "Kernel" : "Value", " detail"),
          column("Contribution"))),
        make("tbody", {}, ...decision.terms.map(row)),
        make("tfoot", {},
          ...(left > 0 ? [sum(`The other ${left} ${words}`, decision.rest)] : []),
          sum("Intercept", decision.intercept),
          sum("Decision value", decision.decision)))),
  ];
}

// ---- the certificate

function showCertificate(model) {
  const found = model.certificate;
  byId("proof").hidden = !found;
  if (!found) return;
  const meaning = {
    optimal: "The training problem is solved to the tolerance: the model is optimal for its data and parameters.",
    stationary: "The optimality conditions hold to the tolerance. The problem is not known to be convex, so the optimum may be local.",
    feasible: "Training stopped before the tolerance was reached.",
    unknown: "The file has no information on how well the training problem was solved.",
  };
  const items = [
    ["Status", found.status], ["Problems solved", found.problems], ["Relative duality gap, at most", formatNumber(found.relative_gap)],
    ["Violation of the optimality conditions", formatNumber(found.violation)], ["Tolerance", formatNumber(found.tol)],
    ["Infeasibility", formatNumber(found.infeasibility)], ["File (SHA-256)", model.digest.slice(0, 12)], ["Loaded", model.loaded.replace("T", " ").replace("+00:00", " UTC")],
  ];
  byId("certificate").replaceChildren(
    make("p", { class: "hint", text: meaning[found.status] || "Training did not converge: do not rely on this model." }),
    make("dl", {}, ...items.map(([name, value]) => make("div", {}, make("dt", { text: name }), make("dd", { text: value })))),
  );
}

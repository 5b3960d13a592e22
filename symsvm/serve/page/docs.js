"use strict";
// Shows openapi.json: every route with what it takes and what it answers.

function schema(content, parts) {
  return Object.entries(content || {}).filter(([, media]) => media.schema).map(([kind, media]) => {
    const name = (media.schema.$ref || "").split("/").pop();
    const found = name ? parts[name] : media.schema;
    const code = make("pre", { tabindex: "0" }, make("code", { text: JSON.stringify(found, null, 2) }));
    return make("details", {}, make("summary", { text: `${kind}: ${name || found.title || "JSON"}` }), code);
  });
}

function operation(path, method, told, parts) {
  const id = told.operationId;
  const card = make("section", { class: "card wide", "aria-labelledby": id },
    make("h2", { id }, make("span", { class: "method", text: method.toUpperCase() }), make("code", { text: path })),
    make("p", { text: told.summary + (told.security ? " (asks for the token)" : "") }));
  if (told.requestBody) card.append(make("h3", { text: "Takes" }), ...schema(told.requestBody.content, parts));
  card.append(make("h3", { text: "Answers" }));
  const list = make("ul");
  for (const [status, answer] of Object.entries(told.responses)) {
    const name = status < 300 ? "the answer." : answer.description;
    list.append(make("li", { text: `${status}: ${name}` }, ...(status < 300 ? schema(answer.content, parts) : [])));
  }
  card.append(list);
  return card;
}

async function begin() {
  const place = at("operations");
  try {
    const found = await (await fetch("openapi.json")).json();
    const parts = (found.components && found.components.schemas) || {};
    for (const [path, methods] of Object.entries(found.paths)) {
      for (const [method, told] of Object.entries(methods)) place.append(operation(path, method, told, parts));
    }
    const error = { "application/json": { schema: { $ref: "#/components/schemas/ProblemBody" } } };
    place.append(make("section", { class: "card wide", "aria-labelledby": "errors" },
      make("h2", { id: "errors", text: "Errors" }),
      make("p", { text: "Whatever is no success has a body that names the field." }), ...schema(error, parts)));
  } catch {
    place.append(make("p", { role: "alert", text: "The service does not answer." }));
  }
}

begin();

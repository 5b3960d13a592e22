"use strict";
// Shows openapi.json: every route with its request bodies and responses.

function schemaDetails(content, parts) {
  return Object.entries(content || {}).filter(([, media]) => media.schema).map(([kind, media]) => {
    const name = (media.schema.$ref || "").split("/").pop();
    const found = name ? parts[name] : media.schema;
    const code = make("pre", { tabindex: "0" }, make("code", { text: JSON.stringify(found, null, 2) }));
    return make("details", {}, make("summary", { text: `${kind}: ${name || found.title || "JSON"}` }), code);
  });
}

function operationCard(path, method, details, parts) {
  const id = details.operationId;
  const card = make("section", { class: "card wide", "aria-labelledby": id },
    make("h2", { id }, make("span", { class: "method", text: method.toUpperCase() }), make("code", { text: path })),
    make("p", { text: details.summary + (details.security ? " (requires the token)" : "") }));
  if (details.requestBody) card.append(make("h3", { text: "Request body" }), ...schemaDetails(details.requestBody.content, parts));
  card.append(make("h3", { text: "Responses" }));
  const list = make("ul");
  for (const [status, answer] of Object.entries(details.responses)) {
    const name = status < 300 ? "Success." : answer.description;
    list.append(make("li", { text: `${status}: ${name}` }, ...(status < 300 ? schemaDetails(answer.content, parts) : [])));
  }
  card.append(list);
  return card;
}

async function showDocument() {
  const place = byId("operations");
  try {
    const found = await (await fetch("openapi.json")).json();
    const parts = (found.components && found.components.schemas) || {};
    for (const [path, methods] of Object.entries(found.paths)) {
      for (const [method, details] of Object.entries(methods)) place.append(operationCard(path, method, details, parts));
    }
    const error = { "application/json": { schema: { $ref: "#/components/schemas/ProblemBody" } } };
    place.append(make("section", { class: "card wide", "aria-labelledby": "errors" },
      make("h2", { id: "errors", text: "Errors" }),
      make("p", { text: "Every error response has a JSON body that names the field." }), ...schemaDetails(error, parts)));
  } catch {
    place.append(make("p", { role: "alert", text: "The service does not respond." }));
  }
}

showDocument();

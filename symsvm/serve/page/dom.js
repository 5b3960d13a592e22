"use strict";
// What both pages use: elements, names and numbers as text. Text from the service is only ever set as text.

const at = (id) => document.getElementById(id);

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

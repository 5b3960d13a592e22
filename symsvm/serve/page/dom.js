"use strict";
// Helpers of both pages: elements, and names and numbers as text. Text from the service is only set as text, never as HTML.

const byId = (id) => document.getElementById(id);

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

const formatPercent = (p) => (p >= 0.9995 && p < 1 ? "> 99.9" : p > 0 && p < 0.0005 ? "< 0.1" : (100 * p).toFixed(1)) + " %";

function formatNumber(x) {
  if (x === null || x === undefined) return "unknown";
  if (x === 0) return "0";
  const size = Math.abs(x);
  return (size >= 1e-3 && size < 1e5 ? x.toFixed(size < 1 ? 4 : 3) : x.toExponential(2)).replace(/-/g, "\u2212");
}

// The parts of a name, with opportunities for line breaks after its dots, dashes and slashes.
function breakable(name) {
  const parts = String(name).split(/(?<=[._/-])/);
  return parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part]));
}

const shortenDigits = (text) => text.replace(/\d+\.\d{5,}/g, (digits) => String(Number(Number(digits).toPrecision(4))));

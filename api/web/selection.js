// SPDX-License-Identifier: Apache-2.0
// What is being looked at: it lives in the address, so that back, reload and a sent link show the same.

const KEYS = ["pid", "from", "to", "search"];

export function read() {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries(KEYS.map((key) => [key, query.get(key) ?? ""]));
}

function address(selection) {
  const query = new URLSearchParams(KEYS.filter((key) => selection[key]).map((key) => [key, selection[key]]));
  return `${query}` === "" ? location.pathname : `${location.pathname}?${query}`;
}

// A step that "back" undoes.
export function push(selection) {
  if (address(selection) !== location.pathname + location.search) history.pushState(null, "", address(selection));
}

// A change too small for that.
export function replace(selection) {
  history.replaceState(null, "", address(selection));
}

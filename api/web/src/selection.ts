// SPDX-License-Identifier: Apache-2.0
// What is being looked at: it lives in the address, so that back, reload and a sent link show the same.

export interface Selection {
  pid: string;
  from: string;
  to: string;
  search: string;
}

const KEYS = ["pid", "from", "to", "search"] as const;

export function read(): Selection {
  const query = new URLSearchParams(location.search);
  const value = (key: string) => query.get(key) ?? "";
  return { pid: value("pid"), from: value("from"), to: value("to"), search: value("search") };
}

function address(selection: Selection) {
  const query = new URLSearchParams(KEYS.filter((key) => selection[key]).map((key) => [key, selection[key]]));
  return `${query}` === "" ? location.pathname : `${location.pathname}?${query}`;
}

// A step that "back" undoes.
export function push(selection: Selection) {
  if (address(selection) !== location.pathname + location.search) history.pushState(null, "", address(selection));
}

// A change too small for that.
export function replace(selection: Selection) {
  history.replaceState(null, "", address(selection));
}

// SPDX-License-Identifier: Apache-2.0
// Questions to the daemon. Everything that the page shows, curl can ask for too: see docs/api.md.

// The daemon answered that it can't: `problem` is its application/problem+json.
export class Refused extends Error {
  constructor(problem) {
    super(problem.detail ?? problem.title ?? "The request was refused.");
    this.problem = problem;
  }
}

// No answer came: the daemon is gone, or restarting.
export class Unreachable extends Error {}

async function ask(path, parameters, signal) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
  let response;
  try {
    response = await fetch(`${query}` === "" ? path : `${path}?${query}`, { signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable(error.message);
  }
  const isProblem = (response.headers.get("Content-Type") ?? "").startsWith("application/problem+json");
  let body;
  try {
    body = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (response.ok) throw new Unreachable("the answer was cut off");
    throw new Refused({ status: response.status, title: `Status ${response.status}` });
  }
  if (isProblem) throw new Refused(body);
  return body;
}

export const profile = ({ pid, from, to }, signal) => ask("/profile", { pid, from, to }, signal);
export const processes = ({ from, to }, signal) => ask("/processes", { from, to }, signal);
export const health = (signal) => ask("/healthz", {}, signal);

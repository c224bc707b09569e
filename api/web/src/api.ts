// SPDX-License-Identifier: Apache-2.0
// Questions to the daemon. Everything that the page shows, curl can ask for too: see docs/api.md.

import type { Health, Problem, Processes, Profile } from "./answers";
import type { Selection } from "./selection";

// The daemon answered that it can't: `problem` is its application/problem+json.
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail ?? problem.title ?? "The request was refused.");
  }
}

// No answer came: the daemon is gone, or restarting.
export class Unreachable extends Error {}

const wasAborted = (error: unknown) => error instanceof DOMException && error.name === "AbortError";

async function ask<Answer>(path: string, parameters: Record<string, string>, signal: AbortSignal): Promise<Answer> {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
  let response: Response;
  try {
    response = await fetch(`${query}` === "" ? path : `${path}?${query}`, { signal, cache: "no-store" });
  } catch (error) {
    if (wasAborted(error)) throw error;
    throw new Unreachable(String(error));
  }
  const isProblem = (response.headers.get("Content-Type") ?? "").startsWith("application/problem+json");
  let body: unknown;
  try {
    body = await response.json();
  } catch (error) {
    if (wasAborted(error)) throw error;
    if (response.ok) throw new Unreachable("the answer was cut off");
    throw new Refused({ status: response.status, title: `Status ${response.status}` });
  }
  if (isProblem) throw new Refused(body as Problem);
  return body as Answer;
}

export const profile = ({ pid, from, to }: Selection, signal: AbortSignal) => ask<Profile>("/profile", { pid, from, to }, signal);
export const processes = ({ from, to }: Selection, signal: AbortSignal) => ask<Processes>("/processes", { from, to }, signal);
export const health = (signal: AbortSignal) => ask<Health>("/healthz", {}, signal);

// SPDX-License-Identifier: Apache-2.0
// Asking the daemon. Everything that the page shows, curl can ask for too: see docs/api.md.
import type { Problem } from "./answers";

// The daemon answered that it can't: `problem` is its application/problem+json.
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail ?? problem.title ?? "The request was refused.");
  }
}

// No answer came: the daemon is gone, or restarting.
export class Unreachable extends Error {}

export const wasAborted = (error: unknown) => error instanceof DOMException && error.name === "AbortError";

// "asking" until the first byte of an answer has come; `bytes` are those of the answer as it is unpacked.
export interface Progress {
  stage: "asking" | "receiving";
  bytes: number;
  since: number; // performance.now()
}

interface Options {
  signal: AbortSignal;
  onProgress?: (progress: Progress) => void;
}

const PROGRESS_MS = 100;

async function textOf(response: Response, since: number, onProgress: Options["onProgress"]): Promise<string> {
  if (onProgress === undefined || response.body === null) return response.text();
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parts: string[] = [];
  let bytes = 0;
  let told = since;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    parts.push(decoder.decode(value, { stream: true }));
    const now = performance.now();
    if (now - told < PROGRESS_MS) continue;
    told = now;
    onProgress({ stage: "receiving", bytes, since });
  }
  parts.push(decoder.decode());
  return parts.join("");
}

export async function get<Answer>(address: string, { signal, onProgress }: Options): Promise<Answer> {
  const since = performance.now();
  onProgress?.({ stage: "asking", bytes: 0, since });
  let response: Response;
  try {
    response = await fetch(address, { signal });
  } catch (error) {
    if (wasAborted(error)) throw error;
    throw new Unreachable(String(error));
  }
  const isProblem = (response.headers.get("Content-Type") ?? "").startsWith("application/problem+json");
  let body: unknown;
  try {
    body = JSON.parse(await textOf(response, since, onProgress));
  } catch (error) {
    if (wasAborted(error)) throw error;
    if (response.ok) throw new Unreachable("the answer was cut off");
    throw new Refused({ status: response.status, title: `Status ${response.status}` });
  }
  if (isProblem) throw new Refused(body as Problem);
  return body as Answer;
}

export const addressWith = (path: string, parameters: URLSearchParams) => (parameters.size === 0 ? path : `${path}?${parameters}`);

// SPDX-License-Identifier: Apache-2.0
// Requests to the daemon. curl can get everything that the page shows: see docs/api.md.
import type { Problem } from "./answers";

// The daemon refused: `problem` is its application/problem+json.
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail ?? problem.title ?? "The request was refused.");
  }
}

// No answer came: the daemon has ended or is restarting.
export class Unreachable extends Error {}

export const wasAborted = (error: unknown) => error instanceof DOMException && error.name === "AbortError";

// "asking" until the first byte of an answer has arrived; `bytes` is the size of the answer so far, decompressed.
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

async function bytesOf(response: Response, since: number, onProgress: Options["onProgress"]): Promise<ArrayBuffer> {
  if (onProgress === undefined || response.body === null) return response.arrayBuffer();
  onProgress({ stage: "receiving", bytes: 0, since });
  const reader = response.body.getReader();
  const parts: Uint8Array[] = [];
  let bytes = 0;
  let told = since;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    parts.push(value);
    const now = performance.now();
    if (now - told < PROGRESS_MS) continue;
    told = now;
    onProgress({ stage: "receiving", bytes, since });
  }
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole.buffer;
}

// Decodes an answer from its bytes, and may keep them. Rejects with a SyntaxError if they are cut off.
export type Read<Answer> = (bytes: ArrayBuffer) => Answer | Promise<Answer>;

const asJson = (bytes: ArrayBuffer) => JSON.parse(new TextDecoder().decode(bytes)) as unknown;

export async function get<Answer>(address: string, { signal, onProgress }: Options, read: Read<Answer> = asJson as Read<Answer>): Promise<Answer> {
  const since = performance.now();
  onProgress?.({ stage: "asking", bytes: 0, since });
  let response: Response;
  try {
    response = await fetch(address, { signal });
  } catch (error) {
    if (wasAborted(error)) throw error;
    throw new Unreachable("flamed does not answer", { cause: error });
  }
  const isProblem = (response.headers.get("Content-Type") ?? "").startsWith("application/problem+json");
  try {
    const bytes = await bytesOf(response, since, onProgress);
    if (isProblem) throw new Refused(asJson(bytes) as Problem);
    return await read(bytes);
  } catch (error) {
    if (wasAborted(error) || error instanceof Refused) throw error;
    if (!response.ok) throw new Refused({ status: response.status, title: `Status ${response.status}` });
    // While its bytes arrived, or where more of them should follow.
    if (error instanceof TypeError || error instanceof SyntaxError) throw new Unreachable("the answer was cut off");
    throw error;
  }
}

// Rejects with the reason if the daemon refuses.
export async function post(path: string, value: object): Promise<void> {
  let response: Response;
  try {
    response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });
  } catch (error) {
    throw new Unreachable("flamed does not answer", { cause: error });
  }
  if (response.ok) return;
  const isProblem = (response.headers.get("Content-Type") ?? "").startsWith("application/problem+json");
  throw new Refused(isProblem ? (await response.json()) as Problem : { status: response.status, title: `Status ${response.status}` });
}

export const addressWith = (path: string, parameters: URLSearchParams) => (parameters.size === 0 ? path : `${path}?${parameters}`);

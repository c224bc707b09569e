// SPDX-License-Identifier: Apache-2.0
// What takes long is done here, beside the page: reading an answer, and trying a regular expression, which may take for
// ever. A file of its own, since a page whose policy is default-src 'self' starts no worker from a text.

import { readModel } from "./columns";
import { practise } from "./practice";
import { matchNames } from "./search";

export type Job = { id: number; task: "practise" } | { id: number; task: "read"; bytes: ArrayBuffer } | { id: number; task: "names"; names: readonly string[] } | { id: number; task: "match"; text: string };
export type Outcome = { id: number; result: unknown } | { id: number; error: string; isSyntax: boolean };

let names: readonly string[] = [];

function work(job: Job): unknown {
  switch (job.task) {
    case "practise":
      practise(readModel);
      return null;
    case "read":
      return readModel(job.bytes);
    case "names":
      names = job.names;
      return null;
    case "match":
      return matchNames(names, job.text);
  }
}

// Typed arrays are handed over, not copied.
function buffersOf(value: unknown, found: Set<ArrayBuffer> = new Set()) {
  if (ArrayBuffer.isView(value)) found.add(value.buffer as ArrayBuffer);
  else if (typeof value === "object" && value !== null && !Array.isArray(value)) for (const member of Object.values(value)) buffersOf(member, found);
  return found;
}

const scope = self as unknown as { onmessage: (event: MessageEvent<Job>) => void; postMessage: (outcome: Outcome, transfer: Transferable[]) => void };

scope.onmessage = ({ data: job }) => {
  try {
    const result = work(job);
    scope.postMessage({ id: job.id, result }, [...buffersOf(result)]);
  } catch (error) {
    scope.postMessage({ id: job.id, error: error instanceof Error ? error.message : String(error), isSyntax: error instanceof SyntaxError }, []);
  }
};

// SPDX-License-Identifier: Apache-2.0
// Does slow work outside of the page's thread: reads an answer, and runs a regular expression, which may never end. A
// separate file, since a page with the policy default-src 'self' can't start a worker from text.

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

// Typed arrays are transferred, not copied.
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

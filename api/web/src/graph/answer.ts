// SPDX-License-Identifier: Apache-2.0
// The tree of an answer, as the rest of the page has it.

import type { Diff, Profile } from "../answers";
import type { FunctionColumns } from "./columns";
import { Frames } from "./frames";
import { Model } from "./model";
import { readAnswer } from "./workers";

export interface GraphAnswer {
  model: Model;
  // Of a comparison: what the daemon says of each function.
  functions: FunctionColumns | null;
  // performance.now() when all of the answer had come.
  since: number;
}

export async function readProfile(bytes: ArrayBuffer): Promise<Profile | Diff> {
  const since = performance.now();
  const { head, frames, functions, model } = await readAnswer(bytes);
  performance.clearMeasures("flamed:read");
  performance.measure("flamed:read", { start: since, end: performance.now() });
  return { ...head, graph: { model: new Model(new Frames(frames), model), functions, since } } as unknown as Profile | Diff;
}

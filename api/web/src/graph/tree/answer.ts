// SPDX-License-Identifier: Apache-2.0
// The tree of an answer, read from its bytes.

import type { Diff, Profile } from "../../answers";
import { Frames } from "./frames";
import { Model } from "./model";
import { readAnswer } from "./workers";

export async function readProfile(bytes: ArrayBuffer): Promise<Profile | Diff> {
  const since = performance.now();
  const { head, frames, functions, model } = await readAnswer(bytes);
  performance.clearMeasures("flamed:read");
  performance.measure("flamed:read", { start: since, end: performance.now() });
  return { ...head, graph: { model: new Model(new Frames(frames), model), functions, since } } as unknown as Profile | Diff;
}

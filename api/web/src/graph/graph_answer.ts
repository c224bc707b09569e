// SPDX-License-Identifier: Apache-2.0
// The tree of an answer, as the rest of the page has it.

import type { FunctionColumns } from "./columns";
import type { Model } from "./model";

export interface GraphAnswer {
  model: Model;
  // Of a comparison: what the daemon says of each function.
  functions: FunctionColumns | null;
  // performance.now() when all of the answer had come.
  since: number;
}

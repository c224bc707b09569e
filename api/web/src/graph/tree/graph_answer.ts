// SPDX-License-Identifier: Apache-2.0
// The tree of an answer, as the rest of the page uses it.

import type { FunctionColumns } from "./columns";
import type { Model } from "./model";

export interface GraphAnswer {
  model: Model;
  // For a comparison: the daemon's list of functions.
  functions: FunctionColumns | null;
  // performance.now() when the whole answer had arrived.
  since: number;
}

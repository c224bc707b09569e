// SPDX-License-Identifier: Apache-2.0
// The retained history. Set by the timeline after its first full answer; null until then.
import { signal } from "@preact/signals";

import type { Span } from "./span";

export const retained = signal<Span | null>(null);

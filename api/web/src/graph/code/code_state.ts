// SPDX-License-Identifier: Apache-2.0
// The lines and the instructions of the chosen function, in the whole selection.
import { computed } from "@preact/signals";

import type { FunctionInstructions, FunctionLines } from "../../answers";
import { addressWith } from "../../api";
import { Asking } from "../../asking";
import { profile } from "../../questions";
import { functionParameters, question, view } from "../../state";
import { bare } from "../shown/bare";
import { middle, mode } from "../shown/shown";

export const isByInstruction = computed(() => view.value.code === "instructions");

const name = computed(() => (mode.value === "code" && middle.value !== null ? bare(middle.value) : null));

function addressOf(path: string, more: Record<string, string> = {}): string | null {
  if (name.value === null) return null;
  const parameters = functionParameters(question.value, name.value);
  for (const [key, value] of Object.entries(more)) parameters.set(key, value);
  return addressWith(path, parameters);
}

export const lines = new Asking<FunctionLines>(() => (isByInstruction.value ? null : addressOf("/source", { text: "1" })), { after: profile });
export const instructions = new Asking<FunctionInstructions>(() => (isByInstruction.value ? addressOf("/instructions") : null), { after: profile });

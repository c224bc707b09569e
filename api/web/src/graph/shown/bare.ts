// SPDX-License-Identifier: Apache-2.0
// Names as the daemon takes them.
import { question } from "../../state";

// The name without its line number, since the daemon's filters match names only.
export const bare = (name: string) => (question.value.lines ? name.replace(/ [^ ]+:\d+$/, "") : name);

// SPDX-License-Identifier: Apache-2.0
// CPU use over the retained history; a window is chosen in it.
import "./timeline.css";

export function Timeline() {
  return null;
}

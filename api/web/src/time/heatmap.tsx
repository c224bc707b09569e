// SPDX-License-Identifier: Apache-2.0
// Samples by second and part of the second, to see what happens for fractions of a second.
import "./heatmap.css";

export function HeatMap() {
  return null;
}

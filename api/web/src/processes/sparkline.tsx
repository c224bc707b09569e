// SPDX-License-Identifier: Apache-2.0
// CPU use over the window, as small as a word. It shows the shape; the size is the number beside it.

const WIDTH = 56;
const HEIGHT = 16;

function outline(steps: readonly number[]): string {
  const most = Math.max(...steps, 1e-9);
  const wide = WIDTH / steps.length;
  const at = (value: number) => (HEIGHT - Math.max(value > 0 ? 1 : 0, (value / most) * HEIGHT)).toFixed(1);
  return `M0 ${HEIGHT}${steps.map((value, step) => `L${(step * wide).toFixed(1)} ${at(value)}H${((step + 1) * wide).toFixed(1)}`).join("")}V${HEIGHT}Z`;
}

export function Sparkline({ steps }: { steps: readonly number[] | null }) {
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
      {steps !== null && steps.length > 0 && <path d={outline(steps)} />}
    </svg>
  );
}

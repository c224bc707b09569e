// SPDX-License-Identifier: Apache-2.0
// A synthetic answer like the daemon's: a browser compiles a loop after it has run for some time, and before that
// reading an answer takes three times as long.

const NODES = 1 << 14;
const FRAMES = 16;
const ROUNDS = 6;

// One level of nodes below the root, all with one frame.
function example(): ArrayBuffer {
  const column = (at: number, count: number) => ({ type: "u8", at, count });
  const zeros = column(NODES, NODES);
  const ones = column(0, NODES); // except for the first
  const names = column(NODES, FRAMES);
  const columns = {
    strings: { ends: { type: "u16", at: 2 * NODES, count: 1 }, text: ones }, kinds: ["root"], frames: { name: names, module: names, kind: names },
    nodes: { frame: zeros, depth: ones, self: ones },
  };
  const text = JSON.stringify({ columns });
  const head = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 8) * 8));
  const bytes = new Uint8Array(16 + head.length + 2 * NODES + 8);
  bytes.set(new TextEncoder().encode("FLAMEDC1"));
  bytes.set(head, 16);
  bytes.fill(1, 16 + head.length + 1, 16 + head.length + NODES);
  const lengths = new DataView(bytes.buffer);
  lengths.setUint32(8, head.length, true);
  lengths.setUint32(12, 2 * NODES + 8, true);
  lengths.setUint16(16 + head.length + 2 * NODES, NODES, true); // the end of the only text
  return bytes.buffer;
}

export function practise(read: (answer: ArrayBuffer) => unknown) {
  const answer = example();
  for (let i = 0; i < ROUNDS; i++) read(answer);
}

// SPDX-License-Identifier: Apache-2.0
// An answer like the daemon's, made of nothing: a browser compiles a loop when it has run for some time, and what reads the
// first answer before that takes three times as long.

const NODES = 1 << 14;
const FRAMES = 16;
const ROUNDS = 6;

// One level of nodes below the root, all of one frame.
function example(): ArrayBuffer {
  const column = (at: number, count: number) => ({ type: "u8", at, count });
  const zeros = column(NODES, NODES);
  const ones = column(0, NODES); // but for the first
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
  lengths.setUint16(16 + head.length + 2 * NODES, NODES, true); // the one text, where it ends
  return bytes.buffer;
}

export function practise(read: (answer: ArrayBuffer) => unknown) {
  const answer = example();
  for (let i = 0; i < ROUNDS; i++) read(answer);
}

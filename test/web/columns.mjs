// SPDX-License-Identifier: Apache-2.0
// Converts an answer with format=columns to format=columns-binary (docs/api.md), for tests with synthetic answers.

const TYPES = [["u8", 1, 2 ** 8, "setUint8"], ["u16", 2, 2 ** 16, "setUint16"], ["u32", 4, 2 ** 32, "setUint32"]];

export function binary({ columns, ...head }) {
  const parts = [];
  let size = 0;
  const append = (bytes) => {
    parts.push(bytes);
    size += bytes.length;
  };
  const pad = (length, filler) => new Uint8Array((8 - (length % 8)) % 8).fill(filler);
  const place = (type, count, bytes) => {
    append(pad(size, 0));
    const at = size;
    append(bytes);
    return { type, at, count };
  };
  const numbers = (values) => {
    const [type, bytes, , set] = TYPES.find(([, , limit]) => values.every((value) => Number.isInteger(value) && value >= 0 && value < limit)) ?? ["f64", 8, 0, "setFloat64"];
    const view = new DataView(new ArrayBuffer(values.length * bytes));
    values.forEach((value, i) => view[set](i * bytes, value, true));
    return place(type, values.length, new Uint8Array(view.buffer));
  };
  const texts = (values) => {
    const encoded = values.map((value) => new TextEncoder().encode(value));
    let end = 0;
    const ends = numbers(encoded.map(({ length }) => (end += length)));
    return { ends, text: place("u8", end, Uint8Array.from(encoded.flatMap((bytes) => [...bytes]))) };
  };
  const written = Object.fromEntries(Object.entries(columns).map(([key, value]) => {
    if (key === "kinds") return [key, value];
    if (key === "strings") return [key, texts(value)];
    return [key, Object.fromEntries(Object.entries(value).map(([name, column]) => [name, numbers(column)]))];
  }));
  const text = new TextEncoder().encode(JSON.stringify({ ...head, columns: written }));
  const json = [text, pad(text.length, 0x20)];
  const lengths = new DataView(new ArrayBuffer(8));
  lengths.setUint32(0, json[0].length + json[1].length, true);
  lengths.setUint32(4, size, true);
  return Buffer.concat([Buffer.from("FLAMEDC1"), new Uint8Array(lengths.buffer), ...json, ...parts]);
}

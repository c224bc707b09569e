// SPDX-License-Identifier: Apache-2.0
// The real speedscope, from its npm package, reads the daemon's files. Environment: FLAMED_URL; FLAMED_VICTIM_PID, of a
// process that computes in work_one and work_two (test/kernel/victims/known_chain.c).
import assert from "node:assert/strict";
import { createReadStream, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";

import { Browser } from "./browser.mjs";

const url = process.env.FLAMED_URL;
const pid = process.env.FLAMED_VICTIM_PID;
const types = { html: "text/html", js: "text/javascript", css: "text/css", json: "application/json", wasm: "application/wasm" };

describe("speedscope", () => {
  let browser;
  let server;
  let origin;
  const answers = new Map();

  before(async () => {
    const release = join(dirname(createRequire(import.meta.url).resolve("speedscope/package.json")), "dist/release");
    const files = new Set(readdirSync(release));
    server = createServer((request, response) => {
      const name = new URL(request.url, "http://localhost").pathname.slice(1) || "index.html";
      if (answers.has(name)) return response.end(answers.get(name));
      if (!files.has(name)) return response.writeHead(404).end();
      response.setHeader("Content-Type", types[name.split(".").pop()] ?? "application/octet-stream");
      createReadStream(join(release, name)).pipe(response);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${server.address().port}`;
    browser = await Browser.launch();
  });
  after(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
  });

  // The rows of speedscope's table of functions for a file.
  async function imported(name, content) {
    answers.set(name, content);
    const page = await browser.page(origin);
    await page.goto(`${origin}/#profileURL=${encodeURIComponent(`/${name}`)}&view=sandwich`);
    await page.waitForFunction(() => /work_two/.test(document.body.innerText), null, { timeout: 20000 });
    const rows = await page.$$eval("tr", (all) => all.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.innerText)));
    assert.deepEqual(page.troubles.filter((trouble) => !trouble.startsWith("console: ")), []);
    await page.close();
    return rows;
  }

  // A closed window from `from` to `to`, with all of its samples stored.
  let selection;
  it("gets a window with samples", async () => {
    const from = Date.now();
    let to = from;
    let samples = 0;
    for (let attempt = 0; attempt < 120 && samples < 100; attempt++) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      to = Date.now() - 3000;
      if (to <= from) continue;
      samples = (await (await fetch(`${url}/profile?pid=${pid}&from=${from}&to=${to}`)).json()).samples;
    }
    assert.ok(samples >= 100, `${samples} samples`);
    selection = `pid=${pid}&from=${from}&to=${to}`;
  });

  const cases = [["speedscope", "profile.speedscope.json"], ["perf-script", "profile.perf.txt"], ["folded", "profile.folded.txt"]];
  for (const [format, name] of cases) {
    it(`imports format=${format} with the functions and shares that format=top has`, async () => {
      const ask = (as) => fetch(`${url}/profile?${selection}&format=${as}`);
      const top = await (await ask("top")).json();
      const content = await (await ask(format)).text();
      const rows = await imported(name, content);
      const weights = format === "perf-script" ? weightsByTime(content) : null;
      for (const wanted of ["work_one", "work_two"]) {
        const { self, self_percent: percent } = top.functions.find((each) => each.name === wanted);
        if (weights) assert.equal(weights.samples.get(wanted), self);
        const expected = weights ? (100 * weights.times.get(wanted)) / weights.total : percent;
        const row = rows.find((cells) => cells.some((cell) => cell.split(/[\s(]/).includes(wanted)));
        assert.ok(row, `${wanted} is not among ${JSON.stringify(rows)}`);
        // Total, self, name; in whole percents.
        const shown = /\((\d+(?:\.\d+)?)%\)/.exec(row[1]);
        assert.ok(shown && Math.abs(Number(shown[1]) - expected) < 1.01, `${row} instead of ${self} samples, ${expected}%`);
      }
    });
  }
});

// speedscope's weights for perf's text: a sample counts for half the time to the one before and half the time to the
// one after, whatever its period. So a process that waited for a CPU has other shares there than in samples.
function weightsByTime(text) {
  const taken = [];
  for (const block of text.split("\n\n")) {
    const [head, leaf] = block.split("\n");
    const time = / (\d+\.\d+): +\d+ cpu-clock: $/.exec(head);
    if (time) taken.push({ time: Number(time[1]), name: leaf.trim().split(" ")[1] });
  }
  const samples = new Map();
  const times = new Map();
  taken.forEach(({ time, name }, i) => {
    const before = taken[i - 1]?.time ?? time;
    const after = taken[i + 1]?.time ?? time;
    samples.set(name, (samples.get(name) ?? 0) + 1);
    times.set(name, (times.get(name) ?? 0) + (after - before) / 2);
  });
  return { samples, times, total: taken.at(-1).time - taken[0].time };
}

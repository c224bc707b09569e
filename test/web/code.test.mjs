// SPDX-License-Identifier: Apache-2.0
// The lines and instructions of one function.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { inspect, open, text } from "./browser.mjs";
import { daemon, page, useFixture } from "./fixture.mjs";
import { source } from "./source.mjs";

const { byFile, rowsOf } = await source("graph/code/code_rows.ts");

const line = (module, file, number, self) => ({ module, file, line: number, self, total: self });

describe("rows of code", () => {
  it("are lines by file, files with the most samples first", () => {
    const files = byFile([line("a", "x.c", 9, 1), line("a", "x.c", 3, 2), line("a", "y.c", 1, 7), line("a", null, null, 0), line("b", "x.c", 3, 4)]);
    assert.deepEqual(files.map(({ module, file, self, rows }) => [module, file, self, rows.map((each) => each.line)]),
      [["a", "y.c", 7, [1]], ["b", "x.c", 4, [3]], ["a", "x.c", 3, [3, 9]], ["a", "", 0, [null]]]);
  });

  it("have the text of their lines, and of those near them", () => {
    const text = (number) => ({ line: number, text: `text ${number}` });
    const [first, second] = byFile([line("a", "x.c", 9, 1), line("a", "x.c", 3, 2), line("a", "y.c", 1, 1)],
      [{ module: "a", file: "x.c", reason: null, newer: false, lines: [text(2), text(3), text(9)] }, { module: "b", file: "y.c", reason: "another", newer: true, lines: [text(1)] }]);
    assert.deepEqual(first.rows.map(({ line, self, text, isAfterGap }) => [line, self, text, isAfterGap]),
      [[2, 0, "text 2", false], [3, 2, "text 3", false], [9, 1, "text 9", true]]);
    assert.equal(second.text, null);
    assert.deepEqual(second.rows.map((row) => row.text), [null]);
  });

  it("have every instruction with samples, and of the others as many as there is room for", () => {
    const instructions = Array.from({ length: 100 }, (_, i) => ({ address: `0x${(0x1000 + i).toString(16)}`, bytes: "90", text: "nop", self: i === 50 ? 3 : 0, callees: i === 99 ? 1 : 0 }));
    assert.equal(rowsOf({ instructions }, 100).filter(({ isAfterGap }) => isAfterGap).length, 0);
    const few = rowsOf({ instructions }, 4);
    assert.deepEqual(few.map(({ instruction, isAfterGap }) => [Number(instruction.address) - 0x1000, isAfterGap]), [[0, false], [1, false], [50, true], [99, true]]);
    assert.deepEqual(rowsOf({ instructions }, 0).map(({ instruction }) => instruction.self + instruction.callees), [3, 1]);
    assert.equal(rowsOf({ instructions: [{ address: null, bytes: null, text: null, self: 1, callees: 0 }] }, 0).length, 1);
  });
});

describe("the view of lines and instructions", () => {
  useFixture();

  // The sum of the shown samples, and what the daemon counts for the function.
  const sums = async () => {
    const shown = await page.$$eval("#code [data-self]", (rows) => rows.reduce((sum, { dataset }) => sum + Number(dataset.self), 0));
    const asked = new URL(page.url());
    const query = new URLSearchParams({ pid: asked.searchParams.get("pid"), format: "top" });
    const { functions } = await (await page.context().request.get(`${daemon.url}/profile?${query}`)).json();
    const name = await text(page, "#code-head bdi");
    return [shown, functions.filter((each) => each.name === name).reduce((sum, { self }) => sum + self, 0)];
  };

  it("opens from a function's menu, shows lines and instructions, and is in the address", async () => {
    await open(page, `${daemon.url}/?pid=4242&view=table`);
    await page.focus(".grid");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Shift+F10");
    await page.click('.frame-menu :text("Lines and instructions")');
    await page.waitForSelector("#code [data-line]");
    const [lines, own] = await sums();
    assert.ok(own > 0);
    assert.equal(lines, own);
    await inspect(page, "lines");

    await page.focus('#code-by [data-by="instructions"]');
    await page.keyboard.press("Enter");
    await page.waitForSelector("#code [data-address]");
    assert.deepEqual(await sums(), [own, own]);
    assert.match(await text(page, "#code"), /push %rbp.*nop.*ret/s);
    await inspect(page, "instructions");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.id), "code");

    await page.reload();
    await page.waitForSelector("#code [data-address]");
    assert.equal(new URL(page.url()).searchParams.get("code"), "instructions");
    assert.deepEqual(page.troubles, []);
  });

  it("shows the text of sources beside the lines, and says why where there is none", async () => {
    await open(page, `${daemon.url}/?pid=4242&view=code#frame=${encodeURIComponent("price_with_tax(Item const&)")}`);
    await page.waitForSelector("#code [data-line]");
    const rows = await page.$$eval("#code tr[data-line]", (all) => all.map((row) => [row.dataset.line, row.querySelector(".source:not(.around)") !== null, row.querySelector(".source")?.textContent]));
    assert.deepEqual(rows.map(([number]) => number), Array.from({ length: 14 }, (_, i) => String(84 + i)));
    assert.deepEqual(rows.filter(([, isHot]) => isHot).map(([number, , words]) => [number, words]), [["88", "        return price(88);  // <b>&amp;</b>"], ["93", "        return price(93);  // <b>&amp;</b>"]]);
    assert.equal(rows.find(([number]) => number === "91")[2], "");
    assert.match(await text(page, "#code caption"), /cart\.cc.*newer than the program: its lines may have moved/s);
    await inspect(page, "source");

    await open(page, `${daemon.url}/?pid=4242&view=code#frame=json::Parser::string()`);
    await page.waitForSelector('#code [data-line="204"]');
    assert.match(await text(page, "#code caption"), /json\.cc.*No text: No such file or directory\./s);
    assert.equal(await page.$("#code .source"), null);
    assert.deepEqual(page.troubles, []);
  });

  it("says why there are addresses alone, and goes on to the function that is chosen in the table", async () => {
    await open(page, `${daemon.url}/?pid=4242&view=code&code=instructions#frame=tcp_sendmsg`);
    await page.waitForSelector("#code [data-address]");
    assert.match(await text(page, "#code caption"), /Addresses alone: the kernel's code is in no file/);
    const before = await text(page, "#code-head bdi");
    await page.focus(".grid");
    await page.keyboard.press("Home");
    await page.waitForFunction((name) => document.querySelector("#code-head bdi").textContent !== name, before);
    assert.deepEqual(page.troubles, []);
  });
});

// SPDX-License-Identifier: Apache-2.0
// Tasks of docs/tasks.md: each starts on a freshly loaded page, is done with three actions at most (a click, a drag, a
// key, or one field typed with Enter), and has an answer that is known beforehand and read from the screen. Prints how
// long each took.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

import { answered, mirror, open } from "./browser.mjs";

const MOST_ACTIONS = 3;
const SOURCE = process.env.FLAMED_PAGE_SOURCES ?? fileURLToPath(new URL("../../api/web/src", import.meta.url));
const tested = [];

// What an action has changed is on the screen a moment later.
async function soon(check) {
  for (const deadline = performance.now() + 10_000; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
  }
}

// Returns the function that tests one task. `onPage(chosen)` is what it is done on: a page, and the address of the daemon.
// `chosen` are options of Browser.page(), or null. `answer` reads the screen. `lacking` says what the machine has not that
// the task is about, or is "".
export const tasksOn = (onPage) => (sentence, actions, answer, { chosen = null, lacking = "" } = {}) => {
  tested.push(sentence);
  it(sentence, { skip: lacking === "" ? false : lacking }, async () => {
    assert.ok(actions.length <= MOST_ACTIONS);
    const { page, url } = await onPage(chosen);
    await open(page, url);
    const since = performance.now();
    for (const act of actions) await act(page);
    await soon(() => answer(page));
    console.log(`${sentence} ${actions.length} ${actions.length === 1 ? "action" : "actions"}, ${Math.round(performance.now() - since)} ms`);
    assert.deepEqual(page.troubles, []);
    if (chosen !== null) await page.close();
  });
};

// After all tasks of a file.
export const theListIsTested = () => describe("the list of tasks in the docs", () => {
  it("is what is tested", () => {
    const listed = [...readFileSync(`${SOURCE}/../../../docs/tasks.md`, "utf-8").matchAll(/^\| \d+ \| ([^|]+?) \|/gm)].map(([, sentence]) => sentence);
    assert.equal(listed.length, 30);
    assert.deepEqual(listed, tested);
  });
});

// Actions that the daemon answers. What is typed may be a function, if it depends on the time.
export const click = (selector) => (page) => answered(page, () => page.click(typeof selector === "function" ? selector() : selector));
export const press = (key) => (page) => answered(page, () => page.keyboard.press(key));
export const type = (field, written) => (page) => answered(page, async () => {
  await page.fill(field, typeof written === "function" ? await written() : written);
  await page.press(field, "Enter");
});
export const select = (selector, value) => (page) => answered(page, () => page.selectOption(selector, value));
// Actions that change only what is shown of an answer.
export const view = (mode) => (page) => page.click(`#modes [data-mode="${mode}"]`);
export const show = (selector) => (page) => page.click(selector);
export const key = (name) => (page) => page.keyboard.press(name);
export const search = (written) => async (page) => {
  await page.fill("#search", written);
  await page.press("#search", "Enter");
};
// After a key that has led to a field.
export const write = (written) => async (page) => {
  await page.keyboard.type(written);
  await page.keyboard.press("Enter");
};
export const dragOver = (selector, from, to) => async (page) => {
  const box = await page.$eval(selector, (element) => element.getBoundingClientRect().toJSON());
  await page.mouse.move(box.x + from[0] * box.width, box.y + from[1] * box.height);
  await page.mouse.down();
  await page.mouse.move(box.x + to[0] * box.width, box.y + to[1] * box.height, { steps: 3 });
  await page.mouse.up();
};

export const time = (written) => type("#when", written);
export const java = type("#process-filter", "java");
export const waiting = click("#measures >> text=Waiting");
export const reason = (name) => click(`#reasons [data-reason="${name}"]`);
export const filters = show("#filters-button");
export const byLine = click('#filters .entry:has-text("Tell functions apart by line")');
export const byThread = select("#filters label select", "thread");

// What is on the screen.
export const query = async (page) => Object.fromEntries(new URL(await page.evaluate(() => location.href)).searchParams);
export const names = async (page) => (await mirror(page)).map(({ name }) => name);
export const first = async (page, depth = 1) => (await mirror(page)).filter((frame) => frame.depth === depth);
export const order = (page) => page.waitForSelector("#graph-time .flame-item[data-depth='1']");
export const timeOf = async (page, name) => (await mirror(page)).filter((frame) => frame.name === name).reduce((sum, { value }) => sum + value, 0);

// Of calls of a function in the order of time, their milliseconds within a window of one second.
export async function placesOf(page, name) {
  const [whole] = await page.$$eval("#graph-time .flame-canvas", (all) => all.map((canvas) => canvas.getBoundingClientRect().toJSON()));
  const boxes = await page.$$eval("#graph-time .flame-item", (all, wanted) => all.filter(({ dataset }) => dataset.name === wanted).map((item) => item.getBoundingClientRect().toJSON()), name);
  assert.ok(boxes.length > 0, `no ${name}`);
  return boxes.map(({ x, width }) => [((x - whole.x) / whole.width) * 1000, ((x + width - whole.x) / whole.width) * 1000]);
}
export const isWithin = (places, from, to) => places.every(([begin, end]) => begin >= from && end <= to);

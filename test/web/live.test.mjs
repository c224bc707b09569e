// SPDX-License-Identifier: Apache-2.0
// The page over the real daemon. Environment: FLAMED_URL; FLAMED_VICTIM_PID, of a process whose frames are
// main > outer > middle > { work_one | work_two } (test/kernel/victims/known_chain.c); FLAMED_SHOTS.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";

import { Browser, loads, mirror, open, painted } from "./browser.mjs";

const url = process.env.FLAMED_URL;
const pid = process.env.FLAMED_VICTIM_PID;

describe("the page over a running daemon", () => {
  let browser;
  let page;

  before(async () => {
    browser = await Browser.launch();
    page = await browser.page(new URL(url).origin, { now: null });
  });
  after(() => browser?.close());

  it("shows the functions of a busy process after one click", async () => {
    await open(page, url);
    const row = `[data-id^="${pid}@"]`;
    // The victim's first samples reach the store about a second after they were taken.
    for (let attempt = 0; attempt < 20 && (await page.$(row)) === null; attempt++) {
      const before = await loads(page);
      await page.click('#ranges [aria-pressed="false"]');
      await page.waitForFunction((count) => Number(document.body.dataset.loaded) > count, before);
      await page.waitForTimeout(500);
    }
    const before = await loads(page);
    await page.click(row);
    await page.waitForFunction((count) => Number(document.body.dataset.loaded) > count, before);
    const frames = await mirror(page);
    // Samples from before the process's unwind tables stood make branches of their own: one of them all has the chain.
    const path = [];
    const paths = frames.map((frame) => {
      path.length = frame.depth;
      path[frame.depth] = frame.name;
      return path.join(";");
    });
    assert.ok(paths.some((names) => names.endsWith(";main;outer;middle;work_two")), paths.join("\n"));
    assert.ok((await painted(page)).colours > 3);
    assert.deepEqual(page.troubles, []);
    await page.screenshot({ path: join(process.env.FLAMED_SHOTS ?? ".", "live.png") });
  });
});

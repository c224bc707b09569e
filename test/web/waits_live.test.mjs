// SPDX-License-Identifier: Apache-2.0
// The page over the real daemon with waits on: why was this service slow at this time? Environment: FLAMED_URL;
// FLAMED_VICTIM_PID, of a process of which one thread holds a mutex for four fifths of the time and three others want
// it (test/kernel/victims/waits.c, mutex).
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, before, describe, it } from "node:test";

import { Browser, inspect, loaded, loads, mirror, open, text } from "./browser.mjs";

const url = process.env.FLAMED_URL;
const pid = process.env.FLAMED_VICTIM_PID;

// 20 s of each of its five threads, in which there are some 20 visits.
async function waitsAreKnown() {
  const deadline = Date.now() + 90_000;
  while (Date.now() < deadline) {
    const { processes } = await (await fetch(`${url}/processes?measure=wait`)).json();
    if (processes.some((process) => String(process.pid) === pid && process.cpu_seconds > 100)) return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  assert.fail(`nothing is known of the waits of process ${pid}`);
}

describe("the page over a daemon that measures waits", () => {
  let browser;
  let page;

  before(async () => {
    await waitsAreKnown();
    browser = await Browser.launch();
    page = await browser.page(new URL(url).origin, { now: null });
  });
  after(() => browser?.close());

  it("says after three actions that the service waited for a lock, and in which function", async () => {
    await open(page, url);
    let actions = 0;
    const act = async (what) => {
      actions++;
      const earlier = await loads(page);
      await what();
      await loaded(page, earlier + 1);
    };
    // With seconds: the window is around that time, and the daemon may have begun in this minute.
    const earlier = new Date(Date.now() - 5000);
    const time = [earlier.getHours(), earlier.getMinutes(), earlier.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
    await act(async () => {
      await page.fill("#when", time);
      await page.keyboard.press("Enter");
    });
    await page.waitForSelector("#measures");
    await act(() => page.click("#measures >> text=Waiting"));
    const row = await page.waitForSelector(`[role="treeitem"]:has-text("victim_waits")`);
    assert.ok(await row.isVisible(), "the service is not among those that are seen at once");
    await act(() => row.click());
    assert.ok(actions <= 3, `${actions} actions`);

    // The holder sleeps all the time, the main thread waits for its end, and the others want the mutex for four fifths of
    // the time and sleep for the rest. A visit finds all of these either here or there, so with 20 visits that is
    // 0.8 +- 0.09; on a busy machine sleep is found more often (docs/design/0026-waiting.md). Of five threads with as much
    // waiting time each, one always sleeps. The main thread counts as waiting for a lock until its stack has been read.
    const reasons = await page.$$eval("#reasons [data-reason]", (buttons) => buttons.map(({ dataset, textContent }) => [dataset.reason, parseFloat(/([\d.]+) %/.exec(textContent)[1])]));
    const share = Object.fromEntries(reasons);
    const said = await text(page, "#reasons");
    assert.ok(share.lock / (share.lock + share.sleep - 20) > 0.25, said);
    assert.ok(share.lock < 82 && share.sleep > 18, said);
    assert.ok(share.lock + share.sleep > 50, said);
    const frames = await mirror(page);
    const shown = frames.map(({ name }) => name);
    const want = frames.find(({ name }) => name === "want");
    assert.ok(want !== undefined && shown.includes("[lock]"), shown.join("\n"));
    await inspect(page, "waits-live");
  });

  it("says with one more who held the lock", async () => {
    const earlier = await loads(page);
    await page.click('#reasons [data-reason="lock"]');
    await loaded(page, earlier + 1);
    const shown = (await mirror(page)).map(({ name }) => name);
    const holder = readdirSync(`/proc/${pid}/task`).find((tid) => readFileSync(`/proc/${pid}/task/${tid}/comm`, "utf-8") === "holder\n");
    assert.ok(shown.includes(`[held by holder (${holder})]`), shown.join("\n"));
  });
});

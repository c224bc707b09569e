// SPDX-License-Identifier: Apache-2.0
// The page over the real daemon: which process made the machine slow? Environment: FLAMED_URL; FLAMED_VICTIM_PID, of
// the culprit, a process whose frames are main > outer > middle > { work_one | work_two }
// (test/kernel/victims/known_chain.c).
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { Browser, inspect, loaded, loads, mirror, open, painted } from "./browser.mjs";

const url = process.env.FLAMED_URL;
const pid = process.env.FLAMED_VICTIM_PID;
const CHAIN = ["main", "outer", "middle", "work_two"];

// From the root down to each shown frame, joined by ";".
async function paths(page) {
  const path = [];
  return (await mirror(page)).map((frame) => {
    path.length = frame.depth;
    path[frame.depth] = frame.name;
    return { path: path.join(";"), value: frame.value };
  });
}

// The samples with the whole chain. Samples from before the process had unwind tables are in branches of their own.
const inChain = (found) => found.filter(({ path }) => path.endsWith(`;${CHAIN.join(";")}`)).reduce((sum, { value }) => sum + value, 0);

// The victim's first samples reach the store about a second after they were taken.
async function culpritIsKnown() {
  const deadline = Date.now() + 30_000;
  while (Date.now() < deadline) {
    const { processes } = await (await fetch(`${url}/processes`)).json();
    if (processes.some((process) => String(process.pid) === pid && process.samples > 100)) return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  assert.fail(`process ${pid} was never sampled`);
}

describe("the page over a running daemon", () => {
  let browser;
  let page;

  before(async () => {
    browser = await Browser.launch();
    await browser.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(url).origin });
    page = await browser.page(new URL(url).origin, { now: null });
    await culpritIsKnown();
  });
  after(() => browser?.close());

  it("shows the culprit and its function after two actions, and again by the link that the third one copies", async () => {
    let actions = 0;
    const act = async (what) => {
      actions++;
      await what();
    };
    await act(() => open(page, url));
    const row = await page.waitForSelector(`[data-id^="${pid}@"]`);
    assert.ok(await row.isVisible(), "the culprit is not among the processes that are seen at once");
    const before = await loads(page);
    await act(() => row.click());
    await loaded(page, before + 1);
    const found = await paths(page);
    assert.ok(inChain(found) > 0, found.map(({ path }) => path).join("\n"));
    assert.ok((await painted(page)).colours > 3);
    await inspect(page, "live");
    await act(() => page.click("#copy-link"));
    assert.ok(actions <= 3, `${actions} actions`);

    const link = await page.evaluate(() => navigator.clipboard.readText());
    const { searchParams } = new URL(link);
    assert.ok(Date.parse(searchParams.get("to")) <= Date.now(), link);
    const fresh = await browser.page(new URL(url).origin, { now: null });
    await open(fresh, link);
    const shown = await paths(fresh);
    // More samples of the window's last second or two have been drained since; none is gone.
    const late = 2 * 99;
    assert.ok(inChain(shown) >= inChain(found) && inChain(shown) <= inChain(found) + 2 * late, `${inChain(shown)} ${inChain(found)}`);
    const again = await browser.page(new URL(url).origin, { now: null });
    await open(again, link);
    assert.deepEqual(await paths(again), shown);
    assert.deepEqual([...page.troubles, ...fresh.troubles, ...again.troubles], []);
  });
});

// SPDX-License-Identifier: Apache-2.0
// The thirty tasks of docs/tasks.md over the running daemon, whose loads are known: loads/checkout.c and loads/Stock.java
// say what they do in each second. run.sh starts them, and the past is what was recorded of them a minute before, at other
// times. Environment: FLAMED_URL; FLAMED_CHECKOUT and FLAMED_STOCK, their pids, the latter empty without a JDK;
// FLAMED_CHECKOUT_SOURCE and FLAMED_STOCK_SOURCE, their paths; FLAMED_BACKUP and FLAMED_STAGE, pids of programs of
// test/kernel/victims/known_chain.c that have ended, the latter in a container, or empty where there can be none;
// FLAMED_DOCKER, the id of the container of Stock.java; FLAMED_BURST, between which times, in ms, burst.c had both CPUs;
// FLAMED_NOON, when it was that yesterday, in s.
//
// Shares are not judged but by halves and doubles, since other programs, and the browser, take the same CPUs.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, afterEach, before, beforeEach, describe } from "node:test";

import { Browser, answered, mirror, open, text } from "./browser.mjs";
import { byLine, byThread, click, dragOver, filters, first, isWithin, java, key, names, order, placesOf, press, query, reason, search, show, tasksOn, theListIsTested, time, timeOf, type, view, waiting, write } from "./tasks.mjs";

const { FLAMED_URL: url, FLAMED_CHECKOUT: checkout, FLAMED_STOCK: stock, FLAMED_BACKUP: backup, FLAMED_STAGE: stage, FLAMED_DOCKER: docker } = process.env;
const [burstFrom, burstTo] = process.env.FLAMED_BURST.split(" ").map(Number);
const noon = new Date(Number(process.env.FLAMED_NOON) * 1000).toISOString();
const noJava = stock === "" ? "no JDK here" : "";
const noGroups = stage === "" ? "no control groups can be made here" : "";
const SCREEN = { width: 1440, height: 900, reducedMotion: "reduce", now: null };
// A sample stands for the 10 ms before it, and a call that begins in time may end late.
const LATE_MS = 25;

// The number of the line with this remark.
const lineOf = (path, remark) => readFileSync(path, "utf-8").split("\n").findIndex((line) => line.includes(remark)) + 1;
const hotLine = lineOf(process.env.FLAMED_CHECKOUT_SOURCE, "/* the hot line */");
const searchLine = lineOf(process.env.FLAMED_CHECKOUT_SOURCE, "/* the line of the search */");
const javaLine = lineOf(process.env.FLAMED_STOCK_SOURCE, "// the hot line");

const tids = () => readdirSync(`/proc/${checkout}/task`).map(Number);
const tidOf = (comm) => tids().find((tid) => readFileSync(`/proc/${checkout}/task/${tid}/comm`, "utf-8") === `${comm}\n`);
const ask = async (path) => (await fetch(url + path)).json();

// What the tasks ask about is there: waits need some visits, and Java's compilers some seconds.
async function loadsAreKnown() {
  const began = Date.now();
  const deadline = began + 60_000;
  let seen;
  do {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const { processes } = await ask("/processes?measure=wait&from=now-5m");
    const waits = processes.find(({ pid }) => String(pid) === checkout)?.waits ?? {};
    const folded = noJava !== "" ? "" : await (await fetch(`${url}/profile?format=folded&from=now-5m&pid=${stock}`)).text();
    seen = [waits, folded.slice(0, 2000)];
    if (waits.lock > 20 && waits.disk > 0 && (noJava !== "" || (/Stock\.reserve;Stock\.scan/.test(folded) && /G1/.test(folded)))) {
      console.log(`the loads are known after ${Math.round((Date.now() - began) / 1000)} s`);
      return;
    }
  } while (Date.now() < deadline);
  assert.fail(`the loads are not known: ${JSON.stringify(seen)}`);
}

describe("with three actions at most, over a running daemon", () => {
  let browser;
  let page;

  before(async () => {
    await loadsAreKnown();
    browser = await Browser.launch();
    await browser.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(url).origin });
  });
  after(() => browser?.close());
  beforeEach(async () => {
    page = await browser.page(new URL(url).origin, SCREEN);
  });
  afterEach(() => page.close());

  const task = tasksOn(async (chosen) => ({ page: chosen === null ? page : await browser.page(new URL(url).origin, { ...SCREEN, ...chosen }), url }));
  // Typed, since on a busy machine it is not among the first of the list.
  const service = type("#process-filter", "checkout");
  const serviceInList = click(`[data-id^="${checkout}@"]`);
  const ofJava = { lacking: noJava };

  // A second that was over a few seconds ago, so that all its samples are stored, and in which the function came to run: on
  // a busy machine it may not in each.
  let second;
  const clock = (ms) => new Date(ms).toISOString().slice(11, 19);
  const aSecond = (pid, name, parts) => time(async () => {
    const last = Math.floor(Date.now() / 1000 - 5);
    for (let ago = 0; ago < 30; ago++) {
      const folded = await (await fetch(`${url}/profile?format=folded&pid=${pid}&from=${last - ago}&to=${last - ago + 1}`)).text();
      const lines = folded.split("\n").filter((line) => line.includes(name));
      if (lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0) < 5) continue;
      second = (last - ago) * 1000;
      return `${clock(second)} - ${parts === undefined ? clock(second + 1000) : clock(second) + parts}`;
    }
    return assert.fail(`${name} has not run for 30 s`);
  });
  const valueOf = async (page, name) => (await mirror(page)).filter((frame) => frame.name === name).reduce((sum, { value }) => sum + value, 0);

  describe("in the order of time", () => {
    task("What was this thread doing at 14:03:11?", [aSecond(checkout, "price_with_tax", ".4"), service, view("time")], async (page) => {
      await order(page);
      assert.ok((await text(page, "#order-head")).startsWith(`worker${clock(second)}`), await text(page, "#order-head"));
      assert.ok(!(await names(page)).some((name) => ["parse_json", "send_answers", "audit"].includes(name)), (await names(page)).join());
      const [priced, found] = [await timeOf(page, "price_with_tax"), await timeOf(page, "find_rate")];
      assert.ok(found > 0 && priced > 2 * found, `${priced} us ${found} us`);
    });
    task("When in a second does the service write its answers?", [aSecond(checkout, "send_answers"), service, view("time")], async (page) => {
      await order(page);
      const places = await placesOf(page, "send_answers");
      assert.ok(isWithin(places, 850 - LATE_MS, 980 + LATE_MS), JSON.stringify(places));
    });
    task("Did the stock service work all the time, or with breaks?", [aSecond(stock, "Stock.scan"), java, view("time")], async (page) => {
      await order(page);
      const places = await placesOf(page, "Stock.scan");
      assert.ok(isWithin(places, 0, 200 + LATE_MS), JSON.stringify(places));
    }, ofJava);
  });

  describe("by thread", () => {
    task("Which threads does the service have, and which is the main one?", [service, view("time")], async (page) => {
      await page.waitForSelector(".track");
      const tracks = await page.$$eval(".track", (all) => all.map((track) => [Number(track.dataset.track.split("/")[1]), track.querySelector("bdi").textContent, /main/.test(track.textContent)]));
      assert.deepEqual(tracks.slice(0, 2).map(([, comm]) => comm), ["worker", "reporter"]);
      assert.ok(tracks.every(([tid]) => tids().includes(tid)), JSON.stringify(tracks));
      assert.deepEqual(tracks.filter(([, , isMain]) => isMain).map(([tid]) => tid), [Number(checkout)]);
    });
    task("Which thread waited for a lock all the time?", [service, waiting, view("time")], async (page) => {
      await page.waitForSelector(".track .wait-bar");
      const waited = await page.$$eval(".track", (all) => all.map((track) => [track.querySelector("bdi").textContent, parseFloat(track.querySelector(".wait-lock")?.style.width ?? "0")]));
      // Parts of the longest bar.
      assert.deepEqual(waited.filter(([, lock]) => lock > 50).map(([comm]) => comm).sort(), ["session-1", "session-2"], JSON.stringify(waited));
    });
    task("How much of the service's CPU time did each thread use?", [service, filters, byThread], async (page) => {
      // 0.78 s or more of each second, and 0.15.
      const threads = await first(page);
      const [most, next] = ["worker", "reporter"].map((comm) => threads.find(({ name }) => name.includes(comm))?.value ?? 0);
      assert.ok(next > 0 && most > 2 * next, JSON.stringify(threads));
      assert.ok(threads.every(({ value }) => value <= most), JSON.stringify(threads));
    });
  });

  describe("bottom-up", () => {
    task("In which function does the CPU time end, whoever called it?", [service, view("bottom-up")], async (page) => {
      const hottest = (await first(page)).reduce((most, each) => (each.value > most.value ? each : most));
      assert.equal(hottest.name, "price_with_tax");
    });
    task("What is the hottest function, and who calls it?", [service, view("sandwich")], async (page) => {
      await page.waitForSelector("#graph-callers .flame-item");
      assert.equal(await text(page, "#middle"), "price_with_tax");
      const callers = await page.$$eval("#graph-callers .flame-item", (items) => items.map(({ dataset }) => dataset.name));
      assert.ok(callers.includes("work"), callers.join());
    });
    task("What does sending cost, in all of its functions?", [service, view("bottom-up"), search("send")], async (page) => {
      // 0.13 s of 0.85 to 0.95 of each second: 15 %.
      const matched = parseFloat(await text(page, "#search-result"));
      assert.ok(matched > 7 && matched < 30, `${matched} %`);
    });
  });

  describe("by line", () => {
    task("Which line of the hottest function is it?", [filters, byLine, view("table")], async (page) => {
      await page.waitForSelector(".rows [data-index='0']");
      assert.ok((await text(page, '.rows [data-index="0"]')).startsWith(`price_with_tax checkout.c:${hotLine}`), await text(page, '.rows [data-index="0"]'));
    });
    task("From which line is the map searched?", [filters, byLine, view("bottom-up")], async (page) => {
      const found = await mirror(page);
      const searched = found.findIndex(({ name, depth }) => depth === 1 && name.startsWith("find_rate"));
      assert.equal(found[searched + 1]?.name, `price_with_tax checkout.c:${searchLine}`);
    });
    task("Which line of the Java code is it?", [java, filters, byLine], async (page) => {
      assert.ok((await names(page)).includes(`Stock.scan Stock.java:${javaLine}`), (await names(page)).join());
    }, ofJava);
  });

  describe("waiting", () => {
    task("Who held the lock?", [service, waiting, reason("lock")], async (page) => {
      assert.ok((await names(page)).includes(`[held by holder (${tidOf("holder")})]`), (await names(page)).join());
    });
    // Waits are kept in memory, so this is about a time since the daemon has begun.
    task("Why was the service slow at two?", [time(() => clock(Date.now() - 10_000)), waiting, service], async (page) => {
      const reasons = await page.$$eval("#reasons [data-reason]", (all) => all.map(({ dataset }) => dataset.reason));
      assert.equal(reasons[0], "lock", await text(page, "#reasons"));
    });
    task("Which function waits for the disk?", [service, waiting, reason("disk")], async (page) => {
      const shown = await names(page);
      assert.ok(shown.includes("commit") && !shown.includes("lock_session"), shown.join());
    });
  });

  describe("of managed runtimes", () => {
    task("Which Java method uses the most CPU time?", [java, view("sandwich")], async (page) => {
      await page.waitForSelector("#graph-callers .flame-item");
      assert.equal(await text(page, "#middle"), "Stock.scan");
    }, ofJava);
    task("How much of the JVM's time is garbage collection?", [java, search("G1")], async (page) => {
      const matched = parseFloat(await text(page, "#search-result"));
      const scanned = await valueOf(page, "Stock.scan");
      const [{ value }] = await first(page, 0);
      assert.ok(matched > 0 && matched < 100 - (100 * scanned) / value, `${matched} %`);
    }, ofJava);
    task("Through which calls does the JVM come to the hottest method?", [java, view("bottom-up")], async (page) => {
      const found = await mirror(page);
      const at = found.findIndex(({ name, depth }) => depth === 1 && name === "Stock.scan");
      assert.deepEqual(found.slice(at + 1, at + 3).map(({ name }) => name), ["Stock.reserve", "Stock.main"]);
    }, ofJava);
  });

  describe("of the past", () => {
    task("What kept the machine busy at noon?", [time(`${noon.slice(0, 10)} 12:00 - 12:05`), view("bottom-up")], async (page) => {
      const hottest = (await first(page)).reduce((most, each) => (each.value > most.value ? each : most));
      assert.equal(hottest.name, "price_with_tax");
    });
    task("What was it that used the CPU for two seconds, three minutes ago?", [
      click("#heat-toggle"),
      // Where it stands out in the heat map.
      async (page) => {
        const asked = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name).findLast((name) => new URL(name).pathname === "/heatmap"));
        const { start_ms, columns } = await (await fetch(asked)).json();
        const place = (ms) => (ms - start_ms) / (1000 * columns);
        await answered(page, () => dragOver("#heat", [place(burstFrom), 0.99], [place(burstTo), 0.01])(page));
      },
      view("bottom-up"),
    ], async (page) => {
      const { from, to } = await query(page);
      assert.ok(Date.parse(from) <= burstFrom + 1000 && Date.parse(to) >= burstTo - 1000 && Date.parse(to) - Date.parse(from) < 10_000, `${from} ${to}`);
      const functions = await first(page);
      const hottest = functions.reduce((most, each) => (each.value > most.value ? each : most));
      assert.equal(hottest.name, "burst_function", JSON.stringify([from, to, burstFrom, burstTo, functions]));
    });
    task("What did the backup do, which has ended?", [click('#ranges [data-from="now-1h"]'), type("#process-filter", "backup")], async (page) => {
      assert.match((await query(page)).pid, new RegExp(`^${backup}@`));
      assert.ok((await names(page)).includes("work_two"), (await names(page)).join());
    });
  });

  describe("compared", () => {
    // What a frame of the graph says of both times.
    const said = async (page, name) => (await mirror(page)).find((frame) => frame.name === name)?.text ?? "";
    task("What is different from an hour ago?", [service, click("#what-changed"), view("table")], async (page) => {
      assert.equal((await query(page)).base_ago, "1h");
      await page.waitForSelector(".rows [data-index='0']");
      assert.match(await text(page, '.rows [data-index="0"]'), /^audit.*\+\d.*significant$/);
    });
    task("What has changed against the five minutes before?", [service, click('#ranges [data-from="now-5m"]'), press("d")], async (page) => {
      assert.match(await said(page, "audit"), /^audit, from 0 % to \d.* %, significant$/);
    });
    task("Was it like this last Tuesday?", [service, show("#compare-button"), click('#compare .entry:has-text("a week ago")')], async (page) => {
      assert.equal((await query(page)).base_ago, "7d");
      assert.match(await said(page, "audit"), /^audit, from 0 % to \d.* %, significant$/);
      const shares = (await said(page, "price_with_tax")).match(/^price_with_tax, from ([\d.]+) % to ([\d.]+) %/)?.slice(1).map(Number) ?? [];
      assert.ok(shares.length === 2 && Math.max(...shares) < 2 * Math.min(...shares), await said(page, "price_with_tax"));
    });
  });

  describe("in containers", () => {
    for (const [sentence, typed, pid, function_, lacking] of [
      ["What does the container stage-7 do?", "stage-7", stage, "work_two", noGroups],
      ["What does the container 3f1c9a0b7d2e do?", docker.slice(0, 12), stock, "Stock.scan", noGroups || noJava],
      ["What runs in Docker, and what does it do?", "docker", stock, "Stock.scan", noGroups || noJava],
    ]) {
      task(sentence, [type("#process-filter", typed)], async (page) => {
        assert.match((await query(page)).pid, new RegExp(`^${pid}@`));
        assert.ok((await names(page)).includes(function_), typed);
      }, { lacking });
    }
  });

  describe("by phone or keyboard", () => {
    task("On a phone: what does the busiest service do?", [serviceInList, view("table")], async (page) => {
      await page.waitForSelector(".rows [data-index='0']");
      assert.match(await text(page, '.rows [data-index="0"]'), /^price_with_tax/);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page scrolls sideways");
    }, { chosen: { width: 390, height: 844 } });
    task("By keys: how much is reading JSON?", [serviceInList, key("/"), write("json")], async (page) => {
      // 0.15 s of 0.85 to 0.95 of each second: 17 %.
      const matched = parseFloat(await text(page, "#search-result"));
      assert.ok(matched > 8 && matched < 34, `${matched} %`);
    });
    task("By keys: a link to what I see, for a colleague.", [key("c")], async (page) => {
      await page.waitForSelector(".copied");
      const link = await page.evaluate(() => navigator.clipboard.readText());
      assert.ok(Date.parse(new URL(link).searchParams.get("to")) <= Date.now(), link);
      const shown = [];
      for (let time = 0; time < 2; time++) {
        const other = await browser.page(new URL(url).origin, SCREEN);
        await open(other, link);
        shown.push(await mirror(other));
        await other.close();
      }
      assert.deepEqual(shown[1], shown[0]);
      assert.ok(shown[0].some(({ name }) => name === "price_with_tax"), link);
    });
  });
});

theListIsTested();

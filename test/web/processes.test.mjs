// SPDX-License-Identifier: Apache-2.0
// The tree of processes, and the figures at the bottom of the page.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { answerInstead, answered, inspect, open, text } from "./browser.mjs";
import { browser, daemon, page, useFixture } from "./fixture.mjs";

// The rows in the document: the visible ones, and a few around them.
const rows = (page) =>
  page.$$eval("#process-list [role=treeitem]", (items) =>
    items.map((item) => ({
      id: item.dataset.id, level: Number(item.ariaLevel), isOpen: item.ariaExpanded, isSelected: item.ariaSelected === "true",
      name: item.querySelector("bdi").textContent, text: item.textContent, isEnded: item.classList.contains("ended"),
    })));

describe("the processes", () => {
  useFixture();

  const BUILD = "from=2026-01-31T11:48:00Z&to=2026-01-31T12:12:00Z";
  const names = async () => (await rows(page)).map(({ name, level }) => [name, level]);

  it("are grouped by program, with the most CPU time first", async () => {
    await open(page, daemon.url);
    const list = await rows(page);
    assert.deepEqual((await names()).slice(0, 3), [["Whole machine", 1], ["checkout-api", 1], ["java", 1]]);
    assert.match(list[1].text, /4242 · checkout\.service.*105 s61\.8 %/);
    assert.match(list[2].text, /31337 · 3f1c9a0b7d2e/);
    assert.ok(list[0].isSelected);
    assert.equal(await text(page, "#processes-count"), "65");
    await inspect(page, "processes");
    await open(page, `${daemon.url}/?${BUILD}`);
    const build = (await rows(page)).find(({ name }) => name === "cc1plus");
    assert.match(build.text, /^cc1plus ×12/);
    assert.equal(build.isOpen, "false");
    await page.click('[data-id="exe cc1plus"] .twisty');
    assert.equal((await rows(page)).filter(({ name, level }) => name === "cc1plus" && level === 2).length, 12);
    await answered(page, () => page.click('[data-id="exe cc1plus"] .name'));
    assert.equal(await page.evaluate(() => new URLSearchParams(location.search).get("exe")), "cc1plus");
    assert.ok((await rows(page)).find(({ id }) => id === "exe cc1plus").isSelected);
  });

  it("can be grouped by unit, container, user or parent, or not at all", async () => {
    await open(page, `${daemon.url}/?${BUILD}`);
    const by = async (what) => {
      await page.selectOption("#by", what);
      assert.equal(await page.evaluate(() => new URLSearchParams(location.search).get("by")), what);
      return names();
    };
    // A unit or a container with only one process has a row of its own.
    const units = await by("unit");
    assert.ok(units.some(([name]) => name === "checkout.service"));
    assert.ok(units.every(([, level]) => level === 1));
    await page.click('[data-id="unit user@1000.service"] .twisty');
    assert.deepEqual((await names()).filter(([, level]) => level === 2), [["cc1plus", 2], ["make", 2]]);
    assert.ok((await by("container")).some(([name]) => name === "3f1c9a0b7d2e"));
    assert.ok((await by("user")).some(([name]) => name === "User 1000"));
    await by("tree");
    await page.click('[data-id="tree 2300@31000"] .twisty');
    assert.equal((await names()).filter(([name, level]) => name === "cc1plus" && level === 2).length, 12);
    assert.equal((await by("pid")).filter(([name, level]) => name === "cc1plus" && level === 1).length, 12);
    await inspect(page, "processes-flat");
  });

  it("show the selected process even if its group was closed", async () => {
    await open(page, `${daemon.url}/?${BUILD}&pid=2305`);
    assert.ok((await rows(page)).find(({ isSelected }) => isSelected)?.name === "cc1plus");
  });

  it("have sparklines, also groups and processes that are not among the busiest", async () => {
    // As if there were more processes than one answer has.
    await answerInstead(page, "/timeline", (answer) => ({ ...answer, processes: answer.processes.slice(0, 2) }));
    await open(page, `${daemon.url}/?by=unit`);
    const drawn = (id) => page.waitForSelector(`[data-id="${id}"] .sparkline path`, { state: "attached" });
    await drawn("unit batch.service");
    await page.click('[data-id="unit batch.service"] .twisty');
    await drawn("9059@95000");
    assert.deepEqual(page.troubles, []);
  });

  it("are marked if they have ended", async () => {
    await open(page, daemon.url);
    const list = await rows(page);
    assert.ok(list.find(({ name }) => name === "batch-59").isEnded);
    assert.ok(!list.find(({ name }) => name === "checkout-api").isEnded);
    assert.match(await page.getAttribute('[data-id="9059@95000"]', "title"), /^\/usr\/bin\/batch-59 --config .*\nuser 33\nunit batch\.service\n.*\nended 2026-01-31/s);
  });

  it("show a unit, a process or a thread when they are clicked", async () => {
    await open(page, `${daemon.url}/?by=unit`);
    await answered(page, () => page.click('[data-id="unit batch.service"] .name'));
    assert.equal(await page.evaluate(() => location.search), "?unit=batch.service&by=unit");
    assert.match(await text(page, "#facts"), /Samples1,830 /);
    await answered(page, () => page.selectOption("#by", ""));
    await answered(page, () => page.click('[data-id="31337@70000"] .name'));
    await answered(page, () => page.click('[data-id="31337@70000"] .twisty'));
    const threads = (await rows(page)).filter(({ id }) => id?.startsWith("thread"));
    assert.ok(threads.length > 0 && threads.every(({ level }) => level === 2));
    // The main one is marked, and each has its course.
    assert.deepEqual(threads.filter(({ text: words }) => words.includes("· main")).map(({ id }) => id), ["thread 31337@70000 31337"]);
    await page.waitForFunction((count) => document.querySelectorAll('[data-id^="thread"] .sparkline path').length === count, threads.length);
    await answered(page, () => page.click(`[data-id="${threads[0].id}"] .name`));
    assert.match(await page.evaluate(() => location.search), /^\?pid=31337%4070000&tid=313/);
    assert.ok((await rows(page)).find(({ id }) => id === threads[0].id).isSelected);
  });

  it("are found by their container runtime and by their pod", async () => {
    const id = "a".repeat(64);
    await answerInstead(page, "/processes", (answer) => {
      const [one] = answer.processes;
      const inside = (pid, comm, cgroup) => ({ ...one, id: `${pid}@1`, pid, comm, executable: `/bin/${comm}`, command_line: null, unit: null, container: id, cgroup });
      return { ...answer, processes: [
        inside(1, "web", `/system.slice/docker-${id}.scope`), inside(2, "db", `/machine.slice/libpod-${id}.scope`),
        inside(3, "queue", `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f2e_3d4c.slice/cri-containerd-${id}.scope`),
      ] };
    });
    await open(page, daemon.url);
    for (const [typed, found] of [["docker", "web"], ["podman", "db"], ["kubernetes", "queue"], ["pod1f2e-3d4c", "queue"], ["aaaaaaaa", "web,db,queue"]]) {
      await page.fill("#process-filter", typed);
      assert.equal((await names()).map(([name]) => name).join(), found, typed);
    }
  });

  it("are found by typing a name, pid, command line or unit", async () => {
    await open(page, daemon.url);
    await page.keyboard.press("p");
    await page.keyboard.type("BATCH-5");
    assert.equal(await text(page, "#processes-count"), "11 of 65");
    await page.fill("#process-filter", "stock.jar");
    assert.deepEqual((await rows(page)).map(({ id }) => id), ["31337@70000"]);
    await page.fill("#process-filter", "checkout.service");
    assert.deepEqual((await rows(page)).map(({ id }) => id), ["4242@90000"]);
    await answered(page, () => page.press("#process-filter", "Enter"));
    assert.equal(await page.evaluate(() => new URLSearchParams(location.search).get("pid")), "4242@90000");
    await page.fill("#process-filter", "no such");
    assert.match(await text(page, ".process-box"), /No process matches/);
  });

  it("can be navigated, opened and chosen with the keyboard", async () => {
    await open(page, daemon.url);
    await page.focus("#process-list");
    const active = () => page.$eval("#process-list", (list) => document.getElementById(list.getAttribute("aria-activedescendant"))?.querySelector("bdi").textContent);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.equal(await active(), "checkout-api");
    await answered(page, () => page.keyboard.press("ArrowRight"));
    await page.keyboard.press("ArrowRight");
    assert.equal((await rows(page))[2].level, 2);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    assert.equal(await active(), "checkout-api");
    await page.keyboard.press("End");
    assert.match(await active(), /\w/);
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    await answered(page, () => page.keyboard.press("Enter"));
    assert.equal(await page.evaluate(() => location.search), "?pid=4242%4090000");
  });

  it("keep the active row in the document before the list's scroll event", async () => {
    await open(page, daemon.url);
    await page.evaluate(() => window.addEventListener("scroll", (event) => event.stopImmediatePropagation(), true));
    await page.focus("#process-list");
    await page.keyboard.press("End");
    const active = await page.$eval("#process-list", (list) => document.getElementById(list.getAttribute("aria-activedescendant"))?.ariaPosInSet);
    assert.equal(active, await page.$eval("#process-list [role=treeitem]:last-child", (row) => row.ariaSetSize));
  });

  it("are plain text, whatever their names", async () => {
    await open(page, daemon.url);
    await page.fill("#process-filter", "777");
    assert.equal((await rows(page))[0].name, "<img onerror=x>");
    await page.fill("#process-filter", "gnp.exe");
    assert.equal((await rows(page))[0].name, "\\u202egnp.exe");
    assert.equal(await page.$$eval("img", (images) => images.length), 0);
    assert.deepEqual(page.troubles, []);
  });

  it("leave the document small even if there are 10,000", async () => {
    await page.route(`${daemon.url}/processes*`, async (route) => {
      const answer = await page.context().request.get(route.request().url());
      const body = await answer.json();
      const one = body.processes[0];
      body.processes = Array.from({ length: 10000 }, (_, i) => ({ ...one, id: `${i + 1}@${i}`, pid: i + 1, comm: `p${i}`, unit: `u${i % 700}.service`, cpu_seconds: 10000 - i }));
      await route.fulfill({ json: body });
    });
    await open(page, daemon.url);
    assert.equal(await text(page, "#processes-count"), "10000");
    await page.$eval("#process-list", (list) => (list.scrollTop = 150000));
    await page.waitForFunction(() => document.querySelector("#process-list [role=treeitem]").textContent !== "Whole machine");
    const took = await page.evaluate(async () => {
      const field = document.querySelector("#process-filter");
      const begun = performance.now();
      field.value = "p99";
      field.dispatchEvent(new Event("input", { bubbles: true }));
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      return performance.now() - begun;
    });
    assert.equal(await text(page, "#processes-count"), "111 of 10000");
    assert.ok(took < 500, `${took} ms`);
    assert.ok((await page.$$eval("*", (all) => all.length)) < 2000);
  });

  it("have descriptions made only for visible rows, and not again while the graph is used", async () => {
    await answerInstead(page, "/processes", (answer) => {
      const [one] = answer.processes;
      return { ...answer, processes: Array.from({ length: 2000 }, (_, i) => ({ ...one, id: `${i + 1}@${i}`, pid: i + 1, comm: `p${i}`, executable: `/bin/p${i}` })) };
    });
    // Counts how often the page reads a process's command line.
    await page.addInitScript(() => {
      window.described = 0;
      const parse = JSON.parse;
      JSON.parse = (text) => {
        const value = parse(text);
        for (const process of value?.processes ?? []) {
          const line = process.command_line;
          Object.defineProperty(process, "command_line", { get: () => { window.described++; return line; } });
        }
        return value;
      };
    });
    await open(page, daemon.url);
    assert.equal(await text(page, "#processes-count"), "2000");
    const described = () => page.evaluate(() => window.described);
    const before = await described();
    assert.ok(before > 0 && before < 200, `${before} descriptions`);
    await page.focus("#graph");
    for (const key of ["ArrowDown", "Enter", "ArrowDown", "Enter", "Escape"]) await page.keyboard.press(key);
    await page.waitForTimeout(100);
    assert.equal(await described(), before);
  });

  it("are those of the selected part of each second", async () => {
    await open(page, `${daemon.url}/?offset_from=240&offset_to=330`);
    const { cpu_seconds } = await page.evaluate(async () => (await fetch("/processes?offset_from=240&offset_to=330")).json());
    const whole = await page.evaluate(async () => (await fetch("/processes")).json());
    assert.ok(cpu_seconds < whole.cpu_seconds / 2);
    assert.match((await rows(page))[0].text, new RegExp(`Whole machine *${cpu_seconds.toFixed(1)} s`));
  });

  it("stand above figures that each lead to what they mean", async () => {
    await open(page, `${daemon.url}/?pid=4242`);
    const facts = await page.$$eval("#facts .fact", (all) => all.map((fact) => [fact.querySelector("dt").textContent, fact.querySelector("dd").textContent, fact.querySelector("a").getAttribute("href")]));
    assert.deepEqual(facts.map(([name]) => name), ["Window", "Samples", "CPU", "Stacks", "Names", "Lost"]);
    assert.equal(facts[1][1], "10,470 at 100 Hz");
    assert.equal(facts[3][1], "0.57 % are cut too deep");
    assert.match(facts[4][1], /^[0-9.]+ % unknown$/);
    assert.match(await page.getAttribute("#facts a[href$=named]", "title"), /\nlibvendor\.so: the file has no symbols$/);
    assert.equal(facts[5][1], "12 samples flamed came too late");
    // Stacks that are cut because they are deep are no reason for a warning.
    assert.equal(await page.$("#facts .warn, #facts .bad"), null);
    const help = await browser.page(daemon.url);
    await help.goto(`${daemon.url}/help`);
    for (const [, , href] of facts) assert.ok(await help.$(`h2${href.slice(href.indexOf("#"))}`), href);
    await help.close();
  });
});

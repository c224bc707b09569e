// SPDX-License-Identifier: Apache-2.0
// Figures about the shown profile and its quality. Each figure links to its explanation.
import { computed, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import "./footer.css";
import type { Counts, Coverage } from "../answers";
import { rateText, sampledMs } from "../facts";
import { isTimed, shownMeasure, worth } from "../measure";
import { about, findProcess, processes, profile } from "../questions";
import { SELECTORS, question } from "../state";
import { count, duration, percent, printable, seconds, span } from "../text";

type Level = "" | "warn" | "bad";

const sum = (reasons: Counts) => Object.values(reasons).reduce((total, number) => total + number, 0);

// Reasons for cut stacks and lost samples, in plain words.
const WORDS: Record<string, string> = {
  new_process: "new processes", depth_limit: "too deep", kernel_depth_limit: "too deep in the kernel", rows_pending: "tables still being built",
  broken_frame_pointer: "broken frame pointers", no_unwind_information: "no unwind information", unreadable_stack: "stack not in memory",
  stack_later: "stack not read yet", stack_ran: "ran before the stack was read", stack_not_read: "stack not read in time",
  store_full: "memory budget used up", ring_full: "flamed came too late", too_old: "came too late to be stored",
};
const told = (reasons: Counts, most = 2) =>
  Object.entries(reasons).filter(([, number]) => number > 0).sort(([, a], [, b]) => b - a).slice(0, most)
    .map(([reason]) => WORDS[reason] ?? reason.replaceAll("_", " ")).join(", ");

// Reasons that also occur if nothing is wrong.
const USUAL: ReadonlySet<string> = new Set(["new_process", "depth_limit", "kernel_depth_limit", "rows_pending", "stack_later", "stack_ran"]);
const unusual = (reasons: Counts) => sum(Object.fromEntries(Object.entries(reasons).filter(([reason]) => !USUAL.has(reason))));

interface FactProperties {
  about: string; // the section of the page of explanations
  name: string;
  level?: Level;
  title: string;
  more?: string;
  children: ComponentChildren;
}

function Fact({ about: section, name, level = "", title, more = "", children }: FactProperties) {
  return (
    <div class={`fact ${level}`}>
      <dt><a href={`/help#${section}`} target="_blank" rel="noopener" title={title}>{name}</a></dt>
      <dd>{children}{more && <small> {more}</small>}</dd>
    </div>
  );
}

function CoverageFact({ coverage, cpuSeconds }: { coverage: Coverage | undefined; cpuSeconds: number }) {
  if (coverage === undefined || coverage.share === null) return null;
  const { share: covered, cpu_seconds_accounted: accounted, thread_seconds: existed, thread_seconds_error: error } = coverage;
  const title = typeof existed === "number"
    ? `With what waits for work, the stored times are that share of the ${seconds(existed - (accounted ?? 0))} that threads existed${accounted === null ? "" : " and were not on a CPU"} (± ${seconds(error ?? 0)})`
    : `The samples stand for ${seconds(cpuSeconds)} of the ${seconds(accounted ?? 0)} that the kernel accounted`;
  // Chance moves it by a few per cent, which is not marked.
  const level: Level = covered < 0.8 ? "warn" : "";
  return <Fact about="coverage" name="Coverage" level={level} title={title}>{percent(covered, 1)}</Fact>;
}

// The start and end of each selected process; empty if anything else is selected too, or a process is not known.
function selectedLives() {
  const asked = question.value;
  if (SELECTORS.some((selector) => selector !== "pid" && selector !== "tid" && asked[selector].length > 0)) return [];
  const lives = asked.pid.map(findProcess);
  return lives.every((process) => process !== undefined) ? lives : [];
}

function Facts({ facts }: { facts: NonNullable<typeof about.value> }) {
  const { quality, window: { used }, samples, before } = facts;
  const truncated = sum(quality.truncated);
  const lost = sum(quality.lost);
  const length = used.to_ms - used.from_ms; // without the time before flamed began
  const rate = rateText(facts);
  const sampled = sampledMs(facts, { ...question.value, lives: selectedLives() });
  const stored = quality.whole + truncated;
  // Of the whole machine, since lost samples have no process.
  const taken = (processes.answer.value?.samples ?? samples) + lost;
  const named = facts.symbolised_share;
  const unnamed = facts.unnamed ?? [];
  return (
    <>
      {facts.visible_uid !== null && (
        <Fact about="seen" name="Seen" more={`uid ${facts.visible_uid}`} title="Who may see whose processes">own processes only</Fact>
      )}
      <Fact about="window" name="Window" more={`${duration(length)}${facts.resolution_ms > 0 ? `, in steps of ${duration(facts.resolution_ms)}` : ""}`}
        title={`${used.from} to ${used.to}`}>{span(used.from_ms, used.to_ms)}</Fact>
      {!isTimed.value && <Fact about="samples" name="Samples" more={[rate === "" ? "" : `at ${rate}`, before === undefined ? "" : `before ${count(before.samples)}`].filter((text) => text !== "").join(", ")} title="Number of samples, and how often the window was sampled">{count(samples)}</Fact>}
      {isTimed.value ? (
        <Fact about="waiting" name={shownMeasure.value === "wait" ? "Waited" : "CPU and waiting"} more={`${((1000 * facts.cpu_seconds) / length).toFixed(2)} threads`} title="The time of all threads together, and the average number of threads at once">
          {seconds(facts.cpu_seconds)}
        </Fact>
      ) : (
        <Fact about="cpu" name="CPU" more={rate !== "" && sampled > 0 ? `${((1000 * facts.cpu_seconds) / sampled).toFixed(2)} CPUs` : ""} title="CPU time used, and the average number of CPUs busy with it while it could be sampled">
          {seconds(facts.cpu_seconds)}
        </Fact>
      )}
      <CoverageFact coverage={facts.coverage} cpuSeconds={facts.cpu_seconds} />
      <Fact about="whole" name="Stacks" level={unusual(quality.truncated) > 0.05 * stored ? "warn" : ""} more={told(quality.truncated)} title="Stacks without their outermost part, and why">
        {truncated === 0 ? "all whole" : `${percent(truncated, stored)} are cut`}
      </Fact>
      {named !== undefined && (
        <Fact about="named" name="Names" level={named < 0.9 ? "warn" : ""}
          title={["Functions without a name, weighted by samples", ...unnamed.map(({ module, reason }) => printable(`${module}: ${reason}`))].join("\n")}>
          {named >= 1 ? "all known" : `${percent(1 - named, 1)} unknown`}
        </Fact>
      )}
      <Fact about="lost" name="Lost" level={lost > 0.01 * taken ? "bad" : lost > 0.001 * taken ? "warn" : ""} more={told(quality.lost)} title="Samples of the whole machine that were taken and could not be stored">
        {lost === 0 ? "nothing" : isTimed.value ? seconds(lost * worth(facts)) : `${count(lost)} ${lost === 1 ? "sample" : "samples"}`}
      </Fact>
    </>
  );
}

// Without samples, the notice in the graph's place has the remarks.
const remarks = computed(() => {
  const facts = about.value;
  return facts === null || profile.problem.value !== null || facts.samples + (facts.before?.samples ?? 0) === 0 ? [] : facts.warnings;
});

// The daemon's remarks on the answer: one line, and all of them after a click.
function Remarks() {
  const isOpen = useSignal(false);
  const list = remarks.value;
  if (list.length === 0) return null;
  return (
    <button type="button" id="warnings" class={isOpen.value ? "remarks open" : "remarks"} aria-expanded={isOpen} title={list.map((text) => printable(text)).join("\n")}
      onClick={() => (isOpen.value = !isOpen.value)}>
      {list.map((text) => <span key={text}>{printable(text)} </span>)}
    </button>
  );
}

export function Footer() {
  const facts = about.value;
  return (
    <footer class="facts" aria-label="What this profile is made of">
      <dl id="facts">{facts !== null && <Facts facts={facts} />}</dl>
      <Remarks />
    </footer>
  );
}

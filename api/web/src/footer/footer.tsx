// SPDX-License-Identifier: Apache-2.0
// What the profile that is shown is made of, and how far to trust it. Each figure leads to what it means.
import type { ComponentChildren } from "preact";

import "./footer.css";
import type { Counts, Coverage } from "../answers";
import { rateText, sampledMs } from "../facts";
import { about, findProcess } from "../questions";
import { SELECTORS, question } from "../state";
import { count, duration, percent, seconds, span } from "../text";

type Level = "" | "warn" | "bad";

const sum = (reasons: Counts) => Object.values(reasons).reduce((total, number) => total + number, 0);

const told = (reasons: Counts) =>
  Object.entries(reasons).filter(([, number]) => number > 0).sort(([, a], [, b]) => b - a)
    .map(([reason, number]) => `${reason.replaceAll("_", " ")} ${count(number)}`).join(", ");

// Not rounded up: 100 % is said only of all.
const share = (part: number) => (part >= 1 ? "100 %" : `${(Math.floor(part * 1000) / 10).toFixed(1)} %`);

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
  if (coverage === undefined) return null;
  const { share: covered, cpu_seconds_accounted: accounted, reason } = coverage;
  const title = accounted === null ? `Not known: ${reason ?? "the kernel's accounts don't have it"}` : `The samples stand for ${seconds(cpuSeconds)} of the ${seconds(accounted)} that the kernel accounted`;
  // Chance alone moves it by a few per cent: only what that does not explain is marked.
  const level: Level = covered !== null && covered < 0.8 ? "warn" : "";
  return <Fact about="coverage" name="Coverage" level={level} title={title}>{covered === null ? "not known" : percent(covered, 1)}</Fact>;
}

// Of the selected processes, where nothing else is selected and all of them are known.
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
  const whole = quality.whole + truncated === 0 ? 1 : quality.whole / (quality.whole + truncated);
  const named = facts.symbolised_share;
  return (
    <>
      {facts.visible_uid !== null && (
        <Fact about="seen" name="Seen" level="warn" more={`uid ${facts.visible_uid}`} title="Who may see whose processes">own processes only</Fact>
      )}
      <Fact about="window" name="Window" more={`${duration(length)}${facts.resolution_ms > 0 ? `, in steps of ${duration(facts.resolution_ms)}` : ""}`}
        title={`${used.from} to ${used.to}`}>{span(used.from_ms, used.to_ms)}</Fact>
      <Fact about="samples" name="Samples" more={[rate === "" ? "" : `at ${rate}`, before === undefined ? "" : `before ${count(before.samples)}`].filter((text) => text !== "").join(", ")} title="Number of samples, and how often the window was sampled">{count(samples)}</Fact>
      <Fact about="cpu" name="CPU" more={rate !== "" && sampled > 0 ? `${((1000 * facts.cpu_seconds) / sampled).toFixed(2)} CPUs` : ""} title="CPU time used, and the average number of CPUs busy with it while it could be sampled">
        {seconds(facts.cpu_seconds)}
      </Fact>
      <CoverageFact coverage={facts.coverage} cpuSeconds={facts.cpu_seconds} />
      <Fact about="whole" name="Whole" level={whole < 0.95 ? "warn" : ""} more={told(quality.truncated)} title="Share of stacks with their outermost part">{share(whole)}</Fact>
      {named !== undefined && (
        <Fact about="named" name="Named" level={named < 0.9 ? "warn" : ""} title="Share of functions with a name, weighted by samples">{share(named)}</Fact>
      )}
      {/* A lost sample has no process, so it is no share of what is selected. */}
      <Fact about="lost" name="Lost" level={lost > 0 ? "bad" : ""} more={told(quality.lost)} title="Samples of the whole machine that were taken and could not be stored">
        {lost === 0 ? "none" : count(lost)}
      </Fact>
    </>
  );
}

export function Footer() {
  const facts = about.value;
  return (
    <footer class="facts" aria-label="What this profile is made of">
      <dl id="facts">{facts !== null && <Facts facts={facts} />}</dl>
    </footer>
  );
}

// SPDX-License-Identifier: Apache-2.0
// What the profile that is shown is made of, and how far to trust it.
import "./footer.css";
import type { Counts } from "../answers";
import { about } from "../questions";
import { count, duration, percent, seconds, span } from "../text";

const sum = (reasons: Counts) => Object.values(reasons).reduce((total, number) => total + number, 0);

const told = (reasons: Counts) =>
  Object.entries(reasons).filter(([, number]) => number > 0)
    .map(([reason, number]) => `${reason.replaceAll("_", " ")} ${count(number)}`).join(", ");

interface FactProperties {
  name: string;
  value: string;
  more?: string;
  level?: "" | "warn" | "bad";
  title?: string;
}

function Fact({ name, value, more = "", level = "", title }: FactProperties) {
  return (
    <div class={level} title={title}>
      <dt>{name}</dt>
      <dd>{value}{more && <small> {more}</small>}</dd>
    </div>
  );
}

function Facts() {
  const facts = about.value;
  if (facts === null) return null;
  const { quality, window: { used } } = facts;
  const truncated = sum(quality.truncated);
  const lost = sum(quality.lost);
  const length = used.to_ms - used.from_ms;
  return (
    <>
      <Fact name="Window" value={span(used.from_ms, used.to_ms)} more={duration(length)}
        title={`${used.from} to ${used.to}, in steps of ${duration(facts.resolution_ms)}`} />
      <Fact name="Samples" value={count(facts.samples)} more={`at ${Number(facts.frequency_hz.toFixed(1))} Hz`} />
      <Fact name="CPU" value={seconds(facts.cpu_seconds)} more={length > 0 ? `${((1000 * facts.cpu_seconds) / length).toFixed(2)} cores` : ""} />
      <Fact name="Truncated" value={truncated === 0 ? "none" : percent(truncated, quality.whole + truncated)} more={told(quality.truncated)}
        level={truncated > 0 ? "warn" : ""} title="Stacks of which the outermost part is missing" />
      {/* A lost sample has no process, so it is no share of what is selected. */}
      <Fact name="Lost" value={lost === 0 ? "none" : count(lost)} more={told(quality.lost)} level={lost > 0 ? "bad" : ""}
        title="Samples of the whole machine that were taken and could not be kept" />
    </>
  );
}

export function Footer() {
  return <footer class="facts" aria-label="What this profile is made of"><dl id="facts"><Facts /></dl></footer>;
}

// SPDX-License-Identifier: Apache-2.0
// The layout of the page.
import { Bar } from "./bar/bar";
import { Footer } from "./footer/footer";
import { Graph } from "./graph/graph";
import { KeysDialog } from "./keys";
import { Processes } from "./processes/processes";
import { Away, OpenedFile } from "./states";
import { HeatMap } from "./time/heatmap";
import { Timeline } from "./time/timeline";

export function App() {
  return (
    <>
      <a class="skip" href="#stage">Skip to the flame graph</a>
      <Bar />
      <Away />
      <OpenedFile />
      <main class="panes">
        <Timeline />
        <Processes />
        <div class="right">
          <HeatMap />
          <Graph />
        </div>
      </main>
      <Footer />
      <KeysDialog />
    </>
  );
}

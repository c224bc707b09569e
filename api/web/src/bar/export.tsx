// SPDX-License-Identifier: Apache-2.0
// Exports of the shown profile: the same query with fixed times, in other formats.
import { EXPORT } from "../icons";
import { useKeys } from "../keys";
import { addressIn } from "../link";
import { isCpu } from "../measure";
import { Menu, closeMenu, openMenu } from "../menu";
import { pictures, save } from "../pictures";
import { askedWindow } from "../questions";
import { base } from "../state";
import { heading } from "../title";

interface Format {
  format: string;
  label: string;
  ending: string;
}

const PROFILE: readonly Format[] = [
  { format: "folded", label: "Folded stacks", ending: "folded.txt" },
  { format: "pprof", label: "pprof", ending: "pb.gz" },
  { format: "speedscope", label: "speedscope", ending: "speedscope.json" },
  { format: "perf-script", label: "perf script, sample by sample", ending: "perf.txt" },
  { format: "top-text", label: "Table as text", ending: "txt" },
  { format: "flamegraph", label: "Tree as JSON", ending: "json" },
];
const DIFF: readonly Format[] = [
  { format: "folded", label: "Folded stacks, before and after", ending: "diff.txt" },
  { format: "top-text", label: "Table as text", ending: "txt" },
  { format: "flamegraph", label: "Tree as JSON", ending: "json" },
];

// A file name for the shown profile: "checkout-api-2026-01-31-1405".
function fileName(): string {
  const name = heading.value.name.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 60).replace(/^[-.]+|[-.]+$/g, "") || "profile";
  const when = askedWindow.value === null ? "" : `-${new Date(askedWindow.value.from_ms).toISOString().slice(0, 16).replace("T", "-").replace(":", "")}`;
  return name + when;
}

// Set by bundle.sh: whether this build serves speedscope.
declare const HAS_SPEEDSCOPE: boolean;
const inSpeedscope = () => `/speedscope/#profileURL=${encodeURIComponent(addressIn("speedscope"))}&title=${encodeURIComponent(heading.value.name)}`;

export function Export() {
  useKeys("Bar", [{ key: "e", what: "Export", act: () => openMenu("export") }]);
  const drawn = pictures.value;
  const close = () => closeMenu("export");
  const draw = async (kind: "svg" | "png") => {
    close();
    if (drawn !== null) save(await drawn[kind](), `${fileName()}.${kind}`);
  };
  return (
    <Menu id="export" label="Export" icon={EXPORT}>
      <h2>Picture of the graph</h2>
      <button type="button" class="entry" disabled={drawn === null} onClick={() => draw("svg")}>Vector picture<small>.svg</small></button>
      <button type="button" class="entry" disabled={drawn === null} onClick={() => draw("png")}>Bitmap<small>.png</small></button>
      <hr />
      <h2>{base.value === null ? "Profile" : "Comparison"}</h2>
      {(base.value === null ? PROFILE : DIFF).filter(({ format }) => isCpu.value || format !== "perf-script").map(({ format, label, ending }) => (
        <a key={format} href={addressIn(format)} download={`${fileName()}.${ending}`} onClick={close}>{label}<small>.{ending}</small></a>
      ))}
      {HAS_SPEEDSCOPE && base.value === null && (
        <>
          <hr />
          <a id="open-speedscope" href={inSpeedscope()} target="_blank" rel="noopener" onClick={close}>Open in speedscope<small>↗</small></a>
        </>
      )}
    </Menu>
  );
}

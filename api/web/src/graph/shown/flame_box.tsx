// SPDX-License-Identifier: Apache-2.0
// A graph's place on the page.
import { type ReadonlySignal, effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { openFrameMenu } from "./actions";
import { FlameCanvas, type Shown } from "../drawing/flame_canvas";
import type { Model } from "../tree/model";
import { Tooltip } from "../drawing/tooltip";

interface Properties {
  id: string;
  label: string;
  shown: ReadonlySignal<Shown | null>;
  isInert?: boolean;
  zoom: (model: Model, node: number) => void;
  select: (model: Model, node: number) => void;
  say: (text: string) => void;
}

export function FlameBox({ id, label, shown, isInert = false, zoom, select, say }: Properties) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const tooltip = new Tooltip();
    const at = () => shown.peek()!;
    const canvas = new FlameCanvas(box.current!, {
      onZoom: (node) => zoom(at().model, node),
      onSelect: (node) => select(at().model, node),
      onHover: (node, x, y) => {
        const now = shown.peek();
        if (node === -1 || now === null) tooltip.hide();
        else tooltip.show(now.model, node, now.zoomed, now.palette.colours[now.palette.of(node)], x, y);
      },
      onMenu: (node, x, y) => {
        tooltip.hide();
        select(at().model, node);
        openFrameMenu(at().model, node, x, y, box.current!, (to) => zoom(at().model, to));
      },
      say,
    });
    const end = effect(() => {
      if (shown.value !== null) canvas.show(shown.value);
    });
    return () => {
      end();
      canvas.end();
      tooltip.end();
    };
  }, [shown]);
  return <div id={id} class="graph" ref={box} aria-label={label} aria-describedby="graph-help" inert={isInert} />;
}

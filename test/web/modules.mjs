// SPDX-License-Identifier: Apache-2.0
// The page's own modules, for tests of arithmetic that needs no browser. Environment: FLAMED_PAGE_SOURCES, api/web/src.
import { join } from "node:path";

import { build } from "esbuild";

// By the path below api/web/src.
export async function load(path) {
  const { outputFiles } = await build({
    entryPoints: [join(process.env.FLAMED_PAGE_SOURCES, path)], bundle: true, format: "esm", target: "es2022", write: false, logLevel: "warning",
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

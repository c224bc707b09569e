// SPDX-License-Identifier: Apache-2.0
// Modules of the page's source, for tests that need no browser.
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const SOURCE = process.env.FLAMED_PAGE_SOURCES ?? fileURLToPath(new URL("../../api/web/src", import.meta.url));

// What the modules of these paths export, all in one.
export async function source(...paths) {
  const { outputFiles } = await build({
    stdin: { contents: paths.map((path) => `export * from "./${path}";`).join("\n"), resolveDir: SOURCE },
    bundle: true, write: false, format: "esm", platform: "neutral", target: "es2022",
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

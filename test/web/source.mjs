// SPDX-License-Identifier: Apache-2.0
// The page's modules, for tests without a browser.
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const SOURCE = process.env.FLAMED_PAGE_SOURCES ?? fileURLToPath(new URL("../../api/web/src", import.meta.url));

// All exports of the modules at these paths.
export async function source(...paths) {
  const { outputFiles } = await build({
    stdin: { contents: paths.map((path) => `export * from "./${path}";`).join("\n"), resolveDir: SOURCE },
    bundle: true, write: false, format: "esm", platform: "neutral", target: "es2022",
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

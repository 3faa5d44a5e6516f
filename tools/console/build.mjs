// Bundles the third-party libraries of the console into tektite/server/web/console/vendor/: one module for each file of
// entries/, the licences of what went in, and a manifest. The manifest has a hash of the lock file, of this recipe and of
// each bundle: tests/server/console/test_bundles.py finds a bundle that belongs to another lock file.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "../../tektite/server/web/console/vendor");
const hash = (...paths) => {
  const found = createHash("sha256");
  for (const path of paths) found.update(readFileSync(path));
  return found.digest("hex");
};

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const names = readdirSync(join(here, "entries")).sort();
const result = await build({
  absWorkingDir: here,
  entryPoints: names.map((name) => `entries/${name}`),
  outdir: out,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  metafile: true,
});
copyFileSync(join(here, "node_modules/uplot/dist/uPlot.min.css"), join(out, "charts.css"));

const packages = new Set(["uplot"]);
for (const output of Object.values(result.metafile.outputs)) {
  for (const [input, part] of Object.entries(output.inputs)) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input);
    if (found && part.bytesInOutput > 0) packages.add(found[1]);
  }
}
const licences = [...packages].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const texts = readdirSync(folder).filter((file) => /^(licen[sc]e|notice|copyright)/i.test(file)).sort();
  const said = texts.map((file) => readFileSync(join(folder, file), "utf8").trim());
  if (!said.length && !about.license) throw new Error(`${name} has no licence`);
  return `${name} ${about.version} (${about.license})\n${"=".repeat(72)}\n\n${said.join("\n\n") || about.license}\n`;
});
writeFileSync(join(out, "LICENSES.txt"), licences.join("\n\n"));

const files = {};
for (const name of readdirSync(out).sort()) files[name] = hash(join(out, name));
const manifest = {
  lock: hash(join(here, "package-lock.json")),
  recipe: hash(join(here, "package.json"), join(here, "build.mjs"), ...names.map((name) => join(here, "entries", name))),
  files,
};
writeFileSync(join(out, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
for (const name of Object.keys(files)) console.log(`${(readFileSync(join(out, name)).length / 1024).toFixed(0).padStart(5)} KiB  ${name}`);

// The C++ references of the dense benchmark: usearch and hnswlib, through their npm packages.
//
//   node dense.mjs DIR DIM
//
// DIR holds base.f32, query.f32 and truth.i32 as the Go program writes them. Prints one JSON object a
// line, in the form that the Go program's table reads. Times of building are processor time, so that
// what else the machine does is not counted. hnswlib-node is compiled without -march and so uses SSE;
// usearch picks its kernels at run time (AVX2 or AVX-512).
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createRequire } from "node:module";

const require = createRequire(path.join(process.cwd(), "package.json"));
const [dir, dimText] = process.argv.slice(2);
const dim = Number(dimText);
const read = (name, Type) => {
  const b = fs.readFileSync(path.join(dir, name));
  return new Type(b.buffer, b.byteOffset, b.length / 4);
};
const base = read("base.f32", Float32Array), query = read("query.f32", Float32Array), truth = read("truth.i32", Int32Array);
const n = base.length / dim, nq = query.length / dim;
const row = (a, i) => a.subarray(i * dim, (i + 1) * dim);
const now = () => Number(process.hrtime.bigint()) / 1000; // microseconds
const cpu = () => { const u = process.cpuUsage(); return u.user + u.system; };
const quantile = (a, p) => [...a].sort((x, y) => x - y)[Math.floor(p * (a.length - 1))];
const say = (o) => console.log(JSON.stringify({ n, dim, ...o }));

// Three passes over all queries, of which the least time of each query counts, as in the Go program.
function measure(index, setting, search) {
  for (const k of [10, 50]) {
    const took = new Float64Array(nq).fill(Infinity);
    let hits = 0;
    for (let pass = 0; pass < 3; pass++) {
      for (let q = 0; q < nq; q++) {
        const t = now();
        const ids = search(q, k);
        took[q] = Math.min(took[q], now() - t);
        if (pass > 0) continue;
        const want = new Set(truth.subarray(q * 50, q * 50 + k));
        for (const id of ids) if (want.has(Number(id))) hits++;
      }
    }
    say({ index, setting, k, p50_us: quantile(took, 0.5), p95_us: quantile(took, 0.95), recall: hits / nq / k });
  }
}

{
  const { Index } = require("usearch");
  const options = (ef) => ({ dimensions: dim, metric: "ip", quantization: "f32", connectivity: 16, expansion_add: 128, expansion_search: ef, multi: false });
  const before = process.memoryUsage().rss;
  const built = new Index(options(64));
  const keys = BigUint64Array.from({ length: n }, (_, i) => BigInt(i));
  const t = cpu();
  built.add(keys, base, 1);
  say({ index: "usearch", setting: "M16 efC128", threads: 1, build_us_per_vector: (cpu() - t) / n,
    bytes_per_vector: (process.memoryUsage().rss - before) / n, includes_vectors: true });
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "usearch-"));
  built.save(path.join(folder, "index"));
  for (const ef of [50, 64, 128, 256]) { // what is saved does not include ef
    const index = new Index(options(ef));
    index.load(path.join(folder, "index"));
    measure("usearch", `ef${ef}`, (q, k) => index.search(row(query, q), k, 1).keys);
  }
  fs.rmSync(folder, { recursive: true });
}
{
  const { HierarchicalNSW } = require("hnswlib-node");
  const h = new HierarchicalNSW("ip", dim);
  h.initIndex({ maxElements: n, m: 16, efConstruction: 128, randomSeed: 1 });
  let took = 0; // without the conversion to arrays of JavaScript
  for (let i = 0; i < n; i++) {
    const v = Array.from(row(base, i));
    const t = cpu();
    h.addPoint(v, i);
    took += cpu() - t;
  }
  say({ index: "hnswlib", setting: "M16 efC128", threads: 1, build_us_per_vector: took / n });
  const queries = Array.from({ length: nq }, (_, i) => Array.from(row(query, i)));
  for (const ef of [50, 64, 100, 200]) {
    h.setEf(ef);
    measure("hnswlib", `ef${ef}`, (q, k) => h.searchKnn(queries[q], k).neighbors);
  }
}

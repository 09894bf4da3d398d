// Bundles the page into FOLDER/page.js and FOLDER/page.css: node build.mjs FOLDER
import { build } from 'esbuild';

const folder = process.argv[2];
await build({
  entryPoints: { page: 'src/main.tsx' },
  outdir: folder,
  bundle: true,
  minify: true,
  format: 'iife',
  target: ['chrome109', 'firefox115', 'safari16.4'],
  charset: 'ascii',
  legalComments: 'none',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  logLevel: 'warning',
});

// Builds the console into dist/program/console, which `parley serve` serves. `npx vite console` serves it during development and
// forwards API calls to the server at PARLEY_URL.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const server = process.env['PARLEY_URL'] ?? 'http://127.0.0.1:7717';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    outDir: fileURLToPath(new URL('../dist/program/console', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '/v1': server, '/docs': server, '/openapi.json': server } },
});

// npm run bench -- NAME: measures one thing and prints it as ratios within this run; the machine is noisy, ratios are not.
const benches = { parse: './parse.mjs', runs: './runs.mjs', cli: './cli.mjs', sse: './sse.mjs', postgres: './postgres.mjs', 'postgres-store': './postgres-store.mjs', claims: './claims.mjs', soak: './soak.mjs' };
const [name = 'all', ...args] = process.argv.slice(2);
const names = name === 'all' ? Object.keys(benches) : [name];
for (const each of names) {
  if (!benches[each]) {
    console.error(`there is no bench "${each}"; the benches are ${Object.keys(benches).join(', ')}, all`);
    process.exit(2);
  }
  await (await import(benches[each])).default(args);
}

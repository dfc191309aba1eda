// The examples for containers and systemd confine their processes: no new privileges, no cluster token, and only the
// data is writable.
import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';

const ROOT = new URL('../../', import.meta.url).pathname;
const read = (path: string): string => readFileSync(`${ROOT}examples/${path}`, 'utf8');

interface Container {
  readonly name: string;
  readonly securityContext: Record<string, unknown>;
  readonly workingDir?: string;
  readonly volumeMounts?: readonly { readonly mountPath: string }[];
}
interface Pod extends Record<string, unknown> {
  readonly securityContext: Record<string, unknown>;
  readonly initContainers: readonly Container[];
  readonly containers: readonly Container[];
}
interface Service extends Record<string, unknown> {
  readonly build?: { readonly dockerfile_inline: string };
  readonly volumes?: readonly string[];
}

test('the pods of kubernetes.yaml have no service-account token and run as a normal user', () => {
  const documents = parseAllDocuments(read('kubernetes.yaml')).map(
    (document) => document.toJS({ maxAliasCount: -1 }) as { kind: string; spec: Record<string, unknown> },
  );
  const set = documents.find(({ kind }) => kind === 'StatefulSet')?.spec as {
    updateStrategy: unknown;
    template: { spec: Pod };
  };
  const pod = set.template.spec;
  expect(pod).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
  expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  expect(pod.securityContext['runAsUser']).toBeGreaterThan(0);
  for (const key of ['hostNetwork', 'hostPID', 'hostIPC']) expect(pod).not.toHaveProperty(key);
  // Hosts of two versions do not share a database.
  expect(set.updateStrategy).toEqual({ type: 'OnDelete' });
});

test('no container of kubernetes.yaml can gain rights or write to its own image', () => {
  const documents = parseAllDocuments(read('kubernetes.yaml')).map(
    (document) => document.toJS({ maxAliasCount: -1 }) as { kind: string; spec: { template: { spec: Pod } } },
  );
  const pod = documents.find(({ kind }) => kind === 'StatefulSet')?.spec.template.spec as Pod;
  for (const { name, securityContext } of [...pod.initContainers, ...pod.containers]) {
    expect(securityContext, name).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  }
  const [parley] = pod.containers;
  expect(parley?.workingDir).toBe('/data/work');
  expect(parley?.volumeMounts?.map(({ mountPath }) => mountPath)).toEqual(['/data', '/tmp']);
});

test('the containers of docker-compose.yml drop all capabilities and gain no rights', () => {
  const { services } = parse(read('docker-compose.yml'), { merge: true }) as { services: Record<string, Service> };
  expect(Object.keys(services)).toEqual(['postgres', 'migrate', 'parley']);
  for (const [name, service] of Object.entries(services)) {
    expect(service, name).toMatchObject({ cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
    expect(service, name).not.toHaveProperty('privileged');
    expect(service.volumes ?? [], name).not.toContainEqual(expect.stringContaining('docker.sock'));
  }
  for (const name of ['migrate', 'parley'])
    expect(services[name], name).toMatchObject({ user: 'node', read_only: true, tmpfs: ['/tmp'] });
});

test('the image of docker-compose.yml takes only named files, which are there, and ends as a normal user', () => {
  const { services } = parse(read('docker-compose.yml'), { merge: true }) as { services: Record<string, Service> };
  const lines = (services['parley']?.build?.dockerfile_inline ?? '').split('\n').map((line) => line.trim());
  const copied = lines
    .filter((line) => line.startsWith('COPY ') && !line.includes('--from='))
    .flatMap((line) => line.split(' ').slice(1, -1));
  expect(copied.length).toBeGreaterThan(5);
  for (const path of copied) {
    expect(path).not.toMatch(/^[./]*$|\*/);
    expect(existsSync(`${ROOT}${path}`), path).toBe(true);
  }
  const users = lines.filter((line) => line.startsWith('USER '));
  expect(users.at(-1)).toBe('USER node');
});

test('the unit of systemd works in a folder for repositories and not in the root of the machine', () => {
  const lines = read('parley.service').split('\n');
  expect(lines).toContain('WorkingDirectory=/srv/work');
  expect(lines).toContain('ReadWritePaths=/srv/work');
  expect(lines).toContain('NoNewPrivileges=yes');
});

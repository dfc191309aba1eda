export const PROFILES: readonly string[];
export function recordedShape(engine: string, bytes: number): { stream: Buffer; lines: number };
